/*
 * Samples the machine's NVIDIA GPUs every few seconds on its own thread and writes lines of
 * RUN/system.jsonl (docs/reference/files.md). It is optional: a failure is logged once, and the run
 * continues.
 */
#pragma once

#include "tandem/error.h"
#include <stdint.h>

typedef struct tdmi_sampler tdmi_sampler;

/* Sample into folder/system.jsonl every every_ms (0: 5000). library: NULL for the driver's. It is
 * opened on the thread, too: where there is no driver, there will be no file. */
tdm_status tdmi_sampler_start(const char *folder, const char *library, int64_t every_ms,
                              tdmi_sampler **sampler, tdm_error *err) TDM_MUST_USE;
/* After a last look. Accepts NULL. */
void tdmi_sampler_stop(tdmi_sampler *sampler);
/* Update the position of the run; any thread. */
void tdmi_sampler_place(tdmi_sampler *sampler, int64_t step);
