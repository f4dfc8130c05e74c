/*
 * nvJPEG, opened for one GPU: files of several images become planes on a stream. Its own handles
 * serve all threads; what one works with is its state, which no other may use.
 */
#pragma once

#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/library.h"
#include "backend/cuda/vendor/nvjpeg_api.h"
#include "base/scope.h"
#include "image/decoder.h"

typedef struct tdmi_nvjpeg tdmi_nvjpeg;
typedef struct tdmi_nvjpeg_state tdmi_nvjpeg_state;

extern const struct tdmi_cuda_library tdmi_nvjpeg_library;

/* For the calling thread's GPU. file NULL: search for it (library.h). TDM_E_ABSENT: there is none,
 * one that is too old, or none that takes this GPU. */
tdm_status tdmi_nvjpeg_open(const char *file, tdmi_nvjpeg **nvjpeg, tdm_error *err) TDM_MUST_USE;
void tdmi_nvjpeg_close(tdmi_nvjpeg *nvjpeg);
TDMI_POINTER_RELEASE(tdmi_nvjpeg, tdmi_nvjpeg_close)
int tdmi_nvjpeg_version(const tdmi_nvjpeg *nvjpeg); /* 120400 for 12.4.0 */

tdm_status tdmi_nvjpeg_state_open(tdmi_nvjpeg *nvjpeg, tdmi_nvjpeg_state **state,
                                  tdm_error *err) TDM_MUST_USE;
void tdmi_nvjpeg_state_close(tdmi_nvjpeg_state *state);
TDMI_POINTER_RELEASE(tdmi_nvjpeg_state, tdmi_nvjpeg_state_close)

/* Queue the decoding of n files into images, whose planes have the sizes of image.h. Which engines
 * decode a file, and whether they do (is_done), follows from the file alone. Fails where the GPU
 * does. Earlier work of the state, and other work on the images' memory, must be done: the GPU's
 * engines write when they are called, not in the order of the stream. */
tdm_status tdmi_nvjpeg_decode(tdmi_nvjpeg_state *state, tdmi_stream *stream,
                              const struct tdmi_decoder_file *files,
                              const struct tdmi_nvjpeg_image *images, int n, bool *is_done,
                              tdm_error *err) TDM_MUST_USE;
