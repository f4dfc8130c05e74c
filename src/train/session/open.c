/*
 * Opening a training: the stages in their order, and releasing it. Whatever can be refused is
 * refused as early as it is known, before long work begins.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "base/file/file.h"
#include "base/text/shell.h"
#include "train/config/options.h"
#include "train/session/session.h"

#include <string.h>

/* ---- source, options, compute ---------------------------------------------------------------- */

/* A wrong word is refused before anything is opened. */
static tdm_status check_model(struct tdmi_session *session, tdm_error *err)
{
    const char *model = session->config.options.model;
    struct tdmi_network found;
    return model ? tdmi_network_find(model, &found, err) : TDM_OK;
}

/* Before anything is read of a run that is resumed. */
static tdm_status fetch_run(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->config.options;
    if (tdmi_ranks_is_follower(session) || !options->resume || !options->checkpoint_to ||
        !options->run || !*options->run)
        return TDM_OK;
    return tdmi_copies_fetch(options->checkpoint_to, options->run, err);
}

/* A folder that the run may not have is refused before anything that takes long. Without -o the
 * name is a new one. */
static tdm_status look_at_run(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->config.options;
    if (tdmi_ranks_is_follower(session) || !options->run || !*options->run)
        return TDM_OK;
    return TDM_WRAP(
        err, tdmi_run_look(options->run, options->resume ? TDMI_RUN_RESUME : TDMI_RUN_NEW, err),
        "opening the run %s", options->run);
}

/* The program's own work, such as a download, on rank 0: the others wait in the next stage and hear
 * that it lives. Its time is no time of the run. */
static tdm_status prepare(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->config.options;
    const int64_t began_ns = tdmi_clock_ns();
    if (tdmi_ranks_is_follower(session) || !options->prepare)
        return TDM_OK;
    TDMI_TRY(options->prepare(options->prepare_self, session->record.sink, err));
    session->record.started_ns += tdmi_clock_ns() - began_ns;
    return TDM_OK;
}

static tdm_status open_compute(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_train_config *config = &session->config;
    const struct tdm_train_options *options = &config->options;
    const struct tdmi_schedule *schedule = config->rates.schedule.schedule;
    TDMI_TRY(tdmi_pretrained_find(session, err));
    TDMI_TRY(tdmi_compute_open(config, &session->compute, err));
    if (schedule->needs_total && options->epochs == 0 && options->steps == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --schedule %s must know where training ends; add --epochs or "
                        "--steps, or use --schedule constant",
                        schedule->name);
    session->trainer.optimizer = config->rates.optimizer.optimizer;
    return TDM_OK;
}

/* A weights file that does not fit is refused before anything is written or read for long. A
 * resumed run does not need it. */
static tdm_status read_weights(struct tdmi_session *session, tdm_error *err)
{
    if (session->config.keeps_statistics && !session->pretrained.path)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --bn frozen keeps the statistics of pretrained weights, and from "
                        "scratch there are none; add --weights, or use --bn shard");
    if (!session->pretrained.path || session->pretrained.is_resuming)
        return TDM_OK;
    return tdmi_session_read_weights(session, err);
}

/* ---- the run folder -------------------------------------------------------------------------- */

/* runs/NETWORK-DATE-TIME, with a number where another run began in the same second. */
static const char *name_run(tdmi_arena *arena, const char *network)
{
    char now[21];
    tdmi_clock_utc(now);
    const char *path = tdmi_arena_printf(arena, "runs/%s-%.4s%.2s%.2s-%.2s%.2s%.2s", network, now,
                                         now + 5, now + 8, now + 11, now + 14, now + 17);
    const char *name = path;
    for (int i = 2; name && i < 1000 && tdmi_file_kind_of(name) != TDMI_FILE_MISSING; i++)
        name = tdmi_arena_printf(arena, "%s-%d", path, i);
    return name;
}

/* On the CPU --precision auto and f32 give the same bits: a resumed run keeps its word. */
static void keep_precision_word(struct tdmi_session *session)
{
    const tdm_json_value *recorded = tdmi_run_recorded(session->record.run, "options");
    const char *before = tdm_json_as_string(tdm_json_member(recorded, "precision"), "auto");
    if (session->compute.backend->device.is_host && session->config.storage == TDMI_DTYPE_F32 &&
        (strcmp(before, "auto") == 0 || strcmp(before, "f32") == 0))
        session->config.options.precision = strcmp(before, "auto") == 0 ? "auto" : "f32";
}

/* Before there was --augment auto, runs recorded "" or nothing for no changes. A program that
 * resumes one has auto as its default by now, which then stands for none. */
static void keep_augment(struct tdmi_session *session)
{
    struct tdmi_train_config *config = &session->config;
    const tdm_json_value *before =
        tdm_json_member(tdmi_run_recorded(session->record.run, "options"), "augment");
    if (!config->is_augment_auto || *tdm_json_as_string(before, ""))
        return;
    config->is_augment_auto = false; /* its changes are none already */
    config->options.augment = before ? "" : "none";
}

/* The record has the network that was chosen among the options. Records of before this was kept
 * leave it as the options say. */
static void recall_choice(struct tdmi_session *session)
{
    const tdm_json_value *asked = tdmi_run_recorded(session->record.run, "asked");
    struct tdmi_pretrained *pretrained = &session->pretrained;
    pretrained->is_by_default =
        tdm_json_as_bool(tdm_json_member(asked, "network_chosen"), pretrained->is_by_default);
    pretrained->misses_weights = tdm_json_as_bool(tdm_json_member(asked, "weights_missed"), true);
}

/* The options must be those that the run was started with, but for limits and speed. */
static tdm_status match_run(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_run_record *record = &session->record;
    const tdm_json_value *clock = tdmi_run_recorded(record->run, "clock");
    keep_precision_word(session);
    keep_augment(session);
    tdm_status status = tdmi_options_match(&session->config.options,
                                           tdmi_run_recorded(record->run, "options"), err);
    if (status == TDM_OK)
        status = tdmi_compute_match_decoder(session, err);
    recall_choice(session);
    record->seconds_before = tdm_json_as_number(tdm_json_member(clock, "seconds"), 0.0);
    record->training_seconds = tdm_json_as_number(tdm_json_member(clock, "training_seconds"), 0.0);
    record->best_seconds = tdm_json_as_number(tdm_json_member(clock, "best_seconds"), 0.0);
    return TDM_WRAP(err, status, "resuming the run %s", tdmi_run_path(record->run));
}

static tdm_status open_run(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->config.options;
    struct tdmi_run_record *record = &session->record;
    const char *path = options->run && *options->run
                           ? options->run
                           : name_run(&session->arena, session->network.definition.name);
    TDMI_CHECK_MEMORY(path, err);
    const bool is_owner = !tdmi_ranks_is_follower(session);
    if (is_owner)
        TDM_TRY(tdmi_run_open(path, options->resume ? TDMI_RUN_RESUME : TDMI_RUN_NEW, &record->run,
                              err),
                err, "opening the run %s", path);
    TDM_TRY(tdmi_ranks_follow_run(session, err), err, "opening the run %s", path);
    TDMI_TRY(tdmi_record_is_new(record) ? TDM_OK : match_run(session, err));
    TDM_TRY(tdmi_track_new(record->run, record->sink, &record->track, err), err,
            "opening the run %s", path);
    if (is_owner && options->checkpoint_to)
        TDMI_TRY(
            tdmi_copies_open(options->checkpoint_to, tdmi_run_path(record->run),
                             tdm_json_as_string(tdmi_run_recorded(record->run, "started"), NULL),
                             &record->copies, err));
    if (options->resume && tdmi_record_is_new(record))
        tdmi_record_note(record, "--resume: there is no run in %s yet; starting one", path);
    return TDM_OK;
}

/* The checkpoint to resume from, kept until the session is open. */
static tdm_status load_own_checkpoint(struct tdmi_session *session, bool *is_there, tdm_error *err)
{
    struct tdmi_run_record *record = &session->record;
    const char *path = tdmi_run_path(record->run);
    char word[TDMI_SHELL_WORD_BYTES];
    TDMI_TRY(tdmi_checkpoint_finish_rename(record, &session->arena, err));
    tdmi_compute_keep_choices(session);
    if (tdmi_checkpoint_exists(&session->arena, path)) {
        TDM_TRY(tdmi_checkpoint_load(record, &session->arena, &session->stored, err), err,
                "resuming the run %s", path);
        *is_there = true;
    } else if (!tdmi_record_is_new(record) && tdmi_run_recorded(record->run, "clock"))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "resuming the run %s: no checkpoint is left in it (last.safetensors, "
                        "previous.safetensors); another -o begins anew, and --weights %s with its "
                        "best model",
                        path, tdmi_shell_word(path, word, sizeof word));
    return TDM_OK;
}

/* Patience counts from here on where --epochs was raised, in this session or an earlier one. */
static void settle_patience(struct tdmi_session *session)
{
    const tdmi_run *run = session->record.run;
    const int64_t before =
        tdm_json_as_integer(tdm_json_member(tdmi_run_recorded(run, "options"), "epochs"), 0);
    const int epochs = session->config.options.epochs;
    if (before > 0 && (epochs == 0 || epochs > before))
        session->config.patience_from = session->stored.progress.epoch;
    else
        session->config.patience_from = (int)tdm_json_as_integer(
            tdm_json_member(tdmi_run_recorded(run, "asked"), "patience_from"), 0);
}

static tdm_status load_checkpoint(struct tdmi_session *session, tdm_error *err)
{
    bool is_there = false;
    if (!tdmi_ranks_is_follower(session))
        TDMI_TRY(load_own_checkpoint(session, &is_there, err));
    TDM_TRY(tdmi_ranks_share_checkpoint(session, &is_there, err), err, "resuming the run %s",
            tdmi_run_path(session->record.run));
    session->resumed = is_there ? &session->stored : NULL;
    if (is_there)
        settle_patience(session);
    TDM_TRY(tdmi_ranks_agree(session, err), err, "beginning");
    if (tdmi_ranks_share_steps(session) && tdmi_ranks_is_stopping(session))
        return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request before the images were read");
    return TDM_OK;
}

static tdm_status take_network(struct tdmi_session *session, tdm_error *err)
{
    if (!session->pretrained.path)
        return TDM_OK;
    if (!session->resumed)
        return tdmi_session_read_weights(session, err);
    return tdmi_network_take_stored(session, &session->stored, err);
}

/* ---- group size, rates, batch size ----------------------------------------------------------- */

static void settle_rates(struct tdmi_session *session)
{
    struct tdm_train_options options = session->config.options;
    const int64_t n_train = session->data.split.n_train;
    options.batch = session->config.batch;
    if (session->config.network_rate > 0.0)
        session->network.definition.learning_rate = tdmi_rates_of_head(n_train);
    tdmi_rates_settle(&session->config.rates, &options, n_train,
                      session->network.definition.learning_rate,
                      session->config.rate_fraction > 0.0 ? session->config.rate_fraction : 1.0);
    struct tdmi_rates unfrozen = session->config.rates;
    tdmi_rates_settle(&unfrozen, &options, n_train, session->config.network_rate,
                      tdmi_rates_part(&options));
    if (options.unfreeze > 0 && session->config.network_rate > 0.0)
        session->config.unfrozen_rate = unfrozen.learning_rate;
}

/* Settle group size, batch and rates, which depend on the network and the number of training
 * images. A resumed run keeps its recorded rates, although a default may have changed since. */
static void settle(struct tdmi_session *session)
{
    struct tdmi_train_config *config = &session->config;
    const struct tdmi_run_record *record = &session->record;
    config->shard = tdmi_batch_shard(session, config->batch);
    if (!tdmi_record_is_new(record)) {
        config->rates.learning_rate = tdmi_record_number(record, "learning_rate");
        config->unfrozen_rate = tdmi_record_number(record, "thawed_rate");
    }
    if (config->options.learning_rate > 0.0 || !(config->rates.learning_rate > 0.0))
        settle_rates(session);
}

/* A resumed run keeps its group size, which GPU memory may have decided, also where it was killed
 * before its first checkpoint. */
static void recall_shard(struct tdmi_session *session, int stored)
{
    const int64_t recorded =
        stored > 0 ? stored : tdmi_record_integer(&session->record, "shard", 0);
    if (session->config.options.shard == 0 && !session->compute.backend->device.is_host &&
        recorded > 0 && recorded <= session->config.batch)
        session->config.shard = (int)recorded;
}

static tdm_status settle_first(struct tdmi_session *session, tdm_error *err)
{
    (void)err;
    /* Older runs keep their bits. */
    session->config.splits_products =
        tdmi_record_is_new(&session->record) ||
        tdmi_record_integer(&session->record, "split_products", 0) > 0;
    settle(session);
    recall_shard(session, session->resumed ? session->stored.shard : 0);
    if (tdmi_record_is_new(&session->record))
        tdmi_pretrained_report(session);
    if (!session->resumed)
        tdmi_pretrained_raise_momentum(session);
    return TDM_OK;
}

/* Group size and rates follow the batch size. */
static tdm_status choose_batch(struct tdmi_session *session, tdm_error *err)
{
    const int before = session->config.batch;
    tdmi_batch_begin(session);
    TDM_TRY(tdmi_session_choose_batch(session, err), err, "--batch auto");
    if (session->config.batch == before)
        return TDM_OK;
    session->config.rates.learning_rate = 0.0;
    settle(session);
    session->network.host.shard = session->config.shard;
    return TDM_OK;
}

/* Without cached features a batch takes other memory. */
static tdm_status choose_batch_again(struct tdmi_session *session, tdm_error *err)
{
    return session->cache.is_unavailable ? choose_batch(session, err) : TDM_OK;
}

/* ---- the end of opening ---------------------------------------------------------------------- */

static tdm_status begin_run(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_run_record *record = &session->record;
    if (!tdmi_record_is_new(record))
        TDMI_TRY(tdmi_run_cut(record->run, tdmi_checkpoint_lines_end(&session->progress), err));
    TDMI_TRY(tdmi_session_record(session, err));
    TDMI_TRY(tdmi_run_save(record->run, TDMI_RUN_RUNNING, err));
    tdmi_ranks_begin_heartbeats(session);
    if (!session->compute.backend->device.is_host && !tdmi_ranks_is_follower(session))
        tdmi_track_watch_gpus(record->track, NULL);
    return TDM_OK;
}

/* ---- the stages ------------------------------------------------------------------------------ */

/* In this order. Those marked depend on the freeze point: they are opened again when it moves. */
static const struct {
    tdm_status (*open)(struct tdmi_session *session, tdm_error *err);
    bool is_opened_again;
} stages[] = {
    {check_model, false},        /* the word of --model */
    {tdmi_data_open, false},     /* class names, not yet the images */
    {fetch_run, false},          /* a resumed run, from its copies */
    {look_at_run, false},        /* the folder of -o */
    {prepare, false},            /* nothing is downloaded for folders that are refused */
    {open_compute, false},       /* weights by name, device, threads, precision, decoder */
    {tdmi_ranks_connect, false}, /* GPUs of several ranks */
    {tdmi_ranks_compare_machines, false},
    {tdmi_pretrained_choose, false}, /* a default network, by a few of the images */
    {read_weights, false},           /* refused here where the file does not fit */
    {open_run, false},               /* folder and events; compares the options of a resumed run */
    {load_checkpoint, false},        /* session->resumed, for the stages that follow */
    {take_network, false},           /* the graph of the checkpoint or of the weights file */
    {tdmi_session_split, false},     /* reads every image once */
    {settle_first, false},           /* group size and learning rate */
    {tdmi_session_open_values, false}, /* graph, freeze point, first values */
    {tdmi_session_begin_optimizer, true},
    {tdmi_augmentation_choose, false}, /* by the freeze point */
    {tdmi_features_find, false},       /* before the batch: cached features change what it takes */
    {choose_batch, false},
    {tdmi_features_open, false}, /* after it: they depend on the group size */
    {choose_batch_again, false}, /* where the cache turned out to be unavailable */
    {tdmi_session_weigh_classes, false},
    {tdmi_ranks_plan_memory, true}, /* refused here where memory is short */
    {tdmi_session_fill_averages, false},
    {tdmi_session_restore_norms, true}, /* statistics of folded batch norms */
    {tdmi_session_open_trainer, true},  /* step, evaluators, optimizer */
    {tdmi_ranks_compare_networks, true},
    {tdmi_session_open_input, true}, /* order, cached features, feeds */
    {tdmi_session_open_average, true},
    {tdmi_evaluation_open, false},
    {tdmi_features_move_to_device, false},
    {begin_run, false},
};

static tdm_status run_stages(struct tdmi_session *session, bool is_again, tdm_error *err)
{
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        if (!is_again || stages[i].is_opened_again)
            TDMI_TRY(stages[i].open(session, err));
    return TDM_OK;
}

tdm_status tdmi_session_open(const struct tdm_train_options *options, tdm_sink sink,
                             struct tdmi_session *session, tdm_error *err)
{
    const int64_t now = tdmi_clock_ns();
    *session = (struct tdmi_session){.record = {.sink = sink,
                                                .progress = &session->progress,
                                                .started_ns = now,
                                                .saved_ns = now,
                                                .saved = {.best_epoch = -1}},
                                     .compute = {.resident_before = tdmi_memory_resident()}};
    tdmi_arena_init(&session->arena, 0);
    struct tdm_train_options own = *options;
    tdm_status status = tdmi_ranks_open(session, &own, err);
    if (status == TDM_OK)
        status = tdmi_train_config_read(&own, &session->config, err);
    if (status == TDM_OK)
        status = run_stages(session, false, err);
    tdmi_model_file_release(&session->stored);
    session->resumed = NULL;
    if (status != TDM_OK)
        tdmi_ranks_abort(session, status, err);
    if (status != TDM_OK)
        tdmi_ranks_end_heartbeats(session, status, err);
    if (status == TDM_E_STOPPED && session->record.run)
        status = tdmi_record_stop(session, err);
    if (status != TDM_OK)
        tdmi_session_release(session);
    return status;
}

tdm_status tdmi_session_open_again(struct tdmi_session *session, tdm_error *err)
{
    tdmi_trainer_note_recorded(session);
    tdmi_data_clock_feed(session);
    const struct tdm_features count = session->cache.count;
    tdmi_session_close_trained(session);
    session->cache.count = count;
    return run_stages(session, true, err);
}

void tdmi_session_close_trained(struct tdmi_session *session)
{
    struct tdmi_train_network *network = &session->network;
    struct tdmi_trainer *trainer = &session->trainer;
    struct tdmi_evaluation *evaluation = &session->evaluation;
    tdmi_data_close_feeds(&session->data);
    tdmi_update_close(trainer->update);
    tdmi_evaluator_close(evaluation->test_evaluator);
    tdmi_plan_free(network->test_plan);
    tdmi_evaluator_close(evaluation->evaluator);
    tdmi_step_close(trainer->step);
    tdmi_features_leave_device(&session->cache);
    tdmi_features_close(&session->cache);
    tdmi_plan_free(network->evaluation_plan);
    tdmi_plan_free(network->train_plan);
    trainer->update = NULL;
    trainer->step = NULL;
    evaluation->evaluator = evaluation->test_evaluator = NULL;
    network->evaluation_plan = network->train_plan = network->test_plan = NULL;
}

void tdmi_session_release(struct tdmi_session *session)
{
    tdmi_evaluation_close(&session->evaluation);
    tdmi_session_close_trained(session);
    tdmi_trainer_release(session);
    tdmi_network_release(session);
    tdmi_import_release(&session->pretrained.import);
    tdmi_data_close(&session->data);
    tdmi_copies_close(session->record.copies);
    tdmi_track_free(session->record.track);
    tdmi_run_close(session->record.run);
    tdmi_compute_close(&session->compute);
    tdm_json_document_free(session->told);
    tdmi_arena_release(&session->arena);
    *session = (struct tdmi_session){0};
}
