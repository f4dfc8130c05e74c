/*
 * Pages of fresh memory lie on the NUMA node of the thread that writes to them first. Arrays that
 * one thread fills, but all threads read and update, are spread over the nodes beforehand.
 */
#pragma once

#include "base/thread.h"

/* Let the workers write to every page of new, zeroed memory of tdmi_alloc_large, which stays
 * zeroed. Small blocks, which fit into caches, are left as they are. */
void tdmi_touch_spread(tdmi_pool *pool, void *memory, size_t bytes);
