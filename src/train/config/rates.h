/*
 * What the options on optimiser, learning rate and schedule mean together: checked, resolved to
 * what a training runs with, and asked for a step.
 */
#ifndef TANDEM_TRAIN_RATES_H
#define TANDEM_TRAIN_RATES_H

#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tandem/train.h"

struct tdmi_rates {
    struct tdmi_optimizer_choice optimizer;
    struct tdmi_schedule_choice schedule;
    double momentum, weight_decay, warmup_epochs; /* the usual ones where nothing else was asked */
    enum tdmi_scaling scaling;                    /* of the rate below, from the reference batch */
    int batch;                                    /* to this one */
    double base_rate;                             /* before that; 0: settle was not called yet */
    double learning_rate;                         /* before the schedule */
};

/* All but the rate itself. TDM_E_USAGE: a name or value is not known, or two options contradict
 * each other. */
tdm_status tdmi_rates_read(const struct tdm_train_options *options, struct tdmi_rates *rates,
                           tdm_error *err) TDM_MUST_USE;
/* Of the rate that a network is trained with from scratch, where weights are begun with and more
 * than the head is trained: what it knows already is to be moved gently. */
double tdmi_rates_part(const struct tdm_train_options *options);
/* Did neither the options nor the optimiser say one? */
bool tdmi_rates_are_the_networks(const struct tdmi_rates *rates,
                                 const struct tdm_train_options *options);
/* In place of the network's own rate, where a head alone is trained, on so many pictures. */
double tdmi_rates_of_head(int64_t n_pictures);
/* n_pictures: that train: no step is over more, so the network's rate is not scaled for more, while
 * one that was said, or an optimizer's, follows the batch that was; network: its own rate; part: of
 * a usual rate, for weights that know something already. */
void tdmi_rates_settle(struct tdmi_rates *rates, const struct tdm_train_options *options,
                       int64_t n_pictures, double network, double part);
/* "adam, learning rate 0.002 (0.001 at batch 32, times 2 by rule sqrt)" */
void tdmi_rates_describe(const struct tdmi_rates *rates, const struct tdm_train_options *options,
                         char *text, size_t text_bytes);
void tdmi_rates_to_json(const struct tdmi_rates *rates, tdm_json_writer *writer, const char *key);

/* Where training ends by its options, in epochs; 0: they do not say. */
double tdmi_rates_total_epochs(const struct tdm_train_options *options, int64_t steps_per_epoch);
/* Of step number `step`, from 0. */
double tdmi_rates_at(const struct tdmi_rates *rates, const struct tdm_train_options *options,
                     int64_t step, int64_t steps_per_epoch, const struct tdmi_plateau *plateau);
/* What is kept of averages of weights in that step: little at first, or the weights that training
 * began with would be part of them for long. */
/* Does a schedule that is to move the rate leave it as it is to the end, but for a warm-up? */
bool tdmi_rates_rest(const struct tdmi_rates *rates, const struct tdm_train_options *options,
                     int64_t steps_per_epoch);
double tdmi_rates_average(double ema, int64_t step);

#endif
