/*
 * A block is a subtree of groups that share one array: a running group, or the sum of some that
 * have ended. Blocks are contiguous from group 0 to the last one taken, since groups are taken in
 * order. When no group runs, the groups taken so far form as many blocks as the next group's number
 * has bits set, at most one for each level of the tree; then an array is free, so no thread waits
 * for ever.
 */
#include "train/step/sums.h"
#include "base/scope.h"
#include "dist/tree.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

/* Blocks that are added at once: more would save memory traffic, but keep threads waiting that need
 * an array. */
enum { most_parts = 4 };

/* Arrays that fit in the CPU's caches together: each group gets one. */
enum { small_bytes = 4 << 20 };

struct block {
    int first;       /* first group; it ends where the next block begins */
    bool is_waiting; /* complete, and no thread is adding it */
};

struct tdmi_sums {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    bool is_queued;
    tdmi_stream *stream; /* that adds where is_queued */
    int64_t n_values;
    int max_groups, n_arrays;
    float **arrays;
    float **of_group; /* by the first group of a block */

    /* of the batch */
    int n_groups;
    int first, n_all; /* number of group 0 in the whole batch; groups of the whole batch */
    bool has_all;     /* an array for each group: no lock, and nothing is added before the end */
    pthread_mutex_t lock;
    pthread_cond_t has_changed; /* a group was given back, or an array is free */
    struct block *blocks;
    int n_blocks, n_taken;
    float **free;
    int n_free;
    struct tdmi_tree_part *parts; /* blocks that are left to add */
    struct tdmi_tree_addition *additions;
    int n_additions;
};

int tdmi_sums_arrays(const struct tdmi_sums_options *options)
{
    const int64_t bytes = (int64_t)sizeof(float) * options->n_values * options->max_groups;
    int n = options->n_threads + options->n_threads / 2, n_queued = 1;
    for (int64_t groups = 1; groups < options->max_groups; groups *= 2)
        n += 1 + options->is_part;
    while (options->max_groups >> n_queued > 0) /* the most bits set in a group's number, and 1 */
        n_queued++;
    if (options->is_queued && options->is_part)
        return 2 * n_queued < options->max_groups ? 2 * n_queued : options->max_groups;
    if (options->is_queued)
        return n_queued;
    return n > options->max_groups || options->runs_together || bytes <= small_bytes
               ? options->max_groups
               : n;
}

static tdm_status reserve(tdmi_sums *sums, tdm_error *err)
{
    const size_t n = (size_t)sums->n_arrays, bytes = sizeof(float) * (size_t)sums->n_values;
    TDMI_TRY(TDMI_NEW(sums->arrays, n, err));
    TDMI_TRY(TDMI_NEW(sums->of_group, sums->max_groups, err));
    TDMI_TRY(TDMI_NEW(sums->blocks, n, err));
    TDMI_TRY(TDMI_NEW(sums->free, n, err));
    TDMI_TRY(TDMI_NEW(sums->parts, n, err));
    TDMI_TRY(TDMI_NEW(sums->additions, n, err));
    for (size_t i = 0; i < n; i++) {
        sums->arrays[i] = sums->backend->memory.alloc(sums->device, bytes);
        if (!sums->arrays[i])
            return TDM_FAIL(err, TDM_E_MEMORY,
                            "reserving %zu MiB for %zu arrays of gradients: out of memory; fewer "
                            "--threads need less",
                            n * bytes >> 20, n);
    }
    sums->of_group[0] = sums->arrays[0];
    return TDM_OK;
}

TDMI_POINTER_RELEASE(tdmi_sums, tdmi_sums_close)

tdm_status tdmi_sums_open(const struct tdmi_backend *backend, tdmi_device *device,
                          const struct tdmi_sums_options *options, tdmi_sums **sums, tdm_error *err)
{
    TDMI_AT_END(tdmi_sums_close_at) tdmi_sums *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->backend = backend;
    made->device = device;
    made->is_queued = options->is_queued;
    made->stream = options->stream;
    made->n_values = options->n_values;
    made->max_groups = options->max_groups;
    made->n_arrays = tdmi_sums_arrays(options);
    pthread_mutex_init(&made->lock, NULL); /* with default attributes these cannot fail */
    pthread_cond_init(&made->has_changed, NULL);
    TDMI_TRY(reserve(made, err));
    *sums = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_sums_close(tdmi_sums *sums)
{
    if (!sums)
        return;
    for (int i = 0; sums->arrays && i < sums->n_arrays; i++)
        if (sums->arrays[i])
            sums->backend->memory.free(sums->device, sums->arrays[i]);
    pthread_cond_destroy(&sums->has_changed);
    pthread_mutex_destroy(&sums->lock);
    tdmi_free(sums->arrays);
    tdmi_free(sums->of_group);
    tdmi_free(sums->blocks);
    tdmi_free(sums->free);
    tdmi_free(sums->parts);
    tdmi_free(sums->additions);
    tdmi_free(sums);
}

void tdmi_sums_begin(tdmi_sums *sums, struct tdmi_sums_groups groups)
{
    const int n_groups = groups.n;
    sums->n_groups = n_groups;
    sums->first = groups.first;
    sums->n_all = groups.n_all;
    sums->has_all = n_groups <= sums->n_arrays && !sums->is_queued;
    sums->n_blocks = sums->n_taken = 0;
    if (sums->is_queued)
        return;
    if (sums->has_all) {
        for (int s = 0; s < n_groups; s++) {
            sums->of_group[s] = sums->arrays[s];
            sums->blocks[s] = (struct block){.first = s};
        }
        sums->n_blocks = sums->n_taken = n_groups;
        return;
    }
    sums->n_free = 0;
    for (int i = sums->n_arrays - 1; i >= 0; i--) /* the first one goes to group 0 */
        sums->free[sums->n_free++] = sums->arrays[i];
}

float *tdmi_sums_of(const tdmi_sums *sums, int group)
{
    return sums->of_group[group];
}

/* ---- while groups run: under the lock ------------------------------------------------------ */

static int end_of(const tdmi_sums *sums, int block)
{
    return block + 1 < sums->n_blocks ? sums->blocks[block + 1].first : sums->n_taken;
}

static bool is_subtree(const tdmi_sums *sums, int first, int end)
{
    return tdmi_tree_is_subtree(sums->first + first, sums->first + end, sums->n_all);
}

static struct tdmi_tree_part part_of(const tdmi_sums *sums, const struct block *block)
{
    return (struct tdmi_tree_part){sums->first + block->first, sums->of_group[block->first]};
}

/* The most blocks from `begin` on that are all waiting and a subtree together; 1: none. */
static int parts_from(const tdmi_sums *sums, int begin)
{
    int n = 1;
    for (int i = begin; i < sums->n_blocks && i - begin < most_parts; i++) {
        if (!sums->blocks[i].is_waiting)
            break;
        if (is_subtree(sums, sums->blocks[begin].first, end_of(sums, i)))
            n = i - begin + 1;
    }
    return n;
}

static void merge_blocks(tdmi_sums *sums, int begin, int n_parts)
{
    struct tdmi_tree_part parts[most_parts];
    struct tdmi_tree_addition additions[most_parts];
    for (int i = 0; i < n_parts; i++) {
        struct block *block = &sums->blocks[begin + i];
        block->is_waiting = false;
        parts[i] = part_of(sums, block);
    }
    const int first = sums->blocks[begin].first;
    const int end = sums->first + end_of(sums, begin + n_parts - 1);
    const int n = tdmi_tree_plan(parts, n_parts, end, sums->n_all, additions);

    pthread_mutex_unlock(&sums->lock);
    tdmi_tree_sum(parts, additions, n, 0, sums->n_values);
    pthread_mutex_lock(&sums->lock);

    int at = 0; /* others may have merged before it meanwhile */
    while (sums->blocks[at].first != first)
        at++;
    sums->blocks[at].is_waiting = true;
    sums->n_blocks -= n_parts - 1;
    memmove(&sums->blocks[at + 1], &sums->blocks[at + n_parts],
            sizeof *sums->blocks * (size_t)(sums->n_blocks - at - 1));
    for (int i = n_parts - 1; i > 0; i--)
        sums->free[sums->n_free++] = parts[i].values;
    pthread_cond_broadcast(&sums->has_changed);
}

/* Adds the longest run of blocks that can be added; false: none can. */
static bool merge(tdmi_sums *sums)
{
    int most = 1, begin = 0;
    for (int i = 0; i < sums->n_blocks; i++) {
        const int n = parts_from(sums, i);
        if (n > most) {
            most = n;
            begin = i;
        }
    }
    if (most > 1)
        merge_blocks(sums, begin, most);
    return most > 1;
}

/* ---- on a device ---------------------------------------------------------------------------
 * Block i uses array i; the last block is the running group. */

static int take_queued(tdmi_sums *sums)
{
    const int group = sums->n_taken++, at = sums->n_blocks++;
    assert(group < sums->n_groups && at < sums->n_arrays);
    sums->of_group[group] = sums->arrays[at];
    sums->blocks[at] = (struct block){.first = group};
    return group;
}

/* Two blocks that are a subtree together are its children, so these are the tree's additions. */
static void give_queued(tdmi_sums *sums)
{
    while (sums->n_blocks > 1 &&
           is_subtree(sums, sums->blocks[sums->n_blocks - 2].first, sums->n_taken)) {
        const int at = --sums->n_blocks;
        sums->backend->update->accumulate(sums->stream, TDMI_DTYPE_F32, sums->arrays[at - 1],
                                          sums->arrays[at], sums->n_values);
    }
}

/* Adds the blocks that are left when all groups have been taken, from right to left, as far as they
 * are a subtree together. */
static void add_queued(const tdmi_sums *sums, int64_t first, int64_t n)
{
    for (int at = sums->n_blocks - 1;
         at > 0 && is_subtree(sums, sums->blocks[at - 1].first, sums->n_taken); at--)
        sums->backend->update->accumulate(sums->stream, TDMI_DTYPE_F32,
                                          sums->arrays[at - 1] + first, sums->arrays[at] + first,
                                          n);
}

int tdmi_sums_take(tdmi_sums *sums, int index)
{
    if (sums->is_queued)
        return take_queued(sums);
    if (sums->has_all)
        return index;
    pthread_mutex_lock(&sums->lock);
    while (sums->n_free == 0)
        if (!merge(sums))
            pthread_cond_wait(&sums->has_changed, &sums->lock);
    const int group = sums->n_taken++;
    assert(group < sums->n_groups && sums->n_blocks < sums->n_arrays);
    sums->of_group[group] = sums->free[--sums->n_free];
    sums->blocks[sums->n_blocks++] = (struct block){.first = group};
    pthread_mutex_unlock(&sums->lock);
    return group;
}

void tdmi_sums_give(tdmi_sums *sums, int group)
{
    if (sums->is_queued)
        give_queued(sums);
    if (sums->is_queued || sums->has_all)
        return;
    pthread_mutex_lock(&sums->lock);
    int at = sums->n_blocks - 1;
    while (sums->blocks[at].first != group)
        at--;
    sums->blocks[at].is_waiting = true;
    pthread_cond_broadcast(&sums->has_changed);
    pthread_mutex_unlock(&sums->lock);
}

/* ---- the rest ------------------------------------------------------------------------------ */

void tdmi_sums_settle(tdmi_sums *sums)
{
    assert(sums->n_taken == sums->n_groups);
    if (sums->is_queued)
        return;
    for (int i = 0; i < sums->n_blocks; i++)
        sums->parts[i] = part_of(sums, &sums->blocks[i]);
    sums->n_additions = tdmi_tree_plan(sums->parts, sums->n_blocks, sums->first + sums->n_groups,
                                       sums->n_all, sums->additions);
}

void tdmi_sums_add(const tdmi_sums *sums, int64_t first, int64_t n)
{
    if (sums->is_queued) {
        add_queued(sums, first, n);
        return;
    }
    tdmi_tree_sum(sums->parts, sums->additions, sums->n_additions, first, n);
}
