/*
 * The run's record: what it was started with, on which machine, with which data; and what a
 * finished run recorded as its result.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "base/system/cpu.h"
#include "base/text/quote.h"
#include "train/advice.h"
#include "train/config/options.h"
#include "train/evaluate/score.h"
#include "train/session/session.h"

#include <stdarg.h>
#include <stdio.h>

double tdmi_record_seconds(const struct tdmi_run_record *record)
{
    return record->seconds_before + tdmi_clock_seconds_since(record->started_ns);
}

static void record_sentence(const struct tdmi_run_record *record, bool is_detail,
                            const char *format, va_list arguments)
{
    char text[2 * TDM_ERROR_TEXT_BYTES];
    tdmi_quote(text, sizeof text, format, arguments);
    tdmi_track_event(record->track, &(tdm_event){.kind = TDM_EVENT_NOTE,
                                                 .step = record->progress->step,
                                                 .seconds = tdmi_record_seconds(record),
                                                 .text = text,
                                                 .is_detail = is_detail});
}

void tdmi_record_note(const struct tdmi_run_record *record, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record_sentence(record, false, format, arguments);
    va_end(arguments);
}

void tdmi_record_detail(const struct tdmi_run_record *record, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record_sentence(record, true, format, arguments);
    va_end(arguments);
}

bool tdmi_record_is_new(const struct tdmi_run_record *record)
{
    return tdmi_run_found(record->run) == TDMI_RUN_NONE;
}

/* ---- what the run was started with ----------------------------------------------------------- */

static const tdm_json_value *data_member(const struct tdmi_run_record *record, const char *name)
{
    return tdm_json_member(tdmi_run_recorded(record->run, "data"), name);
}

int64_t tdmi_record_integer(const struct tdmi_run_record *record, const char *name,
                            int64_t otherwise)
{
    return tdm_json_as_integer(data_member(record, name), otherwise);
}

double tdmi_record_number(const struct tdmi_run_record *record, const char *name)
{
    return tdm_json_as_number(data_member(record, name), 0.0);
}

const char *tdmi_record_string(const struct tdmi_run_record *record, const char *name)
{
    return tdm_json_as_string(data_member(record, name), "");
}

tdm_status tdmi_record_set(const struct tdmi_run_record *record, const char *section,
                           tdm_json_writer *writer, tdm_error *err)
{
    const char *text;
    tdm_status status = tdm_json_finish(writer, &text, NULL, err);
    if (status == TDM_OK)
        status = tdmi_run_set(record->run, section, text, err);
    tdm_json_writer_free(writer);
    return TDM_WRAP(err, status, "recording the run's %s", section);
}

static tdm_status record_options(const struct tdmi_session *session, tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdmi_options_to_json(&session->config.options, writer, NULL);
    TDMI_TRY(tdmi_record_set(&session->record, "options", writer, err));
    writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "source", session->config.options.source);
    tdm_json_bool(writer, "network_chosen", session->pretrained.is_by_default);
    tdm_json_bool(writer, "weights_missed", session->pretrained.misses_weights);
    if (session->config.patience_from > 0)
        tdm_json_integer(writer, "patience_from", session->config.patience_from);
    tdm_json_object_end(writer);
    return tdmi_record_set(&session->record, "asked", writer, err);
}

tdm_status tdmi_record_begin(const struct tdmi_session *session, tdm_error *err)
{
    TDMI_TRY(record_options(session, err));
    return tdmi_run_save(session->record.run, TDMI_RUN_RUNNING, err);
}

void tdmi_record_end(const struct tdmi_run_record *record, tdm_status status)
{
    /* The first failure is the one to report. */
    const tdm_status ignored = tdmi_run_save(
        record->run, status == TDM_E_STOPPED ? TDMI_RUN_STOPPED : TDMI_RUN_FAILED, NULL);
    (void)ignored;
}

tdm_status tdmi_record_machine(const struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_cpu cpu;
    tdmi_cpu_describe(&cpu);
    char device[400];
    session->compute.backend->device.describe(session->compute.device, device, sizeof device);
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "cpu", cpu.model);
    tdm_json_string(writer, "isa", cpu.isa);
    tdm_json_string(writer, "backend", session->compute.backend->name);
    tdm_json_string(writer, "device", device);
    tdm_json_integer(writer, "threads", tdmi_pool_threads(session->compute.pool));
    tdm_json_integer(writer, "planned_bytes", tdmi_needs_total(&session->compute.needs));
    if (!session->compute.backend->device.is_host) {
        tdm_json_integer(writer, "recorded_bytes", session->compute.recorded_bytes);
        tdm_json_integer(writer, "kept_rows_bytes", session->compute.device_feature_bytes);
    }
    tdm_json_integer(writer, "world", tdmi_ranks_world(session));
    tdm_json_object_end(writer);
    return tdmi_record_set(&session->record, "machine", writer, err);
}

tdm_status tdmi_session_record(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_train_config *config = &session->config;
    const struct tdmi_train_data *data = &session->data;
    const struct tdmi_train_network *network = &session->network;
    const struct tdmi_run_record *record = &session->record;
    char labels[17];
    TDMI_AT_END(tdmi_text_release) tdmi_text augment = {0};
    tdmi_augment_write(&config->augment, &augment);
    TDM_TRY(tdmi_text_status(&augment, err), err, "beginning the record");
    TDM_TRY(record_options(session, err), err, "beginning the record");
    TDM_TRY(tdmi_record_machine(session, err), err, "beginning the record");
    if (!tdmi_ranks_is_exact(session)) /* it stays, also where a later session is exact */
        TDM_TRY(tdmi_run_set(record->run, "exact", "false", err), err, "beginning the record");
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "source", tdmi_source_path(data->source));
    tdm_json_string(writer, "kind", tdmi_source_kind(data->source));
    tdm_json_string(writer, "network", network->definition.name);
    tdm_json_integer(writer, "classes", tdmi_source_classes(data->source));
    tdm_json_integer(writer, "train", data->split.n_train);
    tdm_json_integer(writer, "val", data->split.n_val);
    tdm_json_integer(writer, "test", data->has_test ? data->split.n_test : 0);
    tdm_json_integer(writer, "copies", data->split.n_copies);
    tdm_json_integer(writer, "torn", data->split.n_torn);
    tdm_json_string(writer, "labels", tdmi_data_labels(data, labels));
    tdm_json_string(writer, "order", data->order.kind == TDMI_ORDER_GROUPED ? "grouped" : "full");
    tdm_json_string(writer, "decoder", tdmi_compute_decoder_name(&session->compute));
    tdm_json_integer(writer, "unreadable", data->contents.n_unreadable);
    tdm_json_integer(writer, "parameters", network->graph->parameters);
    tdm_json_integer(writer, "first_trained", network->unfreeze.first);
    tdm_json_integer(writer, "thaws_to", network->unfreeze.last);
    tdm_json_integer(writer, "head", network->head);
    tdm_json_string(writer, "augment", tdmi_text_string(&augment));
    tdm_json_integer(writer, "views", config->views);
    tdm_json_integer(writer, "batch", config->batch);
    if (config->batch_reason[0])
        tdm_json_string(writer, "batch_reason", config->batch_reason);
    tdm_json_integer(writer, "shard", config->shard);
    tdm_json_integer(writer, "split_products", config->splits_products);
    tdm_json_string(writer, "bn", config->options.bn);
    tdm_json_number(writer, "learning_rate", config->rates.learning_rate);
    if (config->unfrozen_rate > 0.0)
        tdm_json_number(writer, "thawed_rate", config->unfrozen_rate); /* a key of old runs */
    tdmi_rates_to_json(&config->rates, writer, "rates");
    tdm_json_object_end(writer);
    return tdmi_record_set(record, "data", writer, err);
}

static void stage_to_json(const struct tdmi_stage_rate *stage, tdm_json_writer *writer,
                          const char *key)
{
    tdm_json_object_begin(writer, key);
    tdm_json_integer(writer, "images", stage->pictures);
    tdm_json_integer(writer, "bytes", stage->bytes);
    tdm_json_number(writer, "thread_seconds", stage->seconds);
    if (stage->seconds > 0.0)
        tdm_json_number(writer, "images_per_second", (double)stage->pictures / stage->seconds);
    else
        tdm_json_null(writer, "images_per_second");
    tdm_json_object_end(writer);
}

tdm_status tdmi_record_loader(const struct tdmi_run_record *record, const tdmi_feed *feed,
                              tdm_error *err)
{
    struct tdmi_loader_rates rates;
    if (!feed || !tdmi_feed_rates(feed, &rates) || !(rates.seconds > 0.0))
        return TDM_OK;
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "threads", rates.threads);
    tdm_json_integer(writer, "batches", rates.depth);
    stage_to_json(&rates.read, writer, "read");
    stage_to_json(&rates.decode, writer, "decode");
    stage_to_json(&rates.augment, writer, "augment");
    tdm_json_integer(writer, "cached", rates.cached);
    tdm_json_integer(writer, "images", rates.pictures);
    tdm_json_number(writer, "seconds", rates.seconds);
    tdm_json_number(writer, "images_per_second", (double)rates.pictures / rates.seconds);
    tdm_json_number(writer, "consumer_wait_seconds", rates.consumer_waits);
    tdm_json_number(writer, "ring_wait_seconds", rates.ring_waits);
    tdm_json_object_end(writer);
    return tdmi_record_set(record, "loader", writer, err);
}

/* Reading all images may take long: a run that is stopped meanwhile is recorded, and a finished one
 * stays finished. */
tdm_status tdmi_record_stop(const struct tdmi_session *session, tdm_error *err)
{
    if (tdmi_run_found(session->record.run) == TDMI_RUN_FINISHED)
        return TDM_E_STOPPED;
    if (record_options(session, NULL) == TDM_OK)
        tdmi_record_end(&session->record, TDM_E_STOPPED);
    return TDM_WRAP(err, TDM_E_STOPPED,
                    "before its first step; %s keeps the options, and --resume continues",
                    tdmi_run_path(session->record.run));
}

/* ---- the result of a finished run ------------------------------------------------------------ */

static double number(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_number(tdm_json_member(object, key), 0.0);
}

static int64_t whole(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_integer(tdm_json_member(object, key), 0);
}

void tdmi_record_recall_tests(const struct tdmi_run_record *record, struct tdm_train_result *result)
{
    const tdm_json_value *recorded = tdmi_run_recorded(record->run, "result");
    const tdm_json_value *before = tdm_json_member(recorded, "tests_before");
    const size_t n = tdm_json_count(before);
    result->n_tests_before = 0;
    for (size_t i = 0; i < n && i < TDM_TESTS_BEFORE; i++) {
        const tdm_json_value *test = tdm_json_at(before, i);
        result->tests_before[result->n_tests_before++] =
            (struct tdm_test_before){(int)whole(test, "epoch"), tdmi_score_from_json(test)};
    }
}

/* A record of an older version has none: it is then computed again. */
static void recall_next(const tdm_json_value *recorded, struct tdm_next *next)
{
    const tdm_json_value *before = tdm_json_member(recorded, "next");
    next->step = tdmi_advice_step(tdm_json_as_string(tdm_json_member(before, "step"), ""));
    snprintf(next->evidence, sizeof next->evidence, "%s",
             tdm_json_as_string(tdm_json_member(before, "evidence"), ""));
}

bool tdmi_record_recall_result(const struct tdmi_run_record *record, bool has_test,
                               struct tdm_train_result *result)
{
    const tdm_json_value *recorded = tdmi_run_recorded(record->run, "result");
    const tdm_json_value *after = tdm_json_member(recorded, "after_best");
    const tdm_json_value *features = tdm_json_member(recorded, "features");
    result->test = tdmi_score_from_json(tdm_json_member(recorded, "test"));
    if (tdmi_run_found(record->run) != TDMI_RUN_FINISHED ||
        whole(recorded, "steps") != result->steps || (has_test && result->test.n == 0))
        return false;
    result->seconds = number(recorded, "seconds");
    result->images_per_second = number(recorded, "images_per_second");
    result->skipped = whole(recorded, "skipped");
    result->cached = tdm_json_as_bool(tdm_json_member(recorded, "cached"), false);
    result->features = (struct tdm_features){.rows = whole(features, "rows"),
                                             .reused = whole(features, "reused"),
                                             .checked = whole(features, "checked"),
                                             .remade = whole(features, "remade")};
    result->after_best = (struct tdm_after_best){
        .epochs = (int)whole(after, "epochs"),
        .seconds = number(after, "seconds"),
        .n = whole(after, "n"),
        .only_best = whole(after, "only_best"),
        .only_last = whole(after, "only_last"),
        .p = tdm_json_as_number(tdm_json_member(after, "p"), 1.0),
        .n_distinct = tdm_json_as_integer(tdm_json_member(after, "n_distinct"), whole(after, "n")),
    };
    tdmi_record_recall_tests(record, result);
    recall_next(recorded, &result->next);
    return true;
}
