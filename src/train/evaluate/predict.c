/*
 * Prediction: images in, the most probable classes out, in the order given. Files are taken as they
 * are, folders are searched as a data set is; an image that is missing or cannot be read gets a
 * result too, with the reason.
 */
#include "train/evaluate/predict.h"
#include "base/scope.h"
#include "base/text/text.h"
#include "data/source/class_tree.h"
#include "io/storage/storage.h"
#include "tandem/event.h"
#include "train/model/model_internal.h"

#include <stdio.h>
#include <string.h>

enum { most_guesses = 1000, file_limit_bytes = 1 << 30, scratch_kept_bytes = 64 << 20 };

struct picture {
    const char *path;    /* to open; unused where there are bytes */
    const char *shown;   /* as given, or relative to the folder given */
    const char *missing; /* NULL, or why there is nothing to open */
    const void *bytes;   /* NULL, or the encoded image */
    size_t length_bytes;
};

struct prediction {
    tdm_model *model;
    struct tdmi_predicting how;
    int top;

    struct picture *pictures;
    size_t n;
    int64_t capacity;
    size_t n_missing;
    const char *first_missing; /* the sentence about it */
    tdmi_arena arena;          /* names and sentences */

    uint8_t *pixels;
    int32_t *labels;      /* -1: unreadable … */
    tdm_status *statuses; /* … and the kind of problem */
    float *probabilities, *logits;
    char (*problems)[TDM_ERROR_TEXT_BYTES]; /* by position */
    struct tdm_guess *guesses;
    size_t first; /* of the current batch */
    size_t n_starved;
    const char *starved; /* the name of the first */
    char starved_problem[TDM_ERROR_TEXT_BYTES];
};

/* ---- the list of images ---------------------------------------------------------------------- */

static tdm_status add(struct prediction *it, struct picture picture, tdm_error *err)
{
    TDMI_TRY(TDMI_MAKE_ROOM(it->pictures, it->capacity, it->n, err));
    it->pictures[it->n++] = picture;
    return TDM_OK;
}

/* The images that the folder source would find, at any depth. Those of a folder that is given
 * alone are shown by their paths below it, else by paths that name the folder. */
static tdm_status add_folder(struct prediction *it, const char *folder, bool is_alone,
                             tdm_error *err)
{
    TDMI_AT_END(tdmi_tree_release) struct tdmi_tree tree = {.root = folder};
    TDMI_AT_END(tdmi_listing_release) struct tdmi_listing listing = {0};
    TDMI_TRY(tdmi_tree_walk(&tree, err));
    TDMI_TRY(tdmi_tree_pictures(&tree, &listing, err));
    if (listing.n_items == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "no images were found in %s", folder);
    for (int64_t i = 0; i < listing.n_items; i++) {
        const char *below = tdmi_arena_copy(&it->arena, listing.items[i].path);
        const char *path = below ? tdmi_path_join(&it->arena, folder, below) : NULL;
        if (!path)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the paths in %s", folder);
        TDMI_TRY(add(it, (struct picture){.path = path, .shown = is_alone ? below : path}, err));
    }
    return TDM_OK;
}

static tdm_status add_path(struct prediction *it, const char *path, bool is_alone, tdm_error *err)
{
    struct tdmi_place place;
    TDM_TRY(tdmi_storage_look(path, &place, err), err, "looking at %s", path);
    const char *plain = tdmi_storage_plain(path, &it->arena);
    if (!plain)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the path %s", path);
    if (place.kind == TDMI_FILE_FOLDER)
        return TDM_WRAP(err, add_folder(it, plain, is_alone, err), "searching %s for images", path);
    if (place.kind == TDMI_FILE_REGULAR)
        return add(it, (struct picture){.path = plain, .shown = plain}, err);
    return tdmi_storage_refuse(path, place.kind, "a picture or a folder of pictures", err);
}

static tdm_status add_missing(struct prediction *it, const char *path, const tdm_error *problem,
                              tdm_error *err)
{
    const char *reason = tdmi_arena_copy(&it->arena, tdm_error_sentence(problem, 0));
    const char *shown = tdmi_arena_copy(&it->arena, path);
    if (!reason || !shown)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the path %s", path);
    if (it->n_missing++ == 0)
        it->first_missing = reason;
    return add(it, (struct picture){.shown = shown, .missing = reason}, err);
}

/* A missing path, or a folder without images, does not keep the others from being predicted. */
static tdm_status list_paths(struct prediction *it, const char *const *paths, size_t n_paths,
                             tdm_error *err)
{
    for (size_t i = 0; i < n_paths; i++) {
        tdm_error problem = {0};
        tdm_status status = add_path(it, paths[i], n_paths == 1, &problem);
        if (status == TDM_E_INPUT)
            status = add_missing(it, paths[i], &problem, &problem);
        if (status != TDM_OK && err)
            *err = problem;
        TDMI_TRY(status);
    }
    return it->n > 0 ? TDM_OK : TDM_FAIL(err, TDM_E_INPUT, "no path of an image was given");
}

/* ---- a batch --------------------------------------------------------------------------------- */

static size_t picture_bytes(const struct prediction *it)
{
    return (size_t)tdmi_shape_values(it->model->file.graph->nodes[0].out);
}

static tdm_status read_picture(struct prediction *it, int index, int worker, tdm_error *err)
{
    const struct picture *picture = &it->pictures[it->first + (size_t)index];
    struct tdmi_preprocess_scratch *scratch = &it->model->scratches[worker];
    const void *bytes = picture->bytes;
    size_t length_bytes = picture->length_bytes;
    TDMI_AT_END(tdmi_text_release) tdmi_text file = {0};
    if (picture->missing)
        return TDM_FAIL(err, TDM_E_INPUT, "%s", picture->missing);
    if (!bytes) {
        TDM_TRY(tdmi_storage_read_file(picture->path, file_limit_bytes, &file, err), err,
                "reading %s", picture->path);
        bytes = tdmi_text_string(&file);
        length_bytes = file.length_bytes;
    }
    scratch->limits = (struct tdmi_image_limits){0};
    if (it->how.allow && !it->how.allow(it->how.self, it->first + (size_t)index, &scratch->limits))
        return TDM_FAIL(err, TDM_E_STOPPED, "it was left out");
    return tdmi_preprocess_file(tdmi_graph_preprocess(it->model->file.graph), bytes, length_bytes,
                                picture->bytes ? picture->shown : picture->path, scratch,
                                it->pixels + (size_t)index * picture_bytes(it), err);
}

/* Lack of memory is a problem of one image: others are smaller. */
static tdm_status read_task(void *self, int index, int worker, tdm_error *err)
{
    struct prediction *it = self;
    tdm_error problem = {0};
    const tdm_status status = read_picture(it, index, worker, &problem);
    it->labels[index] = status == TDM_OK ? 0 : -1;
    it->statuses[index] = status;
    if (status == TDM_E_BUG)
        return TDM_FAIL(err, status, "%s", tdm_error_sentence(&problem, 0));
    snprintf(it->problems[index], sizeof it->problems[index], "%s",
             tdm_error_sentence(&problem, 0));
    return TDM_OK;
}

static bool has_picture(const struct prediction *it, int n)
{
    int i = 0;
    while (i < n && it->labels[i] < 0)
        i++;
    return i < n;
}

/* Select the `top` most probable classes, largest first, equals by index. */
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

static tdm_status deliver(struct prediction *it, int n, tdm_prediction_sink sink, tdm_error *err)
{
    for (int i = 0; i < n; i++) {
        const char *shown = it->pictures[it->first + (size_t)i].shown;
        struct tdm_prediction prediction = {.path = shown};
        if (it->labels[i] < 0) {
            prediction.problem = it->problems[i];
            prediction.problem_status = it->statuses[i];
            if (it->statuses[i] == TDM_E_MEMORY && it->n_starved++ == 0) {
                it->starved = shown;
                memcpy(it->starved_problem, it->problems[i], sizeof it->starved_problem);
            }
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

/* Memory for no more images than were given: a single image does not pay for a full batch. The
 * buffers of decoding stay with the model, for the next call. */
static tdm_status reserve(struct prediction *it, tdm_error *err)
{
    const size_t classes = (size_t)it->model->file.n_classes;
    const size_t batch = it->n < TDMI_MODEL_BATCH ? it->n : TDMI_MODEL_BATCH;
    TDMI_TRY(TDMI_NEW(it->pixels, batch * picture_bytes(it), err));
    TDMI_TRY(TDMI_NEW(it->labels, batch, err));
    TDMI_TRY(TDMI_NEW(it->statuses, batch, err));
    TDMI_TRY(TDMI_NEW(it->probabilities, batch * classes, err));
    TDMI_TRY(TDMI_NEW(it->logits, batch * classes, err));
    TDMI_TRY(TDMI_NEW(it->problems, batch, err));
    TDMI_TRY(TDMI_NEW(it->guesses, it->top, err));
    if (it->model->scratches)
        return TDM_OK;
    return TDMI_NEW(it->model->scratches, tdmi_pool_threads(it->model->pool), err);
}

static tdm_status predict(struct prediction *it, tdm_prediction_sink sink, tdm_error *err)
{
    TDMI_TRY(reserve(it, err));
    for (it->first = 0; it->first < it->n; it->first += TDMI_MODEL_BATCH) {
        size_t rest = it->n - it->first;
        int n = rest < TDMI_MODEL_BATCH ? (int)rest : TDMI_MODEL_BATCH;
        struct tdmi_batch batch = {.n = n, .pixels = it->pixels, .labels = it->labels};
        if (tdm_stop_is_requested() && !it->how.is_finished)
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request after %zu of %zu images",
                            it->first, it->n);
        TDM_TRY(tdmi_pool_run(it->model->pool, n, read_task, it, err), err, "reading images");
        if (has_picture(it, n))
            TDMI_TRY(tdmi_evaluator_batch(it->model->evaluator, &batch, NULL, it->probabilities,
                                          it->logits, err));
        TDMI_TRY(deliver(it, n, sink, err));
    }
    if (it->n_starved > 0 && !it->how.is_finished)
        return TDM_FAIL(err, TDM_E_MEMORY, "%zu of %zu images lack memory; the first is %s: %s",
                        it->n_starved, it->n, it->starved, it->starved_problem);
    return TDM_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void release(struct prediction *it)
{
    tdmi_model_trim(it->model, scratch_kept_bytes);
    tdmi_free(it->guesses);
    tdmi_free(it->problems);
    tdmi_free(it->logits);
    tdmi_free(it->probabilities);
    tdmi_free(it->statuses);
    tdmi_free(it->labels);
    tdmi_free(it->pixels);
    tdmi_free(it->pictures);
    tdmi_arena_release(&it->arena);
}

static tdm_status begin(struct prediction *it, tdm_error *err)
{
    if (it->top < 1 || it->top > most_guesses)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "predicting: the %d most probable classes; 1 to %d is accepted", it->top,
                        most_guesses);
    if (it->top > it->model->file.n_classes)
        it->top = it->model->file.n_classes;
    return TDM_OK;
}

/* Missing paths are an error at the end, after the results of the others. */
static tdm_status refuse_missing(const struct prediction *it, size_t n_paths, tdm_error *err)
{
    if (it->n_missing == 0)
        return TDM_OK;
    if (n_paths == 1)
        return TDM_FAIL(err, TDM_E_INPUT, "%s", it->first_missing);
    if (it->n_missing == n_paths)
        return TDM_FAIL(err, TDM_E_INPUT, "none of the %zu paths given can be predicted; %s",
                        n_paths, it->first_missing);
    return TDM_FAIL(err, TDM_E_INPUT, "%zu of the %zu paths given cannot be predicted; %s",
                    it->n_missing, n_paths, it->first_missing);
}

tdm_status tdm_model_predict(tdm_model *model, const char *const *paths, size_t n_paths, int top,
                             tdm_prediction_sink sink, tdm_error *err)
{
    TDMI_AT_END(release) struct prediction it = {.model = model, .top = top};
    TDM_TRY(begin(&it, err), err, "predicting");
    TDM_TRY(list_paths(&it, paths, n_paths, err), err, "predicting");
    TDM_TRY(predict(&it, sink, err), err, "predicting");
    return TDM_WRAP(err, refuse_missing(&it, n_paths, err), "predicting");
}

tdm_status tdmi_model_predict_pictures(tdm_model *model, const struct tdm_picture *pictures,
                                       size_t n_pictures, int top,
                                       const struct tdmi_predicting *how, tdm_prediction_sink sink,
                                       tdm_error *err)
{
    TDMI_AT_END(release) struct prediction it = {.model = model, .top = top, .how = *how};
    TDM_TRY(begin(&it, err), err, "predicting");
    for (size_t i = 0; i < n_pictures; i++) {
        const struct picture picture = {.shown = pictures[i].name,
                                        .bytes = pictures[i].bytes ? pictures[i].bytes : "",
                                        .length_bytes = pictures[i].length_bytes};
        TDM_TRY(add(&it, picture, err), err, "predicting");
    }
    return TDM_WRAP(err, predict(&it, sink, err), "predicting");
}

tdm_status tdm_model_predict_pictures(tdm_model *model, const struct tdm_picture *pictures,
                                      size_t n_pictures, int top, tdm_prediction_sink sink,
                                      tdm_error *err)
{
    return tdmi_model_predict_pictures(model, pictures, n_pictures, top,
                                       &(struct tdmi_predicting){0}, sink, err);
}
