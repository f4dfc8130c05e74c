/*
 * tandem run -n N -- train …: the ranks of one training, started here; or, with --emit, the text by
 * which a cluster starts them.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/launch.h"
#include "tandem/train.h"

#include <string.h>

struct values {
    struct tdm_launch_options launch;
    const char *emit;
};

static void defaults(void *values)
{
    ((struct values *)values)->launch = tdm_launch_options_default();
}

static tdm_status emit(struct tdmi_call *call, const struct tdm_launch_options *options,
                       const char *engine, tdm_error *err)
{
    char *text;
    TDMI_TRY(tdm_launch_emit(options, engine, &text, err));
    tdm_json_string(call->json, "emit", engine);
    tdm_json_string(call->json, "text", text);
    tdmi_print_raw(call->out, text);
    tdm_text_free(text);
    return TDM_OK;
}

static tdm_status start(struct tdmi_call *call, const struct tdm_launch_options *options,
                        tdm_error *err)
{
    struct tdm_launch_result result = {.struct_bytes = sizeof result};
    TDMI_TRY(tdm_launch(options, &result, err));
    const tdm_status status =
        call->json ? tdm_launch_result_to_json(&result, call->json, err) : TDM_OK;
    tdm_text_free(result.output);
    call->exit_status = result.exit_status;
    return status;
}

/* The arguments of the ranks, with --json where the job's result is JSON. */
static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_launch_options options = values->launch;
    TDMI_AT_END(tdmi_free_at) const char **arguments = NULL;
    TDMI_TRY(TDMI_NEW(arguments, call->n_arguments + 2, err));
    memcpy(arguments, call->arguments, sizeof *arguments * (size_t)call->n_arguments);
    options.n_arguments = call->n_arguments;
    options.keeps_output = call->json != NULL;
    if (options.keeps_output && !values->emit)
        arguments[options.n_arguments++] = "--json";
    if (call->globals->quiet)
        arguments[options.n_arguments++] = "--quiet";
    options.arguments = arguments;
    return values->emit ? emit(call, &options, values->emit, err) : start(call, &options, err);
}

static const struct tdmi_argument arguments[] = {
    {.name = "train",
     .help = "after --: the command that every rank runs, with its options",
     .is_command = true},
    {.name = "ARGUMENT", .help = "its arguments", .is_optional = true, .is_many = true},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(INTEGER, "ranks", launch.ranks, "Job", "number of processes", .letter = 'n', .low = 1,
             .high = 4096),
    TDMI_ROW(TEXT, "hosts", launch.hosts, "Job", "hosts and their slots, by mpirun: a:2,b:2",
             .letter = 'H', .value_name = "HOSTS",
             .default_words = "this machine, or the allocation of Slurm"),
    TDMI_ROW(PATH, "hostfile", launch.hostfile, "Job", "file of hosts, as mpirun reads it",
             .value_name = "FILE"),
    TDMI_ROW(TEXT, "iface", launch.iface, "Job", "network interface of mpirun's messages",
             .value_name = "NAME"),
    TDMI_ROW(INTEGER, "restarts", launch.restarts, "Job",
             "start all again with --resume after a rank was lost, so many times at most",
             .high = 1000000),
    TDMI_ROW(INTEGER, "min-ranks", launch.min_ranks, "Job",
             "continue with fewer ranks after a loss, at least so many", .low = 1, .high = 4096,
             .default_words = "all"),
    TDMI_ROW(TEXT, "hosts-from", launch.hosts_from, "Job",
             "command that prints the hosts that are there now, host:slots a line; asked before "
             "each start",
             .value_name = "COMMAND", .default_words = "none"),
    TDMI_ROW(DURATION, "deadline", launch.deadline, "Job",
             "a rank that is silent for so long is lost", .low = 1, .high = 86400,
             .default_words = "60 s; 300 s with --emit k8s and mpijob"),
    TDMI_ROW(CHOICE, "emit", emit, "Cluster",
             "print a batch script, manifest or driver for it; nothing is started",
             .choices = "slurm|k8s|mpijob|spark", .default_words = "start the ranks"),
    TDMI_ROW(TEXT, "image", launch.image, "Cluster", "container image that has tandem in it",
             .value_name = "NAME", .default_words = "tandem"),
    TDMI_ROW(TEXT, "claim", launch.claim, "Cluster",
             "PersistentVolumeClaim that has the images and gets the run", .value_name = "NAME",
             .default_words = "tandem"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem run -n 2 -- train pictures -o runs/first",
    "two processes of this machine share every batch",
    "tandem run -n 4 --restarts 3 -- train pictures -o runs/first --epochs 30",
    "continued by itself when a process is killed",
    "tandem run -n 4 -H node0:2,node1:2 -- train pictures -o runs/first",
    "on two machines, by the mpirun that is found; its line is shown",
    "tandem run -n 8 --emit slurm -- train pictures -o runs/first >job.sh",
    "a batch script that queues itself again until the training has ended",
    NULL,
};

TDMI_COMMAND(
    run, "train with several processes",
    "Starts the same training once for each rank, here or by mpirun or srun on other machines. The "
    "ranks divide every batch, have disjoint "
    "CPUs, and end with the same bits as one process. Output of ranks other than 0 is passed "
    "on with their number. If one rank fails, all end, and one says why.");
