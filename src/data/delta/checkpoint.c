/*
 * Only the columns that say something about the present state are read; tombstones, statistics of
 * columns and everything unknown stay in the file.
 */
#include "data/delta/checkpoint.h"

#include "io/arrow/bridge.h"
#include "data/delta/rows.h"

static const char *const known_columns[] = {
    "protocol.minReaderVersion",
    "protocol.readerFeatures",
    "metaData.format.provider",
    "metaData.schemaString",
    "metaData.partitionColumns",
    "metaData.configuration",
    "add.path",
    "add.partitionValues",
    "add.size",
    "add.stats",
    "add.stats_parsed.numRecords",
    "add.deletionVector.storageType",
    "add.deletionVector.pathOrInlineDv",
    "add.deletionVector.offset",
    "add.deletionVector.sizeInBytes",
    "add.deletionVector.cardinality",
    "sidecar.path",
};
enum { N_KNOWN_COLUMNS = sizeof known_columns / sizeof known_columns[0] };

struct checkpoint {
    tdmi_delta_replay *replay;
    const char *path, *origin;
    int64_t n_rows; /* done */
};

static tdm_status read_row(struct checkpoint *in, const struct ArrowSchema *schema,
                           const struct ArrowArray *rows, int64_t row, tdm_error *err)
{
    const char *text = NULL;
    size_t n_bytes = 0;
    tdm_json_writer *writer = tdm_json_writer_new(0);
    in->n_rows++;
    tdm_status status = TDM_WRAP(err, tdmi_delta_row_write(writer, schema, rows, row, err),
                                 "%s, row %lld", in->origin, (long long)in->n_rows);
    if (status == TDM_OK)
        status = tdm_json_finish(writer, &text, &n_bytes, err);
    if (status == TDM_OK)
        status = tdmi_delta_replay_action(in->replay, in->origin, in->n_rows, text, n_bytes, err);
    tdm_json_writer_free(writer);
    return status;
}

static tdm_status read_stream(struct checkpoint *in, struct ArrowArrayStream *stream,
                              tdm_error *err)
{
    struct ArrowSchema schema = {0};
    if (stream->get_schema(stream, &schema) != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read the columns of '%s'", in->path);
    for (;;) {
        struct ArrowArray rows = {0};
        tdm_status status = tdmi_arrow_stream_next(stream, in->path, &rows, err);
        bool is_end = rows.release == NULL;
        for (int64_t row = 0; row < rows.length && status == TDM_OK; row++)
            status = read_row(in, &schema, &rows, row, err);
        tdmi_arrow_array_release(&rows);
        if (status != TDM_OK || is_end) {
            tdmi_arrow_schema_release(&schema);
            return status;
        }
    }
}

static tdm_status read_actions(struct checkpoint *in, tdmi_arrow_file *file, tdm_error *err)
{
    struct ArrowSchema schema = {0};
    const char *columns[N_KNOWN_COLUMNS];
    int n_columns = 0;
    tdm_status status = tdmi_arrow_file_schema(file, &schema, err);
    for (int i = 0; i < N_KNOWN_COLUMNS && status == TDM_OK; i++)
        if (tdmi_delta_rows_have(&schema, known_columns[i]))
            columns[n_columns++] = known_columns[i];
    tdmi_arrow_schema_release(&schema);
    if (status == TDM_OK && n_columns == 0)
        status =
            TDM_FAIL(err, TDM_E_INPUT, "'%s' holds no actions, as a checkpoint does", in->path);
    if (status != TDM_OK)
        return status;
    struct ArrowArrayStream stream = {0};
    status = tdmi_arrow_file_stream(file, columns, n_columns, 0, -1, &stream, err);
    if (status == TDM_OK)
        status = read_stream(in, &stream, err);
    tdmi_arrow_stream_release(&stream);
    return status;
}

tdm_status tdmi_delta_checkpoint_read(tdmi_delta_replay *replay, const char *path,
                                      const char *origin, tdm_error *err)
{
    struct checkpoint in = {.replay = replay, .path = path, .origin = origin};
    tdmi_arrow_file *file = NULL;
    tdm_status status = tdmi_arrow_file_open(path, &file, err);
    if (status == TDM_OK)
        status = read_actions(&in, file, err);
    tdmi_arrow_file_close(file);
    return TDM_WRAP(err, status, "cannot read the checkpoint %s", origin);
}
