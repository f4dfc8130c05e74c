/* Gradients of winners: sizes, packed weights, and which instruction set runs them. */
#include "backend/cpu/conv/conv_winners.h"
#include "backend/cpu/cpu.h"

#include <string.h>

enum { LINE = 16 }; /* floats */

TDMI_TABLE_OF(static const struct tdmi_conv_winners_kernels *kernels_of, tdmi_conv_winners)

bool tdmi_conv_winners_can(const struct tdmi_conv_thin *desc)
{
    return (desc->kernel == 3 || desc->kernel == 5) && desc->in <= TDMI_WINNERS_LANES &&
           desc->pool >= 2 && desc->pool <= TDMI_WINNERS_MOST_POOL && desc->out_h >= desc->pool &&
           desc->out_w >= desc->pool;
}

/* They are as wide as floats. */
static int32_t *take_numbers(float *base, int64_t *total, int64_t values)
{
    return (int32_t *)(void *)tdmi_cpu_take(base, total, values);
}

struct tdmi_winners_frame tdmi_conv_winners_frame(const struct tdmi_conv_thin *desc,
                                                  void *workspace)
{
    struct tdmi_winners_frame frame = {.rows = desc->out_h + desc->kernel - 1,
                                       .columns = desc->out_w + desc->kernel - 1,
                                       .pixel = 1,
                                       .pooled_h = desc->out_h / desc->pool,
                                       .pooled_w = desc->out_w / desc->pool,
                                       .no_one = desc->pool * desc->pool};
    while (frame.pixel < desc->in)
        frame.pixel *= 2;
    frame.vectors = (desc->kernel * frame.pixel + TDMI_WINNERS_LANES - 1) / TDMI_WINNERS_LANES;
    frame.values = (int64_t)frame.rows * frame.columns * frame.pixel + TDMI_WINNERS_LANES;
    frame.channel = (int64_t)desc->kernel * frame.vectors * TDMI_WINNERS_LANES;
    frame.length = ((int64_t)frame.pooled_h * frame.pooled_w + LINE - 1) / LINE * LINE;
    frame.x = tdmi_cpu_take(workspace, &frame.total, frame.values);
    frame.dx = tdmi_cpu_take(workspace, &frame.total, desc->wants_dx ? frame.values : 0);
    frame.at = take_numbers(workspace, &frame.total, desc->out * frame.length);
    frame.g = tdmi_cpu_take(workspace, &frame.total, desc->out * frame.length);
    frame.counts = take_numbers(workspace, &frame.total, desc->out);
    frame.starts = take_numbers(workspace, &frame.total, frame.length);
    frame.taps = take_numbers(workspace, &frame.total, frame.no_one + 1);
    frame.sums = tdmi_cpu_take(workspace, &frame.total, desc->out * frame.channel);
    frame.bias = tdmi_cpu_take(workspace, &frame.total, (int64_t)desc->out * TDMI_WINNERS_LANES);
    return frame;
}

size_t tdmi_conv_winners_workspace_bytes(const struct tdmi_conv_thin *desc)
{
    return sizeof(float) * (size_t)tdmi_conv_winners_frame(desc, NULL).total;
}

size_t tdmi_conv_winners_packed_bytes(const struct tdmi_conv_thin *desc)
{
    return sizeof(float) * (size_t)(desc->out * tdmi_conv_winners_frame(desc, NULL).channel);
}

/* (out, kernel, row of a window as it lies in the frame), zeros where no channel is. */
void tdmi_conv_winners_pack(const struct tdmi_conv_thin *desc, const float *weights, float *packed)
{
    const struct tdmi_winners_frame frame = tdmi_conv_winners_frame(desc, NULL);
    const int64_t row_values = (int64_t)frame.vectors * TDMI_WINNERS_LANES;
    memset(packed, 0, tdmi_conv_winners_packed_bytes(desc));
    for (int tap = 0; tap < desc->kernel * desc->kernel; tap++)
        for (int i = 0; i < desc->in; i++, weights += desc->out)
            for (int k = 0; k < desc->out; k++)
                packed[k * frame.channel + tap / desc->kernel * row_values +
                       tap % desc->kernel * frame.pixel + i] = weights[k];
}

void tdmi_conv_winners_backward(const struct tdmi_conv_thin *desc,
                                const struct tdmi_conv_backward *call, const uint8_t *winners)
{
    kernels_of(desc->isa)->backward(desc, call, winners);
}
