/*
 * The ceiling of a network on a backend: its convolutions and dense layers alone, each shape at its
 * best time.
 */
#pragma once

#include "base/thread.h"
#include "graph/plan.h"

/* Images per second when every thread of the pool (on a GPU: one) runs groups of `images` images
 * through nothing but the plan's convolutions and dense layers, forward and, where the plan trains,
 * backward. seconds is the time to spend. */
tdm_status tdmi_ceiling_measure(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                                int images, double seconds, double *images_per_s,
                                tdm_error *err) TDM_MUST_USE;
