/*
 * The exact sum where ranks are a power of two, with one subtree each, and neighbours' subtrees
 * form the next one. Two ranks exchange halves of their parts and each adds one half; then pairs of
 * pairs do the same with what they have. Afterwards the halves are sent back in the opposite order.
 *
 *     quarters of       rank 0     rank 1     rank 2     rank 3
 *     own parts         0 1 2 3    0 1 2 3    0 1 2 3    0 1 2 3
 *     sums of two       0 1        2 3        0 1        2 3        half went to the neighbour
 *     sums of four      0          2          1          3          a quarter, to the rank two away
 *
 * The bytes are those of the owner exchange in fewer messages, and most of them go to neighbours,
 * which are on the same host. Several chunks are on their way, each one phase behind the last.
 */
#include "dist/comm_internal.h"

/* So many chunks are on their way at a time. */
enum { halved_values = 128 * 1024, vector_values = 16, n_open = 4 };

/* The plan's room has two chunks of a slice for each of at least four ranks. */
_Static_assert(n_open *halved_values <= 2 * 4 * TDMI_SUM_CHUNK, "open chunks fit into the room");

/* An open chunk. Phases below n_levels halve, the others bring the halves back. */
struct halving {
    int64_t chunk;
    int phase;
    struct tdmi_message_set set;
};

int tdmi_sum_levels(const struct tdmi_sum_plan *plan, int world)
{
    int n_levels = 0;
    if (world < 4 || plan->n_roots != world)
        return 0;
    for (int r = 0; r < world; r++)
        if (plan->roots_of[r] != r)
            return 0;
    for (int span = 2; span / 2 < world; span *= 2, n_levels++)
        for (int r = 0; r < world; r += span)
            if (r + span > world ||
                !tdmi_tree_is_subtree(plan->firsts[r], plan->firsts[r + span], plan->n_groups))
                return 0;
    return n_levels;
}

/* The values of a chunk that a rank has the sum of after so many halvings. */
static struct tdmi_range held_by(int rank, int n_halvings, struct tdmi_range range)
{
    for (int l = 0; l < n_halvings; l++) {
        const int64_t vectors = (range.n + vector_values - 1) / vector_values,
                      rounded = (vectors + 1) / 2 * vector_values,
                      low = rounded < range.n ? rounded : range.n;
        range = rank >> l & 1 ? (struct tdmi_range){range.first + low, range.n - low}
                              : (struct tdmi_range){range.first, low};
    }
    return range;
}

static struct tdmi_range range_of(const struct tdmi_sum_arrays *arrays, const struct halving *it)
{
    const int64_t first = it->chunk * halved_values, left = arrays->range.n - first;
    return (struct tdmi_range){arrays->range.first + first,
                               left < halved_values ? left : halved_values};
}

static float *room_of(const tdmi_comm *comm, const struct halving *it)
{
    return (float *)comm->plan.room + it->chunk % n_open * halved_values;
}

/* Where the values that this rank halves lie. */
static float *part_of(const struct tdmi_sum_arrays *arrays, const struct halving *it)
{
    return it->phase == 0 ? arrays->roots[0] : arrays->total;
}

static tdm_status begin_phase(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                              struct halving *it, tdm_error *err)
{
    const int n_levels = comm->plan.n_levels, rank = comm->launch.rank;
    const bool halves = it->phase < n_levels;
    const int level = halves ? it->phase : 2 * n_levels - 1 - it->phase;
    const int peer = rank ^ 1 << level;
    const struct tdmi_range range = range_of(arrays, it), mine = held_by(rank, level + 1, range),
                            theirs = held_by(peer, level + 1, range);
    struct tdmi_message_set *set = &it->set;
    set->n = 0;
    set->channel = halves ? TDMI_TO_SUM : TDMI_SUMMED;
    if (halves) {
        float *part = part_of(arrays, it) + theirs.first;
        TDMI_TRY(tdmi_message_start(set, true, peer, part, theirs.n, err));
        return tdmi_message_start(set, false, peer, room_of(comm, it), mine.n, err);
    }
    TDMI_TRY(tdmi_message_start(set, true, peer, arrays->total + mine.first, mine.n, err));
    return tdmi_message_start(set, false, peer, arrays->total + theirs.first, theirs.n, err);
}

/* Which of the two is on the left in the tree does not matter: a + b and b + a are the same bits.
 */
static tdm_status end_phase(tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                            struct halving *it, tdm_error *err)
{
    const struct tdmi_message_set *set = &it->set;
    TDMI_TRY(tdmi_comm_wait(comm, &set->messages, &set->n, 1, "the sum of gradients", err));
    if (it->phase < comm->plan.n_levels) {
        const struct tdmi_range mine =
            held_by(comm->launch.rank, it->phase + 1, range_of(arrays, it));
        const struct tdmi_tree_part parts[] = {{0, part_of(arrays, it) + mine.first},
                                               {1, room_of(comm, it)},
                                               {2, arrays->total + mine.first}};
        tdmi_tree_sum(parts, &(struct tdmi_tree_addition){2, 0, 1}, 1, 0, mine.n);
    }
    it->phase++;
    if (comm->lane && it->chunk == 0 && it->phase == comm->plan.n_levels)
        tdmi_comm_trace_first(comm);
    return TDM_OK;
}

tdm_status tdmi_sum_run_halving(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    const struct tdmi_sum_arrays *arrays = &job->sum;
    const int64_t n = (arrays->range.n + halved_values - 1) / halved_values;
    struct halving open[n_open];
    for (int64_t begun = 0, done = 0; done < n;) {
        if (begun < n && begun < done + n_open) {
            const int64_t at = begun % n_open;
            open[at] = (struct halving){.chunk = begun++};
            open[at].set.comm = comm;
            open[at].set.messages = comm->plan.messages + 2 * at;
            open[at].set.value_bytes = sizeof(float);
            TDMI_TRY(begin_phase(comm, arrays, &open[at], err));
        }
        for (int64_t c = done; c < begun; c++) {
            struct halving *it = &open[c % n_open];
            TDMI_TRY(end_phase(comm, arrays, it, err));
            if (it->phase == 2 * comm->plan.n_levels)
                done++;
            else
                TDMI_TRY(begin_phase(comm, arrays, it, err));
        }
    }
    return TDM_OK;
}
