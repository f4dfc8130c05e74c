/*
 * The training loop: epochs of steps, a validation, the best weights kept, a checkpoint whenever
 * something was decided. Everything it needs to go on is in the session's progress, so being killed
 * anywhere costs at most the work since the last checkpoint and never a bit.
 */
#include "base/clock.h"
#include "base/sized.h"
#include "tandem/event.h"
#include "tandem/train.h"
#include "train/session/session.h"
#include "train/stopping.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of the step number `step`, from 0. */
static double rate_at(const struct tdmi_session *session, int64_t step)
{
    struct tdmi_rates rates = session->rates;
    if (session->unfrozen_rate > 0.0 && session->first_trained != session->first_freeze_point)
        rates.learning_rate = session->unfrozen_rate;
    return tdmi_rates_at(&rates, &session->options, step, session->steps_per_epoch,
                         &session->progress.plateau);
}

/* ---- one step --------------------------------------------------------------------------- */

/* Segments leave for the other ranks as they become final. */
static tdm_status run_segments(struct tdmi_session *session, tdm_error *err)
{
    float *sums = tdmi_step_sums(session->step);
    for (int s = 0; s < session->train_plan->n_segments; s++) {
        const struct tdmi_segment *segment = &session->train_plan->segments[s];
        tdm_status status = tdmi_step_run(session->step, s, s, err);
        if (status == TDM_OK)
            status = session->transport->reduce(session->comm, sums + segment->first_value,
                                                segment->n_values, err);
        if (status != TDM_OK)
            return status;
    }
    return session->transport->finish(session->comm, err);
}

static struct tdmi_update_rates rates_now(const struct tdmi_session *session)
{
    const struct tdmi_progress *progress = &session->progress;
    return (struct tdmi_update_rates){
        .learning_rate = (float)rate_at(session, progress->step),
        .momentum = (float)session->rates.momentum,
        .weight_decay = (float)session->rates.weight_decay,
        .step = progress->step + 1 - tdmi_session_optimizer_began(session),
        .values = session->rates.optimizer.values,
        .clip_norm = session->options.clip_norm,
        .average = tdmi_rates_average(session->options.ema, progress->step)};
}

static tdm_status check_loss(const struct tdmi_session *session, const float *tail, tdm_error *err)
{
    if (isfinite(tail[TDMI_TAIL_LOSS]))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_FAILED,
                    "training diverged: the loss at step %lld is not a number with learning "
                    "rate %g; a smaller --lr is wanted",
                    (long long)session->progress.step + 1,
                    rate_at(session, session->progress.step));
}

/* Segments, the loss, and then the parameters. */
static tdm_status step_in_parts(struct tdmi_session *session, float *tail, tdm_error *err)
{
    const float *sums = tdmi_step_sums(session->step);
    const int64_t number = session->progress.step + 1;
    TDM_TRY(run_segments(session, err), err, "step %lld", (long long)number);
    TDM_TRY(session->backend->memory.download(session->stream, tail,
                                              sums + tdmi_graph_tail_at(session->graph),
                                              sizeof(float) * TDMI_TAIL_VALUES, err),
            err, "fetching the loss");
    TDM_TRY(session->backend->stream.wait(session->stream, err), err, "fetching the loss");
    const tdm_status status = check_loss(session, tail, err);
    if (status != TDM_OK || !(tail[TDMI_TAIL_SAMPLES] > 0.0f))
        return status;
    return TDM_WRAP(
        err,
        tdmi_update_run(session->update, sums, tail[TDMI_TAIL_SAMPLES], rates_now(session), err),
        "step %lld", (long long)number);
}

/* While the device computes, where this batch is not the last. */
static tdm_status look_ahead(struct tdmi_session *session, const struct tdmi_batch *batch,
                             tdm_error *err)
{
    const struct tdmi_progress *progress = &session->progress;
    const struct tdm_train_options *options = &session->options;
    if (progress->position + batch->n >= session->split.n_train || tdm_stop_is_requested() ||
        (options->steps > 0 && progress->step + 1 >= options->steps))
        return TDM_OK;
    return tdmi_step_look_ahead(session->step, session->train_feed, err);
}

/* The whole step without a wait in it: how many samples there are is known here. */
static tdm_status step_at_once(struct tdmi_session *session, const struct tdmi_batch *batch,
                               float *tail, tdm_error *err)
{
    const int n = tdmi_step_images(session->step);
    const int64_t number = session->progress.step + 1;
    if (n > 0)
        TDM_TRY(tdmi_update_begin(session->update, (float)n, rates_now(session), err), err,
                "step %lld", (long long)number);
    const struct tdmi_step_next next = tdmi_update_next(session->update);
    TDM_TRY(tdmi_step_queue(session->step, n > 0 ? &next : NULL, err), err, "step %lld",
            (long long)number);
    const tdm_status status = look_ahead(session, batch, err);
    TDM_TRY(tdmi_step_finish(session->step, tail, status == TDM_OK ? err : NULL), err, "step %lld",
            (long long)number);
    TDM_TRY(status, err, "behind step %lld", (long long)number);
    return check_loss(session, tail, err);
}

static tdm_status train_batch(struct tdmi_session *session, const struct tdmi_batch *batch,
                              tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    const struct tdmi_mixing mixing = {&session->augment, session->options.seed,
                                       (uint32_t)progress->epoch};
    TDM_TRY(tdmi_session_refuse(session, batch, err), err, "step %lld",
            (long long)progress->step + 1);
    tdmi_step_begin(session->step, tdmi_session_trained(session), batch, &mixing);
    float tail[TDMI_TAIL_VALUES];
    const tdm_status status = tdmi_session_queues(session) ? step_at_once(session, batch, tail, err)
                                                           : step_in_parts(session, tail, err);
    if (status != TDM_OK)
        return status;
    progress->step++;
    progress->position += batch->n;
    progress->epoch_n += (int64_t)tail[TDMI_TAIL_SAMPLES];
    progress->epoch_correct += (int64_t)tail[TDMI_TAIL_CORRECT];
    progress->epoch_skipped += batch->n - (int64_t)tail[TDMI_TAIL_SAMPLES];
    progress->epoch_loss += (double)tail[TDMI_TAIL_LOSS];
    progress->images += (int64_t)tail[TDMI_TAIL_SAMPLES];
    return TDM_OK;
}

/* ---- an epoch --------------------------------------------------------------------------- */

static void report_progress(struct tdmi_session *session)
{
    const struct tdmi_progress *progress = &session->progress;
    tdmi_track_event(session->track,
                     &(tdm_event){
                         .kind = TDM_EVENT_PROGRESS,
                         .epoch = progress->epoch + 1,
                         .step = progress->step,
                         .done = progress->position,
                         .total = session->split.n_train,
                         .loss = progress->epoch_loss /
                                 (progress->epoch_n > 0 ? (double)progress->epoch_n : 1.0),
                         .learning_rate = rate_at(session, progress->step - 1),
                         .seconds = tdmi_session_seconds(session),
                     });
}

static tdm_status stop_here(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(tdmi_session_checkpoint(session, err), err, "stopping on request");
    TDM_TRY(tdmi_session_record_clock(session, err), err, "stopping on request");
    TDM_TRY(tdmi_run_save(session->run, TDMI_RUN_STOPPED, err), err, "stopping on request");
    return TDM_FAIL(err, TDM_E_STOPPED,
                    "training was stopped on request after step %lld; a checkpoint is in %s, and "
                    "--resume goes on from it",
                    (long long)session->progress.step, tdmi_run_path(session->run));
}

/* From where the epoch stands to its end, or to a limit. */
static tdm_status train_batches(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    const int64_t started = tdmi_clock_ns();
    const double before = session->training_seconds;
    TDM_TRY(tdmi_feed_seek(session->train_feed, (uint32_t)progress->epoch, progress->position, err),
            err, "reading training pictures");
    while (progress->position < session->split.n_train && !tdmi_session_is_cut(session)) {
        const struct tdmi_batch *batch;
        tdm_status status = tdmi_feed_next(session->train_feed, &batch, err);
        if (status == TDM_E_STOPPED)
            return stop_here(session, err);
        TDM_TRY(status, err, "reading training pictures");
        if (!batch)
            break;
        TDM_TRY(train_batch(session, batch, err), err, "training epoch %d", progress->epoch + 1);
        session->training_seconds = before + tdmi_clock_seconds_since(started);
        report_progress(session);
        if (tdm_stop_is_requested())
            return stop_here(session, err);
        /* At the end of an epoch the checkpoint follows the validation. */
        if (tdmi_session_is_due_inside_epoch(session) &&
            progress->position < session->split.n_train)
            TDM_TRY(tdmi_session_checkpoint(session, err), err, "training epoch %d",
                    progress->epoch + 1);
    }
    return TDM_OK;
}

static tdm_status train_epoch(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    char title[48];
    const tdm_status made = tdmi_session_make_views(session, err);
    if (made == TDM_E_STOPPED)
        return stop_here(session, err);
    TDM_TRY(made, err, "computing features for epoch %d", progress->epoch + 1);
    snprintf(title, sizeof title, "training epoch %d", progress->epoch + 1);
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN,
                                                  .epoch = progress->epoch + 1,
                                                  .total = session->split.n_train,
                                                  .text = title});
    tdm_status status = train_batches(session, err);
    /* What was looked ahead for may have been for nothing: nobody reads it any more. */
    const tdm_status settled =
        tdmi_step_await_prefetch(session->step, status == TDM_OK ? err : NULL);
    status = status == TDM_OK ? settled : status;
    if (status != TDM_OK)
        return status;
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    return TDM_OK;
}

/* With a score that means nothing when a stop is requested. */
static tdm_status validate(struct tdmi_session *session, tdm_score *score, int64_t *skipped,
                           tdm_error *err)
{
    TDM_TRY(tdmi_evaluator_take(session->evaluator, tdmi_session_values(session), err), err,
            "validating");
    TDM_TRY(tdmi_session_evaluate(session, session->val_feed, session->split.n_val, "validating",
                                  &session->outcomes, skipped, err),
            err, "validating");
    TDM_TRY(tdmi_session_count(session, err), err, "validating");
    *score = session->metrics.score;
    if (!isfinite(score->loss))
        return TDM_FAIL(
            err, TDM_E_FAILED,
            "training diverged: the validation loss after step %lld is not a number with "
            "learning rate %g; a smaller --lr is wanted",
            (long long)session->progress.step, rate_at(session, session->progress.step - 1));
    return TDM_OK;
}

static tdm_status keep_best(struct tdmi_session *session, tdm_event *event, tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    event->is_best = progress->best_epoch == 0 ||
                     tdmi_stopping_is_better(&session->options, &event->val, &progress->best_val);
    tdmi_stopping_take(&session->options, &event->val, progress);
    if (!event->is_best)
        return TDM_OK;
    session->best_seconds = tdmi_session_seconds(session);
    progress->best_epoch = event->epoch;
    progress->best_step = progress->step;
    progress->best_train = event->train;
    progress->best_val = event->val;
    return tdmi_session_keep_best(session, event->epoch, err);
}

/* Validate if it is time, keep the best, tell, write a checkpoint if one is due. An epoch cut short
 * by a limit stays open: going on with a larger limit finishes it. Progress changes only after the
 * validation, so that a stop inside it leaves the epoch to be ended by the next sitting. */
static tdm_status end_epoch(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    bool is_whole = progress->position >= session->split.n_train;
    tdm_event event = {
        .kind = TDM_EVENT_EPOCH,
        .epoch = progress->epoch + 1,
        .step = progress->step,
        .train = tdmi_score_of(progress->epoch_n, progress->epoch_correct, progress->epoch_loss),
        .learning_rate = rate_at(session, progress->step - 1),
    };
    bool is_evaluated = tdmi_session_is_done(session, progress->epoch + is_whole) ||
                        event.epoch % session->options.eval_every == 0;
    int64_t skipped = 0;
    if (is_evaluated)
        TDM_TRY(validate(session, &event.val, &skipped, err), err, "after epoch %d", event.epoch);
    if (tdm_stop_is_requested())
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
        event.metrics = &session->metrics;
        progress->evaluated_step = progress->step;
        if (tdmi_schedule_follows_loss(&session->rates.schedule))
            tdmi_plateau_take(&session->rates.schedule, event.val.loss, &progress->plateau);
        progress->val_skipped = skipped;
        TDM_TRY(keep_best(session, &event, err), err, "after epoch %d", event.epoch);
    }
    event.seconds = tdmi_session_seconds(session);
    tdmi_track_event(session->track, &event);
    return tdmi_session_is_due_after_epoch(session) ? tdmi_session_checkpoint(session, err)
                                                    : TDM_OK;
}

/* ---- the whole -------------------------------------------------------------------------- */

static void fill_result(const struct tdmi_session *session, struct tdm_train_result *result)
{
    const struct tdmi_progress *progress = &session->progress;
    *result = (struct tdm_train_result){
        .epochs = progress->epoch,
        .best_epoch = progress->best_epoch,
        .ended_by = tdmi_session_ended_by(session),
        .patience = tdmi_stopping_patience(&session->options),
        .steps = progress->step,
        .seconds = tdmi_session_seconds(session),
        .images_per_second = session->training_seconds > 0.0
                                 ? (double)progress->images / session->training_seconds
                                 : 0.0,
        .train = progress->best_train,
        .val = progress->best_val,
        .skipped = session->contents.n_unreadable + progress->val_skipped +
                   (progress->train_skipped > progress->epoch_skipped ? progress->train_skipped
                                                                      : progress->epoch_skipped),
        .cached = session->features.count.reused > 0,
        .features = session->features.count,
        .views = session->views,
        .layers_left = tdmi_session_layers_left(session),
        .batch = session->global_batch,
        .world = session->transport->world(session->comm),
    };
    snprintf(result->run, sizeof result->run, "%s", tdmi_run_path(session->run));
    snprintf(result->batch_reason, sizeof result->batch_reason, "%s", session->batch_reason);
}

static void name_skips(struct tdmi_session *session, const tdmi_feed *feed)
{
    char text[600];
    for (int64_t i = 0; tdmi_feed_skip_at(feed, i, text, sizeof text); i++)
        tdmi_session_note(session, "skipped: %s", text);
}

static tdm_status record_result(struct tdmi_session *session, const struct tdm_train_result *result,
                                tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdmi_result_to_json(result, writer);
    tdm_json_object_end(writer);
    tdm_status status = tdmi_session_set(session, "result", writer, err);
    tdmi_session_note_recorded(session);
    if (status == TDM_OK)
        status = tdmi_session_record_machine(session, err);
    if (status == TDM_OK)
        status = tdmi_run_save(session->run, TDMI_RUN_FINISHED, err);
    return TDM_WRAP(err, status, "recording the result");
}

/* A rate that never comes is told; an option that says so was refused already, but steps are
 * counted in epochs only when the pictures are. */
static void report_rates(struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    const double epochs = tdmi_rates_total_epochs(options, session->steps_per_epoch);
    if (session->global_batch > session->split.n_train)
        tdmi_session_note(
            session,
            "--batch %d is more than the %lld pictures that train: every step is over "
            "all of them",
            session->global_batch, (long long)session->split.n_train);
    if (tdmi_rates_rest(&session->rates, options, session->steps_per_epoch))
        tdmi_session_note(session,
                          "--schedule %s changes nothing within %g epochs: the learning rate stays "
                          "as it is",
                          options->schedule, epochs);
    if (epochs > 0.0 && session->rates.warmup_epochs > epochs)
        tdmi_session_note(
            session,
            "training ends after %g epochs, within a warm-up of %g: the learning rate "
            "never reaches %g (--warmup 0 begins with it)",
            epochs, session->rates.warmup_epochs, session->rates.learning_rate);
}

static tdm_status unfreeze(struct tdmi_session *session, tdm_error *err)
{
    const tdm_status status = tdmi_session_unfreeze(session, err);
    if (status == TDM_E_STOPPED)
        TDM_TRY(tdmi_run_save(session->run, TDMI_RUN_STOPPED, NULL), err, "stopping on request");
    return status;
}

/* What is to be known when training is over. */
static tdm_status look_back(struct tdmi_session *session, struct tdm_train_result *result,
                            tdm_error *err)
{
    TDM_TRY(tdmi_session_account(session, result, err), err, "looking back at the epochs");
    if (!session->has_test)
        return TDM_OK;
    const tdm_status status = tdmi_session_test(session, result, err);
    if (status == TDM_E_STOPPED)
        TDM_TRY(tdmi_run_save(session->run, TDMI_RUN_STOPPED, err), err, "stopping on request");
    return status;
}

static void report_where(struct tdmi_session *session)
{
    const struct tdmi_progress *progress = &session->progress;
    if (tdmi_session_is_over(session))
        tdmi_session_note(session, "nothing is left to train after step %lld (epoch %d)",
                          (long long)progress->step, progress->epoch + (progress->position > 0));
    else
        tdmi_session_note(session, "going on after step %lld (epoch %d), learning rate %g",
                          (long long)progress->step, progress->epoch + 1,
                          rate_at(session, progress->step));
}

/* Why it is that rate, where the number of pictures decided it. */
static void report_begin(struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    char rates[200], reason[60] = "";
    tdmi_rates_describe(&session->rates, options, rates, sizeof rates);
    if (session->own_rate > 0.0 && session->rates.base_rate > 0.0 &&
        tdmi_rates_are_the_networks(&session->rates, options))
        snprintf(reason, sizeof reason, ", for a head on %lld pictures",
                 (long long)session->split.n_train);
    tdmi_session_note(session,
                      "%s: %lld parameters, batch %d in shards of %d, %lld step%s an epoch; %s%s",
                      session->network.name, (long long)session->graph->parameters,
                      session->global_batch, session->shard, (long long)session->steps_per_epoch,
                      session->steps_per_epoch == 1 ? "" : "s", rates, reason);
}

static tdm_status train(struct tdmi_session *session, struct tdm_train_result *result,
                        tdm_error *err)
{
    if (session->progress.step == 0) {
        report_begin(session);
        tdmi_session_report_memory(session);
        tdmi_session_report_norms(session);
        report_rates(session);
        if (session->storage != TDMI_DTYPE_F32)
            tdmi_session_note(session,
                              "--precision %s: what judges here is stored so, too; evaluate and "
                              "predict compute in f32",
                              session->options.precision);
        if (session->options.fast)
            tdmi_session_note(session,
                              "--fast: the card's libraries may add in any order, and bits "
                              "are others on every run");
        tdmi_session_report_unfreezing(session);
    } else
        report_where(session);
    while (!tdmi_session_is_over(session)) {
        tdm_status status = unfreeze(session, err);
        if (status == TDM_OK)
            status = train_epoch(session, err);
        if (status == TDM_OK)
            status = end_epoch(session, err);
        if (status != TDM_OK)
            return status;
    }
    TDM_TRY(tdmi_session_checkpoint(session, err), err, "after the last epoch");
    if (session->outcomes.n > 0) { /* something was done in this sitting */
        tdmi_session_report_left(session);
        tdmi_session_report_left_out(session);
    }
    if (session->train_feed)
        name_skips(session, session->train_feed);
    name_skips(session, session->val_feed);
    tdmi_session_clock_feed(session);
    fill_result(session, result);
    tdmi_session_keep_samples(session);
    if (!tdmi_session_recall(session, result))
        TDM_TRY(look_back(session, result, err), err, "after the training");
    if (!result->next.step)
        tdmi_session_advise(session, result);
    TDM_TRY(record_result(session, result, err), err, "ending");
    tdmi_session_report(session);
    return TDM_OK;
}

/* A training whose surroundings failed: what was kept is still there. One that diverged would do so
 * again. */
static bool can_go_on(struct tdmi_session *session, tdm_status status)
{
    return (status == TDM_E_INPUT || status == TDM_E_SYSTEM || status == TDM_E_MEMORY) &&
           tdmi_session_has_checkpoint(&session->arena, tdmi_run_path(session->run));
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
    if (status != TDM_OK && status != TDM_E_STOPPED) {
        /* The first failure is the one to report; the best that there was is kept all the same. */
        tdm_status ignored = tdmi_session_write_best(&session, NULL);
        ignored = tdmi_run_save(session.run, TDMI_RUN_FAILED, NULL);
        (void)ignored;
    }
    if (status == TDM_E_SYSTEM && tdmi_run_check(session.run, NULL) != TDM_OK) {
        /* Whatever could not be written: that is why. */
        if (err)
            *err = (tdm_error){0};
        status = tdmi_run_check(session.run, err);
    }
    if (can_go_on(&session, status))
        status = TDM_WRAP(err, status,
                          "training on %s ended early; %s keeps its newest checkpoint, and "
                          "--resume goes on from it",
                          options->source, tdmi_run_path(session.run));
    else
        status = TDM_WRAP(err, status, "training on %s ended early", options->source);
    tdmi_session_release(&session);
    return status;
}
