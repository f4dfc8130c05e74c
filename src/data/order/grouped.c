/*
 * Two levels for data that is quick to read in groups only. An epoch permutes the groups, cuts
 * their row into windows of W, and permutes the samples of each window among themselves:
 *
 *     groups   0 1 2 3 4 5 6 …     ──permute──►   5 0 3 │ 6 2 4 │ 1      W = 3
 *     samples of a window          ──permute──►   one from 3, one from 5, one from 0, …
 *
 * Groups differ in size, so where a window begins depends on the epoch's row: a prefix table of G
 * sums, built by the first thread that needs an epoch and kept for the last two epochs (prefetching
 * needs two). Every thread builds the same table, so the order is still a pure
 * function; positions then cost two binary searches and one permutation.
 *
 * Windows are cut, not slid: a sliding buffer holds a state that a resume would have to replay.
 */
#include "data/order/order.h"

#include <pthread.h>

enum { KEPT_EPOCHS = 2, DEFAULT_WINDOW = 8 };

/* The row of an epoch. */
struct table {
    bool is_built;
    uint32_t epoch;
    int64_t *groups; /* (n_groups), at each place of the row */
    int64_t *first;  /* (n_groups + 1), position at which the place begins; the last is n */
};

struct tdmi_order_groups {
    int64_t n_groups, window;
    int64_t *starts; /* (n_groups + 1), first sample of each that is not empty */
    struct table tables[KEPT_EPOCHS];
    int oldest;
    pthread_rwlock_t lock; /* of the tables */
};

void tdmi_order_groups_free(struct tdmi_order_groups *groups)
{
    if (groups == NULL)
        return;
    for (int i = 0; i < KEPT_EPOCHS; i++) {
        tdmi_free(groups->tables[i].groups);
        tdmi_free(groups->tables[i].first);
    }
    tdmi_free(groups->starts);
    pthread_rwlock_destroy(&groups->lock);
    tdmi_free(groups);
}
TDMI_POINTER_RELEASE(struct tdmi_order_groups, tdmi_order_groups_free)

static tdm_status check(const struct tdmi_order_grouped *options, int64_t *n_full, int64_t *n,
                        tdm_error *err)
{
    *n_full = *n = 0;
    if (options->window < 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot shuffle in windows of %lld groups: 1 or more are needed",
                        (long long)options->window);
    for (int64_t g = 0; g < options->n_groups; g++) {
        int64_t samples = options->group_samples[g];
        if (samples < 0 || samples > ((int64_t)1 << 62) - *n)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "cannot order groups: group %lld has %lld samples after %lld others",
                            (long long)g, (long long)samples, (long long)*n);
        *n_full += samples > 0;
        *n += samples;
    }
    if (*n == 0)
        return TDM_FAIL(err, TDM_E_USAGE, "cannot order the samples of %lld groups: there is none",
                        (long long)options->n_groups);
    return TDM_OK;
}

tdm_status tdmi_order_init_grouped(tdmi_order *order, const struct tdmi_order_grouped *options,
                                   tdm_error *err)
{
    TDMI_AT_END(tdmi_order_groups_free_at) struct tdmi_order_groups *groups = NULL;
    int64_t n_full, n, at = 0;
    *order = (tdmi_order){0};
    TDMI_TRY(check(options, &n_full, &n, err));
    TDMI_TRY(TDMI_NEW(groups, 1, err));
    pthread_rwlock_init(&groups->lock, NULL);
    groups->n_groups = n_full;
    groups->window = options->window > 0 ? options->window : DEFAULT_WINDOW;
    if (groups->window > n_full)
        groups->window = n_full;
    TDMI_TRY(TDMI_NEW(groups->starts, n_full + 1, err));
    for (int i = 0; i < KEPT_EPOCHS; i++) {
        TDMI_TRY(TDMI_NEW(groups->tables[i].groups, n_full, err));
        TDMI_TRY(TDMI_NEW(groups->tables[i].first, n_full + 1, err));
    }
    for (int64_t g = 0; g < options->n_groups; g++) {
        if (options->group_samples[g] == 0)
            continue;
        groups->starts[at + 1] = groups->starts[at] + options->group_samples[g];
        at++;
    }
    *order = (tdmi_order){.seed = options->seed,
                          .n = n,
                          .is_shuffled = options->is_shuffled,
                          .kind = TDMI_ORDER_GROUPED,
                          .groups = tdmi_take(&groups)};
    return TDM_OK;
}

/* ---- the row of an epoch ------------------------------------------------------------------- */

static void build(const tdmi_order *order, uint32_t epoch, struct table *table)
{
    const struct tdmi_order_groups *groups = order->groups;
    const struct tdmi_order_key key = {order->seed, epoch, TDMI_ORDER_STREAM_GROUPS, 0};
    for (int64_t place = 0; place < groups->n_groups; place++) {
        int64_t group =
            order->is_shuffled ? tdmi_order_permute(key, groups->n_groups, place) : place;
        table->groups[place] = group;
        table->first[place + 1] =
            table->first[place] + groups->starts[group + 1] - groups->starts[group];
    }
    table->epoch = epoch;
    table->is_built = true;
}

static const struct table *find(const struct tdmi_order_groups *groups, uint32_t epoch)
{
    for (int i = 0; i < KEPT_EPOCHS; i++)
        if (groups->tables[i].is_built && groups->tables[i].epoch == epoch)
            return &groups->tables[i];
    return NULL;
}

/* Returns with the lock held for reading. Another thread may replace the table between the two
 * locks, hence the loop. */
static const struct table *borrow(const tdmi_order *order, uint32_t epoch)
{
    struct tdmi_order_groups *groups = order->groups;
    for (;;) {
        pthread_rwlock_rdlock(&groups->lock);
        const struct table *table = find(groups, epoch);
        if (table != NULL)
            return table;
        pthread_rwlock_unlock(&groups->lock);
        pthread_rwlock_wrlock(&groups->lock);
        if (find(groups, epoch) == NULL) {
            build(order, epoch, &groups->tables[groups->oldest]);
            groups->oldest = (groups->oldest + 1) % KEPT_EPOCHS;
        }
        pthread_rwlock_unlock(&groups->lock);
    }
}

/* The place in [low, high) of the row that a position lies in. */
static int64_t place_of(const struct table *table, int64_t low, int64_t high, int64_t position)
{
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (table->first[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int64_t tdmi_order_grouped_at(const tdmi_order *order, uint32_t epoch, int64_t position)
{
    struct tdmi_order_groups *groups = order->groups;
    const struct table *table = borrow(order, epoch);
    const int64_t window = place_of(table, 0, groups->n_groups, position) / groups->window;
    const int64_t low = window * groups->window, left = groups->n_groups - low;
    const int64_t high = low + (left < groups->window ? left : groups->window);
    const int64_t first = table->first[low], n = table->first[high] - first; /* its positions */
    const struct tdmi_order_key key = {order->seed, epoch, TDMI_ORDER_STREAM_WINDOW,
                                       (uint64_t)window};
    int64_t inside = first + tdmi_order_permute(key, n, position - first);
    int64_t place = place_of(table, low, high, inside);
    int64_t sample = groups->starts[table->groups[place]] + inside - table->first[place];
    pthread_rwlock_unlock(&groups->lock);
    return sample;
}

/* ---- of a source --------------------------------------------------------------------------- */

bool tdmi_order_has_groups(const tdmi_source *source)
{
    return tdmi_source_groups(source) > 1;
}

tdm_status tdmi_order_init_source(tdmi_order *order, const tdmi_source *source,
                                  const int64_t *items, int64_t n, uint64_t seed, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) int64_t *samples = NULL;
    int64_t n_groups = tdmi_source_groups(source), at = 0;
    TDMI_TRY(TDMI_NEW(samples, n_groups, err));
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t end = tdmi_source_group_first(source, g + 1);
        for (; at < n && (items != NULL ? items[at] : at) < end; at++)
            samples[g]++;
    }
    const struct tdmi_order_grouped options = {
        .seed = seed, .is_shuffled = true, .group_samples = samples, .n_groups = n_groups};
    return tdmi_order_init_grouped(order, &options, err);
}
