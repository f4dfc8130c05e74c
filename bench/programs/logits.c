/*
 * Input and output of a model's network, for comparison with peers:
 *
 *     logits MODEL FILE… > answers
 *
 * A line of JSON with n, height, width, channels and logits (how many a picture), then all pictures
 * as their preprocessed bytes (n, height, width, channels), then all logits as floats.
 */
#include "base/file/file.h"
#include "base/memory.h"
#include "train/model/model_internal.h"

#include <stdio.h>

enum { file_limit_bytes = 1 << 28 };

static tdm_status read_picture(const tdm_model *model, const char *path, uint8_t *pixels,
                               tdm_error *err)
{
    void *bytes;
    size_t length;
    struct tdmi_preprocess_scratch scratch = {0};
    TDM_TRY(tdmi_file_read(path, file_limit_bytes, &bytes, &length, err), err, "reading %s", path);
    tdm_status status = tdmi_preprocess_file(tdmi_graph_preprocess(model->file.graph), bytes,
                                             length, path, &scratch, pixels, err);
    tdmi_preprocess_scratch_release(&scratch);
    tdmi_free(bytes);
    return status;
}

static tdm_status answer(tdm_model *model, int n, char **paths, uint8_t *pixels, float *logits,
                         tdm_error *err)
{
    const int32_t label = 0;
    const int64_t item = 0;
    size_t picture = (size_t)tdmi_shape_values(model->file.graph->nodes[0].out);
    for (int i = 0; i < n; i++) {
        struct tdmi_batch batch = {
            .n = 1, .pixels = pixels + (size_t)i * picture, .labels = &label, .items = &item};
        TDM_TRY(read_picture(model, paths[i], pixels + (size_t)i * picture, err), err, "answering");
        TDM_TRY(tdmi_evaluator_batch(model->evaluator, &batch, NULL, NULL,
                                     logits + (size_t)i * (size_t)model->file.n_classes, err),
                err, "answering");
    }
    return TDM_OK;
}

static tdm_status run(tdm_model *model, int n, char **paths, tdm_error *err)
{
    struct tdmi_shape shape = model->file.graph->nodes[0].out;
    size_t n_pixels = (size_t)n * (size_t)tdmi_shape_values(shape);
    size_t n_logits = (size_t)n * (size_t)model->file.n_classes;
    uint8_t *pixels = tdmi_alloc(n_pixels, 1);
    float *logits = tdmi_alloc(n_logits, sizeof *logits);
    tdm_status status = TDM_OK;
    if (!pixels || !logits)
        status = TDM_FAIL(err, TDM_E_MEMORY, "answering: out of memory");
    if (status == TDM_OK)
        status = answer(model, n, paths, pixels, logits, err);
    if (status == TDM_OK) {
        printf("{\"n\": %d, \"height\": %d, \"width\": %d, \"channels\": %d, \"logits\": %d}\n", n,
               shape.h, shape.w, shape.c, model->file.n_classes);
        if (fwrite(pixels, 1, n_pixels, stdout) != n_pixels ||
            fwrite(logits, sizeof *logits, n_logits, stdout) != n_logits || fflush(stdout) != 0)
            status = TDM_FAIL(err, TDM_E_FAILED, "answering: standard output takes no more");
    }
    tdmi_free(pixels);
    tdmi_free(logits);
    return status;
}

int main(int n_arguments, char **arguments)
{
    tdm_model *model = NULL;
    tdm_error err = {0};
    char text[3000];
    if (n_arguments < 3) {
        fprintf(stderr, "usage: logits MODEL FILE…\n");
        return 2;
    }
    tdm_status status = tdm_model_open(arguments[1], NULL, &model, &err);
    if (status == TDM_OK)
        status = run(model, n_arguments - 2, arguments + 2, &err);
    tdm_model_close(model);
    if (status != TDM_OK) {
        tdm_error_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return tdm_status_exit(status);
}
