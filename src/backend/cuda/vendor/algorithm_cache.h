/*
 * The cache of algorithms that were chosen for problems. An entry lives as long as the GPU is open
 * and is shared by nodes of one shape. It is also in files: in the GPU's folder, for
 * every run, and in the run's folder, so that --resume takes the same algorithms.
 */
#pragma once

#include "backend/cuda/vendor/cublaslt.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/cudnn_plan.h"

enum { TDMI_CUDA_PROBLEM_ROOM = 256, TDMI_CUDA_FOLDER_ROOM = 1024 };

/* Either conv or product, the other NULL: choose its algorithm. Both, with a plan each: choose the
 * faster one. */
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
    bool is_there; /* false: the library has no algorithm */
    struct tdmi_cudnn_plan conv;
    struct tdmi_cublaslt_plan product;
    bool is_product; /* of both: the product is faster */
    char *text;      /* its form in a file; NULL: none */
    bool is_kept; /* in the run's folder, which has one entry a problem: the last that was used */
};

struct tdmi_cuda_algorithm_cache {
    tdmi_device *device;
    tdmi_cudnn *cudnn; /* lent, as is cublaslt; NULL: there is none */
    tdmi_cublaslt *cublaslt;
    char folder[TDMI_CUDA_FOLDER_ROOM], kept[TDMI_CUDA_FOLDER_ROOM]; /* "": none */
    /* Lent: choices of another GPU, preferred to those of the folder; NULL: none. */
    const char *given;
    struct tdmi_cuda_cached_algorithm *first;
};

/* NULL: there is no library or no memory. Valid until the cache is released. */
const struct tdmi_cuda_cached_algorithm *
tdmi_cuda_algorithm_cache_find(struct tdmi_cuda_algorithm_cache *it,
                               const struct tdmi_cuda_problem *problem);
/* The choices that the run keeps, as a text for `given` of another GPU's cache (tdmi_free; NULL: no
 * memory). */
char *tdmi_cuda_algorithm_cache_write(const struct tdmi_cuda_algorithm_cache *it);
/* Before the libraries are closed. */
void tdmi_cuda_algorithm_cache_release(struct tdmi_cuda_algorithm_cache *it);
