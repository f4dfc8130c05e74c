/*
 * Devices of several ranks that send values to each other without the host: part of
 * backend/backend.h.
 *
 * All ranks make the same calls in the same order. Work is queued on a stream, as kernels are. A
 * rank that is lost would keep the others waiting, so whoever waits asks its watch again and again.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tdmi_device;
struct tdmi_stream;
typedef struct tdmi_peers tdmi_peers; /* the devices of all ranks */

/* Names a group of peers: made by one rank, sent to all. */
struct tdmi_peers_id {
    char bytes[128];
};

/* Called while other ranks are waited for; a failure ends the wait and stops the peers. */
struct tdmi_peers_watch {
    tdm_status (*look)(void *self, tdm_error *err);
    void *self;
    double deadline; /* seconds until all have joined */
};

/* Values that are sent to another rank, or received from it. */
struct tdmi_peer_message {
    int rank;
    bool is_sent;
    float *values;
    int64_t n;
};

struct tdmi_peer_table {
    /* Opens the library, which needs no other rank; TDM_E_ABSENT: it is missing. id: gets a new
     * one; NULL: another rank makes it. */
    tdm_status (*open)(struct tdmi_device *device, struct tdmi_peers_id *id, tdmi_peers **peers,
                       tdm_error *err);
    void (*close)(tdmi_peers *peers); /* never waits for other ranks */
    /* Once, before the functions below: connects the devices of all ranks. */
    tdm_status (*join)(tdmi_peers *peers, const struct tdmi_peers_id *id, int rank, int world,
                       struct tdmi_peers_watch watch, tdm_error *err);
    /* All messages at once. Those from one rank to another arrive in the order of the list. */
    tdm_status (*exchange)(tdmi_peers *peers, struct tdmi_stream *stream,
                           const struct tdmi_peer_message *messages, int n, tdm_error *err);
    /* The values of each rank become the sum over all ranks, the same everywhere, in an order that
     * the library chooses. */
    tdm_status (*sum)(tdmi_peers *peers, struct tdmi_stream *stream, float *values, int64_t n,
                      tdm_error *err);
    /* Until the stream's work is done. */
    tdm_status (*wait)(tdmi_peers *peers, struct tdmi_stream *stream, tdm_error *err);
};
