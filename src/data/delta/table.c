/*
 * From the state after the last action to the table that readers see: the protocol is supported,
 * the columns are known, files stand in an order of their own, and the partition values fit their
 * columns.
 */
#include "data/delta/state.h"

#include "base/text/text.h"
#include <stdlib.h>
#include <string.h>

void tdmi_delta_table_release(struct tdmi_delta_table *table)
{
    tdmi_arena_release(&table->arena);
    *table = (struct tdmi_delta_table){0};
}

/* ---- protocol ------------------------------------------------------------------------------ */

/* A short list of supported features; everything else is refused by the name that the table gives
 * it. */

enum { LAST_VERSION = 3, VERSION_WITH_MAPPING = 2, VERSION_WITH_FEATURES = 3 };

/* timestampNtz is a type of columns that no label has; vacuumProtocolCheck binds only those who
 * delete files. */
static const char *const supported[] = {"deletionVectors", "timestampNtz", "v2Checkpoint",
                                        "vacuumProtocolCheck"};
enum { N_SUPPORTED = sizeof supported / sizeof supported[0] };

static bool is_supported(const char *feature)
{
    for (int i = 0; i < N_SUPPORTED; i++)
        if (strcmp(feature, supported[i]) == 0)
            return true;
    return false;
}

static tdm_status check_protocol(const tdmi_delta_replay *replay, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text unmet = {0}, known = {0};
    const char *mapping = replay->metadata.mapping;
    int64_t version = replay->reader_version;
    if (version < 1 || version > LAST_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the Delta table '%s' requires readers of protocol version %lld; versions "
                        "1 to %d are read here",
                        replay->table, (long long)version, LAST_VERSION);
    for (size_t i = 0; version >= VERSION_WITH_FEATURES && i < replay->n_reader_features; i++)
        if (!is_supported(replay->reader_features[i]))
            tdmi_text_printf(&unmet, "%s%.60s", unmet.length_bytes == 0 ? "" : " and ",
                             replay->reader_features[i]);
    /* Version 2 allows column mapping without naming it; only its use matters then. */
    if (version == VERSION_WITH_MAPPING && mapping != NULL && strcmp(mapping, "none") != 0)
        tdmi_text_printf(&unmet, "columnMapping");
    TDMI_TRY(tdmi_text_status(&unmet, err));
    if (unmet.length_bytes == 0)
        return TDM_OK;
    for (int i = 0; i < N_SUPPORTED; i++)
        tdmi_text_printf(&known, "%s%s", i == 0 ? "" : ", ", supported[i]);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "the Delta table '%s' requires its readers to know %s, which is not read here "
                    "(%s are): write its "
                    "rows to a table without that, or to plain Parquet files",
                    replay->table, tdmi_text_string(&unmet), tdmi_text_string(&known));
}

/* ---- columns ------------------------------------------------------------------------------- */

static tdm_status take_columns(const tdmi_delta_replay *replay, struct tdmi_delta_table *table,
                               tdm_error *err)
{
    const struct tdmi_delta_metadata *metadata = &replay->metadata;
    TDM_TRY(tdmi_delta_schema_read(table, metadata->schema, err), err, TDMI_DELTA_AT,
            TDMI_DELTA_POSITION(metadata));
    int n = metadata->n_partition_columns;
    table->partition_columns =
        tdmi_arena_alloc(&table->arena, (size_t)n, sizeof *table->partition_columns);
    TDMI_CHECK_MEMORY(table->partition_columns, err);
    table->n_partition_columns = n;
    for (int i = 0; i < n; i++) {
        const char *name = metadata->partition_columns[i];
        int field = tdmi_delta_schema_find(table, name);
        if (field < 0 || table->fields[field].is_partition ||
            !tdmi_delta_type_divides(table->fields[field].type))
            return TDM_FAIL(err, TDM_E_INPUT, TDMI_DELTA_AT ": the partition column '%.100s' %s",
                            TDMI_DELTA_POSITION(metadata), name,
                            field < 0 ? "is none of the schema's columns"
                            : table->fields[field].is_partition
                                ? "is named twice"
                                : "is of a type that no partition can have");
        table->fields[field].is_partition = true;
        table->partition_columns[i] = table->fields[field].name;
    }
    return TDM_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

static tdm_status copy(struct tdmi_delta_table *table, const char **text, tdm_error *err)
{
    *text = tdmi_arena_copy(&table->arena, *text);
    TDMI_CHECK_MEMORY(*text, err);
    return TDM_OK;
}

static tdm_status take_value(const struct tdmi_delta_entry *entry, const char *column,
                             struct tdmi_delta_table *table, const char **kept, tdm_error *err)
{
    const struct tdmi_delta_field *field = &table->fields[tdmi_delta_schema_find(table, column)];
    const struct tdmi_delta_file *file = &entry->file;
    int i = 0;
    while (i < entry->n_values && strcmp(entry->values[i].key, column) != 0)
        i++;
    if (i == entry->n_values)
        return TDM_FAIL(err, TDM_E_INPUT,
                        TDMI_DELTA_AT
                        ": the file '%.120s' has no value of the partition column '%s'",
                        TDMI_DELTA_POSITION(file), file->path, column);
    *kept = entry->values[i].value;
    if (*kept == NULL)
        return TDM_OK;
    if (!tdmi_delta_value_fits(field->type, *kept))
        return TDM_FAIL(err, TDM_E_INPUT,
                        TDMI_DELTA_AT ": the partition column '%s' is of type %s, and the file "
                                      "'%.120s' has '%.60s' there",
                        TDMI_DELTA_POSITION(file), column, field->type, file->path, *kept);
    return copy(table, kept, err);
}

static tdm_status take_file(const struct tdmi_delta_entry *entry, struct tdmi_delta_table *table,
                            tdm_error *err)
{
    struct tdmi_delta_file *file = &table->files[table->n_files++];
    *file = entry->file;
    TDMI_TRY(copy(table, &file->path, err));
    TDMI_TRY(copy(table, &file->origin, err));
    if (file->deleted.kind != 0)
        TDMI_TRY(copy(table, &file->deleted.text, err));
    const char **values =
        tdmi_arena_alloc(&table->arena, (size_t)table->n_partition_columns, sizeof(const char *));
    TDMI_CHECK_MEMORY(values, err);
    file->values = values;
    for (int i = 0; i < table->n_partition_columns; i++)
        TDMI_TRY(take_value(entry, table->partition_columns[i], table, &values[i], err));
    return TDM_OK;
}

static int by_path(const void *left, const void *right)
{
    const struct tdmi_delta_file *a = left, *b = right;
    return strcmp(a->path, b->path);
}

static tdm_status take_files(const tdmi_delta_replay *replay, struct tdmi_delta_table *table,
                             tdm_error *err)
{
    const struct tdmi_delta_files *files = &replay->files;
    int64_t n = 0;
    for (int64_t i = 0; i < files->n_entries; i++)
        n += files->entries[i].is_there;
    table->files = tdmi_arena_alloc(&table->arena, (size_t)n, sizeof *table->files);
    TDMI_CHECK_MEMORY(table->files, err);
    for (int64_t i = 0; i < files->n_entries; i++)
        if (files->entries[i].is_there)
            TDMI_TRY(take_file(&files->entries[i], table, err));
    qsort(table->files, (size_t)n, sizeof *table->files, by_path);
    for (const struct tdmi_delta_file *file = table->files + 1; file < table->files + n; file++)
        if (strcmp(file[-1].path, file->path) == 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            TDMI_DELTA_AT ": the file '%.120s' is part of the table twice, with "
                                          "different deletion vectors",
                            TDMI_DELTA_POSITION(file), file->path);
    return TDM_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static tdm_status fill(const tdmi_delta_replay *replay, struct tdmi_delta_table *table,
                       tdm_error *err)
{
    table->path = replay->table;
    TDMI_TRY(copy(table, &table->path, err));
    if (!replay->has_protocol || replay->metadata.origin == NULL)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the log of '%s' up to version %lld has no %s: an action "
                        "\"%s\" is missing",
                        table->path, (long long)table->version,
                        replay->has_protocol ? "columns" : "protocol",
                        replay->has_protocol ? "metaData" : "protocol");
    TDMI_TRY(check_protocol(replay, err));
    TDMI_TRY(take_columns(replay, table, err));
    return take_files(replay, table, err);
}

tdm_status tdmi_delta_replay_finish(const tdmi_delta_replay *replay, int64_t version,
                                    struct tdmi_delta_table *table, tdm_error *err)
{
    *table = (struct tdmi_delta_table){.version = version};
    tdm_status status = fill(replay, table, err);
    if (status != TDM_OK)
        tdmi_delta_table_release(table);
    return status;
}
