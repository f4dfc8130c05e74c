/*
 * The resolved configuration of a training: the options as given, their words as enumerators and
 * flags, and what follows from them once the network and the number of training images are known.
 * Opening fills it; afterwards it does not change.
 */
#pragma once

#include "data/loader/loader.h"
#include "image/augment/augment.h"
#include "tandem/train.h"
#include "tensor/dtype.h"
#include "train/config/rates.h"

/* --features: whether the output of frozen layers is cached, and in which precision. */
enum tdmi_feature_precision { TDMI_FEATURES_NONE, TDMI_FEATURES_F32, TDMI_FEATURES_F16 };

struct tdmi_train_config {
    /* As given, and as recorded; --model and --weights with the default that was chosen. */
    struct tdm_train_options options;

    enum tdmi_feature_precision features;
    enum tdmi_cache_kind cache;
    enum tdmi_dtype storage;     /* type of activations: --precision */
    bool allows_tf32;            /* in products of activations that are stored as f32 */
    bool splits_products;        /* new runs: large products by Strassen's way */
    bool shares_statistics;      /* --bn batch: batch norms use the statistics of the whole batch */
    bool keeps_statistics;       /* --bn frozen: batch norms use running statistics, which stay */
    bool is_logistic;            /* --loss binary */
    bool balances_loss;          /* --class-weights balanced */
    bool is_freeze_auto;         /* --freeze auto */
    bool decodes_on_gpu;         /* --decode card */
    bool is_augment_auto;        /* --augment auto */
    struct tdmi_augment augment; /* … with what auto means in this run */

    int batch;              /* --batch, or the batch size that was chosen */
    char batch_reason[320]; /* why it was chosen; "": --batch gave it */
    int shard;              /* images per batch-norm group */
    int patience_from;      /* epoch after which patience counts: 0, or where --epochs was raised */
    int views;              /* changed views of each training image; 0: changed anew each epoch */

    struct tdmi_rates rates; /* optimizer, schedule and learning rate */
    double rate_fraction;    /* of the usual rate, for known weights; 0: all of it */
    double network_rate;     /* the network's own rate while only the head is trained; else 0 */
    double unfrozen_rate;    /* rate once more than the head is trained; 0: the same rate */
};

/* Checks the options and resolves their words; batch, group, views and rates follow later. */
tdm_status tdmi_train_config_read(const struct tdm_train_options *options,
                                  struct tdmi_train_config *config, tdm_error *err) TDM_MUST_USE;
