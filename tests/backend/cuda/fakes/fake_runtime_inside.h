/* Internals of the fake CUDA runtime. Every function here is called with the lock held. */
#pragma once

#include "backend/cuda/fakes/fake_runtime.h"
#include "backend/cuda/fakes/include/cuda_runtime_api.h"
#include "backend/cuda/shim/shim_run.h"

#include <pthread.h>

/* Work of a stream; the first three kinds also of a graph. */
enum fake_kind { FAKE_COPY, FAKE_CLEAR, FAKE_KERNEL, FAKE_REPLAY, FAKE_RECORD, FAKE_WAIT };

struct fake_work {
    struct fake_work *next;
    enum fake_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    void *kept; /* bytes of memory that is not pinned, or a kernel's arguments */
    struct tdmi_shim_launch launch;
    cudaGraphExec_t exec;
    cudaEvent_t event;
    int64_t number; /* of the event's records */
};

struct CUstream_st {
    struct CUstream_st *next;
    int device;
    bool is_at_work;
    struct fake_work *first, **end;
    cudaGraph_t capture; /* NULL: none */
    bool is_invalid;     /* the capture */
    pthread_t thread;    /* that began it */
};

struct CUevent_st {
    struct CUevent_st *next;
    int device, n_holders; /* works that name it, and the caller that opened it */
    cudaStream_t of;       /* stream that recorded it last */
    int64_t n_recorded, n_reached, reached_ns;
};

struct CUgraph_st {
    struct CUgraph_st *next;
    int n_holders; /* the graph itself, and what was made of it */
    struct fake_work *first, **end;
};

struct CUgraphExec_st {
    struct CUgraphExec_st *next;
    cudaGraph_t graph;
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

struct fake_gpu {
    size_t used_bytes;
    int64_t now_ns;            /* by its clock, which stands still while nothing is computed */
    cudaError_t lost;          /* by a failed kernel: result of every later call */
    struct CUstream_st legacy; /* the default stream */
};

struct fake_runtime {
    pthread_mutex_t lock;
    enum fake_pace pace;
    bool is_guarding;
    size_t limit_bytes;
    struct fake_gpus gpus;
    struct fake_gpu of[fake_most_gpus];
    struct CUstream_st *streams;
    struct CUevent_st *events;
    struct CUgraph_st *graphs;
    struct CUgraphExec_st *execs;
    struct fake_block *blocks;
    struct fake_copied copied;
    char *message;
    uint32_t chance;
};
extern struct fake_runtime fake_runtime;

/* Every function of the runtime stands between these two. fake_begin takes the lock and returns the
 * error of a lost GPU; fake_end keeps the thread's last error, and returns it. */
cudaError_t fake_begin(void);
cudaError_t fake_end(cudaError_t code);
int fake_device(void); /* of the calling thread */

/* Report a broken rule: a GPU may do anything now. */
__attribute__((format(printf, 1, 2))) void fake_complain(const char *format, ...);
/* Report why CUDA gives this error, and return it. */
__attribute__((format(printf, 2, 3))) cudaError_t fake_refuse(cudaError_t code, const char *format,
                                                              ...);

/* Let work at the memory of this GPU; -1: at none. */
void fake_open_memory(int device);
/* The block that this byte lies in; NULL: ordinary memory. */
const struct fake_block *fake_block_of(const void *at);

/* NULL becomes the legacy stream of the thread's GPU. Returns NULL when no such stream is open. */
cudaStream_t fake_stream(cudaStream_t stream);
/* Append to the stream or its capture. Copies the work and takes over what it keeps. */
cudaError_t fake_queue(cudaStream_t stream, const struct fake_work *work);
/* Do all work of the stream; of all streams of a GPU (-1: of all GPUs). */
void fake_catch_up(cudaStream_t stream);
void fake_catch_up_all(int device);
/* Does queued work copy to or from this block? */
bool fake_is_queued(const struct fake_block *block);
/* Refuse a call that a thread must not make while it captures; this ends the capture. */
cudaError_t fake_forbid(const char *function);
void fake_forget(struct fake_work *work);
