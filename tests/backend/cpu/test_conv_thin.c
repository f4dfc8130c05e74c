/*
 * Thin convolutions of backend cpu against their definition in double, in every instruction set
 * that is here, with fewer, as many and more pictures than there are lanes.
 */
#include "backend/cpu/conv_thin.h"
#include "base/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

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

static float *values(size_t n, bool is_nothing)
{
    static uint32_t state = 7;
    float *made = tdmi_alloc_aligned(n * sizeof *made);
    assert_non_null(made);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        made[i] = is_nothing ? NAN : (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return made;
}

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

static void near(const struct data *data, const char *what, size_t at, double got, double wanted,
                 double size)
{
    const struct shape *s = data->shape;
    if (!(fabs(got - wanted) <= 2e-6 * (1 + size)))
        fail_msg("%s[%zu] of %d pictures of %d×%d×%d, %d out, kernel %d is %.9g, wanted %.9g", what,
                 at, s->n, s->h, s->w, s->in, s->out, s->kernel, got, wanted);
}

/* What one output sees: visit every tap inside of the picture. */
typedef void visitor(void *self, size_t x, size_t w, size_t y);

static void visit(const struct data *data, visitor *tap, void *self)
{
    const struct shape *s = data->shape;
    const struct tdmi_conv_thin *conv = &data->conv;
    size_t y = 0;
    for (int i = 0; i < s->n; i++)
        for (int row = 0; row < conv->out_h; row++)
            for (int column = 0; column < conv->out_w; column++)
                for (int o = 0; o < s->out; o++, y++)
                    for (int t = 0; t < s->kernel * s->kernel * s->in; t++) {
                        int at_y = row - s->pad + t / s->in / s->kernel;
                        int at_x = column - s->pad + t / s->in % s->kernel;
                        if (at_y >= 0 && at_y < s->h && at_x >= 0 && at_x < s->w)
                            tap(self,
                                (size_t)(((i * s->h + at_y) * s->w + at_x) * s->in + t % s->in),
                                (size_t)(t * s->out + o), y);
                    }
}

/* Sums of products and of their sizes. */
struct wanted {
    const struct data *data;
    double *y, *dx, *dw;
};

static void add_forward(void *self, size_t x, size_t w, size_t y)
{
    struct wanted *it = self;
    it->y[2 * y] += (double)it->data->x[x] * (double)it->data->w[w];
    it->y[2 * y + 1] += fabs((double)it->data->x[x] * (double)it->data->w[w]);
}

static void add_backward(void *self, size_t x, size_t w, size_t y)
{
    struct wanted *it = self;
    double g = (double)it->data->g[y];
    it->dx[2 * x] += g * (double)it->data->w[w];
    it->dx[2 * x + 1] += fabs(g * (double)it->data->w[w]);
    it->dw[2 * w] += g * (double)it->data->x[x];
    it->dw[2 * w + 1] += fabs(g * (double)it->data->x[x]);
}

static void check_forward(struct data *data)
{
    struct wanted wanted = {data, tdmi_alloc(2 * data->outs, sizeof(double)), NULL, NULL};
    assert_non_null(wanted.y);
    visit(data, add_forward, &wanted);
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
            near(data, "y", i, (double)data->y[i], wanted.y[2 * i] + bias, wanted.y[2 * i + 1]);
        }
    }
    tdmi_free(wanted.y);
}

static void check_backward(struct data *data)
{
    struct wanted wanted = {data, NULL, tdmi_alloc(2 * data->ins, sizeof(double)),
                            tdmi_alloc(2 * data->weights, sizeof(double))};
    assert_true(wanted.dx && wanted.dw);
    visit(data, add_backward, &wanted);
    tdmi_conv_thin_backward(
        &data->conv, &(struct tdmi_conv_backward){.n = data->shape->n,
                                                  .x = data->x,
                                                  .g = data->g,
                                                  .packed = data->backward,
                                                  .dweights = data->dw,
                                                  .dbias = data->dbias,
                                                  .dx = data->conv.wants_dx ? data->dx : NULL,
                                                  .workspace = data->workspace});
    for (size_t i = 0; data->conv.wants_dx && i < data->ins; i++)
        near(data, "dx", i, (double)data->dx[i], wanted.dx[2 * i], wanted.dx[2 * i + 1]);
    for (size_t i = 0; i < data->weights; i++)
        near(data, "dweights", i, (double)data->dw[i], wanted.dw[2 * i], wanted.dw[2 * i + 1]);
    const size_t out = (size_t)data->shape->out;
    for (size_t o = 0; o < out; o++) {
        double sum = 0, size = 0;
        for (size_t i = o; i < data->outs; i += out) {
            sum += (double)data->g[i];
            size += fabs((double)data->g[i]);
        }
        near(data, "dbias", o, (double)data->dbias[o], sum, size);
    }
    tdmi_free(wanted.dx);
    tdmi_free(wanted.dw);
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
