/*
 * Control messages: one tag, so each rank hears another's in the order in which they were sent. A
 * beat says that the sender lives. Last comes the reason of an abort, or a goodbye; when all have
 * said goodbye nothing is open any more and MPI can be ended without waiting.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "dist/mpi/mpi_internal.h"

#include <stdio.h>

enum { second_ns = 1000000000, nap_ns = 500000 };
enum { kind_beat = 'b', kind_abort = 'a', kind_goodbye = 'g' };

static tdm_status listen_to(tdmi_transport *transport, int rank, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    struct tdmi_mpi_peer *peer = &mpi->peers[rank];
    return tdmi_mpi_check(transport,
                          MPI_Irecv(peer->received, sizeof peer->received, MPI_CHAR, rank,
                                    TDMI_MPI_CONTROL, mpi->comm, &peer->receiving),
                          "listening to", rank, err);
}

tdm_status tdmi_mpi_listen(tdmi_transport *transport, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    for (int rank = 0; rank < mpi->world; rank++) {
        mpi->peers[rank] = (struct tdmi_mpi_peer){.heard_ns = tdmi_clock_ns(),
                                                  .receiving = MPI_REQUEST_NULL,
                                                  .beating = MPI_REQUEST_NULL,
                                                  .leaving = MPI_REQUEST_NULL,
                                                  .has_left = rank == mpi->rank};
    }
    mpi->is_joined = true;
    for (int rank = 0; rank < mpi->world; rank++)
        if (rank != mpi->rank)
            TDMI_TRY(listen_to(transport, rank, err));
    return TDM_OK;
}

static tdm_status hear_from(tdmi_transport *transport, int rank, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    struct tdmi_mpi_peer *peer = &mpi->peers[rank];
    while (!peer->has_left) {
        MPI_Status status;
        int is_done = 0, n = 0;
        TDMI_TRY(tdmi_mpi_check(transport, MPI_Test(&peer->receiving, &is_done, &status),
                                "listening to", rank, err));
        if (!is_done)
            return TDM_OK;
        MPI_Get_count(&status, MPI_CHAR, &n);
        peer->heard_ns = tdmi_clock_ns();
        peer->received[n < (int)sizeof peer->received ? n : (int)sizeof peer->received - 1] = '\0';
        peer->has_aborted = peer->received[0] == kind_abort;
        peer->has_left = peer->received[0] != kind_beat;
        if (peer->has_left)
            return TDM_OK;
        snprintf(peer->said, sizeof peer->said, "%.*s", TDMI_BEAT_BYTES - 1, peer->received + 1);
        TDMI_TRY(listen_to(transport, rank, err));
    }
    return TDM_OK;
}

tdm_status tdmi_mpi_hear(tdmi_transport *transport, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    for (int rank = 0; rank < mpi->world; rank++)
        TDMI_TRY(hear_from(transport, rank, err));
    const int by = tdmi_mpi_ended_by(transport);
    if (by < 0)
        return TDM_OK;
    return tdmi_transport_ended(by, mpi->hosts[by], mpi->peers[by].received + 1, err);
}

int tdmi_mpi_ended_by(const tdmi_transport *transport)
{
    const struct tdmi_mpi *mpi = transport;
    for (int rank = 0; rank < mpi->world; rank++)
        if (mpi->peers[rank].has_aborted)
            return rank;
    return -1;
}

static bool is_sent(MPI_Request *request)
{
    int is_done = 1;
    if (*request != MPI_REQUEST_NULL && MPI_Test(request, &is_done, MPI_STATUS_IGNORE) != 0)
        *request = MPI_REQUEST_NULL; /* its receiver is lost, which others report */
    return is_done != 0;
}

/* A peer that has not taken the last beat yet needs no other. */
void tdmi_mpi_beat(tdmi_transport *transport, const char words[TDMI_BEAT_BYTES])
{
    struct tdmi_mpi *mpi = transport;
    for (int rank = 0; rank < mpi->world; rank++) {
        struct tdmi_mpi_peer *peer = &mpi->peers[rank];
        if (peer->has_left || !is_sent(&peer->beating))
            continue;
        const int n = snprintf(peer->beat, sizeof peer->beat, "%c%.*s", kind_beat,
                               TDMI_BEAT_BYTES - 1, words);
        MPI_Isend(peer->beat, n, MPI_CHAR, rank, TDMI_MPI_CONTROL, mpi->comm, &peer->beating);
    }
}

/* The last message to all others. */
static void leave(tdmi_transport *transport, char kind, const char *words)
{
    struct tdmi_mpi *mpi = transport;
    const int n = snprintf(mpi->last, sizeof mpi->last, "%c%s", kind, words);
    for (int rank = 0; rank < mpi->world; rank++)
        if (rank != mpi->rank && !mpi->peers[rank].has_aborted)
            MPI_Isend(mpi->last, n, MPI_CHAR, rank, TDMI_MPI_CONTROL, mpi->comm,
                      &mpi->peers[rank].leaving);
}

static bool has_left_all(tdmi_transport *transport)
{
    struct tdmi_mpi *mpi = transport;
    bool all = true;
    for (int rank = 0; rank < mpi->world; rank++) {
        struct tdmi_mpi_peer *peer = &mpi->peers[rank];
        const bool is_beat_sent = is_sent(&peer->beating);
        all = is_sent(&peer->leaving) && is_beat_sent && all;
    }
    return all;
}

/* A peer that takes nothing for a second is left without the words. Words of another rank are not
 * repeated: it sends them to all. */
void tdmi_mpi_abort(tdmi_transport *transport, const char *words, bool has_bytes)
{
    struct tdmi_mpi *mpi = transport;
    const int64_t until_ns = tdmi_clock_ns() + second_ns;
    if (!has_bytes && mpi->open)
        mpi->is_mute = true;
    mpi->failed_ns = mpi->failed_ns ? mpi->failed_ns : tdmi_clock_ns();
    if (mpi->is_mute || tdmi_mpi_ended_by(transport) >= 0)
        return;
    leave(transport, kind_abort, words);
    while (!has_left_all(transport) && tdmi_clock_ns() < until_ns)
        tdmi_mpi_nap(nap_ns);
}

/* Is somebody silent whose goodbye is awaited? */
static bool is_anyone_silent(const tdmi_transport *transport, int64_t began_ns)
{
    const struct tdmi_mpi *mpi = transport;
    for (int rank = 0; rank < mpi->world; rank++) {
        const struct tdmi_mpi_peer *peer = &mpi->peers[rank];
        const int64_t since_ns = peer->heard_ns > began_ns ? peer->heard_ns : began_ns;
        if (!peer->has_left &&
            (double)(tdmi_clock_ns() - since_ns) > mpi->deadline * (double)second_ns)
            return true;
    }
    return false;
}

static bool have_all_left(const tdmi_transport *transport)
{
    const struct tdmi_mpi *mpi = transport;
    bool all = true;
    for (int rank = 0; rank < mpi->world; rank++)
        all = all && mpi->peers[rank].has_left;
    return all;
}

bool tdmi_mpi_part(tdmi_transport *transport)
{
    const int64_t began_ns = tdmi_clock_ns();
    leave(transport, kind_goodbye, "");
    while (!has_left_all(transport) || !have_all_left(transport)) {
        if (tdmi_mpi_hear(transport, NULL) != TDM_OK || is_anyone_silent(transport, began_ns))
            return false;
        tdmi_mpi_nap(nap_ns);
    }
    return true;
}
