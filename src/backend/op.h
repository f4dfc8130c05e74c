/*
 * One op as a backend sees it: what it is (desc), and one call of it on one shard (call).
 *
 * The graph above owns all memory. A call gets pointers into an arena that was planned once; a
 * kernel may use nothing else, so that a whole step can be captured, replayed and moved.
 * Gradients are sums over the shard's samples and are written, never accumulated, by one call.
 */
#ifndef TANDEM_BACKEND_OP_H
#define TANDEM_BACKEND_OP_H

#include "image/preprocess.h"
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

/* What may follow an op in the same pass. hswish: z · relu6(z + 3) / 6. */
enum tdmi_act { TDMI_ACT_NONE, TDMI_ACT_RELU, TDMI_ACT_RELU6, TDMI_ACT_HSWISH, TDMI_ACT_SIGMOID };

enum { TDMI_OP_INPUTS = 1, TDMI_OP_PARAMS = 2, TDMI_OP_STATES = 2 };

/* All ops share one flat set of attributes; each file in src/nn/ops names those it uses. */
struct tdmi_op_attrs {
    int channels;         /* conv, dense: outputs */
    int kernel, stride;   /* conv, max_pool, avg_pool: square windows; lrn: neighbouring channels */
    int dilation, groups; /* conv: both 1 in a plain one; groups = input channels: depthwise */
    /* conv, max_pool, avg_pool, pad: zeros around the picture; in a pool they never win a maximum
     */
    int pad_top, pad_bottom, pad_left, pad_right;
    int pad_front, pad_back;           /* pad: channels of zeros before the first, after the last */
    bool has_bias;                     /* conv, dense */
    bool counts_padding;               /* avg_pool: divide by the whole window at the border too */
    double epsilon, momentum;          /* batch_norm; running = (1 - momentum) old + momentum new */
    double rate;                       /* dropout: the part that becomes zero */
    int stream;                        /* dropout: draws of its own, 0 to 255 */
    double alpha, beta, offset;        /* lrn: x / (offset + alpha / kernel · Σ x²)^beta */
    double label_smoothing;            /* softmax, logistic: see their reference kernels */
    struct tdmi_preprocess preprocess; /* input: bytes -> numbers */
};

struct tdmi_op_desc {
    enum tdmi_op_kind kind;
    struct tdmi_op_attrs attrs;
    struct tdmi_shape in[TDMI_OP_INPUTS];
    struct tdmi_shape out;
    int max_images;   /* of one call */
    bool is_training; /* batch norm: statistics of the shard, not the running ones */
    bool wants_dx;    /* backward: someone below has parameters */
};

/* Labels and judgements of a shard, by position. */
struct tdmi_judgement {
    float loss;    /* cross-entropy of this sample, with both labels where it was mixed */
    int predicted; /* the lowest index among the largest outputs */
};

/* A sample that was mixed with another is partly of the other's class. */
struct tdmi_mixed_label {
    int32_t other;
    float weight; /* of its own label, 0 to 1; 1: not mixed */
};

/* Whose draws a shard makes: keys of the counter generator. */
struct tdmi_draws {
    uint64_t seed;
    uint32_t epoch;
    const int64_t *samples; /* n of them; NULL: the positions in the call, for measuring alone */
};

struct tdmi_op_call {
    int n;                          /* images, 1 to max_images */
    const float *x[TDMI_OP_INPUTS]; /* (n, in) */
    float *y;                       /* (n, out) */
    const float *dy;                /* (n, out); softmax: unused */
    float *dx;                      /* (n, in[0]); NULL unless wants_dx */
    const float *params[TDMI_OP_PARAMS];
    float *dparams[TDMI_OP_PARAMS];       /* sums over the samples of this call */
    const float *states[TDMI_OP_STATES];  /* running statistics, read when not training */
    float *state_sums[TDMI_OP_STATES];    /* training: this shard's statistic times n */
    void *saved;                          /* from forward to backward of the same shard */
    void *workspace;                      /* for the call alone */
    const uint8_t *const *pixels;         /* input: n pictures of (h, w, c) bytes */
    const int32_t *labels;                /* softmax: n labels, or NULL when only y is wanted */
    const struct tdmi_mixed_label *mixed; /* softmax with labels: n of them, or NULL: none is */
    struct tdmi_judgement *judgements;    /* softmax with labels: n of them */
    const float *class_weights;           /* softmax in training: one a class, or NULL: all 1 */
    struct tdmi_draws draws;              /* dropout in training */
};

/* "conv" */
const char *tdmi_op_name(enum tdmi_op_kind kind);
/* TDMI_OP_KINDS when there is none of that name. */
enum tdmi_op_kind tdmi_op_find(const char *name);

#endif
