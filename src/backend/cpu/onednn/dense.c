/*
 * A dense layer by oneDNN's products, weights (in, out): y = x w + b.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/onednn/library.h"
#include "base/scope.h"
#include "base/team.h"

#include <string.h>

enum { FORWARD, OF_WEIGHTS, OF_INPUT, PRODUCTS };

struct products {
    const struct tdmi_onednn_table *onednn;
    _Atomic int64_t made_for[PRODUCTS];
};

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    const struct tdmi_onednn_table *onednn;
    struct products *products = NULL;
    (void)desc;
    TDMI_TRY(tdmi_onednn_load(&onednn, err));
    TDMI_TRY(TDMI_NEW(products, 1, err));
    products->onednn = onednn;
    *prepared = products;
    return TDM_OK;
}

static void multiply(tdmi_stream *stream, struct products *products, int which,
                     struct tdmi_onednn_product product)
{
    product.made_for = &products->made_for[which];
    tdmi_onednn_note(stream, products->onednn->multiply(&product));
}

/* Without training row by row: the product of several rows may round a row in another way than it
 * does alone, but what is said about a picture must not depend on its neighbours. A team shares
 * the rows then. */
TDMI_KERNEL_RUN(forward)
{
    struct products *products = desc->prepared;
    const int in = (int)tdmi_shape_values(desc->in[0]), out = desc->out.c;
    const struct tdmi_share rows =
        tdmi_member_share(desc->is_training ? NULL : call->member, call->n);
    if (rows.first == rows.end || (desc->is_training && !tdmi_member_is_first(call->member)))
        return;
    float *y = call->y + rows.first * out;
    for (int64_t i = rows.first; desc->attrs.has_bias && i < rows.end; i++)
        memcpy(call->y + i * out, call->params[1], sizeof(float) * (size_t)out);
    multiply(stream, products, FORWARD,
             (struct tdmi_onednn_product){.rows = (int)(rows.end - rows.first),
                                          .columns = out,
                                          .depth = in,
                                          .adds = desc->attrs.has_bias,
                                          .goes_by_row = !desc->is_training,
                                          .a = call->x[0] + rows.first * in,
                                          .b = call->params[0],
                                          .c = y});
}

static void backward_bias(const struct tdmi_op_call *call, int out)
{
    memset(call->dparams[1], 0, sizeof(float) * (size_t)out);
    for (int i = 0; i < call->n; i++)
        for (int o = 0; o < out; o++)
            call->dparams[1][o] += call->dy[(int64_t)i * out + o];
}

TDMI_KERNEL_RUN(backward)
{
    const int in = (int)tdmi_shape_values(desc->in[0]), out = desc->out.c;
    struct products *products = desc->prepared;
    multiply(stream, products, OF_WEIGHTS,
             (struct tdmi_onednn_product){.rows = in,
                                          .columns = out,
                                          .depth = call->n,
                                          .is_a_transposed = true,
                                          .a = call->x[0],
                                          .b = call->dy,
                                          .c = call->dparams[0]});
    if (desc->attrs.has_bias)
        backward_bias(call, out);
    if (call->dx[0])
        multiply(stream, products, OF_INPUT,
                 (struct tdmi_onednn_product){.rows = call->n,
                                              .columns = in,
                                              .depth = out,
                                              .is_b_transposed = true,
                                              .a = call->dy,
                                              .b = call->params[0],
                                              .c = call->dx[0]});
}

const struct tdmi_kernel tdmi_dense_by_onednn = {.shares_forward = TDMI_SHARING_OWN,
                                                 .prepare = prepare,
                                                 .release = tdmi_free,
                                                 .forward = forward,
                                                 .backward = backward};
