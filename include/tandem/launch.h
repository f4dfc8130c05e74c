/*
 * Several processes that work on one training: `tandem run` starts `tandem train …` once for each
 * rank, here, watches them, and starts all of them again after a rank was lost. Or a cluster does:
 * tdm_launch_emit writes what it needs for that.
 */
#ifndef TANDEM_LAUNCH_H
#define TANDEM_LAUNCH_H

#include "tandem/error.h"
#include "tandem/json.h"
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Strings are lent for the call. */
struct tdm_launch_options {
    size_t struct_bytes; /* see tandem/api.h */
    int ranks;           /* processes; at least 1 */
    /* Hosts with their slots, "a:2,b:2", or a file of them; the ranks are then started by mpirun.
     * Both NULL: here, or by srun in an allocation of Slurm that has several nodes. */
    const char *hosts, *hostfile;
    const char *iface; /* network of mpirun's messages; NULL: any */
    int restarts;      /* times that all are started again after a rank was lost */
    /* After a loss fewer ranks may continue, at least so many; 0: all of them. A command that
     * prints the hosts that are there, "host:slots" a line, is asked before each start: as many
     * ranks as there are slots, at most `ranks`. NULL: none, and a rank less after each loss. */
    int min_ranks;
    const char *hosts_from;
    double deadline;   /* seconds after which a silent rank is lost; 0: 60, and 300 in manifests */
    const char *image; /* container image of tdm_launch_emit; NULL: "tandem" */
    const char *claim; /* volume claim of its pods; NULL: "tandem" */
    const char *const *arguments; /* of each: "train", "photos", … */
    int n_arguments;
    bool keeps_output; /* rank 0's standard output goes to the result, not to this process's */
};

struct tdm_launch_result {
    size_t struct_bytes; /* see tandem/api.h */
    int world;           /* ranks of the last start */
    int restarts;        /* that were needed */
    int exit_status;     /* of the job: 0, or that of the rank that failed first */
    char *output;        /* that was kept, to be freed by tdm_text_free; or NULL */
};

TDM_API void tdm_launch_options_init(struct tdm_launch_options *options, size_t struct_bytes);
static inline struct tdm_launch_options tdm_launch_options_default(void)
{
    struct tdm_launch_options options;
    tdm_launch_options_init(&options, sizeof options);
    return options;
}

/* Blocks until all have ended. What ranks other than 0 write is passed on with "[rank] " before
 * each line. A requested stop (tandem/event.h) is passed on to all as SIGTERM, to another launcher
 * as SIGUSR1. TDM_OK also where the training failed: its ranks have said why. result->exit_status
 * is that of TDM_E_PEER where a rank was killed, or had to be. */
TDM_API tdm_status tdm_launch(const struct tdm_launch_options *options,
                              struct tdm_launch_result *result, tdm_error *err) TDM_MUST_USE;

/* The text of a batch script, manifest or driver that trains by "slurm", "k8s" (a JobSet), "mpijob"
 * or "spark". Pure: nothing is started or looked for. The ranks' training needs a run folder (-o).
 * *text is freed by tdm_text_free. */
TDM_API tdm_status tdm_launch_emit(const struct tdm_launch_options *options, const char *engine,
                                   char **text, tdm_error *err) TDM_MUST_USE;

/* As members of an object that is open: world, restarts, and those of the object that rank 0
 * printed where it was kept. TDM_E_INPUT: it printed something else. */
TDM_API tdm_status tdm_launch_result_to_json(const struct tdm_launch_result *result,
                                             tdm_json_writer *writer, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
