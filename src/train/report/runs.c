/*
 * Run folders read from outside, without their lock. The record says what was done, the outcomes
 * what came of it; a run that is young or of an older version lacks either.
 */
#include "base/file/file.h"
#include "base/text/json.h"
#include "tandem/log.h"
#include "track/lock.h"
#include "track/run.h"
#include "train/evaluate/metrics.h"
#include "train/evaluate/score.h"
#include "train/report/review.h"

#include <string.h>

enum {
    deepest = 4, /* folders below the one that is searched */
    most_metrics_bytes = 1 << 28
};

/* ---- one run ----------------------------------------------------------------------------- */

static const char *text_of(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_string(tdm_json_member(object, key), "");
}

static int64_t integer_of(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_integer(tdm_json_member(object, key), 0);
}

static double number_of(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_number(tdm_json_member(object, key), 0.0);
}

static const char *state_of(const char *path, enum tdmi_run_status status, tdmi_arena *arena)
{
    if (status != TDMI_RUN_RUNNING)
        return tdmi_run_status_name(status);
    const char *lock = tdmi_path_join(arena, path, "lock");
    return lock && !tdmi_lock_is_held(lock) ? "killed" : "running";
}

static bool has_best(const char *path, tdmi_arena *arena)
{
    const char *best = tdmi_path_join(arena, path, "best.safetensors");
    return best && tdmi_file_kind_of(best) != TDMI_FILE_MISSING;
}

/* ---- its curve --------------------------------------------------------------------------- */

static bool read_line(const char *line, size_t length_bytes, struct tdmi_review_epoch *epoch)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    if (tdm_json_read(line, length_bytes, "a line of metrics.jsonl", &document, NULL) != TDM_OK)
        return false;
    const tdm_json_value *root = tdm_json_root(document);
    *epoch = (struct tdmi_review_epoch){
        .epoch = (int)integer_of(root, "epoch"),
        .is_best = tdm_json_as_bool(tdm_json_member(root, "best"), false),
        .learning_rate = number_of(root, "learning_rate"),
        .train = tdmi_score_from_json(tdm_json_member(root, "train")),
        .val = tdmi_score_from_json(tdm_json_member(root, "val")),
    };
    return strcmp(text_of(root, "event"), "epoch") == 0 && epoch->epoch > 0;
}

tdm_status tdmi_review_read_epochs(const char *text, size_t length_bytes, tdmi_arena *arena,
                                   struct tdmi_review_epoch **epochs, size_t *n_epochs,
                                   tdm_error *err)
{
    size_t n_lines = 0;
    const char *end = text + length_bytes;
    *n_epochs = 0;
    for (const char *at = text; at < end; at++)
        n_lines += *at == '\n';
    *epochs = tdmi_arena_alloc(arena, n_lines + 1, sizeof **epochs);
    TDMI_CHECK_MEMORY(*epochs, err);
    /* A last line without its end is being written. */
    for (const char *at = text, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            break;
        *n_epochs += read_line(at, (size_t)(stop - at), &(*epochs)[*n_epochs]);
    }
    return TDM_OK;
}

tdm_status tdmi_review_epochs(const char *run, tdmi_arena *arena, struct tdmi_review_epoch **epochs,
                              size_t *n_epochs, tdm_error *err)
{
    const char *path = tdmi_path_join(arena, run, "metrics.jsonl");
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    size_t length_bytes = 0;
    *epochs = NULL;
    *n_epochs = 0;
    TDMI_CHECK_MEMORY(path, err);
    if (tdmi_file_kind_of(path) == TDMI_FILE_MISSING)
        return TDM_OK;
    TDM_TRY(tdmi_file_read(path, most_metrics_bytes, &bytes, &length_bytes, err), err,
            "reading the curve of %s", run);
    return TDM_WRAP(err, tdmi_review_read_epochs(bytes, length_bytes, arena, epochs, n_epochs, err),
                    "reading the curve of %s", run);
}

/* Progress of a run that has not ended: its place while it runs, and the place where --resume
 * continues when it does not. Epochs after the newest checkpoint are computed again then, so they
 * are not counted; an older version recorded no epochs with it, and only the curve has them. */
static tdm_status read_progress(struct tdm_run *summary, const tdm_json_value *clock,
                                tdm_error *err)
{
    struct tdmi_review_epoch *epochs;
    size_t n;
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    summary->steps = integer_of(clock, "steps");
    summary->epochs = (int)integer_of(clock, "epochs");
    if (strcmp(summary->state, "running") != 0 && tdm_json_member(clock, "epochs"))
        return TDM_OK;
    TDMI_TRY(tdmi_review_epochs(summary->path, &arena, &epochs, &n, err));
    /* A run that went back to a checkpoint counts from there. */
    summary->epochs = n > 0 ? epochs[n - 1].epoch : 0;
    return TDM_OK;
}

/* Summarize the record; what it does not have yet comes from the curve. */
static tdm_status summarize(struct tdmi_review_run *run, tdm_error *err)
{
    const tdm_json_value *root = tdm_json_root(run->record);
    const tdm_json_value *data = tdm_json_member(root, "data");
    const tdm_json_value *result = tdm_json_member(root, "result");
    const tdm_json_value *best = tdm_json_member(root, "validation");
    const tdm_json_value *clock = tdm_json_member(root, "clock");
    struct tdm_run *summary = &run->summary;
    summary->network = text_of(data, "network");
    if (!*summary->network) /* of a version that did not record it there */
        summary->network = text_of(tdm_json_member(root, "options"), "model");
    summary->source = text_of(data, "source");
    if (!*summary->source) /* stopped while its images were being read */
        summary->source = text_of(tdm_json_member(root, "asked"), "source");
    summary->started = text_of(root, "started");
    summary->next_step = summary->next_evidence = "";
    summary->best_epoch = (int)integer_of(best, "epoch");
    summary->val = tdmi_score_from_json(best);
    summary->seconds = number_of(clock, "seconds");
    if (strcmp(summary->state, "finished") != 0 || tdm_json_kind_of(result) != TDM_JSON_OBJECT)
        return read_progress(summary, clock, err);
    const tdm_json_value *next = tdm_json_member(result, "next");
    summary->epochs = (int)integer_of(result, "epochs");
    summary->best_epoch = (int)integer_of(result, "best_epoch");
    summary->steps = integer_of(result, "steps");
    summary->seconds = number_of(result, "seconds");
    summary->train = tdmi_score_from_json(tdm_json_member(result, "train"));
    summary->val = tdmi_score_from_json(tdm_json_member(result, "val"));
    summary->test = tdmi_score_from_json(tdm_json_member(result, "test"));
    summary->tests_before = (int)tdm_json_count(tdm_json_member(result, "tests_before"));
    summary->next_step = text_of(next, "step");
    summary->next_evidence = text_of(next, "evidence");
    return TDM_OK;
}

static tdm_status read_outcomes(struct tdmi_review_run *run, tdmi_arena *arena, tdm_error *err)
{
    const char *path = tdmi_path_join(arena, run->summary.path, TDMI_OUTCOMES_NAME);
    TDMI_CHECK_MEMORY(path, err);
    if (tdmi_file_kind_of(path) == TDMI_FILE_MISSING)
        return TDM_OK;
    TDMI_TRY(tdmi_outcomes_load(path, &run->outcomes, err));
    TDMI_TRY(tdmi_metrics_of(&run->outcomes, run->outcomes.classes, &run->metrics, err));
    run->summary.metrics = &run->metrics;
    return TDM_OK;
}

static void release(struct tdmi_review_run *run)
{
    tdm_metrics_release(&run->metrics);
    tdmi_outcomes_release(&run->outcomes);
    tdm_json_document_free(run->record);
    *run = (struct tdmi_review_run){0};
}

/* Add the run of a folder at the end; nothing where the folder holds no record. */
static tdm_status add(tdm_runs *runs, const char *path, bool needs_metrics, tdm_error *err)
{
    TDMI_AT_END(release) struct tdmi_review_run run = {0};
    enum tdmi_run_status found = TDMI_RUN_NONE;
    TDMI_TRY(tdmi_run_read(path, &found, &run.record, err));
    if (found == TDMI_RUN_NONE)
        return TDM_OK;
    run.summary.path = tdmi_arena_copy(&runs->arena, path);
    TDMI_CHECK_MEMORY(run.summary.path, err);
    run.summary.state = state_of(path, found, &runs->arena);
    TDMI_TRY(summarize(&run, err));
    if (found == TDMI_RUN_FAILED && !has_best(path, &runs->arena))
        run.summary.best_epoch = 0;
    if (needs_metrics)
        TDMI_TRY(read_outcomes(&run, &runs->arena, err));
    TDMI_TRY(TDMI_MAKE_ROOM(runs->runs, runs->capacity, runs->n, err));
    runs->runs[runs->n++] = run;
    run = (struct tdmi_review_run){0};
    return TDM_OK;
}

/* ---- many -------------------------------------------------------------------------------- */

/* A folder that cannot be read does not hide the others. */
static tdm_status pass_over(tdm_status status, const tdm_error *why, tdm_error *err)
{
    char text[TDM_ERROR_TEXT_BYTES];
    if (status != TDM_E_INPUT && status != TDM_E_SYSTEM) {
        if (err)
            *err = *why;
        return status;
    }
    tdm_error_line(why, text, sizeof text);
    tdm_log(TDM_LOG_WARNING, "left out: %s", text);
    return TDM_OK;
}

static tdm_status search(tdm_runs *runs, const char *folder, int depth, tdm_error *err)
{
    struct tdmi_folder_entry *entries;
    size_t n_entries;
    const size_t before = runs->n;
    tdm_error why = {0};
    tdm_status status = add(runs, folder, false, &why);
    if (status == TDM_OK && (runs->n > before || depth == deepest))
        return TDM_OK;
    if (status == TDM_OK)
        status = tdmi_folder_list(folder, &runs->arena, &entries, &n_entries, &why);
    if (status != TDM_OK)
        return pass_over(status, &why, err);
    for (size_t i = 0; i < n_entries; i++) {
        if (entries[i].kind != TDMI_FILE_FOLDER || entries[i].name[0] == '.')
            continue;
        const char *path = tdmi_path_join(&runs->arena, folder, entries[i].name);
        TDMI_CHECK_MEMORY(path, err);
        TDMI_TRY(search(runs, path, depth + 1, err));
    }
    return TDM_OK;
}

TDMI_POINTER_RELEASE(tdm_runs, tdm_runs_close)

tdm_status tdm_runs_find(const char *folder, tdm_runs **runs, tdm_error *err)
{
    TDMI_AT_END(tdm_runs_close_at) tdm_runs *made = NULL;
    *runs = NULL;
    if (tdmi_file_kind_of(folder) != TDMI_FILE_FOLDER)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "there is no folder %s to look for runs in; tandem train makes runs in "
                        "runs/ unless -o says where",
                        folder);
    TDM_TRY(TDMI_NEW(made, 1, err), err, "looking for runs in %s", folder);
    TDM_TRY(search(made, folder, 0, err), err, "looking for runs in %s", folder);
    *runs = tdmi_take(&made);
    return TDM_OK;
}

tdm_status tdm_runs_read(const char *const *paths, size_t n_paths, tdm_runs **runs, tdm_error *err)
{
    TDMI_AT_END(tdm_runs_close_at) tdm_runs *made = NULL;
    *runs = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    for (size_t i = 0; i < n_paths; i++) {
        tdm_status status = add(made, paths[i], true, err);
        if (status == TDM_OK && made->n != i + 1)
            status = TDM_FAIL(err, TDM_E_INPUT,
                              "%s is no run: it has no run.json; give a folder that tandem train "
                              "made",
                              paths[i]);
        TDM_TRY(status, err, "looking at the run %s", paths[i]);
    }
    for (size_t i = 0; i < n_paths; i++) /* the array has stopped moving */
        if (made->runs[i].summary.metrics)
            made->runs[i].summary.metrics = &made->runs[i].metrics;
    *runs = tdmi_take(&made);
    return TDM_OK;
}

void tdm_runs_close(tdm_runs *runs)
{
    if (!runs)
        return;
    for (size_t i = 0; i < runs->n; i++)
        release(&runs->runs[i]);
    tdmi_free(runs->runs);
    tdmi_arena_release(&runs->arena);
    tdmi_free(runs);
}

size_t tdm_runs_count(const tdm_runs *runs)
{
    return runs->n;
}

const struct tdm_run *tdm_runs_at(const tdm_runs *runs, size_t index)
{
    return index < runs->n ? &runs->runs[index].summary : NULL;
}
