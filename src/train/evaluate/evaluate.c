/*
 * Evaluation: every image of a part exactly once, counted in whole numbers. The part of an image
 * follows from its content hash, which the model file records.
 */
#include "base/hash/hash.h"
#include "base/scope.h"
#include "base/sized.h"
#include "data/audit/contents.h"
#include "data/loader/loader.h"
#include "tandem/log.h"
#include "tandem/event.h"
#include "train/evaluate/metrics.h"
#include "train/model/model_internal.h"

#include <string.h>

struct evaluation {
    tdm_model *model;
    enum tdm_part part;
    tdmi_source *source;
    int *label_map; /* class of the source -> class of the model, -1: it lacks it */
    tdmi_contents contents;
    int64_t *items; /* of the part */
    int64_t n_items;
    struct tdmi_judgement *judgements;
    float *probabilities; /* of a batch */
    tdmi_outcomes outcomes;
};

static void release(struct evaluation *it)
{
    tdmi_outcomes_release(&it->outcomes);
    tdmi_free(it->probabilities);
    tdmi_free(it->judgements);
    tdmi_free(it->items);
    tdmi_contents_release(&it->contents);
    tdmi_free(it->label_map);
    tdmi_source_close(it->source);
}

static tdm_status reserve(struct evaluation *it, int batch, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(it->label_map, tdmi_source_classes(it->source), err));
    TDMI_TRY(TDMI_NEW(it->items, tdmi_source_items(it->source), err));
    TDMI_TRY(TDMI_NEW(it->judgements, batch, err));
    return TDMI_NEW(it->probabilities, (int64_t)batch * it->model->file.n_classes, err);
}

/* The number that the digits of a name give; -1: no number, or n and more. */
static int number_of(const char *name, int n)
{
    int number = 0;
    const char *at = name;
    for (; *at >= '0' && *at <= '9' && number < n; at++)
        number = 10 * number + (*at - '0');
    return *at == '\0' && at > name && number < n ? number : -1;
}

/* Map classes that are numbers to the outputs of a model without class names. False unless the
 * numbers are 0 to n - 1. */
static bool map_numbers(struct evaluation *it)
{
    const int n = tdmi_source_classes(it->source);
    if (!it->model->file.is_unnamed || n != it->model->file.n_classes)
        return false;
    for (int c = 0; c < n; c++) {
        it->label_map[c] = number_of(tdmi_source_class(it->source, c), n);
        for (int before = 0; before < c; before++)
            if (it->label_map[before] == it->label_map[c])
                return false;
        if (it->label_map[c] < 0)
            return false;
    }
    tdm_log(TDM_LOG_INFO,
            "the weights do not name their %d classes and those of %s are numbers: 0 means the "
            "first output, and so on (--classes FILE names them)",
            n, tdmi_source_path(it->source));
    return true;
}

static tdm_status map_labels(struct evaluation *it, tdm_error *err)
{
    int n = tdmi_source_classes(it->source), known = 0;
    if (map_numbers(it))
        return TDM_OK;
    for (int c = 0; c < n; c++) {
        it->label_map[c] = -1;
        for (int m = 0; m < it->model->file.n_classes; m++)
            if (strcmp(tdmi_source_class(it->source, c), it->model->file.classes[m]) == 0)
                it->label_map[c] = m;
        known += it->label_map[c] >= 0;
        if (it->label_map[c] < 0)
            tdm_log(TDM_LOG_WARNING, "class %s is not one of the model's: its images are skipped",
                    tdmi_source_class(it->source, c));
    }
    if (known == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has %d classes and none is one of the model's %d (the first is %s); "
                        "give a folder with folders of these names; weights of other programs "
                        "take names from --classes FILE",
                        tdmi_source_path(it->source), n, it->model->file.n_classes,
                        it->model->file.classes[0]);
    return TDM_OK;
}

static bool is_among(uint64_t content, const uint64_t *hashes, int64_t n)
{
    return content != 0 && tdmi_hashes_have(hashes, n, content);
}

static bool belongs(const struct evaluation *it, int64_t item)
{
    const struct tdmi_model_file *file = &it->model->file;
    const uint64_t content = it->contents.hashes[item];
    switch (it->part) {
    case TDM_PART_ALL:
        return true;
    case TDM_PART_TRAIN:
        return is_among(content, file->train_hashes, file->n_train_hashes);
    case TDM_PART_VAL:
        return is_among(content, file->val_hashes, file->n_val_hashes);
    case TDM_PART_TEST:
        return tdmi_source_item(it->source, item).part == TDMI_PART_TEST ||
               is_among(content, file->test_hashes, file->n_test_hashes);
    }
    return false;
}

static bool records_images(const struct tdmi_model_file *file)
{
    return file->n_train_hashes + file->n_val_hashes > 0;
}

/* Why no image belongs to the part. */
static tdm_status refuse_part(const struct evaluation *it, tdm_error *err)
{
    static const char *const names[] = {"all", "train", "val", "test"};
    const struct tdmi_model_file *file = &it->model->file;
    const char *source = tdmi_source_path(it->source), *part = names[it->part];
    if (!records_images(file) && it->part != TDM_PART_ALL)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the model does not record which images of %s are of the part '%s': "
                        "exported files and weights of other programs never do; evaluate the run "
                        "folder that the file was exported from, or every image with --part all",
                        source, part);
    if (it->part == TDM_PART_TEST && file->n_test_hashes == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the run kept no images of %s for a test, and the source has none of its "
                        "own; --part val evaluates the validation images, and a training with "
                        "--split 0.8,0.1,0.1 keeps some",
                        source);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "none of the %lld images in %s is of the part '%s'; --part all evaluates "
                    "every image",
                    (long long)tdmi_source_items(it->source), source, part);
}

static tdm_status select_items(struct evaluation *it, tdm_sink sink, tdm_error *err)
{
    TDM_TRY(tdmi_contents_read(it->source, it->model->pool,
                               "reading every image once to find its part", sink, &it->contents,
                               err),
            err, "finding the images of the part");
    for (int64_t i = 0; i < tdmi_source_items(it->source); i++)
        if (belongs(it, i))
            it->items[it->n_items++] = i;
    return it->n_items > 0 ? TDM_OK : refuse_part(it, err);
}

static void count(struct evaluation *it, const struct tdmi_batch *batch, double *loss,
                  struct tdm_evaluation *out)
{
    const int64_t before = it->outcomes.n;
    tdmi_outcomes_add_batch(&it->outcomes, batch, it->judgements, it->probabilities,
                            it->contents.hashes);
    out->skipped += batch->n - (it->outcomes.n - before);
    for (int64_t i = before; i < it->outcomes.n; i++)
        *loss += (double)it->outcomes.losses[i];
}

/* Take the batches of the loader, one after the other. */
static tdm_status evaluate_batches(struct evaluation *it, tdmi_loader *loader, tdm_sink sink,
                                   struct tdm_evaluation *out, tdm_error *err)
{
    double loss = 0.0;
    int64_t seen = 0;
    TDMI_TRY(tdmi_loader_seek(loader, 0, 0, err));
    for (;;) {
        const struct tdmi_batch *batch;
        TDMI_TRY(tdmi_loader_next(loader, &batch, err));
        if (!batch)
            return TDM_OK;
        TDMI_TRY(tdmi_evaluator_batch(it->model->evaluator, batch, it->judgements,
                                      it->probabilities, NULL, err));
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request after %lld of %lld images",
                            (long long)seen, (long long)it->n_items);
        count(it, batch, &loss, out);
        seen += batch->n;
        if (sink.event)
            sink.event(sink.self,
                       &(tdm_event){.kind = TDM_EVENT_PROGRESS,
                                    .done = seen,
                                    .total = it->n_items,
                                    .loss = loss / (double)(it->outcomes.n + !it->outcomes.n)});
    }
}

/* ---- parts by what the model's training used ------------------------------------------------- */

enum use { NOT_USED, FOR_VALIDATION, FOR_TRAINING };

static enum use use_of(const struct tdmi_model_file *file, uint64_t content)
{
    return is_among(content, file->train_hashes, file->n_train_hashes) ? FOR_TRAINING
           : is_among(content, file->val_hashes, file->n_val_hashes)   ? FOR_VALIDATION
                                                                       : NOT_USED;
}

/* *metrics stays NULL where no evaluated image had this use. */
static tdm_status measure_part(const struct evaluation *it, enum use use,
                               struct tdm_metrics **metrics, tdm_error *err)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes part = {0};
    TDMI_AT_END(tdmi_free_at) bool *keep = NULL;
    TDMI_TRY(TDMI_NEW(keep, it->outcomes.n, err));
    for (int64_t i = 0; i < it->outcomes.n; i++)
        keep[i] = use_of(&it->model->file, it->outcomes.contents[i]) == use;
    TDMI_TRY(tdmi_outcomes_filter(&it->outcomes, keep, &part, err));
    if (part.n == 0)
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(*metrics, 1, err));
    return tdmi_metrics_of(&part, it->model->file.classes, *metrics, err);
}

static tdm_status measure_parts(const struct evaluation *it, struct tdm_evaluation *out,
                                tdm_error *err)
{
    out->trained_on = -1;
    if (!records_images(&it->model->file))
        return TDM_OK;
    TDMI_TRY(measure_part(it, NOT_USED, &out->unseen, err));
    TDMI_TRY(measure_part(it, FOR_VALIDATION, &out->validation, err));
    out->trained_on = it->outcomes.n - (out->unseen ? out->unseen->score.n : 0) -
                      (out->validation ? out->validation->score.n : 0);
    return TDM_OK;
}

/* ---- the whole evaluation ------------------------------------------------------------------- */

/* The source gets a quarter of --memory and the loader the rest. */
static tdm_status evaluate_all(struct evaluation *it, const struct tdm_evaluate_options *options,
                               tdm_sink sink, struct tdm_evaluation *out, tdm_error *err)
{
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = NULL;
    struct tdmi_loader_options request = {
        .source = it->source,
        .preprocess = *tdmi_graph_preprocess(it->model->file.graph),
        .items = it->items,
        .n_items = it->n_items,
        .label_map = it->label_map,
        .batch = options->batch,
        .threads = it->model->placement.loader_threads,
        .placement = &it->model->placement,
        .is_tuned = true,
        .memory_bytes = options->memory - options->memory / 4,
        .cache = {.hashes = it->contents.hashes},
    };
    if (options->cache)
        TDM_TRY(tdmi_cache_kind_find(options->cache, &request.cache.kind, err), err,
                "preparing to read images");
    TDM_TRY(tdmi_loader_open(&request, &loader, err), err,
            "preparing to read images (they get three quarters of --memory)");
    const tdm_status status = evaluate_batches(it, loader, sink, out, err);
    struct tdmi_skip skip;
    for (int64_t i = 0; tdmi_loader_skip_at(loader, i, &skip); i++)
        tdm_log(TDM_LOG_WARNING, "skipped: %s", skip.text);
    if (status == TDM_OK && it->outcomes.n == 0)
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "none of the %lld images was evaluated: they cannot be read, or are of classes "
            "that the model lacks",
            (long long)it->n_items);
    return status;
}

static tdm_status evaluate(struct evaluation *it, const struct tdm_evaluate_options *options,
                           tdm_sink sink, struct tdm_evaluation *out, tdm_error *err)
{
    struct tdm_source_options how = options->how;
    if (how.cache_bytes == 0)
        how.cache_bytes = options->memory / 4;
    TDM_TRY(tdmi_source_open(options->source, &how, &it->source, err), err,
            "opening the images to evaluate");
    if (tdmi_source_classes(it->source) == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has no class folders, so the right answers are unknown; tandem predict "
                        "takes unlabelled images",
                        options->source);
    TDMI_TRY(reserve(it, options->batch, err));
    TDMI_TRY(map_labels(it, err));
    TDMI_TRY(select_items(it, sink, err));
    TDMI_TRY(tdmi_outcomes_open(&it->outcomes, it->model->file.n_classes, it->n_items, err));
    if (sink.event)
        sink.event(sink.self, &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN,
                                           .total = it->n_items,
                                           .text = "evaluating"});
    const tdm_status status = evaluate_all(it, options, sink, out, err);
    if (sink.event)
        sink.event(sink.self, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    TDMI_TRY(status);
    TDMI_TRY(measure_parts(it, out, err));
    return tdmi_metrics_of(&it->outcomes, it->model->file.classes, &out->metrics, err);
}

tdm_status tdm_model_evaluate(tdm_model *model, const struct tdm_evaluate_options *options,
                              tdm_sink sink, struct tdm_evaluation *evaluation, tdm_error *err)
{
    TDMI_OPTIONS(tdm_evaluate_options, options, {0}, err);
    TDMI_RESULT(tdm_evaluation, evaluation, err);
    TDMI_AT_END(release) struct evaluation it = {.model = model, .part = options->part};
    if (!options->source || !*options->source)
        return TDM_FAIL(err, TDM_E_USAGE, "evaluating: no source of images is given");
    if (options->batch < 1 || options->batch > TDMI_MODEL_BATCH)
        return TDM_FAIL(err, TDM_E_USAGE, "evaluating %s: batch %d; 1 to %d is accepted",
                        options->source, options->batch, TDMI_MODEL_BATCH);
    const tdm_status status = evaluate(&it, options, sink, evaluation, err);
    if (status != TDM_OK)
        tdm_evaluation_release(evaluation);
    return TDM_WRAP(err, status, "evaluating %s", options->source);
}

static void free_part(struct tdm_metrics *part)
{
    if (part)
        tdm_metrics_release(part);
    tdmi_free(part);
}

void tdm_evaluation_release(struct tdm_evaluation *evaluation)
{
    free_part(evaluation->unseen);
    free_part(evaluation->validation);
    tdm_metrics_release(&evaluation->metrics);
    tdmi_result_clear(evaluation);
}
