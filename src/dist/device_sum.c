/*
 * The exact sum of peers is the owner exchange of sum.c, which says what goes from whom to whom; it
 * is queued on one stream, which keeps the order, and kernels of the device add. One chunk is on
 * its way at a time.
 *
 * A rank that is lost leaves the others' devices waiting for ever. So whoever waits for a device
 * asks the communicator again and again whether all ranks still live (tdmi_comm_check).
 */
#include "dist/device_sum.h"
#include "base/scope.h"
#include "dist/comm_internal.h"

#include <assert.h>

enum { chunk_values = 1 << 19, vector_values = 16 };

tdm_status tdmi_device_sum_init(struct tdmi_device_sum *sum, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &sum->backend->memory;
    const int world = tdmi_comm_world(sum->comm), n_roots = world * sum->most_roots;
    const int64_t slice = sum->n_values / world + 2 * vector_values; /* or less */
    sum->chunk_values = slice < chunk_values ? slice : chunk_values;
    const int64_t n_values =
        sum->peers ? 2 * sum->chunk_values * n_roots : sum->n_values * sum->most_roots;
    const size_t bytes = sizeof(float) * (size_t)n_values;
    sum->room = (sum->peers ? memory->alloc : memory->alloc_pinned)(sum->device, bytes);
    if (!sum->room)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %zu MiB of gradients of %d ranks",
                        (bytes >> 20) + 1, world);
    if (!sum->peers)
        return TDM_OK;
    TDMI_TRY(sum->backend->stream.open(sum->device, &sum->sums, err));
    TDMI_TRY(sum->backend->stream.event_open(sum->device, &sum->is_made, err));
    return TDMI_NEW(sum->messages, 2 * n_roots, err);
}

void tdmi_device_sum_release(struct tdmi_device_sum *sum)
{
    const struct tdmi_backend *backend = sum->backend;
    if (!backend)
        return;
    if (sum->peers) {
        backend->stream.event_close(sum->is_made);
        backend->stream.close(sum->sums);
    }
    (sum->peers ? backend->memory.free : backend->memory.free_pinned)(sum->device, sum->room);
    tdmi_free(sum->messages);
    *sum = (struct tdmi_device_sum){0};
}

/* ---- exact, by peers ------------------------------------------------------------------------- */

/* A tdmi_sum_start. */
static tdm_status add_message(void *self, bool is_sent, int peer, void *values, int64_t n,
                              tdm_error *err)
{
    struct tdmi_device_sum *sum = self;
    (void)err;
    if (n > 0)
        sum->messages[sum->n_messages++] = (struct tdmi_peer_message){peer, is_sent, values, n};
    return TDM_OK;
}

static tdm_status exchange(struct tdmi_device_sum *sum, const struct tdmi_sum_arrays *arrays,
                           int64_t c, tdmi_sum_exchange *list, tdm_error *err)
{
    sum->n_messages = 0;
    TDMI_TRY(list(sum->comm, arrays, c, add_message, sum, err));
    return sum->backend->peers->exchange(sum->peers, sum->sums, sum->messages, sum->n_messages,
                                         err);
}

/* The plan's additions. Each goes into one of its two sides, which does not change its bits: into
 * the one that is where the sum belongs, else into the left one. */
static void add_parts(const struct tdmi_device_sum *sum, const struct tdmi_sum_arrays *arrays,
                      int64_t c)
{
    const tdmi_comm *comm = sum->comm;
    const struct tdmi_range mine = tdmi_sum_chunk(comm, arrays, comm->launch.rank, c);
    float *kept[TDMI_TREE_ROOTS + 1]; /* sums that the plan names by numbers below 0 */
    for (int i = 0; i < comm->plan.n_additions && mine.n > 0; i++) {
        const struct tdmi_tree_addition *it = &comm->plan.additions[i];
        float *left = it->left < 0 ? kept[-it->left] : tdmi_sum_part(comm, arrays, c, it->left);
        float *right = it->right < 0 ? kept[-it->right] : tdmi_sum_part(comm, arrays, c, it->right);
        float *to = right == arrays->total + mine.first ? right : left;
        sum->backend->update->accumulate(sum->sums, TDMI_DTYPE_F32, to, to == left ? right : left,
                                         mine.n);
        if (it->to < 0)
            kept[-it->to] = to;
    }
}

static tdm_status sum_exactly(struct tdmi_device_sum *sum, const struct tdmi_sum_arrays *arrays,
                              tdm_error *err)
{
    for (int64_t c = 0; c < tdmi_sum_chunks(sum->comm, arrays); c++) {
        TDMI_TRY(exchange(sum, arrays, c, tdmi_sum_exchange_parts, err));
        add_parts(sum, arrays, c);
        TDMI_TRY(exchange(sum, arrays, c, tdmi_sum_exchange_sums, err));
    }
    return TDM_OK;
}

/* ---- in any order, by peers ------------------------------------------------------------------ */

/* A rank without a group adds zeros. */
static tdm_status sum_fast(struct tdmi_device_sum *sum, const struct tdmi_sum_arrays *arrays,
                           tdm_error *err)
{
    const struct tdmi_backend *backend = sum->backend;
    float *mine = arrays->total + arrays->range.first;
    if (arrays->n_roots == 0)
        backend->memory.clear(sum->sums, mine, sizeof *mine * (size_t)arrays->range.n);
    for (int i = 1; i < arrays->n_roots; i++)
        backend->update->accumulate(sum->sums, TDMI_DTYPE_F32, mine,
                                    arrays->roots[i] + arrays->range.first, arrays->range.n);
    return backend->peers->sum(sum->peers, sum->sums, mine, arrays->range.n, err);
}

/* ---- through the host ------------------------------------------------------------------------ */

static tdm_status sum_on_host(struct tdmi_device_sum *sum, const struct tdmi_sum_arrays *arrays,
                              int64_t n_rounded, tdm_error *err)
{
    const struct tdmi_backend *backend = sum->backend;
    const int64_t first = arrays->range.first, n = arrays->range.n;
    float *host[TDMI_TREE_ROOTS] = {sum->room};
    for (int i = 0; i < arrays->n_roots; i++) {
        host[i] = sum->room + i * sum->n_values;
        TDMI_TRY(backend->memory.download(sum->stream, host[i] + first, arrays->roots[i] + first,
                                          sizeof(float) * (size_t)n, err));
    }
    TDMI_TRY(backend->stream.wait(sum->stream, err));
    TDMI_TRY(tdmi_comm_sum_rounded(sum->comm, host, host[0], first, n_rounded, err));
    return tdmi_comm_sum(sum->comm, host, host[0], first + n_rounded, n - n_rounded, err);
}

static tdm_status finish_on_host(struct tdmi_device_sum *sum, float *total, int64_t first,
                                 tdm_error *err)
{
    TDMI_TRY(tdmi_comm_finish(sum->comm, err));
    return sum->backend->memory.upload(sum->stream, total + first, sum->room + first,
                                       sizeof(float) * (size_t)(sum->n_values - first), err);
}

/* ---- a sum ----------------------------------------------------------------------------------- */

tdm_status tdmi_device_sum_start(struct tdmi_device_sum *sum, float *const *roots, float *total,
                                 int64_t first, int64_t n, int64_t n_rounded, tdm_error *err)
{
    const struct tdmi_stream_table *streams = &sum->backend->stream;
    struct tdmi_sum_arrays arrays = {
        .total = total, .range = {first, n}, .room = sum->room, .chunk_values = sum->chunk_values};
    tdmi_sum_set_roots(sum->comm, &arrays, roots);
    assert(arrays.n_roots == 0 || roots[0] == total);
    if (!sum->peers)
        return sum_on_host(sum, &arrays, n_rounded, err);
    TDMI_TRY(streams->event_record(sum->stream, sum->is_made, err));
    TDMI_TRY(streams->event_wait(sum->sums, sum->is_made, err));
    return n_rounded > 0 ? sum_fast(sum, &arrays, err) : sum_exactly(sum, &arrays, err);
}

tdm_status tdmi_device_sum_finish(struct tdmi_device_sum *sum, float *total, int64_t first,
                                  tdm_error *err)
{
    TDMI_TRY(sum->peers ? sum->backend->peers->wait(sum->peers, sum->sums, err)
                        : finish_on_host(sum, total, first, err));
    return sum->backend->stream.wait(sum->stream, err);
}
