/*
 * What predict.c works through: pictures in the order asked, each a file, bytes in memory, or
 * something that is missing and is answered all the same.
 */
#ifndef TANDEM_TRAIN_PREDICT_H
#define TANDEM_TRAIN_PREDICT_H

#include "base/arena.h"
#include "image/image.h"
#include "tandem/model.h"

struct tdmi_picture {
    const char *path;    /* to open; unused where there are bytes */
    const char *shown;   /* as given, or relative to the folder given */
    const char *missing; /* NULL, or why there is nothing to open */
    const void *bytes;   /* NULL, or the encoded picture */
    size_t length_bytes;
};

struct tdmi_pictures { /* start from a zeroed object, then init */
    struct tdmi_picture *items;
    size_t n;
    int64_t capacity;
    size_t n_missing;
    const char *first_missing; /* the sentence about it */
    tdmi_arena arena;
};

void tdmi_pictures_init(struct tdmi_pictures *pictures);
void tdmi_pictures_release(struct tdmi_pictures *pictures);

/* The files, and what lies in the folders, at any depth. A path that is missing becomes a picture
 * that says so; TDM_E_INPUT where there is nothing else. */
tdm_status tdmi_pictures_list(struct tdmi_pictures *pictures, const char *const *paths,
                              size_t n_paths, tdm_error *err) TDM_MUST_USE;
/* Lent until release. */
tdm_status tdmi_pictures_add_bytes(struct tdmi_pictures *pictures,
                                   const struct tdm_picture *picture, tdm_error *err) TDM_MUST_USE;

/* What a server wants beside tdm_model_predict_pictures; start from a zeroed object. */
struct tdmi_predicting {
    void *self;
    /* Asked right before the picture of that position is decoded, by any thread: under which limits
     * (zeros, as they come: the decoder's own)? False leaves it out. */
    bool (*allow)(void *self, size_t index, struct tdmi_image_limits *limits);
    bool is_finished; /* whatever comes: a request to stop, a picture without memory */
};

/* A picture that was left out, or for which there was no memory, is answered with that problem. */
tdm_status tdmi_model_predict_pictures(tdm_model *model, const struct tdm_picture *pictures,
                                       size_t n_pictures, int top,
                                       const struct tdmi_predicting *how, tdm_prediction_sink sink,
                                       tdm_error *err) TDM_MUST_USE;

#endif
