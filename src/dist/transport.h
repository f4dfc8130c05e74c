/*
 * A transport moves bytes between the ranks of a job, from one to another. Transports are lines of
 * transports.def; collectives are written once above them (comm.h). One thread makes all calls.
 *
 * A message is the caller's, and so are its bytes until is_done. Messages from one rank to another
 * on one channel arrive in the order in which they were sent, and both sides must give the same
 * number of bytes.
 */
#pragma once

#include "dist/launch.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TDMI_CHANNELS = 3, TDMI_BEAT_BYTES = 64 };
/* The words of a heartbeat begin with these where its rank was asked to stop. */
#define TDMI_BEAT_STOP "asked to stop, "

struct tdmi_message {
    int peer, channel;
    void *bytes; /* what is sent is not changed */
    size_t n;
    bool is_done;
    /* the transport's */
    size_t n_moved;
    struct tdmi_message *next;
};

typedef void tdmi_transport; /* each has its own struct */

struct tdmi_transport_table {
    const char *name;
    /* Where it is a plugin: opens that, and sets *table to the plugin's. All else is NULL then. */
    tdm_status (*load)(const struct tdmi_launch *launch, const struct tdmi_transport_table **table,
                       tdm_error *err);
    /* Until all ranks are there, or the deadline of the launch is over. */
    tdm_status (*open)(const struct tdmi_launch *launch, tdmi_transport **transport,
                       tdm_error *err);
    void (*close)(tdmi_transport *transport);
    /* Messages of 0 bytes are done at once and never sent. */
    tdm_status (*send)(tdmi_transport *transport, struct tdmi_message *message, tdm_error *err);
    tdm_status (*receive)(tdmi_transport *transport, struct tdmi_message *message, tdm_error *err);
    /* Moves what can be moved without waiting. TDM_E_PEER: a rank is lost that a message waits for,
     * or any rank where all are needed. One that has aborted: its status, by tdmi_transport_ended.
     */
    tdm_status (*progress)(tdmi_transport *transport, bool needs_all, tdm_error *err);
    /* May be NULL. The caller gives up: afterwards open messages have no bytes any more. A call
     * that fails does the same by itself. */
    void (*let_go)(tdmi_transport *transport);
    /* Until progress may move something; at most so long. */
    void (*sleep)(tdmi_transport *transport, int64_t ns);
    const char *(*host_of)(const tdmi_transport *transport, int rank);
    /* Tells all others that this process lives, and what it is at; when a rank was last heard of
     * (base/clock.h), and what it was at, "" where it has not said. */
    void (*beat)(tdmi_transport *transport, const char words[TDMI_BEAT_BYTES]);
    int64_t (*heard_ns)(const tdmi_transport *transport, int rank);
    const char *(*said)(const tdmi_transport *transport, int rank);
    int (*ended_by)(const tdmi_transport *transport); /* the rank that has aborted; -1: none */
    /* Sends all others the words that end the job; afterwards only close may be called. A message
     * that is half sent is finished before it, unless its bytes are gone: then its receiver only
     * sees that the connection ends. */
    void (*abandon)(tdmi_transport *transport, const char *words, bool has_bytes);
};

/* Words of an abort: a status and a sentence. */
enum { TDMI_ABORT_BYTES = TDM_ERROR_TEXT_BYTES + 1 };
void tdmi_transport_abort_words(tdm_status status, const tdm_error *why,
                                char words[TDMI_ABORT_BYTES]);
/* The error of a rank that has aborted: its status and its words. */
tdm_status tdmi_transport_ended(int rank, const char *host, const char *words, tdm_error *err);

/* Has this build a part for the MPI "openmpi" or "mpich"? */
bool tdmi_mpi_is_built(const char *name);

tdm_status tdmi_transport_find(const char *name, const struct tdmi_transport_table **table,
                               tdm_error *err) TDM_MUST_USE;
