/*
 * Results as JSON, and whole jobs from text to text.
 */
#include "tandem/train.h"
#include "base/scope.h"
#include "base/sized.h"
#include "base/text/json.h"
#include "train/config/options.h"
#include "train/session/session.h"

#include <string.h>

/* ---- results --------------------------------------------------------------------------------- */

/* Counts are null where they are not known. */
static void write_after_best(const struct tdm_after_best *after, tdm_json_writer *writer)
{
    tdm_json_object_begin(writer, "after_best");
    tdm_json_integer(writer, "epochs", after->epochs);
    tdm_json_number(writer, "seconds", after->seconds);
    if (after->n > 0) {
        tdm_json_integer(writer, "n", after->n);
        tdm_json_integer(writer, "n_distinct", after->n_distinct);
        tdm_json_integer(writer, "only_best", after->only_best);
        tdm_json_integer(writer, "only_last", after->only_last);
        tdm_json_number(writer, "p", after->p);
    } else {
        tdm_json_null(writer, "n");
        tdm_json_null(writer, "n_distinct");
        tdm_json_null(writer, "only_best");
        tdm_json_null(writer, "only_last");
        tdm_json_null(writer, "p");
    }
    tdm_json_object_end(writer);
}

static void write_tests_before(const struct tdm_train_result *result, tdm_json_writer *writer)
{
    tdm_json_array_begin(writer, "tests_before");
    for (int i = 0; i < result->n_tests_before && i < TDM_TESTS_BEFORE; i++) {
        tdm_json_object_begin(writer, NULL);
        tdm_json_integer(writer, "epoch", result->tests_before[i].epoch);
        tdm_score_members_to_json(&result->tests_before[i].score, writer);
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
}

void tdmi_result_to_json(const struct tdm_train_result *result, tdm_json_writer *writer)
{
    tdm_json_integer(writer, "epochs", result->epochs);
    tdm_json_integer(writer, "best_epoch", result->best_epoch);
    tdm_json_string(writer, "ended_by", result->ended_by);
    tdm_json_integer(writer, "patience", result->patience);
    write_after_best(&result->after_best, writer);
    tdm_json_integer(writer, "steps", result->steps);
    tdm_json_number(writer, "seconds", result->seconds);
    tdm_json_number(writer, "images_per_second", result->images_per_second);
    tdm_score_to_json(&result->train, writer, "train");
    tdm_score_to_json(&result->val, writer, "val");
    if (result->test.n > 0)
        tdm_score_to_json(&result->test, writer, "test");
    else
        tdm_json_null(writer, "test");
    write_tests_before(result, writer);
    tdm_json_integer(writer, "skipped", result->skipped);
    tdm_unread_to_json(&result->unread, writer);
    tdm_json_bool(writer, "cached", result->cached);
    tdm_json_object_begin(writer, "features");
    tdm_json_integer(writer, "rows", result->features.rows);
    tdm_json_integer(writer, "reused", result->features.reused);
    tdm_json_integer(writer, "checked", result->features.checked);
    tdm_json_integer(writer, "remade", result->features.remade);
    tdm_json_object_end(writer);
    tdm_json_integer(writer, "views", result->views);
    tdm_json_integer(writer, "batch", result->batch);
    if (result->batch_reason[0])
        tdm_json_string(writer, "batch_reason", result->batch_reason);
    else
        tdm_json_null(writer, "batch_reason");
    tdm_json_integer(writer, "layers_left", result->layers_left);
    tdm_json_integer(writer, "world", result->world);
    tdm_json_object_begin(writer, "next");
    tdm_json_string(writer, "step", result->next.step);
    tdm_json_string(writer, "evidence", result->next.evidence);
    tdm_json_object_end(writer);
}

void tdm_train_result_to_json(const struct tdm_train_result *result, tdm_json_writer *writer)
{
    struct tdm_train_result own = {.ended_by = ""};
    if (tdmi_options_copy("tdm_train_result", result, &own, sizeof own, NULL) != TDM_OK)
        return;
    tdm_json_string(writer, "run", own.run);
    tdmi_result_to_json(&own, writer);
}

static void write_part(tdm_json_writer *writer, const char *key, const struct tdm_metrics *part)
{
    if (!part) {
        tdm_json_null(writer, key);
        return;
    }
    tdm_json_object_begin(writer, key);
    tdm_metrics_summary_to_json(part, writer);
    tdm_json_object_end(writer);
}

void tdm_evaluation_to_json(const struct tdm_evaluation *evaluation, tdm_json_writer *writer)
{
    tdm_metrics_to_json(&evaluation->metrics, writer);
    if (evaluation->trained_on >= 0)
        tdm_json_integer(writer, "trained_on", evaluation->trained_on);
    else
        tdm_json_null(writer, "trained_on");
    write_part(writer, "unseen", evaluation->unseen);
    write_part(writer, "validation", evaluation->validation);
    tdm_json_integer(writer, "skipped", evaluation->skipped);
}

void tdm_prediction_to_json(const struct tdm_prediction *prediction, bool has_logits,
                            tdm_json_writer *writer)
{
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "path", prediction->path);
    tdm_json_array_begin(writer, "top");
    for (int i = 0; i < prediction->n_guesses; i++) {
        tdm_json_object_begin(writer, NULL);
        tdm_json_integer(writer, "index", prediction->guesses[i].index);
        tdm_json_string(writer, "label", prediction->guesses[i].label);
        tdm_json_number(writer, "probability", (double)prediction->guesses[i].probability);
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
    if (has_logits) {
        tdm_json_array_begin(writer, "logits");
        for (int i = 0; i < prediction->n_logits; i++)
            tdm_json_number(writer, NULL, (double)prediction->logits[i]);
        tdm_json_array_end(writer);
    }
    if (prediction->problem)
        tdm_json_string(writer, "problem", prediction->problem);
    tdm_json_object_end(writer);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The answer is the writer's text where status is TDM_OK, else the sentences of err. */
static tdm_status answer_with(tdm_status status, tdm_json_writer *writer, tdm_error *err,
                              char **answer)
{
    char sentences[TDM_ERROR_FRAMES * (TDM_ERROR_TEXT_BYTES + 64)];
    const char *text = sentences;
    if (status == TDM_OK)
        status = tdm_json_finish(writer, &text, NULL, err);
    if (status != TDM_OK) {
        tdm_error_format(err, sentences, sizeof sentences);
        text = sentences;
    }
    const size_t bytes = strlen(text) + 1;
    *answer = tdmi_alloc(bytes, 1);
    if (*answer)
        memcpy(*answer, text, bytes);
    tdm_json_writer_free(writer);
    return status == TDM_OK && !*answer ? TDM_E_MEMORY : status;
}

void tdm_text_free(char *text)
{
    tdmi_free(text);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* A resumed run keeps its recorded options, except those that are given now. */
static tdm_status take_recorded(const tdm_json_value *object, struct tdm_train_options *options,
                                tdm_json_document **words, tdm_error *err)
{
    const char *run = options->run;
    if (!run || !*run)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "\"resume\" requires \"run\", the folder of the run to resume");
    const char *copies = options->checkpoint_to;
    *options = tdm_train_options_default();
    options->checkpoint_to = copies;
    TDMI_TRY(tdm_train_options_recorded(run, options, words, err));
    return tdmi_options_from_json(object, options, err);
}

static tdm_status train(const char *text, tdm_sink sink, struct tdm_train_result *result,
                        tdm_error *err)
{
    struct tdm_train_options options = tdm_train_options_default();
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *words = NULL;
    TDM_TRY(tdm_json_read(text, strlen(text), "the options", &document, err), err,
            "reading options");
    TDMI_TRY(tdmi_options_from_json(tdm_json_root(document), &options, err));
    if (options.resume)
        TDMI_TRY(take_recorded(tdm_json_root(document), &options, &words, err));
    return tdm_train(&options, sink, result, err);
}

tdm_status tdm_text_train(const char *options, tdm_sink sink, char **answer)
{
    tdm_error err = {0};
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdm_json_writer *writer = tdm_json_writer_new(0);
    const tdm_status status = train(options, sink, &result, &err);
    tdm_json_object_begin(writer, NULL);
    if (status == TDM_OK)
        tdm_train_result_to_json(&result, writer);
    tdm_json_object_end(writer);
    return answer_with(status, writer, &err, answer);
}

static tdm_status take(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    (void)err;
    tdm_prediction_to_json(prediction, false, self);
    return TDM_OK;
}

tdm_status tdm_text_predict(const char *model, const char *const *paths, size_t n_paths, int top,
                            char **answer)
{
    tdm_error err = {0};
    tdm_model *opened = NULL;
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_status status = tdm_model_open(model, NULL, &opened, &err);
    tdm_json_object_begin(writer, NULL);
    tdm_json_array_begin(writer, "predictions");
    if (status == TDM_OK)
        status = tdm_model_predict(opened, paths, n_paths, top, (tdm_prediction_sink){writer, take},
                                   &err);
    tdm_json_array_end(writer);
    tdm_json_object_end(writer);
    tdm_model_close(opened);
    return answer_with(status, writer, &err, answer);
}
