/*
 * A communicator: the ranks of one job. All ranks make the same calls in the same order. One thread
 * moves all messages, so a sum of gradients is on its way while others are computed:
 *
 *     caller       segment 2   segment 1   segment 0   finish
 *     its thread               [sum of 2  ][sum of 1 ][sum of 0]
 *
 * One process alone is a communicator too, without a thread; every call is then done at once.
 *
 * A failure of one rank ends all: whoever waits for a message gets the status and the sentence of
 * the rank that failed (tdmi_comm_abort; err->rank says which), or, where a rank is lost or silent
 * for longer than the deadline, TDM_E_PEER.
 */
#pragma once

#include "base/trace.h"
#include "dist/launch.h"
#include "dist/transport.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdmi_comm tdmi_comm;

tdm_status tdmi_comm_open(const struct tdmi_launch *launch, tdmi_comm **comm,
                          tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_comm_close(tdmi_comm *comm);
TDMI_POINTER_RELEASE(tdmi_comm, tdmi_comm_close)

int tdmi_comm_rank(const tdmi_comm *comm);
int tdmi_comm_world(const tdmi_comm *comm);

/* May its thread spin while the caller waits? Where every thread of this machine's ranks has a CPU
 * of its own. */
void tdmi_comm_may_spin(tdmi_comm *comm, bool may_spin);

/* Notes what this rank is at, for the messages of others: "training epoch 3", step 17 (0: none). A
 * rank that computes and notes nothing for sixty deadlines hangs, and ends the job. */
void tdmi_comm_note(tdmi_comm *comm, const char *phase, int64_t step);

/* The last that is known of a rank. at: "training epoch 3, step 17"; "": it has not said. */
struct tdmi_heartbeat {
    const char *host; /* lives as long as the communicator */
    char at[TDMI_BEAT_BYTES];
    double silent_seconds;
};
/* As the communicator's thread looked last, four times within the deadline; as it is now, after
 * abort. Only where there are several ranks. */
void tdmi_comm_heartbeat(tdmi_comm *comm, int rank, struct tdmi_heartbeat *heartbeat);
/* How often it has looked. */
int64_t tdmi_comm_looks(tdmi_comm *comm);
/* Seconds that the caller has waited for sums and messages. */
double tdmi_comm_waited_seconds(tdmi_comm *comm);
/* On rank 0: was another rank asked to stop? Its heartbeat says so at once, so that rank 0 learns
 * it where it exchanges no messages. */
bool tdmi_comm_is_asked_to_stop(tdmi_comm *comm);

/* The failure of a rank that is known so far, while the caller waits for ranks by other means than
 * messages. For a second after this call, or until the next sum or message, it needs all of them:
 * one that is lost or silent is a failure then, although no message waits for it. */
tdm_status tdmi_comm_check(tdmi_comm *comm, tdm_error *err) TDM_MUST_USE;

/* Records sums and messages in its thread's lane, and the waits of the caller in the caller's;
 * NULL: not any more. Nothing may be on its way. */
void tdmi_comm_trace(tdmi_comm *comm, tdmi_lane *lane, tdmi_lane *caller_lane);
/* Measures on rank 0 how far the clock of every rank (tdmi_clock_ns) is ahead of rank 0's, by the
 * shortest of several round trips to that rank. A difference of less than half the round trip
 * cannot be measured and is stored as 0. The other ranks' arrays are not written. */
tdm_status tdmi_comm_compare_clocks(tdmi_comm *comm, int64_t *ahead_ns,
                                    tdm_error *err) TDM_MUST_USE;

/* ---- sums ------------------------------------------------------------------------------------ */

/* From now on sums are over so many groups, which tdmi_cut_make divides among the ranks. Nothing
 * may be on its way. */
tdm_status tdmi_comm_divide(tdmi_comm *comm, int n_groups, tdm_error *err) TDM_MUST_USE;
/* Starts the sum of values [first, first + n) over all ranks, in the tree's order. roots: the
 * arrays of this rank's subtrees (tdmi_tree_roots), of which total may be the first one; the result
 * goes to total. None may be touched in that range until tdmi_comm_finish. */
tdm_status tdmi_comm_sum(tdmi_comm *comm, float *const *roots, float *total, int64_t first,
                         int64_t n, tdm_error *err) TDM_MUST_USE;
/* The same in another order, with bf16 on the wire, half the bytes. The result is rounded to bf16,
 * depends on how groups are divided, and has the same bits on all ranks. */
tdm_status tdmi_comm_sum_rounded(tdmi_comm *comm, float *const *roots, float *total, int64_t first,
                                 int64_t n, tdm_error *err) TDM_MUST_USE;
/* Until everything that was started is done on this rank. */
tdm_status tdmi_comm_finish(tdmi_comm *comm, tdm_error *err) TDM_MUST_USE;

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Rank 0's bytes to all others. */
tdm_status tdmi_comm_broadcast(tdmi_comm *comm, void *bytes, size_t n, tdm_error *err) TDM_MUST_USE;
/* The same where only rank 0 knows how many: the others get a block of their own (tdmi_free). */
tdm_status tdmi_comm_spread(tdmi_comm *comm, void **bytes, size_t *n, tdm_error *err) TDM_MUST_USE;
/* Every rank has its piece of `all`, bytes [firsts[rank], firsts[rank + 1]), and gets the others.
 * firsts is lent like `all`. */
tdm_status tdmi_comm_complete(tdmi_comm *comm, void *all, const size_t *firsts,
                              tdm_error *err) TDM_MUST_USE;
/* The bytes of every rank, each sizes[rank] of them, side by side on rank 0, whose own may be
 * there already; `all` is not used elsewhere. */
tdm_status tdmi_comm_gather(tdmi_comm *comm, const void *mine, const size_t *sizes, void *all,
                            tdm_error *err) TDM_MUST_USE;

/* Both return at once: everything is lent until tdmi_comm_finish. */
tdm_status tdmi_comm_begin_broadcast(tdmi_comm *comm, void *bytes, size_t n,
                                     tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_comm_begin_gather(tdmi_comm *comm, const void *mine, const size_t *sizes, void *all,
                                  tdm_error *err) TDM_MUST_USE;

/* ---- the end --------------------------------------------------------------------------------- */

/* Tells the other ranks that this one has failed, and why; afterwards only close may be called. */
void tdmi_comm_abort(tdmi_comm *comm, tdm_status status, const tdm_error *why);
/* The rank that has failed: another one that said so, else this one. After abort. */
int tdmi_comm_failed_rank(const tdmi_comm *comm);
