/* Counts the reports of ranks and derives from them how the job ended. */
#include "launch/ends.h"
#include "base/text/rank_line.h"

enum { unknown, begun, ended };

tdm_status tdmi_ends_begin(struct tdmi_ends *ends, int world, tdm_error *err)
{
    *ends = (struct tdmi_ends){.world = world};
    return TDMI_NEW(ends->states, world, err);
}

void tdmi_ends_release(struct tdmi_ends *ends)
{
    tdmi_free(ends->states);
}

bool tdmi_ends_take(struct tdmi_ends *ends, char *line)
{
    struct tdmi_rank_line report;
    if (!tdmi_rank_line_read(line, &report) || report.rank >= ends->world)
        return false;
    unsigned char *state = &ends->states[report.rank];
    line[report.before_bytes] = '\0';
    ends->n_begun += *state == unknown;
    ends->n_ended += *state != ended && report.status >= 0;
    if (*state != ended)
        *state = report.status >= 0 ? ended : begun;
    if (report.status > 0 && ends->status == 0)
        ends->status = report.status;
    ends->has_result = ends->has_result || (report.rank == 0 && report.status == 0);
    return true;
}

/* The only rank that began and did not report its end, or -1. */
static int only_missing(const struct tdmi_ends *ends)
{
    int found = -1;
    for (int r = 0; r < ends->world; r++)
        if (ends->states[r] == begun) {
            if (found >= 0)
                return -1;
            found = r;
        }
    return found;
}

/* Survivors of a lost rank may have been stopped by the launcher's SIGTERM, whose status says
 * nothing of the job. */
void tdmi_ends_conclude(const struct tdmi_ends *ends, bool was_stopped, struct tdmi_job_end *end)
{
    const int lost = tdm_status_exit(TDM_E_PEER), stopped = tdm_status_exit(TDM_E_STOPPED);
    const int n_missing = ends->n_begun - ends->n_ended;
    *end = (struct tdmi_job_end){.lost_rank = -1, .is_unbegun = ends->n_begun == 0};
    if (end->is_unbegun)
        end->exit_status = tdm_status_exit(TDM_E_ABSENT);
    else if (!ends->has_result && ends->status > 0 &&
             (ends->status != stopped || was_stopped || n_missing == 0))
        end->exit_status = ends->status;
    else if (!ends->has_result)
        end->exit_status = lost;
    if (end->exit_status == lost && !was_stopped)
        end->lost_rank = only_missing(ends);
}
