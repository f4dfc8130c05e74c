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

typedef struct tdmi_device_sum tdmi_device_sum;

struct tdmi_device_sum_options {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_stream *stream; /* makes the values */
    tdmi_comm *comm;
    tdmi_peers *peers; /* NULL: through the host */
    int64_t n_values;  /* length of an array of gradients */
    int max_groups;    /* that a rank computes */
    bool is_fast;      /* peers may add in any order */
};

/* Everything in the options is lent. */
tdm_status tdmi_device_sum_open(const struct tdmi_device_sum_options *options,
                                tdmi_device_sum **sum, tdm_error *err) TDM_MUST_USE;
void tdmi_device_sum_close(tdmi_device_sum *sum);

/* The same as tdmi_comm_sum, for arrays of the device: a sum of values [first, first + n) that the
 * stream has been asked to make, of which the first n_rounded may be rounded. The arrays of
 * subtrees may change in that range. The sums of a step cover all values from some value on. */
tdm_status tdmi_device_sum_start(tdmi_device_sum *sum, float *const *roots, float *total,
                                 int64_t first, int64_t n, int64_t n_rounded,
                                 tdm_error *err) TDM_MUST_USE;
/* Until all sums are in `total`. */
tdm_status tdmi_device_sum_finish(tdmi_device_sum *sum, tdm_error *err) TDM_MUST_USE;
