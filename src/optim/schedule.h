/*
 * Learning-rate schedules: pure functions of the position in training, so a resumed run needs no
 * state; plateau, which follows the validation loss, gets its count of reductions with the
 * position. Listed in schedules.def.
 */
#pragma once

#include "optim/parameter.h"

struct tdmi_schedule_at {
    double epochs_done;   /* fractional */
    double epochs_total;  /* 0: not known */
    double warmup_epochs; /* the rate rises linearly from 0 over these */
    int n_reductions;     /* of plateau */
};

/* The position after the warm-up. */
struct tdmi_schedule_place {
    double epochs, progress; /* epochs since the warm-up; 0 to 1 at the end */
    int n_reductions;
};

struct tdmi_schedule {
    const char *name;
    const char *summary;
    bool needs_total;     /* requires a known end of training */
    double warmup_epochs; /* default */
    struct tdmi_parameter parameters[TDMI_PARAMETERS + 1];
    /* Factor on the learning rate. */
    double (*factor)(const double *values, struct tdmi_schedule_place place);
};

/* A schedule and the values of its parameters. */
struct tdmi_schedule_choice {
    const struct tdmi_schedule *schedule;
    double values[TDMI_PARAMETERS];
};

/* NULL past the last. */
const struct tdmi_schedule *tdmi_schedule_at(int index);
/* Reads "step:every=5"; TDM_E_USAGE lists the names, or says what is accepted. */
tdm_status tdmi_schedule_read(const char *text, struct tdmi_schedule_choice *choice,
                              tdm_error *err) TDM_MUST_USE;
double tdmi_schedule_factor(const struct tdmi_schedule_choice *choice, struct tdmi_schedule_at at);

/* State of plateau between validations, as in PyTorch's ReduceLROnPlateau. Starts zeroed. */
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
