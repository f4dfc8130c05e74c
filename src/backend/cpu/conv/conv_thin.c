/* Thin convolutions: sizes, packed weights, and which instruction set runs them. */
#include "backend/cpu/conv/conv_thin.h"

enum { MAX_LANES = 16, STRETCH_PIXELS = 48 };

static const struct tdmi_conv_thin_kernels *kernels_of(enum tdmi_isa isa)
{
    static const struct tdmi_conv_thin_kernels *const kernels[] = TDMI_PER_ISA(tdmi_conv_thin);
    return kernels[isa];
}

int tdmi_conv_thin_lanes(enum tdmi_isa isa)
{
    return kernels_of(isa)->lanes;
}

/* Channels of one block of results. */
static int wide_of(int channels)
{
    static const int wides[] = {6, 4, 3, 2};
    for (size_t i = 0; i < sizeof wides / sizeof *wides; i++)
        if (channels % wides[i] == 0)
            return wides[i];
    return 1;
}

struct tdmi_thin_walk tdmi_conv_thin_walk(const struct tdmi_conv_thin *desc, enum tdmi_conv_way way)
{
    const int last = desc->kernel - 1;
    struct tdmi_thin_walk walk = {.h = desc->h,
                                  .w = desc->w,
                                  .in = desc->in,
                                  .out_h = desc->out_h,
                                  .out_w = desc->out_w,
                                  .out = desc->out,
                                  .kernel = desc->kernel,
                                  .top = desc->top,
                                  .left = desc->left};
    /* The gradient of the input is a correlation over dy with the window turned around. */
    if (way == TDMI_CONV_BACKWARD)
        walk = (struct tdmi_thin_walk){.h = desc->out_h,
                                       .w = desc->out_w,
                                       .in = desc->out,
                                       .out_h = desc->h,
                                       .out_w = desc->w,
                                       .out = desc->in,
                                       .kernel = desc->kernel,
                                       .top = last - desc->top,
                                       .left = last - desc->left};
    walk.frame_w = walk.out_w + last;
    walk.wide = wide_of(walk.out);
    return walk;
}

int tdmi_conv_thin_rows(const struct tdmi_conv_thin *desc)
{
    int rows = (STRETCH_PIXELS + desc->out_w - 1) / desc->out_w;
    return rows < desc->out_h ? rows : desc->out_h;
}

static float *take(float *base, int64_t *total, int64_t values, int lanes)
{
    float *at = base ? base + *total : NULL;
    *total += (values * lanes + MAX_LANES - 1) / MAX_LANES * MAX_LANES;
    return at;
}

struct tdmi_thin_scratch tdmi_conv_thin_scratch(const struct tdmi_conv_thin *desc, void *workspace)
{
    const struct tdmi_thin_walk forward = tdmi_conv_thin_walk(desc, TDMI_CONV_FORWARD);
    const struct tdmi_thin_walk backward = tdmi_conv_thin_walk(desc, TDMI_CONV_BACKWARD);
    const int lanes = tdmi_conv_thin_lanes(desc->isa);
    const int64_t dy_row = (int64_t)(desc->wants_dx ? backward.frame_w : desc->out_w) * desc->out;
    const int64_t out_row = (int64_t)desc->out_w * desc->out, in_row = (int64_t)desc->w * desc->in;
    const int64_t weights = (int64_t)desc->kernel * desc->kernel * desc->in * desc->out;
    struct tdmi_thin_scratch scratch = {0};
    int64_t total = 0;
    scratch.x = take(workspace, &total, (int64_t)forward.h * forward.frame_w * forward.in, lanes);
    scratch.dy = take(workspace, &total,
                      dy_row * (desc->wants_dx ? desc->out_h : tdmi_conv_thin_rows(desc)), lanes);
    scratch.row = take(workspace, &total,
                       desc->pool         ? desc->pool * out_row
                       : out_row > in_row ? out_row
                                          : in_row,
                       lanes);
    if (desc->pool)
        scratch.pooled =
            take(workspace, &total, (int64_t)2 * (desc->out_w / desc->pool) * desc->out, lanes);
    scratch.sums = take(workspace, &total, weights + desc->out, lanes);
    scratch.total = total;
    return scratch;
}

size_t tdmi_conv_thin_workspace_bytes(const struct tdmi_conv_thin *desc)
{
    return sizeof(float) * (size_t)tdmi_conv_thin_scratch(desc, NULL).total;
}

size_t tdmi_conv_thin_packed_bytes(const struct tdmi_conv_thin *desc, enum tdmi_conv_way way)
{
    (void)way;
    return sizeof(float) * (size_t)desc->kernel * (size_t)desc->kernel * (size_t)desc->in *
           (size_t)desc->out;
}

/* (out / wide, kernel, kernel, in, wide), in the roles of the walk. */
void tdmi_conv_thin_pack(const struct tdmi_conv_thin *desc, enum tdmi_conv_way way,
                         const float *weights, float *packed)
{
    const struct tdmi_thin_walk walk = tdmi_conv_thin_walk(desc, way);
    const int taps = walk.kernel * walk.kernel;
    for (int group = 0; group < walk.out; group += walk.wide)
        for (int tap = 0; tap < taps; tap++)
            for (int i = 0; i < walk.in; i++)
                for (int k = 0; k < walk.wide; k++) {
                    int64_t at =
                        way == TDMI_CONV_FORWARD
                            ? ((int64_t)tap * desc->in + i) * desc->out + group + k
                            : ((int64_t)(taps - 1 - tap) * desc->in + group + k) * desc->out + i;
                    *packed++ = weights[at];
                }
}

void tdmi_conv_thin_forward(const struct tdmi_conv_thin *desc, const struct tdmi_conv_forward *call,
                            uint8_t *winners)
{
    kernels_of(desc->isa)->forward(desc, call, winners);
}

void tdmi_conv_thin_backward(const struct tdmi_conv_thin *desc,
                             const struct tdmi_conv_backward *call)
{
    kernels_of(desc->isa)->backward(desc, call);
}
