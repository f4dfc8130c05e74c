/*
 * Options read back: from the record of a run, and from the text of a program. Both are the same
 * rows of one table; what is wrong in a record is a damaged file, in a text it is a wrong use.
 */
#include "backend/backend.h"
#include "base/scope.h"
#include "base/sized.h"
#include "base/text/json.h"
#include "base/text/suggest.h"
#include "models/network.h"
#include "track/run.h"
#include "train/copies/copies.h"
#include "train/freeze.h"
#include "train/config/options.h"
#include "train/config/options_table.h"
#include "train/config/rates.h"

#include <string.h>

/* ---- back from the record --------------------------------------------------------------- */

/* Does this build have what the word names? */
static bool is_known(const struct tdmi_row *row, const char *word)
{
    const char *option = row->name;
    struct tdmi_network network;
    struct tdmi_optimizer_choice optimizer;
    struct tdmi_schedule_choice schedule;
    if (row->type == TDMI_ROW_CHOICE)
        return tdmi_row_has_choice(row, word);
    if (strcmp(option, "model") == 0)
        return tdmi_network_find(word, &network, NULL) == TDM_OK;
    if (strcmp(option, "optimizer") == 0)
        return tdmi_optimizer_read(word, &optimizer, NULL) == TDM_OK;
    if (strcmp(option, "freeze") == 0)
        return tdmi_freeze_check(word, NULL) == TDM_OK;
    if (strcmp(option, "schedule") == 0)
        return tdmi_schedule_read(word, &schedule, NULL) == TDM_OK;
    if (strcmp(option, "device") == 0)
        return tdmi_backend_knows(word) || tdmi_backend_is_list(word);
    return true;
}

/* Within the row's range, and whole where it is counted; code is what another one is. */
static tdm_status read_number(const struct tdmi_row *row, const tdm_json_value *value,
                              tdm_status code, struct tdm_train_options *options, tdm_error *err)
{
    const double number = tdm_json_as_number(value, 0.0);
    const int64_t whole = tdm_json_as_integer(value, 0);
    /* A value that is no integer of 64 bits returns both fallbacks. */
    const bool is_whole = whole == tdm_json_as_integer(value, 1);
    if (row->type != TDMI_ROW_SEED)
        TDMI_TRY(tdmi_row_check(row, number, code, err));
    if (row->type != TDMI_ROW_NUMBER && !is_whole)
        return TDM_FAIL(err, code, "option \"%s\" is %g; a whole number%s is accepted", row->name,
                        number, row->type == TDMI_ROW_SEED ? " of 64 bits" : "");
    if (row->type == TDMI_ROW_SEED)
        *(uint64_t *)((char *)options + row->offset) = (uint64_t)whole;
    else
        tdmi_row_store(row, number, options);
    return TDM_OK;
}

static const char *kind_of(const tdm_json_value *value)
{
    static const char *const kinds[] = {
        [TDM_JSON_NULL] = "null",       [TDM_JSON_BOOL] = "false",
        [TDM_JSON_NUMBER] = "a number", [TDM_JSON_STRING] = "a string",
        [TDM_JSON_ARRAY] = "an array",  [TDM_JSON_OBJECT] = "an object",
    };
    return tdm_json_as_bool(value, false) ? "true" : kinds[tdm_json_kind_of(value)];
}

/* As tdmi_options_to_json wrote it; strings stay the document's. */
static tdm_status read_row(const struct tdmi_row *row, const tdm_json_value *value,
                           struct tdm_train_options *options, tdm_error *err)
{
    void *at = (char *)options + row->offset;
    const bool is_text = tdmi_row_is_text(row);
    if (tdm_json_kind_of(value) != (is_text ? TDM_JSON_STRING : TDM_JSON_NUMBER))
        return TDM_FAIL(err, TDM_E_INPUT, "its option --%s is %s; %s is accepted", row->name,
                        kind_of(value), is_text ? "a string" : "a number");
    if (row->type == TDMI_ROW_FLAG) {
        tdmi_row_store(row, tdm_json_as_number(value, 0.0), options);
        return TDM_OK;
    }
    if (!is_text)
        return read_number(row, value, TDM_E_INPUT, options, err);
    const char *word = tdm_json_as_string(value, "");
    const bool is_missing = !row->text && *word == '\0';
    if (!is_missing && !is_known(row, word))
        return TDM_FAIL(err, TDM_E_INPUT, "its option --%s is '%s', which this build lacks",
                        row->name, word);
    *(const char **)at = is_missing ? NULL : word;
    return TDM_OK;
}

/* Read the record in the run's folder, or where that has none yet, in its copies; other ranks
 * follow rank 0. */
static tdm_status find_record(const char *run, const char *copies, tdm_json_document **document,
                              tdm_error *err)
{
    TDMI_TRY(tdmi_run_read(run, NULL, document, err));
    if (*document || !copies || !*copies || tdm_train_rank() > 0)
        return TDM_OK;
    return tdmi_copies_record(copies, document, err);
}

tdm_status tdm_train_options_recorded(const char *run, struct tdm_train_options *options,
                                      tdm_json_document **words, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    struct tdm_train_options read = tdm_train_options_default();
    *words = NULL;
    TDM_TRY(tdmi_options_copy("tdm_train_options", options, &read, sizeof read, err), err,
            "reading the record of the run %s", run);
    TDM_TRY(find_record(run, read.checkpoint_to, &document, err), err,
            "reading the record of the run %s", run);
    const tdm_json_value *recorded =
        tdm_json_member(document ? tdm_json_root(document) : NULL, "options");
    const struct tdmi_row *row;
    for (int i = 0; recorded && (row = tdmi_row_at(i)) != NULL; i++) {
        const tdm_json_value *value = tdm_json_member(recorded, row->name);
        if (value)
            TDM_TRY(read_row(row, value, &read, err), err, "reading the record of the run %s", run);
        else if (tdmi_row_is_text(row) && *tdmi_row_text_before(row))
            *(const char **)((char *)&read + row->offset) = tdmi_row_text_before(row);
    }
    tdmi_options_init(options, options->struct_bytes > 0 ? options->struct_bytes : sizeof read,
                      &read, sizeof read);
    *words = tdmi_take(&document);
    return TDM_OK;
}

/* ---- from a program's text ---------------------------------------------------------------- */

static tdm_status wrong_kind(const char *name, const tdm_json_value *value, const char *accepted,
                             tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_USAGE, "option \"%s\" is %s; %s is accepted", name, kind_of(value),
                    accepted);
}

/* The record has 0 and 1. */
static tdm_status take_flag(const char *name, const tdm_json_value *value, bool *flag,
                            tdm_error *err)
{
    const int64_t number = tdm_json_as_integer(value, -1);
    if (tdm_json_kind_of(value) != TDM_JSON_BOOL && number != 0 && number != 1)
        return wrong_kind(name, value, "true, false, 0 or 1", err);
    *flag = tdm_json_as_bool(value, number == 1);
    return TDM_OK;
}

/* Words are checked by the function that looks them up, which lists what there is. */
static tdm_status take_words(const char *name, const tdm_json_value *value, const char **words,
                             tdm_error *err)
{
    if (tdm_json_kind_of(value) != TDM_JSON_STRING)
        return wrong_kind(name, value, "a string", err);
    *words = tdm_json_as_string(value, "");
    return TDM_OK;
}

/* Is the row's word accepted in place of a number? Other words only describe the default. */
static bool accepts_word(const struct tdmi_row *row)
{
    return row->words && strcmp(row->words, "auto") == 0;
}

static tdm_status take_number(const struct tdmi_row *row, const tdm_json_value *value,
                              struct tdm_train_options *options, tdm_error *err)
{
    if (accepts_word(row) && strcmp(tdm_json_as_string(value, ""), row->words) == 0) {
        tdmi_row_store(row, row->unset, options);
        return TDM_OK;
    }
    if (tdm_json_kind_of(value) != TDM_JSON_NUMBER)
        return wrong_kind(row->name, value,
                          accepts_word(row) ? "a number or \"auto\""
                          : row->words      ? "a number or null"
                                            : "a number",
                          err);
    return read_number(row, value, TDM_E_USAGE, options, err);
}

/* A text without a default, and one that no list restricts. */
static bool may_be_missing(const struct tdmi_row *row)
{
    return !row->text || row->type == TDMI_ROW_TEXT;
}

/* null leaves a number unset and removes a text. */
static tdm_status take_row(const struct tdmi_row *row, const tdm_json_value *value,
                           struct tdm_train_options *options, tdm_error *err)
{
    void *at = (char *)options + row->offset;
    const bool is_null = tdm_json_kind_of(value) == TDM_JSON_NULL;
    if (row->type == TDMI_ROW_FLAG)
        return take_flag(row->name, value, at, err);
    if (!tdmi_row_is_text(row)) {
        if (!is_null || !row->words || accepts_word(row))
            return take_number(row, value, options, err);
        tdmi_row_store(row, row->unset, options);
        return TDM_OK;
    }
    const char *words = NULL;
    if (!is_null || !may_be_missing(row))
        TDMI_TRY(take_words(row->name, value, &words, err));
    *(const char **)at = words && (*words || !may_be_missing(row)) ? words : NULL;
    return TDM_OK;
}

static tdm_status refuse_name(const char *name, tdm_error *err)
{
    static const char *const others[] = {"source", "run", "resume", "trace"};
    char near[100];
    const struct tdmi_row *row;
    tdmi_suggestion suggestion = {.typed = name};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        tdmi_suggest_consider(&suggestion, others[i]);
    for (int i = 0; (row = tdmi_row_at(i)) != NULL; i++)
        tdmi_suggest_consider(&suggestion, row->name);
    return TDM_FAIL(err, TDM_E_USAGE,
                    "there is no option \"%s\"; source, run, resume, trace and what run.json lists "
                    "under options are accepted%s",
                    name, tdmi_suggest_words(&suggestion, "", near, sizeof near));
}

static tdm_status take_member(const char *name, const tdm_json_value *value,
                              struct tdm_train_options *options, tdm_error *err)
{
    if (strcmp(name, "source") == 0)
        return take_words(name, value, &options->source, err);
    if (strcmp(name, "run") == 0)
        return take_words(name, value, &options->run, err);
    if (strcmp(name, "trace") == 0)
        return take_words(name, value, &options->trace, err);
    if (strcmp(name, "resume") == 0)
        return take_flag(name, value, &options->resume, err);
    const struct tdmi_row *row = tdmi_row_named(name);
    if (!row)
        return refuse_name(name, err);
    return take_row(row, value, options, err);
}

tdm_status tdmi_options_from_json(const tdm_json_value *object, struct tdm_train_options *options,
                                  tdm_error *err)
{
    if (tdm_json_kind_of(object) != TDM_JSON_OBJECT)
        return TDM_FAIL(err, TDM_E_USAGE, "options are one JSON object");
    for (size_t i = 0; i < tdm_json_count(object); i++)
        TDMI_TRY(take_member(tdm_json_key_at(object, i), tdm_json_at(object, i), options, err));
    return TDM_OK;
}

tdm_status tdm_train_options_set(const char *text, struct tdm_train_options *options,
                                 tdm_json_document **words, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    struct tdm_train_options set = tdm_train_options_default();
    *words = NULL;
    TDM_TRY(tdmi_options_copy("tdm_train_options", options, &set, sizeof set, err), err,
            "reading options");
    TDM_TRY(tdm_json_read(text, strlen(text), "the options", &document, err), err,
            "reading options");
    TDMI_TRY(tdmi_options_from_json(tdm_json_root(document), &set, err));
    tdmi_options_init(options, options->struct_bytes > 0 ? options->struct_bytes : sizeof set, &set,
                      sizeof set);
    *words = tdmi_take(&document);
    return TDM_OK;
}
