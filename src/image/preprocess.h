/*
 * One preprocessing: how a file's bytes become a network's input. It is described here, stored in
 * the model file, and run by the same code for training, evaluation, prediction and export.
 */
#pragma once

#include "image/image.h"
#include "tandem/json.h"

struct tdmi_resize;

enum tdmi_fit { TDMI_FIT_PAD, TDMI_FIT_CROP, TDMI_FIT_STRETCH };
/* How bytes 0–255 become numbers: tf x/127.5-1, torch (x/255-mean)/std of ImageNet, unit x/255,
 * raw x; caffe x-mean of ImageNet, as Keras' ResNet-50 wants it (of blue, green and red there: the
 * importer turns its first convolution). */
enum tdmi_scale {
    TDMI_SCALE_TF,
    TDMI_SCALE_TORCH,
    TDMI_SCALE_UNIT,
    TDMI_SCALE_RAW,
    TDMI_SCALE_CAFFE
};

struct tdmi_preprocess {
    int width, height;
    int channels; /* 3, or 1: luma (299 R + 587 G + 114 B) / 1000, rounded, as Pillow's "L" */
    enum tdmi_fit
        fit; /* pad: shrink to fit inside (never enlarge beyond the target), centre on white */
    double crop_fraction; /* crop: short side to size / crop_fraction, then centre crop */
    enum tdmi_filter filter;
    enum tdmi_scale scale;
    /* Large images may be reduced by whole numbers first, while both sides stay twice as large as
     * they become: a JPEG while it is decoded, then any image by means of pixels. For pad that is
     * Pillow's thumbnail() as it comes, faster and a little different from whole images. */
    bool uses_draft;
};

/* Working memory, one a thread; start from a zeroed object. */
struct tdmi_preprocess_scratch {
    tdmi_image decoded, resized;
    struct tdmi_image_limits limits; /* for decoding; zeroed: the defaults */
    bool is_far; /* the output is not read soon: bypass the cache, base/file/far_copy.h */
};
void tdmi_preprocess_scratch_release(struct tdmi_preprocess_scratch *scratch);

/* Encoded file -> (height, width, channels) bytes at out, undefined when it fails. */
tdm_status tdmi_preprocess_file(const struct tdmi_preprocess *preprocess, const void *bytes,
                                size_t length_bytes, const char *name,
                                struct tdmi_preprocess_scratch *scratch, uint8_t *out,
                                tdm_error *err) TDM_MUST_USE;
/* The same from a decoded image. */
tdm_status tdmi_preprocess_image(const struct tdmi_preprocess *preprocess, const tdmi_image *image,
                                 struct tdmi_preprocess_scratch *scratch, uint8_t *out,
                                 tdm_error *err) TDM_MUST_USE;
/* For decoders of decoder.h: the resize of an upright image of this size, or of a box of it,
 * whatever fit says then. Images that would be reduced while decoding are reduced before the
 * resize. false: the image cannot be fitted. */
bool tdmi_preprocess_plan(const struct tdmi_preprocess *preprocess, int width, int height,
                          const struct tdmi_box *box, struct tdmi_resize *how);
/* Place the result of that resize (RGB, the size of its part) in (height, width, channels) at
 * out. */
void tdmi_preprocess_place(const struct tdmi_preprocess *preprocess, const uint8_t *pixels,
                           int width, int height, uint8_t *out);
/* Scaling of a byte of a channel: (byte / divisor - mean) / deviation. */
struct tdmi_normal {
    float divisor, mean, deviation;
};
struct tdmi_normal tdmi_preprocess_normal(const struct tdmi_preprocess *preprocess, int channel);
/* n pixels of bytes -> floats by the scale. */
void tdmi_preprocess_normalise(const struct tdmi_preprocess *preprocess, const uint8_t *bytes,
                               int64_t n_pixels, float *out);

/* By the words of a model file; TDM_E_USAGE lists them. */
tdm_status tdmi_fit_find(const char *word, enum tdmi_fit *fit, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_filter_find(const char *word, enum tdmi_filter *filter,
                            tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_scale_find(const char *word, enum tdmi_scale *scale, tdm_error *err) TDM_MUST_USE;
/* The words themselves. */
const char *tdmi_fit_word(enum tdmi_fit fit);
const char *tdmi_scale_word(enum tdmi_scale scale);

/* As an object under key (names in words: "fit": "pad"). */
void tdmi_preprocess_to_json(const struct tdmi_preprocess *preprocess, tdm_json_writer *writer,
                             const char *key);
tdm_status tdmi_preprocess_from_json(const tdm_json_value *object, const char *name,
                                     struct tdmi_preprocess *preprocess,
                                     tdm_error *err) TDM_MUST_USE;
