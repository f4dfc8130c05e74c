/*
 * libtandem_onednn.so: oneDNN behind one table of functions on raw NHWC arrays. Loading oneDNN
 * takes longer than most commands run, so it is opened when the first layer that needs it is
 * prepared (base/system/plugin.h). No header of oneDNN is read outside the folder plugin/.
 *
 * A convolution is opened once per description and shared by all threads; running it allocates
 * nothing of ours, uses the calling thread alone and the workspace that it is given.
 *
 * Forward and the input's gradient run image by image: as fast as a whole group (its weights stay
 * in cache), a ragged group needs nothing of its own, and an image's bits do not depend on its
 * neighbours. The weights' gradient has a primitive for the full group, and one for a single image
 * that ragged groups add up.
 *
 * oneDNN reads weights in a layout of its own choice: pack them first, once for new weights.
 */
#pragma once

#include "backend/backend.h"
#include "backend/matmul_probe.h"
#include "tandem/error.h"

#include <stdatomic.h>
#include <stdint.h>

/* ---- convolutions ------------------------------------------------------------------------- */

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

enum tdmi_onednn_pass { TDMI_ONEDNN_FORWARD, TDMI_ONEDNN_BACKWARD_DATA, TDMI_ONEDNN_PASSES };

struct tdmi_onednn_conv_call {
    int n;
    const void *packed; /* of the pass */
    void *workspace;
    const float *x, *bias, *residual;
    float *y;
    const float *dy;
    float *dx;      /* backward data */
    float *dw, *db; /* backward weights; db only with a bias */
};

/* Weights are (kernel_h, kernel_w, in.c / groups, out.c). All arrays that oneDNN packs or works in
 * are aligned to 64 bytes. Pack and the three passes return false where oneDNN refuses to run, or
 * has no memory: the outputs are then NaN, because a step must not use old values. */
struct tdmi_onednn_conv_table {
    /* TDM_E_ABSENT when oneDNN has no such convolution for this CPU. */
    tdm_status (*open)(const struct tdmi_onednn_conv_desc *desc, tdmi_onednn_conv **conv,
                       tdm_error *err);
    void (*close)(tdmi_onednn_conv *conv);
    size_t (*packed_bytes)(const tdmi_onednn_conv *conv, enum tdmi_onednn_pass pass);
    /* The largest of all passes. */
    size_t (*workspace_bytes)(const tdmi_onednn_conv *conv);
    /* factors: out.c of them, where the desc scales weights, else NULL. */
    bool (*pack)(const tdmi_onednn_conv *conv, enum tdmi_onednn_pass pass, const float *weights,
                 const float *factors, void *packed);
    bool (*forward)(const tdmi_onednn_conv *conv, const struct tdmi_onednn_conv_call *call);
    bool (*backward_data)(const tdmi_onednn_conv *conv, const struct tdmi_onednn_conv_call *call);
    bool (*backward_weights)(const tdmi_onednn_conv *conv,
                             const struct tdmi_onednn_conv_call *call);
};

/* ---- products of dense layers --------------------------------------------------------------- */

/* c (rows × columns) = a (rows × depth) · b (depth × columns), or c += … All matrices are stored
 * row by row. */
struct tdmi_onednn_product {
    int rows, columns, depth;
    bool is_a_transposed, is_b_transposed; /* a is stored (depth × rows), b (columns × depth) */
    bool adds;
    bool goes_by_row; /* each row of c is a product of its own; a is not transposed */
    const float *a, *b;
    float *c;
    /* Sizes of the last product, which any thread may write: oneDNN then has kernels for them and
     * needs little memory. 0 at first; NULL: not remembered. */
    _Atomic int64_t *made_for;
};

/* ---- the library -------------------------------------------------------------------------- */

struct tdmi_onednn_table {
    void (*write_version)(char *text, size_t text_bytes); /* "3.2.0 (bbaec145)" */
    const struct tdmi_onednn_conv_table *conv;
    /* Any number of rows without preparation, on the calling thread alone. False where oneDNN
     * refuses, or has no memory: c is then NaN. */
    bool (*multiply)(const struct tdmi_onednn_product *product);
    const struct tdmi_matmul_method *matmul;
};

/* Open the library, or look up that it is open. TDM_E_SYSTEM: it cannot be opened; not
 * TDM_E_ABSENT, for which another kernel would take the layer and give other bits. */
tdm_status tdmi_onednn_load(const struct tdmi_onednn_table **table, tdm_error *err) TDM_MUST_USE;

/* Note on the stream that oneDNN did not run if has_run is false: once prepared, it lacks nothing
 * but memory. */
void tdmi_onednn_note(tdmi_stream *stream, bool has_run);
