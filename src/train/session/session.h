/*
 * Everything one training holds, opened in the order in which it depends on each other and released
 * in reverse. The loop (train.c) works on it; nobody else does.
 */
#ifndef TANDEM_TRAIN_SESSION_H
#define TANDEM_TRAIN_SESSION_H

#include "data/audit/split.h"
#include "dist/comm.h"
#include "models/network.h"
#include "weights/import/import.h"
#include "optim/schedule.h"
#include "tandem/metrics.h"
#include "tandem/train.h"
#include "tandem/weights.h"
#include "track/track.h"
#include "train/step/feed.h"
#include "train/evaluate/evaluator.h"
#include "train/model/model_file.h"
#include "train/needs.h"
#include "train/evaluate/outcomes.h"
#include "train/config/rates.h"
#include "train/step/step.h"
#include "train/step/update.h"

/* What is known of the rows that a frozen base makes of pictures. features/features.c */
struct tdmi_features {
    bool is_used;
    bool has_no_place; /* they would be, had the disk let them */
    tdmi_graph *base;
    tdmi_store *train, *val; /* may be one */
    bool *is_broken;         /* by item of the source: no row can be made of it */
    int width;               /* floats a row */
    struct tdm_features count;
    float *test_row; /* of the self-test's picture */
    /* A row that was found damaged: its place in one of the stores. */
    const tdmi_store *damaged;
    int64_t damaged_at;
    int n_mended;        /* times that stores were opened again */
    int64_t maker_bytes; /* of the device: what making rows takes for its time */
    /* Rows that are kept on a device whose memory is not the host's; NULL: they are copied there in
     * each step, and in each validation. features/kept.c */
    tdmi_feature_table *train_there, *val_there;
};

struct tdmi_session {
    struct tdm_train_options options; /* as given, nothing resolved: what is recorded */
    int shard;                        /* resolved */
    bool shares_statistics;           /* of batch norms, over the batch */
    bool keeps_statistics;            /* of batch norms: the running ones, which stay */
    enum tdmi_dtype storage;          /* of activations: --precision */
    bool allows_tf32;                 /* in products of what is stored as f32 */
    size_t most_workspace;            /* of kernels; 0: any, else what memory has room for */
    int global_batch;                 /* --batch, or what was chosen for it */
    char batch_reason[320];           /* why it was; "": it was asked for */
    int batch;                        /* what buffers hold: never more than there are pictures */
    struct tdmi_rates rates;          /* optimiser, learning rate, schedule: resolved */
    double part_of_rate;              /* of a usual rate; 0: all of it */
    struct tdmi_network network;
    const char *weights;                       /* file that it begins with; NULL: from scratch */
    const struct tdm_weights_known *published; /* the entry of that file; NULL: none */
    const char *base_network;                  /* that it is taken for; NULL: what it says itself */
    bool seems_begun;        /* to be gone on with, as far as is known before the run is opened */
    bool is_by_default;      /* neither --model nor --weights was given */
    struct tdmi_import base; /* what is in it; nothing when a run is gone on with */
    uint64_t *base_hashes;   /* pictures that a model of ours, begun with, was trained on */
    int64_t n_base_hashes;
    const struct tdmi_optimizer *optimizer;
    const struct tdmi_backend *backend;
    const struct tdmi_comm_table *transport;
    tdmi_comm *comm;
    tdmi_device *device;
    tdmi_stream *stream;
    const struct tdmi_decoder *decoder; /* of pictures' files; NULL: they are decoded on the host */
    tdmi_pool *pool;

    tdmi_run *run;
    tdmi_track *track;

    tdmi_source *source;
    tdmi_contents contents; /* of the source */
    tdmi_split split;
    bool has_test;      /* a third part was asked for: split.test is judged */
    int64_t *evaluated; /* items that validate or test, ascending */
    int64_t n_evaluated;
    /* Ascending; of the split's pictures. */
    uint64_t *train_hashes, *val_hashes, *test_hashes;
    tdmi_order order;            /* of the pictures that train */
    struct tdmi_augment augment; /* of the pictures that train */
    int views; /* that each of them has, which epochs go through; 0: every epoch changes anew */
    tdmi_feed *train_feed, *val_feed;
    int64_t steps_per_epoch;

    tdmi_graph *graph;
    int first_trained; /* node; what lies before it is frozen */
    int first_freeze_point,
        last_freeze_point; /* what that is at first, and in the end: --unfreeze */
    int head;              /* node that rates by depth are counted from */
    double own_rate;       /* of the network, where another is settled for the head alone; else 0 */
    double unfrozen_rate;  /* in place of the rate, once more than the head is trained; else 0 */
    float *rate_parts;     /* one a parameter tensor, of --layer-decay; NULL: all of the rate */
    struct tdmi_features features;
    tdmi_plan *train_plan, *evaluation_plan;
    tdmi_step *step;
    tdmi_evaluator *evaluator;
    tdmi_plan *test_plan; /* of the model's self-test, where judging does not store f32; or NULL */
    tdmi_evaluator *test_evaluator;
    tdmi_update *update;
    float *class_weights;              /* one a class; NULL: all 1 */
    struct tdmi_judgement *judgements; /* of one batch */
    float *probabilities;              /* likewise */
    tdmi_outcomes outcomes;            /* of the newest validation */
    tdmi_outcomes best_outcomes;       /* of the best, while they are not on disk yet */
    struct tdm_metrics metrics;        /* of the newest validation */

    float *params, *states;             /* on the device */
    float *slots[TDMI_OPTIMIZER_SLOTS]; /* likewise */
    float *mean_params, *mean_states;   /* likewise; NULL: no averages are kept */
    struct tdmi_loss_scale *loss_scale; /* likewise; NULL: gradients are as they are */
    struct tdmi_model_file snapshot;    /* the host's copy, and all else that a file needs */
    bool is_best_unwritten;             /* that copy is the best epoch's, and not on disk yet */

    struct tdmi_progress progress;
    double seconds_before, training_seconds; /* earlier sittings; inside epochs, all sittings */
    double best_seconds;                     /* when the best epoch was judged */
    double fed_seconds, waited_seconds;      /* pictures were fed; and waited for: this sitting */
    int64_t started_ns;
    int64_t resident_before;    /* bytes, when it was opened */
    struct tdmi_needs needs;    /* of memory */
    int64_t recorded_bytes;     /* of a card's, that recordings of steps were seen to take */
    int64_t kept_rows_bytes;    /* likewise, that rows of a frozen base had, or have, reserved */
    bool is_fallen_back;        /* the newest checkpoint could not be used, and is still there */
    int64_t saved_ns;           /* when the newest checkpoint was written; or training began */
    struct tdmi_progress saved; /* what that checkpoint holds; best_epoch -1: there is none yet */
    tdmi_arena arena;
};

/* Opens the run folder too. On failure everything is released but what a message may still name. */
tdm_status tdmi_session_open(const struct tdm_train_options *options, tdm_sink sink,
                             struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_session_release(struct tdmi_session *session);
/* Of it, everything that was made for where the border between frozen and trained lies. */
void tdmi_session_close_freeze_point(struct tdmi_session *session);
/* Takes down what recordings of the step at hand have taken of a card's memory. */
void tdmi_session_note_recorded(struct tdmi_session *session);

double tdmi_session_seconds(const struct tdmi_session *session);
/* What judges and is kept: averages where there are any. */
struct tdmi_values tdmi_session_values(const struct tdmi_session *session);
/* What steps change. */
struct tdmi_values tdmi_session_trained(const struct tdmi_session *session);

/* What --decode asks of the backend; "cpu" or the decoder's name; is it the one that the run was
 * begun with? session/decoder.c */
tdm_status tdmi_session_open_decoder(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_session_close_decoder(struct tdmi_session *session);
void tdmi_session_report_decoder(struct tdmi_session *session);
const char *tdmi_session_decoder_name(const struct tdmi_session *session);
tdm_status tdmi_session_match_decoder(const struct tdmi_session *session,
                                      tdm_error *err) TDM_MUST_USE;

/* What --precision asks of the backend; f16's loss scale, from where the training stands and, for a
 * checkpoint, back to there. session/precision.c */
tdm_status tdmi_session_choose_precision(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_session_open_scale(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_session_fetch_scale(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* At the end: how many steps f16 left out, where there were any. */
void tdmi_session_report_left_out(struct tdmi_session *session);

/* One process on a device that queues: a step is queued as a whole, its update with it. */
bool tdmi_session_queues(const struct tdmi_session *session);

/* The pictures; and which of them train, judge and test.
 * stored: the split of a checkpoint that is gone on with, else nothing. session/split.c */
tdm_status tdmi_session_open_source(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_session_split(struct tdmi_session *session, struct tdmi_split_stored stored,
                              tdm_error *err) TDM_MUST_USE;

/* Which file --weights means, and which network it is of when --model does not say: once, before
 * anything is opened. session/weights.c */
tdm_status tdmi_session_find_weights(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* The network filled from that file, for the classes of the source; once is enough. */
tdm_status tdmi_session_read_weights(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Instead, of a run that is gone on with: its checkpoint's graph, taken over, so that the file is
 * not needed any more. */
tdm_status tdmi_session_keep_network(struct tdmi_session *session, struct tdmi_model_file *stored,
                                     tdm_error *err) TDM_MUST_USE;
/* The head that the options ask for. */
struct tdmi_head tdmi_session_head(const struct tdmi_session *session);
/* What the options say of how pictures become the network's input. */
struct tdmi_import_input tdmi_session_input(const struct tdmi_session *session);
/* What thaws by --unfreeze: session/unfreeze.c.
 * The border in an epoch, from 0; and the step that its optimiser began with. */
int tdmi_session_freeze_point_at(const struct tdmi_session *session, int epoch);
/* In the last epoch that --epochs and --steps allow. */
int tdmi_session_freeze_point_at_end(const struct tdmi_session *session);
int64_t tdmi_session_optimizer_began(const struct tdmi_session *session);
/* Before an epoch: moves the border if it is time; what depends on it is opened anew. */
tdm_status tdmi_session_unfreeze(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* --steps that end before anything thaws, as soon as it is known how many an epoch has. */
tdm_status tdmi_session_check_unfreezing(const struct tdmi_session *session,
                                         tdm_error *err) TDM_MUST_USE;
/* Layers that were to thaw and have not; a line of those that never will within the epochs; and one
 * at the end of those that did not. */
int tdmi_session_layers_left(const struct tdmi_session *session);
void tdmi_session_report_unfreezing(struct tdmi_session *session);
void tdmi_session_report_left(struct tdmi_session *session);
/* A run that is gone on with may stand where something thaws. */
tdm_status tdmi_session_begin_optimizer(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Parts of the rate, by depth. */
tdm_status tdmi_session_scale_rates(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* Where what is trained begins, in a graph that is there: by --freeze; in a run that is gone on
 * with as it was begun, however its graph has come here. session/network.c */
tdm_status tdmi_session_find_freeze_point(struct tdmi_session *session,
                                          tdm_error *err) TDM_MUST_USE;
/* One sentence on what could have been begun with. */
void tdmi_session_report_weights(struct tdmi_session *session);

/* In this order, once source and split are there.
 * The graph, what is frozen of it, and the values it begins with; stored: the checkpoint that is
 * gone on with, or NULL: session/network.c */
tdm_status tdmi_session_open_values(struct tdmi_session *session,
                                    const struct tdmi_model_file *stored,
                                    tdm_error *err) TDM_MUST_USE;
/* Whether rows of a frozen base are trained on; and which are at hand, where there is a place for
 * them, else without. In between the batch is chosen. features/features.c */
tdm_status tdmi_session_find_features(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_session_open_features(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Its plans, and whether what they take is there: known before anything is recorded or reserved.
 * session/network.c */
tdm_status tdmi_session_plan_network(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Statistics for batch norms that are trained and were folded into the convolutions by whoever
 * published the weights, measured over pictures: session/restore.c */
tdm_status tdmi_session_restore_norms(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Half of what running statistics were is gone after 70 steps. At the 0.001 of some Keras files it
 * would be 700, more than many a training has. */
#define TDMI_LEAST_MOMENTUM 0.01
/* Of weights that are begun with: norms that are trained get running statistics that follow.
 * session/norms.c */
void tdmi_session_quicken_norms(struct tdmi_session *session);
/* What becomes of batch norms, in one line. */
void tdmi_session_report_norms(struct tdmi_session *session);
/* --batch auto: session/batch.c
 * Once it is known which pictures train: the batch, or the largest that may be chosen. */
void tdmi_session_begin_batch(struct tdmi_session *session);
/* Once the values are in place, which are as they were afterwards, and it is known whether rows are
 * trained on; known ones stay. */
tdm_status tdmi_session_choose_batch(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Pictures of a shard of such batches. */
int tdmi_session_shard_of(const struct tdmi_session *session, int batch);
/* The host's values to the device. session/network.c */
tdm_status tdmi_session_place_values(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Before anything of it is reserved: session/memory.c
 * What would be held, on a card with as much workspace for libraries as stays within limit_bytes,
 * or with none where nothing does (*most_workspace, as in plan.h); and where the training computes,
 * what there is. */
tdm_status tdmi_session_measure(const struct tdmi_session *session, struct tdmi_needs_choice choice,
                                int64_t limit_bytes, struct tdmi_needs *needs,
                                size_t *most_workspace, tdm_error *err) TDM_MUST_USE;
struct tdmi_memory_limit tdmi_session_memory_limit(const struct tdmi_session *session);
/* A line, where libraries do not get all that they want. */
void tdmi_session_report_workspace(struct tdmi_session *session, size_t most_workspace,
                                   struct tdmi_memory_limit limit);
struct tdmi_step_options tdmi_session_step_options(const struct tdmi_session *session);
/* Makes the plans, with parts of a batch and less for libraries where memory is short, and fills
 * needs: the most until training ends, layers that thaw later too. */
tdm_status tdmi_session_plan_memory(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_session_report_memory(struct tdmi_session *session);
/* session/network.c
 * How training is planned from a border on. */
struct tdmi_plan_options tdmi_session_request(const struct tdmi_session *session,
                                              tdmi_device *device, int freeze_point, int shard);
struct tdmi_plans_request {
    tdmi_device *device; /* NULL: nothing is asked or timed, and libraries have no part in it */
    int freeze_point, shard;
    size_t most_workspace;
};
tdm_status tdmi_session_make_plans(const struct tdmi_session *session,
                                   const struct tdmi_plans_request *request, tdmi_plan **train_plan,
                                   tdmi_plan **evaluation_plan, tdm_error *err) TDM_MUST_USE;
/* The whole network on one picture, in f32 as whoever opens the model computes; NULL where what
 * judges does that already. */
tdm_status tdmi_session_plan_test(const struct tdmi_session *session, tdmi_device *device,
                                  size_t most_workspace, tdmi_plan **plan,
                                  tdm_error *err) TDM_MUST_USE;
/* What runs these plans. */
tdm_status tdmi_session_open_network(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* The order, the self-test's picture, and what feeds the loop: session/input.c */
tdm_status tdmi_session_open_input(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Of a loader whose batches go to the device from where they are: pinned, where it has that. */
struct tdmi_loader_allocator tdmi_session_allocator(struct tdmi_session *session);
/* The rows that judge and those that the epoch begun wants, made and kept where they are missing;
 * some of all the others made again and compared: features/rows.c */
tdm_status tdmi_session_make_features(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Those that a later epoch wants and that are not there yet. Where no rows are used, nothing. */
tdm_status tdmi_session_make_views(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* For a feed: what cannot be read is removed, and all that is missing then is made again. */
tdm_status tdmi_session_mend_row(void *session, const tdmi_store *store, int64_t place,
                                 const tdm_error *why, tdm_error *err) TDM_MUST_USE;
void tdmi_session_close_features(struct tdmi_session *session);
/* Where the device's memory is not the host's and has room beside all else that is reserved by now:
 * rows that train, and rows that validate, are brought once and stay there. features/kept.c */
tdm_status tdmi_session_keep_rows(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Once nobody gathers from them any more. */
void tdmi_session_give_rows_back(struct tdmi_session *session);

/* Limits: session/limits.c
 * Is one reached inside an epoch? */
bool tdmi_session_is_cut(const struct tdmi_session *session);
/* Any of them, when so many epochs are complete? */
bool tdmi_session_is_done(const struct tdmi_session *session, int epochs);
/* Is nothing left to train or to validate? Who goes on with such a run needs neither features nor
 * pictures that train. */
bool tdmi_session_is_over(const struct tdmi_session *session);
/* Which limit ended it; the first that did, where several were reached at once. */
const char *tdmi_session_ended_by(const struct tdmi_session *session);

/* Averages of the weights, if asked for, once the rest is there: session/average.c */
tdm_status tdmi_session_open_average(struct tdmi_session *session,
                                     const struct tdmi_model_file *stored,
                                     tdm_error *err) TDM_MUST_USE;
/* What validation counts: session/validation.c */
tdm_status tdmi_session_open_evaluator(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_session_close_evaluator(struct tdmi_session *session);
/* From the outcomes to the metrics. */
tdm_status tdmi_session_count(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* What the record says under "validation": of the best epoch. Not saved yet. */
tdm_status tdmi_session_record_validation(struct tdmi_session *session,
                                          tdm_error *err) TDM_MUST_USE;

/* RUN/samples.safetensors of those outcomes; and RUN/report.html, once the result is recorded. What
 * goes wrong is told, and ends nothing: session/samples.c */
void tdmi_session_keep_samples(struct tdmi_session *session);
void tdmi_session_report(struct tdmi_session *session);

/* With --strict the first picture of a batch that cannot be read ends the training. */
tdm_status tdmi_session_refuse(const struct tdmi_session *session, const struct tdmi_batch *batch,
                               tdm_error *err) TDM_MUST_USE;
/* One pass over a part, with the values that the judge has taken: fills outcomes, and skipped with
 * how many could not be read. Ends early, with less, when a stop is requested. */
tdm_status tdmi_session_evaluate(struct tdmi_session *session, tdmi_feed *feed, int64_t n_items,
                                 const char *what, tdmi_outcomes *outcomes, int64_t *skipped,
                                 tdm_error *err) TDM_MUST_USE;
/* The part that neither trained nor chose, with the best weights, which are in place afterwards: at
 * the end. What was recorded of the same weights is not counted again. session/test.c */
tdm_status tdmi_session_test(struct tdmi_session *session, struct tdm_train_result *result,
                             tdm_error *err) TDM_MUST_USE;
/* Feeds that part. session/input.c */
tdm_status tdmi_session_open_test(struct tdmi_session *session, tdmi_feed **feed,
                                  tdm_error *err) TDM_MUST_USE;

/* What a run that had ended before, and in which nothing was done now, answered then; else false.
 * session/account.c */
bool tdmi_session_recall(struct tdmi_session *session, struct tdm_train_result *result);
/* What the test said before, as the run recorded it. */
void tdmi_session_recall_tests(const struct tdmi_session *session, struct tdm_train_result *result);
/* What to do next, by what the result and the session's clocks say: session/advice.c */
void tdmi_session_advise(struct tdmi_session *session, struct tdm_train_result *result);
/* Before a training feed is closed: how long it was waited for. */
void tdmi_session_clock_feed(struct tdmi_session *session);
/* What the epochs after the best one cost and changed. */
tdm_status tdmi_session_account(struct tdmi_session *session, struct tdm_train_result *result,
                                tdm_error *err) TDM_MUST_USE;

/* Files of a training: session/checkpoint.c
 * The best epoch's weights and outcomes, kept in memory until they are written: with the next
 * checkpoint, which says that they are there. */
tdm_status tdmi_session_keep_best(struct tdmi_session *session, int epoch,
                                  tdm_error *err) TDM_MUST_USE;
/* RUN/best.safetensors and RUN/outcomes.safetensors, if they are not written yet. */
tdm_status tdmi_session_write_best(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* The best, RUN/last.safetensors, the one before as RUN/previous.safetensors, the clock, and an
 * event; nothing where the newest checkpoint holds all of it. */
tdm_status tdmi_session_checkpoint(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* At the end of an epoch: when there is no checkpoint yet, or the newest is a second old. What is
 * left out is written a little later, so what a kill costs does not grow with it. */
bool tdmi_session_is_due_after_epoch(const struct tdmi_session *session);
/* Inside one: as the options ask for it, and what the end of the epoch left out. */
bool tdmi_session_is_due_inside_epoch(const struct tdmi_session *session);
/* What the record says under "clock". Not saved yet. */
tdm_status tdmi_session_record_clock(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* Is there one to go on from? */
bool tdmi_session_has_checkpoint(tdmi_arena *arena, const char *run);
/* One that was recorded, and killed before it had its name, gets it; what was not recorded is made
 * again. Before that question is asked of a run that is open. */
tdm_status tdmi_session_name_checkpoint(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Which lines of the run are before the checkpoint that is gone on from. */
struct tdmi_lines_end tdmi_session_lines_end(const struct tdmi_session *session);
/* The newest that is whole; a warning where it is the one before. */
tdm_status tdmi_session_load_checkpoint(struct tdmi_session *session,
                                        struct tdmi_model_file *stored,
                                        tdm_error *err) TDM_MUST_USE;

/* What a run records of its beginning: session/record.c
 * Ahead of what may take long before a step: who is stopped or killed meanwhile goes on with the
 * options that were asked for. Saved; the rest is not known yet, and what is recorded stays. */
tdm_status tdmi_session_begin_record(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* When that did not succeed. */
void tdmi_session_end_record(struct tdmi_session *session, tdm_status status);
/* Who stops it while it opens has a run all the same. TDM_E_STOPPED, with what to do. */
tdm_status tdmi_session_record_stop(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* What the run is begun with, for its record; not saved yet. */
tdm_status tdmi_session_record(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Of that, what is known better at the end. */
tdm_status tdmi_session_record_machine(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* A section of the run's record, from a writer that is freed. */
tdm_status tdmi_session_set(struct tdmi_session *session, const char *section,
                            tdm_json_writer *writer, tdm_error *err) TDM_MUST_USE;
/* The members of a result but its run folder's name, which may change. text.c */
void tdmi_result_to_json(const struct tdm_train_result *result, tdm_json_writer *writer);

/* Tell every listener a sentence. */
void tdmi_session_note(struct tdmi_session *session, const char *format, ...) TDM_PRINTF(2, 3);

#endif
