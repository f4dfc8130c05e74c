/*
 * Learning-rate schedules: pure functions of where training stands, so that a resumed run needs no
 * state; the one that follows the validation loss gets what it counted with the place. Listed in
 * schedules.def.
 */
#pragma once

#include "optim/parameter.h"

struct tdmi_schedule_at {
    double epochs_done;   /* fractional */
    double epochs_total;  /* 0: not known */
    double warmup_epochs; /* the rate rises linearly from 0 over these */
    int n_reductions;     /* of plateau */
};

/* The schedule after the warm-up. */
struct tdmi_schedule_place {
    double epochs, progress; /* since then; 0 to 1 at the end */
    int n_reductions;
};

struct tdmi_schedule {
    const char *name;
    const char *summary;
    bool needs_total;     /* cannot run without a known end */
    double warmup_epochs; /* usual */
    struct tdmi_parameter parameters[TDMI_PARAMETERS + 1];
    /* Factor on the learning rate. */
    double (*factor)(const double *values, struct tdmi_schedule_place place);
};

/* One that was asked for, with its parameters' values. */
struct tdmi_schedule_choice {
    const struct tdmi_schedule *schedule;
    double values[TDMI_PARAMETERS];
};

/* NULL past the last. */
const struct tdmi_schedule *tdmi_schedule_at(int index);
/* "step:every=5"; TDM_E_USAGE lists the names, or says what is accepted. */
tdm_status tdmi_schedule_read(const char *text, struct tdmi_schedule_choice *choice,
                              tdm_error *err) TDM_MUST_USE;
double tdmi_schedule_factor(const struct tdmi_schedule_choice *choice, struct tdmi_schedule_at at);

/* Counters of plateau from validation to validation, as PyTorch's ReduceLROnPlateau. Zeroed at
 * first.
 */
struct tdmi_plateau {
    double best_loss;
    int n_evaluated; /* 0: there is no best yet */
    int n_waited;    /* validations without improvement */
    int n_resting;   /* validations that are not counted any more */
    int n_reductions;
};
bool tdmi_schedule_follows_loss(const struct tdmi_schedule_choice *choice);
void tdmi_plateau_take(const struct tdmi_schedule_choice *choice, double loss,
                       struct tdmi_plateau *plateau);
