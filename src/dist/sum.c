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
 */
#include "base/scope.h"
#include "dist/comm_internal.h"
#include "dist/cut.h"

/* Values of a chunk: large enough that a message's fixed cost is small, small enough that parts are
 * in the caches when they are added. */
enum { chunk_values = 64 * 1024, vector_values = 16 };

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
    plan->room = tdmi_alloc_aligned(sizeof(float) * 2 * chunk_values * (size_t)n_roots);
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
    return TDM_OK;
}

/* ---- a sum ----------------------------------------------------------------------------------- */

struct range {
    int64_t first, n;
};

/* Chunk c of rank r's slice of n values. */
static struct range chunk_of(int64_t n, int world, int r, int64_t c)
{
    const int64_t all = (n + vector_values - 1) / vector_values, first = all * r / world,
                  end = all * (r + 1) / world;
    const int64_t from = first * vector_values + c * chunk_values;
    int64_t until = end * vector_values < n ? end * vector_values : n;
    until = from + chunk_values < until ? from + chunk_values : until;
    return (struct range){from, until > from ? until - from : 0};
}

static int64_t chunks_of(int64_t n, int world)
{
    const int64_t all = (n + vector_values - 1) / vector_values,
                  longest = (all + world - 1) / world * vector_values;
    return (longest + chunk_values - 1) / chunk_values;
}

/* Messages that were started together. */
struct set {
    struct tdmi_message *messages;
    int n;
};

static tdm_status start(tdmi_comm *comm, struct set *set, bool is_sent, int peer, int channel,
                        float *values, int64_t n, tdm_error *err)
{
    struct tdmi_message *message = &set->messages[set->n++];
    *message = (struct tdmi_message){
        .peer = peer, .channel = channel, .bytes = values, .n = (size_t)n * sizeof *values};
    return is_sent ? comm->table->send(comm->transport, message, err)
                   : comm->table->receive(comm->transport, message, err);
}

/* Where the part of another rank's root is received. */
static float *room_of(const struct tdmi_sum_plan *plan, int64_t c, int root)
{
    return plan->room + ((size_t)(c % 2) * (size_t)plan->n_roots + (size_t)root) * chunk_values;
}

/* Own parts to the owners, and those of the others for the own slice. */
static tdm_status exchange_parts(tdmi_comm *comm, const struct tdmi_comm_job *job, int64_t c,
                                 struct set *set, tdm_error *err)
{
    const struct tdmi_sum_plan *plan = &comm->plan;
    const int rank = comm->launch.rank, world = comm->launch.world;
    const int n_own = plan->roots_of[rank + 1] - plan->roots_of[rank];
    const struct range mine = chunk_of(job->n_values, world, rank, c);
    set->n = 0;
    for (int step = 1; step < world; step++) { /* not all to rank 0 first */
        const int to = (rank + step) % world, from = (rank + world - step) % world;
        const struct range theirs = chunk_of(job->n_values, world, to, c);
        for (int i = 0; i < n_own; i++)
            TDMI_TRY(start(comm, set, true, to, TDMI_TO_SUM,
                           job->roots[i] + job->first + theirs.first, theirs.n, err));
        for (int i = plan->roots_of[from]; i < plan->roots_of[from + 1]; i++)
            TDMI_TRY(start(comm, set, false, from, TDMI_TO_SUM, room_of(plan, c, i), mine.n, err));
    }
    return TDM_OK;
}

static void add_parts(const tdmi_comm *comm, const struct tdmi_comm_job *job, int64_t c)
{
    const struct tdmi_sum_plan *plan = &comm->plan;
    const int rank = comm->launch.rank;
    const struct range mine = chunk_of(job->n_values, comm->launch.world, rank, c);
    float *total = job->total + job->first + mine.first;
    for (int i = 0; i < plan->n_roots; i++) {
        const int own = i - plan->roots_of[rank];
        plan->parts[i].values = own >= 0 && i < plan->roots_of[rank + 1]
                                    ? job->roots[own] + job->first + mine.first
                                    : room_of(plan, c, i);
    }
    plan->parts[plan->n_roots].values = total;
    tdmi_tree_sum(plan->parts, plan->additions, plan->n_additions, 0, mine.n);
    if (plan->n_additions == 0 && total != plan->parts[0].values)
        memcpy(total, plan->parts[0].values, sizeof *total * (size_t)mine.n);
}

static tdm_status exchange_sums(tdmi_comm *comm, const struct tdmi_comm_job *job, int64_t c,
                                struct set *set, tdm_error *err)
{
    const int rank = comm->launch.rank, world = comm->launch.world;
    float *total = job->total + job->first;
    const struct range mine = chunk_of(job->n_values, world, rank, c);
    set->n = 0;
    for (int step = 1; step < world; step++) {
        const int to = (rank + step) % world, from = (rank + world - step) % world;
        const struct range theirs = chunk_of(job->n_values, world, from, c);
        TDMI_TRY(start(comm, set, true, to, TDMI_SUMMED, total + mine.first, mine.n, err));
        TDMI_TRY(start(comm, set, false, from, TDMI_SUMMED, total + theirs.first, theirs.n, err));
    }
    return TDM_OK;
}

static tdm_status wait_for(tdmi_comm *comm, const struct set *a, const struct set *b,
                           tdm_error *err)
{
    struct tdmi_message *const sets[] = {a->messages, b->messages};
    return tdmi_comm_wait(comm, sets, (const int[]){a->n, b->n}, 2, "the sum of gradients", err);
}

tdm_status tdmi_sum_run(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    const int64_t n = chunks_of(job->n_values, comm->launch.world);
    struct set parts[2], sums[2];
    for (int i = 0; i < 2; i++) {
        parts[i] = (struct set){comm->plan.messages + i * comm->plan.most_messages, 0};
        sums[i] = (struct set){comm->plan.messages + (2 + i) * comm->plan.most_messages, 0};
    }
    for (int64_t c = 0; c <= n; c++) {
        struct set *now = &parts[c % 2], *before = &parts[(c + 1) % 2];
        if (c < n)
            TDMI_TRY(exchange_parts(comm, job, c, now, err));
        if (c == 0)
            continue;
        /* The sums of two chunks before are at home, so that their messages are free. */
        TDMI_TRY(wait_for(comm, before, &sums[(c + 1) % 2], err));
        if (comm->lane && c == 1)
            tdmi_comm_trace_first(comm);
        add_parts(comm, job, c - 1);
        TDMI_TRY(exchange_sums(comm, job, c - 1, &sums[(c + 1) % 2], err));
    }
    return wait_for(comm, &sums[0], &sums[1], err);
}
