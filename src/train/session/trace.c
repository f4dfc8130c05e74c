/* The file of --trace: the lanes of all ranks, gathered by rank 0 when a training ends or stops. */
#include "base/scope.h"
#include "tandem/log.h"
#include "track/timeline.h"
#include "train/session/session.h"

#include <stdio.h>

/* Ranks that trained together end together; where rank 0 trained alone, the others have no steps.
 */
static int ranks_in_file(const struct tdmi_session *session)
{
    return tdmi_ranks_share_steps(session) ? tdmi_ranks_world(session) : 1;
}

/* On rank 0: the packed lanes of n ranks, side by side, and how far their clocks are ahead. */
struct gathered {
    char *bytes;
    size_t *sizes;
    int64_t *ahead_ns;
};

static void release_gathered(struct gathered *gathered)
{
    tdmi_free(gathered->bytes);
    tdmi_free(gathered->sizes);
    tdmi_free(gathered->ahead_ns);
}

static tdm_status gather(struct tdmi_session *session, int n, struct gathered *all, tdm_error *err)
{
    tdmi_comm *comm = session->compute.comm;
    const int rank = tdmi_comm_rank(comm);
    TDMI_AT_END(tdmi_free_at) void *mine = NULL;
    size_t n_mine, n_all = 0;
    TDMI_TRY(TDMI_NEW(all->sizes, n, err));
    TDMI_TRY(TDMI_NEW(all->ahead_ns, n, err));
    TDMI_TRY(tdmi_trace_pack(session->compute.trace, &mine, &n_mine, err));
    all->sizes[0] = n_mine;
    if (n == 1) {
        all->bytes = tdmi_take(&mine);
        return TDM_OK;
    }
    TDMI_TRY(tdmi_comm_compare_clocks(comm, all->ahead_ns, err));
    for (int r = 0; r < n; r++)
        all->sizes[r] = sizeof n_mine;
    TDMI_AT_END(tdmi_free_at) size_t *sizes = NULL;
    TDMI_TRY(TDMI_NEW(sizes, n, err));
    TDMI_TRY(tdmi_comm_gather(comm, &n_mine, all->sizes, sizes, err));
    if (rank > 0)
        sizes[rank] = n_mine;
    for (int r = 0; r < n; r++)
        n_all += all->sizes[r] = sizes[r];
    TDMI_TRY(TDMI_NEW(all->bytes, (rank == 0 ? n_all : 0) + 1, err));
    TDMI_TRY(tdmi_comm_gather(comm, mine, all->sizes, all->bytes, err));
    /* After a stop a rank leaves by an abort, which must not overtake what it has sent. */
    return tdmi_comm_broadcast(comm, &n_all, sizeof n_all, err);
}

static tdm_status write_file(struct tdmi_session *session, int n, const struct gathered *all,
                             struct tdmi_timeline_facts *facts, tdm_error *err)
{
    const tdmi_graph *graph = session->network.graph;
    TDMI_AT_END(tdmi_free_at) struct tdmi_timeline_rank *ranks = NULL;
    TDMI_AT_END(tdmi_free_at) const char **layers = NULL;
    size_t at = 0;
    TDMI_TRY(TDMI_NEW(ranks, n, err));
    TDMI_TRY(TDMI_NEW(layers, graph->n_nodes, err));
    for (int i = 0; i < graph->n_nodes; i++)
        layers[i] = graph->nodes[i].name;
    for (int r = 0; r < n; at += all->sizes[r++])
        ranks[r] = (struct tdmi_timeline_rank){all->bytes + at, all->sizes[r], all->ahead_ns[r]};
    const struct tdmi_timeline timeline = {ranks, n, layers, graph->n_nodes};
    return tdmi_timeline_write(&timeline, session->config.options.trace, facts, err);
}

static void report(const struct tdmi_session *session, int n, const struct tdmi_timeline_facts *it)
{
    const char *path = session->config.options.trace;
    char ranks[32] = "";
    if (n > 1)
        snprintf(ranks, sizeof ranks, " of %d ranks", n);
    if (it->n_dropped == 0)
        tdmi_record_note(&session->record, "--trace: steps %lld to %lld%s are in %s",
                         (long long)it->first_step, (long long)it->last_step, ranks, path);
    else
        tdmi_record_note(&session->record,
                         "--trace: steps %lld to %lld%s are in %s; what was before them did not "
                         "fit: a thread keeps its last %d events",
                         (long long)it->first_step, (long long)it->last_step, ranks, path,
                         (int)TDMI_TRACE_EVENTS);
}

static tdm_status write_trace(struct tdmi_session *session, tdm_error *err)
{
    TDMI_AT_END(release_gathered) struct gathered all = {0};
    struct tdmi_timeline_facts facts;
    const int n = ranks_in_file(session);
    tdmi_data_close_feeds(&session->data); /* their threads record */
    tdmi_comm_trace(session->compute.comm, NULL, NULL);
    TDMI_TRY(gather(session, n, &all, err));
    if (tdmi_ranks_is_follower(session))
        return TDM_OK;
    TDMI_TRY(write_file(session, n, &all, &facts, err));
    report(session, n, &facts);
    return TDM_OK;
}

void tdmi_session_write_trace(struct tdmi_session *session, tdm_status ended)
{
    tdm_error why = {0};
    char text[TDM_ERROR_TEXT_BYTES];
    const bool is_together =
        ranks_in_file(session) == 1 || ended == TDM_OK || session->agreed.is_stopping;
    if (!session->compute.trace)
        return;
    if (is_together && write_trace(session, &why) == TDM_OK)
        return;
    tdm_error_line(&why, text, sizeof text);
    tdm_log(TDM_LOG_WARNING, "--trace: there is no %s: %s", session->config.options.trace,
            is_together ? text : "the ranks were stopped at different steps");
}
