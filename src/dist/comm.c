/*
 * The communicator's thread takes jobs in the order in which they were begun and runs each to its
 * end: while it waits for messages it spins only when the caller has nothing left to compute, and
 * sleeps otherwise. Between jobs it looks for the sentence of a rank that failed.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "base/system/signals.h"
#include "base/text/choice.h"
#include "base/thread.h"
#include "dist/comm_internal.h"
#include "tandem/event.h"
#include "tandem/log.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* spin_ns: after it, waiting is left to the scheduler. idle_ns: between looks at failed ranks. */
enum { spin_ns = 200 * 1000, doze_ns = 50 * 1000, sleep_ns = 500 * 1000, idle_ns = 50 * 1000000 };
static const int64_t ns_per_second = 1000000000;
/* Time within which a caller that waits for devices asks again whether all ranks live. */
static const double asking_seconds = 1.0;

/* ---- transports ------------------------------------------------------------------------------ */

#define X(name) extern const struct tdmi_transport_table tdmi_transport_##name;
#include "dist/transports.def"
#undef X

static const struct tdmi_transport_table *const transports[] = {
#define X(name) &tdmi_transport_##name,
#include "dist/transports.def"
#undef X
};

static const char *const names[] = {
#define X(name) #name,
#include "dist/transports.def"
#undef X
};

tdm_status tdmi_transport_find(const char *name, const struct tdmi_transport_table **table,
                               tdm_error *err)
{
    int index;
    TDMI_TRY(
        tdmi_choice_find("transport", name, names, sizeof names / sizeof names[0], &index, err));
    *table = transports[index];
    return TDM_OK;
}

/* ---- waiting for messages -------------------------------------------------------------------- */

static bool is_over(int64_t since_ns, double seconds)
{
    return (double)(tdmi_clock_ns() - since_ns) > seconds * (double)ns_per_second;
}

/* The peer of the first message that is not done; -1: all are. *silent: a peer of such a one that
 * nothing was heard of for longer than the deadline; -1: none. */
static int first_open(const tdmi_comm *comm, struct tdmi_message *const *sets, const int *n_of,
                      int n_sets, int64_t began_ns, int *silent)
{
    const double deadline = comm->launch.deadline;
    const bool may_be_silent = is_over(began_ns, deadline);
    int peer = -1;
    *silent = -1;
    for (int s = 0; s < n_sets; s++)
        for (int i = 0; i < n_of[s]; i++) {
            const struct tdmi_message *it = &sets[s][i];
            if (peer < 0 && !it->is_done)
                peer = it->peer;
            if (may_be_silent && !it->is_done &&
                is_over(comm->table->heard_ns(comm->transport, it->peer), deadline))
                *silent = it->peer;
        }
    return peer;
}

/* With the lock held, on the thread that calls the transport. */
static void look_at_ranks(tdmi_comm *comm)
{
    for (int r = 0; r < comm->launch.world; r++) {
        struct tdmi_comm_heard *heard = &comm->heard[r];
        const bool is_own = r == comm->launch.rank;
        heard->ns = is_own ? comm->noted_ns : comm->table->heard_ns(comm->transport, r);
        snprintf(heard->at, sizeof heard->at, "%s",
                 is_own ? comm->words : comm->table->said(comm->transport, r));
    }
    comm->n_looks++;
}

/* A caller that hangs can neither say so nor end. Launchers kill all ranks once one has gone, so
 * the others get a second to say why. */
static void report_hang(tdmi_comm *comm, const tdm_error *why)
{
    char words[TDMI_ABORT_BYTES];
    tdmi_transport_abort_words(TDM_E_PEER, why, words);
    comm->table->abandon(comm->transport, words, true);
    if (!comm->launch.ends_process)
        return;
    /* The caller may hang because nobody reads its messages: this thread must not do so too. */
    struct pollfd messages = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&messages, 1, 1000) == 1 && (messages.revents & POLLOUT) != 0)
        tdm_log(TDM_LOG_ERROR, "%s", words + 1); /* after the status */
    (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    _exit(tdm_status_exit(TDM_E_PEER));
}

/* Four times within the deadline of the others, and once when this rank is asked to stop.
 * TDM_E_PEER: the caller hangs. */
static tdm_status beat(tdmi_comm *comm, tdm_error *err)
{
    const struct tdmi_launch *launch = &comm->launch;
    const double patience = launch->patience > 0.0 ? launch->patience : 60.0 * launch->deadline;
    const bool stops = launch->rank > 0 && tdm_stop_is_requested();
    char words[TDMI_BEAT_BYTES];
    if (stops == comm->has_said_stop && !is_over(comm->beat_ns, comm->launch.deadline / 4.0))
        return TDM_OK;
    comm->beat_ns = tdmi_clock_ns();
    comm->has_said_stop = stops;
    pthread_mutex_lock(&comm->lock);
    const char *stop = stops ? TDMI_BEAT_STOP : "";
    snprintf(words, sizeof words, "%s%.*s", stop, (int)(sizeof words - strlen(stop) - 1),
             comm->words);
    look_at_ranks(comm);
    const bool hangs =
        !comm->is_waited_for && comm->noted_ns > 0 && is_over(comm->noted_ns, patience);
    pthread_mutex_unlock(&comm->lock);
    comm->table->beat(comm->transport, words);
    if (!hangs)
        return TDM_OK;
    const tdm_status status =
        TDM_FAIL(err, TDM_E_PEER, "rank %d has come no further for %g seconds: %s", launch->rank,
                 patience, words);
    report_hang(comm, err);
    return status;
}

/* "; it was at training epoch 3, step 17" */
static const char *describe_last(const tdmi_comm *comm, int peer, char text[TDMI_BEAT_BYTES + 16])
{
    const char *said = comm->table->said(comm->transport, peer);
    snprintf(text, TDMI_BEAT_BYTES + 16, "%s%s", *said ? "; it was at " : "", said);
    return text;
}

/* False: the communicator is closing, and waits no more. */
static bool rest(tdmi_comm *comm, int64_t waited_ns)
{
    pthread_mutex_lock(&comm->lock);
    const bool is_waited_for = comm->is_waited_for, is_closing = comm->is_closing;
    const bool may_spin = comm->may_spin && is_waited_for && waited_ns < spin_ns;
    pthread_mutex_unlock(&comm->lock);
    if (may_spin)
        tdmi_thread_pause();
    else
        comm->table->sleep(comm->transport, is_waited_for ? doze_ns : sleep_ns);
    return !is_closing;
}

/* A failure that the transport has not seen. */
static tdm_status report_silence(tdmi_comm *comm, int silent, const char *what, tdm_error *err)
{
    char last[TDMI_BEAT_BYTES + 16];
    if (comm->table->let_go)
        comm->table->let_go(comm->transport);
    return TDM_FAIL(err, TDM_E_PEER,
                    "rank %d waited for %s and heard nothing from rank %d on %s for %g seconds%s",
                    comm->launch.rank, what, silent, comm->table->host_of(comm->transport, silent),
                    comm->launch.deadline, describe_last(comm, silent, last));
}

tdm_status tdmi_comm_wait(tdmi_comm *comm, struct tdmi_message *const *sets, const int *n_of,
                          int n_sets, const char *what, tdm_error *err)
{
    const int64_t began_ns = tdmi_clock_ns();
    for (;;) {
        int silent;
        const tdm_status status = comm->table->progress(comm->transport, false, err);
        const int open = first_open(comm, sets, n_of, n_sets, began_ns, &silent);
        if (open < 0) /* a rank that failed after these is found by the next look */
            return TDM_OK;
        TDM_TRY(status, err, "waiting for %s", what);
        comm->open_peer = open;
        TDMI_TRY(beat(comm, err));
        if (silent >= 0)
            return report_silence(comm, silent, what, err);
        if (!rest(comm, tdmi_clock_ns() - began_ns))
            return TDM_E_STOPPED;
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Called with the lock held. */
static void idle(tdmi_comm *comm)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += idle_ns;
    until.tv_sec += until.tv_nsec / ns_per_second;
    until.tv_nsec %= ns_per_second;
    pthread_cond_timedwait(&comm->has_changed, &comm->lock, &until);
}

static void take_failure(tdmi_comm *comm, tdm_status status, const tdm_error *err)
{
    if (status == TDM_OK || comm->is_closing || comm->failure.code != TDM_OK)
        return;
    comm->failure = *err;
    pthread_cond_broadcast(&comm->has_changed);
}

static struct tdmi_comm_job *take_job(tdmi_comm *comm)
{
    struct tdmi_comm_job *job = comm->jobs;
    comm->jobs = job->next;
    return job;
}

static void end_job(tdmi_comm *comm, struct tdmi_comm_job *job, bool is_done)
{
    comm->is_cut_short = comm->is_cut_short || !is_done;
    job->next = comm->spare;
    comm->spare = job;
    comm->n_open--;
    pthread_cond_broadcast(&comm->has_changed);
}

/* Between jobs, on rank 0. */
static void look_for_stops(tdmi_comm *comm)
{
    bool is_asked = false;
    for (int r = 1; r < comm->launch.world && comm->launch.rank == 0; r++)
        is_asked = is_asked || strncmp(comm->table->said(comm->transport, r), TDMI_BEAT_STOP,
                                       sizeof TDMI_BEAT_STOP - 1) == 0;
    pthread_mutex_lock(&comm->lock);
    comm->is_asked_to_stop = comm->is_asked_to_stop || is_asked;
    pthread_mutex_unlock(&comm->lock);
}

/* Between jobs, while the caller waits for devices, which need all ranks. A rank that gives up
 * because another one is silent does so after the deadline and says why: the second is for that. */
static tdm_status look_for_silence(tdmi_comm *comm, int64_t since_ns, tdm_error *err)
{
    const double deadline = comm->launch.deadline;
    for (int r = 0; r < comm->launch.world && is_over(since_ns, deadline + 1.0); r++)
        if (r != comm->launch.rank && is_over(comm->table->heard_ns(comm->transport, r), deadline))
            return report_silence(comm, r, "the devices of all ranks", err);
    return TDM_OK;
}

/* The next job, or a look at the others. */
static tdm_status take_turn(tdmi_comm *comm, const struct tdmi_comm_job *job, int64_t needs_all_ns,
                            tdm_error *err)
{
    TDMI_TRY(beat(comm, err));
    if (job)
        return job->run(comm, job, err);
    TDMI_TRY(comm->table->progress(comm->transport, needs_all_ns > 0, err));
    look_for_stops(comm);
    return needs_all_ns > 0 ? look_for_silence(comm, needs_all_ns, err) : TDM_OK;
}

static void *work(void *self)
{
    tdmi_comm *comm = self;
    tdmi_thread_flush_denormals(); /* as all threads that add */
    pthread_mutex_lock(&comm->lock);
    while (!comm->is_closing) {
        tdm_error err = {0};
        struct tdmi_comm_job *job = comm->jobs ? take_job(comm) : NULL;
        if (!job)
            idle(comm);
        if (!job && comm->jobs)
            continue;
        const bool has_failed = comm->failure.code != TDM_OK;
        const tdmi_lane *lane = job ? comm->lane : NULL; /* it stays while a job is open */
        const int64_t needs_all_ns =
            is_over(comm->asked_ns, asking_seconds) ? 0 : comm->needs_all_ns;
        pthread_mutex_unlock(&comm->lock);
        const int64_t begin_ns = tdmi_lane_begin(lane);
        const tdm_status status = has_failed ? TDM_OK : take_turn(comm, job, needs_all_ns, &err);
        if (lane)
            tdmi_comm_trace_job(comm, job, begin_ns);
        pthread_mutex_lock(&comm->lock);
        take_failure(comm, status, &err);
        if (job)
            end_job(comm, job, !has_failed && status == TDM_OK);
    }
    pthread_mutex_unlock(&comm->lock);
    return NULL;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static tdm_status report_failure(const tdmi_comm *comm, tdm_error *err)
{
    if (comm->failure.code != TDM_OK && err)
        *err = comm->failure;
    return comm->failure.code;
}

tdm_status tdmi_comm_begin(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    struct tdmi_comm_job *mine = NULL;
    pthread_mutex_lock(&comm->lock);
    comm->asked_ns = 0;
    tdm_status status = report_failure(comm, err);
    if (status == TDM_OK && comm->spare) {
        mine = comm->spare;
        comm->spare = mine->next;
    } else if (status == TDM_OK)
        status = TDMI_NEW(mine, 1, err);
    if (status == TDM_OK) {
        struct tdmi_comm_job **end = &comm->jobs;
        while (*end)
            end = &(*end)->next;
        *mine = *job;
        mine->queued_ns = tdmi_lane_begin(comm->lane);
        mine->next = NULL;
        *end = mine;
        comm->n_open++;
        comm->has_sums = comm->has_sums || job->sum.total;
        pthread_cond_broadcast(&comm->has_changed);
    }
    pthread_mutex_unlock(&comm->lock);
    return status;
}

tdm_status tdmi_comm_finish(tdmi_comm *comm, tdm_error *err)
{
    if (!comm->table)
        return TDM_OK;
    const int64_t begin_ns = tdmi_lane_begin(comm->caller_lane), waits_ns = tdmi_clock_ns();
    const enum tdmi_trace_kind kind =
        comm->has_sums ? TDMI_TRACE_WAIT_SUMS : TDMI_TRACE_WAIT_MESSAGES;
    pthread_mutex_lock(&comm->lock);
    comm->is_waited_for = true;
    while (comm->n_open > 0) /* buffers are lent until then, also after a failure */
        pthread_cond_wait(&comm->has_changed, &comm->lock);
    comm->is_waited_for = comm->has_sums = false;
    comm->noted_ns = tdmi_clock_ns();
    comm->waited_ns += comm->noted_ns - waits_ns;
    /* A rank that fails after jobs that are done everywhere concerns the next ones: all ranks know
     * the result of these, such as that they stop. */
    const tdm_status status = comm->is_cut_short ? report_failure(comm, err) : TDM_OK;
    comm->is_cut_short = false;
    pthread_mutex_unlock(&comm->lock);
    tdmi_lane_end(comm->caller_lane, kind, 0, begin_ns);
    return status;
}

tdm_status tdmi_comm_run(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    TDMI_TRY(tdmi_comm_begin(comm, job, err));
    return tdmi_comm_finish(comm, err);
}

/* ---- open and close -------------------------------------------------------------------------- */

static tdm_status start_thread(tdmi_comm *comm, tdm_error *err)
{
    sigset_t before;
    tdmi_signals_block(&before);
    const int problem = pthread_create(&comm->thread, NULL, work, comm);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "starting the thread that talks to other ranks: %s",
                        strerror(problem));
    comm->has_thread = true;
    return TDM_OK;
}

static void make_locks(tdmi_comm *comm)
{
    pthread_condattr_t steady;
    pthread_condattr_init(&steady); /* these cannot fail */
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->has_changed, &steady);
    pthread_condattr_destroy(&steady);
}

tdm_status tdmi_comm_open(const struct tdmi_launch *launch, tdmi_comm **comm, tdm_error *err)
{
    TDMI_AT_END(tdmi_comm_close_at) tdmi_comm *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->launch = *launch;
    make_locks(made);
    if (launch->world > 1) {
        TDMI_TRY(TDMI_NEW(made->messages, 2 * (size_t)launch->world, err));
        TDMI_TRY(TDMI_NEW(made->heard, launch->world, err));
        TDMI_TRY(tdmi_transport_find(launch->transport, &made->table, err));
        if (made->table->load)
            TDM_TRY(made->table->load(launch, &made->table, err), err,
                    "joining the other ranks as rank %d of %d", launch->rank, launch->world);
        TDM_TRY(made->table->open(launch, &made->transport, err), err,
                "joining the other ranks as rank %d of %d", launch->rank, launch->world);
        TDMI_TRY(start_thread(made, err));
    }
    *comm = tdmi_take(&made);
    return TDM_OK;
}

static void stop_thread(tdmi_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->is_closing = true;
    pthread_cond_broadcast(&comm->has_changed);
    pthread_mutex_unlock(&comm->lock);
    pthread_join(comm->thread, NULL);
    comm->has_thread = false;
}

static void free_jobs(struct tdmi_comm_job *jobs)
{
    while (jobs) {
        struct tdmi_comm_job *next = jobs->next;
        tdmi_free(jobs);
        jobs = next;
    }
}

void tdmi_comm_close(tdmi_comm *comm)
{
    if (!comm)
        return;
    if (comm->has_thread)
        stop_thread(comm);
    if (comm->transport)
        comm->table->close(comm->transport);
    free_jobs(comm->jobs);
    free_jobs(comm->spare);
    tdmi_free(comm->messages);
    tdmi_free(comm->heard);
    tdmi_sum_plan_release(&comm->plan);
    pthread_cond_destroy(&comm->has_changed);
    pthread_mutex_destroy(&comm->lock);
    tdmi_free(comm);
}

void tdmi_comm_may_spin(tdmi_comm *comm, bool may_spin)
{
    pthread_mutex_lock(&comm->lock);
    comm->may_spin = may_spin;
    pthread_mutex_unlock(&comm->lock);
}

void tdmi_comm_note(tdmi_comm *comm, const char *phase, int64_t step)
{
    pthread_mutex_lock(&comm->lock);
    comm->noted_ns = tdmi_clock_ns();
    if (phase)
        snprintf(comm->phase, sizeof comm->phase, "%s", phase);
    if (step > 0)
        snprintf(comm->words, sizeof comm->words, "%s, step %lld", comm->phase, (long long)step);
    else
        snprintf(comm->words, sizeof comm->words, "%s", comm->phase);
    pthread_mutex_unlock(&comm->lock);
}

void tdmi_comm_heartbeat(tdmi_comm *comm, int rank, struct tdmi_heartbeat *heartbeat)
{
    pthread_mutex_lock(&comm->lock);
    const struct tdmi_comm_heard *heard = &comm->heard[rank];
    *heartbeat = (struct tdmi_heartbeat){
        .host = comm->table->host_of(comm->transport, rank),
        .silent_seconds = heard->ns > 0 ? tdmi_clock_seconds_since(heard->ns) : 0.0};
    memcpy(heartbeat->at, heard->at, sizeof heartbeat->at);
    pthread_mutex_unlock(&comm->lock);
}

int64_t tdmi_comm_looks(tdmi_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    const int64_t n = comm->n_looks;
    pthread_mutex_unlock(&comm->lock);
    return n;
}

tdm_status tdmi_comm_check(tdmi_comm *comm, tdm_error *err)
{
    pthread_mutex_lock(&comm->lock);
    if (is_over(comm->asked_ns, asking_seconds))
        comm->needs_all_ns = tdmi_clock_ns();
    comm->asked_ns = tdmi_clock_ns();
    const tdm_status status = report_failure(comm, err);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

double tdmi_comm_waited_seconds(tdmi_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    const int64_t waited_ns = comm->waited_ns;
    pthread_mutex_unlock(&comm->lock);
    return (double)waited_ns / (double)ns_per_second;
}

bool tdmi_comm_is_asked_to_stop(tdmi_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    const bool is = comm->is_asked_to_stop;
    pthread_mutex_unlock(&comm->lock);
    return is;
}

int tdmi_comm_rank(const tdmi_comm *comm)
{
    return comm->launch.rank;
}

int tdmi_comm_world(const tdmi_comm *comm)
{
    return comm->launch.world;
}

void tdmi_comm_abort(tdmi_comm *comm, tdm_status status, const tdm_error *why)
{
    char words[TDMI_ABORT_BYTES];
    if (!comm || !comm->table || !comm->has_thread)
        return;
    stop_thread(comm); /* the calls are this thread's now */
    look_at_ranks(comm);
    tdmi_transport_abort_words(status, why, words);
    comm->table->abandon(comm->transport, words, comm->failure.code == TDM_OK);
}

int tdmi_comm_failed_rank(const tdmi_comm *comm)
{
    const int rank = comm->table ? comm->table->ended_by(comm->transport) : -1;
    return rank < 0 ? comm->launch.rank : rank;
}

/* ---- sums ------------------------------------------------------------------------------------ */

tdm_status tdmi_comm_divide(tdmi_comm *comm, int n_groups, tdm_error *err)
{
    if (!comm->table || comm->plan.n_groups == n_groups)
        return TDM_OK;
    return TDM_WRAP(err, tdmi_sum_plan_make(&comm->plan, comm->launch.world, n_groups, err),
                    "dividing %d groups among %d ranks", n_groups, comm->launch.world);
}

static tdm_status begin_sum(tdmi_comm *comm, struct tdmi_comm_job *job, float *const *roots,
                            tdm_error *err)
{
    if (!comm->table || job->sum.range.n == 0)
        return TDM_OK;
    tdmi_sum_set_roots(comm, &job->sum, roots);
    job->sum.room = comm->plan.room;
    job->sum.chunk_values = TDMI_SUM_CHUNK;
    return tdmi_comm_begin(comm, job, err);
}

tdm_status tdmi_comm_sum(tdmi_comm *comm, float *const *roots, float *total, int64_t first,
                         int64_t n, tdm_error *err)
{
    struct tdmi_comm_job job = {.run =
                                    comm->plan.n_levels > 0 ? tdmi_sum_run_halving : tdmi_sum_run,
                                .sum = {.total = total, .range = {first, n}}};
    return begin_sum(comm, &job, roots, err);
}

tdm_status tdmi_comm_sum_rounded(tdmi_comm *comm, float *const *roots, float *total, int64_t first,
                                 int64_t n, tdm_error *err)
{
    struct tdmi_comm_job job = {.run = tdmi_sum_run_rounded,
                                .sum = {.total = total, .range = {first, n}}};
    return begin_sum(comm, &job, roots, err);
}
