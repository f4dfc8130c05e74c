/* The functions of NCCL that are used, and numbers from NVIDIA's header. */
#pragma once

#include "backend/cuda/vendor/library.h"
#include "backend/peers.h"

struct CUstream_st;
extern const struct tdmi_cuda_library tdmi_nccl_library;

/* ncclConfig_t as of NCCL 2.14: newer versions read as much as `size` and `version` say. */
struct tdmi_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, unused;
};

/* X(field, symbol, result, parameters); communicators are void pointers here */
#define TDMI_NCCL_CALLS(X)                                                                 \
    X(version, ncclGetVersion, int, (int *))                                               \
    X(words, ncclGetErrorString, const char *, (int))                                      \
    X(make_id, ncclGetUniqueId, int, (struct tdmi_peers_id *))                             \
    X(join, ncclCommInitRankConfig, int,                                                   \
      (void **, int, struct tdmi_peers_id, int, struct tdmi_nccl_config *))                \
    X(leave, ncclCommAbort, int, (void *))                                                 \
    X(state, ncclCommGetAsyncError, int, (void *, int *))                                  \
    X(begin, ncclGroupStart, int, (void))                                                  \
    X(end, ncclGroupEnd, int, (void))                                                      \
    X(send, ncclSend, int, (const void *, size_t, int, int, void *, struct CUstream_st *)) \
    X(receive, ncclRecv, int, (void *, size_t, int, int, void *, struct CUstream_st *))    \
    X(all_reduce, ncclAllReduce, int,                                                      \
      (const void *, void *, size_t, int, int, void *, struct CUstream_st *))

struct tdmi_nccl_calls {
#define X(field, symbol, result, parameters) result(*field) parameters;
    TDMI_NCCL_CALLS(X)
#undef X
};

/* X(ours, theirs, number) */
#define TDMI_NCCL_NUMBERS(X)            \
    X(SUCCESS, ncclSuccess, 0)          \
    X(REMOTE_ERROR, ncclRemoteError, 6) \
    X(IN_PROGRESS, ncclInProgress, 7)   \
    X(FLOAT, ncclFloat32, 7)            \
    X(SUM, ncclSum, 0)

enum {
#define X(ours, theirs, number) TDMI_NCCL_##ours = number,
    TDMI_NCCL_NUMBERS(X)
#undef X
};
enum { TDMI_NCCL_CONFIG_VERSION = 21400 };
static const unsigned TDMI_NCCL_CONFIG_MAGIC = 0xcafebeef;
