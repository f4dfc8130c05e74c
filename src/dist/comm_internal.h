/* A communicator as its own files see it. */
#pragma once

#include "base/trace.h"
#include "dist/comm.h"
#include "dist/transport.h"
#include "dist/tree.h"

#include <pthread.h>

/* Channels of messages. */
enum { TDMI_TO_SUM, TDMI_SUMMED, TDMI_BYTES };

/* Values of a chunk on the host: large enough that a message's fixed cost is small, small enough
 * that parts are in the caches when they are added. */
enum { TDMI_SUM_CHUNK = 64 * 1024 };

/* Values [first, first + n). */
struct tdmi_range {
    int64_t first, n;
};

/* Where the values of a sum lie on this rank. */
struct tdmi_sum_arrays {
    float *roots[TDMI_TREE_ROOTS]; /* the sum of each subtree that this rank computes */
    int n_roots;
    float *total; /* gets the sum; may be the first of these */
    struct tdmi_range range;
    float *room; /* for the subtrees of all ranks: two chunks of each */
    int64_t chunk_values;
};

/* Work for the communicator's thread. */
struct tdmi_comm_job {
    tdm_status (*run)(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err);
    struct tdmi_sum_arrays sum; /* zeroed in jobs that exchange bytes */
    /* of bytes */
    void *bytes;
    const void *mine;
    const size_t *sizes;
    size_t n_bytes;
    int64_t queued_ns; /* 0: nothing is traced */
    struct tdmi_comm_job *next;
};

/* How sums of a number of groups are made. */
struct tdmi_sum_plan {
    int n_groups;
    int *firsts;      /* groups of ranks: tdmi_cut_make */
    int *roots_of;    /* roots of rank r: [roots_of[r], roots_of[r + 1]) */
    int n_roots;      /* of all ranks */
    int *root_firsts; /* first group of each */
    struct tdmi_tree_part *parts;
    struct tdmi_tree_addition *additions;
    int n_additions;
    int n_levels; /* halvings by which ranks share a sum; 0: each owns a slice of it */
    void *room;   /* memory for messages: two chunks of f32 for every root and rank */
    struct tdmi_message *messages; /* four sets */
    int most_messages;             /* of a set */
};

/* Time and words of the last message of a rank. */
struct tdmi_comm_heard {
    int64_t ns;
    char at[TDMI_BEAT_BYTES];
};

struct tdmi_comm {
    struct tdmi_launch launch;
    const struct tdmi_transport_table *table; /* NULL: alone */
    tdmi_transport *transport;
    bool may_spin;
    int64_t beat_ns; /* when the others were last told that this one lives */
    struct tdmi_sum_plan plan;
    struct tdmi_message *messages; /* of bytes, two for each rank */

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t has_changed; /* a job was added or is done, or the end has come */
    struct tdmi_comm_job *jobs, *spare;
    int n_open;        /* jobs that are not done */
    bool is_cut_short; /* a job failed or was not begun, since the caller last waited */
    bool has_sums;     /* a sum was begun since then */
    bool is_waited_for, is_closing;
    /* The caller waits for all ranks by other means than messages: since when, and when it last
     * said so. */
    int64_t needs_all_ns, asked_ns;
    struct tdmi_comm_heard *heard; /* by rank */
    int64_t n_looks;
    bool has_said_stop;            /* this rank, in a heartbeat */
    bool is_asked_to_stop;         /* another one was, as rank 0 heard */
    tdmi_lane *lane, *caller_lane; /* lanes of the trace; NULL: nothing is traced */
    /* State of the running job, for the trace; on the communicator's thread: */
    int open_peer;     /* peer of the message that was waited for last; -1: none was */
    int late_peer;     /* whose first part of a sum came last; -1: all were there */
    int64_t heard_ns;  /* when it had come; 0: this rank adds nothing */
    int64_t noted_ns;  /* when the caller last noted or called something */
    int64_t waited_ns; /* by the caller, in all */
    char phase[TDMI_BEAT_BYTES - 28], words[TDMI_BEAT_BYTES];
    tdm_error failure; /* code TDM_OK: none */
};

/* Gives a job to the communicator's thread; run: and returns when all are done. */
tdm_status tdmi_comm_begin(tdmi_comm *comm, const struct tdmi_comm_job *job,
                           tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_comm_run(tdmi_comm *comm, const struct tdmi_comm_job *job,
                         tdm_error *err) TDM_MUST_USE;
/* On the communicator's thread: until all are done. what: "the sum of gradients". */
tdm_status tdmi_comm_wait(tdmi_comm *comm, struct tdmi_message *const *sets, const int *n_of,
                          int n_sets, const char *what, tdm_error *err) TDM_MUST_USE;
/* comm_trace.c, on the communicator's thread, where there is a lane. A part of every rank has come
 * to a sum; a job has ended. */
void tdmi_comm_trace_first(tdmi_comm *comm);
void tdmi_comm_trace_job(tdmi_comm *comm, const struct tdmi_comm_job *job, int64_t begin_ns);
/* The shortest round trip to a rank so far; start from a zeroed object. The rank is taken to have
 * read its clock half-way. */
struct tdmi_clock_trip {
    bool has_any;
    int64_t trip_ns, ahead_ns;
};
void tdmi_clock_take_trip(struct tdmi_clock_trip *best, int64_t began_ns, int64_t theirs_ns,
                          int64_t ended_ns);
/* How far its clock is ahead; 0 where half the trip is more. */
int64_t tdmi_clock_ahead(const struct tdmi_clock_trip *best);
/*
 * sum.c. The roots of this rank; which chunk of which array goes from whom to whom in an exact sum;
 * the arrays need not be the host's.
 *
 * Every rank owns a slice of the values, whole vectors, which is cut into chunks: chunk c of a
 * rank's, and the number of chunks of the longest slice.
 */
void tdmi_sum_set_roots(const tdmi_comm *comm, struct tdmi_sum_arrays *arrays, float *const *roots);
struct tdmi_range tdmi_sum_chunk(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                                 int rank, int64_t c);
int64_t tdmi_sum_chunks(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays);
/* This rank's chunk c of a subtree of any rank: in an array of its own, or where it is received. A
 * rank without a subtree receives the first one where the sum will be. */
float *tdmi_sum_part(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays, int64_t c,
                     int root);
/* Starts to send n values to a peer, or to receive them. */
typedef tdm_status tdmi_sum_start(void *self, bool is_sent, int peer, void *values, int64_t n,
                                  tdm_error *err);
/* Chunk c: own subtrees go to the owners, and those of the others come for the own slice; when they
 * are added, the own sum goes to all, and those of the others come. */
typedef tdm_status tdmi_sum_exchange(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                                     int64_t c, tdmi_sum_start *start, void *self, tdm_error *err);
tdmi_sum_exchange tdmi_sum_exchange_parts, tdmi_sum_exchange_sums;
tdm_status tdmi_sum_plan_make(struct tdmi_sum_plan *plan, int world, int n_groups,
                              tdm_error *err) TDM_MUST_USE;
void tdmi_sum_plan_release(struct tdmi_sum_plan *plan);
tdm_status tdmi_sum_run(tdmi_comm *comm, const struct tdmi_comm_job *job,
                        tdm_error *err) TDM_MUST_USE;
/* Messages between hosts that were started together, and what starts one: self is the set. */
struct tdmi_message_set {
    tdmi_comm *comm;
    struct tdmi_message *messages;
    int n, channel;
    size_t value_bytes;
};
tdmi_sum_start tdmi_message_start;
tdm_status tdmi_sum_run_rounded(tdmi_comm *comm, const struct tdmi_comm_job *job,
                                tdm_error *err) TDM_MUST_USE;
/* sum_halving.c. The halvings of a plan; 0: its ranks or subtrees are not of that kind. */
int tdmi_sum_levels(const struct tdmi_sum_plan *plan, int world);
tdm_status tdmi_sum_run_halving(tdmi_comm *comm, const struct tdmi_comm_job *job,
                                tdm_error *err) TDM_MUST_USE;
