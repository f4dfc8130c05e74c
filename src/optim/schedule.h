/*
 * Learning-rate schedules: pure functions of where training stands, so a resumed run needs no
 * state. Listed in schedules.def.
 */
#ifndef TANDEM_OPTIM_SCHEDULE_H
#define TANDEM_OPTIM_SCHEDULE_H

#include "tandem/error.h"
#include <stdbool.h>

struct tdmi_schedule_at {
    double epochs_done;   /* fractional */
    double epochs_total;  /* 0: not known */
    double warmup_epochs; /* the rate rises linearly from 0 over these */
};

struct tdmi_schedule {
    const char *name;
    const char *summary;
    bool needs_total; /* cannot run without a known end */
    /* Factor on the learning rate, progress in [0, 1] of what follows the warm-up. */
    double (*factor)(double progress);
};

/* NULL past the last. */
const struct tdmi_schedule *tdmi_schedule_at(int index);
/* TDM_E_USAGE lists the names. */
tdm_status tdmi_schedule_find(const char *name, const struct tdmi_schedule **schedule,
                              tdm_error *err) TDM_MUST_USE;
double tdmi_schedule_factor(const struct tdmi_schedule *schedule, struct tdmi_schedule_at at);

#endif
