/* Gathering: texts, outcomes and skipped images of all ranks on rank 0. */
#include "base/scope.h"
#include "train/session/session.h"

#include <stdlib.h>
#include <string.h>

/* How much each rank has, for a gather: on rank 0 of all, elsewhere of this one; and sizes, to be
 * set. */
static tdm_status gather_counts(struct tdmi_session *session, int64_t n, int64_t **counts,
                                size_t **sizes, tdm_error *err)
{
    const int world = tdmi_ranks_world(session), rank = tdmi_comm_rank(session->compute.comm);
    TDMI_TRY(TDMI_NEW(*counts, world, err));
    TDMI_TRY(TDMI_NEW(*sizes, world, err));
    for (int r = 0; r < world; r++)
        (*sizes)[r] = sizeof n;
    TDMI_TRY(tdmi_comm_gather(session->compute.comm, &n, *sizes, *counts, err));
    (*counts)[rank] = n;
    return TDM_OK;
}

/* The texts of all ranks follow each other on rank 0; the others keep their own. */
tdm_status tdmi_ranks_gather_text(struct tdmi_session *session, tdmi_text *text, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) int64_t *counts = NULL;
    TDMI_AT_END(tdmi_free_at) size_t *sizes = NULL;
    TDMI_AT_END(tdmi_text_release) tdmi_text all = {0};
    size_t total = 0;
    TDMI_TRY(gather_counts(session, (int64_t)text->length_bytes, &counts, &sizes, err));
    for (int r = 0; r < tdmi_ranks_world(session); r++) {
        sizes[r] = (size_t)counts[r];
        total += sizes[r];
    }
    char *room = tdmi_text_room(&all, total);
    TDMI_CHECK_MEMORY(room, err);
    TDMI_TRY(tdmi_comm_gather(session->compute.comm, tdmi_text_string(text), sizes, room, err));
    if (tdmi_ranks_is_follower(session))
        return TDM_OK;
    tdmi_text_release(text);
    *text = all;
    all = (tdmi_text){0};
    return TDM_OK;
}

/* The arrays of outcomes. */
static void list_arrays(tdmi_outcomes *of, void *arrays[7], size_t widths[7])
{
    void *const all[7] = {of->contents,      of->labels,      of->predicted, of->ranks,
                          of->probabilities, of->confidences, of->losses};
    const size_t sizes[7] = {sizeof *of->contents,      sizeof *of->labels,
                             sizeof *of->predicted,     sizeof *of->ranks,
                             sizeof *of->probabilities, sizeof *of->confidences,
                             sizeof *of->losses};
    memcpy(arrays, all, sizeof all);
    memcpy(widths, sizes, sizeof sizes);
}

tdm_status tdmi_ranks_gather_outcomes(struct tdmi_session *session, tdmi_outcomes *outcomes,
                                      tdm_error *err)
{
    const int world = tdmi_ranks_world(session), rank = tdmi_comm_rank(session->compute.comm);
    TDMI_AT_END(tdmi_free_at) size_t *sizes = NULL;
    TDMI_AT_END(tdmi_free_at) int64_t *counts = NULL;
    void *arrays[7];
    size_t widths[7];
    if (!tdmi_ranks_share_steps(session))
        return TDM_OK;
    TDMI_TRY(gather_counts(session, outcomes->n, &counts, &sizes, err));
    list_arrays(outcomes, arrays, widths);
    for (int a = 0; a < 7; a++) {
        for (int r = 0; r < world; r++)
            sizes[r] = widths[a] * (size_t)counts[r];
        TDMI_TRY(tdmi_comm_gather(session->compute.comm, arrays[a], sizes, arrays[a], err));
    }
    for (int r = 1; r < world && rank == 0; r++)
        outcomes->n += counts[r];
    return TDM_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct tdmi_skip *left = a, *right = b;
    if (left->epoch != right->epoch)
        return left->epoch < right->epoch ? -1 : 1;
    return (left->position > right->position) - (left->position < right->position);
}

/* An image that several ranks have met stays where it came first. */
static int64_t drop_repeated(struct tdmi_skip *skips, int64_t n)
{
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n; i++) {
        bool is_new = true;
        for (int64_t k = 0; k < n_kept && is_new; k++)
            is_new = skips[k].item != skips[i].item;
        if (is_new)
            skips[n_kept++] = skips[i];
    }
    return n_kept;
}

tdm_status tdmi_ranks_gather_skips(struct tdmi_session *session, struct tdmi_skip **skips,
                                   int64_t *n, tdm_error *err)
{
    const int world = tdmi_ranks_world(session);
    TDMI_AT_END(tdmi_free_at) struct tdmi_skip *all = NULL;
    TDMI_AT_END(tdmi_free_at) int64_t *counts = NULL;
    TDMI_AT_END(tdmi_free_at) size_t *sizes = NULL;
    TDMI_TRY(gather_counts(session, *n, &counts, &sizes, err));
    int64_t total = 0;
    for (int r = 0; r < world; r++) {
        sizes[r] = sizeof *all * (size_t)counts[r];
        total += counts[r];
    }
    TDMI_TRY(TDMI_NEW(all, total + 1, err));
    TDMI_TRY(tdmi_comm_gather(session->compute.comm, *skips, sizes, all, err));
    if (tdmi_ranks_is_follower(session))
        return TDM_OK;
    qsort(all, (size_t)total, sizeof *all, by_place);
    *n = drop_repeated(all, total);
    tdmi_free(*skips);
    *skips = tdmi_take(&all);
    return TDM_OK;
}
