/*
 * How a job ended whose ranks another launcher has started: by what the ranks reported
 * (base/text/rank_line.h). The launcher's own status says nothing that all launchers mean alike.
 */
#pragma once

#include "base/scope.h"
#include "launch/job.h"

struct tdmi_ends {
    int world;
    unsigned char *states; /* of each rank */
    int n_begun, n_ended;  /* n_begun: those that have ended too */
    int status;            /* the first that is not 0 */
    bool has_result;       /* rank 0 ended with 0 */
};

tdm_status tdmi_ends_begin(struct tdmi_ends *ends, int world, tdm_error *err) TDM_MUST_USE;
void tdmi_ends_release(struct tdmi_ends *ends);
/* Takes what a line of standard error reports; false: it reports nothing. The line is cut before
 * the report. */
bool tdmi_ends_take(struct tdmi_ends *ends, char *line);
/* was_stopped: on request. Where no rank began the status is that of TDM_E_ABSENT. */
void tdmi_ends_conclude(const struct tdmi_ends *ends, bool was_stopped, struct tdmi_job_end *end);
