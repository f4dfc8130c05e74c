/*
 * The folder is listed whole and its names are sufficient, so the hint _last_checkpoint, the
 * compacted commits and the checksums beside them are not needed. The newest whole checkpoint that
 * is not too new is taken, and then every commit after it.
 */
#include "data/delta/log.h"

#include "data/delta/replay.h"
#include "io/storage/storage.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOG "_delta_log"

enum { VERSION_DIGITS = 20, PART_DIGITS = 10 };
static const int64_t largest_commit_bytes = (int64_t)1 << 30;

/* The order among checkpoints of one version: they have the same content. */
enum checkpoint_kind { NO_CHECKPOINT, CLASSIC, PARTS, SECOND_JSON, SECOND_PARQUET };

struct name {
    const char *text; /* NULL: none of those looked for */
    int64_t version, part, n_parts;
    enum checkpoint_kind checkpoint; /* NO_CHECKPOINT: a commit */
};

struct log {
    const char *path, *folder;
    tdmi_arena arena;
    struct name *names; /* by bytes, so by version */
    int64_t n_names;
    int64_t last; /* the newest version there is; -1: none */
};

/* ---- names --------------------------------------------------------------------------------- */

/* Exactly n digits whose number fits. *rest is what follows. */
static bool read_number(const char *text, int n, int64_t *number, const char **rest)
{
    *number = 0;
    for (int i = 0; i < n; i++, text++) {
        if (*text < '0' || *text > '9' || *number > (INT64_MAX - 9) / 10)
            return false;
        *number = 10 * *number + (*text - '0');
    }
    *rest = text;
    return true;
}

static struct name name_of(const char *text)
{
    static const char checkpoint[] = ".checkpoint.";
    struct name name = {.text = text};
    const char *rest;
    if (!read_number(text, VERSION_DIGITS, &name.version, &rest))
        return (struct name){0};
    if (strcmp(rest, ".json") == 0)
        return name;
    if (strncmp(rest, checkpoint, sizeof checkpoint - 1) != 0)
        return (struct name){0};
    rest += sizeof checkpoint - 1;
    if (strcmp(rest, "parquet") == 0)
        name.checkpoint = CLASSIC;
    else if (read_number(rest, PART_DIGITS, &name.part, &rest) && *rest == '.' &&
             read_number(rest + 1, PART_DIGITS, &name.n_parts, &rest) &&
             strcmp(rest, ".parquet") == 0 && name.part >= 1 && name.part <= name.n_parts)
        name.checkpoint = PARTS;
    else if (rest[0] != '\0' && tdmi_ends_with(rest + 1, ".json"))
        name.checkpoint = SECOND_JSON;
    else if (rest[0] != '\0' && tdmi_ends_with(rest + 1, ".parquet"))
        name.checkpoint = SECOND_PARQUET;
    else
        return (struct name){0};
    return name;
}

/* Are both of one checkpoint in parts? */
static bool is_part_of(const struct name *name, const struct name *first)
{
    return name->checkpoint == PARTS && name->version == first->version &&
           name->n_parts == first->n_parts;
}

/* A part counts when it is the first of a set that is there whole; the others follow it. */
static bool is_whole(const struct log *log, int64_t index)
{
    const struct name *first = &log->names[index];
    if (first->checkpoint != PARTS)
        return first->checkpoint != NO_CHECKPOINT;
    if (first->part != 1)
        return false;
    int64_t n = 0;
    for (int64_t i = index; i < log->n_names && log->names[i].version == first->version; i++)
        n += is_part_of(&log->names[i], first);
    return n == first->n_parts;
}

static tdm_status list(struct log *log, tdm_error *err)
{
    struct tdmi_place_entry *entries = NULL;
    size_t n_entries = 0;
    log->folder = tdmi_path_join(&log->arena, log->path, LOG);
    TDMI_CHECK_MEMORY(log->folder, err);
    TDM_TRY(tdmi_storage_list(log->folder, false, &log->arena, &entries, &n_entries, err), err,
            "cannot list the log of '%s'", log->path);
    log->names = tdmi_arena_alloc(&log->arena, n_entries, sizeof *log->names);
    TDMI_CHECK_MEMORY(log->names, err);
    for (size_t i = 0; i < n_entries; i++) {
        struct name name = name_of(entries[i].name);
        if (name.text != NULL && entries[i].kind == TDMI_FILE_REGULAR)
            log->names[log->n_names++] = name;
    }
    log->last = -1;
    for (int64_t i = 0; i < log->n_names; i++)
        if (log->names[i].checkpoint == NO_CHECKPOINT || is_whole(log, i))
            log->last = log->names[i].version;
    return TDM_OK;
}

/* ---- reading files ------------------------------------------------------------------------- */

/* A commit or checkpoint by its name in the log's folder: a text of actions, or Parquet. */
static tdm_status read_file(const struct log *log, tdmi_delta_replay *replay, const char *name,
                            bool is_text, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    const char *origin = tdmi_path_join(&arena, LOG, name);
    const char *path = tdmi_path_join(&arena, log->folder, name);
    TDMI_CHECK_MEMORY(origin != NULL && path != NULL, err);
    if (!is_text)
        return tdmi_delta_checkpoint_read(replay, path, origin, err);
    TDMI_TRY(tdmi_storage_read_file(path, largest_commit_bytes, &text, err));
    if (text.length_bytes == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "%s is empty: it was not written to its end, or was lost",
                        origin);
    return tdmi_delta_replay_commit(replay, origin, text.bytes, text.length_bytes, err);
}

static tdm_status read_checkpoint(const struct log *log, tdmi_delta_replay *replay, int64_t index,
                                  tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const struct name *first = &log->names[index];
    int64_t n_sidecars = 0;
    if (first->checkpoint != PARTS)
        TDMI_TRY(read_file(log, replay, first->text, first->checkpoint == SECOND_JSON, err));
    for (int64_t i = index; first->checkpoint == PARTS && i < log->n_names; i++)
        if (is_part_of(&log->names[i], first))
            TDMI_TRY(read_file(log, replay, log->names[i].text, false, err));
    while (tdmi_delta_replay_sidecar(replay, n_sidecars) != NULL)
        n_sidecars++;
    for (int64_t i = 0; i < n_sidecars; i++) { /* not those that a sidecar would name */
        const char *path = tdmi_delta_replay_sidecar(replay, i);
        /* Sidecars lie in a folder of their own, whatever else their paths may be. */
        const char *name = tdmi_path_join(&arena, "_sidecars", tdmi_path_name(path));
        TDMI_CHECK_MEMORY(name, err);
        TDMI_TRY(read_file(log, replay, name, false, err));
    }
    return TDM_OK;
}

/* ---- versions ------------------------------------------------------------------------------ */

/* The index of the newest whole checkpoint up to the version, or -1. */
static int64_t checkpoint_for(const struct log *log, int64_t version)
{
    int64_t best = -1;
    for (int64_t i = 0; i < log->n_names && log->names[i].version <= version; i++)
        if (is_whole(log, i) && (best < 0 || log->names[i].version > log->names[best].version ||
                                 log->names[i].checkpoint < log->names[best].checkpoint))
            best = i;
    return best;
}

static tdm_status check_version(const struct log *log, int64_t version, tdm_error *err)
{
    if (log->last < 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the folder '%s' holds no commit (as %020d.json) and no whole checkpoint",
                        log->folder, 0);
    if (version > log->last)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "there is no version %" PRId64 " of '%s'; the newest is %" PRId64, version,
                        log->path, log->last);
    return TDM_OK;
}

static tdm_status replay_to(const struct log *log, tdmi_delta_replay *replay, int64_t version,
                            tdm_error *err)
{
    int64_t checkpoint = checkpoint_for(log, version), next = 0;
    if (checkpoint >= 0) {
        next = log->names[checkpoint].version + 1;
        TDMI_TRY(read_checkpoint(log, replay, checkpoint, err));
    }
    for (int64_t i = 0; i < log->n_names && next <= version; i++) {
        const struct name *name = &log->names[i];
        if (name->checkpoint != NO_CHECKPOINT || name->version < next)
            continue;
        if (name->version > next)
            break;
        TDMI_TRY(read_file(log, replay, name->text, true, err));
        next++;
    }
    if (next > version)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "version %" PRId64 " of '%s' cannot be made: the commit " LOG "/%020" PRId64
                    ".json is missing, and no checkpoint stands for it",
                    version, log->path, next);
}

static tdm_status read_version(struct log *log, int64_t version, struct tdmi_delta_table *table,
                               tdm_error *err)
{
    TDMI_AT_END(tdmi_delta_replay_free_at) tdmi_delta_replay *replay = NULL;
    TDMI_TRY(list(log, err));
    TDMI_TRY(check_version(log, version, err));
    TDMI_TRY(tdmi_delta_replay_new(log->path, &replay, err));
    if (version < 0)
        version = log->last;
    TDMI_TRY(replay_to(log, replay, version, err));
    return tdmi_delta_replay_finish(replay, version, table, err);
}

tdm_status tdmi_delta_log_read(const char *path, int64_t version, struct tdmi_delta_table *table,
                               tdm_error *err)
{
    struct log log = {.path = path};
    *table = (struct tdmi_delta_table){0};
    tdm_status status = read_version(&log, version, table, err);
    tdmi_arena_release(&log.arena);
    return TDM_WRAP(err, status, "cannot read the log of the Delta table '%s'", path);
}

/* ---- paths --------------------------------------------------------------------------------- */

bool tdmi_delta_is_table(const char *path)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const char *folder = tdmi_path_join(&arena, path, LOG);
    return folder != NULL && tdmi_storage_kind(folder) == TDMI_FILE_FOLDER;
}

bool tdmi_delta_path_version(const char *path, tdmi_arena *arena, const char **table,
                             int64_t *version)
{
    const char *mark = strrchr(path, '@'), *rest;
    int64_t number = -1;
    *table = path;
    *version = -1;
    int n = mark == NULL || mark[1] != 'v' ? 0 : (int)strspn(mark + 2, "0123456789");
    if (n == 0 || n >= VERSION_DIGITS || !read_number(mark + 2, n, &number, &rest) ||
        *rest != '\0' || mark == path || tdmi_storage_kind(path) != TDMI_FILE_MISSING)
        return true;
    *table = tdmi_arena_printf(arena, "%.*s", (int)(mark - path), path);
    *version = number;
    return *table != NULL;
}
