/*
 * Which rows of a frozen base are to be made: those that judge, those of an epoch, and a few of
 * those that were found, in an order in which pictures that lie together are read together.
 */
#include "base/memory.h"
#include "base/hash/rng.h"
#include "train/features/features.h"

#include <stdlib.h>

enum { most_checked = 32 };

static tdm_status list(struct tdmi_needed *it, struct tdmi_needed_row entry, tdm_error *err)
{
    if (!TDMI_GROW(it->entries, it->capacity, it->n))
        return TDM_FAIL(err, TDM_E_MEMORY, "listing more than %lld rows: out of memory",
                        (long long)it->n);
    it->entries[it->n++] = entry;
    return TDM_OK;
}

static bool is_there(const struct tdmi_needed *it, struct tdmi_needed_row entry)
{
    return tdmi_store_find(tdmi_features_store(it->session, entry.is_val),
                           tdmi_features_row(it->session, entry.item, entry.view)) >= 0;
}

static tdm_status list_missing(struct tdmi_needed *it, struct tdmi_needed_row entry, tdm_error *err)
{
    if (it->session->features.is_broken[entry.item] || is_there(it, entry))
        return TDM_OK;
    return list(it, entry, err);
}

tdm_status tdmi_needed_val(struct tdmi_needed *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < session->n_evaluated && status == TDM_OK; i++)
        status = list_missing(
            it, (struct tdmi_needed_row){.item = session->evaluated[i], .is_val = true}, err);
    return status;
}

tdm_status tdmi_needed_epoch(struct tdmi_needed *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const uint32_t epoch = (uint32_t)session->progress.epoch, n_views = (uint32_t)session->views;
    tdm_status status = TDM_OK;
    for (int64_t p = 0; p < session->order.n && status == TDM_OK; p++) {
        const int64_t nth = tdmi_order_at(&session->order, epoch, p);
        const struct tdmi_needed_row entry = {
            .item = session->split.train[nth],
            .view = n_views ? tdmi_order_view(&session->order, epoch, p, n_views) : 0};
        status = list_missing(it, entry, err);
    }
    return status;
}

static bool is_made_again(const struct tdmi_session *session, struct tdmi_needed_row entry)
{
    const int64_t reused = session->features.count.reused;
    tdmi_rng rng =
        tdmi_rng_at(session->options.seed, TDMI_RNG_RECHECK, entry.view, (uint64_t)entry.item);
    return reused <= most_checked ||
           (double)tdmi_rng_unit(&rng) * (double)reused < (double)most_checked;
}

static tdm_status list_again(struct tdmi_needed *it, struct tdmi_needed_row entry, tdm_error *err)
{
    if (!is_made_again(it->session, entry) || !is_there(it, entry))
        return TDM_OK;
    it->session->features.count.checked++;
    entry.is_found = true;
    return list(it, entry, err);
}

tdm_status tdmi_needed_checks(struct tdmi_needed *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const tdmi_split *split = &session->split;
    const uint32_t n_views = tdmi_features_views(session);
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < session->n_evaluated && status == TDM_OK; i++)
        status = list_again(
            it, (struct tdmi_needed_row){.item = session->evaluated[i], .is_val = true}, err);
    for (int64_t i = 0; i < split->n_train; i++)
        for (uint32_t view = 0; view < n_views && status == TDM_OK; view++)
            status = list_again(it, (struct tdmi_needed_row){.item = split->train[i], .view = view},
                                err);
    return status;
}

/* So that pictures that lie together are read together. */
static int by_place(const void *a, const void *b)
{
    const struct tdmi_needed_row *x = a, *y = b;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return (x->view > y->view) - (x->view < y->view);
}

/* Pictures as they are first: a loader changes all that it reads or none. */
static int by_part_and_place(const void *a, const void *b)
{
    const struct tdmi_needed_row *x = a, *y = b;
    return x->is_val == y->is_val ? by_place(a, b) : x->is_val ? -1 : 1;
}

/* An order may want a row twice. */
void tdmi_needed_arrange(struct tdmi_needed *it)
{
    const bool has_views = it->session->views > 0;
    int64_t n = 0;
    if (it->n > 0)
        qsort(it->entries, (size_t)it->n, sizeof *it->entries,
              has_views ? by_part_and_place : by_place);
    for (int64_t i = 0; i < it->n; i++)
        if (n == 0 || by_part_and_place(&it->entries[n - 1], &it->entries[i]) != 0)
            it->entries[n++] = it->entries[i];
    it->n = n;
}

void tdmi_needed_release(struct tdmi_needed *it)
{
    tdmi_free(it->entries);
    *it = (struct tdmi_needed){0};
}
