/* The schedules, each a line or two of mathematics, and the warm-up before any of them. */
#include "optim/schedule.h"
#include "base/scope.h"
#include "base/text/choice.h"

#include <math.h>
#include <stdio.h>

static double constant(const double *values, struct tdmi_schedule_place place)
{
    (void)values;
    (void)place;
    return 1.0;
}

static double step(const double *values, struct tdmi_schedule_place place)
{
    enum { EVERY, FACTOR };
    return pow(values[FACTOR], floor(place.epochs / values[EVERY]));
}

static double exponential(const double *values, struct tdmi_schedule_place place)
{
    enum { DECAY, STAIRS };
    return pow(values[DECAY], values[STAIRS] > 0.0 ? floor(place.epochs) : place.epochs);
}

/* From `from` at 0 to `to` at 1, flat at both ends. */
static double half_cosine(double from, double to, double progress)
{
    return to + (from - to) * 0.5 * (1.0 + cos(3.14159265358979323846 * progress));
}

static double cosine(const double *values, struct tdmi_schedule_place place)
{
    enum { FLOOR };
    return half_cosine(1.0, values[FLOOR], place.progress);
}

static double one_cycle(const double *values, struct tdmi_schedule_place place)
{
    enum { RISE, START, FLOOR };
    if (place.progress < values[RISE])
        return half_cosine(values[START], 1.0, place.progress / values[RISE]);
    return half_cosine(1.0, values[FLOOR], (place.progress - values[RISE]) / (1.0 - values[RISE]));
}

static double ramp(const double *values, struct tdmi_schedule_place place)
{
    enum { START, FLOOR, RAMP, HOLD, DECAY, STAIRS };
    const double epochs = values[STAIRS] > 0.0 ? floor(place.epochs) : place.epochs;
    const double past = epochs - values[RAMP] - values[HOLD];
    if (epochs < values[RAMP])
        return values[START] + (1.0 - values[START]) * epochs / values[RAMP];
    if (past < 0.0)
        return 1.0;
    return values[FLOOR] + (1.0 - values[FLOOR]) * pow(values[DECAY], past);
}

enum { PLATEAU_FACTOR, PLATEAU_PATIENCE, PLATEAU_THRESHOLD, PLATEAU_COOLDOWN, PLATEAU_FLOOR };

static double plateau(const double *values, struct tdmi_schedule_place place)
{
    return fmax(pow(values[PLATEAU_FACTOR], place.n_reductions), values[PLATEAU_FLOOR]);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct tdmi_schedule schedules[] = {
#define X(name, text, needs_total, warmup, summary, ...) \
    {text, summary, needs_total, warmup, {__VA_ARGS__}, name},
#include "optim/schedules.def"
#undef X
};

enum { n_schedules = sizeof schedules / sizeof schedules[0] };

const struct tdmi_schedule *tdmi_schedule_at(int index)
{
    return index >= 0 && index < n_schedules ? &schedules[index] : NULL;
}

tdm_status tdmi_schedule_read(const char *text, struct tdmi_schedule_choice *choice, tdm_error *err)
{
    const char *names[n_schedules];
    char name[64];
    int index = 0;
    for (int i = 0; i < n_schedules; i++)
        names[i] = schedules[i].name;
    snprintf(name, sizeof name, "%.*s", (int)tdmi_parameters_name_length(text), text);
    TDMI_TRY(tdmi_choice_find("schedule", name, names, n_schedules, &index, err));
    TDMI_TRY(
        tdmi_parameters_read("schedule", text, schedules[index].parameters, choice->values, err));
    choice->schedule = &schedules[index];
    return TDM_OK;
}

double tdmi_schedule_factor(const struct tdmi_schedule_choice *choice, struct tdmi_schedule_at at)
{
    if (at.epochs_done < at.warmup_epochs)
        return at.epochs_done / at.warmup_epochs;
    const double rest = at.epochs_total - at.warmup_epochs;
    const double epochs = at.epochs_done - at.warmup_epochs;
    const double progress = rest > 0.0 ? epochs / rest : 0.0;
    return choice->schedule->factor(choice->values, (struct tdmi_schedule_place){
                                                        .epochs = epochs,
                                                        .progress = progress < 1.0 ? progress : 1.0,
                                                        .n_reductions = at.n_reductions,
                                                    });
}

/* ---- plateau --------------------------------------------------------------------------------- */

bool tdmi_schedule_follows_loss(const struct tdmi_schedule_choice *choice)
{
    return choice->schedule->factor == plateau;
}

void tdmi_plateau_take(const struct tdmi_schedule_choice *choice, double loss,
                       struct tdmi_plateau *counted)
{
    const double *values = choice->values;
    const double best = counted->best_loss * (1.0 - values[PLATEAU_THRESHOLD]);
    if (counted->n_evaluated++ == 0 || loss < best) {
        counted->best_loss = loss;
        counted->n_waited = 0;
    } else {
        counted->n_waited++;
    }
    if (counted->n_resting > 0) {
        counted->n_resting--;
        counted->n_waited = 0;
    }
    if (counted->n_waited > values[PLATEAU_PATIENCE]) {
        counted->n_reductions++;
        counted->n_waited = 0;
        counted->n_resting = (int)values[PLATEAU_COOLDOWN];
    }
}
