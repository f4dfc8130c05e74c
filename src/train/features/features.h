/*
 * What the files about rows of a frozen base share: which store they are in, and where there.
 * features/features.c decides, features/key.c says what a row depends on, features/needed.c which
 * are to be made, features/rows.c makes them.
 */
#ifndef TANDEM_TRAIN_SESSION_FEATURES_H
#define TANDEM_TRAIN_SESSION_FEATURES_H

#include "train/session/session.h"

/* Pictures that rows are made of at once. */
enum { TDMI_FEATURES_BATCH = 64 };

/* Of those, as many as a shard's go through the frozen part together. */
int tdmi_features_images(int shard);

/* precision: "f32" or "f16". is_changed: of views, as the session's augment draws them with its
 * seed; else of plain pictures. */
tdm_status tdmi_features_open_store(const struct tdmi_session *session, const char *precision,
                                    bool is_changed, tdmi_store **store,
                                    tdm_error *err) TDM_MUST_USE;

/* Of an item of the source; the same bytes have the same rows, whatever they are called. */
struct tdmi_store_row tdmi_features_row(const struct tdmi_session *session, int64_t item,
                                        uint32_t view);

/* How many of its views a picture that trains may come to need; 1: it is not changed. */
uint32_t tdmi_features_views(const struct tdmi_session *session);

/* ---- what is to be made ---------------------------------------------------------------------- */

/* A row that is to be made, or made again. */
struct tdmi_needed_row {
    int64_t item;
    uint32_t view;
    bool is_val, is_found;
};

struct tdmi_needed { /* start with the session alone */
    struct tdmi_session *session;
    struct tdmi_needed_row *entries;
    int64_t n, capacity;
};

/* Adds what is missing of the rows that judge; and of those that the epoch that is begun wants. */
tdm_status tdmi_needed_val(struct tdmi_needed *it, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_needed_epoch(struct tdmi_needed *it, tdm_error *err) TDM_MUST_USE;
/* Adds a few of those that are there, which are made again, and counts them in the session. */
tdm_status tdmi_needed_checks(struct tdmi_needed *it, tdm_error *err) TDM_MUST_USE;
/* As they are best read, each once: pictures as they are, then those that are changed. */
void tdmi_needed_arrange(struct tdmi_needed *it);
void tdmi_needed_release(struct tdmi_needed *it);

/* Closes the stores and opens them again, with room for what is missing then: what was damaged and
 * removed, or all of it where somebody removed the folder. Counts what has to be made once more. */
tdm_status tdmi_features_reopen(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* The store that rows of pictures that judge are in, or of those that train. */
tdmi_store *tdmi_features_store(const struct tdmi_session *session, bool is_val);

#endif
