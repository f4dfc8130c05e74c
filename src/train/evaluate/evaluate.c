/*
 * Evaluation: every picture of a part exactly once, counted in whole numbers. Which part a picture
 * belongs to follows from its content, as the model remembers it.
 */
#include "base/hash/hash.h"
#include "base/memory.h"
#include "base/sized.h"
#include "data/audit/contents.h"
#include "data/loader/loader.h"
#include "tandem/log.h"
#include "tandem/event.h"
#include "train/evaluate/metrics.h"
#include "train/model/model_internal.h"

#include <stdlib.h>
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
    size_t n = (size_t)tdmi_source_items(it->source);
    it->label_map = tdmi_alloc((size_t)tdmi_source_classes(it->source), sizeof *it->label_map);
    it->items = tdmi_alloc(n, sizeof *it->items);
    it->judgements = tdmi_alloc((size_t)batch, sizeof *it->judgements);
    it->probabilities =
        tdmi_alloc((size_t)batch * (size_t)it->model->file.n_classes, sizeof *it->probabilities);
    if (!it->label_map || !it->items || !it->judgements || !it->probabilities)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to judge %zu pictures: out of memory", n);
    return TDM_OK;
}

/* The number that a name is in digits; -1: none, or n and more. */
static int number_of(const char *name, int n)
{
    int number = 0;
    const char *at = name;
    for (; *at >= '0' && *at <= '9' && number < n; at++)
        number = 10 * number + (*at - '0');
    return *at == '\0' && at > name && number < n ? number : -1;
}

/* Numbers from 0 for all classes of a model that names none: then each is meant by its number. */
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
            "the weights do not name their %d classes and those of %s are numbers: 0 is taken for "
            "the first output, and so on (--classes FILE names them)",
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
            tdm_log(TDM_LOG_WARNING, "class %s is not one of the model's: its pictures are skipped",
                    tdmi_source_class(it->source, c));
    }
    if (known == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has %d classes and none is one of the model's %d (the first is %s); a "
                        "folder with folders of these names is wanted; weights of other programs "
                        "take names from --classes FILE",
                        tdmi_source_path(it->source), n, it->model->file.n_classes,
                        it->model->file.classes[0]);
    return TDM_OK;
}

static bool was_trained_on(const struct evaluation *it, int64_t item)
{
    const struct tdmi_model_file *file = &it->model->file;
    return it->contents.hashes[item] != 0 &&
           tdmi_hashes_have(file->train_hashes, file->n_train_hashes, it->contents.hashes[item]);
}

static bool was_tested_on(const struct evaluation *it, int64_t item)
{
    const struct tdmi_model_file *file = &it->model->file;
    return it->contents.hashes[item] != 0 &&
           tdmi_hashes_have(file->test_hashes, file->n_test_hashes, it->contents.hashes[item]);
}

static bool was_evaluated_on(const struct evaluation *it, int64_t item)
{
    const struct tdmi_model_file *file = &it->model->file;
    return it->contents.hashes[item] != 0 &&
           tdmi_hashes_have(file->val_hashes, file->n_val_hashes, it->contents.hashes[item]);
}

static bool belongs(const struct evaluation *it, int64_t item)
{
    switch (it->part) {
    case TDM_PART_ALL:
        return true;
    case TDM_PART_TRAIN:
        return was_trained_on(it, item);
    case TDM_PART_VAL:
        return was_evaluated_on(it, item);
    case TDM_PART_TEST:
        return tdmi_source_item(it->source, item).part == TDMI_PART_TEST || was_tested_on(it, item);
    }
    return false;
}

static tdm_status select_items(struct evaluation *it, tdm_sink sink, tdm_error *err)
{
    static const char *const names[] = {"all", "train", "val", "test"};
    const int64_t n = tdmi_source_items(it->source);
    TDM_TRY(tdmi_contents_read(it->source, it->model->pool,
                               "reading every picture once to know its part", sink, &it->contents,
                               err),
            err, "finding the pictures of the part");
    for (int64_t i = 0; i < n; i++)
        if (belongs(it, i))
            it->items[it->n_items++] = i;
    if (it->n_items == 0 && it->part == TDM_PART_TEST && it->model->file.n_test_hashes == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the run kept no pictures of %s for a test, and the source has none of its "
                        "own; --part val takes those that judged, and a training with --split "
                        "0.8,0.1,0.1 keeps some",
                        tdmi_source_path(it->source));
    if (it->n_items == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "none of the %lld pictures in %s is of the part '%s'; --part all takes "
                        "every picture",
                        (long long)n, tdmi_source_path(it->source), names[it->part]);
    return TDM_OK;
}

static void count(struct evaluation *it, const struct tdmi_batch *batch, double *loss,
                  struct tdm_evaluation *out)
{
    const int64_t before = it->outcomes.n;
    tdmi_outcomes_add_batch(&it->outcomes, batch, it->judgements, it->probabilities,
                            it->contents.hashes);
    out->skipped += batch->n - (it->outcomes.n - before);
    for (int p = 0; p < batch->n; p++)
        out->trained_on += batch->labels[p] >= 0 && was_trained_on(it, batch->items[p]);
    for (int64_t i = before; i < it->outcomes.n; i++)
        *loss += (double)it->outcomes.losses[i];
}

/* Of --memory a quarter is the source's and the rest the loader's. */
static tdm_status evaluate_all(struct evaluation *it, const struct tdm_evaluate_options *options,
                               tdm_sink sink, struct tdm_evaluation *out, tdm_error *err)
{
    tdmi_loader *loader = NULL;
    struct tdmi_loader_cache cache = {.hashes = it->contents.hashes};
    if (options->cache)
        TDM_TRY(tdmi_cache_kind_find(options->cache, &cache.kind, err), err,
                "preparing to read pictures");
    double loss = 0.0;
    int64_t seen = 0;
    TDM_TRY(tdmi_loader_open(
                &(struct tdmi_loader_options){
                    .source = it->source,
                    .preprocess = *tdmi_graph_preprocess(it->model->file.graph),
                    .items = it->items,
                    .n_items = it->n_items,
                    .label_map = it->label_map,
                    .batch = options->batch,
                    .threads = tdmi_pool_threads(it->model->pool),
                    .is_tuned = true,
                    .memory_bytes = options->memory - options->memory / 4,
                    .cache = cache,
                },
                &loader, err),
            err, "preparing to read pictures (they get three quarters of --memory)");
    tdm_status status = tdmi_loader_seek(loader, 0, 0, err);
    while (status == TDM_OK) {
        const struct tdmi_batch *batch;
        status = tdmi_loader_next(loader, &batch, err);
        if (status != TDM_OK || !batch)
            break;
        status = tdmi_evaluator_batch(it->model->evaluator, batch, it->judgements,
                                      it->probabilities, NULL, err);
        if (status != TDM_OK)
            break;
        if (tdm_stop_is_requested()) {
            status = TDM_FAIL(err, TDM_E_STOPPED, "stopped on request after %lld of %lld pictures",
                              (long long)seen, (long long)it->n_items);
            break;
        }
        count(it, batch, &loss, out);
        seen += batch->n;
        if (sink.event)
            sink.event(sink.self,
                       &(tdm_event){.kind = TDM_EVENT_PROGRESS,
                                    .done = seen,
                                    .total = it->n_items,
                                    .loss = loss / (double)(it->outcomes.n + !it->outcomes.n)});
    }
    char text[600];
    for (int64_t i = 0; tdmi_loader_skip_at(loader, i, text, sizeof text); i++)
        tdm_log(TDM_LOG_WARNING, "skipped: %s", text);
    tdmi_loader_close(loader);
    if (status == TDM_OK && it->outcomes.n == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "none of the %lld pictures could be read",
                        (long long)it->n_items);
    return status;
}

static tdm_status evaluate(struct evaluation *it, const struct tdm_evaluate_options *options,
                           tdm_sink sink, struct tdm_evaluation *out, tdm_error *err)
{
    const int batch = options->batch;
    struct tdm_source_options how = options->how;
    if (how.cache_bytes == 0)
        how.cache_bytes = options->memory / 4;
    TDM_TRY(tdmi_source_open(options->source, &how, &it->source, err), err,
            "opening the pictures to judge");
    if (tdmi_source_classes(it->source) == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has no class folders, so nothing says what is right; tandem predict "
                        "takes unlabelled pictures",
                        options->source);
    TDM_TRY(reserve(it, batch, err), err, "evaluating");
    TDM_TRY(map_labels(it, err), err, "evaluating");
    TDM_TRY(select_items(it, sink, err), err, "evaluating");
    TDM_TRY(tdmi_outcomes_open(&it->outcomes, it->model->file.n_classes, it->n_items, err), err,
            "evaluating");
    if (sink.event)
        sink.event(
            sink.self,
            &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN, .total = it->n_items, .text = "judging"});
    tdm_status status = evaluate_all(it, options, sink, out, err);
    if (sink.event)
        sink.event(sink.self, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    if (status == TDM_OK)
        status = tdmi_metrics_of(&it->outcomes, it->model->file.classes, &out->metrics, err);
    return status;
}

tdm_status tdm_model_evaluate(tdm_model *model, const struct tdm_evaluate_options *options,
                              tdm_sink sink, struct tdm_evaluation *evaluation, tdm_error *err)
{
    TDMI_OPTIONS(tdm_evaluate_options, options, {0}, err);
    TDMI_RESULT(tdm_evaluation, evaluation, err);
    struct evaluation it = {.model = model, .part = options->part};
    if (options->batch < 1 || options->batch > TDMI_MODEL_BATCH)
        return TDM_FAIL(err, TDM_E_USAGE, "evaluating %s: batch %d; 1 to %d is accepted",
                        options->source, options->batch, TDMI_MODEL_BATCH);
    tdm_status status = evaluate(&it, options, sink, evaluation, err);
    release(&it);
    if (status != TDM_OK)
        tdm_evaluation_release(evaluation);
    return TDM_WRAP(err, status, "evaluating %s", options->source);
}

void tdm_evaluation_release(struct tdm_evaluation *evaluation)
{
    tdm_metrics_release(&evaluation->metrics);
    tdmi_result_clear(evaluation);
}
