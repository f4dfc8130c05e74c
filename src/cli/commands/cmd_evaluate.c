/*
 * tandem evaluate MODEL SRC: how often a trained model is right, every picture counted once.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "cli/scores.h"
#include "tandem/model.h"
#include "cli/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

TDMI_POINTER_RELEASE(tdm_model, tdm_model_close)

struct values {
    struct tdm_source_options how;
    struct tdm_model_options model;
    const char *part, *cache;
    int64_t memory;
    int batch, show;
};

static void defaults(void *values)
{
    *(struct values *)values = (struct values){.part = "all",
                                               .model.device = "cpu",
                                               .cache = "none",
                                               .batch = 64,
                                               .show = TDMI_SHOW_DEFAULT};
}

static enum tdm_part part_of(const char *name)
{
    return strcmp(name, "train") == 0  ? TDM_PART_TRAIN
           : strcmp(name, "val") == 0  ? TDM_PART_VAL
           : strcmp(name, "test") == 0 ? TDM_PART_TEST
                                       : TDM_PART_ALL;
}

/* Images that the model was trained on say nothing about new ones, so the tables and the first line
 * are of those that it has not seen; where there are none, of those that chose the epoch. */
static void print_evaluation(struct tdmi_output *out, const struct tdm_evaluation *evaluation,
                             int most)
{
    char text[160];
    const struct tdm_metrics *all = &evaluation->metrics;
    const struct tdm_metrics *unseen = evaluation->unseen, *validation = evaluation->validation;
    const struct tdm_metrics *first = unseen ? unseen : validation ? validation : all;
    const char *title = unseen                       ? "unseen images"
                        : validation                 ? TDMI_TITLE_VALIDATION
                        : evaluation->trained_on > 0 ? "training images"
                                                     : "";
    tdmi_print_metrics(out, title, first, most);
    if (validation && validation != first)
        tdmi_print(out, "%s: %s\n", TDMI_TITLE_VALIDATION,
                   tdmi_format_score(&validation->score, text, sizeof text));
    if (first->score.n < all->score.n)
        tdmi_print(out, "all images: %s\n", tdmi_format_score(&all->score, text, sizeof text));
    if (evaluation->trained_on > 0)
        tdmi_print(out, "The model was trained on %lld of these images.\n",
                   (long long)evaluation->trained_on);
    if (evaluation->trained_on < 0)
        tdmi_print(out,
                   "The model does not record its training images; these may be among them.\n");
}

static void report(const struct tdmi_call *call, const struct tdm_evaluation *evaluation)
{
    const struct values *values = call->values;
    tdm_evaluation_to_json(evaluation, call->json);
    if (evaluation->skipped > 0)
        tdmi_print(call->out,
                   "%lld of %lld images %s skipped: not readable, or of a class unknown to the "
                   "model.\n",
                   (long long)evaluation->skipped,
                   (long long)(evaluation->skipped + evaluation->metrics.score.n),
                   evaluation->skipped == 1 ? "was" : "were");
    print_evaluation(call->out, evaluation, values->show);
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = NULL;
    TDMI_AT_END(tdm_evaluation_release)
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    TDMI_TRY(tdm_model_open(call->arguments[0], &values->model, &model, err));
    const struct tdm_evaluate_options options = {.source = call->arguments[1],
                                                 .how = values->how,
                                                 .part = part_of(values->part),
                                                 .batch = values->batch,
                                                 .memory = values->memory,
                                                 .cache = values->cache};
    TDMI_TRY(tdm_model_evaluate(model, &options, tdmi_watch_sink(call->watch), &evaluation, err));
    report(call, &evaluation);
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    TDMI_ARGUMENT_MODEL,
    TDMI_ARGUMENT_SRC,
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(CHOICE, "part", part, "Images",
             "images to evaluate, as the model's training split them",
             .choices = "all|train|val|test", .is_common = true),
#define AT how.
#define HOW(member) member
#include "tandem/source.def"
#undef AT
    TDMI_ROW_SHOW(show),
    TDMI_ROW_BATCH(batch, 256, "Machine", "images evaluated at once; never changes the results"),
    TDMI_ROW(SIZE, "memory", memory, "Machine", "memory for prefetching and caches",
             .high = INFINITY, .default_words = "a part of what is free"),
    TDMI_ROW(CHOICE, "cache", cache, "Machine",
             "what is kept of images once read; disk: the next run reads nothing from the store",
             .choices = "auto|none|encoded|decoded|disk"),
#include "cli/foreign.def"
    TDMI_ROW_THREADS(model.threads, "one per core", "number of threads; never changes the results"),
    TDMI_ROW_DEVICE(model.device, "cpu, or one backend: cuda, cuda:1, ref"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem evaluate runs/first pictures --part val",
    "the images that training kept for validation",
    "tandem evaluate runs/first new-pictures --json",
    "another folder, for a script",
    "tandem evaluate resnet50.pth pictures --model resnet50 --classes imagenet.txt",
    "weights of another program",
    NULL,
};

TDMI_COMMAND(evaluate, "measure the accuracy of a trained model",
             "Evaluates every image exactly once, with the preprocessing that the model was "
             "trained with. Accuracies come with n and a 95 % Wilson interval. If some of the "
             "images trained the model, those that it has not seen are reported first.");
