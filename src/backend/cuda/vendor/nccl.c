/*
 * GPUs of several ranks, by NCCL. Its communicator does not block: a call that needs other ranks
 * returns "in progress", and is asked about until it is done. So a rank that waits can look whether
 * the others still live, and abort, which is the only way to end a kernel that waits for a lost
 * one.
 *
 * An abort is also how peers are closed: a caller has waited for all that it queued, and
 * ncclCommFinalize would wait for ranks that may have failed.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/libraries.h"
#include "backend/cuda/vendor/nccl_api.h"
#include "base/clock.h"
#include "base/scope.h"

#include <time.h>

struct tdmi_peers {
    tdmi_device *device;
    struct tdmi_peers_watch watch;
    void *library;
    struct tdmi_nccl_calls calls;
    void *comm; /* NULL: not joined, or stopped; NCCL refuses it */
};

enum { spin_ns = 200 * 1000, rest_ns = 50 * 1000 };
static const double naming_seconds = 2.0; /* for the watch to name the rank that NCCL has lost */

/* ---- opening the library --------------------------------------------------------------------- */

static int version_of(const void *self)
{
    const struct tdmi_nccl_calls *calls = self;
    int version = 0;
    return calls->version(&version) == TDMI_NCCL_SUCCESS ? version : 0;
}

static const char *const names[] = {"libnccl.so.2", NULL};
static const char *const folders[] = {"nvidia/nccl/lib", NULL};
#define X(field, symbol, result, parameters) #symbol,
static const char *const symbols[] = {TDMI_NCCL_CALLS(X) NULL};
#undef X
const struct tdmi_cuda_library tdmi_nccl_library = {
    "NCCL",
    "GPUs exchange gradients through the CPU's memory",
    names,
    folders,
    symbols,
    version_of,
    TDMI_NCCL_CONFIG_VERSION};

/* ---- waiting --------------------------------------------------------------------------------- */

static void stop(tdmi_peers *peers)
{
    if (!peers->comm)
        return;
    tdmi_cuda_make_current(peers->device);
    (void)peers->calls.leave(peers->comm);
    peers->comm = NULL;
}

/* A moment; then a look at the other ranks. */
static tdm_status rest(tdmi_peers *peers, int64_t began_ns, tdm_error *err)
{
    if (tdmi_clock_ns() - began_ns < spin_ns)
        return TDM_OK;
    (void)nanosleep(&(struct timespec){.tv_nsec = rest_ns}, NULL);
    const tdm_status status = peers->watch.look(peers->watch.self, err);
    if (status != TDM_OK)
        stop(peers);
    return status;
}

/* NCCL sees that a rank is lost, but not which: the watch may know soon. */
static tdm_status fail(tdmi_peers *peers, int code, const char *what, tdm_error *err)
{
    const int64_t began_ns = tdmi_clock_ns();
    while (peers->comm && tdmi_clock_seconds_since(began_ns) < naming_seconds)
        TDMI_TRY(rest(peers, began_ns, err));
    stop(peers);
    return TDM_FAIL(err, code == TDMI_NCCL_REMOTE_ERROR ? TDM_E_PEER : TDM_E_SYSTEM,
                    "%s on GPU %d (%s): NCCL says %d, %s; NCCL_DEBUG=WARN makes it say more", what,
                    peers->device->index, peers->device->name, code, peers->calls.words(code));
}

/* Until a call that returned this code is done; deadline 0: however long the others live. */
static tdm_status settle(tdmi_peers *peers, int code, double deadline, const char *what,
                         tdm_error *err)
{
    const int64_t began_ns = tdmi_clock_ns();
    while (code == TDMI_NCCL_IN_PROGRESS) {
        TDMI_TRY(rest(peers, began_ns, err));
        if (deadline > 0.0 && tdmi_clock_seconds_since(began_ns) > deadline) {
            stop(peers);
            return TDM_FAIL(err, TDM_E_PEER, "%s: not all ranks were there after %g seconds", what,
                            deadline);
        }
        const int asked = peers->calls.state(peers->comm, &code);
        code = asked == TDMI_NCCL_SUCCESS ? code : asked;
    }
    return code == TDMI_NCCL_SUCCESS ? TDM_OK : fail(peers, code, what, err);
}

static tdm_status wait_for(tdmi_peers *peers, tdmi_stream *stream, tdm_error *err)
{
    const int64_t began_ns = tdmi_clock_ns();
    while (tdmi_cuda_stream_is_busy(stream)) {
        TDMI_TRY(settle(peers, TDMI_NCCL_IN_PROGRESS, 0.0, "exchanging gradients", err));
        TDMI_TRY(rest(peers, began_ns, err));
    }
    return tdmi_cuda_stream_wait(stream, err);
}

/* ---- peers ----------------------------------------------------------------------------------- */

static void close_peers(tdmi_peers *peers)
{
    if (!peers)
        return;
    stop(peers);
    tdmi_cuda_library_close(peers->library);
    tdmi_free(peers);
}
TDMI_POINTER_RELEASE(tdmi_peers, close_peers)

static tdm_status open_peers(tdmi_device *device, struct tdmi_peers_id *id, tdmi_peers **peers,
                             tdm_error *err)
{
    TDMI_AT_END(close_peers_at) tdmi_peers *made = NULL;
    int version = 0, code = TDMI_NCCL_SUCCESS;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->device = device;
    TDMI_TRY(tdmi_cuda_library_open(&tdmi_nccl_library,
                                    tdmi_cuda_libraries_places(device->libraries)->nccl,
                                    &made->calls, &made->library, &version, err));
    tdmi_cuda_make_current(device);
    if (id && (code = made->calls.make_id(id)) != TDMI_NCCL_SUCCESS)
        return fail(made, code, "making an id for the ranks", err);
    *peers = tdmi_take(&made);
    return TDM_OK;
}

static tdm_status join(tdmi_peers *peers, const struct tdmi_peers_id *id, int rank, int world,
                       struct tdmi_peers_watch watch, tdm_error *err)
{
    struct tdmi_nccl_config config = {.size = sizeof config,
                                      .magic = TDMI_NCCL_CONFIG_MAGIC,
                                      .version = TDMI_NCCL_CONFIG_VERSION,
                                      .blocking = 0};
    peers->watch = watch;
    tdmi_cuda_make_current(peers->device);
    const int code = peers->calls.join(&peers->comm, world, *id, rank, &config);
    return settle(peers, code, watch.deadline, "joining the GPUs of the other ranks", err);
}

static tdm_status exchange(tdmi_peers *peers, tdmi_stream *stream,
                           const struct tdmi_peer_message *messages, int n, tdm_error *err)
{
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    int code = peers->calls.begin();
    for (int i = 0; i < n && (code == TDMI_NCCL_SUCCESS || code == TDMI_NCCL_IN_PROGRESS); i++) {
        const struct tdmi_peer_message *it = &messages[i];
        code = it->is_sent ? peers->calls.send(it->values, (size_t)it->n, TDMI_NCCL_FLOAT, it->rank,
                                               peers->comm, queue)
                           : peers->calls.receive(it->values, (size_t)it->n, TDMI_NCCL_FLOAT,
                                                  it->rank, peers->comm, queue);
    }
    const int end = peers->calls.end();
    return settle(peers, code != TDMI_NCCL_SUCCESS ? code : end, 0.0, "exchanging gradients", err);
}

static tdm_status sum(tdmi_peers *peers, tdmi_stream *stream, float *values, int64_t n,
                      tdm_error *err)
{
    const int code = peers->calls.all_reduce(values, values, (size_t)n, TDMI_NCCL_FLOAT,
                                             TDMI_NCCL_SUM, peers->comm, tdmi_cuda_queue(stream));
    return settle(peers, code, 0.0, "adding gradients", err);
}

const struct tdmi_peer_table tdmi_cuda_peers = {open_peers, close_peers, join,
                                                exchange,   sum,         wait_for};
