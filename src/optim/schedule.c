/* The schedules, each one line of mathematics, and the warm-up before any of them. */
#include "optim/schedule.h"
#include "base/choice.h"

#include <math.h>

static double constant(double progress)
{
    (void)progress;
    return 1.0;
}

static double cosine(double progress)
{
    return 0.5 * (1.0 + cos(3.14159265358979323846 * progress));
}

static const struct tdmi_schedule schedules[] = {
#define X(name, needs_total, summary) {#name, summary, needs_total, name},
#include "optim/schedules.def"
#undef X
};

static const char *const names[] = {
#define X(name, needs_total, summary) #name,
#include "optim/schedules.def"
#undef X
};

enum { n_schedules = sizeof schedules / sizeof schedules[0] };

const struct tdmi_schedule *tdmi_schedule_at(int index)
{
    return index >= 0 && index < n_schedules ? &schedules[index] : NULL;
}

tdm_status tdmi_schedule_find(const char *name, const struct tdmi_schedule **schedule,
                              tdm_error *err)
{
    int index;
    tdm_status status = tdmi_choice_find("schedule", name, names, n_schedules, &index, err);
    if (status == TDM_OK)
        *schedule = &schedules[index];
    return status;
}

double tdmi_schedule_factor(const struct tdmi_schedule *schedule, struct tdmi_schedule_at at)
{
    if (at.epochs_done < at.warmup_epochs)
        return at.epochs_done / at.warmup_epochs;
    double rest = at.epochs_total - at.warmup_epochs;
    double progress = rest > 0.0 ? (at.epochs_done - at.warmup_epochs) / rest : 0.0;
    return schedule->factor(progress < 1.0 ? progress : 1.0);
}
