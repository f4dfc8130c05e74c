/*
 * A dense layer, weights (in, out), over the flattened picture: y = x w + b.
 */
#include "backend/ref/ref.h"

#include <string.h>

TDMI_KERNEL_RUN(forward)
{
    int in = (int)tdmi_shape_values(desc->in[0]), out = desc->out.c;
    for (int i = 0; i < call->n; i++)
        for (int o = 0; o < out; o++)
            call->y[(int64_t)i * out + o] = desc->attrs.has_bias ? call->params[1][o] : 0.0f;
    tdmi_ref_multiply_add(&(struct tdmi_product){
        .rows = call->n,
        .columns = out,
        .depth = in,
        .a = call->x[0],
        .a_row = in,
        .a_column = 1,
        .b = call->params[0],
        .b_row = out,
        .c = call->y,
        .c_row = out,
    });
}

TDMI_KERNEL_RUN(backward)
{
    int in = (int)tdmi_shape_values(desc->in[0]), out = desc->out.c;
    memset(call->dparams[0], 0, sizeof(float) * (size_t)in * (size_t)out);
    tdmi_ref_multiply_add(&(struct tdmi_product){
        .rows = in,
        .columns = out,
        .depth = call->n,
        .a = call->x[0],
        .a_row = 1,
        .a_column = in,
        .b = call->dy,
        .b_row = out,
        .c = call->dparams[0],
        .c_row = out,
    });
    if (desc->attrs.has_bias) {
        memset(call->dparams[1], 0, sizeof(float) * (size_t)out);
        for (int i = 0; i < call->n; i++)
            for (int o = 0; o < out; o++)
                call->dparams[1][o] += call->dy[(int64_t)i * out + o];
    }
    if (desc->wants_dx) {
        float *transposed = call->workspace;
        tdmi_ref_transpose(call->params[0], in, out, transposed);
        memset(call->dx[0], 0, sizeof(float) * (size_t)call->n * (size_t)in);
        tdmi_ref_multiply_add(&(struct tdmi_product){
            .rows = call->n,
            .columns = in,
            .depth = out,
            .a = call->dy,
            .a_row = out,
            .a_column = 1,
            .b = transposed,
            .b_row = in,
            .c = call->dx[0],
            .c_row = in,
        });
    }
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    if (desc->is_training && desc->wants_dx)
        needs->workspace_bytes =
            sizeof(float) * (size_t)tdmi_shape_values(desc->in[0]) * (size_t)desc->out.c;
}

const struct tdmi_kernel tdmi_ref_dense = {
    .needs = needs, .forward = forward, .backward = backward};
