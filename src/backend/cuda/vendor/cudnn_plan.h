/*
 * How cuDNN is to compute a graph: of the engines that its heuristics name, those that give the
 * same bits on every run (unless they may vary), sum in f32 and want no more workspace than there
 * is are timed once, and the fastest is the plan. As JSON, cuDNN's own, a plan can be kept and
 * taken again.
 */
#ifndef TANDEM_BACKEND_CUDA_CUDNN_PLAN_H
#define TANDEM_BACKEND_CUDA_CUDNN_PLAN_H

#include "backend/cuda/vendor/cudnn_graph.h"
#include "backend/cuda/vendor/cudnn_library.h"

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

#endif
