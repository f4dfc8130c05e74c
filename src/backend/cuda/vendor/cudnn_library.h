/* cuDNN 9, opened for one GPU. One call of a handle at a time: whoever executes takes its turn. */
#ifndef TANDEM_BACKEND_CUDA_CUDNN_LIBRARY_H
#define TANDEM_BACKEND_CUDA_CUDNN_LIBRARY_H

#include "backend/backend.h"
#include "backend/cuda/vendor/cudnn_api.h"
#include "backend/cuda/vendor/library.h"
#include "tandem/error.h"

typedef struct tdmi_cudnn tdmi_cudnn;

/* For the calling thread's GPU. file NULL: looked for (library.h). GPU: cuDNN's own description
 * of a GPU, as JSON, for planning where there is none, and then nothing can be executed; or NULL.
 * TDM_E_ABSENT: there is no cuDNN, one that is too old, or none that takes this GPU. */
tdm_status tdmi_cudnn_open(const char *file, const char *card, tdmi_cudnn **cudnn,
                           tdm_error *err) TDM_MUST_USE;
void tdmi_cudnn_close(tdmi_cudnn *cudnn);
extern const struct tdmi_cuda_library_facts tdmi_cudnn_facts;

const struct tdmi_cudnn_calls *tdmi_cudnn_calls_of(const tdmi_cudnn *cudnn);
/* The GPU, as plans and heuristics are told of it. */
tdmi_cudnn_descriptor tdmi_cudnn_card(const tdmi_cudnn *cudnn);
int tdmi_cudnn_version(const tdmi_cudnn *cudnn); /* 91900 for 9.19.0 */

/* Queues plan with pack on a stream; cuDNN's code. */
int tdmi_cudnn_execute(tdmi_cudnn *cudnn, struct CUstream_st *queue, tdmi_cudnn_descriptor plan,
                       tdmi_cudnn_descriptor pack);

#endif
