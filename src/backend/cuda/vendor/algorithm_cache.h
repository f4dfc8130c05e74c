/*
 * What a GPU's libraries answered. An answer lives as long as the GPU is open and is shared by
 * nodes of one shape; what was timed is also in files (choices.h): in the folder of the GPU, for
 * everybody, and in that of a run, which resumes with what it began with, whatever would be chosen
 * now.
 */
#ifndef TANDEM_BACKEND_CUDA_ANSWERS_H
#define TANDEM_BACKEND_CUDA_ANSWERS_H

#include "backend/cuda/vendor/cublaslt.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/cudnn_plan.h"

enum { TDMI_CUDA_PROBLEM_ROOM = 256, TDMI_CUDA_FOLDER_ROOM = 1024 };

/* Of one, the other NULL: how is it computed? Of both, with a plan each: which is the faster? */
struct tdmi_cuda_problem {
    const struct tdmi_cudnn_conv *conv;
    const struct tdmi_cublaslt_product *product;
    const struct tdmi_cudnn_plan *conv_plan;
    const struct tdmi_cublaslt_plan *product_plan;
};

struct tdmi_cuda_cached_algorithm {
    struct tdmi_cuda_cached_algorithm *next;
    char problem[TDMI_CUDA_PROBLEM_ROOM];
    size_t most_workspace;
    bool is_there; /* false: the library has nothing for it */
    struct tdmi_cudnn_plan conv;
    struct tdmi_cublaslt_plan product;
    bool is_product; /* of both: that */
    char *text;      /* what a file says of it; NULL: nothing */
    bool is_kept; /* in the run's folder, which has one answer a problem: the last that was given */
};

struct tdmi_cuda_algorithm_cache {
    tdmi_device *device;
    tdmi_cudnn *cudnn; /* lent, as is cublaslt; NULL: it is not asked */
    tdmi_cublaslt *cublaslt;
    char folder[TDMI_CUDA_FOLDER_ROOM], kept[TDMI_CUDA_FOLDER_ROOM]; /* "": none */
    struct tdmi_cuda_cached_algorithm *first;
};

/* NULL: the library is not there, or there is no memory. Valid until the answers are released. */
const struct tdmi_cuda_cached_algorithm *
tdmi_cuda_algorithm_cache_find(struct tdmi_cuda_algorithm_cache *it,
                               const struct tdmi_cuda_problem *question);
/* Before the libraries are closed. */
void tdmi_cuda_algorithm_cache_release(struct tdmi_cuda_algorithm_cache *it);

#endif
