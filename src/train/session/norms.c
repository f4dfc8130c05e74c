/*
 * What becomes of batch norms: how fast the running statistics of those that are trained follow,
 * and the line that tells of all.
 */
#include "graph/norms.h"
#include "train/session/session.h"

#include <stdio.h>

void tdmi_session_quicken_norms(struct tdmi_session *session)
{
    if (!session->weights || session->keeps_statistics)
        return;
    const int n =
        tdmi_norms_quicken(session->graph, session->last_freeze_point, TDMI_LEAST_MOMENTUM);
    if (n > 0 && tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tdmi_session_note(
            session,
            "running statistics of %d batch norms go %g of the way in a step; as slow "
            "as the weights say, they would not follow what is trained",
            n, TDMI_LEAST_MOMENTUM);
}

void tdmi_session_report_norms(struct tdmi_session *session)
{
    const int all = tdmi_norms_count(session->graph, 0);
    const int trained = tdmi_norms_count(session->graph, session->first_trained);
    char frozen[100] = "", how[200] = "";
    if (all == 0)
        return;
    if (trained < all)
        snprintf(frozen, sizeof frozen, "%d frozen, which keep statistics, scale and shift%s",
                 all - trained, trained > 0 ? "; " : "");
    if (trained > 0 && session->keeps_statistics)
        snprintf(how, sizeof how, "%d keep their statistics, scale and shift are trained", trained);
    else if (trained > 0)
        snprintf(how, sizeof how,
                 "%d trained with the statistics of each %s (%d pictures), which the running ones "
                 "follow",
                 trained, session->shares_statistics ? "batch" : "shard",
                 session->shares_statistics ? session->global_batch : session->shard);
    tdmi_session_note(session, "batch norms: %s%s", frozen, how);
}
