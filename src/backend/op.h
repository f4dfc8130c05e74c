/*
 * One op as a backend sees it: what it is (desc), and one call of it on one group (call).
 *
 * The graph above owns all memory. A call gets pointers into an arena that was planned once; a
 * kernel may use nothing else, so that a whole step can be captured, replayed and moved.
 * Gradients are sums over the group's samples and are written, never accumulated, by one call.
 */
#pragma once

#include "image/preprocess.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tdmi_op_kind {
#define X(name, NAME, inputs) TDMI_OP_##NAME,
#include "backend/ops.def"
#undef X
    TDMI_OP_KINDS
};

/* Activations that a kernel can fuse. hswish: z · relu6(z + 3) / 6. */
enum tdmi_act { TDMI_ACT_NONE, TDMI_ACT_RELU, TDMI_ACT_RELU6, TDMI_ACT_HSWISH, TDMI_ACT_SIGMOID };

enum { TDMI_OP_INPUTS = 2, TDMI_OP_PARAMS = 2, TDMI_OP_STATES = 2 };

/* All ops share one flat set of attributes; the table of graph/ops.c names those that an op uses.
 */
struct tdmi_op_attrs {
    int channels;       /* conv, dense: outputs */
    int kernel, stride; /* conv, max_pool, avg_pool: square windows; lrn: neighbouring channels */
    int dilation,
        groups; /* conv: both 1 in a plain one; groups of channels, as many as inputs: depthwise */
    /* conv, max_pool, avg_pool, pad: zeros around the picture; in a pool they never win a maximum
     */
    int pad_top, pad_bottom, pad_left, pad_right;
    int pad_front, pad_back;           /* pad: channels of zeros before the first, after the last */
    bool has_bias;                     /* conv, dense */
    bool counts_padding;               /* avg_pool: divide by the whole window at the border too */
    double epsilon, momentum;          /* batch_norm; running = (1 - momentum) old + momentum new */
    bool is_biased;                    /* batch_norm: the running variance is, as Keras' is */
    double rate;                       /* dropout: the part that becomes zero */
    int stream;                        /* dropout: draws of its own, 0 to 255 */
    double alpha, beta, offset;        /* lrn: x / (offset + alpha / kernel · Σ x²)^beta */
    double label_smoothing;            /* softmax, logistic: see their reference kernels */
    struct tdmi_preprocess preprocess; /* input: bytes -> numbers */
};

/*
 * Work of neighbouring ops that a kernel does as well, so that no tensor is passed over twice
 * (docs/design/backend.md, "Fusion"). All zero is the op alone; a plan sets more only where
 * kernel->can_fuse agrees.
 */
struct tdmi_op_fusion {
    /* Without training: y = act(op(x) + residual), a batch norm folded into the packed weights. A
     * batch norm in training that is not virtual: adds_residual and act likewise; its dy is then
     * the gradient of act's result, and backward dx[1] is the residual's, or dy itself. */
    bool folds_norm, adds_residual;
    enum tdmi_act act;
    /* Training: y stays raw; its statistics are taken as it is written, and its gradient is read
     * through the form that the batch norm behind it prepares. */
    bool gives_sums, reads_gradient_form;
    /* Input k is read as act(scale · x + shift), in training; else as act(x). Backward writes the
     * gradient of act's argument, and its sums, dx_add included. */
    struct {
        bool has_norm;
        enum tdmi_act act;
    } in[TDMI_OP_INPUTS];
    /* conv, training: y is the maximum of act(op(x)) over windows of pool × pool pixels, side by
     * side (tdmi_op_result), and dy its gradient. 0: no pool, and no act. */
    int pool;
    /* batch_norm, training: compute only what its neighbours read, neither y nor dx. */
    bool is_virtual;
};

struct tdmi_op_desc {
    enum tdmi_op_kind kind;
    struct tdmi_op_attrs attrs;
    struct tdmi_shape in[TDMI_OP_INPUTS];
    struct tdmi_shape out;
    int max_images;        /* of one call */
    int team;              /* threads that may compute one call together; 0 counts as 1 */
    bool is_training;      /* batch norm: statistics of the group, not the running ones */
    bool keeps_statistics; /* batch norm in training: the running ones all the same, which stay */
    bool wants_dx;         /* backward: someone below has parameters */
    /* Type of activations and their gradients: x, y, dy, dx, dx_add and residual, whose pointers in
     * a call may refer to bf16 or f16 data. Always f32: the y of a loss, the arrays of batch norms,
     * and parameters with their gradients. tdmi_backend.storages lists the types beside f32. */
    enum tdmi_dtype storage;
    bool allows_tf32;     /* stored as f32: products may round what they multiply to TF32 */
    bool splits_products; /* training: large ones by Strassen's way, on the CPU */
    bool may_vary; /* sums may be added in another order on every run, where that is faster */
    /* Bytes of workspace that a kernel may use only to be faster; 0: its backend's default. */
    size_t most_workspace;
    struct tdmi_op_fusion fusion;
    /* The device it will run on. NULL: any; kernels then use no properties of the device. */
    struct tdmi_device *device;
    void *prepared; /* by the kernel's prepare from the fields above, or NULL */
};

/* The shape of y: out, unless fusion makes less of it. */
struct tdmi_shape tdmi_op_result(const struct tdmi_op_desc *desc);

/*
 * Per-channel arrays that a batch norm in training shares with its neighbours. Forward: the kernel
 * that writes x, or the batch norm's own reduce, fills sums; the batch norm makes the read form.
 * Backward: the last kernel that writes dy, or reduce, fills sums; the batch norm makes the
 * gradient form.
 */
struct tdmi_norm {
    const float *centre; /* forward sums are over x - centre: the running mean */
    double *sums;        /* 2 · channels: Σ(x - centre), Σ(x - centre)²; Σg, Σg·(x - mean) */
    double *total;       /* the same over all images that share statistics; may be sums */
    int total_images;    /* of total */
    float *mean, *rstd;  /* of total */
    float *scale, *shift;     /* read form: scale · x + shift */
    float *of_g, *of_x, *one; /* gradient form: dx = of_g · g + of_x · x + one */
};
/* Room for the arrays of one, and a tdmi_norm whose arrays lie there. */
size_t tdmi_norm_bytes(int channels);
struct tdmi_norm tdmi_norm_at(void *memory, int channels);

/* Labels and judgements of a group, by position. */
struct tdmi_judgement {
    float loss;    /* cross-entropy of this sample, with both labels where it was mixed */
    int predicted; /* the lowest index among the largest outputs */
};

/* A sample that was mixed with another is partly of the other's class. */
struct tdmi_mixed_label {
    int32_t other;
    float weight; /* of its own label, 0 to 1; 1: not mixed */
};

/* The totals of a group: samples, correct predictions, and the sum of the losses. */
enum { TDMI_TAIL_SAMPLES, TDMI_TAIL_CORRECT, TDMI_TAIL_LOSS, TDMI_TAIL_VALUES };

/* Keys of the counter generator for a group's random draws. They change from step to step, so they
 * lie in memory: a recorded step is replayed with new ones. */
struct tdmi_draw_key {
    uint64_t seed;
    uint32_t epoch;
};
struct tdmi_draws {
    const struct tdmi_draw_key *key; /* NULL: seed 0, epoch 0 */
    const int64_t *samples; /* n of them; NULL: the positions in the call, for measuring alone */
};

struct tdmi_loss_scale; /* backend/update.h */
struct tdmi_member;     /* base/team.h */

/* All pointers refer to device memory, and so do the pointers in pixels. In training, and on a
 * device with memory of its own, arrays of n rows have room for max_images; the rows past n are
 * unspecified, and a kernel may read and write them. Otherwise there may be no such rows. */
struct tdmi_op_call {
    int n;                          /* images, 1 to max_images */
    const float *x[TDMI_OP_INPUTS]; /* (n, in) */
    float *y;                       /* (n, out) */
    const float *dy;                /* (n, out); softmax: unused */
    float *dx[TDMI_OP_INPUTS];      /* (n, in[k]); NULL: not computed; add: may be dy */
    const float *params[TDMI_OP_PARAMS];
    float *dparams[TDMI_OP_PARAMS];      /* sums over the samples of this call */
    const float *states[TDMI_OP_STATES]; /* running statistics, read when not training */
    float *state_sums[TDMI_OP_STATES];   /* training: this group's statistic times n */
    void *saved;                         /* from forward to backward of the same group */
    void *workspace;                     /* for the call alone */
    const uint8_t *const *pixels;        /* input: n pictures of (h, w, c) bytes */
    const void *changes;   /* input: n, of tdmi_backend.changes; NULL: pictures stay as they are */
    const int32_t *labels; /* softmax: n labels; NULL: compute only y */
    const struct tdmi_mixed_label *mixed; /* softmax with labels: n of them, or NULL: none is */
    struct tdmi_judgement *judgements;    /* softmax with labels: n of them */
    const float *class_weights;           /* softmax in training: one a class, or NULL: all 1 */
    struct tdmi_draws draws;              /* dropout in training */
    /* softmax, logistic in training: their gradient is multiplied by its scale; NULL: by 1 */
    const struct tdmi_loss_scale *loss_scale;
    /* Place in the team that computes this call, of at most desc->team; NULL: one thread does. */
    const struct tdmi_member *member;

    struct tdmi_norm norm; /* batch_norm in training: its own; else that behind y, if fused */
    /* of fusion: */
    const void *packed;                       /* what the kernel's pack wrote */
    const float *residual;                    /* (n, out) */
    struct tdmi_norm in_norm[TDMI_OP_INPUTS]; /* of read forms */
    const float *dx_add[TDMI_OP_INPUTS];      /* added to dx[k] after the activation's mask: what
                                                 other readers wrote, each with its own; may be
                                                 the same array; NULL: nothing */
    double *dx_sums[TDMI_OP_INPUTS]; /* with a norm: Σg, Σg·(x - mean); NULL: not computed */
};

/* Arguments of kernel->pack, called once for new weights. */
struct tdmi_pack_call {
    const float *params[TDMI_OP_PARAMS];
    /* of the batch norm that is folded in, if any: scale and shift, mean and variance */
    const float *norm_params[2], *norm_states[2];
    double norm_epsilon;
    void *packed;
};

/* "conv" */
const char *tdmi_op_name(enum tdmi_op_kind kind);
/* TDMI_OP_KINDS when there is none of that name. */
enum tdmi_op_kind tdmi_op_find(const char *name);
