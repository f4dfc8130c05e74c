/*
 * cuDNN 9, opened for one GPU, and its plans for graphs. Of the engines that its heuristics name,
 * those that give the same bits on every run (unless they may vary), sum in f32 and need no more
 * workspace than allowed are timed once, and the fastest is the plan. A plan is stored as cuDNN's
 * own JSON.
 */
#pragma once

#include "backend/cuda/vendor/cudnn_graph.h"
#include "backend/cuda/vendor/library.h"
#include "base/scope.h"

typedef struct tdmi_cudnn tdmi_cudnn;

/* For the calling thread's GPU. file NULL: search for it (library.h). gpu: NULL, or
 * a GPU in cuDNN's JSON description, to plan for it without having one; nothing is executed then.
 * TDM_E_ABSENT: there is no cuDNN, one that is too old, or none that takes this GPU. */
tdm_status tdmi_cudnn_open(const char *file, const char *gpu, tdmi_cudnn **cudnn,
                           tdm_error *err) TDM_MUST_USE;
void tdmi_cudnn_close(tdmi_cudnn *cudnn);
TDMI_POINTER_RELEASE(tdmi_cudnn, tdmi_cudnn_close)
extern const struct tdmi_cuda_library tdmi_cudnn_library;
const struct tdmi_cudnn_calls *tdmi_cudnn_calls_of(const tdmi_cudnn *cudnn);
int tdmi_cudnn_version(const tdmi_cudnn *cudnn); /* 91900 for 9.19.0 */

enum { TDMI_CUDNN_MOST_WORKSPACE = 512 << 20 };

struct tdmi_cudnn_plan {
    tdmi_cudnn_descriptor plan;
    size_t workspace_bytes;
};

/* Seconds of one run; below 0: it cannot be run. */
typedef double tdmi_cudnn_timer(void *self, const struct tdmi_cudnn_plan *plan);

/* timer NULL: nothing is timed, and the first of them is taken. TDM_E_ABSENT: there is none. */
tdm_status tdmi_cudnn_plan_find(tdmi_cudnn *cudnn, const struct tdmi_cudnn_conv *it,
                                tdmi_cudnn_timer *timer, void *self, struct tdmi_cudnn_plan *plan,
                                tdm_error *err) TDM_MUST_USE;
/* TDM_E_INPUT: it is none, or of another cuDNN or GPU. */
tdm_status tdmi_cudnn_plan_read(tdmi_cudnn *cudnn, const char *json, struct tdmi_cudnn_plan *plan,
                                tdm_error *err) TDM_MUST_USE;
/* *json is freed with tdmi_free. */
tdm_status tdmi_cudnn_plan_write(tdmi_cudnn *cudnn, const struct tdmi_cudnn_plan *plan, char **json,
                                 tdm_error *err) TDM_MUST_USE;
/* "cuDNN engine 12" */
void tdmi_cudnn_plan_name(tdmi_cudnn *cudnn, const struct tdmi_cudnn_plan *plan, char *text,
                          size_t text_bytes);
void tdmi_cudnn_plan_release(tdmi_cudnn *cudnn, struct tdmi_cudnn_plan *plan);

/* Pointers by enum tdmi_cudnn_tensor, NULL: the graph has no such tensor; cuDNN's code. */
int tdmi_cudnn_plan_run(tdmi_cudnn *cudnn, const struct tdmi_cudnn_plan *plan,
                        struct CUstream_st *queue, void *const tensors[TDMI_CUDNN_TENSORS],
                        void *workspace);
