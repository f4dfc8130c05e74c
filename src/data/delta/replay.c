/*
 * Actions are read one by one from JSON, whatever file they came from, and change a small state: a
 * hash table of files by path and deletion vector, the newest protocol and the newest metaData.
 * Their own text is looked into only at the end, because only the last ones count.
 */
#include "data/delta/state.h"

#include "base/memory.h"
#include "data/delta/path.h"
#include "tandem/json.h"
#include <string.h>

/* Position of an action, for messages. */
struct place {
    tdmi_delta_replay *replay;
    const char *origin; /* in the arena of the replay */
    int64_t line;
};

/* ---- sentences ----------------------------------------------------------------------------- */

const char *tdmi_delta_line_word(const char *origin)
{
    static const char parquet[] = ".parquet";
    size_t length = strlen(origin), ending = sizeof parquet - 1;
    return length >= ending && strcmp(origin + length - ending, parquet) == 0 ? "row" : "line";
}

static tdm_status wrong(const struct place *at, const char *action, const char *what,
                        tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, "%s, %s %lld: the action \"%s\" %s", at->origin,
                    tdmi_delta_line_word(at->origin), (long long)at->line, action, what);
}

static tdm_status no_memory(const struct place *at, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the log of '%s'", at->replay->table);
}

/* ---- parts of actions ---------------------------------------------------------------------- */

static tdm_status copy(const struct place *at, const char *text, const char **kept, tdm_error *err)
{
    *kept = tdmi_arena_copy(&at->replay->arena, text);
    return *kept == NULL ? no_memory(at, err) : TDM_OK;
}

static tdm_status read_path(const struct place *at, const tdm_json_value *action, const char *name,
                            const char **path, tdm_error *err)
{
    const char *text = tdm_json_as_string(tdm_json_member(action, "path"), NULL), *why;
    if (text == NULL)
        return wrong(at, name, "has no \"path\", which is a string", err);
    *path = tdmi_delta_path_read(&at->replay->arena, text, &why);
    if (*path == NULL && why == NULL)
        return no_memory(at, err);
    if (*path == NULL)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s, %s %lld: the path '%.120s' of \"%s\" cannot be used: %s", at->origin,
                        tdmi_delta_line_word(at->origin), (long long)at->line, text, name, why);
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
    if (n == 0)
        return TDM_OK;
    entry->values = tdmi_arena_alloc(&at->replay->arena, n, sizeof *entry->values);
    if (entry->values == NULL || n > INT32_MAX)
        return no_memory(at, err);
    entry->n_values = (int)n;
    for (size_t i = 0; i < n; i++) {
        const tdm_json_value *value = tdm_json_at(map, i);
        const char *text = tdm_json_as_string(value, NULL);
        if (text == NULL && tdm_json_kind_of(value) != TDM_JSON_NULL)
            return wrong(at, "add", "has a partition value that is neither a string nor null", err);
        tdm_status status = copy(at, tdm_json_key_at(map, i), &entry->values[i].key, err);
        /* The empty text means null, as does null itself. */
        if (status == TDM_OK && text != NULL && text[0] != '\0')
            status = copy(at, text, &entry->values[i].value, err);
        if (status != TDM_OK)
            return status;
    }
    return TDM_OK;
}

/* From the statistics, as text of JSON or (checkpoints) as columns. They are only a help: what
 * cannot be read says nothing. */
static tdm_status read_rows(const struct place *at, const tdm_json_value *add, int64_t *n_rows,
                            tdm_error *err)
{
    const tdm_json_value *parsed = tdm_json_member(add, "stats_parsed");
    const char *text = tdm_json_as_string(tdm_json_member(add, "stats"), NULL);
    *n_rows = tdm_json_as_integer(tdm_json_member(parsed, "numRecords"), -1);
    if (text == NULL)
        return TDM_OK;
    tdm_json_document *document = NULL;
    tdm_status status = tdm_json_read(text, strlen(text), "the statistics", &document, NULL);
    if (status == TDM_E_MEMORY)
        return no_memory(at, err);
    if (status == TDM_OK)
        *n_rows = tdm_json_as_integer(tdm_json_member(tdm_json_root(document), "numRecords"), -1);
    tdm_json_document_free(document);
    return TDM_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

static tdm_status read_add(const struct place *at, const tdm_json_value *add, tdm_error *err)
{
    struct tdmi_delta_entry entry = {
        .is_there = true, .file.origin = at->origin, .file.line = at->line};
    struct tdmi_delta_file *file = &entry.file;
    tdm_status status = read_path(at, add, "add", &file->path, err);
    if (status == TDM_OK)
        status = read_vector(at, add, "add", &file->deleted, err);
    if (status == TDM_OK)
        status = read_values(at, tdm_json_member(add, "partitionValues"), &entry, err);
    if (status == TDM_OK)
        status = read_rows(at, add, &file->n_rows, err);
    file->size_bytes = tdm_json_as_integer(tdm_json_member(add, "size"), -1);
    if (status == TDM_OK && file->size_bytes < 0)
        status = wrong(at, "add", "has no \"size\", which is a number of bytes", err);
    if (status == TDM_OK && !tdmi_delta_files_put(&at->replay->files, &entry))
        status = no_memory(at, err);
    return status;
}

static tdm_status read_remove(const struct place *at, const tdm_json_value *action, tdm_error *err)
{
    struct tdmi_delta_entry entry = {.file.origin = at->origin, .file.line = at->line};
    tdm_status status = read_path(at, action, "remove", &entry.file.path, err);
    if (status == TDM_OK)
        status = read_vector(at, action, "remove", &entry.file.deleted, err);
    if (status == TDM_OK && !tdmi_delta_files_put(&at->replay->files, &entry))
        status = no_memory(at, err);
    return status;
}

/* ---- the other actions --------------------------------------------------------------------- */

/* An array of strings; NULL and 0 where it is missing. */
static tdm_status read_strings(const struct place *at, const tdm_json_value *array,
                               const char *action, const char ***strings, size_t *n_strings,
                               tdm_error *err)
{
    size_t n = tdm_json_count(array);
    *strings = NULL;
    *n_strings = 0;
    if (tdm_json_kind_of(array) != TDM_JSON_ARRAY && tdm_json_kind_of(array) != TDM_JSON_NULL)
        return wrong(at, action, "has a list that is no array of strings", err);
    if (n == 0)
        return TDM_OK;
    const char **made = tdmi_arena_alloc(&at->replay->arena, n, sizeof(const char *));
    if (made == NULL)
        return no_memory(at, err);
    for (size_t i = 0; i < n; i++) {
        const char *text = tdm_json_as_string(tdm_json_at(array, i), NULL);
        if (text == NULL)
            return wrong(at, action, "has a list that is no array of strings", err);
        tdm_status status = copy(at, text, &made[i], err);
        if (status != TDM_OK)
            return status;
    }
    *strings = made;
    *n_strings = n;
    return TDM_OK;
}

static tdm_status read_protocol(const struct place *at, const tdm_json_value *action,
                                tdm_error *err)
{
    struct tdmi_delta_protocol protocol = {0};
    const char **features = NULL;
    protocol.reader_version = tdm_json_as_integer(tdm_json_member(action, "minReaderVersion"), -1);
    if (protocol.reader_version < 0)
        return wrong(at, "protocol", "has no \"minReaderVersion\", which is a whole number", err);
    tdm_status status = read_strings(at, tdm_json_member(action, "readerFeatures"), "protocol",
                                     &features, &protocol.n_features, err);
    protocol.features = features;
    if (status == TDM_OK) {
        at->replay->protocol = protocol;
        at->replay->has_protocol = true;
    }
    return status;
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
    if (strcmp(provider, "parquet") != 0)
        return wrong(at, "metaData", "says that the files are not Parquet; only that is read", err);
    if (schema == NULL)
        return wrong(at, "metaData", "has no \"schemaString\", which describes the columns", err);
    size_t n = 0;
    tdm_status status = read_strings(at, tdm_json_member(action, "partitionColumns"), "metaData",
                                     &metadata.partition_columns, &n, err);
    if (status == TDM_OK && n > INT32_MAX)
        status = no_memory(at, err);
    metadata.n_partition_columns = (int)n;
    if (status == TDM_OK)
        status = copy(at, schema, &metadata.schema, err);
    if (status == TDM_OK && mapping != NULL)
        status = copy(at, mapping, &metadata.mapping, err);
    if (status == TDM_OK)
        at->replay->metadata = metadata;
    return status;
}

static tdm_status read_sidecar(const struct place *at, const tdm_json_value *action, tdm_error *err)
{
    tdmi_delta_replay *replay = at->replay;
    const char *path = NULL;
    tdm_status status = read_path(at, action, "sidecar", &path, err);
    if (status != TDM_OK)
        return status;
    if (!TDMI_GROW(replay->sidecars, replay->sidecar_capacity, replay->n_sidecars))
        return no_memory(at, err);
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
        return TDM_FAIL(err, TDM_E_INPUT, "%s, %s %lld: an action is expected, as {\"add\":…}",
                        at->origin, tdmi_delta_line_word(at->origin), (long long)at->line);
    for (int i = 0; i < N_ACTIONS; i++) {
        tdm_json_kind kind = tdm_json_kind_of(tdm_json_member(root, actions[i].name));
        if (kind == TDM_JSON_NULL)
            continue;
        if (kind != TDM_JSON_OBJECT || found >= 0)
            return wrong(at, actions[i].name,
                         kind != TDM_JSON_OBJECT ? "is no object"
                                                 : "stands beside another one; each has an entry "
                                                   "of its own",
                         err);
        found = i;
    }
    return found < 0 ? TDM_OK
                     : actions[found].read(at, tdm_json_member(root, actions[found].name), err);
}

/* ---- feeding ------------------------------------------------------------------------------- */

tdm_status tdmi_delta_replay_new(const char *table, tdmi_delta_replay **replay, tdm_error *err)
{
    *replay = tdmi_alloc(1, sizeof **replay);
    if (*replay != NULL) {
        tdmi_arena_init(&(*replay)->arena, 0);
        (*replay)->table = tdmi_arena_copy(&(*replay)->arena, table);
    }
    if (*replay != NULL && (*replay)->table != NULL)
        return TDM_OK;
    tdmi_delta_replay_free(*replay);
    *replay = NULL;
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the log of '%s'", table);
}

void tdmi_delta_replay_free(tdmi_delta_replay *replay)
{
    if (replay == NULL)
        return;
    tdmi_arena_release(&replay->arena);
    tdmi_delta_files_release(&replay->files);
    tdmi_free(replay->sidecars);
    tdmi_free(replay);
}

tdm_status tdmi_delta_replay_action(tdmi_delta_replay *replay, const char *origin, int64_t line,
                                    const char *text, size_t length_bytes, tdm_error *err)
{
    if (replay->origin == NULL || strcmp(replay->origin, origin) != 0)
        replay->origin = tdmi_arena_copy(&replay->arena, origin);
    struct place at = {.replay = replay, .origin = replay->origin, .line = line};
    if (at.origin == NULL)
        return no_memory(&at, err);
    tdm_json_document *document = NULL;
    tdm_status status =
        TDM_WRAP(err, tdm_json_read(text, length_bytes, "the action", &document, err),
                 "%s, %s %lld", origin, tdmi_delta_line_word(origin), (long long)line);
    if (status == TDM_OK)
        status = read_action(&at, tdm_json_root(document), err);
    tdm_json_document_free(document);
    return status;
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
        if (!is_blank(text + at, n)) {
            tdm_status status = tdmi_delta_replay_action(replay, origin, line, text + at, n, err);
            if (status != TDM_OK)
                return status;
        }
        at += n + 1;
    }
    return TDM_OK;
}

int64_t tdmi_delta_replay_sidecars(const tdmi_delta_replay *replay)
{
    return replay->n_sidecars;
}

const char *tdmi_delta_replay_sidecar(const tdmi_delta_replay *replay, int64_t index)
{
    return replay->sidecars[index];
}
