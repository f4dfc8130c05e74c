/*
 * Algorithms of NVIDIA's libraries for one GPU. The libraries are opened on first use. Algorithms
 * are chosen while a plan is made, never during a step, and kept in a cache (algorithm_cache.h).
 */
#pragma once

#include "backend/cuda/vendor/cublaslt.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/cudnn_plan.h"

/* Files of the libraries and the cache's folder. All NULL, except in tests: search for the
 * libraries, and use TANDEM_HOME. */
struct tdmi_cuda_places {
    const char *cudnn, *cublaslt, *nvjpeg, *nccl, *home;
};

/* The places are lent. */
tdm_status tdmi_cuda_libraries_new(tdmi_device *device, const struct tdmi_cuda_places *places,
                                   struct tdmi_cuda_libraries **libraries,
                                   tdm_error *err) TDM_MUST_USE;
void tdmi_cuda_libraries_free(struct tdmi_cuda_libraries *libraries);

/* Read choices from this folder from now on, and write new ones to it. */
void tdmi_cuda_libraries_keep(struct tdmi_cuda_libraries *it, const char *folder);
/* "cuDNN 9.19.0, cuBLASLt 13.1.0", or why there is none. */
void tdmi_cuda_libraries_describe(struct tdmi_cuda_libraries *it, char *text, size_t text_bytes);

const struct tdmi_cuda_places *tdmi_cuda_libraries_places(const struct tdmi_cuda_libraries *it);

/* Choices for another GPU of the same kind: entries of the backend's table (backend/backend.h). */
char *tdmi_cuda_write_choices(tdmi_device *device);
void tdmi_cuda_read_choices(tdmi_device *device, const char *text);

/* Describe library number index; false past the last. places NULL: as above. */
bool tdmi_cuda_library_at(int index, const struct tdmi_cuda_places *places,
                          struct tdmi_backend_library *library);

/* NULL: the library is not there, or does not take it. Valid while the GPU is open. */
const struct tdmi_cudnn_plan *tdmi_cuda_conv_plan(tdmi_device *device,
                                                  const struct tdmi_cudnn_conv *it);
const struct tdmi_cublaslt_plan *tdmi_cuda_product_plan(tdmi_device *device,
                                                        const struct tdmi_cublaslt_product *it);
/* The faster of both plans of a convolution that is also a product (product NULL: it is none), or
 * the only one; the other is NULL. The choice is cached. */
struct tdmi_cuda_algorithm {
    const struct tdmi_cudnn_plan *conv;
    const struct tdmi_cublaslt_plan *product;
};
struct tdmi_cuda_algorithm tdmi_cuda_conv_algorithm(tdmi_device *device,
                                                    const struct tdmi_cudnn_conv *conv,
                                                    const struct tdmi_cublaslt_product *product);
/* "cuDNN engine 12": the name of an algorithm that has one of both plans. */
void tdmi_cuda_algorithm_name(const tdmi_device *device,
                              const struct tdmi_cuda_algorithm *algorithm, char *text,
                              size_t text_bytes);
/* The workspace of cuBLASLt begins on 256 bytes, and planned memory begins on 64: how much of
 * it has room for one of so many bytes, wherever it begins. */
size_t tdmi_cuda_workspace_room(size_t bytes);
/* Queues it; tensors by enum tdmi_cudnn_tensor, workspace with the room above. 0, or a code. */
int tdmi_cuda_conv_run(tdmi_stream *stream, const struct tdmi_cudnn_plan *plan,
                       void *const tensors[TDMI_CUDNN_TENSORS], void *workspace);
int tdmi_cuda_product_run(tdmi_stream *stream, const struct tdmi_cublaslt_plan *plan,
                          const struct tdmi_cublaslt_call *call);
