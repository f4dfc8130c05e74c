/* Metrics of an evaluation, computed from its outcomes. */
#pragma once

#include "tandem/metrics.h"
#include "train/evaluate/outcomes.h"

/* classes: names by index, lent for the metrics' life. Counts do not depend on the order of the
 * outcomes; loss and confidence are added in it. */
tdm_status tdmi_metrics_of(const tdmi_outcomes *outcomes, const char *const *classes,
                           struct tdm_metrics *metrics, tdm_error *err) TDM_MUST_USE;
