/*
 * Text that makes an engine of a cluster run a training: a batch script, a manifest or a driver. A
 * pure function of the options. What an engine must do is the same everywhere: start all ranks,
 * tell them how to meet, and start them again with --resume until the training has ended. Exit
 * status 2 and 3 (wrong options, bad images) are not tried again.
 */
#pragma once

#include "base/scope.h"
#include "base/text/text.h"

struct tdmi_emit_options {
    const char *engine; /* "slurm", "k8s", "mpijob" or "spark" */
    int ranks;
    int min_ranks;     /* slurm: as few are started where no more nodes are free */
    int restarts;      /* at most */
    double deadline;   /* seconds; a rank that is silent for longer is lost */
    const char *mpi;   /* srun: the PMI of the MPI that tandem has, "pmix" */
    const char *image; /* container image of pods; NULL: "tandem" */
    const char *claim; /* PersistentVolumeClaim with the images and the run; NULL: "tandem" */
    const char *run;   /* run folder, one of the words */
    /* Arguments of tandem on every rank, with --resume. */
    const char *const *words;
    int n_words;
};

/* TDM_E_USAGE: an argument cannot be written in this engine's language. */
tdm_status tdmi_emit(const struct tdmi_emit_options *options, tdmi_text *text,
                     tdm_error *err) TDM_MUST_USE;
/* Does it start containers, from an image and with a claim? False where there is no such engine. */
bool tdmi_emit_has_container(const char *engine);
