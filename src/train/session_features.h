/*
 * What the files about rows of a frozen base share: which store they are in, and where there.
 * session_features.c decides, features_key.c says what a row depends on, session_wanted.c which
 * are to be made, session_rows.c makes them.
 */
#ifndef TANDEM_TRAIN_SESSION_FEATURES_H
#define TANDEM_TRAIN_SESSION_FEATURES_H

#include "train/session.h"

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

/* Of the pictures that train, and of those that judge: rows that can be found. */
int64_t tdmi_features_found_train(const struct tdmi_session *session);
int64_t tdmi_features_found_val(const struct tdmi_session *session);

/* ---- what is to be made ---------------------------------------------------------------------- */

/* A row that is to be made, or made again. */
struct tdmi_wanted_row {
    int64_t item;
    uint32_t view;
    bool is_val, is_found;
};

struct tdmi_wanted { /* start with the session alone */
    struct tdmi_session *session;
    struct tdmi_wanted_row *entries;
    int64_t n, capacity;
};

/* Adds what is missing of the rows that judge; and of those that the epoch that is begun wants. */
tdm_status tdmi_wanted_val(struct tdmi_wanted *it, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_wanted_epoch(struct tdmi_wanted *it, tdm_error *err) TDM_MUST_USE;
/* Adds a few of those that are there, which are made again, and counts them in the session. */
tdm_status tdmi_wanted_checks(struct tdmi_wanted *it, tdm_error *err) TDM_MUST_USE;
/* As they are best read, each once: pictures as they are, then those that are changed. */
void tdmi_wanted_arrange(struct tdmi_wanted *it);
void tdmi_wanted_release(struct tdmi_wanted *it);

/* Closes the stores and opens them again, with room for what is missing then: what was damaged and
 * removed, or all of it where somebody removed the folder. Counts what has to be made once more. */
tdm_status tdmi_features_reopen(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* The store that rows of pictures that judge are in, or of those that train. */
tdmi_store *tdmi_features_store(const struct tdmi_session *session, bool is_val);

#endif
