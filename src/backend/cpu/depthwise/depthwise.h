/*
 * Depthwise convolution in f32, NHWC, weights (kernel, kernel, 1, channels), with everything that
 * would otherwise be a pass over memory of its own: the input is read through a read form, sums are
 * taken where tensors are written. One call is the images of one batch-norm group, on one thread or
 * a team; it allocates nothing. The same call gives the same bits on every run and in every team,
 * other bits on another instruction set.
 *
 * Work is cut into units: the rows of a band, of one block of channels. A member of a team has
 * neighbouring units, those of a band side by side: some blocks of a band, whole bands, some blocks
 * of another. Sums of units are f32; one thread adds them to doubles as it goes, a team stores them
 * and adds them up at the end in the same order.
 */
#pragma once

#include "backend/cpu/forms.h"
#include "backend/cpu/isa.h"
#include "base/team.h"

/* A depthwise convolution, the same for all calls. Padding at the bottom and on the right follows
 * from out_h and out_w. */
struct tdmi_depthwise {
    int h, w, channels;
    int out_h, out_w;
    int kernel, stride, dilation;
    int top, left; /* padding */
};

/* Rows of x that lie in a ring, which is in a cache: row r at slot (first + r) % n. n = 0: row r.
 */
struct tdmi_depthwise_slots {
    int n, first;
};

struct tdmi_depthwise_forward {
    int n;                             /* pictures */
    const float *x;                    /* (n, h, w, channels) */
    struct tdmi_depthwise_slots slots; /* of one picture */
    struct tdmi_read_form form;
    const float *weights;
    const float *bias; /* NULL: none */
    enum tdmi_act act; /* of y: NONE, RELU or RELU6 */
    float *y;          /* (n, out_h, out_w, channels) = act(convolution of v + bias) */
    struct tdmi_forward_sums sums;
    void *workspace; /* aligned to 64 bytes */
    const struct tdmi_member *member;
};

struct tdmi_depthwise_backward {
    int n;
    const float *x;
    struct tdmi_read_form form;
    const float *g, *y; /* dy = gradient form of both; y may be NULL where g alone is it */
    struct tdmi_gradient_form gradient;
    const float *weights;
    float *dweights; /* (kernel, kernel, 1, channels), written */
    float *dbias;    /* (channels), or NULL */
    float *dx; /* act'(z) · (gradient of v + add), z = scale · x + shift; NULL: not computed */
    const float *add;               /* like dx, may be dx; NULL: 0 */
    struct tdmi_backward_sums sums; /* of dx and x */
    void *workspace;
    const struct tdmi_member *member;
};

/* Forms may have act NONE, RELU or RELU6. */
struct tdmi_depthwise_kernels {
    void (*forward)(const struct tdmi_depthwise *shape, const struct tdmi_depthwise_forward *call);
    void (*backward)(const struct tdmi_depthwise *shape,
                     const struct tdmi_depthwise_backward *call);
};

/* For isa up to tdmi_isa_best(). */
const struct tdmi_depthwise_kernels *tdmi_depthwise_kernels(enum tdmi_isa isa);
/* The larger of both directions, for any instruction set, on one thread; */
size_t tdmi_depthwise_workspace_bytes(const struct tdmi_depthwise *shape);
/* in a team of so many, in calls of up to n images with sums (0: all calls without). */
size_t tdmi_depthwise_team_bytes(const struct tdmi_depthwise *shape, int n, int team);

/* ---- between depthwise.c and the kernels ----------------------------------------------------- */

/* A band of rows is worked on at a time: the rows it needs are prepared into a ring of slots, block
 * of channels by block, with zeros at both ends; then each block walks along the band. */
struct tdmi_depthwise_ring {
    int band_rows; /* rows of the result that are computed together */
    int slots;     /* prepared rows that a band needs; one more is all zeros */
    int columns;   /* padded width of a prepared row */
    int before;    /* columns of zeros before the first of a row */
};
struct tdmi_depthwise_ring tdmi_depthwise_forward_ring(const struct tdmi_depthwise *shape);
struct tdmi_depthwise_ring tdmi_depthwise_backward_ring(const struct tdmi_depthwise *shape);

/* Sums of a unit: of y and its square; of dx, its product with x, and each tap's gradient. */
enum { TDMI_DEPTHWISE_FORWARD_SUMS = 2 };
static inline int tdmi_depthwise_backward_sums(const struct tdmi_depthwise *shape)
{
    return 2 + shape->kernel * shape->kernel;
}

/* The workspace of one thread, cut up: vectors of padded channels (a multiple of 16), and the ring.
 * Without a workspace only bytes is set. */
struct tdmi_depthwise_room {
    double *sums[3], *dweights; /* dweights: (block, kernel · kernel, lanes) */
    float *weights;             /* (block, kernel · kernel, lanes) */
    float *band_dweights;       /* (kernel · kernel, lanes): a block's of a band */
    float *scale, *shift, *centre;
    float *of_g, *of_y, *one, *bias;
    const float **rows; /* of the band at hand, slots of them */
    float *ring;        /* (slots + 1, block, columns, lanes) */
    size_t bytes;       /* size of the whole workspace */
};
struct tdmi_depthwise_room tdmi_depthwise_room_at(const struct tdmi_depthwise *shape,
                                                  const struct tdmi_depthwise_ring *ring,
                                                  void *workspace);

/* y is written past the caches from this size on: it would not stay in them anyway. */
#define TDMI_STREAM_BYTES ((int64_t)1 << 20)

extern const struct tdmi_depthwise_kernels tdmi_depthwise_scalar, tdmi_depthwise_avx2,
    tdmi_depthwise_avx512;
