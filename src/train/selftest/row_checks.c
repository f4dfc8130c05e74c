/*
 * Rows that stay on a device (graph/feature_table.h): uploaded by a stream of their own in
 * several parts, each gathered by index as soon as its upload has begun, as in training.
 */
#include "base/scope.h"
#include "graph/feature_table.h"
#include "tensor/floats.h"
#include "train/selftest/checks.h"

#include <stdio.h>
#include <string.h>

enum { n_rows = 40, n_gathered = 33, at_once = 9, widest = 1280 };

/* Rows of whole vectors, of a vector and a part, and of odd numbers of values. */
static const int widths[] = {widest, 84, 17, 1};
enum { n_widths = sizeof widths / sizeof widths[0] };

static const enum tdmi_dtype types[] = {TDMI_DTYPE_F32, TDMI_DTYPE_BF16, TDMI_DTYPE_F16};
enum { n_types = sizeof types / sizeof types[0] };

struct rows {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_stream *work;
    tdmi_feature_table *kept;
    int64_t *numbers; /* on the device */
    void *place;      /* likewise */
    int64_t named[n_gathered];
    float row[widest];
    char expected[widest * sizeof(float)], got[n_gathered * widest * sizeof(float)];
};

static float value_of(int64_t row, int i)
{
    return (float)((row * 37 + i * 5) % 199) / 16.0F - 6.0F;
}

static tdm_status open_rows(struct rows *it, enum tdmi_dtype type, int width, tdm_error *err)
{
    const struct tdmi_feature_table_options options = {.backend = it->backend,
                                                       .device = it->device,
                                                       .storage = type,
                                                       .width = width,
                                                       .n_rows = n_rows,
                                                       .at_once = at_once};
    const struct tdmi_memory_table *memory = &it->backend->memory;
    TDM_TRY(it->backend->stream.open(it->device, &it->work, err), err, "a stream");
    TDM_TRY(tdmi_feature_table_open(&options, &it->kept, err), err, "a table of rows");
    it->numbers = memory->alloc(it->device, sizeof it->named);
    it->place = memory->alloc(it->device, sizeof it->got);
    TDMI_CHECK_MEMORY(it->numbers && it->place, err);
    return TDM_OK;
}

static void close_rows(struct rows **rows)
{
    struct rows *it = *rows;
    it->backend->stream.close(it->work);
    tdmi_feature_table_close(it->kept);
    it->backend->memory.free(it->device, it->numbers);
    it->backend->memory.free(it->device, it->place);
    it->work = NULL;
    it->kept = NULL;
    it->numbers = it->place = NULL;
}

/* Gather any of the rows uploaded so far, and some of them twice. */
static tdm_status gather(struct rows *it, int64_t n_there, size_t row_bytes, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &it->backend->memory;
    for (int i = 0; i < n_gathered; i++)
        it->named[i] = i == 0 ? n_there - 1 : i * 7 % n_there;
    TDM_TRY(memory->upload(it->work, it->numbers, it->named, sizeof it->named, err), err,
            "naming rows");
    tdmi_feature_table_await(it->kept, it->work);
    tdmi_feature_table_gather(it->kept, it->work, it->numbers, n_gathered, it->place);
    TDM_TRY(memory->download(it->work, it->got, it->place, n_gathered * row_bytes, err), err,
            "fetching rows");
    return TDM_WRAP(err, it->backend->stream.wait(it->work, err), "gathering rows");
}

static void compare(struct rows *it, enum tdmi_dtype type, int width, struct tdmi_check *check)
{
    const size_t row_bytes = tdmi_dtype_bytes(type) * (size_t)width;
    for (int i = 0; i < n_gathered && check->has_passed; i++) {
        for (int k = 0; k < width; k++)
            it->row[k] = value_of(it->named[i], k);
        tdmi_floats_store(type, it->expected, it->row, width);
        if (memcmp(it->got + (size_t)i * row_bytes, it->expected, row_bytes) == 0)
            continue;
        check->has_passed = false;
        snprintf(check->detail, sizeof check->detail,
                 "%d values of %s: place %d has not the bits of row %lld", width,
                 tdmi_dtype_name(type), i, (long long)it->named[i]);
    }
}

static tdm_status check_width(struct rows *it, enum tdmi_dtype type, int width,
                              struct tdmi_check *check, tdm_error *err)
{
    TDMI_AT_END(close_rows) struct rows *opened = it;
    int64_t number;
    TDM_TRY(open_rows(it, type, width, err), err, "preparing rows that stay");
    for (int64_t row = 0; row < n_rows && check->has_passed; row++) {
        for (int k = 0; k < width; k++)
            it->row[k] = value_of(row, k);
        TDM_TRY(tdmi_feature_table_put(it->kept, it->row, &number, err), err, "row %lld",
                (long long)row);
        if (row % (at_once + 4) < at_once && row + 1 < n_rows)
            continue;
        TDM_TRY(tdmi_feature_table_flush(it->kept, err), err, "row %lld", (long long)row);
        TDM_TRY(gather(it, row + 1, tdmi_dtype_bytes(type) * (size_t)width, err), err,
                "%lld rows of %d values", (long long)row + 1, width);
        compare(it, type, width, check);
    }
    return TDM_OK;
}

tdm_status tdmi_check_rows(const struct tdmi_backend *backend, tdmi_device *device,
                           struct tdmi_check *check, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct rows *it = NULL;
    *check = (struct tdmi_check){.has_passed = true};
    TDMI_TRY(TDMI_NEW(it, 1, err));
    it->backend = backend;
    it->device = device;
    for (int k = 0; k < n_types * n_widths; k++)
        if (tdmi_backend_stores(backend, types[k / n_widths]))
            TDMI_TRY(check_width(it, types[k / n_widths], widths[k % n_widths], check, err));
    return TDM_OK;
}
