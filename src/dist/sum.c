/*
 * The exact sum: every rank owns a slice of the values, gets the parts of all subtrees in it, adds
 * them in the tree's order and sends the sum to the others. A slice is cut into chunks, and two are
 * on their way at a time:
 *
 *     chunk 0   [to owners][add][to all ]
 *     chunk 1              [to owners   ][add][to all ]
 *     chunk 2                            [to owners   ] …
 *
 * A rank receives a chunk of the sum only after it has sent its own part of it, so the sum may go
 * to where the part was.
 *
 * The rounded sum takes the same way with half the bytes: a rank adds its subtrees to one part, and
 * bf16 travels. Owners add in f32, and keep the sum as rounded as they send it, so that all ranks
 * have the same bits.
 */
#include "base/scope.h"
#include "base/system/multiversion.h"
#include "dist/comm_internal.h"
#include "dist/cut.h"
#include "tensor/half.h"

enum { vector_values = 16 };

/* ---- the plan -------------------------------------------------------------------------------- */

void tdmi_sum_plan_release(struct tdmi_sum_plan *plan)
{
    tdmi_free(plan->firsts);
    tdmi_free(plan->roots_of);
    tdmi_free(plan->root_firsts);
    tdmi_free(plan->parts);
    tdmi_free(plan->additions);
    tdmi_free(plan->room);
    tdmi_free(plan->messages);
    *plan = (struct tdmi_sum_plan){0};
}

static int most_of_a_rank(const struct tdmi_sum_plan *plan, int world)
{
    int most = 0;
    for (int r = 0; r < world; r++) {
        const int n = plan->roots_of[r + 1] - plan->roots_of[r];
        most = n > most ? n : most;
    }
    return most;
}

static tdm_status reserve(struct tdmi_sum_plan *plan, int world, int n_roots, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(plan->root_firsts, n_roots, err));
    TDMI_TRY(TDMI_NEW(plan->parts, n_roots + 1, err));
    TDMI_TRY(TDMI_NEW(plan->additions, n_roots, err));
    const int n_blocks = n_roots > world ? n_roots : world;
    plan->room = tdmi_alloc_aligned(sizeof(float) * 2 * TDMI_SUM_CHUNK * (size_t)n_blocks);
    TDMI_CHECK_MEMORY(plan->room, err);
    const int most = most_of_a_rank(plan, world), others = n_roots + 2;
    plan->most_messages = (world - 1) * most > 2 * world ? (world - 1) * most : 2 * world;
    plan->most_messages += others;
    return TDMI_NEW(plan->messages, 4 * (size_t)plan->most_messages, err);
}

tdm_status tdmi_sum_plan_make(struct tdmi_sum_plan *plan, int world, int n_groups, tdm_error *err)
{
    int roots[TDMI_TREE_ROOTS];
    tdmi_sum_plan_release(plan);
    TDMI_TRY(TDMI_NEW(plan->firsts, world + 1, err));
    TDMI_TRY(TDMI_NEW(plan->roots_of, world + 1, err));
    TDMI_TRY(tdmi_cut_make(n_groups, world, plan->firsts, err));
    for (int r = 0; r < world; r++)
        plan->roots_of[r + 1] =
            plan->roots_of[r] +
            tdmi_tree_roots(plan->firsts[r], plan->firsts[r + 1], n_groups, roots);
    plan->n_roots = plan->roots_of[world];
    TDMI_TRY(reserve(plan, world, plan->n_roots, err));
    for (int r = 0; r < world; r++) {
        const int n = tdmi_tree_roots(plan->firsts[r], plan->firsts[r + 1], n_groups, roots);
        for (int i = 0; i < n; i++)
            plan->root_firsts[plan->roots_of[r] + i] = roots[i];
    }
    for (int i = 0; i < plan->n_roots; i++)
        plan->parts[i].first = plan->root_firsts[i];
    plan->n_additions =
        tdmi_tree_plan(plan->parts, plan->n_roots, n_groups, n_groups, plan->additions);
    if (plan->n_additions > 0) /* the sum goes to one more part */
        plan->additions[plan->n_additions - 1].to = plan->n_roots;
    plan->n_groups = n_groups;
    plan->n_levels = tdmi_sum_levels(plan, world);
    return TDM_OK;
}

/* ---- a sum ----------------------------------------------------------------------------------- */

struct tdmi_range tdmi_sum_chunk(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                                 int rank, int64_t c)
{
    const int world = comm->launch.world;
    const int64_t n = arrays->range.n, all = (n + vector_values - 1) / vector_values,
                  first = all * rank / world, end = all * (rank + 1) / world;
    const int64_t from = first * vector_values + c * arrays->chunk_values;
    int64_t until = end * vector_values < n ? end * vector_values : n;
    until = from + arrays->chunk_values < until ? from + arrays->chunk_values : until;
    return (struct tdmi_range){arrays->range.first + from, until > from ? until - from : 0};
}

int64_t tdmi_sum_chunks(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays)
{
    const int world = comm->launch.world;
    const int64_t all = (arrays->range.n + vector_values - 1) / vector_values,
                  longest = (all + world - 1) / world * vector_values;
    return (longest + arrays->chunk_values - 1) / arrays->chunk_values;
}

static int roots_of_rank(const tdmi_comm *comm, int rank)
{
    return comm->plan.roots_of[rank + 1] - comm->plan.roots_of[rank];
}

void tdmi_sum_set_roots(const tdmi_comm *comm, struct tdmi_sum_arrays *arrays, float *const *roots)
{
    arrays->n_roots = roots_of_rank(comm, comm->launch.rank);
    for (int i = 0; i < arrays->n_roots; i++)
        arrays->roots[i] = roots[i];
}

float *tdmi_sum_part(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays, int64_t c,
                     int root)
{
    const int own = root - comm->plan.roots_of[comm->launch.rank];
    const int64_t first = tdmi_sum_chunk(comm, arrays, comm->launch.rank, c).first;
    if (arrays->n_roots == 0 && root == 0)
        return arrays->total + first;
    if (own >= 0 && own < arrays->n_roots)
        return arrays->roots[own] + first;
    const int64_t room = c % 2 * comm->plan.n_roots + root;
    return arrays->room + room * arrays->chunk_values;
}

tdm_status tdmi_sum_exchange_parts(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                                   int64_t c, tdmi_sum_start *start, void *self, tdm_error *err)
{
    const int rank = comm->launch.rank, world = comm->launch.world;
    const int64_t n = tdmi_sum_chunk(comm, arrays, rank, c).n;
    for (int step = 1; step < world; step++) { /* not all to rank 0 first */
        const int to = (rank + step) % world, from = (rank + world - step) % world;
        const struct tdmi_range theirs = tdmi_sum_chunk(comm, arrays, to, c);
        for (int i = 0; i < arrays->n_roots; i++)
            TDMI_TRY(start(self, true, to, arrays->roots[i] + theirs.first, theirs.n, err));
        for (int i = comm->plan.roots_of[from]; i < comm->plan.roots_of[from + 1]; i++)
            TDMI_TRY(start(self, false, from, tdmi_sum_part(comm, arrays, c, i), n, err));
    }
    return TDM_OK;
}

tdm_status tdmi_sum_exchange_sums(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                                  int64_t c, tdmi_sum_start *start, void *self, tdm_error *err)
{
    const int rank = comm->launch.rank, world = comm->launch.world;
    const struct tdmi_range mine = tdmi_sum_chunk(comm, arrays, rank, c);
    for (int step = 1; step < world; step++) {
        const int to = (rank + step) % world, from = (rank + world - step) % world;
        const struct tdmi_range theirs = tdmi_sum_chunk(comm, arrays, from, c);
        TDMI_TRY(start(self, true, to, arrays->total + mine.first, mine.n, err));
        TDMI_TRY(start(self, false, from, arrays->total + theirs.first, theirs.n, err));
    }
    return TDM_OK;
}

/* ---- between arrays of the host -------------------------------------------------------------- */

tdm_status tdmi_message_start(void *self, bool is_sent, int peer, void *values, int64_t n,
                              tdm_error *err)
{
    struct tdmi_message_set *set = self;
    const tdmi_comm *comm = set->comm;
    struct tdmi_message *message = &set->messages[set->n++];
    *message = (struct tdmi_message){
        .peer = peer, .channel = set->channel, .bytes = values, .n = (size_t)n * set->value_bytes};
    return is_sent ? comm->table->send(comm->transport, message, err)
                   : comm->table->receive(comm->transport, message, err);
}

static void add_parts(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays, int64_t c)
{
    const struct tdmi_sum_plan *plan = &comm->plan;
    const struct tdmi_range mine = tdmi_sum_chunk(comm, arrays, comm->launch.rank, c);
    float *total = arrays->total + mine.first;
    for (int i = 0; i < plan->n_roots; i++)
        plan->parts[i].values = tdmi_sum_part(comm, arrays, c, i);
    plan->parts[plan->n_roots].values = total;
    tdmi_tree_sum(plan->parts, plan->additions, plan->n_additions, 0, mine.n);
    if (plan->n_additions == 0 && total != plan->parts[0].values)
        memcpy(total, plan->parts[0].values, sizeof *total * (size_t)mine.n);
}

static tdm_status wait_for(tdmi_comm *comm, const struct tdmi_message_set *a,
                           const struct tdmi_message_set *b, tdm_error *err)
{
    struct tdmi_message *const sets[] = {a->messages, b->messages};
    return tdmi_comm_wait(comm, sets, (const int[]){a->n, b->n}, 2, "the sum of gradients", err);
}

/* The four sets of a plan. */
static void clear_sets(tdmi_comm *comm, struct tdmi_message_set parts[2],
                       struct tdmi_message_set sums[2], size_t value_bytes)
{
    const struct tdmi_sum_plan *plan = &comm->plan;
    for (int i = 0; i < 2; i++) {
        parts[i] = (struct tdmi_message_set){comm, plan->messages + i * plan->most_messages, 0,
                                             TDMI_TO_SUM, value_bytes};
        sums[i] = (struct tdmi_message_set){comm, plan->messages + (2 + i) * plan->most_messages, 0,
                                            TDMI_SUMMED, value_bytes};
    }
}

tdm_status tdmi_sum_run(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    const struct tdmi_sum_arrays *arrays = &job->sum;
    const int64_t n = tdmi_sum_chunks(comm, arrays);
    struct tdmi_message_set parts[2], sums[2];
    clear_sets(comm, parts, sums, sizeof(float));
    for (int64_t c = 0; c <= n; c++) {
        struct tdmi_message_set *now = &parts[c % 2], *before = &parts[(c + 1) % 2];
        struct tdmi_message_set *summed = &sums[(c + 1) % 2];
        now->n = 0;
        if (c < n)
            TDMI_TRY(tdmi_sum_exchange_parts(comm, arrays, c, tdmi_message_start, now, err));
        if (c == 0)
            continue;
        /* The sums of two chunks before are at home, so that their messages are free. */
        TDMI_TRY(wait_for(comm, before, summed, err));
        if (comm->lane && c == 1)
            tdmi_comm_trace_first(comm);
        add_parts(comm, arrays, c - 1);
        summed->n = 0;
        TDMI_TRY(tdmi_sum_exchange_sums(comm, arrays, c - 1, tdmi_message_start, summed, err));
    }
    return wait_for(comm, &sums[0], &sums[1], err);
}

/* ---- a rounded sum --------------------------------------------------------------------------- */

TDMI_MULTIVERSION
static void round_values(uint16_t *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = tdmi_bf16_of_float(from[i]);
}

/* The values become what is sent of them. */
TDMI_MULTIVERSION
static void round_both(uint16_t *restrict to, float *restrict values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = tdmi_bf16_of_float(values[i]);
        values[i] = tdmi_float_of_bf16(to[i]);
    }
}

TDMI_MULTIVERSION
static void widen(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = tdmi_float_of_bf16(from[i]);
}

TDMI_MULTIVERSION
static void add_rounded(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += tdmi_float_of_bf16(from[i]);
}

TDMI_MULTIVERSION
static void add(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* Blocks of a chunk in the plan's room: parts that are received; parts that are sent, and then
 * sums. */
enum block { RECEIVED, SENT };

static uint16_t *block_of(const tdmi_comm *comm, int64_t c, enum block block, int rank)
{
    uint16_t *room = comm->plan.room;
    return room + ((c % 2 * 2 + (int64_t)block) * comm->launch.world + rank) * TDMI_SUM_CHUNK;
}

/* Values [first, first + n) of this rank's subtrees, added to total, which may be the first one. */
static void add_roots(const struct tdmi_sum_arrays *arrays, float *total, int64_t first, int64_t n)
{
    if (total != arrays->roots[0] + first)
        memcpy(total, arrays->roots[0] + first, sizeof *total * (size_t)n);
    for (int i = 1; i < arrays->n_roots; i++)
        add(total, arrays->roots[i] + first, n);
}

static void round_part(const struct tdmi_sum_arrays *arrays, uint16_t *to, struct tdmi_range range)
{
    enum { block_values = 2048 };
    float sums[block_values];
    const bool has_one = arrays->n_roots == 1;
    for (int64_t at = 0; at < range.n; at += block_values) {
        const int64_t left = range.n - at, n = left < block_values ? left : block_values;
        const int64_t first = range.first + at;
        if (!has_one)
            add_roots(arrays, sums, first, n);
        round_values(to + at, has_one ? arrays->roots[0] + first : sums, n);
    }
}

static tdm_status exchange_rounded_parts(tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                                         int64_t c, struct tdmi_message_set *set, tdm_error *err)
{
    const int rank = comm->launch.rank, world = comm->launch.world;
    const struct tdmi_range mine = tdmi_sum_chunk(comm, arrays, rank, c);
    set->n = 0;
    for (int step = 1; step < world; step++) {
        const int to = (rank + step) % world, from = (rank + world - step) % world;
        const struct tdmi_range theirs = tdmi_sum_chunk(comm, arrays, to, c);
        uint16_t *part = block_of(comm, c, SENT, to);
        if (arrays->n_roots > 0) {
            round_part(arrays, part, theirs);
            TDMI_TRY(tdmi_message_start(set, true, to, part, theirs.n, err));
        }
        if (roots_of_rank(comm, from) > 0)
            TDMI_TRY(tdmi_message_start(set, false, from, block_of(comm, c, RECEIVED, from), mine.n,
                                        err));
    }
    return TDM_OK;
}

/* The own part first, then those of the others in their order. */
static void add_rounded_parts(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                              int64_t c)
{
    const int rank = comm->launch.rank, world = comm->launch.world;
    const struct tdmi_range mine = tdmi_sum_chunk(comm, arrays, rank, c);
    float *total = arrays->total + mine.first;
    uint16_t *rounded = block_of(comm, c, SENT, rank);
    bool has_any = arrays->n_roots > 0;
    if (has_any)
        add_roots(arrays, total, mine.first, mine.n);
    for (int r = 0; r < world; r++) {
        if (r == rank || roots_of_rank(comm, r) == 0)
            continue;
        (has_any ? add_rounded : widen)(total, block_of(comm, c, RECEIVED, r), mine.n);
        has_any = true;
    }
    round_both(rounded, total, mine.n);
}

static tdm_status exchange_rounded_sums(tdmi_comm *comm, const struct tdmi_sum_arrays *arrays,
                                        int64_t c, struct tdmi_message_set *set, tdm_error *err)
{
    const int rank = comm->launch.rank, world = comm->launch.world;
    const struct tdmi_range mine = tdmi_sum_chunk(comm, arrays, rank, c);
    set->n = 0;
    for (int step = 1; step < world; step++) {
        const int to = (rank + step) % world, from = (rank + world - step) % world;
        const struct tdmi_range theirs = tdmi_sum_chunk(comm, arrays, from, c);
        TDMI_TRY(tdmi_message_start(set, true, to, block_of(comm, c, SENT, rank), mine.n, err));
        TDMI_TRY(
            tdmi_message_start(set, false, from, block_of(comm, c, SENT, from), theirs.n, err));
    }
    return TDM_OK;
}

static void widen_sums(const tdmi_comm *comm, const struct tdmi_sum_arrays *arrays, int64_t c)
{
    for (int r = 0; r < comm->launch.world; r++) {
        const struct tdmi_range theirs = tdmi_sum_chunk(comm, arrays, r, c);
        if (r != comm->launch.rank)
            widen(arrays->total + theirs.first, block_of(comm, c, SENT, r), theirs.n);
    }
}

tdm_status tdmi_sum_run_rounded(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    const struct tdmi_sum_arrays *arrays = &job->sum;
    const int64_t n = tdmi_sum_chunks(comm, arrays);
    struct tdmi_message_set parts[2], sums[2];
    clear_sets(comm, parts, sums, sizeof(uint16_t));
    for (int64_t c = 0; c < n + 2; c++) {
        if (c >= 2) { /* its blocks are free for chunk c then */
            TDMI_TRY(wait_for(comm, &sums[c % 2], &(struct tdmi_message_set){0}, err));
            widen_sums(comm, arrays, c - 2);
        }
        if (c < n)
            TDMI_TRY(exchange_rounded_parts(comm, arrays, c, &parts[c % 2], err));
        if (c == 0 || c > n)
            continue;
        TDMI_TRY(wait_for(comm, &parts[(c + 1) % 2], &(struct tdmi_message_set){0}, err));
        if (comm->lane && c == 1)
            tdmi_comm_trace_first(comm);
        add_rounded_parts(comm, arrays, c - 1);
        TDMI_TRY(exchange_rounded_sums(comm, arrays, c - 1, &sums[(c + 1) % 2], err));
    }
    return TDM_OK;
}
