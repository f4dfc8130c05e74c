/*
 * Dense layers in training whose group fills the lanes of a vector, each with an image: a weight is
 * a single number for all of them, read where it lies. Inputs are transposed to (value, image), and
 * results back; the gradient of the weights has outputs as lanes. One call is one thread's.
 *
 * Every value is one chain of additions: y over the inputs, from the bias on; dx over the outputs;
 * dweights and dbias over the pictures.
 */
#pragma once

#include "backend/cpu/isa.h"

#include <stddef.h>
#include <stdint.h>

struct tdmi_dense_lanes {
    int in, out, max_images;
    enum tdmi_isa isa;
};

/* weights (in, out); images one after the other. Outputs are written, not added to. */
struct tdmi_dense_call {
    int n;
    const float *x, *weights;
    const float *bias; /* NULL: 0 */
    float *y;
    /* backward */
    const float *dy;
    float *dweights, *dbias; /* dbias NULL: none */
    float *dx;               /* NULL: not computed */
    void *workspace;
};

size_t tdmi_dense_lanes_workspace_bytes(const struct tdmi_dense_lanes *desc);

/* ---- what the instruction sets share -------------------------------------------------------- */

/* The layout of the workspace. */
struct tdmi_dense_scratch {
    float *x;      /* (vector of images, in, image): all of the group */
    float *dy;     /* (out, image): of one vector */
    float *result; /* y or dx, transposed, of one vector */
    float *rows;   /* dy as it is, rows of whole vectors with zeros at their ends */
    int row;       /* of rows, floats */
    int64_t total; /* floats */
};

struct tdmi_dense_scratch tdmi_dense_lanes_scratch(const struct tdmi_dense_lanes *desc,
                                                   void *workspace);

struct tdmi_dense_lanes_kernels {
    int lanes; /* images computed at a time, one in each lane of a vector */
    void (*forward)(const struct tdmi_dense_lanes *desc, const struct tdmi_dense_call *call);
    void (*backward)(const struct tdmi_dense_lanes *desc, const struct tdmi_dense_call *call);
};

/* For isa up to tdmi_isa_best(). */
const struct tdmi_dense_lanes_kernels *tdmi_dense_lanes_kernels(enum tdmi_isa isa);

extern const struct tdmi_dense_lanes_kernels tdmi_dense_lanes_scalar, tdmi_dense_lanes_avx2,
    tdmi_dense_lanes_avx512;
