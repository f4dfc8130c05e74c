/* Dense layers with pictures as lanes: sizes, and which instruction set runs them. */
#include "backend/cpu/gemm/dense_lanes.h"

enum { LINE = 16 }; /* floats */

TDMI_TABLE_OF(static const struct tdmi_dense_lanes_kernels *kernels_of, tdmi_dense_lanes)

int tdmi_dense_lanes_count(enum tdmi_isa isa)
{
    return kernels_of(isa)->lanes;
}

static int64_t whole(int64_t n, int unit)
{
    return (n + unit - 1) / unit * unit;
}

static float *take(float *base, int64_t *total, int64_t values)
{
    float *at = base ? base + *total : NULL;
    *total += whole(values, LINE);
    return at;
}

struct tdmi_dense_scratch tdmi_dense_lanes_scratch(const struct tdmi_dense_lanes *desc,
                                                   void *workspace)
{
    const int lanes = tdmi_dense_lanes_count(desc->isa);
    const int64_t in = desc->in, out = desc->out, images = whole(desc->max_images, lanes);
    struct tdmi_dense_scratch scratch = {.row = (int)whole(out, lanes)};
    scratch.x = take(workspace, &scratch.total, in * images);
    scratch.dy = take(workspace, &scratch.total, out * lanes);
    scratch.result = take(workspace, &scratch.total, (in > out ? in : out) * lanes);
    scratch.rows = take(workspace, &scratch.total, scratch.row * images);
    return scratch;
}

size_t tdmi_dense_lanes_workspace_bytes(const struct tdmi_dense_lanes *desc)
{
    return sizeof(float) * (size_t)tdmi_dense_lanes_scratch(desc, NULL).total;
}

void tdmi_dense_lanes_forward(const struct tdmi_dense_lanes *desc,
                              const struct tdmi_dense_call *call)
{
    kernels_of(desc->isa)->forward(desc, call);
}

void tdmi_dense_lanes_backward(const struct tdmi_dense_lanes *desc,
                               const struct tdmi_dense_call *call)
{
    kernels_of(desc->isa)->backward(desc, call);
}
