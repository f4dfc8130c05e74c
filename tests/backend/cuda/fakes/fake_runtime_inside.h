/* What looks like CUDA's runtime, on the inside: everything here is called with the lock held, but
 * where it says otherwise. */
#ifndef TANDEM_TESTS_BACKEND_CUDA_FAKE_RUNTIME_INSIDE_H
#define TANDEM_TESTS_BACKEND_CUDA_FAKE_RUNTIME_INSIDE_H

#include "backend/cuda/fakes/fake_runtime.h"
#include "backend/cuda/fakes/include/cuda_runtime_api.h"
#include "backend/cuda/shim/shim_run.h"

#include <pthread.h>

/* ---- work ------------------------------------------------------------------------------------ */

enum fake_kind {
    FAKE_COPY,
    FAKE_CLEAR,
    FAKE_KERNEL,
    FAKE_REPLAY,
    FAKE_UPLOAD,
    FAKE_RECORD,
    FAKE_WAIT
};

/* Of a stream, in its order; the first three also of a graph. */
struct fake_work {
    struct fake_work *next;
    enum fake_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    void *kept; /* bytes of memory that is not pinned, or a kernel's arguments */
    int value;  /* FAKE_CLEAR */
    struct tdmi_shim_launch launch;
    cudaGraphExec_t exec;
    cudaEvent_t event;
    int64_t number; /* of the event's records */
};

/* ---- captures -------------------------------------------------------------------------------- */

enum { fake_most_after = 8 };

/* What comes next on a stream or behind an event has to wait for these. */
struct fake_front {
    int n;
    struct fake_node *at[fake_most_after];
};

struct fake_node {
    struct fake_node *next;
    struct fake_work work;
    struct fake_front after;
    bool is_marked;
};

/* Of a graph and of what was made of it, until both are gone. */
struct fake_nodes {
    int n_holders, n_streams; /* 1: each node waits for the one before */
    struct fake_node *first, **end;
};

struct fake_capture {
    struct fake_capture *next;
    cudaStream_t origin;
    pthread_t thread;
    bool is_invalid;
    struct fake_nodes *nodes;
};

/* ---- objects --------------------------------------------------------------------------------- */

struct CUstream_st {
    struct CUstream_st *next;
    int device;
    bool is_blocking; /* takes turns with the legacy stream */
    bool is_at_work;
    struct fake_work *first, **end;
    struct fake_capture *capture; /* NULL: none */
    struct fake_front front;      /* of the capture */
};

struct CUevent_st {
    struct CUevent_st *next;
    int device, n_holders; /* work that names it, and who opened it */
    cudaStream_t of;       /* that recorded it last; NULL: nobody did */
    int64_t n_recorded, n_reached;
    struct fake_capture *capture; /* that recorded it last; NULL: work did */
    struct fake_front front;
};

struct CUgraph_st {
    struct CUgraph_st *next;
    struct fake_nodes *nodes;
};

struct CUgraphExec_st {
    struct CUgraphExec_st *next;
    struct fake_nodes *nodes;
    int n_queued;
};

struct fake_block {
    struct fake_block *next;
    char *memory;
    size_t bytes;
    int device; /* -1: pinned */
    char *mapped;
    size_t mapped_bytes; /* 0: of the heap */
};

struct fake_card {
    size_t used_bytes;
    cudaError_t lost;          /* by a kernel that failed: what every call gives from then on */
    struct CUstream_st legacy; /* the default stream */
};

struct fake_runtime {
    pthread_mutex_t lock;
    enum fake_pace pace;
    bool is_guarding, is_open; /* memory is, for work */
    size_t limit_bytes;
    struct fake_cards cards;
    struct fake_card of[fake_most_cards];
    struct CUstream_st *streams;
    struct CUevent_st *events;
    struct CUgraph_st *graphs;
    struct CUgraphExec_st *execs;
    struct fake_capture *captures;
    struct fake_block *blocks;
    struct fake_copied copied;
    char failing[40]; /* function; "": any */
    int fail_at, n_calls;
    cudaError_t fail_code;
    char *said;
    uint32_t chance;
};
extern struct fake_runtime fake_runtime;

/* ---- fake_runtime.c -------------------------------------------------------------------------- */

/* Every function of the runtime is what stands between these two: begin takes the lock; what it
 * gives, if not cudaSuccess, is the answer. end keeps the thread's last error, and returns it. */
cudaError_t fake_begin(const char *function);
cudaError_t fake_end(cudaError_t code);
int fake_device(void); /* the calling thread's */

/* A card may do anything now. */
__attribute__((format(printf, 1, 2))) void fake_complain(const char *format, ...);
/* The code; CUDA's own error, and why. */
__attribute__((format(printf, 2, 3))) cudaError_t fake_refuse(cudaError_t code, const char *format,
                                                              ...);

/* ---- fake_runtime_memory.c ------------------------------------------------------------------- */

/* Lets work at the memory of one card, or nobody at any. */
void fake_open_memory(int device);
void fake_close_memory(void);
/* That this byte lies in; NULL: ordinary memory. */
const struct fake_block *fake_block_of(const void *at);

/* ---- fake_runtime_streams.c ------------------------------------------------------------------ */

/* NULL becomes the legacy stream of the thread's card; NULL: it is no open stream. */
cudaStream_t fake_stream(cudaStream_t stream);
/* Behind all that the stream has, or into its capture. The work is copied, and what it keeps taken
 * over. */
cudaError_t fake_queue(cudaStream_t stream, const struct fake_work *work);
/* A copy, a clear or a kernel is done; cudaSuccess, or the code by which the card is lost. */
void fake_do(int device, const struct fake_work *work);
/* All that the stream has is done. */
void fake_catch_up(cudaStream_t stream);
/* The same of all streams of a card; -1: of all cards. */
void fake_catch_up_all(int device);
/* Is such a piece of memory read or written by work that is queued? */
bool fake_is_queued(const struct fake_block *block);

/* ---- fake_runtime_events.c ------------------------------------------------------------------- */

/* By work that named it, or who opened it. */
void fake_let_go(cudaEvent_t event);

/* ---- fake_runtime_graphs.c ------------------------------------------------------------------- */

/* What the thread's own capture forbids; ends that capture. */
cudaError_t fake_forbid(const char *function);
cudaError_t fake_capture_work(cudaStream_t stream, const struct fake_work *work);
/* An event and a stream of which one, or both, are in a capture. */
cudaError_t fake_capture_wait(cudaStream_t stream, cudaEvent_t event);
void fake_invalidate(struct fake_capture *capture);
void fake_replay(int device, cudaGraphExec_t exec);

#endif
