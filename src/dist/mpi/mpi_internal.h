/*
 * The transport over MPI as its own files see it. They are compiled once for each MPI, because
 * Open MPI and MPICH differ in their binary interface.
 */
#pragma once

#include "dist/transport.h"

#include <mpi.h>

/* The tag of control messages; data has its channel as tag. */
enum { TDMI_MPI_CONTROL = TDMI_CHANNELS };

/* A data message in pieces, because the count of an MPI call is an int. All pieces are started at
 * once: messages of one tag arrive in the order in which they were started. */
struct tdmi_mpi_pieces {
    struct tdmi_message *message;
    struct tdmi_mpi_pieces *next;
    bool is_received;
    int n, n_done;
    MPI_Request requests[];
};

/* Control messages to and from another rank. */
struct tdmi_mpi_peer {
    int64_t heard_ns;
    MPI_Request receiving; /* posted until the peer has sent its last one */
    MPI_Request beating;
    MPI_Request leaving;                 /* the last one: words of an abort, or goodbye */
    char received[1 + TDMI_ABORT_BYTES]; /* kind, then words */
    char beat[1 + TDMI_BEAT_BYTES];      /* that is sent */
    char said[TDMI_BEAT_BYTES];
    bool has_left, has_aborted;
};

struct tdmi_mpi {
    MPI_Comm comm;
    int rank, world;
    double deadline;   /* seconds */
    bool has_started;  /* MPI; else the program that called tandem did */
    bool is_joined;    /* control messages may be sent */
    bool is_mute;      /* make no more MPI calls: a message is open whose bytes are gone */
    int64_t failed_ns; /* when the job failed; 0: it has not */
    struct tdmi_mpi_pieces *open;
    struct tdmi_mpi_peer *peers;
    char (*hosts)[MPI_MAX_PROCESSOR_NAME];
    char last[1 + TDMI_ABORT_BYTES]; /* that is sent */
};

/* A call of MPI that fails: TDM_E_PEER with MPI's text. action: "receiving from". */
tdm_status tdmi_mpi_check(const tdmi_transport *transport, int code, const char *action, int peer,
                          tdm_error *err) TDM_MUST_USE;
void tdmi_mpi_nap(int64_t ns);

/* ---- data.c ---------------------------------------------------------------------------------- */

tdm_status tdmi_mpi_start(tdmi_transport *transport, struct tdmi_message *message, bool is_received,
                          tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_mpi_move(tdmi_transport *transport, tdm_error *err) TDM_MUST_USE;
/* The bytes of open messages will be gone: cancel what can be cancelled and finish the rest. */
void tdmi_mpi_let_go(tdmi_transport *transport);

/* ---- control.c ------------------------------------------------------------------------------- */

/* Post the receives of control messages. */
tdm_status tdmi_mpi_listen(tdmi_transport *transport, tdm_error *err) TDM_MUST_USE;
/* Take what has arrived. */
tdm_status tdmi_mpi_hear(tdmi_transport *transport, tdm_error *err) TDM_MUST_USE;
void tdmi_mpi_beat(tdmi_transport *transport, const char words[TDMI_BEAT_BYTES]);
int tdmi_mpi_ended_by(const tdmi_transport *transport);
void tdmi_mpi_abort(tdmi_transport *transport, const char *words, bool has_bytes);
/* Say goodbye and wait for the goodbye of all others. False: one of them failed or is silent. */
bool tdmi_mpi_part(tdmi_transport *transport);
