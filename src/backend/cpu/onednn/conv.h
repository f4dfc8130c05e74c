/*
 * Convolution by oneDNN on raw NHWC arrays. A convolution is opened once per description and
 * shared by all threads; running it allocates nothing of ours, uses the calling thread alone and
 * the workspace that it is given.
 *
 * Forward and the input's gradient run image by image: as fast as a whole shard (its weights stay
 * in cache), a ragged shard needs nothing of its own, and an image's bits do not depend on its
 * neighbours. The weights' gradient has a primitive for the full shard, and one for a single image
 * that ragged shards add up.
 *
 * oneDNN reads weights in a layout of its own choice: pack them first, once for new weights.
 */
#pragma once

#include "backend/backend.h"
#include "backend/cpu/forms.h"
#include "tandem/error.h"

struct tdmi_onednn_conv_desc {
    int max_images; /* of one call */
    struct tdmi_shape in, out;
    int kernel_h, kernel_w, stride_h, stride_w;
    int dilation_h, dilation_w; /* distance of the window's pixels, 1: neighbours */
    int groups;                 /* in.c of them: depthwise */
    int pad_top, pad_left;      /* the other two follow from out */
    bool has_bias;
    /* y = act(conv(x) + bias + residual); forward only */
    bool adds_residual;
    enum tdmi_act act;
    /* Packed weights are weights times one factor an output channel (a batch norm folded in). */
    bool scales_weights;
    bool has_backward, wants_dx;
};

typedef struct tdmi_onednn_conv tdmi_onednn_conv;

/* TDM_E_ABSENT when oneDNN has no such convolution for this CPU. */
tdm_status tdmi_onednn_conv_open(const struct tdmi_onednn_conv_desc *desc, tdmi_onednn_conv **conv,
                                 tdm_error *err) TDM_MUST_USE;
void tdmi_onednn_conv_close(tdmi_onednn_conv *conv);

/* Weights are (kernel_h, kernel_w, in.c / groups, out.c). Where oneDNN refuses to run, or has no
 * memory, the outputs are NaN, because a step must not use old values, and the next wait of the
 * given stream fails (NULL: the failure is not reported). All arrays that oneDNN packs or works in
 * are aligned to 64 bytes. */
enum tdmi_onednn_pass { TDMI_ONEDNN_FORWARD, TDMI_ONEDNN_BACKWARD_DATA, TDMI_ONEDNN_PASSES };
size_t tdmi_onednn_conv_packed_bytes(const tdmi_onednn_conv *conv, enum tdmi_onednn_pass pass);
/* factors: out.c of them, where the desc scales weights, else NULL. */
void tdmi_onednn_conv_pack(const tdmi_onednn_conv *conv, tdmi_stream *stream,
                           enum tdmi_onednn_pass pass, const float *weights, const float *factors,
                           void *packed);

/* The largest of all directions. */
size_t tdmi_onednn_conv_workspace_bytes(const tdmi_onednn_conv *conv);

struct tdmi_onednn_conv_call {
    int n;
    tdmi_stream *stream;
    const void *packed; /* of the pass */
    void *workspace;
    const float *x, *bias, *residual;
    float *y;
    const float *dy;
    float *dx;      /* backward data */
    float *dw, *db; /* backward weights; db only with a bias */
};
void tdmi_onednn_conv_forward(const tdmi_onednn_conv *conv,
                              const struct tdmi_onednn_conv_call *call);
void tdmi_onednn_conv_backward_data(const tdmi_onednn_conv *conv,
                                    const struct tdmi_onednn_conv_call *call);
void tdmi_onednn_conv_backward_weights(const tdmi_onednn_conv *conv,
                                       const struct tdmi_onednn_conv_call *call);
