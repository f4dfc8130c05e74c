/*
 * Optimizer, learning rate and schedule: checked against each other, resolved to the values that a
 * training uses, and evaluated for a step.
 */
#pragma once

#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tandem/train.h"

struct tdmi_rates {
    struct tdmi_optimizer_choice optimizer;
    struct tdmi_schedule_choice schedule;
    double momentum, weight_decay, warmup_epochs; /* the defaults where unset */
    enum tdmi_scaling scaling;                    /* of the rate, from the reference batch … */
    int batch;                                    /* … to this one */
    double base_rate;                             /* before scaling; 0: before tdmi_rates_settle */
    double learning_rate;                         /* before the schedule */
};

/* All but the rate itself. TDM_E_USAGE: a name or value is not known, or two options contradict
 * each other. */
tdm_status tdmi_rates_read(const struct tdm_train_options *options, struct tdmi_rates *rates,
                           tdm_error *err) TDM_MUST_USE;
/* Fraction of the from-scratch learning rate for fine-tuning more than the head. */
double tdmi_rates_part(const struct tdm_train_options *options);
/* Is the rate the network's own: given neither by the options nor by the optimizer? */
bool tdmi_rates_are_the_networks(const struct tdmi_rates *rates,
                                 const struct tdm_train_options *options);
/* Learning rate that replaces the network's own when only a head is trained, on so many images. */
double tdmi_rates_of_head(int64_t n_pictures);
/* Resolve the rate. n_pictures: training images; a batch has no more, so the network's own rate is
 * not scaled beyond them (a given rate, or the optimizer's, follows the batch option). network: the
 * network's own rate; part: the fraction of it for weights that are trained already. */
void tdmi_rates_settle(struct tdmi_rates *rates, const struct tdm_train_options *options,
                       int64_t n_pictures, double network, double part);
/* "adam, learning rate 0.002 (0.001 at batch 32, times 2 by rule sqrt)" */
void tdmi_rates_describe(const struct tdmi_rates *rates, const struct tdm_train_options *options,
                         char *text, size_t text_bytes);
void tdmi_rates_to_json(const struct tdmi_rates *rates, tdm_json_writer *writer, const char *key);

/* End of training in epochs, by the options; 0: unknown. */
double tdmi_rates_total_epochs(const struct tdm_train_options *options, int64_t steps_per_epoch);
/* Learning rate of step `step`, from 0. */
double tdmi_rates_at(const struct tdmi_rates *rates, const struct tdm_train_options *options,
                     int64_t step, int64_t steps_per_epoch, const struct tdmi_plateau *plateau);
/* Does the schedule leave the rate unchanged to the end, apart from warm-up? */
bool tdmi_rates_rest(const struct tdmi_rates *rates, const struct tdm_train_options *options,
                     int64_t steps_per_epoch);
/* Decay of the running average of weights in that step: small at first, so that initial weights
 * vanish soon. */
double tdmi_rates_average(double ema, int64_t step);
