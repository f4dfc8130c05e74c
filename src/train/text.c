/*
 * Results as JSON, and whole jobs from text to text.
 */
#include "tandem/text.h"
#include "base/memory.h"
#include "tandem/train.h"
#include "train/options.h"
#include "train/session.h"

#include <string.h>

/* ---- results --------------------------------------------------------------------------------- */

static void write_features(const struct tdm_features *features, tdm_json_writer *writer,
                           const char *key)
{
    tdm_json_object_begin(writer, key);
    tdm_json_integer(writer, "rows", features->rows);
    tdm_json_integer(writer, "reused", features->reused);
    tdm_json_integer(writer, "checked", features->checked);
    tdm_json_object_end(writer);
}

void tdmi_result_to_json(const struct tdm_train_result *result, tdm_json_writer *writer)
{
    tdm_json_integer(writer, "epochs", result->epochs);
    tdm_json_integer(writer, "best_epoch", result->best_epoch);
    tdm_json_integer(writer, "steps", result->steps);
    tdm_json_number(writer, "seconds", result->seconds);
    tdm_json_number(writer, "images_per_second", result->images_per_second);
    tdm_score_to_json(&result->train, writer, "train");
    tdm_score_to_json(&result->val, writer, "val");
    tdm_json_integer(writer, "skipped", result->skipped);
    tdm_json_bool(writer, "cached", result->cached);
    write_features(&result->features, writer, "features");
    tdm_json_integer(writer, "views", result->views);
    tdm_json_integer(writer, "world", result->world);
}

void tdm_train_result_to_json(const struct tdm_train_result *result, tdm_json_writer *writer)
{
    tdm_json_string(writer, "run", result->run);
    tdmi_result_to_json(result, writer);
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

static char *copy(const char *text)
{
    const size_t n = strlen(text) + 1;
    char *made = tdmi_alloc(n, 1);
    if (made)
        memcpy(made, text, n);
    return made;
}

/* What the writer holds where status is TDM_OK, else what err says. */
static tdm_status answer_with(tdm_status status, tdm_json_writer *writer, tdm_error *err,
                              char **answer)
{
    char sentences[4 * TDM_ERROR_TEXT_BYTES];
    const char *text = sentences;
    if (status == TDM_OK)
        status = tdm_json_finish(writer, &text, NULL, err);
    if (status != TDM_OK) {
        tdm_error_format(err, sentences, sizeof sentences);
        text = sentences;
    }
    *answer = copy(text);
    tdm_json_writer_free(writer);
    return status == TDM_OK && !*answer ? TDM_E_MEMORY : status;
}

void tdm_text_free(char *text)
{
    tdmi_free(text);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static tdm_status train(const char *text, tdm_sink sink, struct tdm_train_result *result,
                        tdm_error *err)
{
    struct tdm_train_options options = tdm_train_options_default();
    tdm_json_document *document = NULL;
    TDM_TRY(tdm_json_read(text, strlen(text), "the options", &document, err), err,
            "reading options");
    tdm_status status = tdmi_options_from_json(tdm_json_root(document), &options, err);
    if (status == TDM_OK)
        status = tdm_train(&options, sink, result, err);
    tdm_json_document_free(document);
    return status;
}

tdm_status tdm_text_train(const char *options, tdm_sink sink, char **answer)
{
    tdm_error err = {0};
    struct tdm_train_result result;
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
