/* Prediction for a server: which images may be decoded, and when a request counts as failed. */
#pragma once

#include "image/image.h"
#include "tandem/model.h"

struct tdmi_predicting { /* start from a zeroed object */
    void *self;
    /* Called by any thread right before the image of that position is decoded. Sets the limits of
     * decoding (zeros, as they come: the decoder's own); false leaves the image out. */
    bool (*allow)(void *self, size_t index, struct tdmi_image_limits *limits);
    /* Finish in spite of a request to stop, or of an image without memory. */
    bool is_finished;
};

/* An image that was left out, or for which there was no memory, gets that problem as its result. */
tdm_status tdmi_model_predict_pictures(tdm_model *model, const struct tdm_picture *pictures,
                                       size_t n_pictures, int top,
                                       const struct tdmi_predicting *how, tdm_prediction_sink sink,
                                       tdm_error *err) TDM_MUST_USE;
