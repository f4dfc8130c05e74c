/*
 * The training loop: epochs of steps, validation, the best weights kept, checkpoints. All state
 * that resuming needs is in the session's progress, so a kill costs at most the work since the last
 * checkpoint, and the result has the same bits.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "base/sized.h"
#include "tandem/event.h"
#include "tandem/train.h"
#include "train/session/session.h"
#include "train/stopping.h"

#include <math.h>
#include <stdio.h>

/* The learning rate of a step, counted from 0. */
static double rate_at(const struct tdmi_session *session, int64_t step)
{
    const struct tdmi_train_config *config = &session->config;
    const struct tdmi_train_network *network = &session->network;
    struct tdmi_rates rates = config->rates;
    if (config->unfrozen_rate > 0.0 && network->first_trained != network->unfreeze.first)
        rates.learning_rate = config->unfrozen_rate;
    return tdmi_rates_at(&rates, &config->options, step, session->data.steps_per_epoch,
                         &session->progress.plateau);
}

/* ---- one step --------------------------------------------------------------------------- */

static struct tdmi_update_rates rates_now(const struct tdmi_session *session)
{
    const struct tdmi_train_config *config = &session->config;
    const struct tdmi_progress *progress = &session->progress;
    return (struct tdmi_update_rates){.learning_rate = (float)rate_at(session, progress->step),
                                      .momentum = (float)config->rates.momentum,
                                      .weight_decay = (float)config->rates.weight_decay,
                                      .step = progress->step + 1 - tdmi_trainer_began(session),
                                      .values = config->rates.optimizer.values,
                                      .clip_norm = config->options.clip_norm,
                                      .average =
                                          tdmi_rates_average(config->options.ema, progress->step)};
}

static tdm_status check_loss(const struct tdmi_session *session, const float *tail, tdm_error *err)
{
    const int64_t step = session->progress.step;
    if (isfinite(tail[TDMI_TAIL_LOSS]))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_FAILED,
                    "training diverged: the loss at step %lld is not a number with learning "
                    "rate %g; use a smaller --lr",
                    (long long)step + 1, rate_at(session, step));
}

/* Gradients, the loss, then the update. */
static tdm_status step_in_parts(struct tdmi_session *session, float *tail, tdm_error *err)
{
    const struct tdmi_compute *compute = &session->compute;
    const float *sums = tdmi_step_sums(session->trainer.step);
    const long long number = session->progress.step + 1;
    TDM_TRY(
        tdmi_step_run(session->trainer.step, 0, session->network.train_plan->n_segments - 1, err),
        err, "step %lld", number);
    TDM_TRY(compute->backend->memory.download(compute->stream, tail,
                                              sums + tdmi_graph_tail_at(session->network.graph),
                                              sizeof(float) * TDMI_TAIL_VALUES, err),
            err, "downloading the loss");
    TDM_TRY(compute->backend->stream.wait(compute->stream, err), err, "downloading the loss");
    TDMI_TRY(check_loss(session, tail, err));
    if (!(tail[TDMI_TAIL_SAMPLES] > 0.0f))
        return TDM_OK;
    tdmi_lane *lane = tdmi_compute_lane(compute);
    const int64_t begin_ns = tdmi_lane_begin(lane);
    const tdm_status status = tdmi_update_run(session->trainer.update, sums,
                                              tail[TDMI_TAIL_SAMPLES], rates_now(session), err);
    tdmi_lane_end(lane, TDMI_TRACE_UPDATE, 0, begin_ns);
    return TDM_WRAP(err, status, "step %lld", number);
}

/* Prefetches the next batch while the device computes, unless this one is the last. */
static tdm_status look_ahead(struct tdmi_session *session, const struct tdmi_batch *batch,
                             tdm_error *err)
{
    const struct tdmi_progress *progress = &session->progress;
    const int64_t steps = session->config.options.steps;
    if (progress->position + batch->n >= session->data.split.n_train || tdm_stop_is_requested() ||
        (steps > 0 && progress->step + 1 >= steps))
        return TDM_OK;
    return tdmi_step_look_ahead(session->trainer.step, session->data.train_feed, err);
}

/* Queues the whole step, update included: the number of samples is known on the host. */
static tdm_status step_at_once(struct tdmi_session *session, const struct tdmi_batch *batch,
                               float *tail, tdm_error *err)
{
    const int n = tdmi_step_images(session->trainer.step);
    const long long number = session->progress.step + 1;
    if (n > 0)
        TDM_TRY(tdmi_update_begin(session->trainer.update, (float)n, rates_now(session), err), err,
                "step %lld", number);
    const struct tdmi_step_next next = tdmi_update_next(session->trainer.update);
    TDM_TRY(tdmi_step_queue(session->trainer.step, n > 0 ? &next : NULL, err), err, "step %lld",
            number);
    const tdm_status status = look_ahead(session, batch, err);
    TDM_TRY(tdmi_step_finish(session->trainer.step, tail, status == TDM_OK ? err : NULL), err,
            "step %lld", number);
    TDM_TRY(status, err, "prefetching the batch after step %lld", number);
    return check_loss(session, tail, err);
}

static tdm_status train_batch(struct tdmi_session *session, const struct tdmi_batch *batch,
                              tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    const struct tdmi_mixing mixing = {&session->config.augment, session->config.options.seed,
                                       (uint32_t)progress->epoch};
    tdmi_lane *lane = tdmi_compute_lane(&session->compute);
    const int64_t begin_ns = tdmi_lane_begin(lane);
    TDM_TRY(tdmi_data_check_batch(&session->config, batch, err), err, "step %lld",
            (long long)progress->step + 1);
    tdmi_step_begin(session->trainer.step, tdmi_values_trained(&session->network), batch, &mixing);
    float tail[TDMI_TAIL_VALUES];
    TDMI_TRY(tdmi_compute_queues(&session->compute) ? step_at_once(session, batch, tail, err)
                                                    : step_in_parts(session, tail, err));
    const int n = batch->whole.n > 0 ? batch->whole.n : batch->n;
    progress->step++;
    progress->position += n;
    progress->epoch_n += (int64_t)tail[TDMI_TAIL_SAMPLES];
    progress->epoch_correct += (int64_t)tail[TDMI_TAIL_CORRECT];
    progress->epoch_skipped += n - (int64_t)tail[TDMI_TAIL_SAMPLES];
    progress->epoch_loss += (double)tail[TDMI_TAIL_LOSS];
    progress->images += (int64_t)tail[TDMI_TAIL_SAMPLES];
    tdmi_lane_end(lane, TDMI_TRACE_STEP, progress->step, begin_ns);
    return TDM_OK;
}

/* The next batch; a trace shows the wait for it. */
static tdm_status next_batch(struct tdmi_session *session, const struct tdmi_batch **batch,
                             tdm_error *err)
{
    tdmi_lane *lane = tdmi_compute_lane(&session->compute);
    const int64_t begin_ns = tdmi_lane_begin(lane);
    const tdm_status status = tdmi_feed_next(session->data.train_feed, batch, err);
    tdmi_lane_end(lane, TDMI_TRACE_WAIT_IMAGES, session->progress.step + 1, begin_ns);
    return status;
}

/* ---- an epoch --------------------------------------------------------------------------- */

static void report_progress(struct tdmi_session *session)
{
    const struct tdmi_progress *progress = &session->progress;
    tdmi_track_event(session->record.track,
                     &(tdm_event){
                         .kind = TDM_EVENT_PROGRESS,
                         .epoch = progress->epoch + 1,
                         .step = progress->step,
                         .done = progress->position,
                         .total = session->data.split.n_train,
                         .loss = progress->epoch_loss /
                                 (progress->epoch_n > 0 ? (double)progress->epoch_n : 1.0),
                         .learning_rate = rate_at(session, progress->step - 1),
                         .seconds = tdmi_record_seconds(&session->record),
                     });
}

static tdm_status save_stopped(struct tdmi_session *session, tdm_error *err)
{
    TDMI_TRY(tdmi_session_checkpoint(session, err));
    TDMI_TRY(tdmi_checkpoint_record_clock(&session->record, &session->progress, err));
    return tdmi_run_save(session->record.run, TDMI_RUN_STOPPED, err);
}

static tdm_status stop_here(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(save_stopped(session, err), err, "stopping on request");
    return TDM_FAIL(err, TDM_E_STOPPED,
                    "training was stopped on request after step %lld; a checkpoint is in %s, and "
                    "--resume continues from it",
                    (long long)session->progress.step, tdmi_run_path(session->record.run));
}

/* Trains the rest of the epoch, or up to a limit. */
static tdm_status train_batches(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    const int64_t started = tdmi_clock_ns();
    const double before = session->record.training_seconds;
    TDM_TRY(tdmi_feed_seek(session->data.train_feed, (uint32_t)progress->epoch, progress->position,
                           err),
            err, "reading training images");
    while (progress->position < session->data.split.n_train && !tdmi_limits_is_cut(session)) {
        const struct tdmi_batch *batch;
        tdm_status status = next_batch(session, &batch, err);
        if (status == TDM_E_STOPPED)
            return stop_here(session, err);
        TDM_TRY(status, err, "reading training images");
        if (!batch)
            break;
        TDM_TRY(train_batch(session, batch, err), err, "training epoch %d", progress->epoch + 1);
        session->record.training_seconds = before + tdmi_clock_seconds_since(started);
        report_progress(session);
        tdmi_estimate_by_steps(session, session->record.training_seconds - before);
        TDM_TRY(tdmi_ranks_agree(session, err), err, "after step %lld", (long long)progress->step);
        if (tdmi_ranks_is_stopping(session))
            return stop_here(session, err);
        /* At the end of an epoch the checkpoint follows the validation. */
        if (tdmi_checkpoint_is_due_inside_epoch(session) &&
            progress->position < session->data.split.n_train)
            TDM_TRY(tdmi_session_checkpoint(session, err), err, "training epoch %d",
                    progress->epoch + 1);
    }
    return TDM_OK;
}

static tdm_status train_epoch(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    char title[48];
    const tdm_status made = tdmi_features_compute_views(session, err);
    if (made == TDM_E_STOPPED)
        return stop_here(session, err);
    TDM_TRY(made, err, "computing features for epoch %d", progress->epoch + 1);
    snprintf(title, sizeof title, "training epoch %d", progress->epoch + 1);
    tdmi_track_event(session->record.track, &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN,
                                                         .epoch = progress->epoch + 1,
                                                         .total = session->data.split.n_train,
                                                         .text = title});
    struct tdmi_rank_time began;
    tdmi_ranks_take_time(session, &began);
    const tdm_status status = train_batches(session, err);
    /* A prefetched batch may be unused: wait for its copies. */
    const tdm_status settled =
        tdmi_step_await_prefetch(session->trainer.step, status == TDM_OK ? err : NULL);
    TDMI_TRY(status == TDM_OK ? settled : status);
    TDM_TRY(tdmi_ranks_report_slow(session, &began, err), err, "after epoch %d",
            progress->epoch + 1);
    tdmi_track_event(session->record.track, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    return TDM_OK;
}

/* The score that rank 0 counted of all images. The score is meaningless when a stop was requested.
 */
static tdm_status validate(struct tdmi_session *session, tdm_score *score, int64_t *skipped,
                           tdm_error *err)
{
    TDMI_TRY(tdmi_ranks_level(session, err));
    TDMI_TRY(tdmi_evaluator_take(session->evaluation.evaluator,
                                 tdmi_values_evaluated(&session->network), err));
    TDMI_TRY(tdmi_session_evaluate(session, session->data.val_feed, session->data.split.n_val,
                                   "validating", &session->evaluation.outcomes, skipped, err));
    if (!tdmi_ranks_is_follower(session)) {
        TDMI_TRY(tdmi_evaluation_count(session, err));
        *score = session->evaluation.metrics.score;
    }
    if (tdmi_ranks_share_steps(session)) {
        TDMI_TRY(tdmi_ranks_share(session, score, sizeof *score, err));
        TDMI_TRY(tdmi_ranks_share(session, skipped, sizeof *skipped, err));
        TDMI_TRY(tdmi_ranks_agree(session, err));
    }
    if (!isfinite(score->loss))
        return TDM_FAIL(
            err, TDM_E_FAILED,
            "training diverged: the validation loss after step %lld is not a number with "
            "learning rate %g; use a smaller --lr",
            (long long)session->progress.step, rate_at(session, session->progress.step - 1));
    return TDM_OK;
}

static tdm_status keep_best(struct tdmi_session *session, tdm_event *event, tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    event->is_best =
        progress->best_epoch == 0 ||
        tdmi_stopping_is_better(&session->config.options, &event->val, &progress->best_val);
    tdmi_stopping_take(&session->config.options, &event->val, progress);
    if (!event->is_best)
        return TDM_OK;
    session->record.best_seconds = tdmi_record_seconds(&session->record);
    progress->best_epoch = event->epoch;
    progress->best_step = progress->step;
    progress->best_train = event->train;
    progress->best_val = event->val;
    return tdmi_session_keep_best(session, event->epoch, err);
}

/* Validates if it is time, keeps the best, reports, writes a checkpoint if one is due. An epoch
 * that a limit cut short stays open: resuming with a larger limit finishes it. Progress changes
 * only after the validation, so a stop during it leaves the end of the epoch to the next session.
 */
static tdm_status end_epoch(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    bool is_whole = progress->position >= session->data.split.n_train;
    tdm_event event = {
        .kind = TDM_EVENT_EPOCH,
        .epoch = progress->epoch + 1,
        .step = progress->step,
        .train = tdmi_evaluation_of_training(session),
        .learning_rate = rate_at(session, progress->step - 1),
    };
    bool is_evaluated = tdmi_limits_is_done(session, progress->epoch + is_whole) ||
                        event.epoch % session->config.options.eval_every == 0;
    int64_t skipped = 0;
    if (is_evaluated)
        TDM_TRY(validate(session, &event.val, &skipped, err), err, "validating after epoch %d",
                event.epoch);
    if (tdmi_ranks_is_stopping(session))
        return stop_here(session, err);
    if (is_whole) {
        progress->epoch++;
        progress->position = 0;
        if (progress->epoch_skipped > progress->train_skipped)
            progress->train_skipped = progress->epoch_skipped;
        progress->epoch_n = progress->epoch_correct = progress->epoch_skipped = 0;
        progress->epoch_loss = 0.0;
    }
    if (is_evaluated) {
        event.metrics = &session->evaluation.metrics;
        progress->evaluated_step = progress->step;
        if (tdmi_schedule_follows_loss(&session->config.rates.schedule))
            tdmi_plateau_take(&session->config.rates.schedule, event.val.loss, &progress->plateau);
        progress->val_skipped = skipped;
        TDM_TRY(keep_best(session, &event, err), err, "after epoch %d", event.epoch);
    }
    event.seconds = tdmi_record_seconds(&session->record);
    tdmi_track_event(session->record.track, &event);
    return tdmi_checkpoint_is_due_after_epoch(session) ? tdmi_session_checkpoint(session, err)
                                                       : TDM_OK;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void fill_result(const struct tdmi_session *session, struct tdm_train_result *result)
{
    const struct tdmi_progress *progress = &session->progress;
    *result = (struct tdm_train_result){
        .epochs = progress->epoch,
        .best_epoch = progress->best_epoch,
        .ended_by = tdmi_limits_ended_by(session),
        .patience = tdmi_stopping_patience(&session->config.options),
        .steps = progress->step,
        .seconds = tdmi_record_seconds(&session->record),
        .images_per_second = session->record.training_seconds > 0.0
                                 ? (double)progress->images / session->record.training_seconds
                                 : 0.0,
        .train = progress->best_train,
        .val = progress->best_val,
        .skipped = session->data.contents.n_unreadable + progress->val_skipped +
                   (progress->train_skipped > progress->epoch_skipped ? progress->train_skipped
                                                                      : progress->epoch_skipped),
        .cached = session->cache.count.reused > 0,
        .features = session->cache.count,
        .views = session->config.views,
        .layers_left = tdmi_network_layers_left(&session->network),
        .batch = session->config.batch,
        .world = tdmi_ranks_world(session),
        .rank = tdmi_comm_rank(session->compute.comm),
    };
    snprintf(result->run, sizeof result->run, "%s", tdmi_run_path(session->record.run));
    snprintf(result->batch_reason, sizeof result->batch_reason, "%s", session->config.batch_reason);
    tdmi_source_unread(session->data.source, &result->unread);
}

static tdm_status record_result(struct tdmi_session *session, const struct tdm_train_result *result,
                                tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdmi_result_to_json(result, writer);
    tdm_json_object_end(writer);
    tdmi_trainer_note_recorded(session);
    TDMI_TRY(tdmi_record_set(&session->record, "result", writer, err));
    TDMI_TRY(tdmi_record_machine(session, err));
    return tdmi_run_save(session->record.run, TDMI_RUN_FINISHED, err);
}

/* Reports options without effect that can be known only once the images are counted. */
static void report_rates(const struct tdmi_session *session)
{
    const struct tdmi_train_config *config = &session->config;
    const struct tdmi_train_data *data = &session->data;
    const struct tdm_train_options *options = &config->options;
    const double epochs = tdmi_rates_total_epochs(options, data->steps_per_epoch);
    if (config->batch > data->split.n_train)
        tdmi_record_note(&session->record,
                         "--batch %d is more than the %lld training images: every step takes all "
                         "of them",
                         config->batch, (long long)data->split.n_train);
    if (tdmi_rates_rest(&config->rates, options, data->steps_per_epoch))
        tdmi_record_note(&session->record,
                         "--schedule %s has no effect within %g epoch%s: the learning rate stays "
                         "the same",
                         options->schedule, epochs, epochs == 1.0 ? "" : "s");
    if (epochs > 0.0 && config->rates.warmup_epochs > epochs)
        tdmi_record_note(&session->record,
                         "training ends after %g epoch%s, within a warm-up of %g: the learning "
                         "rate never reaches %g (--warmup 0 begins with it)",
                         epochs, epochs == 1.0 ? "" : "s", config->rates.warmup_epochs,
                         config->rates.learning_rate);
}

static void report_resumed(const struct tdmi_session *session)
{
    const struct tdmi_progress *progress = &session->progress;
    if (tdmi_limits_is_over(session))
        tdmi_record_note(&session->record, "nothing is left to train after step %lld (epoch %d)",
                         (long long)progress->step, progress->epoch + (progress->position > 0));
    else
        tdmi_record_note(&session->record, "resuming after step %lld (epoch %d), learning rate %g",
                         (long long)progress->step, progress->epoch + 1,
                         rate_at(session, progress->step));
}

static void report_beginning(struct tdmi_session *session)
{
    const struct tdmi_train_config *config = &session->config;
    const struct tdmi_run_record *record = &session->record;
    tdmi_network_report(session);
    tdmi_compute_report_threads(session);
    tdmi_memory_report(session);
    tdmi_network_report_norms(session);
    report_rates(session);
    if (config->storage != TDMI_DTYPE_F32)
        tdmi_record_note(record,
                         "--precision %s: validation during training stores activations so, too; "
                         "evaluate and predict compute in f32",
                         config->options.precision);
    tdmi_network_report_unfreezing(session);
}

static tdm_status train_epochs(struct tdmi_session *session, tdm_error *err)
{
    if (session->cache.is_used && tdmi_ranks_is_follower(session))
        TDMI_TRY(tdmi_features_follow(session, err));
    if (session->agreed.is_over)
        return TDM_OK;
    while (!tdmi_limits_is_over(session)) {
        const tdm_status status = tdmi_session_unfreeze(session, err);
        if (status == TDM_E_STOPPED)
            TDM_TRY(tdmi_run_save(session->record.run, TDMI_RUN_STOPPED, NULL), err,
                    "stopping on request");
        TDMI_TRY(status);
        TDMI_TRY(train_epoch(session, err));
        TDMI_TRY(end_epoch(session, err));
    }
    TDM_TRY(tdmi_session_checkpoint(session, err), err, "after the last epoch");
    return session->cache.is_used ? tdmi_features_dismiss(session, true, true, err) : TDM_OK;
}

/* The epochs after the best one, and the test. */
static tdm_status measure_best(struct tdmi_session *session, struct tdm_train_result *result,
                               tdm_error *err)
{
    TDM_TRY(tdmi_evaluation_after_best(session, &result->after_best, err), err,
            "comparing the last epoch with the best");
    if (!session->data.has_test)
        return TDM_OK;
    const tdm_status status = tdmi_session_test(session, result, err);
    if (status == TDM_E_STOPPED)
        TDM_TRY(tdmi_run_save(session->record.run, TDMI_RUN_STOPPED, err), err,
                "stopping on request");
    return status;
}

/* The test is divided among ranks; all else is rank 0's. */
static tdm_status follow_finish(struct tdmi_session *session, struct tdm_train_result *result,
                                tdm_error *err)
{
    bool measures = false;
    fill_result(session, result);
    if (!tdmi_ranks_share_steps(session))
        return TDM_OK;
    TDMI_TRY(tdmi_data_report_all_skipped(session, err));
    TDMI_TRY(tdmi_ranks_share(session, &measures, sizeof measures, err));
    return measures && session->data.has_test ? tdmi_session_test(session, result, err) : TDM_OK;
}

/* The result, the samples and the report. A finished run in which nothing was left to do repeats
 * the result that it recorded. */
static tdm_status finish(struct tdmi_session *session, struct tdm_train_result *result,
                         tdm_error *err)
{
    struct tdmi_run_record *record = &session->record;
    const struct tdmi_train_data *data = &session->data;
    const bool has_trained = session->evaluation.outcomes.n > 0;
    if (tdmi_ranks_is_follower(session))
        return follow_finish(session, result, err);
    if (has_trained) {
        tdmi_network_report_left(session);
        tdmi_trainer_report_skipped(session);
    }
    TDMI_TRY(tdmi_data_report_all_skipped(session, err));
    tdmi_data_clock_feed(session);
    fill_result(session, result);
    tdmi_session_keep_samples(session);
    bool measures = has_trained || !tdmi_record_recall_result(record, data->has_test, result);
    if (tdmi_ranks_share_steps(session))
        TDMI_TRY(tdmi_ranks_share(session, &measures, sizeof measures, err));
    if (measures)
        TDM_TRY(measure_best(session, result, err), err, "after the training");
    if (!result->next.step)
        tdmi_session_advise(session, result);
    TDM_TRY(record_result(session, result, err), err, "recording the result");
    tdmi_session_report(session);
    return TDM_OK;
}

static tdm_status train(struct tdmi_session *session, struct tdm_train_result *result,
                        tdm_error *err)
{
    if (session->progress.step == 0)
        report_beginning(session);
    else
        report_resumed(session);
    tdmi_compute_report_fast(session);
    TDMI_TRY(tdmi_ranks_report(session, err));
    TDMI_TRY(train_epochs(session, err));
    return finish(session, result, err);
}

/* A failure outside the training, such as a full disk. A training that diverged would do so again.
 */
static bool can_resume(struct tdmi_session *session, tdm_status status)
{
    return (status == TDM_E_INPUT || status == TDM_E_SYSTEM || status == TDM_E_MEMORY ||
            status == TDM_E_PEER) &&
           tdmi_checkpoint_exists(&session->arena, tdmi_run_path(session->record.run));
}

/* Saves what there is; err keeps the first failure, unless the run folder itself is the cause. */
static tdm_status end_failed(struct tdmi_session *session, tdm_status status, tdm_error *err)
{
    const char *source = session->config.options.source;
    tdmi_run *run = session->record.run;
    if (status != TDM_E_STOPPED) {
        tdm_status ignored = tdmi_checkpoint_write_best(session, NULL);
        ignored = tdmi_run_save(run, TDMI_RUN_FAILED, NULL);
        (void)ignored;
    }
    if (status == TDM_E_SYSTEM && tdmi_run_check(run, NULL) != TDM_OK) {
        if (err)
            *err = (tdm_error){0};
        status = tdmi_run_check(run, err);
    }
    if (can_resume(session, status))
        return TDM_WRAP(
            err, status,
            "training on %s ended early; %s keeps its newest checkpoint%s, and "
            "--resume continues from it",
            source, tdmi_run_path(run),
            status == TDM_E_PEER ? " and what every rank was last at (" TDMI_RANKS_NAME ")" : "");
    return TDM_WRAP(err, status, "training on %s ended early", source);
}

tdm_status tdm_train(const struct tdm_train_options *options, tdm_sink sink,
                     struct tdm_train_result *result, tdm_error *err)
{
    TDMI_OPTIONS(tdm_train_options, options, tdm_train_options_default(), err);
    TDMI_RESULT(tdm_train_result, result, err);
    struct tdmi_session session;
    tdm_status status = tdmi_session_open(options, sink, &session, err);
    if (status != TDM_OK)
        return TDM_WRAP(err, status, "%s %s%s",
                        status == TDM_E_STOPPED ? "training on" : "cannot train on",
                        options->source ? options->source : "nothing",
                        status == TDM_E_STOPPED ? " was stopped on request" : "");
    status = train(&session, result, err);
    if (status == TDM_OK || status == TDM_E_STOPPED)
        tdmi_session_write_trace(&session, status);
    if (status != TDM_OK && status != TDM_E_STOPPED)
        tdmi_ranks_abort(&session, status, err);
    tdmi_ranks_end_heartbeats(&session, status, err);
    if (status != TDM_OK)
        status = end_failed(&session, status, err);
    status = tdmi_checkpoint_end_copies(&session, status, err);
    if (status == TDM_E_STOPPED)
        status = tdmi_ranks_end_stopped(&session, err);
    tdmi_session_release(&session);
    return status;
}
