/*
 * Actions are read one by one from JSON, whatever file they came from, and change a small state: a
 * hash table of files by path and deletion vector, the newest protocol and the newest metaData.
 * Their own text is parsed only at the end, because only the last ones count.
 */
#include "data/delta/state.h"

#include "base/hash/hash.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "data/delta/path.h"
#include <string.h>

/* Position of an action, for messages. */
struct place {
    tdmi_delta_replay *replay;
    const char *origin; /* in the arena of the replay */
    int64_t line;
};

const char *tdmi_delta_line_word(const char *origin)
{
    return tdmi_ends_with(origin, ".parquet") ? "row" : "line";
}

static tdm_status wrong(const struct place *at, const char *action, const char *what,
                        tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, TDMI_DELTA_AT ": the action \"%s\" %s",
                    TDMI_DELTA_POSITION(at), action, what);
}

/* ---- the table of files -------------------------------------------------------------------- */

/* Open addressing over an array that keeps the order in which files were first named. */

static uint64_t hash_of(const struct tdmi_delta_file *file)
{
    const struct tdmi_delta_vector_place *vector = &file->deleted;
    tdmi_xxh64 state;
    tdmi_xxh64_init(&state, 0);
    tdmi_xxh64_add(&state, file->path, strlen(file->path));
    if (vector->kind != 0) {
        tdmi_xxh64_add(&state, &vector->kind, 1);
        tdmi_xxh64_add(&state, vector->text, strlen(vector->text));
        tdmi_xxh64_add(&state, &vector->offset_bytes, sizeof vector->offset_bytes);
    }
    return tdmi_xxh64_result(&state);
}

static bool is_same(const struct tdmi_delta_file *a, const struct tdmi_delta_file *b)
{
    return strcmp(a->path, b->path) == 0 && a->deleted.kind == b->deleted.kind &&
           (a->deleted.kind == 0 || (strcmp(a->deleted.text, b->deleted.text) == 0 &&
                                     a->deleted.offset_bytes == b->deleted.offset_bytes));
}

/* The slot of the file, or the free one where it belongs. */
static int64_t *slot_of(const struct tdmi_delta_files *files, const struct tdmi_delta_entry *entry)
{
    const uint64_t mask = (uint64_t)files->n_slots - 1;
    for (uint64_t i = entry->hash & mask;; i = (i + 1) & mask) {
        int64_t *slot = &files->slots[i];
        const struct tdmi_delta_entry *found = &files->entries[*slot == 0 ? 0 : *slot - 1];
        if (*slot == 0 || (found->hash == entry->hash && is_same(&found->file, &entry->file)))
            return slot;
    }
}

static tdm_status make_room(struct tdmi_delta_files *files, tdm_error *err)
{
    TDMI_TRY(TDMI_MAKE_ROOM(files->entries, files->capacity, files->n_entries, err));
    if (2 * files->n_entries < files->n_slots)
        return TDM_OK;
    int64_t n_slots = files->n_slots == 0 ? 512 : 2 * files->n_slots, *slots;
    TDMI_TRY(TDMI_NEW(slots, n_slots, err));
    tdmi_free(files->slots);
    files->slots = slots;
    files->n_slots = n_slots;
    for (int64_t i = 0; i < files->n_entries; i++)
        *slot_of(files, &files->entries[i]) = i + 1;
    return TDM_OK;
}

/* Replaces the entry of the same path and vector, if any. Its strings live as long as the replay.
 */
static tdm_status put_file(const struct place *at, struct tdmi_delta_entry entry, tdm_error *err)
{
    struct tdmi_delta_files *files = &at->replay->files;
    entry.hash = hash_of(&entry.file);
    TDMI_TRY(make_room(files, err));
    int64_t *slot = slot_of(files, &entry);
    if (*slot == 0)
        *slot = ++files->n_entries;
    files->entries[*slot - 1] = entry;
    return TDM_OK;
}

/* ---- parts of actions ---------------------------------------------------------------------- */

static tdm_status copy(const struct place *at, const char *text, const char **kept, tdm_error *err)
{
    *kept = tdmi_arena_copy(&at->replay->arena, text);
    TDMI_CHECK_MEMORY(*kept, err);
    return TDM_OK;
}

static tdm_status read_path(const struct place *at, const tdm_json_value *action, const char *name,
                            const char **path, tdm_error *err)
{
    const char *text = tdm_json_as_string(tdm_json_member(action, "path"), NULL), *why;
    if (text == NULL)
        return wrong(at, name, "has no \"path\", which is a string", err);
    *path = tdmi_delta_path_read(&at->replay->arena, text, &why);
    if (why != NULL)
        return TDM_FAIL(err, TDM_E_INPUT,
                        TDMI_DELTA_AT ": the path '%.120s' of \"%s\" cannot be used: %s",
                        TDMI_DELTA_POSITION(at), text, name, why);
    TDMI_CHECK_MEMORY(*path, err);
    return TDM_OK;
}

static tdm_status read_vector(const struct place *at, const tdm_json_value *action,
                              const char *name, struct tdmi_delta_vector_place *place,
                              tdm_error *err)
{
    const tdm_json_value *vector = tdm_json_member(action, "deletionVector");
    if (tdm_json_kind_of(vector) == TDM_JSON_NULL)
        return TDM_OK;
    const char *kind = tdm_json_as_string(tdm_json_member(vector, "storageType"), "");
    const char *text = tdm_json_as_string(tdm_json_member(vector, "pathOrInlineDv"), NULL);
    if (kind[0] == '\0' || strchr("upi", kind[0]) == NULL || kind[1] != '\0' || text == NULL)
        return wrong(at, name,
                     "has a deletionVector without a storageType of u, p or i and a pathOrInlineDv",
                     err);
    /* Without an offset the vector is the first of its file; that -1 is part of its identity. */
    place->offset_bytes = tdm_json_as_integer(tdm_json_member(vector, "offset"), -1);
    place->size_bytes = tdm_json_as_integer(tdm_json_member(vector, "sizeInBytes"), -1);
    place->n_rows = tdm_json_as_integer(tdm_json_member(vector, "cardinality"), -1);
    if (place->offset_bytes < -1 || place->size_bytes < 0 || place->n_rows < 0)
        return wrong(at, name,
                     "has a deletionVector whose offset, sizeInBytes or cardinality is missing or "
                     "negative",
                     err);
    place->kind = kind[0];
    return copy(at, text, &place->text, err);
}

/* A map of strings or nulls. */
static tdm_status read_values(const struct place *at, const tdm_json_value *map,
                              struct tdmi_delta_entry *entry, tdm_error *err)
{
    size_t n = tdm_json_count(map);
    if (tdm_json_kind_of(map) != TDM_JSON_OBJECT && tdm_json_kind_of(map) != TDM_JSON_NULL)
        return wrong(at, "add", "has \"partitionValues\" that are no object", err);
    if (n > INT32_MAX)
        return wrong(at, "add", "has too many partition values", err);
    entry->n_values = (int)n;
    entry->values = tdmi_arena_alloc(&at->replay->arena, n, sizeof *entry->values);
    TDMI_CHECK_MEMORY(entry->values, err);
    for (size_t i = 0; i < n; i++) {
        const tdm_json_value *value = tdm_json_at(map, i);
        const char *text = tdm_json_as_string(value, NULL);
        if (text == NULL && tdm_json_kind_of(value) != TDM_JSON_NULL)
            return wrong(at, "add", "has a partition value that is neither a string nor null", err);
        TDMI_TRY(copy(at, tdm_json_key_at(map, i), &entry->values[i].key, err));
        if (text != NULL && text[0] != '\0') /* the empty text means null, as does null itself */
            TDMI_TRY(copy(at, text, &entry->values[i].value, err));
    }
    return TDM_OK;
}

/* From the statistics, as text of JSON or (checkpoints) as columns. They are optional: unreadable
 * ones count as none. */
static tdm_status read_rows(const tdm_json_value *add, int64_t *n_rows, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const tdm_json_value *parsed = tdm_json_member(add, "stats_parsed");
    const char *text = tdm_json_as_string(tdm_json_member(add, "stats"), NULL);
    if (text != NULL) {
        tdm_status status = tdm_json_read(text, strlen(text), "the statistics", &document, NULL);
        if (status == TDM_E_MEMORY)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the statistics of a file");
        if (status == TDM_OK)
            parsed = tdm_json_root(document);
    }
    *n_rows = tdm_json_as_integer(tdm_json_member(parsed, "numRecords"), -1);
    return TDM_OK;
}

/* An array of strings; NULL and 0 where it is missing. */
static tdm_status read_strings(const struct place *at, const tdm_json_value *array,
                               const char *action, const char ***strings, size_t *n_strings,
                               tdm_error *err)
{
    size_t n = tdm_json_count(array);
    if (tdm_json_kind_of(array) != TDM_JSON_ARRAY && tdm_json_kind_of(array) != TDM_JSON_NULL)
        return wrong(at, action, "has a list that is no array of strings", err);
    *strings = tdmi_arena_alloc(&at->replay->arena, n, sizeof(const char *));
    TDMI_CHECK_MEMORY(*strings, err);
    for (size_t i = 0; i < n; i++) {
        const char *text = tdm_json_as_string(tdm_json_at(array, i), NULL);
        if (text == NULL)
            return wrong(at, action, "has a list that is no array of strings", err);
        TDMI_TRY(copy(at, text, &(*strings)[i], err));
    }
    *n_strings = n;
    return TDM_OK;
}

/* ---- actions ------------------------------------------------------------------------------- */

static tdm_status read_add(const struct place *at, const tdm_json_value *add, tdm_error *err)
{
    struct tdmi_delta_entry entry = {
        .is_there = true, .file.origin = at->origin, .file.line = at->line};
    struct tdmi_delta_file *file = &entry.file;
    TDMI_TRY(read_path(at, add, "add", &file->path, err));
    TDMI_TRY(read_vector(at, add, "add", &file->deleted, err));
    TDMI_TRY(read_values(at, tdm_json_member(add, "partitionValues"), &entry, err));
    TDMI_TRY(read_rows(add, &file->n_rows, err));
    file->size_bytes = tdm_json_as_integer(tdm_json_member(add, "size"), -1);
    if (file->size_bytes < 0)
        return wrong(at, "add", "has no \"size\", which is a number of bytes", err);
    return put_file(at, entry, err);
}

static tdm_status read_remove(const struct place *at, const tdm_json_value *action, tdm_error *err)
{
    struct tdmi_delta_entry entry = {.file.origin = at->origin, .file.line = at->line};
    TDMI_TRY(read_path(at, action, "remove", &entry.file.path, err));
    TDMI_TRY(read_vector(at, action, "remove", &entry.file.deleted, err));
    return put_file(at, entry, err);
}

static tdm_status read_protocol(const struct place *at, const tdm_json_value *action,
                                tdm_error *err)
{
    tdmi_delta_replay *replay = at->replay;
    replay->reader_version = tdm_json_as_integer(tdm_json_member(action, "minReaderVersion"), -1);
    if (replay->reader_version < 0)
        return wrong(at, "protocol", "has no \"minReaderVersion\", which is a whole number", err);
    replay->has_protocol = true;
    return read_strings(at, tdm_json_member(action, "readerFeatures"), "protocol",
                        &replay->reader_features, &replay->n_reader_features, err);
}

static tdm_status read_metadata(const struct place *at, const tdm_json_value *action,
                                tdm_error *err)
{
    struct tdmi_delta_metadata metadata = {.origin = at->origin, .line = at->line};
    const char *schema = tdm_json_as_string(tdm_json_member(action, "schemaString"), NULL);
    const char *provider = tdm_json_as_string(
        tdm_json_member(tdm_json_member(action, "format"), "provider"), "parquet");
    const char *mapping = tdm_json_as_string(
        tdm_json_member(tdm_json_member(action, "configuration"), "delta.columnMapping.mode"),
        NULL);
    size_t n = 0;
    if (strcmp(provider, "parquet") != 0)
        return wrong(at, "metaData", "says that the files are not Parquet; only that is read", err);
    if (schema == NULL)
        return wrong(at, "metaData", "has no \"schemaString\", which describes the columns", err);
    TDMI_TRY(read_strings(at, tdm_json_member(action, "partitionColumns"), "metaData",
                          &metadata.partition_columns, &n, err));
    if (n > INT32_MAX)
        return wrong(at, "metaData", "has too many partition columns", err);
    metadata.n_partition_columns = (int)n;
    TDMI_TRY(copy(at, schema, &metadata.schema, err));
    if (mapping != NULL)
        TDMI_TRY(copy(at, mapping, &metadata.mapping, err));
    at->replay->metadata = metadata;
    return TDM_OK;
}

static tdm_status read_sidecar(const struct place *at, const tdm_json_value *action, tdm_error *err)
{
    tdmi_delta_replay *replay = at->replay;
    const char *path = NULL;
    TDMI_TRY(read_path(at, action, "sidecar", &path, err));
    TDMI_TRY(TDMI_MAKE_ROOM(replay->sidecars, replay->sidecar_capacity, replay->n_sidecars, err));
    replay->sidecars[replay->n_sidecars++] = path;
    return TDM_OK;
}

static const struct {
    const char *name;
    tdm_status (*read)(const struct place *at, const tdm_json_value *action, tdm_error *err);
} actions[] = {
    {"add", read_add},           {"remove", read_remove},   {"metaData", read_metadata},
    {"protocol", read_protocol}, {"sidecar", read_sidecar},
};
enum { N_ACTIONS = sizeof actions / sizeof actions[0] };

static tdm_status read_action(const struct place *at, const tdm_json_value *root, tdm_error *err)
{
    int found = -1;
    if (tdm_json_kind_of(root) != TDM_JSON_OBJECT)
        return TDM_FAIL(err, TDM_E_INPUT, TDMI_DELTA_AT ": an action is expected, as {\"add\":…}",
                        TDMI_DELTA_POSITION(at));
    for (int i = 0; i < N_ACTIONS; i++) {
        tdm_json_kind kind = tdm_json_kind_of(tdm_json_member(root, actions[i].name));
        if (kind == TDM_JSON_NULL)
            continue;
        if (kind != TDM_JSON_OBJECT)
            return wrong(at, actions[i].name, "is no object", err);
        if (found >= 0)
            return wrong(at, actions[i].name,
                         "stands beside another one; each has an entry of its own", err);
        found = i;
    }
    return found < 0 ? TDM_OK
                     : actions[found].read(at, tdm_json_member(root, actions[found].name), err);
}

/* ---- feeding ------------------------------------------------------------------------------- */

tdm_status tdmi_delta_replay_new(const char *table, tdmi_delta_replay **replay, tdm_error *err)
{
    TDMI_AT_END(tdmi_delta_replay_free_at) tdmi_delta_replay *made = NULL;
    *replay = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->table = tdmi_arena_copy(&made->arena, table);
    TDMI_CHECK_MEMORY(made->table, err);
    *replay = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_delta_replay_free(tdmi_delta_replay *replay)
{
    if (replay == NULL)
        return;
    tdmi_arena_release(&replay->arena);
    tdmi_free(replay->files.entries);
    tdmi_free(replay->files.slots);
    tdmi_free(replay->sidecars);
    tdmi_free(replay);
}

tdm_status tdmi_delta_replay_action(tdmi_delta_replay *replay, const char *origin, int64_t line,
                                    const char *text, size_t length_bytes, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    if (replay->origin == NULL || strcmp(replay->origin, origin) != 0)
        replay->origin = tdmi_arena_copy(&replay->arena, origin);
    TDMI_CHECK_MEMORY(replay->origin, err);
    struct place at = {.replay = replay, .origin = replay->origin, .line = line};
    TDM_TRY(tdm_json_read(text, length_bytes, "the action", &document, err), err, TDMI_DELTA_AT,
            TDMI_DELTA_POSITION(&at));
    return read_action(&at, tdm_json_root(document), err);
}

static bool is_blank(const char *text, size_t length_bytes)
{
    for (size_t i = 0; i < length_bytes; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

tdm_status tdmi_delta_replay_commit(tdmi_delta_replay *replay, const char *origin, const char *text,
                                    size_t length_bytes, tdm_error *err)
{
    int64_t line = 1;
    for (size_t at = 0; at < length_bytes; line++) {
        const char *end = memchr(text + at, '\n', length_bytes - at);
        size_t n = end == NULL ? length_bytes - at : (size_t)(end - (text + at));
        if (!is_blank(text + at, n))
            TDMI_TRY(tdmi_delta_replay_action(replay, origin, line, text + at, n, err));
        at += n + 1;
    }
    return TDM_OK;
}

const char *tdmi_delta_replay_sidecar(const tdmi_delta_replay *replay, int64_t index)
{
    return index < replay->n_sidecars ? replay->sidecars[index] : NULL;
}
