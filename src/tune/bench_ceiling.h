/*
 * The ceiling of a network on a backend: its convolutions and dense layers alone, each shape at its
 * best time.
 */
#pragma once

#include "base/thread.h"
#include "graph/plan.h"

/* Seconds a thread needs for one group of `images` images when every thread of the pool runs one:
 * the sum of best times of the plan's convolutions and dense layers, forward and, where the plan
 * trains, backward. seconds is the time to spend. */
tdm_status tdmi_ceiling_measure(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                                int images, double seconds, double *group_seconds,
                                tdm_error *err) TDM_MUST_USE;
