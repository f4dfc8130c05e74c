/*
 * Kinds of lines: commitInfo, then protocol and metaData in the first commit, a remove for each
 * part that goes and an add for each that comes. The table's number is made from the columns and
 * parts, so that equal data has an equal log.
 */
#include "data/delta/write.h"

#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/text/json.h"
#include "data/delta/log.h"
#include "data/delta/path.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_COMMIT "00000000000000000000.json"
#define COMMIT_FORMAT "%020" PRId64 ".json"

enum { READER_VERSION = 1, WRITER_VERSION = 2 };

/* ---- lines --------------------------------------------------------------------------------- */

static tdm_json_writer *begin_action(const char *name)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_object_begin(writer, name);
    return writer;
}

/* Append the action as the next line; the caller frees the writer. */
static tdm_status end_action(tdmi_text *text, tdm_json_writer *writer, tdm_error *err)
{
    const char *line = NULL;
    size_t n_bytes = 0;
    tdm_json_object_end(writer);
    tdm_json_object_end(writer);
    TDMI_TRY(tdm_json_finish(writer, &line, &n_bytes, err));
    tdmi_text_add(text, line, n_bytes);
    tdmi_text_add(text, "\n", 1);
    return tdmi_text_status(text, err);
}

static void empty_object(tdm_json_writer *writer, const char *key)
{
    tdm_json_object_begin(writer, key);
    tdm_json_object_end(writer);
}

/* Metrics are numbers written as strings. */
static void number_as_text(tdm_json_writer *writer, const char *key, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    tdm_json_string(writer, key, text);
}

static tdm_status add_info(const struct tdmi_delta_commit *commit, tdmi_text *text, tdm_error *err)
{
    int64_t n_rows = 0, n_bytes = 0;
    for (int64_t i = 0; i < commit->n_parts; i++) {
        n_rows += commit->parts[i].n_rows;
        n_bytes += commit->parts[i].size_bytes;
    }
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = begin_action("commitInfo");
    tdm_json_integer(writer, "timestamp", commit->time_ms);
    tdm_json_string(writer, "operation", "WRITE");
    tdm_json_object_begin(writer, "operationParameters");
    tdm_json_string(writer, "mode",
                    commit->version == 0     ? "ErrorIfExists"
                    : commit->n_removed == 0 ? "Append"
                                             : "Overwrite");
    tdm_json_string(writer, "partitionBy", "[]");
    tdm_json_object_end(writer);
    if (commit->version > 0)
        tdm_json_integer(writer, "readVersion", commit->version - 1);
    tdm_json_bool(writer, "isBlindAppend", commit->version == 0);
    tdm_json_object_begin(writer, "operationMetrics");
    number_as_text(writer, "numFiles", commit->n_parts);
    if (commit->version > 0)
        number_as_text(writer, "numRemovedFiles", commit->n_removed);
    number_as_text(writer, "numOutputRows", n_rows);
    number_as_text(writer, "numOutputBytes", n_bytes);
    tdm_json_object_end(writer);
    tdm_json_string(writer, "engineInfo", commit->engine);
    return end_action(text, writer, err);
}

static tdm_status add_protocol(tdmi_text *text, tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = begin_action("protocol");
    tdm_json_integer(writer, "minReaderVersion", READER_VERSION);
    tdm_json_integer(writer, "minWriterVersion", WRITER_VERSION);
    return end_action(text, writer, err);
}

/* A JSON text within a JSON string, as the protocol has it. The writer owns it. */
static tdm_status schema_text(const struct tdmi_delta_commit *commit, tdm_json_writer *writer,
                              const char **text, tdm_error *err)
{
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "type", "struct");
    tdm_json_array_begin(writer, "fields");
    for (int i = 0; i < commit->n_columns; i++) {
        tdm_json_object_begin(writer, NULL);
        tdm_json_string(writer, "name", commit->columns[i].name);
        tdm_json_string(writer, "type", commit->columns[i].type);
        tdm_json_bool(writer, "nullable", commit->columns[i].is_nullable);
        empty_object(writer, "metadata");
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
    tdm_json_object_end(writer);
    return tdm_json_finish(writer, text, NULL, err);
}

/* 16 bytes of a digest in the form of a UUID of version 8, which is "made in a way of one's own".
 */
static void table_id(const struct tdmi_delta_commit *commit, const char *schema, char id[37])
{
    tdmi_sha256 state;
    uint8_t digest[32];
    char hex[65];
    tdmi_sha256_init(&state);
    tdmi_sha256_add(&state, schema, strlen(schema));
    for (int64_t i = 0; i < commit->n_parts; i++) {
        char numbers[64];
        const struct tdmi_delta_part *part = &commit->parts[i];
        int n = snprintf(numbers, sizeof numbers, "\n%" PRId64 " %" PRId64 " ", part->size_bytes,
                         part->n_rows);
        tdmi_sha256_add(&state, numbers, (size_t)n);
        tdmi_sha256_add(&state, part->path, strlen(part->path));
    }
    tdmi_sha256_result(&state, digest);
    digest[6] = (uint8_t)(0x80 | (digest[6] & 0x0f));
    digest[8] = (uint8_t)(0x80 | (digest[8] & 0x3f));
    tdmi_sha256_hex(digest, hex);
    snprintf(id, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

static tdm_status add_metadata(const struct tdmi_delta_commit *commit, tdmi_text *text,
                               tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *schema_writer = tdm_json_writer_new(0);
    const char *schema = NULL;
    char id[37];
    TDMI_TRY(schema_text(commit, schema_writer, &schema, err));
    table_id(commit, schema, id);
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = begin_action("metaData");
    tdm_json_string(writer, "id", id);
    tdm_json_object_begin(writer, "format");
    tdm_json_string(writer, "provider", "parquet");
    empty_object(writer, "options");
    tdm_json_object_end(writer);
    tdm_json_string(writer, "schemaString", schema);
    tdm_json_array_begin(writer, "partitionColumns");
    tdm_json_array_end(writer);
    empty_object(writer, "configuration");
    tdm_json_integer(writer, "createdTime", commit->time_ms);
    return end_action(text, writer, err);
}

static tdm_status add_part(const struct tdmi_delta_commit *commit,
                           const struct tdmi_delta_part *part, tdmi_arena *arena, tdmi_text *text,
                           tdm_error *err)
{
    const char *path = tdmi_delta_path_write(arena, part->path);
    const char *stats = tdmi_arena_printf(arena, "{\"numRecords\":%" PRId64 "}", part->n_rows);
    TDMI_CHECK_MEMORY(path != NULL && stats != NULL, err);
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = begin_action("add");
    tdm_json_string(writer, "path", path);
    empty_object(writer, "partitionValues");
    tdm_json_integer(writer, "size", part->size_bytes);
    tdm_json_integer(writer, "modificationTime", commit->time_ms);
    tdm_json_bool(writer, "dataChange", true);
    tdm_json_string(writer, "stats", stats);
    return end_action(text, writer, err);
}

static tdm_status remove_part(const struct tdmi_delta_commit *commit, const char *removed,
                              tdmi_arena *arena, tdmi_text *text, tdm_error *err)
{
    const char *path = tdmi_delta_path_write(arena, removed);
    TDMI_CHECK_MEMORY(path, err);
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = begin_action("remove");
    tdm_json_string(writer, "path", path);
    tdm_json_integer(writer, "deletionTimestamp", commit->time_ms);
    tdm_json_bool(writer, "dataChange", true);
    return end_action(text, writer, err);
}

/* ---- the commit ---------------------------------------------------------------------------- */

/* Spark refuses these in names of columns. */
static tdm_status check_columns(const struct tdmi_delta_commit *commit, tdm_error *err)
{
    for (int i = 0; i < commit->n_columns; i++) {
        const char *name = commit->columns[i].name;
        if (name[0] == '\0' || strpbrk(name, " ,;{}()\n\t=") != NULL)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "a Delta table cannot have a column '%.100s': names are not empty and "
                            "hold no blank and none of , ; { } ( ) =",
                            name);
    }
    return TDM_OK;
}

tdm_status tdmi_delta_commit_text(const struct tdmi_delta_commit *commit, tdmi_text *text,
                                  tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    tdmi_text_clear(text);
    TDMI_TRY(check_columns(commit, err));
    TDMI_TRY(add_info(commit, text, err));
    if (commit->version == 0) {
        TDMI_TRY(add_protocol(text, err));
        TDMI_TRY(add_metadata(commit, text, err));
    }
    for (int64_t i = 0; i < commit->n_removed; i++)
        TDMI_TRY(remove_part(commit, commit->removed[i], &arena, text, err));
    for (int64_t i = 0; i < commit->n_parts; i++)
        TDMI_TRY(add_part(commit, &commit->parts[i], &arena, text, err));
    return TDM_OK;
}

/* Names that begin with a dot or an underscore are no commits: temporary files of killed writers,
 * and hints. */
static tdm_status find_other(const char *log, tdmi_arena *arena, const char **other,
                             bool *has_first, tdm_error *err)
{
    struct tdmi_folder_entry *entries = NULL;
    size_t n_entries = 0;
    *other = NULL;
    *has_first = false;
    if (tdmi_file_kind_of(log) == TDMI_FILE_MISSING)
        return TDM_OK;
    TDM_TRY(tdmi_folder_list(log, arena, &entries, &n_entries, err), err,
            "cannot look for a log in '%s'", log);
    for (size_t i = 0; i < n_entries; i++) {
        if (strcmp(entries[i].name, FIRST_COMMIT) == 0)
            *has_first = true;
        else if (entries[i].name[0] != '.' && entries[i].name[0] != '_')
            *other = entries[i].name;
    }
    return TDM_OK;
}

static tdm_status is_equal_file(const char *path, const tdmi_text *text, bool *is_equal,
                                tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    size_t n_bytes = 0;
    TDM_TRY(tdmi_file_read(path, SIZE_MAX / 2, &bytes, &n_bytes, err), err,
            "cannot compare with the log that is there");
    *is_equal = n_bytes == text->length_bytes && memcmp(bytes, text->bytes, n_bytes) == 0;
    return TDM_OK;
}

static tdm_status write_first(const char *log, const tdmi_text *text, tdmi_arena *arena,
                              tdm_error *err)
{
    const char *path = tdmi_path_join(arena, log, FIRST_COMMIT), *other = NULL;
    bool has_first = false, is_equal = false;
    TDMI_CHECK_MEMORY(path, err);
    TDMI_TRY(find_other(log, arena, &other, &has_first, err));
    if (has_first)
        TDMI_TRY(is_equal_file(path, text, &is_equal, err));
    if (other != NULL || (has_first && !is_equal))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "'%s' is the log of another Delta table (%s); write to a new folder, or "
                        "remove that table first",
                        log, other != NULL ? other : FIRST_COMMIT " differs");
    return is_equal ? TDM_OK : tdmi_file_write_new(path, text->bytes, text->length_bytes, err);
}

/* A writer of a later version has read the one before. */
static tdm_status write_later(const char *log, int64_t version, const tdmi_text *text,
                              tdmi_arena *arena, tdm_error *err)
{
    const char *path = tdmi_arena_printf(arena, "%s/" COMMIT_FORMAT, log, version);
    TDMI_CHECK_MEMORY(path, err);
    return TDM_WRAP(err, tdmi_file_write_new(path, text->bytes, text->length_bytes, err),
                    "adding version %lld, unless another process has", (long long)version);
}

static tdm_status write_commit(const char *folder, const struct tdmi_delta_commit *commit,
                               tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    TDMI_TRY(tdmi_delta_commit_text(commit, &text, err));
    const char *log = tdmi_path_join(&arena, folder, "_delta_log");
    TDMI_CHECK_MEMORY(log, err);
    return commit->version == 0 ? write_first(log, &text, &arena, err)
                                : write_later(log, commit->version, &text, &arena, err);
}

tdm_status tdmi_delta_write(const char *folder, const struct tdmi_delta_commit *commit,
                            tdm_error *err)
{
    return TDM_WRAP(err, write_commit(folder, commit, err), "cannot write the Delta log of '%s'",
                    folder);
}

/* ---- updates ------------------------------------------------------------------------------- */

/* The next version of a table that we write: the difference between the files of its newest version
 * and the planned ones. The log itself is compared, so a call that was killed after its commit
 * finds no difference when it is repeated. */

static bool has_name(const char *const *sorted, int64_t n, const char *name)
{
    return n > 0 && bsearch(&name, sorted, (size_t)n, sizeof *sorted, tdmi_compare_names) != NULL;
}

static tdm_status check_ours(const char *folder, const struct tdmi_delta_table *table,
                             bool (*is_ours)(const char *path), tdm_error *err)
{
    for (int64_t f = 0; f < table->n_files; f++)
        if (!is_ours(table->files[f].path) || table->files[f].deleted.kind != 0)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "another program has changed '%s': version %lld has '%s'%s; prepare "
                            "into another folder",
                            folder, (long long)table->version, table->files[f].path,
                            table->files[f].deleted.kind != 0 ? " with rows deleted" : "");
    return TDM_OK;
}

/* Both lists sorted by their bytes; next gets what differs. */
static tdm_status write_difference(const char *folder, const struct tdmi_delta_commit *commit,
                                   const struct tdmi_delta_table *table, int64_t *version,
                                   tdm_error *err)
{
    struct tdmi_delta_commit next = *commit;
    TDMI_AT_END(tdmi_free_at) const char **planned = NULL, **held = NULL, **removed = NULL;
    TDMI_AT_END(tdmi_free_at) struct tdmi_delta_part *added = NULL;
    TDMI_TRY(TDMI_NEW(planned, commit->n_parts, err));
    TDMI_TRY(TDMI_NEW(held, table->n_files, err));
    TDMI_TRY(TDMI_NEW(removed, table->n_files, err));
    TDMI_TRY(TDMI_NEW(added, commit->n_parts, err));
    next.n_parts = next.n_removed = 0;
    for (int64_t p = 0; p < commit->n_parts; p++)
        planned[p] = commit->parts[p].path;
    for (int64_t f = 0; f < table->n_files; f++)
        held[f] = table->files[f].path;
    qsort(planned, (size_t)commit->n_parts, sizeof *planned, tdmi_compare_names);
    for (int64_t f = 0; f < table->n_files; f++)
        if (!has_name(planned, commit->n_parts, held[f]))
            removed[next.n_removed++] = held[f];
    for (int64_t p = 0; p < commit->n_parts; p++)
        if (!has_name(held, table->n_files, commit->parts[p].path))
            added[next.n_parts++] = commit->parts[p];
    *version = table->version;
    if (next.n_parts == 0 && next.n_removed == 0)
        return TDM_OK;
    next.version = ++*version;
    next.parts = added;
    next.removed = removed;
    return tdmi_delta_write(folder, &next, err);
}

tdm_status tdmi_delta_write_next(const char *folder, const struct tdmi_delta_commit *commit,
                                 bool (*is_ours)(const char *path), int64_t *version,
                                 tdm_error *err)
{
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const char *first = tdmi_path_join(&arena, folder, "_delta_log/00000000000000000000.json");
    *version = 0;
    TDMI_CHECK_MEMORY(first, err);
    if (tdmi_file_kind_of(first) != TDMI_FILE_REGULAR)
        return tdmi_delta_write(folder, commit, err);
    TDMI_TRY(tdmi_delta_log_read(folder, -1, &table, err));
    TDMI_TRY(check_ours(folder, &table, is_ours, err));
    return write_difference(folder, commit, &table, version, err);
}

/* ---- names -------------------------------------------------------------------------------- */

static tdm_status add_names(const struct tdmi_delta_table *table, tdmi_arena *arena,
                            const char ***names, int64_t *n, tdm_error *err)
{
    const char **more = tdmi_arena_alloc(arena, (size_t)(*n + table->n_files) + 1, sizeof *more);
    TDMI_CHECK_MEMORY(more, err);
    if (*n > 0)
        memcpy(more, *names, (size_t)*n * sizeof *more);
    *names = more;
    for (int64_t f = 0; f < table->n_files; f++) {
        more[*n] = tdmi_arena_copy(arena, table->files[f].path);
        TDMI_CHECK_MEMORY(more[(*n)++], err);
    }
    return TDM_OK;
}

tdm_status tdmi_delta_names(const char *folder, int64_t version, tdmi_arena *arena,
                            const char ***names, int64_t *n, bool *is_whole, tdm_error *err)
{
    *names = NULL;
    *n = 0;
    *is_whole = true;
    for (int64_t v = 0; v <= version; v++) {
        TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
        tdm_status status = tdmi_delta_log_read(folder, v, &table, err);
        *is_whole = status == TDM_OK;
        if (status != TDM_OK)
            return status == TDM_E_INPUT ? TDM_OK : status;
        TDMI_TRY(add_names(&table, arena, names, n, err));
    }
    return TDM_OK;
}
