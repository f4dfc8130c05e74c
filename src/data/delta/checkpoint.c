/*
 * Checkpoints of a Delta log: only the columns that describe the present state are read;
 * tombstones, statistics of columns and everything unknown stay in the file. Each row becomes JSON
 * again, as it would stand in a commit.
 */
#include "data/delta/replay.h"

#include "base/text/json.h"
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
    return tdmi_text_status(copy, err);
}

static tdm_status write_members(tdm_json_writer *writer, const char *key,
                                struct tdmi_arrow_cell cell, tdm_error *err)
{
    tdm_json_object_begin(writer, key);
    for (int64_t i = 0; i < cell.schema->n_children; i++) {
        struct tdmi_arrow_cell member = tdmi_arrow_cell_child(cell, i);
        if (!tdmi_arrow_cell_is_null(member))
            TDMI_TRY(write_value(writer, member.schema->name, member, err));
    }
    tdm_json_object_end(writer);
    return TDM_OK;
}

/* A list becomes an array. A map is a list of structs of two members, whatever their names, and
 * becomes an object. */
static tdm_status write_list(tdm_json_writer *writer, const char *key, struct tdmi_arrow_cell cell,
                             bool is_map, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text name = {0};
    const struct ArrowSchema *schema = cell.schema->children[0];
    int64_t first, n;
    if (is_map && schema->n_children != 2)
        return refuse(cell, "is no map of keys and values", err);
    tdmi_arrow_cell_list(cell, &first, &n);
    (is_map ? tdm_json_object_begin : tdm_json_array_begin)(writer, key);
    for (int64_t i = first; i < first + n; i++) {
        struct tdmi_arrow_cell value = tdmi_arrow_cell_at(schema, cell.array->children[0], i);
        if (is_map) {
            TDMI_TRY(take_text(tdmi_arrow_cell_child(value, 0), &name, err));
            value = tdmi_arrow_cell_child(value, 1);
        }
        TDMI_TRY(write_value(writer, is_map ? tdmi_text_string(&name) : NULL, value, err));
    }
    (is_map ? tdm_json_object_end : tdm_json_array_end)(writer);
    return TDM_OK;
}

static tdm_status write_value(tdm_json_writer *writer, const char *key, struct tdmi_arrow_cell cell,
                              tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    const char *format = cell.schema->format;
    bool is_map = strcmp(format, "+m") == 0;
    int64_t integer;
    if (tdmi_arrow_cell_is_null(cell)) {
        tdm_json_null(writer, key);
    } else if (strcmp(format, "+s") == 0) {
        return write_members(writer, key, cell, err);
    } else if (is_map || strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0) {
        return write_list(writer, key, cell, is_map, err);
    } else if (tdmi_arrow_cell_integer(cell, &integer)) {
        tdm_json_integer(writer, key, integer);
    } else {
        TDMI_TRY(take_text(cell, &text, err));
        tdm_json_string(writer, key, tdmi_text_string(&text));
    }
    return TDM_OK;
}

/* ---- the file ---- */

/* Does the schema have the column, whose name may be that of a field within ("add.path")? */
static bool has_column(const struct ArrowSchema *schema, const char *name)
{
    size_t n = strcspn(name, ".");
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *child = schema->children[i];
        if (child->name != NULL && strncmp(child->name, name, n) == 0 && child->name[n] == '\0')
            return name[n] == '\0' || has_column(child, name + n + 1);
    }
    return false;
}

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
    const char *origin;
    int64_t n_rows; /* done */
};

static tdm_status read_row(void *self, struct tdmi_arrow_cell row, tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = tdm_json_writer_new(0);
    struct checkpoint *in = self;
    const char *text = NULL;
    size_t n_bytes = 0;
    in->n_rows++;
    TDM_TRY(write_value(writer, NULL, row, err), err, "%s, row %lld", in->origin,
            (long long)in->n_rows);
    TDMI_TRY(tdm_json_finish(writer, &text, &n_bytes, err));
    return tdmi_delta_replay_action(in->replay, in->origin, in->n_rows, text, n_bytes, err);
}

static tdm_status read_actions(struct checkpoint *in, const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_arrow_file_close_at) tdmi_arrow_file *file = NULL;
    TDMI_AT_END(tdmi_arrow_schema_release) struct ArrowSchema schema = {0};
    const char *columns[N_KNOWN_COLUMNS];
    int n_columns = 0;
    TDMI_TRY(tdmi_arrow_file_open(path, &file, err));
    TDMI_TRY(tdmi_arrow_file_schema(file, &schema, err));
    for (int i = 0; i < N_KNOWN_COLUMNS; i++)
        if (has_column(&schema, known_columns[i]))
            columns[n_columns++] = known_columns[i];
    if (n_columns == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' holds no actions, as a checkpoint does", path);
    return tdmi_arrow_each_row(file, path, columns, n_columns, read_row, in, err);
}

tdm_status tdmi_delta_checkpoint_read(tdmi_delta_replay *replay, const char *path,
                                      const char *origin, tdm_error *err)
{
    struct checkpoint in = {.replay = replay, .origin = origin};
    return TDM_WRAP(err, read_actions(&in, path, err), "cannot read the checkpoint %s", origin);
}
