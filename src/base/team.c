/* A barrier that spins for a moment before it sleeps, and shares. */
#include "base/team.h"
#include "base/clock.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>

/* Members of a team arrive nearly together; one that is later than this has lost its CPU. */
enum { spin_ns = 100000, pauses_a_look = 16 };

struct tdmi_team {
    int size;
    bool may_spin;
    atomic_int n_arrived;
    _Atomic uint64_t region; /* its number; changed under the lock, because others may sleep */
    pthread_mutex_t lock;
    pthread_cond_t has_changed;
    int n_asleep;

    struct tdmi_team_log *log;
    /* Where it is measured: the member at work, since when, and of the region: the largest share,
     * all its members' time, and that of the slowest. */
    int at_work;
    int64_t since_ns, clock_ns; /* clock_ns: what reading the clock takes */
    double share, small_share, seconds, longest;
};

tdm_status tdmi_team_new(tdmi_team **team, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(*team, 1, err));
    pthread_mutex_init(&(*team)->lock, NULL); /* with default attributes these cannot fail */
    pthread_cond_init(&(*team)->has_changed, NULL);
    return TDM_OK;
}

void tdmi_team_free(tdmi_team *team)
{
    if (!team)
        return;
    pthread_cond_destroy(&team->has_changed);
    pthread_mutex_destroy(&team->lock);
    tdmi_free(team);
}

/* The least of some. */
static int64_t time_of_clock(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 16; i++) {
        const int64_t begin = tdmi_clock_thread_ns(), ns = tdmi_clock_thread_ns() - begin;
        least = ns < least ? ns : least;
    }
    return least;
}

void tdmi_team_form(tdmi_team *team, int size, bool may_spin, struct tdmi_team_log *log)
{
    team->size = size;
    team->may_spin = may_spin;
    team->log = log;
    team->at_work = 0;
    team->share = team->small_share = team->seconds = team->longest = 0.0;
    if (log)
        team->clock_ns = time_of_clock();
}

/* ---- measured: one member after the other --------------------------------------------------- */

static void wait_to_work(tdmi_team *team, int index)
{
    pthread_mutex_lock(&team->lock);
    while (team->at_work != index)
        pthread_cond_wait(&team->has_changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
    team->since_ns = tdmi_clock_thread_ns();
}

static void end_region(tdmi_team *team)
{
    struct tdmi_team_log *log = team->log;
    log->n_regions++;
    log->seconds += team->seconds;
    const double share = team->share > 0.0 ? team->share : team->small_share;
    log->predicted += team->seconds * (share > 0.0 ? share : 1.0);
    log->longest += team->longest;
    team->share = team->small_share = team->seconds = team->longest = 0.0;
}

void tdmi_team_log_alone(struct tdmi_team_log *log, int64_t begin_ns)
{
    const double seconds = 1e-9 * (double)(tdmi_clock_thread_ns() - begin_ns);
    log->n_regions++;
    log->seconds += seconds;
    log->predicted += seconds;
    log->longest += seconds;
}

/* All members of a region work before the first of the next does. */
static void hand_over(const struct tdmi_member *member)
{
    tdmi_team *team = member->team;
    const int64_t ns = tdmi_clock_thread_ns() - team->since_ns - team->clock_ns;
    const double seconds = ns > 0 ? 1e-9 * (double)ns : 0.0;
    team->seconds += seconds;
    team->longest = seconds > team->longest ? seconds : team->longest;
    if (member->index + 1 == member->size)
        end_region(team);
    pthread_mutex_lock(&team->lock);
    team->at_work = (member->index + 1) % member->size;
    pthread_cond_broadcast(&team->has_changed);
    pthread_mutex_unlock(&team->lock);
}

int tdmi_team_largest(int n_threads)
{
    return n_threads < TDMI_TEAM_MOST ? n_threads : TDMI_TEAM_MOST;
}

/* ---- shares and the barrier ----------------------------------------------------------------- */

struct tdmi_member tdmi_team_join(tdmi_team *team, int index)
{
    if (team->log)
        wait_to_work(team, index);
    return (struct tdmi_member){team, index, team->size};
}

void tdmi_team_leave(const struct tdmi_member *member)
{
    if (member->team->log)
        hand_over(member);
}

/* largest: of the region so far. */
static struct tdmi_share share_of(const struct tdmi_member *member, int64_t n, double *largest)
{
    const int64_t size = member->size;
    if (member->team->log && n > 0) {
        const double share = (double)((n + size - 1) / size) / (double)n;
        *largest = share > *largest ? share : *largest;
    }
    return (struct tdmi_share){n * member->index / size, n * (member->index + 1) / size};
}

struct tdmi_share tdmi_member_share(const struct tdmi_member *member, int64_t n)
{
    return member ? share_of(member, n, &member->team->share) : (struct tdmi_share){0, n};
}

struct tdmi_share tdmi_member_small_share(const struct tdmi_member *member, int64_t n)
{
    return member ? share_of(member, n, &member->team->small_share) : (struct tdmi_share){0, n};
}

static void spin(tdmi_team *team, uint64_t region)
{
    const int64_t begin = tdmi_clock_ns();
    do
        for (int i = 0; i < pauses_a_look; i++) {
            if (atomic_load_explicit(&team->region, memory_order_acquire) != region)
                return;
            tdmi_thread_pause();
        }
    while (tdmi_clock_ns() - begin < spin_ns);
}

static void await_others(tdmi_team *team, uint64_t region)
{
    if (team->may_spin)
        spin(team, region);
    if (atomic_load_explicit(&team->region, memory_order_acquire) != region)
        return;
    pthread_mutex_lock(&team->lock);
    team->n_asleep++;
    while (atomic_load_explicit(&team->region, memory_order_relaxed) == region)
        pthread_cond_wait(&team->has_changed, &team->lock);
    team->n_asleep--;
    pthread_mutex_unlock(&team->lock);
}

void tdmi_member_wait(const struct tdmi_member *member)
{
    if (!member)
        return;
    tdmi_team *team = member->team;
    if (team->log) {
        hand_over(member);
        wait_to_work(team, member->index);
        return;
    }
    const uint64_t region = atomic_load_explicit(&team->region, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->n_arrived, 1, memory_order_acq_rel) + 1 < team->size) {
        await_others(team, region);
        return;
    }
    atomic_store_explicit(&team->n_arrived, 0, memory_order_relaxed);
    pthread_mutex_lock(&team->lock);
    atomic_store_explicit(&team->region, region + 1, memory_order_release);
    if (team->n_asleep > 0)
        pthread_cond_broadcast(&team->has_changed);
    pthread_mutex_unlock(&team->lock);
}
