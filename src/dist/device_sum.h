/*
 * Sums over ranks of values that lie on devices with memory of their own. While a sum is on its
 * way, the device computes the values of the next one:
 *
 *     device   segment 2   segment 1   segment 0
 *     sums                 [2         ][1         ][0] finish
 *
 * There are two paths. All ranks take the same, and exact sums have the same bits on both:
 *
 *   peers   devices send to each other (backend/peers.h), on a stream of the sums' own
 *   host    values go through pinned memory to the communicator, and back
 */
#pragma once

#include "backend/backend.h"
#include "dist/comm.h"

struct tdmi_device_sum {
    /* Set by the caller, and lent: */
    const struct tdmi_backend *backend; /* NULL: nothing is open */
    tdmi_device *device;
    tdmi_stream *stream; /* makes the values */
    tdmi_comm *comm;
    tdmi_peers *peers; /* NULL: through the host */
    int64_t n_values;  /* length of an array of gradients */
    int most_roots;    /* subtrees that a rank computes */

    /* Peers: device memory, two chunks for each subtree. Host: pinned arrays of the subtrees of
     * this rank, of which the first gets the sum. */
    float *room;
    /* peers */
    int64_t chunk_values;
    tdmi_stream *sums;
    tdmi_event *is_made;
    struct tdmi_peer_message *messages;
    int n_messages;
};

/* Reserves what the sums need, also released after a failure. */
tdm_status tdmi_device_sum_init(struct tdmi_device_sum *sum, tdm_error *err) TDM_MUST_USE;
void tdmi_device_sum_release(struct tdmi_device_sum *sum);

/* The same as tdmi_comm_sum, for arrays of the device: a sum of values [first, first + n) that the
 * stream has been asked to make, of which the first n_rounded may be rounded; if there are such
 * values, peers add all of them in any order. total is the first of the roots, on a rank without
 * any an array that is free. The others may change in that range. */
tdm_status tdmi_device_sum_start(struct tdmi_device_sum *sum, float *const *roots, float *total,
                                 int64_t first, int64_t n, int64_t n_rounded,
                                 tdm_error *err) TDM_MUST_USE;
/* Until the sums of a step are in `total`: of all values from `first` on. */
tdm_status tdmi_device_sum_finish(struct tdmi_device_sum *sum, float *total, int64_t first,
                                  tdm_error *err) TDM_MUST_USE;
