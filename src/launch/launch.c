/* Jobs one after another: the first, and again with --resume as long as a rank was lost. */
#include "tandem/launch.h"
#include "base/sized.h"
#include "base/system/env.h"
#include "base/text/json.h"
#include "base/text/rank_line.h"
#include "base/thread.h"
#include "dist/launch.h"
#include "launch/emit.h"
#include "launch/engine.h"
#include "launch/hosts.h"
#include "launch/job.h"
#include "tandem/event.h"
#include "tandem/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { most_ranks = 4096, emitted_restarts = 100 };
static const double usual_deadline = 60.0, pods_deadline = 300.0; /* pods fetch their image first */

void tdm_launch_options_init(struct tdm_launch_options *options, size_t struct_bytes)
{
    const struct tdm_launch_options usual = {.struct_bytes = sizeof usual, .ranks = 1};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

static bool has_argument(const struct tdm_launch_options *options, const char *name,
                         const char *letter)
{
    for (int i = 0; i < options->n_arguments; i++) {
        const char *it = options->arguments[i];
        if (strcmp(it, name) == 0 || (letter && strncmp(it, letter, 2) == 0) ||
            (strncmp(it, name, strlen(name)) == 0 && it[strlen(name)] == '='))
            return true;
    }
    return false;
}

static bool has_ranks(const struct tdm_launch_options *options)
{
    const char *const *words = options->arguments;
    const int n = options->n_arguments;
    return (n > 0 && strcmp(words[0], "train") == 0) ||
           (n > 1 && strcmp(words[0], "bench") == 0 && strcmp(words[1], "allreduce") == 0);
}

static double deadline_of(const struct tdm_launch_options *options, double usual)
{
    return options->deadline > 0.0 ? options->deadline : usual;
}

/* Each of several would start a job of its own, on one run. */
static tdm_status refuse_launcher(tdm_error *err)
{
    struct tdmi_launch launch;
    TDMI_TRY(tdmi_launch_here(&launch, err));
    if (launch.world == 1)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "starting ranks as process %d of %d that %s started: each of them would start "
                    "a job of its own; under another launcher 'tandem train' is accepted, without "
                    "'tandem run -n N --'",
                    launch.rank, launch.world, launch.launcher);
}

static tdm_status check(const struct tdm_launch_options *options, tdm_error *err)
{
    if (options->ranks < 1 || options->ranks > most_ranks)
        return TDM_FAIL(err, TDM_E_USAGE, "starting %d ranks: from 1 to %d are accepted",
                        options->ranks, most_ranks);
    if (options->deadline != 0.0 && !(options->deadline >= 1.0))
        return TDM_FAIL(err, TDM_E_USAGE, "a deadline of %g seconds: at least 1 is accepted",
                        options->deadline);
    if (!has_ranks(options))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "starting ranks of 'tandem %s': train and bench allreduce run as several "
                        "ranks",
                        options->n_arguments > 0 ? options->arguments[0] : "");
    if (options->min_ranks < 0 || options->min_ranks > options->ranks)
        return TDM_FAIL(err, TDM_E_USAGE, "at least %d of %d ranks: from 1 to %d are accepted",
                        options->min_ranks, options->ranks, options->ranks);
    if (options->hosts_from && (options->hosts || options->hostfile))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--hosts-from with -H or --hostfile: one of them names the hosts");
    if (options->restarts > 0 && !has_argument(options, "--out", "-o"))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--restarts continues the run that was lost, so the run needs a name: "
                        "train … -o RUN");
    return TDM_OK;
}

static void report_loss(const struct tdmi_job_end *end, int ranks, bool by_launcher, bool is_again)
{
    char who[40] = "ranks were", how[60] = "it was silent for longer than the deadline";
    if (end->lost_rank >= 0)
        snprintf(who, sizeof who, "rank %d of %d was", end->lost_rank, ranks);
    if (end->lost_signal > 0)
        snprintf(how, sizeof how, "it was killed by signal %d (%s)", end->lost_signal,
                 strsignal(end->lost_signal));
    else if (end->is_unbegun)
        snprintf(how, sizeof how, "none began");
    else if (by_launcher)
        snprintf(how, sizeof how, "%s did not report an end", end->lost_rank >= 0 ? "it" : "they");
    tdm_log(TDM_LOG_WARNING, "%s lost: %s%s", who, how,
            is_again ? "; all ranks are started again" : "");
}

/* A rank that was lost may also show only as a peer that others have lost. */
static bool is_lost(const struct tdmi_job_end *end)
{
    return end->lost_rank >= 0 || end->exit_status == tdm_status_exit(TDM_E_PEER);
}

/* ---- by another launcher
 * -------------------------------------------------------------------------- */

/* Names that ranks on other hosts need as well. */
static const char *const travelling[] = {"TANDEM_DEADLINE", TDMI_REPORT_VARIABLE, "TANDEM_HOME",
                                         "TANDEM_FETCH", "LD_LIBRARY_PATH"};
enum { n_travelling = sizeof travelling / sizeof travelling[0], n_always = 2 /* by job.c */ };

static bool has_launcher(const struct tdm_launch_options *options)
{
    const char *nodes = tdmi_env("SLURM_JOB_NUM_NODES");
    const bool has_nodes = nodes && strcmp(nodes, "1") != 0 && tdmi_engine_is_allocation();
    return options->hosts || options->hostfile || options->iface || has_nodes;
}

/* The command that starts the ranks, which is also shown. */
static tdm_status find_line(const struct tdm_launch_options *options, const char *const *arguments,
                            int n_arguments, tdmi_arena *arena, struct tdmi_job_options *job,
                            tdm_error *err)
{
    enum { path_bytes = 4096 };
    char *program = tdmi_arena_alloc(arena, path_bytes, 1);
    const char *variables[n_travelling + 1] = {0};
    const char **words = tdmi_arena_alloc(arena, (size_t)n_arguments + 2, sizeof *words);
    struct tdmi_engine engine;
    int n = 0;
    TDMI_CHECK_MEMORY(words && program, err);
    const ssize_t length = readlink("/proc/self/exe", program, path_bytes - 1);
    program[length > 0 ? length : 0] = '\0';
    words[0] = program;
    for (int i = 0; i < n_arguments; i++)
        words[i + 1] = arguments[i];
    for (int i = 0; i < n_travelling; i++)
        if (i < n_always || tdmi_env(travelling[i]))
            variables[n++] = travelling[i];
    const struct tdmi_engine_job asked = {.ranks = options->ranks,
                                          .hosts = options->hosts,
                                          .hostfile = options->hostfile,
                                          .iface = options->iface,
                                          .variables = variables,
                                          .words = words};
    TDMI_TRY(tdmi_engine_find(&asked, &engine, err));
    TDMI_TRY(tdmi_engine_line(&engine, &asked, arena, &job->arguments, err));
    TDMI_AT_END(tdmi_text_release) tdmi_text shown = {0};
    for (job->n_arguments = 0; job->arguments[job->n_arguments]; job->n_arguments++)
        tdmi_text_printf(&shown, "%s%s", job->n_arguments > 0 ? " " : "",
                         job->arguments[job->n_arguments]);
    TDMI_TRY(tdmi_text_status(&shown, err));
    tdm_log(TDM_LOG_INFO, "%s", tdmi_text_string(&shown));
    job->program = *job->arguments++;
    job->n_arguments--;
    job->is_launcher = true;
    return TDM_OK;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Each pair of ranks has a connection, so 256 ranks on two CPUs have not met after a minute. run
 * has two pipes for each rank. */
static tdm_status check_machine(int ranks, tdm_error *err)
{
    enum { least = 64, of_a_cpu = 4, files_of_a_rank = 4 };
    const int n_cpus = tdmi_cpus_usable();
    struct rlimit files = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    int most = of_a_cpu * n_cpus > least ? of_a_cpu * n_cpus : least;
    if (files.rlim_cur / files_of_a_rank < (rlim_t)most)
        most = (int)(files.rlim_cur / files_of_a_rank);
    if (ranks == 1 || ranks <= most)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE,
                    "starting %d ranks on this machine, which has %d CPUs and lets a process open "
                    "%llu files (ulimit -n): up to %d are accepted, and more with several machines "
                    "(-H)",
                    ranks, n_cpus, (unsigned long long)files.rlim_cur, most);
}

static tdm_status run_once(const struct tdm_launch_options *options, const char *const *arguments,
                           int n_arguments, tdmi_text *output, struct tdmi_job_end *end,
                           tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_job_options job = {.program = "/proc/self/exe",
                                   .arguments = arguments,
                                   .n_arguments = n_arguments,
                                   .ranks = options->ranks,
                                   .deadline = deadline_of(options, usual_deadline),
                                   .output = options->keeps_output ? output : NULL};
    if (has_launcher(options))
        TDMI_TRY(find_line(options, arguments, n_arguments, &arena, &job, err));
    else
        TDMI_TRY(check_machine(options->ranks, err));
    return tdmi_job_run(&job, end, err);
}

/* ---- as many ranks as there are hosts for ---------------------------------------------------- */

/* Ranks and hosts of the next start. */
static tdm_status choose_ranks(const struct tdm_launch_options *options, bool was_lost,
                               tdmi_arena *arena, struct tdm_launch_options *now, tdm_error *err)
{
    const int least = options->min_ranks > 0 ? options->min_ranks : options->ranks;
    const int before = now->ranks;
    if (options->hosts_from) {
        struct tdmi_hosts hosts;
        TDMI_TRY(tdmi_hosts_wait(options->hosts_from, least, deadline_of(options, usual_deadline),
                                 arena, &hosts, err));
        now->hosts = hosts.list;
        now->ranks = hosts.slots < options->ranks ? hosts.slots : options->ranks;
    } else if (was_lost && now->ranks > least)
        now->ranks--;
    if (now->ranks != before)
        tdm_log(TDM_LOG_INFO, "%d of %d ranks are started", now->ranks, options->ranks);
    return TDM_OK;
}

static tdm_status run_jobs(const struct tdm_launch_options *options,
                           struct tdm_launch_result *result, tdmi_text *output, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) const char **arguments = NULL;
    TDMI_AT_END(tdmi_arena_release) tdmi_arena hosts = {0};
    struct tdm_launch_options now = *options;
    TDMI_TRY(TDMI_NEW(arguments, options->n_arguments + 1, err));
    memcpy(arguments, options->arguments, sizeof *arguments * (size_t)options->n_arguments);
    int n = options->n_arguments;
    for (bool was_lost = false;;) {
        struct tdmi_job_end end = {0};
        tdmi_text_clear(output);
        TDMI_TRY(choose_ranks(options, was_lost, &hosts, &now, err));
        result->world = now.ranks;
        TDMI_TRY(run_once(&now, arguments, n, output, &end, err));
        const bool is_gone = end.is_unbegun && result->restarts > 0 && options->hosts_from;
        was_lost = is_lost(&end) || is_gone;
        result->exit_status = was_lost ? tdm_status_exit(TDM_E_PEER) : end.exit_status;
        const bool is_again =
            was_lost && result->restarts < options->restarts && !tdm_stop_is_requested();
        if (end.lost_rank >= 0 || (was_lost && has_launcher(&now)))
            report_loss(&end, now.ranks, has_launcher(&now), is_again);
        if (!is_again)
            return TDM_OK;
        if (is_gone) /* the script may not have noticed yet that a host is gone */
            TDMI_TRY(tdmi_hosts_pause(deadline_of(options, usual_deadline), err));
        result->restarts++;
        if (!has_argument(options, "--resume", NULL) && n == options->n_arguments)
            arguments[n++] = "--resume";
    }
}

tdm_status tdm_launch(const struct tdm_launch_options *options, struct tdm_launch_result *result,
                      tdm_error *err)
{
    TDMI_OPTIONS(tdm_launch_options, options, tdm_launch_options_default(), err);
    TDMI_RESULT(tdm_launch_result, result, err);
    TDMI_AT_END(tdmi_text_release) tdmi_text output = {0};
    TDMI_TRY(check(options, err));
    TDMI_TRY(refuse_launcher(err));
    if (options->image || options->claim)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--image and --claim are for pods; --emit k8s and --emit mpijob print "
                        "manifests of such");
    TDM_TRY(run_jobs(options, result, &output, err), err, "running %d rank%s", options->ranks,
            options->ranks == 1 ? "" : "s");
    if (options->keeps_output) {
        TDMI_TRY(tdmi_text_status(&output, err));
        result->output = output.bytes;
        output = (tdmi_text){0};
    }
    return TDM_OK;
}

/* ---- by a cluster ---------------------------------------------------------------------------- */

/* The run folder among the words of the training, or NULL. */
static const char *find_run(const struct tdm_launch_options *options)
{
    const char *run = NULL;
    for (int i = 0; i < options->n_arguments; i++) {
        const char *it = options->arguments[i];
        const char *next = i + 1 < options->n_arguments ? options->arguments[i + 1] : NULL;
        if (strcmp(it, "-o") == 0 || strcmp(it, "--out") == 0)
            run = next;
        else if (strncmp(it, "--out=", 6) == 0)
            run = it + 6;
        else if (strncmp(it, "-o", 2) == 0)
            run = it + 2;
    }
    return run && *run ? run : NULL;
}

static tdm_status check_emit(const struct tdm_launch_options *options, const char *engine,
                             const char *run, tdm_error *err)
{
    TDMI_TRY(check(options, err));
    if (strcmp(options->arguments[0], "train") != 0 || !run)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a cluster starts a training again until its run has ended, so a training "
                        "whose run has a name is accepted: train … -o RUN");
    if (options->hosts || options->hostfile || options->iface || options->hosts_from)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "the cluster chooses hosts and networks; leave out -H, --hostfile, "
                        "--hosts-from and --iface");
    if (options->min_ranks > 0 && strcmp(engine, "slurm") != 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--min-ranks goes with --emit slurm alone: %s starts all ranks or none",
                        engine);
    if ((options->image || options->claim) && !tdmi_emit_has_container(engine))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--image and --claim are for pods; they go with --emit k8s and mpijob, not "
                        "with %s",
                        engine);
    return TDM_OK;
}

tdm_status tdm_launch_emit(const struct tdm_launch_options *options, const char *engine,
                           char **text, tdm_error *err)
{
    *text = NULL;
    TDMI_OPTIONS(tdm_launch_options, options, tdm_launch_options_default(), err);
    TDMI_AT_END(tdmi_text_release) tdmi_text script = {0};
    TDMI_AT_END(tdmi_free_at) const char **words = NULL;
    const char *run = find_run(options);
    int n = options->n_arguments;
    TDM_TRY(check_emit(options, engine, run, err), err, "writing what %s needs", engine);
    TDMI_TRY(TDMI_NEW(words, n + 1, err));
    memcpy(words, options->arguments, sizeof *words * (size_t)n);
    if (!has_argument(options, "--resume", NULL))
        words[n++] = "--resume";
    const double usual = tdmi_emit_has_container(engine) ? pods_deadline : usual_deadline;
    const struct tdmi_emit_options emit = {
        .engine = engine,
        .ranks = options->ranks,
        .min_ranks = options->min_ranks > 0 ? options->min_ranks : 1,
        .restarts = options->restarts > 0 ? options->restarts : emitted_restarts,
        .deadline = deadline_of(options, usual),
        .mpi = tdmi_engine_pmi(),
        .image = options->image,
        .claim = options->claim,
        .run = run,
        .words = words,
        .n_words = n,
    };
    TDM_TRY(tdmi_emit(&emit, &script, err), err, "writing what %s needs", engine);
    *text = script.bytes;
    script = (tdmi_text){0};
    return TDM_OK;
}

tdm_status tdm_launch_result_to_json(const struct tdm_launch_result *result,
                                     tdm_json_writer *writer, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const char *text = result->output ? result->output : "";
    tdm_json_integer(writer, "restarts", result->restarts);
    if (!*text) {
        tdm_json_integer(writer, "world", result->world);
        return TDM_OK;
    }
    TDM_TRY(tdm_json_read(text, strlen(text), "what rank 0 printed", &document, err), err,
            "reading the result of the training");
    const tdm_json_value *root = tdm_json_root(document);
    for (size_t i = 0; i < tdm_json_count(root); i++)
        tdmi_json_copy(writer, tdm_json_key_at(root, i), tdm_json_at(root, i));
    return TDM_OK;
}
