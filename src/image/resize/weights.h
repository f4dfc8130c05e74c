/*
 * The weights of one dimension: which input pixels each output pixel is made of, and how much of
 * each. They come in groups of four inputs, because that is what vector code multiplies at once;
 * what a group has too many weighs nothing. All kernels get their coefficients here.
 */
#pragma once

#include "image/image.h"

enum {
    TDMI_RESIZE_GROUP = 4,
    TDMI_RESIZE_FRACTION_BITS = 32 - 8 - 2 /* 8 bits of value, 2 for overshoot and sign */
};

struct tdmi_axis {
    int n_inputs, n_outputs;       /* of the whole target */
    int first_output, part_output; /* the outputs to compute */
    float low, high;               /* of the box; float, because Pillow's box is */
};

struct tdmi_span {
    int first; /* input of the first group's first weight */
    int n;     /* groups in use */
};

struct tdmi_resize_weights {
    int n_outputs, n_groups; /* groups: room of each output */
    struct tdmi_span *spans; /* (n_outputs) */
    int32_t *taps;    /* (n_outputs, n_groups, 4), weights of 1 << TDMI_RESIZE_FRACTION_BITS */
    double *real;     /* working memory */
    void *arranged;   /* the kernels' own form of them … */
    bool is_arranged; /* … where they made one */
};

/* Where the groups of an output begin: anywhere, as long as they stay inside the inputs where these
 * are enough; or at multiples of four. */
enum tdmi_grouping { TDMI_GROUPS_ANYWHERE, TDMI_GROUPS_AT_FOURS };

/* Upper bounds, known without computing anything: groups of an output, doubles of working memory.
 */
int tdmi_weights_max_groups(const struct tdmi_axis *axis, enum tdmi_filter filter);
size_t tdmi_weights_real(int max_groups);

/* Sets count items aside in a workspace of which *used bytes are taken, on a cache line of their
 * own; only counts when base is NULL. */
enum { TDMI_RESIZE_ALIGNMENT = 64 /* a cache line, the widest vector */ };
void *tdmi_resize_carve(uint8_t *base, size_t *used, size_t count, size_t item_bytes);
/* The arrays of weights, likewise. */
void tdmi_weights_carve(uint8_t *base, size_t *used, const struct tdmi_axis *axis,
                        enum tdmi_filter filter, struct tdmi_resize_weights *weights);

/* Fills weights, whose arrays have room for part_output outputs of max_groups groups. */
void tdmi_weights_fill(const struct tdmi_axis *axis, enum tdmi_filter filter,
                       enum tdmi_grouping grouping, struct tdmi_resize_weights *weights);

/* The inputs that all outputs together look at: the first one and how many. */
struct tdmi_span tdmi_weights_inputs(const struct tdmi_axis *axis,
                                     const struct tdmi_resize_weights *weights);
