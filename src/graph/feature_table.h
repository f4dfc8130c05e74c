/*
 * Rows that stand for pixels, kept on a device whose memory is not the host's: a table of them, as
 * a plan stores them, each brought once. From then on a shard names its rows by their numbers in
 * it, and the backend gathers them into their place in the plan (memory.gather).
 *
 *     put, put, … flush      made ready in pinned memory, copied on a stream of its own, behind the
 *                            rows that are there
 *     await, gather          by a lane (graph/executor.h), whose stream waits for those copies
 *
 * Numbers are given out in the order of put, so rows that are brought together are one copy, in
 * whatever order a training comes to them. A row never changes once it is there.
 */
#ifndef TANDEM_NN_KEPT_ROWS_H
#define TANDEM_NN_KEPT_ROWS_H

#include "backend/backend.h"

typedef struct tdmi_feature_table tdmi_feature_table;

struct tdmi_feature_table_options {
    const struct tdmi_backend *backend; /* one that gathers */
    tdmi_device *device;
    enum tdmi_dtype storage; /* the plan's */
    int width;               /* values a row */
    int64_t n_rows;          /* as many as there is room for, 1 or more */
    int at_once;             /* rows that are brought together as a rule */
};

/* Of the device. */
int64_t tdmi_feature_table_bytes(const struct tdmi_feature_table_options *options);

/* All of it is reserved here; TDM_E_MEMORY says how much was wanted. */
tdm_status tdmi_feature_table_open(const struct tdmi_feature_table_options *options, tdmi_feature_table **kept,
                               tdm_error *err) TDM_MUST_USE;
/* Once nobody gathers from it any more. Accepts NULL. */
void tdmi_feature_table_close(tdmi_feature_table *kept);

/* Takes a row of floats and says its number. TDM_E_FAILED: there is no room for it. */
tdm_status tdmi_feature_table_put(tdmi_feature_table *kept, const float *values, int64_t *number,
                              tdm_error *err) TDM_MUST_USE;
/* What was put is on its way: before a shard that names it is begun. */
tdm_status tdmi_feature_table_flush(tdmi_feature_table *kept, tdm_error *err) TDM_MUST_USE;

/* What the stream does from here on finds all rows that are on their way. */
void tdmi_feature_table_await(const tdmi_feature_table *kept, tdmi_stream *stream);
/* Queues it: `to` becomes the n rows of these numbers, side by side. Both lie on the device. */
void tdmi_feature_table_gather(const tdmi_feature_table *kept, tdmi_stream *stream, const int64_t *numbers,
                           int n, void *to);

#endif
