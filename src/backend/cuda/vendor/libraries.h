/*
 * What a card's plans ask NVIDIA's libraries for. They are opened with the first question, answers
 * are kept for as long as the card is open, and what was timed also in files (answers.h). No
 * question is asked during a step.
 */
#ifndef TANDEM_BACKEND_CUDA_LIBRARIES_H
#define TANDEM_BACKEND_CUDA_LIBRARIES_H

#include "backend/cuda/vendor/cublaslt.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/cudnn_plan.h"

/* Where to look; all NULL, as it is but in tests: everywhere, and below TANDEM_HOME. */
struct tdmi_cuda_places {
    const char *cudnn, *cublaslt, *nvjpeg, *home;
};

/* NULL when there is no memory. The places are lent. */
struct tdmi_cuda_libraries *tdmi_cuda_libraries_new(tdmi_device *device,
                                                    const struct tdmi_cuda_places *places);
void tdmi_cuda_libraries_free(struct tdmi_cuda_libraries *libraries);

/* Whatever is chosen from now on is taken from this folder if it is there, and put there if not. */
void tdmi_cuda_libraries_keep(struct tdmi_cuda_libraries *it, const char *folder);
/* "cuDNN 9.19.0, cuBLASLt 13.1.0", or why there is none. */
void tdmi_cuda_libraries_describe(struct tdmi_cuda_libraries *it, char *text, size_t text_bytes);

/* The file of nvJPEG; NULL: it is looked for. */
const char *tdmi_cuda_libraries_nvjpeg(const struct tdmi_cuda_libraries *it);

/* What there is of library number index, and false past the last; places NULL: as above. */
bool tdmi_cuda_library_at(int index, const struct tdmi_cuda_places *places,
                          struct tdmi_backend_library *library);

/* NULL: the library is not there, or does not take it. Valid while the card is open. */
const struct tdmi_cudnn_plan *tdmi_cuda_conv_plan(tdmi_device *device,
                                                  const struct tdmi_cudnn_conv *it);
const struct tdmi_cublaslt_plan *tdmi_cuda_product_plan(tdmi_device *device,
                                                        const struct tdmi_cublaslt_product *it);
/* A convolution that may be a product, too (NULL: it is none): the one that is faster, or that
 * there is; the other is NULL. Which, is an answer like any. */
struct tdmi_cuda_way {
    const struct tdmi_cudnn_plan *conv;
    const struct tdmi_cublaslt_plan *product;
};
struct tdmi_cuda_way tdmi_cuda_conv_way(tdmi_device *device, const struct tdmi_cudnn_conv *conv,
                                        const struct tdmi_cublaslt_product *product);
/* Its name and workspace; where it has neither plan, ours. */
void tdmi_cuda_way_describe(const tdmi_device *device, const struct tdmi_cuda_way *way,
                            const char *ours, struct tdmi_kernel_algorithm *to);
/* cuBLASLt wants its workspace to begin on 256 bytes, and planned memory begins on 64: how much of
 * it has room for one of so many bytes, wherever it begins. */
size_t tdmi_cuda_workspace_room(size_t bytes);
/* Queues it; tensors by enum tdmi_cudnn_tensor, workspace with the room above. 0, or a code. */
int tdmi_cuda_conv_run(tdmi_stream *stream, const struct tdmi_cudnn_plan *plan,
                       void *const tensors[TDMI_CUDNN_TENSORS], void *workspace);
int tdmi_cuda_product_run(tdmi_stream *stream, const struct tdmi_cublaslt_plan *plan,
                          const struct tdmi_cublaslt_call *call);

#endif
