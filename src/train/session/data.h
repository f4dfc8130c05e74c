/*
 * The data of a training: its source, the split, the order of training images, and the feeds that
 * hand out batches.
 */
#pragma once

#include "data/audit/split.h"
#include "data/order/order.h"
#include "train/choice/look.h"
#include "train/session/compute.h"
#include "train/step/feed.h"

struct tdmi_session;

struct tdmi_train_data {
    tdmi_source *source;
    struct tdmi_look look;  /* at some of its images, on rank 0; n_seen 0: none was needed yet */
    tdmi_contents contents; /* of the source */
    tdmi_split split;
    bool has_test;      /* --split or the source has a test part, which is evaluated at the end */
    int64_t *evaluated; /* items of validation and test, ascending */
    int64_t n_evaluated;
    /* Content hashes of the parts of the split, ascending. */
    uint64_t *train_hashes, *val_hashes, *test_hashes;
    int64_t n_train_distinct; /* contents among the training images */
    tdmi_order order;         /* of training images */
    int64_t steps_per_epoch;
    int max_batch; /* images that buffers hold: at most the largest part of the split */
    /* The places that this rank computes of whole batches, and of the last one of an epoch. */
    struct tdmi_batch_part {
        int n, first, end;
    } parts[2];
    tdmi_feed *train_feed, *val_feed;
};

/* The source, refused where nothing can be trained on it: fewer than two classes, one without
 * images, or a name of one that no model file could hold. */
tdm_status tdmi_data_open_source(const struct tdm_train_options *options, tdmi_source **source,
                                 tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_data_open(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_data_close(struct tdmi_train_data *data);
void tdmi_data_close_feeds(struct tdmi_train_data *data);
/* Adds the time that the training feed was waited for to the record, before it is closed. */
void tdmi_data_clock_feed(struct tdmi_session *session);
/* A hash of which image has which class, as text; the order of images does not matter. */
const char *tdmi_data_labels(const struct tdmi_train_data *data, char text[17]);
/* The cache of images, for loaders: --cache, --cache-dir. */
struct tdmi_loader_cache tdmi_data_cache(const struct tdmi_session *session);
/* Names the images that a feed skipped; NULL: none. Shared: all ranks call this, and rank 0 names
 * those of all, each once and in the order of one process. first: place of this rank's first image
 * where its feed has only its own. */
tdm_status tdmi_data_report_skipped(struct tdmi_session *session, const tdmi_feed *feed,
                                    int64_t first, bool is_shared, tdm_error *err) TDM_MUST_USE;
/* Names those of training and validation, since this session began. */
tdm_status tdmi_data_report_all_skipped(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* TDM_E_INPUT: with --strict, the batch has an image that cannot be read. */
tdm_status tdmi_data_check_batch(const struct tdmi_train_config *config,
                                 const struct tdmi_batch *batch, tdm_error *err) TDM_MUST_USE;
