/*
 * Lists the feature rows to compute: of validation and test, of an epoch, and some to check, in an
 * order in which neighbouring images are read together.
 */
#include "base/scope.h"
#include "base/hash/rng.h"
#include "train/session/session.h"

#include <stdlib.h>

enum { most_checked = 32 };

static tdm_status list(struct tdmi_missing_rows *it, struct tdmi_missing_row entry, tdm_error *err)
{
    TDMI_TRY(TDMI_MAKE_ROOM(it->entries, it->capacity, it->n, err));
    it->entries[it->n++] = entry;
    return TDM_OK;
}

static bool is_there(const struct tdmi_missing_rows *it, struct tdmi_missing_row entry)
{
    return tdmi_store_find(tdmi_features_store(&it->session->cache, entry.is_val),
                           tdmi_features_row(&it->session->data, entry.item, entry.view)) >= 0;
}

static tdm_status list_missing(struct tdmi_missing_rows *it, struct tdmi_missing_row entry,
                               tdm_error *err)
{
    if (it->session->cache.is_broken[entry.item] || is_there(it, entry))
        return TDM_OK;
    return list(it, entry, err);
}

tdm_status tdmi_missing_rows_add_val(struct tdmi_missing_rows *it, tdm_error *err)
{
    const struct tdmi_train_data *data = &it->session->data;
    for (int64_t i = 0; i < data->n_evaluated; i++)
        TDMI_TRY(list_missing(
            it, (struct tdmi_missing_row){.item = data->evaluated[i], .is_val = true}, err));
    return TDM_OK;
}

tdm_status tdmi_missing_rows_add_epoch(struct tdmi_missing_rows *it, tdm_error *err)
{
    const struct tdmi_train_data *data = &it->session->data;
    const uint32_t epoch = (uint32_t)it->session->progress.epoch,
                   n_views = (uint32_t)it->session->config.views;
    for (int64_t p = 0; p < data->order.n; p++) {
        const struct tdmi_missing_row entry = {
            .item = data->split.train[tdmi_order_at(&data->order, epoch, p)],
            .view = n_views ? tdmi_order_view(&data->order, epoch, p, n_views) : 0};
        TDMI_TRY(list_missing(it, entry, err));
    }
    return TDM_OK;
}

static bool is_checked(const struct tdmi_session *session, struct tdmi_missing_row entry)
{
    const int64_t reused = session->cache.count.reused;
    tdmi_rng rng = tdmi_rng_at(session->config.options.seed, TDMI_RNG_RECHECK, entry.view,
                               (uint64_t)entry.item);
    return reused <= most_checked ||
           (double)tdmi_rng_unit(&rng) * (double)reused < (double)most_checked;
}

static tdm_status list_check(struct tdmi_missing_rows *it, struct tdmi_missing_row entry,
                             tdm_error *err)
{
    if (!is_checked(it->session, entry) || !is_there(it, entry))
        return TDM_OK;
    it->session->cache.count.checked++;
    entry.is_found = true;
    return list(it, entry, err);
}

tdm_status tdmi_missing_rows_add_checks(struct tdmi_missing_rows *it, tdm_error *err)
{
    const struct tdmi_train_data *data = &it->session->data;
    const uint32_t n_views = tdmi_features_views(&it->session->config);
    for (int64_t i = 0; i < data->n_evaluated; i++)
        TDMI_TRY(list_check(
            it, (struct tdmi_missing_row){.item = data->evaluated[i], .is_val = true}, err));
    for (int64_t i = 0; i < data->split.n_train; i++)
        for (uint32_t view = 0; view < n_views; view++)
            TDMI_TRY(list_check(
                it, (struct tdmi_missing_row){.item = data->split.train[i], .view = view}, err));
    return TDM_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct tdmi_missing_row *x = a, *y = b;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return (x->view > y->view) - (x->view < y->view);
}

/* Unchanged images first: a loader changes all images that it reads or none. */
static int by_part_and_place(const void *a, const void *b)
{
    const struct tdmi_missing_row *x = a, *y = b;
    return x->is_val == y->is_val ? by_place(a, b) : x->is_val ? -1 : 1;
}

/* An order may list an image twice. */
void tdmi_missing_rows_arrange(struct tdmi_missing_rows *it)
{
    const bool has_views = it->session->config.views > 0;
    int64_t n = 0;
    if (it->n > 0)
        qsort(it->entries, (size_t)it->n, sizeof *it->entries,
              has_views ? by_part_and_place : by_place);
    for (int64_t i = 0; i < it->n; i++)
        if (n == 0 || by_part_and_place(&it->entries[n - 1], &it->entries[i]) != 0)
            it->entries[n++] = it->entries[i];
    it->n = n;
}

void tdmi_missing_rows_release(struct tdmi_missing_rows *it)
{
    tdmi_free(it->entries);
    *it = (struct tdmi_missing_rows){0};
}
