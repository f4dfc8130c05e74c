/*
 * Any text as an optimiser and as a schedule: it is refused with one sentence, or its values are
 * inside of what is accepted, and factors and coefficients are numbers.
 */
#include "fuzz.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

#include <math.h>

static void check(const struct tdmi_parameter *parameters, const double *values)
{
    for (int i = 0; parameters[i].name; i++)
        if (!(values[i] >= parameters[i].low && values[i] <= parameters[i].high))
            abort();
}

static void use_optimizer(const struct tdmi_optimizer_choice *choice)
{
    struct tdmi_momenta momenta = {0, 0.0};
    struct tdmi_update_call call = {.learning_rate = 0.1f, .momentum = 0.9f};
    check(choice->optimizer->parameters, choice->values);
    choice->optimizer->prepare(choice->values, 3, &momenta, &call);
    const float numbers[] = {call.moments.first, call.moments.second, call.moments.of_first,
                             call.moments.of_gradient, call.moments.of_root};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!isfinite(numbers[i]))
            abort();
}

static void use_schedule(const struct tdmi_schedule_choice *choice)
{
    struct tdmi_plateau plateau = {0};
    check(choice->schedule->parameters, choice->values);
    for (int i = 0; i < 12; i++) {
        const double factor = tdmi_schedule_factor(
            choice, (struct tdmi_schedule_at){i, 10.0, 1.0, plateau.n_reductions});
        if (!(factor >= 0.0 && factor <= 1.0 + 1e-9))
            abort();
        tdmi_plateau_take(choice, 1.0, &plateau);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = malloc(length + 1);
    struct tdmi_optimizer_choice optimizer;
    struct tdmi_schedule_choice schedule;
    tdm_error err = {0};
    if (!text)
        return 0;
    if (length > 0)
        memcpy(text, bytes, length);
    text[length] = '\0';
    if (tdmi_optimizer_read(text, &optimizer, &err) == TDM_OK)
        use_optimizer(&optimizer);
    else if (err.n_frames != 1)
        abort(); /* a refusal without its sentence */
    tdm_error_clear(&err);
    if (tdmi_schedule_read(text, &schedule, &err) == TDM_OK)
        use_schedule(&schedule);
    else if (err.n_frames != 1)
        abort();
    free(text);
    return 0;
}
