/*
 * A decoder outside of this room, such as a GPU's. It decodes usual JPEG files (jpeg/layout.h) that
 * were checked here, and scales them by the weights it is given. Its images differ from those of
 * preprocess.h only by its inverse transform. Files that it cannot take, or fails on, are decoded
 * on the CPU.
 *
 *     describe ▸ check ▸ plan ▸ run, for several at once ▸ pixels in the size of the input
 */
#pragma once

#include "image/resize/resize.h"

enum {
    TDMI_DECODER_FILES = 8, /* of one run, at most */
    TDMI_DECODER_MOST_PIXELS = 1 << 26,
    TDMI_DECODER_MOST_WEIGHT_BYTES = 1 << 24 /* of a file: sides that are less alike are rare */
};

/* One dimension of a resize: output i is the sum over k of input spans[i].first + k times taps[i]
 * [k], rounded as in resize/kernels.h. Taps beyond the last input are 0. */
struct tdmi_decoder_pass {
    bool is_wanted;
    int n_outputs, n_taps; /* taps: (n_outputs, n_taps) */
    int n_inputs;
    struct tdmi_span inputs; /* that all outputs together look at */
    const struct tdmi_span *spans;
    const int32_t *taps;
};

struct tdmi_decoder_file {
    const uint8_t *bytes; /* lent */
    size_t length_bytes;
    int width, height; /* as stored */
    int n_components;  /* 1, or 3: luma and two colours */
    int across, down;  /* samples of luma for one of a colour: 1 x 1, 2 x 1 or 2 x 2 */
    int orientation;   /* that turns it upright; all below is of the upright image */
    /* The passes in their order; without any, a part of the image unscaled. */
    struct tdmi_decoder_pass across_pass, down_pass;
    bool is_down_first;
    int part_x, part_y, part_width, part_height;
    /* (part_height, part_width, 3), the decoder's until its next run; NULL: it made none. */
    const uint8_t *pixels;
};

typedef struct tdmi_decoder_thread tdmi_decoder_thread;

/* Owned by the backend that created it; shared by any number of threads. */
struct tdmi_decoder {
    char name[40]; /* "nvJPEG 12.4.0" */
    /* Open the state of one thread; it is closed before the decoder is. */
    tdm_status (*open)(const struct tdmi_decoder *decoder, tdmi_decoder_thread **thread,
                       tdm_error *err);
    void (*close)(tdmi_decoder_thread *thread); /* NULL is accepted */
    /* Decode n files. Fails only where no single image is to blame. */
    tdm_status (*run)(tdmi_decoder_thread *thread, struct tdmi_decoder_file *files, int n,
                      tdm_error *err);
};

/* Memory for weights, one a file; start from a zeroed object. */
struct tdmi_decoder_room {
    void *memory;
    size_t capacity_bytes;
};
void tdmi_decoder_room_release(struct tdmi_decoder_room *room);

/* Fill a description from the header. false: no file for another decoder, or above the limits. */
bool tdmi_decoder_describe(const void *bytes, size_t length_bytes, struct tdmi_image_limits limits,
                           struct tdmi_decoder_file *file);
/* The size of the upright image. */
static inline int tdmi_decoder_width(const struct tdmi_decoder_file *file)
{
    return file->orientation >= 5 ? file->height : file->width;
}
static inline int tdmi_decoder_height(const struct tdmi_decoder_file *file)
{
    return file->orientation >= 5 ? file->width : file->height;
}
/* Read all codes of a described file. *is_sound: our own decoder would accept it. Allocates only in
 * room; fails only without memory. */
tdm_status tdmi_decoder_check(const struct tdmi_decoder_file *file, struct tdmi_image_limits limits,
                              tdmi_image *room, bool *is_sound, tdm_error *err) TDM_MUST_USE;
/* Describe the resize of the upright image. *is_planned false: the resize begins with a reduction,
 * which other decoders cannot do. */
tdm_status tdmi_decoder_plan(struct tdmi_decoder_file *file, const struct tdmi_resize *how,
                             struct tdmi_decoder_room *room, bool *is_planned,
                             tdm_error *err) TDM_MUST_USE;
