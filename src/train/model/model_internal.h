/* An opened model, as model.c, evaluate.c and predict.c see it. */
#pragma once

#include "tandem/model.h"
#include "train/evaluate/evaluator.h"
#include "train/model/model_file.h"

/* Images a thread takes at a time, and at most at once. */
enum { TDMI_MODEL_PIECE = 8, TDMI_MODEL_BATCH = 256 };

struct tdm_model {
    struct tdmi_model_file file;
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_stream *stream;
    struct tdmi_placement placement;
    tdmi_pool *pool;
    tdmi_plan *plan;
    tdmi_evaluator *evaluator;
    float *params, *states;                    /* on the device */
    struct tdmi_preprocess_scratch *scratches; /* one a thread, of predict.c; NULL until then */
    tdmi_arena arena;
};

/* Frees the decoding buffers of threads where they are larger than kept_bytes (0: all of them), so
 * that one large image does not hold its memory for ever. */
void tdmi_model_trim(tdm_model *model, size_t kept_bytes);
