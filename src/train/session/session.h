/*
 * A training run: a few objects with one subject each. open.c opens them top to bottom; the loop
 * (train.c) works on them. A function that needs one or two of them takes these; one that needs
 * more takes the session.
 */
#pragma once

#include "train/choice/augmentation.h"
#include "train/choice/estimate.h"
#include "train/features/features.h"
#include "train/session/checkpoint.h"
#include "train/session/pretrained.h"
#include "train/session/ranks.h"
#include "train/session/trainer.h"

/* Opened top to bottom, released bottom to top. */
struct tdmi_session {
    struct tdmi_train_config config;   /* resolved options; constant once opened */
    struct tdmi_compute compute;       /* backend, device, threads, transport, decoder, memory */
    struct tdmi_run_record record;     /* run folder, events, clocks, checkpoints on disk */
    struct tdmi_train_data data;       /* source, split, order, feeds */
    struct tdmi_pretrained pretrained; /* weights to start with */
    struct tdmi_train_network network; /* graph, freeze point, plans, values */
    struct tdmi_feature_cache cache;   /* cached features of the frozen layers; may be empty */
    struct tdmi_trainer trainer;       /* step, optimizer and its state, loss scale */
    struct tdmi_evaluation evaluation; /* validation and test */
    struct tdmi_estimate estimate;     /* of the time, to be printed once */
    struct tdmi_agreed agreed;         /* what all ranks have been told */
    const char *differences;           /* of ranks' machines, on rank 0, not reported yet */
    tdm_sink listener;                 /* of rank 0's events, where there are several ranks */
    tdm_json_document *told;           /* options of rank 0, in a follower; or NULL */
    struct tdmi_progress progress;     /* epoch, step, best: what a checkpoint restores */
    struct tdmi_model_file stored;     /* a checkpoint, while the session is opened */
    struct tdmi_model_file *resumed;   /* the same; NULL: no run is resumed, or it is open */
    tdmi_arena arena;                  /* memory that lives as long as the session */
};

/* ---- open.c ---------------------------------------------------------------------------------- */

/* Opens the run folder too. On failure everything is released but what a message may still name. */
tdm_status tdmi_session_open(const struct tdm_train_options *options, tdm_sink sink,
                             struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_session_release(struct tdmi_session *session);
/* After the freeze point has moved: closes what depends on it (plans, step, evaluators, optimizer,
 * feeds) and opens it again. */
tdm_status tdmi_session_open_again(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_session_close_trained(struct tdmi_session *session);

/* ---- the stages of opening, in their order --------------------------------------------------- */

/* The network filled from --weights, for the classes of the source. pretrained.c */
tdm_status tdmi_session_read_weights(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Reads the contents of all images and splits them, or takes the checkpoint's split. data.c */
tdm_status tdmi_session_split(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Graph, freeze point, and the values of the checkpoint or the first ones. network.c */
tdm_status tdmi_session_open_values(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* The freeze point of a graph: by --freeze, or as a resumed run recorded it. network.c */
tdm_status tdmi_session_find_freeze_point(struct tdmi_session *session,
                                          tdm_error *err) TDM_MUST_USE;
/* Resets the optimizer where the freeze point has just moved, also in a resumed run. trainer.c */
tdm_status tdmi_session_begin_optimizer(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* --batch auto: the batch size, or the largest that may be chosen, once the split is known; then
 * the choice, by memory and time. A known batch size stays. batch.c */
void tdmi_batch_begin(struct tdmi_session *session);
tdm_status tdmi_session_choose_batch(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Images per batch-norm group of such batches. */
int tdmi_batch_shard(const struct tdmi_session *session, int batch);
/* Weights of the classes, --class-weights. trainer.c */
tdm_status tdmi_session_weigh_classes(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Makes the plans, with smaller groups and less workspace where GPU memory is short. TDM_E_MEMORY:
 * training does not fit, also once all layers are unfrozen. memory.c */
tdm_status tdmi_session_plan_memory(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_memory_report(const struct tdmi_session *session);
/* Measures statistics of trained batch norms that were folded into convolutions. restore.c */
tdm_status tdmi_session_restore_norms(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Step, evaluators and optimizer, for the plans. trainer.c */
tdm_status tdmi_session_open_trainer(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Order, self-test image, cached features, and the feeds. input.c */
tdm_status tdmi_session_open_input(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Averages of weights, --ema: their first values, before norms are restored; then the update that
 * makes them. trainer.c */
tdm_status tdmi_session_fill_averages(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_session_open_average(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Records what the run starts with; not saved yet. record.c */
tdm_status tdmi_session_record(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Record the machine and its memory, again at the end, when they are known better. */
tdm_status tdmi_record_machine(const struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* ---- the loop -------------------------------------------------------------------------------- */

/* Before an epoch: moves the freeze point if it is time. unfreeze.c */
tdm_status tdmi_session_unfreeze(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* At the end: reports layers that were never unfrozen. unfreeze.c */
void tdmi_network_report_left(const struct tdmi_session *session);

/* limits.c: is a limit reached inside an epoch? Any limit, after so many complete epochs? */
bool tdmi_limits_is_cut(const struct tdmi_session *session);
bool tdmi_limits_is_done(const struct tdmi_session *session, int epochs);
/* Is nothing left to train or to validate? */
bool tdmi_limits_is_over(const struct tdmi_session *session);
/* The limit that ended the training; the first, where several were reached at once. */
const char *tdmi_limits_ended_by(const struct tdmi_session *session);

/* One pass over a part of the split, with the weights that the evaluator holds: fills outcomes, and
 * skipped with the number of unreadable images. A requested stop ends it early. evaluation.c */
tdm_status tdmi_session_evaluate(struct tdmi_session *session, tdmi_feed *feed, int64_t n_items,
                                 const char *what, tdmi_outcomes *outcomes, int64_t *skipped,
                                 tdm_error *err) TDM_MUST_USE;
/* Copies the best epoch's weights and outcomes; the next checkpoint writes them. checkpoint.c */
tdm_status tdmi_session_keep_best(struct tdmi_session *session, int epoch,
                                  tdm_error *err) TDM_MUST_USE;
/* Writes the best, last.safetensors, previous.safetensors, the clock and an event; nothing where
 * the newest checkpoint holds all of it. checkpoint.c */
tdm_status tdmi_session_checkpoint(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* ---- the end --------------------------------------------------------------------------------- */

/* Evaluates the third part of the split with the best weights, which stay in place. Counts of the
 * same weights that were recorded are used again. test.c */
tdm_status tdmi_session_test(struct tdmi_session *session, struct tdm_train_result *result,
                             tdm_error *err) TDM_MUST_USE;
/* The feed of that part. input.c */
tdm_status tdmi_session_open_test(struct tdmi_session *session, tdmi_feed **feed,
                                  tdm_error *err) TDM_MUST_USE;
/* Advise the next step. advice.c */
void tdmi_session_advise(struct tdmi_session *session, struct tdm_train_result *result);
/* Writes samples.safetensors, and report.html once the result is recorded. A failure is reported
 * and ends nothing. samples.c */
void tdmi_session_keep_samples(struct tdmi_session *session);
void tdmi_session_report(struct tdmi_session *session);
/* Writes the file of --trace, with the events of all ranks; the feeds are closed. Reports it, or
 * why there is none. After a stop that not all ranks made at the same step there is none. trace.c
 */
void tdmi_session_write_trace(struct tdmi_session *session, tdm_status ended);
/* The members of a result but its run folder. text.c */
void tdmi_result_to_json(const struct tdm_train_result *result, tdm_json_writer *writer);
