/* Optimiser, learning rate and schedule. */
#include "train/config/rates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------------------
 */

static const char *with_momentum(char text[200])
{
    size_t used = 0;
    const struct tdmi_optimizer *it;
    text[0] = '\0';
    for (int i = 0; (it = tdmi_optimizer_at(i)) != NULL && used < 200; i++)
        if (!(it->momentum < 0.0))
            used += (size_t)snprintf(text + used, 200 - used, "%s%s", used ? ", " : "", it->name);
    return text;
}

static tdm_status check_scaling(const struct tdm_train_options *options, struct tdmi_rates *rates,
                                tdm_error *err)
{
    const bool is_given = options->lr_scaling && *options->lr_scaling;
    const struct tdm_train_options usual = tdm_train_options_default();
    rates->scaling =
        options->learning_rate > 0.0 ? TDMI_SCALING_NONE : rates->optimizer.optimizer->scaling;
    if (is_given)
        TDM_TRY(tdmi_scaling_find(options->lr_scaling, &rates->scaling, err), err,
                "training: option --lr-scaling");
    if (rates->scaling == TDMI_SCALING_NONE && options->reference_batch != usual.reference_batch)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: option --reference-batch is %d, but nothing is scaled from it: "
                        "it requires --lr-scaling linear or sqrt",
                        options->reference_batch);
    return TDM_OK;
}

tdm_status tdmi_rates_read(const struct tdm_train_options *options, struct tdmi_rates *rates,
                           tdm_error *err)
{
    char known[200];
    *rates = (struct tdmi_rates){0};
    TDM_TRY(tdmi_optimizer_read(options->optimizer, &rates->optimizer, err), err,
            "training: option --optimizer");
    TDM_TRY(tdmi_schedule_read(options->schedule, &rates->schedule, err), err,
            "training: option --schedule");
    const struct tdmi_optimizer *optimizer = rates->optimizer.optimizer;
    const struct tdmi_schedule *schedule = rates->schedule.schedule;
    if (optimizer->momentum < 0.0 && !(options->momentum < 0.0))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: option --momentum is %g, but --optimizer %s has none; it is of "
                        "%s",
                        options->momentum, optimizer->name, with_momentum(known));
    rates->momentum = fmax(options->momentum < 0.0 ? optimizer->momentum : options->momentum, 0.0);
    rates->weight_decay =
        options->weight_decay < 0.0 ? optimizer->weight_decay : options->weight_decay;
    rates->warmup_epochs =
        options->warmup_epochs < 0.0 ? schedule->warmup_epochs : options->warmup_epochs;
    if (options->epochs > 0 && options->warmup_epochs > options->epochs)
        return TDM_FAIL(
            err, TDM_E_USAGE,
            "training: option --warmup is %g, but training ends after %d epoch%s, "
            "before the learning rate is reached; 0 to %d is accepted, or more --epochs",
            options->warmup_epochs, options->epochs, options->epochs == 1 ? "" : "s",
            options->epochs);
    return check_scaling(options, rates, err);
}

/* ---- the rate ---------------------------------------------------------------------------------
 */

/* Without batch statistics nothing corrects the scale of a layer after a step. */
double tdmi_rates_part(const struct tdm_train_options *options)
{
    return strcmp(options->bn, "frozen") == 0 ? 0.01 : 0.1;
}

bool tdmi_rates_are_the_networks(const struct tdmi_rates *rates,
                                 const struct tdm_train_options *options)
{
    return !(options->learning_rate > 0.0) && !(rates->optimizer.optimizer->learning_rate > 0.0);
}

/* An epoch of few images has few steps, which must get as far as those of 2,000 images at the usual
 * rate; so the rate grows as images get fewer. Above the highest rate, single images undo each
 * other's progress; below the usual one nothing is gained. */
double tdmi_rates_of_head(int64_t n_pictures)
{
    static const double usual = 0.001, highest = 0.01, enough_pictures = 2000.0;
    const double wanted = usual * enough_pictures / fmax((double)n_pictures, 1.0);
    return fmin(fmax(wanted, usual), highest);
}

void tdmi_rates_settle(struct tdmi_rates *rates, const struct tdm_train_options *options,
                       int64_t n_pictures, double network, double part)
{
    const bool is_network = tdmi_rates_are_the_networks(rates, options);
    rates->batch = is_network && options->batch > n_pictures ? (int)n_pictures : options->batch;
    const double usual = is_network ? network : rates->optimizer.optimizer->learning_rate;
    rates->base_rate = options->learning_rate > 0.0 ? options->learning_rate : part * usual;
    if (rates->scaling ==
        TDMI_SCALING_LINEAR) /* this order of operations keeps the bits of older runs */
        rates->learning_rate = rates->base_rate * rates->batch / options->reference_batch;
    else
        rates->learning_rate = rates->base_rate * tdmi_scaling_factor(rates->scaling, rates->batch,
                                                                      options->reference_batch);
}

void tdmi_rates_describe(const struct tdmi_rates *rates, const struct tdm_train_options *options,
                         char *text, size_t text_bytes)
{
    const int used = snprintf(text, text_bytes, "%s, learning rate %g",
                              rates->optimizer.optimizer->name, rates->learning_rate);
    if (!(rates->base_rate > 0.0)) /* from a record, which has no more */
        return;
    const double factor =
        tdmi_scaling_factor(rates->scaling, rates->batch, options->reference_batch);
    if (used > 0 && (size_t)used < text_bytes && rates->scaling != TDMI_SCALING_NONE &&
        fabs(factor - 1.0) > 0.0)
        snprintf(text + used, text_bytes - (size_t)used, " (%g at batch %d, times %g by rule %s)",
                 rates->base_rate, options->reference_batch, factor,
                 tdmi_scaling_word((int)rates->scaling));
}

static void write_values(const struct tdmi_parameter *parameters, const double *values,
                         tdm_json_writer *writer)
{
    for (int i = 0; parameters[i].name; i++)
        tdm_json_number(writer, parameters[i].name, values[i]);
}

void tdmi_rates_to_json(const struct tdmi_rates *rates, tdm_json_writer *writer, const char *key)
{
    const struct tdmi_optimizer *optimizer = rates->optimizer.optimizer;
    const struct tdmi_schedule *schedule = rates->schedule.schedule;
    tdm_json_object_begin(writer, key);
    tdm_json_number(writer, "learning_rate", rates->learning_rate);
    tdm_json_string(writer, "scaling", tdmi_scaling_word((int)rates->scaling));
    tdm_json_number(writer, "momentum", rates->momentum);
    tdm_json_number(writer, "weight_decay", rates->weight_decay);
    tdm_json_number(writer, "warmup", rates->warmup_epochs);
    tdm_json_object_begin(writer, optimizer->name);
    write_values(optimizer->parameters, rates->optimizer.values, writer);
    tdm_json_object_end(writer);
    tdm_json_object_begin(writer, schedule->name);
    write_values(schedule->parameters, rates->schedule.values, writer);
    tdm_json_object_end(writer);
    tdm_json_object_end(writer);
}

/* ---- of a step --------------------------------------------------------------------------------
 */

double tdmi_rates_total_epochs(const struct tdm_train_options *options, int64_t steps_per_epoch)
{
    const double per_epoch = (double)steps_per_epoch;
    double total = options->epochs;
    if (options->steps > 0 && (total == 0.0 || (double)options->steps / per_epoch < total))
        total = (double)options->steps / per_epoch;
    return total;
}

double tdmi_rates_at(const struct tdmi_rates *rates, const struct tdm_train_options *options,
                     int64_t step, int64_t steps_per_epoch, const struct tdmi_plateau *plateau)
{
    const double per_epoch = (double)steps_per_epoch;
    const struct tdmi_schedule_at at = {
        .epochs_done = ((double)step + 0.5) / per_epoch,
        .epochs_total = tdmi_rates_total_epochs(options, steps_per_epoch),
        .warmup_epochs = rates->warmup_epochs,
        .n_reductions = plateau->n_reductions,
    };
    return rates->learning_rate * tdmi_schedule_factor(&rates->schedule, at);
}

bool tdmi_rates_rest(const struct tdmi_rates *rates, const struct tdm_train_options *options,
                     int64_t steps_per_epoch)
{
    const double total = tdmi_rates_total_epochs(options, steps_per_epoch);
    const double warmup = rates->warmup_epochs;
    struct tdmi_schedule_at at = {
        .epochs_done = warmup, .epochs_total = total, .warmup_epochs = warmup};
    if (strcmp(rates->schedule.schedule->name, "constant") == 0 ||
        tdmi_schedule_follows_loss(&rates->schedule) || !(total > warmup))
        return false;
    const double first = tdmi_schedule_factor(&rates->schedule, at);
    for (int i = 1; i <= 16; i++) {
        at.epochs_done = warmup + (total - warmup) * (i - 0.01) / 16.0;
        if (fabs(tdmi_schedule_factor(&rates->schedule, at) - first) > 0.0)
            return false;
    }
    return true;
}

double tdmi_rates_average(double ema, int64_t step)
{
    return fmin(ema, ((double)step + 1.0) / ((double)step + 10.0));
}
