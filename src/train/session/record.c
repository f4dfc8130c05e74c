/*
 * What a run records of how it was begun: what was asked for, on which machine, with which data.
 */
#include "base/system/cpu.h"
#include "train/config/options.h"
#include "train/session/session.h"

tdm_status tdmi_session_set(struct tdmi_session *session, const char *section,
                            tdm_json_writer *writer, tdm_error *err)
{
    const char *text;
    tdm_status status = tdm_json_finish(writer, &text, NULL, err);
    if (status == TDM_OK)
        status = tdmi_run_set(session->run, section, text, err);
    tdm_json_writer_free(writer);
    return TDM_WRAP(err, status, "recording the run's %s", section);
}

static tdm_status record_options(struct tdmi_session *session, tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdmi_options_to_json(&session->options, writer, NULL);
    TDM_TRY(tdmi_session_set(session, "options", writer, err), err, "recording what was asked for");
    writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "source", session->options.source);
    tdm_json_object_end(writer);
    return tdmi_session_set(session, "asked", writer, err);
}

tdm_status tdmi_session_begin_record(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(record_options(session, err), err, "beginning the record");
    return TDM_WRAP(err, tdmi_run_save(session->run, TDMI_RUN_RUNNING, err),
                    "beginning the record");
}

void tdmi_session_end_record(struct tdmi_session *session, tdm_status status)
{
    /* The first failure is the one to report. */
    const tdm_status ignored = tdmi_run_save(
        session->run, status == TDM_E_STOPPED ? TDMI_RUN_STOPPED : TDMI_RUN_FAILED, NULL);
    (void)ignored;
}

tdm_status tdmi_session_record_machine(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_cpu cpu;
    tdmi_cpu_describe(&cpu);
    char device[400];
    session->backend->device.describe(session->device, device, sizeof device);
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "cpu", cpu.model);
    tdm_json_string(writer, "isa", cpu.isa);
    tdm_json_string(writer, "backend", session->backend->name);
    tdm_json_string(writer, "device", device);
    tdm_json_integer(writer, "threads", tdmi_pool_threads(session->pool));
    tdm_json_integer(writer, "planned_bytes", tdmi_needs_total(&session->needs));
    if (!session->backend->device.is_host) {
        tdm_json_integer(writer, "recorded_bytes", session->recorded_bytes);
        tdm_json_integer(writer, "kept_rows_bytes", session->kept_rows_bytes);
    }
    tdm_json_integer(writer, "world", session->transport->world(session->comm));
    tdm_json_object_end(writer);
    return tdmi_session_set(session, "machine", writer, err);
}

tdm_status tdmi_session_record(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(record_options(session, err), err, "beginning the record");

    TDM_TRY(tdmi_session_record_machine(session, err), err, "beginning the record");
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "source", tdmi_source_path(session->source));
    tdm_json_string(writer, "kind", tdmi_source_kind(session->source));
    tdm_json_string(writer, "network", session->network.name);
    tdm_json_integer(writer, "classes", tdmi_source_classes(session->source));
    tdm_json_integer(writer, "train", session->split.n_train);
    tdm_json_integer(writer, "val", session->split.n_val);
    tdm_json_integer(writer, "test", session->has_test ? session->split.n_test : 0);
    tdm_json_integer(writer, "copies", session->split.n_copies);
    tdm_json_integer(writer, "torn", session->split.n_torn);
    tdm_json_string(writer, "order",
                    session->order.kind == TDMI_ORDER_GROUPED ? "grouped" : "full");
    tdm_json_string(writer, "decoder", tdmi_session_decoder_name(session));
    tdm_json_integer(writer, "unreadable", session->contents.n_unreadable);
    tdm_json_integer(writer, "parameters", session->graph->parameters);
    tdm_json_integer(writer, "first_trained", session->first_freeze_point);
    tdm_json_integer(writer, "thaws_to", session->last_freeze_point);
    tdm_json_integer(writer, "head", session->head);
    tdm_json_integer(writer, "views", session->views);
    tdm_json_integer(writer, "batch", session->global_batch);
    if (session->batch_reason[0])
        tdm_json_string(writer, "batch_reason", session->batch_reason);
    tdm_json_integer(writer, "shard", session->shard);
    tdm_json_string(writer, "bn", session->options.bn);
    tdm_json_number(writer, "learning_rate", session->rates.learning_rate);
    if (session->unfrozen_rate > 0.0)
        tdm_json_number(writer, "thawed_rate", session->unfrozen_rate);
    tdmi_rates_to_json(&session->rates, writer, "rates");
    tdm_json_object_end(writer);
    return tdmi_session_set(session, "data", writer, err);
}

/* Reading all pictures may take long: who stops it has a run all the same, and one that had ended
 * stays one that has ended. */
tdm_status tdmi_session_record_stop(struct tdmi_session *session, tdm_error *err)
{
    if (tdmi_run_found(session->run) == TDMI_RUN_FINISHED)
        return TDM_E_STOPPED;
    if (record_options(session, NULL) == TDM_OK)
        tdmi_session_end_record(session, TDM_E_STOPPED);
    return TDM_WRAP(err, TDM_E_STOPPED,
                    "before its first step; %s keeps what was asked for, and --resume goes on",
                    tdmi_run_path(session->run));
}
