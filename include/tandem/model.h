/*
 * A trained model: opened from a run folder, a model file, or weights that another program wrote;
 * asked about pictures.
 */
#ifndef TANDEM_MODEL_H
#define TANDEM_MODEL_H

#include "tandem/error.h"
#include "tandem/event.h"
#include "tandem/metrics.h"
#include "tandem/source.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_model tdm_model;

struct tdm_model_options { /* zeroed, or NULL: a model of ours, on the CPU; strings are lent */
    const char *device;    /* as in tdm_train_options; NULL: "cpu" */
    int threads;           /* 0: all usable CPUs */
    /* Of weights that another program wrote, where the file does not say it; NULL and 0: as they
     * were published. With a model of ours each of them is TDM_E_USAGE: it says so itself. */
    const char *network;  /* "resnet50"; a full Keras file needs none */
    const char *fit;      /* "pad", "crop" or "stretch" */
    const char *resample; /* "lanczos", "bicubic" or "bilinear" */
    const char *scale;    /* "tf", "torch", "unit", "raw" or "caffe" */
    const char *padding;  /* "same" or "symmetric" */
    const char *classes;  /* a file: one name a line, "0 cardboard" or "cardboard" */
    double crop_fraction; /* 0.01 to 1 */
    int size;             /* pixels a side */
};

/* path is a run folder (its best weights, else its last), a .safetensors file written by tandem, or
 * weights of another program in any form that is read here. A model of ours runs its own self-test:
 * stored input in, stored logits out, or TDM_E_INPUT; weights of others are checked tensor by
 * tensor, and what does not fit the network is listed. */
TDM_API tdm_status tdm_model_open(const char *path, const struct tdm_model_options *options,
                                  tdm_model **model, tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_model_close(tdm_model *model);

TDM_API const char *tdm_model_name(const tdm_model *model);
TDM_API int tdm_model_classes(const tdm_model *model);
TDM_API const char *tdm_model_class(const tdm_model *model, int index);
TDM_API int64_t tdm_model_parameters(const tdm_model *model);

/* ---- evaluate --------------------------------------------------------------------------- */

enum tdm_part { TDM_PART_ALL, TDM_PART_TRAIN, TDM_PART_VAL, TDM_PART_TEST };

struct tdm_evaluation {
    struct tdm_metrics metrics; /* labels live as long as the model */
    int64_t trained_on;         /* of those n images, how many the model was trained on */
    int64_t skipped; /* pictures that could not be read, or whose label the model lacks */
};

struct tdm_evaluate_options { /* strings are lent for the call */
    const char *source;
    struct tdm_source_options how; /* where the path does not say it */
    enum tdm_part part;
    int batch;         /* judged at a time, 1 to 256; changes no count */
    int64_t memory;    /* bytes for reading ahead and caches; 0: a part of what is free */
    const char *cache; /* "auto", "none", "encoded", "decoded" or "disk"; NULL: none */
};

/* Every picture of the part exactly once. Parts follow the content of the pictures as the model
 * remembers them from training, so copies and renamed files are recognised. */
TDM_API tdm_status tdm_model_evaluate(tdm_model *model, const struct tdm_evaluate_options *options,
                                      tdm_sink sink, struct tdm_evaluation *evaluation,
                                      tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_evaluation_release(struct tdm_evaluation *evaluation);

/* ---- predict ---------------------------------------------------------------------------- */

struct tdm_guess {
    int index;
    const char *label; /* lives as long as the model */
    float probability;
};

struct tdm_prediction { /* lives for the call */
    const char *path;   /* as given; of a picture in a folder, relative to it where one folder was
                           given, and with the folder as given where there were several */
    const struct tdm_guess *guesses;
    int n_guesses;
    const float *logits; /* one a class: what the network computes before probabilities are made */
    int n_logits;
    const char *problem;       /* NULL, or why there is no answer; then there are no numbers */
    tdm_status problem_status; /* TDM_OK, or the kind of the problem */
};

/* Called once a picture, in order. A return other than TDM_OK ends the prediction with that
 * status. */
typedef struct tdm_prediction_sink {
    void *self;
    tdm_status (*prediction)(void *self, const struct tdm_prediction *prediction, tdm_error *err);
} tdm_prediction_sink;

/* paths are files or folders (searched for pictures, any depth). A path that is missing, or
 * a folder without pictures, is answered in its turn with the problem, and TDM_E_INPUT is returned
 * when all are answered; so is a picture that there is no memory to decode, with TDM_E_MEMORY. */
TDM_API tdm_status tdm_model_predict(tdm_model *model, const char *const *paths, size_t n_paths,
                                     int top, tdm_prediction_sink sink,
                                     tdm_error *err) TDM_MUST_USE;

struct tdm_picture {   /* lent for the call */
    const char *name;  /* what answers and messages call it; never opened */
    const void *bytes; /* an encoded picture: the content of a file */
    size_t length_bytes;
};

/* The same of pictures in memory: the same answers, whatever comes with them in one call. */
TDM_API tdm_status tdm_model_predict_pictures(tdm_model *model, const struct tdm_picture *pictures,
                                              size_t n_pictures, int top, tdm_prediction_sink sink,
                                              tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
