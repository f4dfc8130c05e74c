/*
 * The exact sum of peers is the owner exchange of sum.c: every rank owns a slice of the values,
 * gets the parts of all subtrees in it, adds them in the tree's order, and sends the sum to all.
 * Slices are cut into chunks, so that the memory for parts is small. All of it is queued on one
 * stream, which keeps the order.
 *
 * A rank that is lost leaves the others' devices waiting for ever. So the communicator adds a few
 * zeros over all ranks at the same time, at the first and the last sum of a step: it misses the
 * lost rank at once, and names it.
 */
#include "dist/device_sum.h"
#include "base/scope.h"
#include "dist/comm_internal.h"

#include <assert.h>

enum { chunk_values = 1 << 20, vector_values = 16 };

struct tdmi_device_sum {
    struct tdmi_device_sum_options of;
    int rank, world;
    /* Peers: a chunk of each subtree of the others, on the device. Host: pinned arrays of the
     * subtrees of this rank, of which the first gets the sum. */
    float **blocks;
    int n_blocks;
    /* peers */
    tdmi_stream *sums;
    tdmi_event *is_made;
    struct tdmi_peer_message *messages;
    int n_messages;
    float *zeros; /* host memory: zeros of each rank, and their sum */
    bool is_watched;
    /* host */
    float *total;  /* device memory */
    int64_t first; /* first value to be uploaded there; n_values: none */
};

/* The most subtrees of so many neighbouring groups. */
static int most_roots(int n_groups)
{
    int levels = 0;
    while (n_groups >> (levels + 1) > 0)
        levels++;
    return n_groups <= 2 ? n_groups : 2 * levels;
}

static tdm_status reserve_blocks(tdmi_device_sum *sum, int64_t n_values, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &sum->of.backend->memory;
    const size_t bytes = sizeof(float) * (size_t)n_values;
    TDMI_TRY(TDMI_NEW(sum->blocks, sum->n_blocks, err));
    for (int i = 0; i < sum->n_blocks; i++) {
        sum->blocks[i] = sum->of.peers          ? memory->alloc(sum->of.device, bytes)
                         : memory->alloc_pinned ? memory->alloc_pinned(sum->of.device, bytes)
                                                : tdmi_alloc_aligned(bytes);
        if (!sum->blocks[i])
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d blocks of %zu MiB of gradients",
                            sum->n_blocks, (bytes >> 20) + 1);
    }
    return TDM_OK;
}

static tdm_status reserve(tdmi_device_sum *sum, tdm_error *err)
{
    const struct tdmi_device_sum_options *of = &sum->of;
    const int roots = most_roots(of->max_groups), world = sum->world;
    const int64_t slice = of->n_values / world + 2 * vector_values; /* or less */
    sum->first = of->n_values;
    sum->n_blocks = of->peers ? (world - 1) * roots : roots;
    if (!of->peers)
        return reserve_blocks(sum, of->n_values, err);
    TDMI_TRY(of->backend->stream.open(of->device, &sum->sums, err));
    TDMI_TRY(of->backend->stream.event_open(of->device, &sum->is_made, err));
    TDMI_TRY(TDMI_NEW(sum->messages, 2 * world * (roots + 1), err));
    TDMI_TRY(TDMI_NEW(sum->zeros, 2 * vector_values * world, err));
    return reserve_blocks(sum, slice < chunk_values ? slice : chunk_values, err);
}

TDMI_POINTER_RELEASE(tdmi_device_sum, tdmi_device_sum_close)

tdm_status tdmi_device_sum_open(const struct tdmi_device_sum_options *options,
                                tdmi_device_sum **sum, tdm_error *err)
{
    TDMI_AT_END(tdmi_device_sum_close_at) tdmi_device_sum *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->of = *options;
    made->rank = tdmi_comm_rank(options->comm);
    made->world = tdmi_comm_world(options->comm);
    TDM_TRY(reserve(made, err), err, "preparing sums of %d ranks", made->world);
    *sum = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_device_sum_close(tdmi_device_sum *sum)
{
    if (!sum)
        return;
    const struct tdmi_backend *backend = sum->of.backend;
    if (sum->is_made)
        backend->stream.event_close(sum->is_made);
    if (sum->sums)
        backend->stream.close(sum->sums);
    for (int i = 0; sum->blocks && i < sum->n_blocks; i++) {
        if (sum->of.peers && sum->blocks[i])
            backend->memory.free(sum->of.device, sum->blocks[i]);
        else if (backend->memory.free_pinned && sum->blocks[i])
            backend->memory.free_pinned(sum->of.device, sum->blocks[i]);
        else
            tdmi_free(sum->blocks[i]);
    }
    tdmi_free(sum->blocks);
    tdmi_free(sum->messages);
    tdmi_free(sum->zeros);
    tdmi_free(sum);
}

static int roots_of(const tdmi_device_sum *sum, int rank)
{
    const int *roots = sum->of.comm->plan.roots_of;
    return roots[rank + 1] - roots[rank];
}

/* ---- exact, by peers ------------------------------------------------------------------------- */

/* Chunk c of rank r's slice. */
static struct tdmi_range chunk_of(const tdmi_device_sum *sum, struct tdmi_range whole, int r,
                                  int64_t c)
{
    const struct tdmi_range chunk = tdmi_sum_chunk(whole.n, sum->world, r, chunk_values, c);
    return (struct tdmi_range){whole.first + chunk.first, chunk.n};
}

static void add_message(tdmi_device_sum *sum, int rank, bool is_sent, float *values, int64_t n)
{
    if (n > 0)
        sum->messages[sum->n_messages++] = (struct tdmi_peer_message){rank, is_sent, values, n};
}

static tdm_status exchange(tdmi_device_sum *sum, tdm_error *err)
{
    const int n = sum->n_messages;
    sum->n_messages = 0;
    return n == 0
               ? TDM_OK
               : sum->of.backend->peers->exchange(sum->of.peers, sum->sums, sum->messages, n, err);
}

/* Parts of this rank's chunk, of all ranks' subtrees in their order; the others' are received. */
static tdm_status exchange_parts(tdmi_device_sum *sum, float *const *roots, struct tdmi_range whole,
                                 int64_t c, float **parts, tdm_error *err)
{
    const struct tdmi_range mine = chunk_of(sum, whole, sum->rank, c);
    float **block = sum->blocks;
    for (int r = 0; r < sum->world; r++) {
        const struct tdmi_range theirs = chunk_of(sum, whole, r, c);
        for (int i = 0; i < roots_of(sum, sum->rank) && r != sum->rank; i++)
            add_message(sum, r, true, roots[i] + theirs.first, theirs.n);
        for (int i = 0; i < roots_of(sum, r); i++) {
            *parts = r == sum->rank ? roots[i] + mine.first : *block++;
            if (r != sum->rank)
                add_message(sum, r, false, *parts, mine.n);
            parts++;
        }
    }
    return exchange(sum, err);
}

/* The plan's additions, each into its left side: the sum of all parts goes to the first. */
static void add_parts(const tdmi_device_sum *sum, float *const *parts, int64_t n)
{
    const struct tdmi_sum_plan *plan = &sum->of.comm->plan;
    float *kept[TDMI_TREE_ROOTS + 1]; /* sums that the plan names by numbers below 0 */
    for (int i = 0; i < plan->n_additions; i++) {
        const struct tdmi_tree_addition *it = &plan->additions[i];
        float *left = it->left < 0 ? kept[-it->left] : parts[it->left];
        const float *right = it->right < 0 ? kept[-it->right] : parts[it->right];
        sum->of.backend->update->accumulate(sum->sums, TDMI_DTYPE_F32, left, right, n);
        if (it->to < 0)
            kept[-it->to] = left;
    }
}

/* To all ranks; also to this one, where the sum is in another array. */
static tdm_status exchange_sums(tdmi_device_sum *sum, float *from, float *total,
                                struct tdmi_range whole, int64_t c, tdm_error *err)
{
    const struct tdmi_range mine = chunk_of(sum, whole, sum->rank, c);
    for (int r = 0; r < sum->world; r++) {
        const struct tdmi_range theirs = chunk_of(sum, whole, r, c);
        if (r == sum->rank && from == total + mine.first)
            continue;
        add_message(sum, r, true, from, mine.n);
        add_message(sum, r, false, total + theirs.first, theirs.n);
    }
    return exchange(sum, err);
}

static tdm_status sum_exactly(tdmi_device_sum *sum, float *const *roots, float *total,
                              struct tdmi_range whole, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) float **parts = NULL;
    TDMI_TRY(TDMI_NEW(parts, sum->of.comm->plan.n_roots, err));
    for (int64_t c = 0; c < tdmi_sum_chunks(whole.n, sum->world, chunk_values); c++) {
        const int64_t n = chunk_of(sum, whole, sum->rank, c).n;
        TDMI_TRY(exchange_parts(sum, roots, whole, c, parts, err));
        if (n > 0)
            add_parts(sum, parts, n);
        TDMI_TRY(exchange_sums(sum, parts[0], total, whole, c, err));
    }
    return TDM_OK;
}

/* ---- in any order, by peers ------------------------------------------------------------------ */

/* A rank without a group adds zeros. */
static tdm_status sum_fast(tdmi_device_sum *sum, float *const *roots, float *total,
                           struct tdmi_range whole, tdm_error *err)
{
    const struct tdmi_backend *backend = sum->of.backend;
    const int n = roots_of(sum, sum->rank);
    float *mine = total + whole.first;
    assert(n == 0 || roots[0] == total);
    if (n == 0)
        backend->memory.clear(sum->sums, mine, sizeof *mine * (size_t)whole.n);
    for (int i = 1; i < n; i++)
        backend->update->accumulate(sum->sums, TDMI_DTYPE_F32, mine, roots[i] + whole.first,
                                    whole.n);
    return backend->peers->sum(sum->of.peers, sum->sums, mine, whole.n, err);
}

static tdm_status watch(tdmi_device_sum *sum, tdm_error *err)
{
    float *roots[TDMI_TREE_ROOTS];
    const int n = vector_values * sum->world; /* some in each rank's slice */
    for (int i = 0; i < TDMI_TREE_ROOTS; i++)
        roots[i] = sum->zeros;
    return tdmi_comm_sum(sum->of.comm, roots, sum->zeros + n, 0, n, err);
}

/* ---- through the host ------------------------------------------------------------------------ */

static tdm_status sum_on_host(tdmi_device_sum *sum, float *const *roots, float *total,
                              struct tdmi_range range, int64_t n_rounded, tdm_error *err)
{
    const struct tdmi_backend *backend = sum->of.backend;
    float **host = sum->blocks;
    for (int i = 0; i < roots_of(sum, sum->rank); i++)
        TDMI_TRY(backend->memory.download(sum->of.stream, host[i] + range.first,
                                          roots[i] + range.first, sizeof(float) * (size_t)range.n,
                                          err));
    TDMI_TRY(backend->stream.wait(sum->of.stream, err));
    sum->first = range.first < sum->first ? range.first : sum->first;
    sum->total = total;
    TDMI_TRY(tdmi_comm_sum_rounded(sum->of.comm, host, host[0], range.first, n_rounded, err));
    return tdmi_comm_sum(sum->of.comm, host, host[0], range.first + n_rounded, range.n - n_rounded,
                         err);
}

static tdm_status finish_on_host(tdmi_device_sum *sum, tdm_error *err)
{
    const int64_t first = sum->first, n = sum->of.n_values - first;
    sum->first = sum->of.n_values;
    TDMI_TRY(tdmi_comm_finish(sum->of.comm, err));
    TDMI_TRY(sum->of.backend->memory.upload(sum->of.stream, sum->total + first,
                                            sum->blocks[0] + first, sizeof(float) * (size_t)n,
                                            err));
    return sum->of.backend->stream.wait(sum->of.stream, err);
}

/* ---- a sum ----------------------------------------------------------------------------------- */

tdm_status tdmi_device_sum_start(tdmi_device_sum *sum, float *const *roots, float *total,
                                 int64_t first, int64_t n, int64_t n_rounded, tdm_error *err)
{
    const struct tdmi_stream_table *streams = &sum->of.backend->stream;
    const struct tdmi_range range = {first, n};
    if (!sum->of.peers)
        return sum_on_host(sum, roots, total, range, n_rounded, err);
    if (!sum->is_watched)
        TDMI_TRY(watch(sum, err));
    sum->is_watched = true;
    TDMI_TRY(streams->event_record(sum->of.stream, sum->is_made, err));
    TDMI_TRY(streams->event_wait(sum->sums, sum->is_made, err));
    return sum->of.is_fast ? sum_fast(sum, roots, total, range, err)
                           : sum_exactly(sum, roots, total, range, err);
}

tdm_status tdmi_device_sum_finish(tdmi_device_sum *sum, tdm_error *err)
{
    if (!sum->of.peers)
        return finish_on_host(sum, err);
    sum->is_watched = false;
    TDMI_TRY(watch(sum, err));
    TDMI_TRY(sum->of.backend->peers->wait(sum->of.peers, sum->sums, err));
    TDMI_TRY(tdmi_comm_finish(sum->of.comm, err));
    return sum->of.backend->stream.wait(sum->of.stream, err);
}
