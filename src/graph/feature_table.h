/*
 * Cached features on a device with memory of its own: a table of rows, stored as a plan stores
 * them, each uploaded once. A group then names its rows by their numbers in the table, and the
 * backend gathers them into their place in the plan (memory.gather).
 *
 *     put, put, … flush      staged in pinned memory, then appended by a copy on a separate stream
 *     await, gather          by an executor (graph/executor.h), whose stream waits for those copies
 *
 * Rows are numbered in the order of put, so rows that are uploaded together are one copy, in
 * whatever order training reads them. A row never changes once it is uploaded.
 */
#pragma once

#include "backend/backend.h"
#include "base/scope.h"

typedef struct tdmi_feature_table tdmi_feature_table;

struct tdmi_feature_table_options {
    const struct tdmi_backend *backend; /* one that gathers */
    tdmi_device *device;
    enum tdmi_dtype storage; /* the plan's */
    int width;               /* values a row */
    int64_t n_rows;          /* capacity, 1 or more */
    int at_once;             /* rows that are usually uploaded together */
};

/* Bytes of device memory. */
int64_t tdmi_feature_table_bytes(const struct tdmi_feature_table_options *options);

/* Reserve the whole table; the message of TDM_E_MEMORY has its size. */
tdm_status tdmi_feature_table_open(const struct tdmi_feature_table_options *options,
                                   tdmi_feature_table **kept, tdm_error *err) TDM_MUST_USE;
/* Close it after the last gather. Accepts NULL. */
void tdmi_feature_table_close(tdmi_feature_table *kept);
TDMI_POINTER_RELEASE(tdmi_feature_table, tdmi_feature_table_close)

/* Add a row of floats and return its number. TDM_E_FAILED: the table is full. */
tdm_status tdmi_feature_table_put(tdmi_feature_table *kept, const float *values, int64_t *number,
                                  tdm_error *err) TDM_MUST_USE;
/* Queue the upload of all rows that were put. Call it before a group that names them starts. */
tdm_status tdmi_feature_table_flush(tdmi_feature_table *kept, tdm_error *err) TDM_MUST_USE;

/* Make the stream wait for all uploads that are queued. */
void tdmi_feature_table_await(const tdmi_feature_table *kept, tdmi_stream *stream);
/* Queue a copy of the n rows with these numbers to `to`, side by side. Both are on the device. */
void tdmi_feature_table_gather(const tdmi_feature_table *kept, tdmi_stream *stream,
                               const int64_t *numbers, int n, void *to);
