/*
 * From the state after the last action to the table that readers see: what is asked of readers is
 * met, the columns are known, files stand in an order of their own, and the partition values fit
 * their columns.
 */
#include "data/delta/state.h"

#include <stdlib.h>
#include <string.h>

void tdmi_delta_table_release(struct tdmi_delta_table *table)
{
    tdmi_arena_release(&table->arena);
    *table = (struct tdmi_delta_table){0};
}

static tdm_status no_memory(const struct tdmi_delta_table *table, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the Delta table '%s'", table->path);
}

/* ---- columns ------------------------------------------------------------------------------- */

static tdm_status take_columns(const tdmi_delta_replay *replay, struct tdmi_delta_table *table,
                               tdm_error *err)
{
    const struct tdmi_delta_metadata *metadata = &replay->metadata;
    TDM_TRY(tdmi_delta_schema_read(table, metadata->schema, err), err, "%s, %s %lld",
            metadata->origin, tdmi_delta_line_word(metadata->origin), (long long)metadata->line);
    int n = metadata->n_partition_columns;
    table->partition_columns =
        tdmi_arena_alloc(&table->arena, (size_t)n, sizeof *table->partition_columns);
    if (table->partition_columns == NULL)
        return no_memory(table, err);
    table->n_partition_columns = n;
    for (int i = 0; i < n; i++) {
        const char *name = metadata->partition_columns[i];
        int field = tdmi_delta_schema_find(table, name);
        if (field < 0 || table->fields[field].is_partition ||
            !tdmi_delta_type_divides(table->fields[field].type))
            return TDM_FAIL(
                err, TDM_E_INPUT, "%s, %s %lld: the partition column '%.100s' %s", metadata->origin,
                tdmi_delta_line_word(metadata->origin), (long long)metadata->line, name,
                field < 0                           ? "is none of the schema's columns"
                : table->fields[field].is_partition ? "is named twice"
                                                    : "is of a type that no partition can have");
        table->fields[field].is_partition = true;
        table->partition_columns[i] = table->fields[field].name;
    }
    return TDM_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

static tdm_status take_value(const struct tdmi_delta_entry *entry, const char *column,
                             struct tdmi_delta_table *table, const char **kept, tdm_error *err)
{
    const struct tdmi_delta_field *field = &table->fields[tdmi_delta_schema_find(table, column)];
    const struct tdmi_delta_file *file = &entry->file;
    const char *word = tdmi_delta_line_word(file->origin);
    int i = 0;
    while (i < entry->n_values && strcmp(entry->values[i].key, column) != 0)
        i++;
    *kept = NULL;
    if (i == entry->n_values)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s, %s %lld: the file '%.120s' has no value of the partition column '%s'",
                        file->origin, word, (long long)file->line, file->path, column);
    const char *value = entry->values[i].value;
    if (value == NULL)
        return TDM_OK;
    if (!tdmi_delta_value_fits(field->type, value))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s, %s %lld: the partition column '%s' is of type %s, and the file "
                        "'%.120s' has '%.60s' there",
                        file->origin, word, (long long)file->line, column, field->type, file->path,
                        value);
    *kept = tdmi_arena_copy(&table->arena, value);
    return *kept == NULL ? no_memory(table, err) : TDM_OK;
}

static tdm_status take_file(const struct tdmi_delta_entry *entry, struct tdmi_delta_table *table,
                            tdm_error *err)
{
    struct tdmi_delta_file *file = &table->files[table->n_files++];
    *file = entry->file;
    file->path = tdmi_arena_copy(&table->arena, file->path);
    file->origin = tdmi_arena_copy(&table->arena, file->origin);
    if (file->deleted.kind != 0)
        file->deleted.text = tdmi_arena_copy(&table->arena, file->deleted.text);
    const char **values =
        tdmi_arena_alloc(&table->arena, (size_t)table->n_partition_columns, sizeof(const char *));
    if (file->path == NULL || file->origin == NULL || values == NULL ||
        (file->deleted.kind != 0 && file->deleted.text == NULL))
        return no_memory(table, err);
    file->values = values;
    tdm_status status = TDM_OK;
    for (int i = 0; i < table->n_partition_columns && status == TDM_OK; i++)
        status = take_value(entry, table->partition_columns[i], table, &values[i], err);
    return status;
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
    if (table->files == NULL)
        return no_memory(table, err);
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < files->n_entries && status == TDM_OK; i++)
        if (files->entries[i].is_there)
            status = take_file(&files->entries[i], table, err);
    if (status != TDM_OK)
        return status;
    qsort(table->files, (size_t)n, sizeof *table->files, by_path);
    for (int64_t i = 1; i < n; i++)
        if (strcmp(table->files[i - 1].path, table->files[i].path) == 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "%s, %s %lld: the file '%.120s' is part of the table twice, with "
                            "different deletion vectors",
                            table->files[i].origin, tdmi_delta_line_word(table->files[i].origin),
                            (long long)table->files[i].line, table->files[i].path);
    return TDM_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static tdm_status fill(const tdmi_delta_replay *replay, struct tdmi_delta_table *table,
                       tdm_error *err)
{
    table->path = tdmi_arena_copy(&table->arena, replay->table);
    if (table->path == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the Delta table '%s'", replay->table);
    if (!replay->has_protocol || replay->metadata.origin == NULL)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the log of '%s' says up to version %lld nothing about its %s: an action "
                        "\"%s\" is missing",
                        table->path, (long long)table->version,
                        replay->has_protocol ? "columns" : "protocol",
                        replay->has_protocol ? "metaData" : "protocol");
    struct tdmi_delta_protocol protocol = replay->protocol;
    protocol.mapping = replay->metadata.mapping;
    tdm_status status = tdmi_delta_protocol_check(&protocol, table->path, err);
    if (status == TDM_OK)
        status = take_columns(replay, table, err);
    return status == TDM_OK ? take_files(replay, table, err) : status;
}

tdm_status tdmi_delta_replay_finish(const tdmi_delta_replay *replay, int64_t version,
                                    struct tdmi_delta_table *table, tdm_error *err)
{
    *table = (struct tdmi_delta_table){.version = version};
    tdmi_arena_init(&table->arena, 0);
    tdm_status status = fill(replay, table, err);
    if (status != TDM_OK)
        tdmi_delta_table_release(table);
    return status;
}
