/*
 * Two levels for data that is quick to read in groups only. An epoch permutes the groups, cuts
 * their row into windows of W, and permutes the samples of each window among themselves:
 *
 *     groups   0 1 2 3 4 5 6 …     ──permute──►   5 0 3 │ 6 2 4 │ 1      W = 3
 *     samples of a window          ──permute──►   one from 3, one from 5, one from 0, …
 *
 * Groups differ in size, so where a window begins depends on the epoch's row: a prefix table of G
 * sums, built by whoever first asks about an epoch and kept for the last two epochs (a run that
 * looks ahead asks about two). Whoever builds it gets the same table, so the order is still a pure
 * function; positions then cost two binary searches and one permutation.
 *
 * Windows are cut, not slid: a sliding buffer holds a state that a resume would have to replay.
 */
#include "data/order/kinds.h"

#include "base/memory.h"
#include <pthread.h>
#include <string.h>

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
    bool has_lock;
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
    if (groups->has_lock)
        pthread_rwlock_destroy(&groups->lock);
    tdmi_free(groups);
}

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

static tdm_status allocate(struct tdmi_order_groups *groups, tdm_error *err)
{
    size_t n = (size_t)groups->n_groups;
    groups->starts = tdmi_alloc(n + 1, sizeof *groups->starts);
    bool is_complete = groups->starts != NULL;
    for (int i = 0; i < KEPT_EPOCHS && is_complete; i++) {
        struct table *table = &groups->tables[i];
        table->groups = tdmi_alloc(n, sizeof *table->groups);
        table->first = tdmi_alloc(n + 1, sizeof *table->first);
        is_complete = table->groups != NULL && table->first != NULL;
    }
    if (!is_complete)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the order of %lld groups",
                        (long long)groups->n_groups);
    groups->has_lock = pthread_rwlock_init(&groups->lock, NULL) == 0;
    if (!groups->has_lock)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot make the lock of an order");
    return TDM_OK;
}

tdm_status tdmi_order_init_grouped(tdmi_order *order, const struct tdmi_order_grouped *options,
                                   tdm_error *err)
{
    *order = (tdmi_order){0};
    int64_t n_full, n;
    tdm_status status = check(options, &n_full, &n, err);
    if (status != TDM_OK)
        return status;
    struct tdmi_order_groups *groups = tdmi_alloc(1, sizeof *groups);
    if (groups == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for an order");
    groups->n_groups = n_full;
    groups->window = options->window > 0 ? options->window : DEFAULT_WINDOW;
    if (groups->window > n_full)
        groups->window = n_full;
    status = allocate(groups, err);
    if (status != TDM_OK) {
        tdmi_order_groups_free(groups);
        return status;
    }
    int64_t at = 0;
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
                          .groups = groups};
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

static void give_back(const tdmi_order *order)
{
    pthread_rwlock_unlock(&order->groups->lock);
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

struct window {
    int64_t index;    /* of this epoch, from 0 */
    int64_t first, n; /* its positions */
    int64_t n_groups;
};

static struct window window_of(const struct tdmi_order_groups *groups, const struct table *table,
                               int64_t position)
{
    int64_t index = place_of(table, 0, groups->n_groups, position) / groups->window;
    int64_t low = index * groups->window, high = low + groups->window;
    if (high > groups->n_groups)
        high = groups->n_groups;
    return (struct window){.index = index,
                           .first = table->first[low],
                           .n = table->first[high] - table->first[low],
                           .n_groups = high - low};
}

int64_t tdmi_order_grouped_at(const tdmi_order *order, uint32_t epoch, int64_t position)
{
    const struct tdmi_order_groups *groups = order->groups;
    const struct table *table = borrow(order, epoch);
    const struct window window = window_of(groups, table, position);
    const struct tdmi_order_key key = {order->seed, epoch, TDMI_ORDER_STREAM_WINDOW,
                                       (uint64_t)window.index};
    int64_t inside = window.first + tdmi_order_permute(key, window.n, position - window.first);
    int64_t low = window.index * groups->window;
    int64_t place = place_of(table, low, low + window.n_groups, inside);
    int64_t sample = groups->starts[table->groups[place]] + inside - table->first[place];
    give_back(order);
    return sample;
}

/* ---- of a source ---- */

bool tdmi_order_has_groups(const tdmi_source *source)
{
    return tdmi_source_groups(source) > 1;
}

tdm_status tdmi_order_init_source(tdmi_order *order, const tdmi_source *source,
                                  const int64_t *items, int64_t n, uint64_t seed, tdm_error *err)
{
    int64_t n_groups = tdmi_source_groups(source), at = 0;
    int64_t *samples = tdmi_alloc((size_t)n_groups, sizeof *samples);
    if (samples == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to order %lld groups of pictures",
                        (long long)n_groups);
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t end = tdmi_source_group_first(source, g + 1);
        for (; at < n && (items != NULL ? items[at] : at) < end; at++)
            samples[g]++;
    }
    tdm_status status = tdmi_order_init_grouped(
        order,
        &(struct tdmi_order_grouped){
            .seed = seed, .is_shuffled = true, .group_samples = samples, .n_groups = n_groups},
        err);
    tdmi_free(samples);
    return status;
}
