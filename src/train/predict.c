/*
 * Prediction: pictures in, the likeliest classes out, in the order asked. A picture that cannot be
 * read is answered too, with the reason.
 */
#include "base/memory.h"
#include "base/text.h"
#include "data/class_tree.h"
#include "data/storage.h"
#include "tandem/stop.h"
#include "train/model_internal.h"

#include <stdio.h>
#include <string.h>

enum { most_guesses = 1000, file_limit_bytes = 1 << 30 };

struct picture {
    const char *path;    /* to open */
    const char *shown;   /* as given, or relative to the folder given */
    const char *missing; /* NULL, or why there is nothing to open */
};

struct prediction {
    tdm_model *model;
    struct picture *pictures;
    size_t n_pictures, capacity, n_missing;
    const char *first_missing; /* the sentence about it */
    int top;
    uint8_t *pixels;
    int32_t *labels; /* -1: unreadable */
    float *probabilities, *logits;
    struct tdmi_preprocess_scratch *scratches; /* one a thread */
    char (*problems)[TDM_ERROR_TEXT_BYTES];    /* by position */
    struct tdm_guess *guesses;
    tdmi_arena arena;
    size_t first; /* of the batch at hand */
};

/* ---- which pictures --------------------------------------------------------------------- */

static tdm_status add(struct prediction *it, const char *path, const char *shown, tdm_error *err)
{
    if (it->n_pictures == it->capacity) {
        size_t capacity = it->capacity ? 2 * it->capacity : 64;
        struct picture *grown = tdmi_realloc(it->pictures, capacity, sizeof *grown);
        if (!grown)
            return TDM_FAIL(err, TDM_E_MEMORY, "listing %zu pictures: out of memory", capacity);
        it->pictures = grown;
        it->capacity = capacity;
    }
    it->pictures[it->n_pictures++] = (struct picture){.path = path, .shown = shown};
    return TDM_OK;
}

/* The pictures that the folder source would find, at any depth. One folder given: paths below it;
 * several: paths that say which. */
static tdm_status add_folder(struct prediction *it, const char *folder, bool is_alone,
                             tdm_error *err)
{
    struct tdmi_tree tree;
    struct tdmi_listing listing;
    tdmi_tree_init(&tree, folder);
    tdmi_listing_init(&listing);
    tdm_status status = tdmi_tree_walk(&tree, err);
    if (status == TDM_OK)
        status = tdmi_tree_pictures(&tree, &listing, err);
    for (int64_t i = 0; i < listing.n_items && status == TDM_OK; i++) {
        const char *below = tdmi_arena_copy(&it->arena, listing.items[i].path);
        const char *path = below ? tdmi_path_join(&it->arena, folder, below) : NULL;
        if (!path)
            status = TDM_FAIL(err, TDM_E_MEMORY, "listing %s: out of memory", folder);
        else
            status = add(it, path, is_alone ? below : path, err);
    }
    tdmi_listing_release(&listing);
    tdmi_tree_release(&tree);
    return status;
}

static tdm_status list_path(struct prediction *it, const char *path, bool is_alone, tdm_error *err)
{
    struct tdmi_place place;
    TDM_TRY(tdmi_storage_look(path, &place, err), err, "looking at %s", path);
    const char *plain = tdmi_storage_plain(path, &it->arena);
    if (!plain)
        return TDM_FAIL(err, TDM_E_MEMORY, "listing %s: out of memory", path);
    if (place.kind == TDMI_FILE_FOLDER)
        return TDM_WRAP(err, add_folder(it, plain, is_alone, err), "searching %s for pictures",
                        path);
    if (place.kind == TDMI_FILE_REGULAR)
        return add(it, plain, plain, err);
    return tdmi_storage_refuse(path, place.kind, "a picture or a folder of pictures", err);
}

/* It is answered in its turn with the reason, as a picture that cannot be read. */
static tdm_status add_missing(struct prediction *it, const char *path, const tdm_error *problem,
                              tdm_error *err)
{
    const char *reason = tdmi_arena_copy(&it->arena, problem->frames[0].text);
    const char *shown = tdmi_arena_copy(&it->arena, path);
    if (!reason || !shown)
        return TDM_FAIL(err, TDM_E_MEMORY, "listing %s: out of memory", path);
    TDM_TRY(add(it, shown, shown, err), err, "listing pictures");
    it->pictures[it->n_pictures - 1].missing = reason;
    if (it->n_missing++ == 0)
        it->first_missing = reason;
    return TDM_OK;
}

/* What is missing does not keep the others from being predicted. */
static tdm_status list(struct prediction *it, const char *const *paths, size_t n_paths,
                       tdm_error *err)
{
    size_t n_folders = 0;
    for (size_t i = 0; i < n_paths; i++)
        n_folders += tdmi_storage_kind(paths[i]) == TDMI_FILE_FOLDER;
    for (size_t i = 0; i < n_paths; i++) {
        tdm_error problem = {0};
        tdm_status status = list_path(it, paths[i], n_folders == 1, &problem);
        if (status == TDM_E_INPUT)
            status = add_missing(it, paths[i], &problem, &problem);
        if (status != TDM_OK) {
            if (err)
                *err = problem;
            return status;
        }
    }
    if (it->n_missing > 0 && it->n_missing == it->n_pictures)
        return TDM_FAIL(err, TDM_E_INPUT, "%s", it->first_missing);
    if (it->n_pictures == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "no pictures were found in %s", n_paths ? paths[0] : "");
    return TDM_OK;
}

/* ---- a batch ---------------------------------------------------------------------------- */

static size_t picture_bytes(const struct prediction *it)
{
    return (size_t)tdmi_shape_values(it->model->file.graph->nodes[0].out);
}

static tdm_status read_picture(struct prediction *it, int index, int worker, tdm_error *err)
{
    const char *path = it->pictures[it->first + (size_t)index].path;
    tdmi_text bytes = {0};
    tdm_status status = TDM_WRAP(err, tdmi_storage_read_file(path, file_limit_bytes, &bytes, err),
                                 "reading %s", path);
    if (status == TDM_OK)
        status = tdmi_preprocess_file(tdmi_graph_preprocess(it->model->file.graph),
                                      tdmi_text_string(&bytes), bytes.length_bytes, path,
                                      &it->scratches[worker],
                                      it->pixels + (size_t)index * picture_bytes(it), err);
    tdmi_text_release(&bytes);
    return status;
}

static tdm_status read_task(void *self, int index, int worker, tdm_error *err)
{
    struct prediction *it = self;
    const char *missing = it->pictures[it->first + (size_t)index].missing;
    tdm_error problem = {0};
    if (missing) {
        it->labels[index] = -1;
        snprintf(it->problems[index], sizeof it->problems[index], "%s", missing);
        return TDM_OK;
    }
    tdm_status status = read_picture(it, index, worker, &problem);
    it->labels[index] = status == TDM_OK ? 0 : -1;
    if (status == TDM_E_MEMORY || status == TDM_E_BUG)
        return TDM_FAIL(err, status, "%s", problem.frames[0].text);
    if (status != TDM_OK)
        snprintf(it->problems[index], sizeof it->problems[index], "%s", problem.frames[0].text);
    return TDM_OK;
}

/* The `top` likeliest, largest first, equals by index: a selection, for top is small. */
static int choose(struct prediction *it, const float *probabilities)
{
    int classes = it->model->file.n_classes, n = 0;
    for (int c = 0; c < classes; c++) {
        if (n == it->top && !(probabilities[c] > it->guesses[n - 1].probability))
            continue;
        int at = n < it->top ? n++ : n - 1;
        while (at > 0 && probabilities[c] > it->guesses[at - 1].probability) {
            it->guesses[at] = it->guesses[at - 1];
            at--;
        }
        it->guesses[at] = (struct tdm_guess){c, it->model->file.classes[c], probabilities[c]};
    }
    return n;
}

static tdm_status answer(struct prediction *it, int n, tdm_prediction_sink sink, tdm_error *err)
{
    for (int i = 0; i < n; i++) {
        const char *shown = it->pictures[it->first + (size_t)i].shown;
        struct tdm_prediction prediction = {.path = shown};
        if (it->labels[i] < 0) {
            prediction.problem = it->problems[i];
        } else {
            const size_t at = (size_t)i * (size_t)it->model->file.n_classes;
            prediction.guesses = it->guesses;
            prediction.n_guesses = choose(it, it->probabilities + at);
            prediction.logits = it->logits + at;
            prediction.n_logits = it->model->file.n_classes;
        }
        TDM_TRY(sink.prediction(sink.self, &prediction, err), err,
                "handing out the prediction for %s", shown);
    }
    return TDM_OK;
}

static tdm_status predict(struct prediction *it, tdm_prediction_sink sink, tdm_error *err)
{
    for (it->first = 0; it->first < it->n_pictures; it->first += TDMI_MODEL_BATCH) {
        size_t rest = it->n_pictures - it->first;
        int n = rest < TDMI_MODEL_BATCH ? (int)rest : TDMI_MODEL_BATCH;
        struct tdmi_batch batch = {.n = n, .pixels = it->pixels, .labels = it->labels};
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request after %zu of %zu pictures",
                            it->first, it->n_pictures);
        TDM_TRY(tdmi_pool_run(it->model->pool, n, read_task, it, err), err, "reading pictures");
        TDM_TRY(
            tdmi_judge_batch(it->model->judge, &batch, NULL, it->probabilities, it->logits, err),
            err, "predicting");
        TDM_TRY(answer(it, n, sink, err), err, "predicting");
    }
    return TDM_OK;
}

static tdm_status reserve(struct prediction *it, tdm_error *err)
{
    size_t classes = (size_t)it->model->file.n_classes, batch = TDMI_MODEL_BATCH;
    it->pixels = tdmi_alloc(batch, picture_bytes(it));
    it->labels = tdmi_alloc(batch, sizeof *it->labels);
    it->probabilities = tdmi_alloc(batch * classes, sizeof *it->probabilities);
    it->logits = tdmi_alloc(batch * classes, sizeof *it->logits);
    it->problems = tdmi_alloc(batch, sizeof *it->problems);
    it->guesses = tdmi_alloc((size_t)it->top, sizeof *it->guesses);
    it->scratches = tdmi_alloc((size_t)tdmi_pool_threads(it->model->pool), sizeof *it->scratches);
    if (!it->pixels || !it->labels || !it->probabilities || !it->logits || !it->problems ||
        !it->guesses || !it->scratches)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to predict: out of memory");
    return TDM_OK;
}

static void release(struct prediction *it)
{
    for (int i = 0; it->scratches && i < tdmi_pool_threads(it->model->pool); i++)
        tdmi_preprocess_scratch_release(&it->scratches[i]);
    tdmi_free(it->scratches);
    tdmi_free(it->guesses);
    tdmi_free(it->problems);
    tdmi_free(it->logits);
    tdmi_free(it->probabilities);
    tdmi_free(it->labels);
    tdmi_free(it->pixels);
    tdmi_free(it->pictures);
    tdmi_arena_release(&it->arena);
}

tdm_status tdm_model_predict(tdm_model *model, const char *const *paths, size_t n_paths, int top,
                             tdm_prediction_sink sink, tdm_error *err)
{
    struct prediction it = {.model = model, .top = top};
    if (top < 1 || top > most_guesses)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "predicting: the %d likeliest classes; 1 to %d is accepted", top,
                        most_guesses);
    if (it.top > model->file.n_classes)
        it.top = model->file.n_classes;
    tdmi_arena_init(&it.arena, 0);
    tdm_status status = list(&it, paths, n_paths, err);
    if (status == TDM_OK)
        status = reserve(&it, err);
    if (status == TDM_OK)
        status = predict(&it, sink, err);
    if (status == TDM_OK && it.n_missing > 0)
        status = TDM_FAIL(err, TDM_E_INPUT, "%zu of the %zu paths given cannot be predicted; %s",
                          it.n_missing, n_paths, it.first_missing);
    release(&it);
    return TDM_WRAP(err, status, "predicting");
}
