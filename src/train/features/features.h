/*
 * Cached features: the output of the frozen layers for an image never changes, so it is computed
 * once, stored on disk for later runs (features/store.h), and the head is trained on it.
 * features.c decides whether and opens the stores, key.c names what a feature row depends on,
 * missing.c lists the rows to compute, compute.c computes and repairs them, parcel.c moves them
 * from rank to rank, on_device.c keeps them in GPU memory.
 */
#pragma once

#include "features/store.h"
#include "graph/feature_table.h"
#include "train/session/network.h"

struct tdmi_session;

struct tdmi_feature_cache {
    bool is_used;
    bool is_unavailable;     /* it would be used, but the disk failed */
    tdmi_graph *base;        /* the frozen layers as a network of their own */
    tdmi_store *train, *val; /* may be the same */
    bool *is_broken;         /* by item of the source: the image cannot be read */
    int width;               /* floats of a row */
    struct tdm_features count;
    float *test_row; /* of the self-test's image */
    /* A row that was found damaged: its place in one of the stores. */
    const tdmi_store *damaged;
    int64_t damaged_at;
    int n_repaired;          /* times that the stores were opened again */
    int64_t extractor_bytes; /* of the device, while rows are computed */
    /* Rows that stay in GPU memory; NULL: they are copied there in each step and validation. */
    tdmi_feature_table *train_there, *val_there;
};

/* Images whose rows are computed at once. */
enum { TDMI_FEATURES_BATCH = 64 };

/* Images that go through the frozen layers together. */
int tdmi_features_images(int shard);
/* How the frozen layers are planned; device NULL: as in plan.h. */
struct tdmi_plan_options tdmi_features_plan(const struct tdmi_session *session, int shard,
                                            tdmi_device *device, size_t most_workspace);

/* ---- stages of opening ----------------------------------------------------------------------- */

/* Decides whether cached features are used. */
tdm_status tdmi_features_find(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Once the group size is known: opens the stores; if the disk fails, no features are cached. */
tdm_status tdmi_features_open(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Computes the rows of validation and test and of the epoch at hand where they are missing, and
 * checks some of those that were found by computing them again. */
tdm_status tdmi_features_compute(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Once all else is reserved on a GPU: keeps the rows there, where they fit. */
tdm_status tdmi_features_move_to_device(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_features_leave_device(struct tdmi_feature_cache *features);
void tdmi_features_close(struct tdmi_feature_cache *features);

/* A follower computes rows when rank 0 asks for it, until rank 0 is done with that: then progress
 * and weights are rank 0's, where they are still needed. */
tdm_status tdmi_features_follow(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Rank 0 tells its followers so. has_trained: the head, and is_over: nothing else will be. */
tdm_status tdmi_features_dismiss(struct tdmi_session *session, bool has_trained, bool is_over,
                                 tdm_error *err) TDM_MUST_USE;

/* ---- while training -------------------------------------------------------------------------- */

/* Computes the views of an epoch that are missing; nothing where no cached features are used. */
tdm_status tdmi_features_compute_views(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* For a feed: removes a row that cannot be read and computes all that is missing then. */
tdm_status tdmi_features_repair_row(void *session, const tdmi_store *store, int64_t place,
                                    const tdm_error *why, tdm_error *err) TDM_MUST_USE;

/* ---- stores ---------------------------------------------------------------------------------- */

/* precision: "f32" or "f16". is_changed: of views, as --augment and the seed change them; else of
 * images as they are. */
tdm_status tdmi_features_open_store(const struct tdmi_session *session, const char *precision,
                                    bool is_changed, tdmi_store **store,
                                    tdm_error *err) TDM_MUST_USE;
/* Closes the stores and opens them again, with room for the rows that are missing then: removed
 * because they were damaged, or with the whole folder. */
tdm_status tdmi_features_reopen(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* The store of validation and test rows, or of training rows. */
tdmi_store *tdmi_features_store(const struct tdmi_feature_cache *cache, bool is_val);
/* The row of an item of the source, by content: copies of an image share it. */
struct tdmi_store_row tdmi_features_row(const struct tdmi_train_data *data, int64_t item,
                                        uint32_t view);
/* Views of a training image that may be needed; 1: images are not changed. */
uint32_t tdmi_features_views(const struct tdmi_train_config *config);

/* ---- rows to compute ------------------------------------------------------------------------- */

struct tdmi_missing_row {
    int64_t item;
    uint32_t view;
    bool is_val;
    bool is_found; /* in the store already: it is computed again and compared */
};

struct tdmi_missing_rows { /* set the session; zero the rest */
    struct tdmi_session *session;
    struct tdmi_missing_row *entries;
    int64_t n, capacity;
};

/* Adds missing rows of validation and test; and of the epoch at hand. */
tdm_status tdmi_missing_rows_add_val(struct tdmi_missing_rows *missing,
                                     tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_missing_rows_add_epoch(struct tdmi_missing_rows *missing,
                                       tdm_error *err) TDM_MUST_USE;
/* Adds some rows that are found, to check them, and counts them in the cache. */
tdm_status tdmi_missing_rows_add_checks(struct tdmi_missing_rows *missing,
                                        tdm_error *err) TDM_MUST_USE;
/* Sorts them in reading order, unchanged images first, and drops repeated ones. */
void tdmi_missing_rows_arrange(struct tdmi_missing_rows *missing);
void tdmi_missing_rows_release(struct tdmi_missing_rows *missing);
