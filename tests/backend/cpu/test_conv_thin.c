/*
 * Thin convolutions of backend cpu against their definition in double, in every instruction set
 * that is here, with fewer, as many and more pictures than there are lanes.
 */
#include "backend/cpu/thin_taps.h"

static const struct shape {
    int n, h, w, in, out, kernel, pad, more_pad;
} shapes[] = {
    {16, 12, 12, 1, 6, 5, 2, 2}, {17, 9, 8, 6, 16, 5, 0, 0},  {1, 1, 1, 1, 1, 3, 1, 1},
    {3, 2, 5, 3, 5, 2, 0, 1},    {16, 3, 17, 2, 2, 3, 2, 0},  {33, 5, 5, 4, 9, 3, 1, 1},
    {7, 6, 1, 5, 7, 4, 3, 3},    {16, 1, 13, 15, 4, 2, 1, 1}, {5, 20, 3, 7, 12, 5, 4, 4},
    {2, 4, 60, 1, 8, 7, 3, 3},
};
enum { n_shapes = sizeof shapes / sizeof *shapes };

struct data {
    const struct shape *shape;
    struct tdmi_conv_thin conv;
    size_t ins, outs, weights;
    float *x, *w, *bias, *g, *y, *dx, *dw, *dbias, *forward, *backward;
    void *workspace;
};

static void data_init(struct data *data, const struct shape *shape, enum tdmi_isa isa,
                      bool wants_dx)
{
    const int grow = shape->pad + shape->more_pad - shape->kernel + 1;
    data->shape = shape;
    data->conv = (struct tdmi_conv_thin){.h = shape->h,
                                         .w = shape->w,
                                         .in = shape->in,
                                         .out_h = shape->h + grow,
                                         .out_w = shape->w + grow,
                                         .out = shape->out,
                                         .kernel = shape->kernel,
                                         .top = shape->pad,
                                         .left = shape->pad,
                                         .wants_dx = wants_dx,
                                         .isa = isa};
    data->ins = (size_t)(shape->n * shape->h * shape->w * shape->in);
    data->outs = (size_t)(shape->n * data->conv.out_h * data->conv.out_w * shape->out);
    data->weights = (size_t)(shape->kernel * shape->kernel * shape->in * shape->out);
    data->x = values(data->ins, false);
    data->w = values(data->weights, false);
    data->bias = values((size_t)shape->out, false);
    data->g = values(data->outs, false);
    data->y = values(data->outs, true);
    data->dx = values(data->ins, true);
    data->dw = values(data->weights, true);
    data->dbias = values((size_t)shape->out, true);
    data->forward =
        values(tdmi_conv_thin_packed_bytes(&data->conv, TDMI_CONV_FORWARD) / sizeof(float), true);
    data->backward =
        values(tdmi_conv_thin_packed_bytes(&data->conv, TDMI_CONV_BACKWARD) / sizeof(float), true);
    data->workspace = values(tdmi_conv_thin_workspace_bytes(&data->conv) / sizeof(float), true);
    tdmi_conv_thin_pack(&data->conv, TDMI_CONV_FORWARD, data->w, data->forward);
    tdmi_conv_thin_pack(&data->conv, TDMI_CONV_BACKWARD, data->w, data->backward);
}

static void data_release(struct data *data)
{
    void *all[] = {data->x,  data->w,     data->bias,    data->g,        data->y,        data->dx,
                   data->dw, data->dbias, data->forward, data->backward, data->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tdmi_free(all[i]);
}

/* Sums of products and of their sizes. */
struct outputs {
    const struct data *data;
    double *y;
};

static void add_forward(void *self, size_t x, size_t w, size_t y)
{
    struct outputs *it = self;
    it->y[2 * y] += (double)it->data->x[x] * (double)it->data->w[w];
    it->y[2 * y + 1] += fabs((double)it->data->x[x] * (double)it->data->w[w]);
}

static void check_forward(struct data *data)
{
    struct outputs wanted = {data, tdmi_alloc(2 * data->outs, sizeof(double))};
    assert_non_null(wanted.y);
    visit(&data->conv, data->shape->n, add_forward, &wanted);
    for (int has_bias = 0; has_bias < 2; has_bias++) {
        tdmi_conv_thin_forward(&data->conv,
                               &(struct tdmi_conv_forward){.n = data->shape->n,
                                                           .x = data->x,
                                                           .packed = data->forward,
                                                           .bias = has_bias ? data->bias : NULL,
                                                           .y = data->y,
                                                           .workspace = data->workspace},
                               NULL);
        for (size_t i = 0; i < data->outs; i++) {
            double bias = has_bias ? (double)data->bias[i % (size_t)data->shape->out] : 0.0;
            near(&data->conv, data->shape->n, "y", i, (double)data->y[i], wanted.y[2 * i] + bias,
                 wanted.y[2 * i + 1]);
        }
    }
    tdmi_free(wanted.y);
}

static void check_backward(struct data *data)
{
    double *g = tdmi_alloc(data->outs, sizeof *g);
    float *dx = data->conv.wants_dx ? data->dx : NULL;
    assert_non_null(g);
    for (size_t i = 0; i < data->outs; i++)
        g[i] = (double)data->g[i];
    tdmi_conv_thin_backward(&data->conv,
                            &(struct tdmi_conv_backward){.n = data->shape->n,
                                                         .x = data->x,
                                                         .g = data->g,
                                                         .packed = data->backward,
                                                         .dweights = data->dw,
                                                         .dbias = data->dbias,
                                                         .dx = dx,
                                                         .workspace = data->workspace});
    check_gradients(&data->conv, data->shape->n,
                    &(struct gradients){data->x, data->w, g, dx, data->dw, data->dbias});
    tdmi_free(g);
}

static void each(void (*check)(struct data *data), bool wants_dx)
{
    for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++)
        for (int i = 0; i < n_shapes; i++) {
            struct data data;
            data_init(&data, &shapes[i], (enum tdmi_isa)isa, wants_dx);
            check(&data);
            data_release(&data);
        }
}

static void forward_is_the_convolution(void **state)
{
    (void)state;
    each(check_forward, false);
}

static void backward_makes_every_gradient(void **state)
{
    (void)state;
    each(check_backward, true);
}

static void backward_without_dx_makes_the_weights_gradients(void **state)
{
    (void)state;
    each(check_backward, false);
}

/* What is said of one picture does not depend on those beside it. */
static void pictures_do_not_know_each_other(void **state)
{
    struct data data;
    (void)state;
    data_init(&data, &shapes[0], tdmi_isa_best(), true);
    const size_t picture = data.outs / (size_t)shapes[0].n;
    struct tdmi_conv_forward call = {.n = shapes[0].n,
                                     .x = data.x,
                                     .packed = data.forward,
                                     .y = data.y,
                                     .workspace = data.workspace};
    tdmi_conv_thin_forward(&data.conv, &call, NULL);
    float *alone = values(picture, true);
    call.n = 1;
    call.x = data.x + 5 * (data.ins / (size_t)shapes[0].n);
    call.y = alone;
    tdmi_conv_thin_forward(&data.conv, &call, NULL);
    assert_memory_equal(alone, data.y + 5 * picture, picture * sizeof *alone);
    tdmi_free(alone);
    data_release(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_convolution),
        cmocka_unit_test(backward_makes_every_gradient),
        cmocka_unit_test(backward_without_dx_makes_the_weights_gradients),
        cmocka_unit_test(pictures_do_not_know_each_other),
    };
    return cmocka_run_group_tests_name(TEST_NAME, tests, NULL, NULL);
}
