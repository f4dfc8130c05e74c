/*
 * Data messages. MPI moves bytes only inside its own calls, and few of them per call, so a test is
 * repeated while anything may move.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "dist/mpi/mpi_internal.h"

enum { let_go_ns = 500000000, nap_ns = 100000 };
static const size_t piece_bytes = (size_t)1 << 30;

static tdm_status start_piece(tdmi_transport *transport, const struct tdmi_mpi_pieces *pieces,
                              int index, MPI_Request *request, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    const struct tdmi_message *message = pieces->message;
    const size_t first = (size_t)index * piece_bytes;
    const int n = (int)(message->n - first < piece_bytes ? message->n - first : piece_bytes);
    char *bytes = (char *)message->bytes + first;
    if (pieces->is_received)
        return tdmi_mpi_check(
            transport,
            MPI_Irecv(bytes, n, MPI_BYTE, message->peer, message->channel, mpi->comm, request),
            "receiving from", message->peer, err);
    return tdmi_mpi_check(
        transport,
        MPI_Isend(bytes, n, MPI_BYTE, message->peer, message->channel, mpi->comm, request),
        "sending to", message->peer, err);
}

tdm_status tdmi_mpi_start(tdmi_transport *transport, struct tdmi_message *message, bool is_received,
                          tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    message->is_done = message->n == 0;
    message->n_moved = 0;
    if (message->is_done)
        return TDM_OK;
    const size_t n = (message->n + piece_bytes - 1) / piece_bytes;
    struct tdmi_mpi_pieces *pieces = tdmi_alloc(1, sizeof *pieces + n * sizeof pieces->requests[0]);
    TDMI_CHECK_MEMORY(pieces, err);
    *pieces = (struct tdmi_mpi_pieces){.message = message, .is_received = is_received, .n = (int)n};
    for (int i = 0; i < pieces->n; i++)
        pieces->requests[i] = MPI_REQUEST_NULL;
    struct tdmi_mpi_pieces **end = &mpi->open;
    while (*end)
        end = &(*end)->next;
    *end = pieces;
    for (int i = 0; i < pieces->n; i++)
        TDMI_TRY(start_piece(transport, pieces, i, &pieces->requests[i], err));
    return TDM_OK;
}

/* Count the bytes of a piece that has arrived. */
static tdm_status take_piece(struct tdmi_mpi_pieces *pieces, const MPI_Status *status,
                             tdm_error *err)
{
    struct tdmi_message *message = pieces->message;
    const size_t left = message->n - message->n_moved;
    const size_t expected = left < piece_bytes ? left : piece_bytes;
    int n = (int)expected;
    if (pieces->is_received)
        MPI_Get_count(status, MPI_BYTE, &n);
    pieces->n_done++;
    message->n_moved += (size_t)n;
    if ((size_t)n == expected)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_BUG, "rank %d sent %d bytes on channel %d, and %zu are expected",
                    message->peer, n, message->channel, expected);
}

static tdm_status test_pieces(tdmi_transport *transport, struct tdmi_mpi_pieces *pieces,
                              bool *has_moved, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    struct tdmi_message *message = pieces->message;
    while (pieces->n_done < pieces->n) {
        MPI_Status status;
        int is_done = 0;
        TDMI_TRY(tdmi_mpi_check(
            transport, MPI_Test(&pieces->requests[pieces->n_done], &is_done, &status),
            pieces->is_received ? "receiving from" : "sending to", message->peer, err));
        if (!is_done)
            return TDM_OK;
        *has_moved = true;
        TDMI_TRY(take_piece(pieces, &status, err));
        if (pieces->is_received)
            mpi->peers[message->peer].heard_ns = tdmi_clock_ns();
    }
    return TDM_OK;
}

static tdm_status test_all(tdmi_transport *transport, bool *has_moved, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    for (struct tdmi_mpi_pieces **at = &mpi->open; *at;) {
        struct tdmi_mpi_pieces *pieces = *at;
        TDMI_TRY(test_pieces(transport, pieces, has_moved, err));
        if (pieces->n_done < pieces->n) {
            at = &pieces->next;
            continue;
        }
        pieces->message->is_done = true;
        *at = pieces->next;
        tdmi_free(pieces);
    }
    return TDM_OK;
}

tdm_status tdmi_mpi_move(tdmi_transport *transport, tdm_error *err)
{
    struct tdmi_mpi *mpi = transport;
    enum { most_rounds = 1024, most_idle = 32 };
    int n_idle = 0;
    for (int i = 0; i < most_rounds && n_idle < most_idle && mpi->open; i++) {
        bool has_moved = false;
        TDMI_TRY(test_all(transport, &has_moved, err));
        n_idle = has_moved ? 0 : n_idle + 1;
    }
    return TDM_OK;
}

static bool is_over(struct tdmi_mpi_pieces *pieces)
{
    bool all = true;
    for (int i = 0; i < pieces->n; i++) {
        int is_done = 1;
        if (pieces->requests[i] != MPI_REQUEST_NULL)
            MPI_Test(&pieces->requests[i], &is_done, MPI_STATUS_IGNORE);
        all = all && is_done;
    }
    return all;
}

static void forget_finished(tdmi_transport *transport)
{
    struct tdmi_mpi *mpi = transport;
    for (struct tdmi_mpi_pieces **at = &mpi->open; *at;) {
        struct tdmi_mpi_pieces *pieces = *at;
        if (is_over(pieces)) {
            *at = pieces->next;
            tdmi_free(pieces);
        } else
            at = &pieces->next;
    }
}

/* A receive that nobody has sent for is cancelled; one that is half received, and a send, can only
 * be finished with the help of the peer. That peer may have failed as well, and ends a second after
 * it did (linger in plugin.c); its launcher then kills this rank, which is to report its end. */
void tdmi_mpi_let_go(tdmi_transport *transport)
{
    struct tdmi_mpi *mpi = transport;
    const int64_t until_ns = tdmi_clock_ns() + let_go_ns;
    for (struct tdmi_mpi_pieces *pieces = mpi->open; pieces; pieces = pieces->next)
        for (int i = 0; i < pieces->n && pieces->is_received; i++)
            if (pieces->requests[i] != MPI_REQUEST_NULL)
                MPI_Cancel(&pieces->requests[i]);
    for (forget_finished(transport); mpi->open && tdmi_clock_ns() < until_ns;
         forget_finished(transport))
        tdmi_mpi_nap(nap_ns);
    mpi->is_mute = mpi->open != NULL;
}
