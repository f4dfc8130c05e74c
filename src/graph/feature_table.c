/* The table grows from its beginning; its next rows are staged in host memory. */
#include "graph/feature_table.h"
#include "base/memory.h"
#include "tensor/floats.h"

enum { most_ready_bytes = 4 << 20 }; /* larger copies are no faster */

struct tdmi_feature_table {
    struct tdmi_feature_table_options options;
    size_t row_bytes;
    char *table;          /* of the device */
    char *ready;          /* host memory: the rows to append next */
    tdmi_stream *copies;  /* of its own */
    tdmi_event *is_there; /* NULL where streams run at once */
    int64_t n_there;      /* rows of the table that are copied or being copied */
    int n_ready, most_ready;
    bool is_lent; /* `ready` is being copied */
};

int64_t tdmi_feature_table_bytes(const struct tdmi_feature_table_options *options)
{
    return options->n_rows * options->width * (int64_t)tdmi_dtype_bytes(options->storage);
}

static int rows_at_once(const tdmi_feature_table *kept)
{
    const size_t most = most_ready_bytes / kept->row_bytes;
    const int wanted = kept->options.at_once;
    return most == 0 ? 1 : (size_t)wanted > most ? (int)most : wanted;
}

static tdm_status reserve(tdmi_feature_table *kept, tdm_error *err)
{
    const struct tdmi_feature_table_options *options = &kept->options;
    const struct tdmi_memory_table *memory = &options->backend->memory;
    const struct tdmi_stream_table *streams = &options->backend->stream;
    const size_t bytes = (size_t)tdmi_feature_table_bytes(options);
    const size_t ready_bytes = (size_t)kept->most_ready * kept->row_bytes;
    kept->table = memory->alloc(options->device, bytes);
    if (!kept->table)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "reserving %zu MiB for %lld rows on the device: it has "
                        "not so much left",
                        bytes >> 20, (long long)options->n_rows);
    kept->ready = memory->alloc_pinned ? memory->alloc_pinned(options->device, ready_bytes)
                                       : tdmi_alloc_aligned(ready_bytes);
    if (!kept->ready)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "reserving %zu KiB to upload rows to the device: out of "
                        "memory",
                        ready_bytes >> 10);
    TDM_TRY(streams->open(options->device, &kept->copies, err), err, "a stream for rows");
    if (streams->event_open)
        TDM_TRY(streams->event_open(options->device, &kept->is_there, err), err,
                "an event for rows");
    return TDM_OK;
}

tdm_status tdmi_feature_table_open(const struct tdmi_feature_table_options *options,
                                   tdmi_feature_table **kept, tdm_error *err)
{
    TDMI_AT_END(tdmi_feature_table_close_at) tdmi_feature_table *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->options = *options;
    made->row_bytes = (size_t)options->width * tdmi_dtype_bytes(options->storage);
    made->most_ready = rows_at_once(made);
    TDM_TRY(reserve(made, err), err, "preparing to keep rows on the device");
    *kept = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_feature_table_close(tdmi_feature_table *kept)
{
    if (!kept)
        return;
    const struct tdmi_memory_table *memory = &kept->options.backend->memory;
    const struct tdmi_stream_table *streams = &kept->options.backend->stream;
    if (kept->is_there)
        streams->event_close(kept->is_there);
    if (kept->copies)
        streams->close(kept->copies);
    if (kept->ready && memory->free_pinned)
        memory->free_pinned(kept->options.device, kept->ready);
    else
        tdmi_free(kept->ready);
    if (kept->table)
        memory->free(kept->options.device, kept->table);
    tdmi_free(kept);
}

tdm_status tdmi_feature_table_flush(tdmi_feature_table *kept, tdm_error *err)
{
    const struct tdmi_backend *backend = kept->options.backend;
    const int n = kept->n_ready;
    if (n == 0)
        return TDM_OK;
    char *to = kept->table + (size_t)kept->n_there * kept->row_bytes;
    kept->n_there += n;
    kept->n_ready = 0;
    kept->is_lent = true;
    TDM_TRY(backend->memory.upload(kept->copies, to, kept->ready, (size_t)n * kept->row_bytes, err),
            err, "uploading %d rows to the device", n);
    if (!kept->is_there)
        return TDM_OK;
    return TDM_WRAP(err, backend->stream.event_record(kept->copies, kept->is_there, err),
                    "uploading %d rows to the device", n);
}

/* Memory that is copied from belongs to the copy until it has been waited for. */
static tdm_status take_back(tdmi_feature_table *kept, tdm_error *err)
{
    if (!kept->is_lent)
        return TDM_OK;
    kept->is_lent = false;
    return TDM_WRAP(err, kept->options.backend->stream.wait(kept->copies, err),
                    "uploading rows to the device");
}

tdm_status tdmi_feature_table_put(tdmi_feature_table *kept, const float *values, int64_t *number,
                                  tdm_error *err)
{
    if (kept->n_there + kept->n_ready >= kept->options.n_rows)
        return TDM_FAIL(err, TDM_E_FAILED,
                        "keeping a row on the device: there is room for %lld, which are there",
                        (long long)kept->options.n_rows);
    if (kept->n_ready == kept->most_ready)
        TDM_TRY(tdmi_feature_table_flush(kept, err), err, "keeping a row");
    TDM_TRY(take_back(kept, err), err, "keeping a row");
    tdmi_floats_store(kept->options.storage, kept->ready + (size_t)kept->n_ready * kept->row_bytes,
                      values, kept->options.width);
    *number = kept->n_there + kept->n_ready++;
    return TDM_OK;
}

void tdmi_feature_table_await(const tdmi_feature_table *kept, tdmi_stream *stream)
{
    if (kept->is_there) /* a failure shows at the stream's next wait */
        (void)kept->options.backend->stream.event_wait(stream, kept->is_there, NULL);
}

void tdmi_feature_table_gather(const tdmi_feature_table *kept, tdmi_stream *stream,
                               const int64_t *numbers, int n, void *to)
{
    kept->options.backend->memory.gather(stream, kept->table, kept->row_bytes, numbers, n, to);
}
