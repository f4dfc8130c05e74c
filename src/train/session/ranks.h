/*
 * Several processes that train one run. All go through the same stages and the same steps; rank 0
 * owns the run: its folder, its events, its checkpoints, and every decision that a clock, a disk or
 * a person makes. The others, its followers, are told.
 *
 * While a head is trained on cached features, rank 0 trains alone: a step of a head takes less time
 * than a message. Followers compute features when they are missing, and wait.
 */
#pragma once

#include "data/loader/loader.h"
#include "dist/comm.h"
#include "train/evaluate/outcomes.h"
#include "train/model/model_file.h"
#include "weights/weights.h"

struct tdmi_session;
struct tdm_train_options;

/* Decisions of rank 0, the same on all ranks. */
struct tdmi_agreed {
    bool is_stopping;    /* a stop was requested on some rank */
    bool is_out_of_time; /* --minutes */
    bool is_over;        /* nothing is left to train after cached features */
    bool is_abandoned;   /* rank 0 could not keep the rows of a batch of features */
    bool differs;        /* some rank computes other bits than rank 0, and --fast accepts it */
};

/* Joins the other ranks, before options are resolved. A resumed run has rank 0's options, which
 * followers may not have seen; else TDM_E_USAGE: those of the ranks differ. */
tdm_status tdmi_ranks_open(struct tdmi_session *session, struct tdm_train_options *options,
                           tdm_error *err) TDM_MUST_USE;
/* The number of ranks; is this one not rank 0? */
int tdmi_ranks_world(const struct tdmi_session *session);
bool tdmi_ranks_is_follower(const struct tdmi_session *session);
/* Are the batches of this phase divided among ranks? */
bool tdmi_ranks_share_steps(const struct tdmi_session *session);

/* Has the run, in this session, the bits of one process on the CPU? Not with --fast. */
bool tdmi_ranks_is_exact(const struct tdmi_session *session);

/* TDM_E_ABSENT: machines of the ranks decode or compute with other bits, by instruction set and
 * versions; by what the network makes of one image. With --fast they are accepted and
 * named. Stages of opening. */
tdm_status tdmi_ranks_compare_machines(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_ranks_compare_networks(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* ---- opening --------------------------------------------------------------------------------- */

/* Rank 0's choice of network and weights. */
tdm_status tdmi_ranks_take_choice(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* The weights file, which only rank 0 must have. *bytes: of followers, to be freed after it is
 * closed. */
tdm_status tdmi_ranks_open_weights(struct tdmi_session *session, tdmi_weights **weights,
                                   void **bytes, tdm_error *err) TDM_MUST_USE;
/* Rank 0's config.json beside the weights, to be freed; NULL or "": there is none. */
tdm_status tdmi_ranks_share_beside(struct tdmi_session *session, const tdmi_weights *weights,
                                   char **text, tdm_error *err) TDM_MUST_USE;
/* Rank 0's run and checkpoint. is_there is of rank 0. */
tdm_status tdmi_ranks_follow_run(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_ranks_share_checkpoint(struct tdmi_session *session, bool *is_there,
                                       tdm_error *err) TDM_MUST_USE;
/* Reads the contents of a part of the images; all ranks get the hashes of all. unreadable gets the
 * lines of tdmi_contents_read_part: of all images on rank 0, of their part on others. */
tdm_status tdmi_ranks_read_contents(struct tdmi_session *session, tdmi_text *unreadable,
                                    tdm_error *err) TDM_MUST_USE;

/* ---- batches --------------------------------------------------------------------------------- */

/* Images of a batch that this rank computes: [first, end) of n. */
tdm_status tdmi_ranks_divide(const struct tdmi_session *session, int n, int *first, int *end,
                             tdm_error *err) TDM_MUST_USE;
/* At most, of batches of so many in groups of `shard`. */
int tdmi_ranks_most_images(const struct tdmi_session *session, int batch, int shard);
/* The images [first, end) of n, of a part of the split, are evaluated here. */
void tdmi_ranks_part_of(const struct tdmi_session *session, int64_t n, int64_t *first,
                        int64_t *end);

/* The same of a batch whose images do not meet: places [first, end) of n are a rank's. */
void tdmi_ranks_part_of_batch(int n, int rank, int world, int *first, int *end);

/* ---- while training -------------------------------------------------------------------------- */

/* Was a stop requested; are --minutes over? Several ranks learn it in tdmi_ranks_agree, so that all
 * stop at the same step. */
bool tdmi_ranks_is_stopping(const struct tdmi_session *session);
bool tdmi_ranks_is_out_of_time(const struct tdmi_session *session);
/* Sets session->agreed on all ranks; after every step and every validation. Nothing to agree on
 * where rank 0 trains alone. */
tdm_status tdmi_ranks_agree(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Rank 0's decision, once it knows who was asked to stop. */
void tdmi_ranks_decide(const struct tdmi_session *session, const bool *stops,
                       struct tdmi_agreed *agreed);
/* Rank 0's bytes replace those of the others. */
tdm_status tdmi_ranks_share(struct tdmi_session *session, void *bytes, size_t n,
                            tdm_error *err) TDM_MUST_USE;
/* Rank 0's text, which lives as long as the session; NULL stays NULL. */
tdm_status tdmi_ranks_share_text(struct tdmi_session *session, const char **text,
                                 tdm_error *err) TDM_MUST_USE;
/* Rank 0 gets the outcomes of all ranks, in the order of images; the others keep their own. */
tdm_status tdmi_ranks_gather_outcomes(struct tdmi_session *session, tdmi_outcomes *outcomes,
                                      tdm_error *err) TDM_MUST_USE;
/* Rank 0 gets the texts of all ranks, one after the other; the others keep their own. */
tdm_status tdmi_ranks_gather_text(struct tdmi_session *session, tdmi_text *text,
                                  tdm_error *err) TDM_MUST_USE;
/* Rank 0 gets the skipped images of all ranks, each once, in the order of their places; the others
 * keep their own. *skips may be replaced. */
tdm_status tdmi_ranks_gather_skips(struct tdmi_session *session, struct tdmi_skip **skips,
                                   int64_t *n, tdm_error *err) TDM_MUST_USE;
/* Before a validation, where machines differ: their optimizers drift apart by rounding, so all get
 * rank 0's weights. */
tdm_status tdmi_ranks_level(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* The weights that are evaluated; all of them. Host copies are overwritten. */
tdm_status tdmi_ranks_share_evaluated(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_ranks_share_values(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Tells the other ranks that this one has failed, and notes in the error which did. */
void tdmi_ranks_abort(struct tdmi_session *session, tdm_status status, tdm_error *err);
/* After a stop: the others stay until rank 0 has saved and copied the run, because launchers kill
 * the ranks that are left when one has ended. Returns TDM_E_STOPPED, or why rank 0 did not. */
tdm_status tdmi_ranks_end_stopped(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* ---- rank_devices.c -------------------------------------------------------------------------- */

/* Ranks on devices with memory of their own: connects the devices where all of them can be. A
 * stage of opening. TDM_E_ABSENT: two ranks have the same device. */
tdm_status tdmi_ranks_connect(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* tdmi_session_plan_memory on rank 0 and then, with the algorithms and the group size that it has
 * chosen, on the others. */
tdm_status tdmi_ranks_plan_memory(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* ---- rank_reports.c -------------------------------------------------------------------------- */

/* Times and counts of this rank so far; the difference of two is that of an epoch. */
struct tdmi_rank_time {
    double seconds;
    double for_ranks, for_images; /* of these it waited */
    double images;                /* that it computed */
    double loads_per_second;      /* images, if no thread of its loader ever waited */
};
void tdmi_ranks_take_time(const struct tdmi_session *session, struct tdmi_rank_time *time);
/* Notes how many ranks there are, what each computes of a batch, who has nothing to do, and in how
 * many parts gradients leave. */
tdm_status tdmi_ranks_report(const struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* After an epoch, where steps are shared: notes the rank that others with as much to do waited for,
 * if they waited long. */
tdm_status tdmi_ranks_report_slow(struct tdmi_session *session, const struct tdmi_rank_time *began,
                                  tdm_error *err) TDM_MUST_USE;

/* File of the run folder in which rank 0 keeps what every rank was last at. */
#define TDMI_RANKS_NAME "ranks.json"

/* When the run's record is saved; after that, where the communicator has looked at the ranks since.
 */
void tdmi_ranks_begin_heartbeats(struct tdmi_session *session);
void tdmi_ranks_keep_heartbeats(struct tdmi_session *session);
/* With the sentence of a failure; removes the file where there is none. */
void tdmi_ranks_end_heartbeats(struct tdmi_session *session, tdm_status status,
                               const tdm_error *err);
