/*
 * Only the columns that say something about the present state are read; tombstones, statistics of
 * columns and everything unknown stay in the file.
 */
#include "data/delta/replay.h"

#include "io/arrow/bridge.h"
#include "tandem/json.h"
#include "base/text/text.h"
#include "io/arrow/cell.h"
#include <string.h>

/* ---- rows as JSON ---- */

/* Only the types that actions are made of: text, whole numbers, structs, lists and maps. */

static tdm_status write_value(tdm_json_writer *writer, const char *key, struct tdmi_arrow_cell cell,
                              tdm_error *err);

static tdm_status refuse(struct tdmi_arrow_cell cell, const char *what, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, "the column '%.60s' of Arrow type '%.20s' %s",
                    cell.schema->name == NULL ? "" : cell.schema->name, cell.schema->format, what);
}

/* The text of a cell, terminated, into copy. */
static tdm_status take_text(struct tdmi_arrow_cell cell, tdmi_text *copy, tdm_error *err)
{
    const uint8_t *bytes = NULL;
    int64_t n = 0;
    tdmi_text_clear(copy);
    if (!tdmi_arrow_is_text(cell.schema) || !tdmi_arrow_cell_bytes(cell, &bytes, &n))
        return refuse(cell, "holds nothing that an action has", err);
    if (n > 0 && memchr(bytes, '\0', (size_t)n) != NULL)
        return refuse(cell, "holds a zero byte, which no text of a log has", err);
    tdmi_text_add(copy, n > 0 ? (const char *)bytes : "", (size_t)n);
    return copy->is_broken ? TDM_FAIL(err, TDM_E_MEMORY, "no memory for a text of a checkpoint")
                           : TDM_OK;
}

static tdm_status write_members(tdm_json_writer *writer, const char *key,
                                struct tdmi_arrow_cell cell, tdm_error *err)
{
    tdm_status status = TDM_OK;
    tdm_json_object_begin(writer, key);
    for (int64_t i = 0; i < cell.schema->n_children && status == TDM_OK; i++) {
        struct tdmi_arrow_cell member =
            tdmi_arrow_cell_at(cell.schema->children[i], cell.array->children[i], cell.row);
        if (!tdmi_arrow_cell_is_null(member))
            status = write_value(writer, member.schema->name, member, err);
    }
    tdm_json_object_end(writer);
    return status;
}

/* ---- lists and maps ------------------------------------------------------------------------ */

static bool is_list(const char *format)
{
    return strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0 || strcmp(format, "+m") == 0;
}

static void range_of(struct tdmi_arrow_cell list, int64_t *first, int64_t *end)
{
    const int32_t *narrow = list.array->buffers[1];
    const int64_t *wide = list.array->buffers[1];
    bool is_wide = list.schema->format[1] == 'L';
    *first = is_wide ? wide[list.row] : narrow[list.row];
    *end = is_wide ? wide[list.row + 1] : narrow[list.row + 1];
}

static struct tdmi_arrow_cell element(struct tdmi_arrow_cell list, int64_t index)
{
    return tdmi_arrow_cell_at(list.schema->children[0], list.array->children[0], index);
}

static tdm_status write_list(tdm_json_writer *writer, const char *key, struct tdmi_arrow_cell cell,
                             tdm_error *err)
{
    int64_t first, end;
    tdm_status status = TDM_OK;
    range_of(cell, &first, &end);
    tdm_json_array_begin(writer, key);
    for (int64_t i = first; i < end && status == TDM_OK; i++)
        status = write_value(writer, NULL, element(cell, i), err);
    tdm_json_array_end(writer);
    return status;
}

/* A list of structs of two, whatever they are called. */
static tdm_status write_map(tdm_json_writer *writer, const char *key, struct tdmi_arrow_cell cell,
                            tdm_error *err)
{
    int64_t first, end;
    tdm_status status = TDM_OK;
    tdmi_text name = {0};
    if (cell.schema->children[0]->n_children != 2)
        return refuse(cell, "is no map of keys and values", err);
    range_of(cell, &first, &end);
    tdm_json_object_begin(writer, key);
    for (int64_t i = first; i < end && status == TDM_OK; i++) {
        struct tdmi_arrow_cell entry = element(cell, i);
        struct tdmi_arrow_cell pair[2];
        for (int c = 0; c < 2; c++)
            pair[c] =
                tdmi_arrow_cell_at(entry.schema->children[c], entry.array->children[c], entry.row);
        status = take_text(pair[0], &name, err);
        if (status == TDM_OK)
            status = write_value(writer, tdmi_text_string(&name), pair[1], err);
    }
    tdm_json_object_end(writer);
    tdmi_text_release(&name);
    return status;
}

static tdm_status write_value(tdm_json_writer *writer, const char *key, struct tdmi_arrow_cell cell,
                              tdm_error *err)
{
    int64_t integer;
    if (tdmi_arrow_cell_is_null(cell)) {
        tdm_json_null(writer, key);
        return TDM_OK;
    }
    if (strcmp(cell.schema->format, "+s") == 0)
        return write_members(writer, key, cell, err);
    if (is_list(cell.schema->format))
        return (cell.schema->format[1] == 'm' ? write_map : write_list)(writer, key, cell, err);
    if (tdmi_arrow_cell_integer(cell, &integer)) {
        tdm_json_integer(writer, key, integer);
        return TDM_OK;
    }
    tdmi_text text = {0};
    tdm_status status = take_text(cell, &text, err);
    if (status == TDM_OK)
        tdm_json_string(writer, key, tdmi_text_string(&text));
    tdmi_text_release(&text);
    return status;
}

/* ---- for the reader of checkpoints --------------------------------------------------------- */

static tdm_status write_row(tdm_json_writer *writer, const struct ArrowSchema *schema,
                            const struct ArrowArray *rows, int64_t row, tdm_error *err)
{
    return write_value(writer, NULL, tdmi_arrow_cell_at(schema, rows, row), err);
}

static bool have_rows(const struct ArrowSchema *schema, const char *name)
{
    size_t n = strcspn(name, ".");
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *child = schema->children[i];
        if (child->name != NULL && strncmp(child->name, name, n) == 0 && child->name[n] == '\0')
            return name[n] == '\0' || have_rows(child, name + n + 1);
    }
    return false;
}

/* ---- the file ---- */

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
    tdm_status status = TDM_WRAP(err, write_row(writer, schema, rows, row, err), "%s, row %lld",
                                 in->origin, (long long)in->n_rows);
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
        if (have_rows(&schema, known_columns[i]))
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
