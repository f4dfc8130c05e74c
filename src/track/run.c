/*
 * The run folder. run.json is kept as a list of sections, each as recorded before or as set since,
 * and rewritten whole at every save; a reader sees the old record or the new one.
 *
 * A folder is checked before anything is written into it: a wrong -o leaves no lock file among
 * other documents. It is checked again under the lock, because another process may just have begun.
 */
#include "track/run.h"
#include "track/lines.h"
#include "track/lock.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/text/json.h"
#include <string.h>
#include <unistd.h>

enum { SECTIONS = 32 };
static const size_t record_limit_bytes = (size_t)256 << 20;

struct section {
    const char *name;
    const tdm_json_value *recorded;
    tdm_json_document *set; /* takes the place of recorded */
};

struct tdmi_run {
    tdmi_arena arena;
    const char *path, *record_path;
    tdmi_lock *lock;
    tdm_json_document *found;
    enum tdmi_run_status found_status;
    struct section sections[SECTIONS];
    int n_sections;
    const char *started;
    int64_t sittings;
    bool is_counted;  /* this sitting, in sittings */
    bool is_made;     /* this sitting made the folder */
    bool is_opened;   /* lines in the folder are this sitting's */
    bool is_followed; /* another process owns the folder: nothing is written */
    tdmi_lines metrics;
};

static const char *const status_names[] = {
    [TDMI_RUN_NONE] = "none",         [TDMI_RUN_RUNNING] = "running",
    [TDMI_RUN_FINISHED] = "finished", [TDMI_RUN_STOPPED] = "stopped",
    [TDMI_RUN_FAILED] = "failed",
};
enum { STATUSES = sizeof status_names / sizeof *status_names };

static const char *const own_members[] = {"format_version", "tandem", "status",
                                          "started",        "ended",  "sittings"};

const char *tdmi_run_status_name(enum tdmi_run_status status)
{
    return (unsigned)status < STATUSES ? status_names[status] : "?";
}

static bool is_own_member(const char *name)
{
    for (size_t i = 0; i < sizeof own_members / sizeof *own_members; i++)
        if (strcmp(own_members[i], name) == 0)
            return true;
    return false;
}

/* ---- reading a record ------------------------------------------------------------------- */

static tdm_status check_record(const char *path, const tdm_json_value *root,
                               enum tdmi_run_status *status, tdm_error *err)
{
    int64_t version = tdm_json_as_integer(tdm_json_member(root, "format_version"), 0);
    if (version < 1)
        return TDM_FAIL(err, TDM_E_INPUT, "%s is no run record: it has no format_version", path);
    if (version > TDMI_RUN_FORMAT_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has format_version %lld, this tandem %s reads up to %d: use a newer "
                        "tandem",
                        path, (long long)version, tdm_version(), TDMI_RUN_FORMAT_VERSION);
    const char *name = tdm_json_as_string(tdm_json_member(root, "status"), "(none)");
    for (int i = TDMI_RUN_RUNNING; i < STATUSES; i++)
        if (strcmp(name, status_names[i]) == 0) {
            *status = (enum tdmi_run_status)i;
            return TDM_OK;
        }
    return TDM_FAIL(err, TDM_E_INPUT,
                    "%s has status '%.40s'; running, finished, stopped or failed is known", path,
                    name);
}

static tdm_status read_record(const char *path, enum tdmi_run_status *status,
                              tdm_json_document **document, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *made = NULL;
    size_t n_bytes = 0;
    *status = TDMI_RUN_NONE;
    *document = NULL;
    if (tdmi_file_kind_of(path) == TDMI_FILE_MISSING)
        return TDM_OK;
    TDMI_TRY(tdmi_file_read(path, record_limit_bytes, &bytes, &n_bytes, err));
    TDMI_TRY(tdm_json_read(bytes, n_bytes, path, &made, err));
    TDMI_TRY(check_record(path, tdm_json_root(made), status, err));
    *document = tdmi_take(&made);
    return TDM_OK;
}

tdm_status tdmi_run_read(const char *path, enum tdmi_run_status *status,
                         tdm_json_document **document, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {.block_bytes = 1024};
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *made = NULL;
    enum tdmi_run_status found = TDMI_RUN_NONE;
    const char *record = tdmi_path_join(&arena, path, "run.json");
    const tdm_status result =
        record ? read_record(record, &found, &made, err)
               : TDM_FAIL(err, TDM_E_MEMORY, "no memory to read %s/run.json", path);
    if (status != NULL)
        *status = found;
    if (document != NULL)
        *document = tdmi_take(&made);
    return result;
}

/* ---- opening ---------------------------------------------------------------------------- */

static bool is_temporary(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && name[0] == '.' && strcmp(name + n - 4, ".tmp") == 0;
}

static void remove_leftover(tdmi_arena *arena, const char *folder, const char *name)
{
    const char *leftover = tdmi_path_join(arena, folder, name);
    if (leftover != NULL)
        (void)unlink(leftover);
}

/* May the folder be used in this mode? Names that start with a dot, our lock, and lines without a
 * record (of a training that ended before it began) do not count as content. Under the lock,
 * temporary files of killed writers are removed, and a new run begins without lines. */
static tdm_status check_folder(const char *path, enum tdmi_run_mode mode, bool is_locked,
                               tdm_error *err)
{
    struct tdmi_folder_entry *entries = NULL;
    size_t n_entries = 0;
    const char *other = NULL;
    bool has_record = false, has_lines = false;
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_TRY(tdmi_folder_list(path, &arena, &entries, &n_entries, err));
    for (size_t i = 0; i < n_entries; i++) {
        const char *name = entries[i].name;
        if (strcmp(name, "run.json") == 0)
            has_record = true;
        else if (strcmp(name, "metrics.jsonl") == 0)
            has_lines = true;
        else if (is_locked && is_temporary(name))
            remove_leftover(&arena, path, name);
        else if (other == NULL && name[0] != '.' && strcmp(name, "lock") != 0 &&
                 strcmp(name, "lock.held") != 0 && strcmp(name, TDMI_RUN_KERNELS) != 0)
            other = name;
    }
    if (has_record && mode == TDMI_RUN_NEW)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "%s holds a run already: --resume continues it, or give another -o", path);
    if (!has_record && other != NULL)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "%s is no run folder but holds other files ('%s'): give another -o, or "
                        "empty it",
                        path, other);
    if (!has_record && has_lines && is_locked)
        remove_leftover(&arena, path, "metrics.jsonl");
    return TDM_OK;
}

static tdm_status adopt_record(tdmi_run *run, tdm_error *err)
{
    const tdm_json_value *root = tdm_json_root(run->found);
    run->started = tdm_json_as_string(tdm_json_member(root, "started"), NULL);
    run->sittings = tdm_json_as_integer(tdm_json_member(root, "sittings"), 0);
    for (size_t i = 0; i < tdm_json_count(root); i++) {
        const char *name = tdm_json_key_at(root, i);
        if (is_own_member(name))
            continue;
        if (run->n_sections == SECTIONS)
            return TDM_FAIL(err, TDM_E_INPUT, "%s has more than %d sections", run->record_path,
                            SECTIONS);
        run->sections[run->n_sections++] =
            (struct section){.name = name, .recorded = tdm_json_at(root, i)};
    }
    return TDM_OK;
}

static tdm_status look(const char *path, enum tdmi_run_mode mode, bool *is_missing, tdm_error *err)
{
    const enum tdmi_file_kind kind = tdmi_file_kind_of(path);
    *is_missing = kind == TDMI_FILE_MISSING;
    if (kind == TDMI_FILE_FORBIDDEN)
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "%s may not be looked at: it, or a folder above it, is closed to this "
                        "user; give another -o",
                        path);
    if (kind != TDMI_FILE_MISSING && kind != TDMI_FILE_FOLDER)
        return TDM_FAIL(err, TDM_E_USAGE, "%s is a file; a run needs a folder: give another -o",
                        path);
    return *is_missing ? TDM_OK : check_folder(path, mode, false, err);
}

tdm_status tdmi_run_look(const char *path, enum tdmi_run_mode mode, tdm_error *err)
{
    bool is_missing;
    return look(path, mode, &is_missing, err);
}

static tdm_status fill_run(tdmi_run *run, const char *path, enum tdmi_run_mode mode, tdm_error *err)
{
    run->path = tdmi_arena_copy(&run->arena, path);
    run->record_path = tdmi_path_join(&run->arena, path, "run.json");
    const char *lock = tdmi_path_join(&run->arena, path, "lock");
    const char *metrics = tdmi_path_join(&run->arena, path, "metrics.jsonl");
    TDMI_CHECK_MEMORY(run->path && run->record_path && lock && metrics, err);
    tdmi_lines_init(&run->metrics, metrics);
    TDMI_TRY(look(path, mode, &run->is_made, err));
    if (run->is_made)
        TDMI_TRY(tdmi_folder_make(path, err));
    TDMI_TRY(tdmi_lock_take(lock, &run->lock, err));
    TDMI_TRY(check_folder(path, mode, true, err));
    TDMI_TRY(read_record(run->record_path, &run->found_status, &run->found, err));
    TDMI_TRY(adopt_record(run, err));
    run->is_opened = true;
    return TDM_OK;
}

tdm_status tdmi_run_open(const char *path, enum tdmi_run_mode mode, tdmi_run **run, tdm_error *err)
{
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDMI_TRY(fill_run(made, path, mode, err));
    *run = tdmi_take(&made);
    return TDM_OK;
}

static tdm_status fill_followed(tdmi_run *run, const char *path, const void *record,
                                size_t record_bytes, tdm_error *err)
{
    run->is_followed = true;
    run->path = tdmi_arena_copy(&run->arena, path);
    run->record_path = tdmi_path_join(&run->arena, path, "run.json");
    TDMI_CHECK_MEMORY(run->path && run->record_path, err);
    if (!record)
        return TDM_OK;
    TDMI_TRY(tdm_json_read(record, record_bytes, run->record_path, &run->found, err));
    TDMI_TRY(check_record(run->record_path, tdm_json_root(run->found), &run->found_status, err));
    return adopt_record(run, err);
}

tdm_status tdmi_run_follow(const char *path, const void *record, size_t record_bytes,
                           tdmi_run **run, tdm_error *err)
{
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDMI_TRY(fill_followed(made, path, record, record_bytes, err));
    *run = tdmi_take(&made);
    return TDM_OK;
}

/* A run that ended before its first save leaves nothing: remove the files of this sitting. */
static void leave_nothing(tdmi_run *run)
{
    char *metrics = tdmi_path_join(&run->arena, run->path, "metrics.jsonl");
    if (run->is_opened && metrics != NULL)
        (void)unlink(metrics);
    tdmi_lock_remove(run->lock);
    if (run->is_made)
        (void)rmdir(run->path); /* it stays when someone put a file there */
}

void tdmi_run_close(tdmi_run *run)
{
    if (run == NULL)
        return;
    if (!run->is_followed)
        tdmi_lines_release(&run->metrics);
    for (int i = 0; i < run->n_sections; i++)
        tdm_json_document_free(run->sections[i].set);
    tdm_json_document_free(run->found);
    if (run->lock != NULL && run->found_status == TDMI_RUN_NONE && !run->is_counted)
        leave_nothing(run);
    else if (run->lock != NULL)
        tdmi_lock_give(run->lock);
    tdmi_arena_release(&run->arena);
    tdmi_free(run);
}

const char *tdmi_run_path(const tdmi_run *run)
{
    return run->path;
}

bool tdmi_run_is_followed(const tdmi_run *run)
{
    return run->is_followed;
}

enum tdmi_run_status tdmi_run_found(const tdmi_run *run)
{
    return run->found_status;
}

const tdm_json_value *tdmi_run_recorded(const tdmi_run *run, const char *section)
{
    return run->found == NULL ? NULL : tdm_json_member(tdm_json_root(run->found), section);
}

/* ---- the record ------------------------------------------------------------------------- */

tdm_status tdmi_run_set(tdmi_run *run, const char *section, const char *json, tdm_error *err)
{
    int at = 0;
    tdm_json_document *document = NULL;
    if (is_own_member(section))
        return TDM_FAIL(err, TDM_E_BUG, "'%s' of a run record is not to be set", section);
    while (at < run->n_sections && strcmp(run->sections[at].name, section) != 0)
        at++;
    if (at == SECTIONS)
        return TDM_FAIL(err, TDM_E_BUG, "section '%s' of a run record: %d is the limit", section,
                        SECTIONS);
    const char *name =
        at < run->n_sections ? run->sections[at].name : tdmi_arena_copy(&run->arena, section);
    TDMI_CHECK_MEMORY(name, err);
    TDM_TRY(tdm_json_read(json, strlen(json), section, &document, err), err,
            "section '%s' of the run record %s", section, run->record_path);
    tdm_json_document_free(run->sections[at].set);
    run->sections[at].name = name;
    run->sections[at].set = document;
    if (at == run->n_sections)
        run->n_sections++;
    return TDM_OK;
}

void tdmi_run_forget(tdmi_run *run, const char *section)
{
    for (int i = 0; i < run->n_sections; i++) {
        if (strcmp(run->sections[i].name, section) != 0)
            continue;
        tdm_json_document_free(run->sections[i].set);
        run->n_sections--;
        memmove(&run->sections[i], &run->sections[i + 1],
                sizeof *run->sections * (size_t)(run->n_sections - i));
        return;
    }
}

tdm_status tdmi_run_check(const tdmi_run *run, tdm_error *err)
{
    if (run->is_followed || tdmi_lock_is_in_place(run->lock))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_SYSTEM,
                    "the run folder %s was removed, renamed or replaced while the run worked in it",
                    run->path);
}

tdm_status tdmi_run_save(tdmi_run *run, enum tdmi_run_status status, tdm_error *err)
{
    char now[21];
    const char *text = NULL;
    size_t n_bytes = 0;
    if (run->is_followed)
        return TDM_OK;
    TDM_TRY(tdmi_run_check(run, err), err, "writing the record of the run");
    if (status <= TDMI_RUN_NONE || (unsigned)status >= STATUSES)
        return TDM_FAIL(err, TDM_E_BUG, "%d is no status of a run", (int)status);
    tdmi_clock_utc(now);
    if (run->started == NULL)
        run->started = tdmi_arena_copy(&run->arena, now);
    TDMI_CHECK_MEMORY(run->started, err);
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(2);
    tdm_json_object_begin(json, NULL);
    tdm_json_integer(json, "format_version", TDMI_RUN_FORMAT_VERSION);
    tdm_json_string(json, "tandem", tdm_version());
    tdm_json_string(json, "status", status_names[status]);
    tdm_json_string(json, "started", run->started);
    tdm_json_string(json, "ended", status == TDMI_RUN_RUNNING ? NULL : now);
    tdm_json_integer(json, "sittings", run->sittings + !run->is_counted);
    for (int i = 0; i < run->n_sections; i++) {
        const struct section *section = &run->sections[i];
        tdmi_json_copy(json, section->name,
                       section->set != NULL ? tdm_json_root(section->set) : section->recorded);
    }
    tdm_json_object_end(json);
    TDMI_TRY(tdm_json_finish(json, &text, &n_bytes, err));
    TDMI_TRY(tdmi_file_write_in_folder(run->record_path, text, n_bytes, err));
    run->sittings += !run->is_counted;
    run->is_counted = true;
    return TDM_OK;
}

/* ---- metrics ---------------------------------------------------------------------------- */

tdm_status tdmi_run_line(tdmi_run *run, const char *json, size_t length_bytes, tdm_error *err)
{
    return run->is_followed ? TDM_OK : tdmi_lines_add(&run->metrics, json, length_bytes, err);
}

tdm_status tdmi_run_sync(tdmi_run *run, tdm_error *err)
{
    return run->is_followed ? TDM_OK : tdmi_lines_sync(&run->metrics, err);
}

tdm_status tdmi_run_cut(tdmi_run *run, struct tdmi_lines_end end, tdm_error *err)
{
    return run->is_followed ? TDM_OK : tdmi_lines_cut(&run->metrics, end, err);
}
