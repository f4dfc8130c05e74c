/*
 * Prediction: pictures in, the likeliest classes out, in the order asked. A picture that cannot be
 * read is answered too, with the reason.
 */
#include "base/memory.h"
#include "base/text/text.h"
#include "io/storage/storage.h"
#include "tandem/event.h"
#include "train/model/model_internal.h"
#include "train/evaluate/predict.h"

#include <stdio.h>
#include <string.h>

enum { most_guesses = 1000, file_limit_bytes = 1 << 30, scratch_kept_bytes = 64 << 20 };

struct prediction {
    tdm_model *model;
    struct tdmi_pictures pictures;
    struct tdmi_predicting how;
    int top;
    uint8_t *pixels;
    int32_t *labels;      /* -1: unreadable … */
    tdm_status *statuses; /* … and what kind of problem it is */
    float *probabilities, *logits;
    char (*problems)[TDM_ERROR_TEXT_BYTES]; /* by position */
    struct tdm_guess *guesses;
    size_t first; /* of the batch at hand */
    size_t n_starved;
    const char *starved; /* the name of the first */
    char starved_problem[TDM_ERROR_TEXT_BYTES];
};

/* ---- a batch ---------------------------------------------------------------------------- */

static size_t picture_bytes(const struct prediction *it)
{
    return (size_t)tdmi_shape_values(it->model->file.graph->nodes[0].out);
}

static tdm_status read_picture(struct prediction *it, int index, int worker, tdm_error *err)
{
    const struct tdmi_picture *picture = &it->pictures.items[it->first + (size_t)index];
    struct tdmi_preprocess_scratch *scratch = &it->model->scratches[worker];
    const void *bytes = picture->bytes;
    size_t length_bytes = picture->length_bytes;
    tdm_status status = TDM_OK;
    tdmi_text file = {0};
    if (!bytes) {
        status = TDM_WRAP(err, tdmi_storage_read_file(picture->path, file_limit_bytes, &file, err),
                          "reading %s", picture->path);
        bytes = tdmi_text_string(&file);
        length_bytes = file.length_bytes;
    }
    scratch->limits = (struct tdmi_image_limits){0};
    if (status == TDM_OK && it->how.allow &&
        !it->how.allow(it->how.self, it->first + (size_t)index, &scratch->limits))
        status = TDM_FAIL(err, TDM_E_STOPPED, "it was left out");
    if (status == TDM_OK)
        status =
            tdmi_preprocess_file(tdmi_graph_preprocess(it->model->file.graph), bytes, length_bytes,
                                 bytes == picture->bytes ? picture->shown : picture->path, scratch,
                                 it->pixels + (size_t)index * picture_bytes(it), err);
    tdmi_text_release(&file);
    return status;
}

/* A picture that lacks memory is one picture's problem: others are smaller. */
static tdm_status read_task(void *self, int index, int worker, tdm_error *err)
{
    struct prediction *it = self;
    const char *missing = it->pictures.items[it->first + (size_t)index].missing;
    tdm_error problem = {0};
    tdm_status status = missing ? TDM_FAIL(&problem, TDM_E_INPUT, "%s", missing)
                                : read_picture(it, index, worker, &problem);
    it->labels[index] = status == TDM_OK ? 0 : -1;
    it->statuses[index] = status;
    if (status == TDM_E_BUG)
        return TDM_FAIL(err, status, "%s", tdm_error_sentence(&problem, 0));
    if (status != TDM_OK)
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
        const char *shown = it->pictures.items[it->first + (size_t)i].shown;
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

static tdm_status predict(struct prediction *it, tdm_prediction_sink sink, tdm_error *err)
{
    for (it->first = 0; it->first < it->pictures.n; it->first += TDMI_MODEL_BATCH) {
        size_t rest = it->pictures.n - it->first;
        int n = rest < TDMI_MODEL_BATCH ? (int)rest : TDMI_MODEL_BATCH;
        struct tdmi_batch batch = {.n = n, .pixels = it->pixels, .labels = it->labels};
        if (tdm_stop_is_requested() && !it->how.is_finished)
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request after %zu of %zu pictures",
                            it->first, it->pictures.n);
        TDM_TRY(tdmi_pool_run(it->model->pool, n, read_task, it, err), err, "reading pictures");
        if (has_picture(it, n))
            TDM_TRY(tdmi_evaluator_batch(it->model->evaluator, &batch, NULL, it->probabilities,
                                         it->logits, err),
                    err, "predicting");
        TDM_TRY(answer(it, n, sink, err), err, "predicting");
    }
    if (it->n_starved > 0 && !it->how.is_finished)
        return TDM_FAIL(err, TDM_E_MEMORY, "%zu of %zu pictures lack memory; the first is %s: %s",
                        it->n_starved, it->pictures.n, it->starved, it->starved_problem);
    return TDM_OK;
}

/* Memory for the pictures at hand: one picture asked for alone does not pay for a full batch. What
 * decoding works in stays with the model, for the next call. */
static tdm_status reserve(struct prediction *it, tdm_error *err)
{
    size_t classes = (size_t)it->model->file.n_classes, batch = TDMI_MODEL_BATCH;
    if (batch > it->pictures.n)
        batch = it->pictures.n;
    it->pixels = tdmi_alloc(batch, picture_bytes(it));
    it->labels = tdmi_alloc(batch, sizeof *it->labels);
    it->statuses = tdmi_alloc(batch, sizeof *it->statuses);
    it->probabilities = tdmi_alloc(batch * classes, sizeof *it->probabilities);
    it->logits = tdmi_alloc(batch * classes, sizeof *it->logits);
    it->problems = tdmi_alloc(batch, sizeof *it->problems);
    it->guesses = tdmi_alloc((size_t)it->top, sizeof *it->guesses);
    if (!it->model->scratches)
        it->model->scratches =
            tdmi_alloc((size_t)tdmi_pool_threads(it->model->pool), sizeof *it->model->scratches);
    if (!it->pixels || !it->labels || !it->statuses || !it->probabilities || !it->logits ||
        !it->problems || !it->guesses || !it->model->scratches)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to predict: out of memory");
    return TDM_OK;
}

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
    tdmi_pictures_release(&it->pictures);
}

static tdm_status begin(struct prediction *it, tdm_model *model, int top, tdm_error *err)
{
    *it = (struct prediction){.model = model, .top = top};
    tdmi_pictures_init(&it->pictures);
    if (top < 1 || top > most_guesses)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "predicting: the %d likeliest classes; 1 to %d is accepted", top,
                        most_guesses);
    if (it->top > model->file.n_classes)
        it->top = model->file.n_classes;
    return TDM_OK;
}

/* At the end, when the others are answered. */
static tdm_status refuse_missing(const struct tdmi_pictures *pictures, size_t n_paths,
                                 tdm_error *err)
{
    if (n_paths == 1)
        return TDM_FAIL(err, TDM_E_INPUT, "%s", pictures->first_missing);
    if (pictures->n_missing == n_paths)
        return TDM_FAIL(err, TDM_E_INPUT, "none of the %zu paths given can be predicted; %s",
                        n_paths, pictures->first_missing);
    return TDM_FAIL(err, TDM_E_INPUT, "%zu of the %zu paths given cannot be predicted; %s",
                    pictures->n_missing, n_paths, pictures->first_missing);
}

tdm_status tdm_model_predict(tdm_model *model, const char *const *paths, size_t n_paths, int top,
                             tdm_prediction_sink sink, tdm_error *err)
{
    struct prediction it;
    tdm_status status = begin(&it, model, top, err);
    if (status == TDM_OK)
        status = tdmi_pictures_list(&it.pictures, paths, n_paths, err);
    if (status == TDM_OK)
        status = reserve(&it, err);
    if (status == TDM_OK)
        status = predict(&it, sink, err);
    if (status == TDM_OK && it.pictures.n_missing > 0)
        status = refuse_missing(&it.pictures, n_paths, err);
    release(&it);
    return TDM_WRAP(err, status, "predicting");
}

tdm_status tdmi_model_predict_pictures(tdm_model *model, const struct tdm_picture *pictures,
                                       size_t n_pictures, int top,
                                       const struct tdmi_predicting *how, tdm_prediction_sink sink,
                                       tdm_error *err)
{
    struct prediction it;
    tdm_status status = begin(&it, model, top, err);
    it.how = *how;
    for (size_t i = 0; i < n_pictures && status == TDM_OK; i++)
        status = tdmi_pictures_add_bytes(&it.pictures, &pictures[i], err);
    if (status == TDM_OK)
        status = reserve(&it, err);
    if (status == TDM_OK)
        status = predict(&it, sink, err);
    release(&it);
    return TDM_WRAP(err, status, "predicting");
}

tdm_status tdm_model_predict_pictures(tdm_model *model, const struct tdm_picture *pictures,
                                      size_t n_pictures, int top, tdm_prediction_sink sink,
                                      tdm_error *err)
{
    return tdmi_model_predict_pictures(model, pictures, n_pictures, top,
                                       &(struct tdmi_predicting){0}, sink, err);
}
