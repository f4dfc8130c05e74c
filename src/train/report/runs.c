/*
 * Run folders read from outside, without their lock. The record says what was done, the outcomes
 * what came of it; a run that is young or of an older version lacks either.
 */
#include "base/file/file.h"
#include "base/memory.h"
#include "tandem/log.h"
#include "track/lock.h"
#include "track/run.h"
#include "train/evaluate/metrics.h"
#include "train/model/model_file.h"
#include "train/report/review.h"

#include <string.h>

enum { deepest = 4 }; /* folders below the one that is searched */

/* ---- one run ----------------------------------------------------------------------------- */

tdm_score tdmi_review_score(const tdm_json_value *object)
{
    const int64_t n = tdm_json_as_integer(tdm_json_member(object, "n"), 0);
    const int64_t correct = tdm_json_as_integer(tdm_json_member(object, "correct"), 0);
    if (n <= 0 || correct < 0 || correct > n)
        return (tdm_score){0};
    tdm_score score = tdmi_score_of(n, correct, 0.0);
    score.loss = tdm_json_as_number(tdm_json_member(object, "loss"), 0.0);
    return score;
}

static const char *text_of(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_string(tdm_json_member(object, key), "");
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

/* Of a run that has not ended: where it is while it runs, and where --resume goes on from when it
 * does not. Lines after the newest checkpoint are made again then, so they are not counted; an
 * older version recorded no epochs with it, and the curve is what there is. */
static tdm_status report_progress(struct tdm_run *told, const tdm_json_value *clock, tdm_error *err)
{
    told->steps = tdm_json_as_integer(tdm_json_member(clock, "steps"), 0);
    if (strcmp(told->state, "running") == 0 || !tdm_json_member(clock, "epochs"))
        return tdmi_review_last_epoch(told->path, &told->epochs, err);
    told->epochs = (int)tdm_json_as_integer(tdm_json_member(clock, "epochs"), 0);
    return TDM_OK;
}

/* From the record, whose document stays the run's; what it does not say yet from the curve. */
static tdm_status tell(struct tdmi_review_run *run, tdm_error *err)
{
    const tdm_json_value *root = tdm_json_root(run->record);
    const tdm_json_value *data = tdm_json_member(root, "data");
    const tdm_json_value *result = tdm_json_member(root, "result");
    const tdm_json_value *best = tdm_json_member(root, "validation");
    const tdm_json_value *clock = tdm_json_member(root, "clock");
    struct tdm_run *told = &run->told;
    told->network = text_of(data, "network");
    if (!*told->network) /* of a version that did not record it there */
        told->network = text_of(tdm_json_member(root, "options"), "model");
    told->source = text_of(data, "source");
    if (!*told->source) /* stopped while its pictures were looked at */
        told->source = text_of(tdm_json_member(root, "asked"), "source");
    told->started = text_of(root, "started");
    told->next_step = told->next_evidence = "";
    told->best_epoch = (int)tdm_json_as_integer(tdm_json_member(best, "epoch"), 0);
    told->val = tdmi_review_score(best);
    told->seconds = tdm_json_as_number(tdm_json_member(clock, "seconds"), 0.0);
    if (strcmp(told->state, "finished") != 0 || tdm_json_kind_of(result) != TDM_JSON_OBJECT)
        return report_progress(told, clock, err);
    told->epochs = (int)tdm_json_as_integer(tdm_json_member(result, "epochs"), 0);
    told->best_epoch = (int)tdm_json_as_integer(tdm_json_member(result, "best_epoch"), 0);
    told->steps = tdm_json_as_integer(tdm_json_member(result, "steps"), 0);
    told->seconds = tdm_json_as_number(tdm_json_member(result, "seconds"), 0.0);
    told->train = tdmi_review_score(tdm_json_member(result, "train"));
    told->val = tdmi_review_score(tdm_json_member(result, "val"));
    told->test = tdmi_review_score(tdm_json_member(result, "test"));
    told->tests_before = (int)tdm_json_count(tdm_json_member(result, "tests_before"));
    told->next_step = text_of(tdm_json_member(result, "next"), "step");
    told->next_evidence = text_of(tdm_json_member(result, "next"), "evidence");
    return TDM_OK;
}

static tdm_status read_outcomes(struct tdmi_review_run *run, tdmi_arena *arena, tdm_error *err)
{
    const char *path = tdmi_path_join(arena, run->told.path, TDMI_OUTCOMES_NAME);
    if (!path)
        return TDM_FAIL(err, TDM_E_MEMORY, "looking at a run: out of memory");
    if (tdmi_file_kind_of(path) == TDMI_FILE_MISSING)
        return TDM_OK;
    tdm_status status = tdmi_outcomes_load(path, &run->outcomes, err);
    if (status == TDM_OK)
        status = tdmi_metrics_of(&run->outcomes, run->outcomes.classes, &run->metrics, err);
    if (status == TDM_OK)
        run->told.metrics = &run->metrics;
    return status;
}

static void release(struct tdmi_review_run *run)
{
    tdm_metrics_release(&run->metrics);
    tdmi_outcomes_release(&run->outcomes);
    tdm_json_document_free(run->record);
    *run = (struct tdmi_review_run){0};
}

/* One more at the end; not where the folder holds no record. */
static tdm_status add(tdm_runs *runs, const char *path, bool wants_metrics, tdm_error *err)
{
    struct tdmi_review_run run = {0};
    enum tdmi_run_status status_found = TDMI_RUN_NONE;
    tdm_status status = tdmi_run_read(path, &status_found, &run.record, err);
    if (status != TDM_OK || status_found == TDMI_RUN_NONE) {
        tdm_json_document_free(run.record);
        return status;
    }
    if (!TDMI_GROW(runs->runs, runs->capacity, runs->n)) {
        release(&run);
        return TDM_FAIL(err, TDM_E_MEMORY, "listing more than %zu runs: out of memory", runs->n);
    }
    struct tdmi_review_run *kept = &runs->runs[runs->n++];
    *kept = run;
    kept->told.path = tdmi_arena_copy(&runs->arena, path);
    if (!kept->told.path)
        return TDM_FAIL(err, TDM_E_MEMORY, "listing runs: out of memory");
    kept->told.state = state_of(path, status_found, &runs->arena);
    status = tell(kept, err);
    if (status == TDM_OK && status_found == TDMI_RUN_FAILED && !has_best(path, &runs->arena))
        kept->told.best_epoch = 0;
    return status == TDM_OK && wants_metrics ? read_outcomes(kept, &runs->arena, err) : status;
}

/* ---- many -------------------------------------------------------------------------------- */

/* One folder that cannot be read does not hide the others. */
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
    for (size_t i = 0; i < n_entries && status == TDM_OK; i++) {
        if (entries[i].kind != TDMI_FILE_FOLDER || entries[i].name[0] == '.')
            continue;
        const char *path = tdmi_path_join(&runs->arena, folder, entries[i].name);
        status = path ? search(runs, path, depth + 1, err)
                      : TDM_FAIL(err, TDM_E_MEMORY, "listing runs: out of memory");
    }
    return status;
}

static tdm_status made(tdm_runs **runs, tdm_error *err)
{
    *runs = tdmi_alloc(1, sizeof **runs);
    if (!*runs)
        return TDM_FAIL(err, TDM_E_MEMORY, "listing runs: out of memory");
    tdmi_arena_init(&(*runs)->arena, 0);
    return TDM_OK;
}

tdm_status tdm_runs_find(const char *folder, tdm_runs **runs, tdm_error *err)
{
    *runs = NULL;
    if (tdmi_file_kind_of(folder) != TDMI_FILE_FOLDER)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "there is no folder %s to look for runs in; tandem train makes runs in "
                        "runs/ unless -o says where",
                        folder);
    tdm_status status = made(runs, err);
    if (status == TDM_OK)
        status = search(*runs, folder, 0, err);
    if (status != TDM_OK) {
        tdm_runs_close(*runs);
        *runs = NULL;
    }
    return TDM_WRAP(err, status, "looking for runs in %s", folder);
}

tdm_status tdm_runs_read(const char *const *paths, size_t n_paths, tdm_runs **runs, tdm_error *err)
{
    tdm_status status = made(runs, err);
    for (size_t i = 0; i < n_paths && status == TDM_OK; i++) {
        status = add(*runs, paths[i], true, err);
        if (status == TDM_OK && (*runs)->n != i + 1)
            status = TDM_FAIL(err, TDM_E_INPUT,
                              "%s is no run: it has no run.json; a folder that tandem train made "
                              "is wanted",
                              paths[i]);
        status = TDM_WRAP(err, status, "looking at the run %s", paths[i]);
    }
    if (status != TDM_OK) {
        tdm_runs_close(*runs);
        *runs = NULL;
        return status;
    }
    for (size_t i = 0; i < n_paths; i++) /* the array has stopped moving */
        if ((*runs)->runs[i].told.metrics)
            (*runs)->runs[i].told.metrics = &(*runs)->runs[i].metrics;
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
    return index < runs->n ? &runs->runs[index].told : NULL;
}
