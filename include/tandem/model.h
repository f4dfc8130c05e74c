/*
 * A trained model: opened from a run folder, a model file, or weights that another program wrote;
 * evaluated, asked about images, exported to other programs, and served over HTTP.
 */
#ifndef TANDEM_MODEL_H
#define TANDEM_MODEL_H

#include "tandem/data.h"
#include "tandem/error.h"
#include "tandem/event.h"
#include "tandem/metrics.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_model tdm_model;

struct tdm_model_options { /* zeroed, or NULL: a file of tandem, on the CPU; strings are lent */
    size_t struct_bytes;   /* see tandem/api.h */
    const char *device;    /* as in tdm_train_options; NULL: "cpu" */
    int threads;           /* 0: one per core */
    /* For weights of another program whose file does not say it; NULL and 0: as published. For a
     * file that tandem wrote, each of them is TDM_E_USAGE. */
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
 * weights of another program. A file of tandem is tested with its stored input and logits
 * (TDM_E_INPUT if they differ); weights of other programs are checked tensor by tensor, and the
 * error lists those that do not fit. */
TDM_API tdm_status tdm_model_open(const char *path, const struct tdm_model_options *options,
                                  tdm_model **model, tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_model_close(tdm_model *model);

TDM_API const char *tdm_model_name(const tdm_model *model);
TDM_API int tdm_model_classes(const tdm_model *model);
TDM_API const char *tdm_model_class(const tdm_model *model, int index);
TDM_API int64_t tdm_model_parameters(const tdm_model *model);

/* ---- evaluate --------------------------------------------------------------------------- */

struct tdm_evaluation {
    size_t struct_bytes; /* see tandem/api.h */
    int64_t trained_on;  /* images that the model was trained on, of those evaluated; -1: it
                            does not record them, and the next two are NULL */
    int64_t skipped;     /* images that could not be read, or whose label the model lacks */
    /* Images that neither trained the model nor chose its epoch, and those that chose it; NULL:
     * there are none. They live until the release. */
    struct tdm_metrics *unseen, *validation;
    struct tdm_metrics metrics; /* all; last, since it may grow; labels live as long as the model */
};

struct tdm_evaluate_options { /* strings are lent for the call */
    size_t struct_bytes;      /* see tandem/api.h */
    const char *source;
    struct tdm_source_options how; /* where the path does not say it */
    enum tdm_part part;
    int batch;         /* images at once, 1 to 256; never changes the results */
    int64_t memory;    /* bytes for prefetching and caches; 0: a part of what is free */
    const char *cache; /* "auto", "none", "encoded", "decoded" or "disk"; NULL: none */
};

/* Evaluate every image of the part exactly once. Parts follow the content of the images, which the
 * model remembers from training, so copies and renamed files are recognised. */
TDM_API tdm_status tdm_model_evaluate(tdm_model *model, const struct tdm_evaluate_options *options,
                                      tdm_sink sink, struct tdm_evaluation *evaluation,
                                      tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_evaluation_release(struct tdm_evaluation *evaluation);
/* As members of the object that is open: what `tandem evaluate --json` prints. */
TDM_API void tdm_evaluation_to_json(const struct tdm_evaluation *evaluation,
                                    tdm_json_writer *writer);

/* ---- predict ---------------------------------------------------------------------------- */

struct tdm_guess {
    int index;
    const char *label; /* lives as long as the model */
    float probability;
};

struct tdm_prediction { /* lives for the call */
    const char *path; /* as given; for an image in a folder: relative to it if one folder was given,
                         else with the folder as given */
    const struct tdm_guess *guesses;
    int n_guesses;
    const float *logits; /* one a class */
    int n_logits;
    const char *problem;       /* NULL, or why there is no prediction; then there are no guesses */
    tdm_status problem_status; /* TDM_OK, or the kind of the problem */
};

/* Called once an image, in order. A return other than TDM_OK ends the prediction with that status.
 */
typedef struct tdm_prediction_sink {
    void *self;
    tdm_status (*prediction)(void *self, const struct tdm_prediction *prediction, tdm_error *err);
} tdm_prediction_sink;

/* paths are files or folders (searched for images at any depth). A missing path or a folder without
 * images gets a prediction with a problem, and the call returns TDM_E_INPUT after all paths;
 * likewise TDM_E_MEMORY for an image that there is no memory to decode. */
TDM_API tdm_status tdm_model_predict(tdm_model *model, const char *const *paths, size_t n_paths,
                                     int top, tdm_prediction_sink sink,
                                     tdm_error *err) TDM_MUST_USE;

struct tdm_picture {   /* lent for the call */
    const char *name;  /* used in predictions and messages; never opened */
    const void *bytes; /* an encoded image: the content of a file */
    size_t length_bytes;
};

/* The same for images in memory. */
TDM_API tdm_status tdm_model_predict_pictures(tdm_model *model, const struct tdm_picture *pictures,
                                              size_t n_pictures, int top, tdm_prediction_sink sink,
                                              tdm_error *err) TDM_MUST_USE;

/* ---- export ---------------------------------------------------------------------------------- */

/* Names that form accepts, by index; NULL past the last. */
TDM_API const char *tdm_export_form(int index);

struct tdm_export_options { /* strings are lent for the call */
    size_t struct_bytes;    /* see tandem/api.h */
    const char *path;       /* to write; missing folders above it are made */
    const char *form;       /* NULL: by the extension of the path (".onnx") */
    bool preprocess;        /* onnx: take images as bytes; TDM_E_USAGE for other forms */
};

struct tdm_export_result {
    size_t struct_bytes;             /* see tandem/api.h */
    const char *form;                /* static storage */
    int64_t bytes;                   /* of the file */
    char note[TDM_ERROR_TEXT_BYTES]; /* a remark for the reader of the file, or "" */
};

/* The same model gives the same bytes; the file appears whole or not at all. TDM_E_USAGE: no form
 * of that name or extension; TDM_E_INPUT: the form cannot express this network, or its size. */
TDM_API tdm_status tdm_model_export(const tdm_model *model,
                                    const struct tdm_export_options *options,
                                    struct tdm_export_result *result, tdm_error *err) TDM_MUST_USE;

/* ---- serve ----------------------------------------------------------------------------------- */

/* Predictions over HTTP, as `tandem predict` makes them. Requests: docs/reference/http.md. */

typedef struct tdm_server tdm_server;

struct tdm_serve_options {  /* strings are lent for the call */
    size_t struct_bytes;    /* see tandem/api.h */
    const char *address;    /* "8080", "127.0.0.1:8080", "[::1]:0"; port 0: any that is free */
    const char *token;      /* that requests must carry; NULL: listen on loopback only */
    const char *token_file; /* file whose first line is the token; at most one of the two */
    int top;                /* guesses for an image, unless a request says otherwise */
    int64_t body_bytes;     /* largest request */
    int64_t pixels;         /* most of one image */
    int64_t request_pixels; /* most of all images of a request; 0: four times as many */
    double seconds;  /* from the first line of a request to its answer; and for it to be read */
    int connections; /* open at a time; further ones wait */
    int requests;    /* with images at a time; further ones get status 503 */
};

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_serve_options_init(struct tdm_serve_options *options, size_t struct_bytes);
static inline struct tdm_serve_options tdm_serve_options_default(void)
{
    struct tdm_serve_options options;
    tdm_serve_options_init(&options, sizeof options);
    return options;
}

/* Check options before there is a model. TDM_E_USAGE: they make no sense; TDM_E_ABSENT: a build
 * without libmicrohttpd. */
TDM_API tdm_status tdm_serve_check(const struct tdm_serve_options *options,
                                   tdm_error *err) TDM_MUST_USE;

/* Listen and answer, in threads of the server, until tdm_server_stop. Until then only the server
 * may use the model. */
TDM_API tdm_status tdm_server_start(tdm_model *model, const struct tdm_serve_options *options,
                                    tdm_server **server, tdm_error *err) TDM_MUST_USE;
/* Sleep until a stop is requested (tandem/event.h). */
TDM_API void tdm_server_wait(const tdm_server *server);

/* "http://127.0.0.1:8080/", its address; lives as long as the server. */
TDM_API const char *tdm_server_url(const tdm_server *server);

struct tdm_serve_counts {
    int64_t requests; /* answered, whatever the answer */
    int64_t pictures; /* predicted */
};
TDM_API struct tdm_serve_counts tdm_server_counts(const tdm_server *server);

/* Accept no more requests, finish those at hand for at most `seconds` and the images in the network
 * (eight a thread), close, and return the counts. Accepts NULL. */
TDM_API struct tdm_serve_counts tdm_server_stop(tdm_server *server);

#ifdef __cplusplus
}
#endif
#endif
