/*
 * A trained model as a file that other programs open: ONNX for runtimes, safetensors for
 * PyTorch, .h5 for Keras.
 */
#ifndef TANDEM_EXPORT_H
#define TANDEM_EXPORT_H

#include "tandem/model.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What form may be called, one after the other; NULL past the last. */
TDM_API const char *tdm_export_form(int index);

struct tdm_export_options { /* strings are lent for the call */
    const char *path;       /* to write; missing folders above it are made */
    const char *form;       /* NULL: the one that the path's ending belongs to (".onnx") */
    bool preprocess;        /* onnx: takes pictures as bytes; TDM_E_USAGE for the others */
};

struct tdm_export_result {
    const char *form;                /* static storage */
    int64_t bytes;                   /* of the file */
    char note[TDM_ERROR_TEXT_BYTES]; /* what its reader should know; "" when there is nothing */
};

/* The same model gives the same bytes; the file appears whole or not at all. TDM_E_USAGE: no form
 * of that name or ending; TDM_E_INPUT: the form cannot say this network, or not so large a one. */
TDM_API tdm_status tdm_model_export(const tdm_model *model,
                                    const struct tdm_export_options *options,
                                    struct tdm_export_result *result, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
