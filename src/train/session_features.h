/*
 * What the files about rows of a frozen base share: which store they are in, and where there.
 * session_features.c decides, features_key.c says what a row depends on, session_rows.c makes them.
 */
#ifndef TANDEM_TRAIN_SESSION_FEATURES_H
#define TANDEM_TRAIN_SESSION_FEATURES_H

#include "train/session.h"

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

#endif
