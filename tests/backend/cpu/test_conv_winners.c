/*
 * Thin convolutions with a max pool behind them, forward and backward, against their definition in
 * double, in every instruction set that is here. Backward is judged by the winners that forward
 * chose, each of which is shown to be one first.
 */
#include "backend/cpu/conv/conv_winners.h"
#include "backend/cpu/thin_taps.h"

static const struct shape {
    int n, h, w, in, out, kernel, pad, more_pad, pool;
    enum tdmi_act act;
} shapes[] = {
    {17, 12, 12, 1, 6, 5, 2, 2, 2, TDMI_ACT_RELU}, {16, 9, 8, 6, 16, 5, 0, 0, 2, TDMI_ACT_RELU},
    {1, 2, 2, 1, 1, 3, 1, 1, 2, TDMI_ACT_NONE},    {3, 7, 5, 3, 5, 3, 0, 1, 3, TDMI_ACT_RELU},
    {33, 5, 9, 2, 2, 3, 2, 0, 2, TDMI_ACT_NONE},   {5, 6, 1, 5, 7, 3, 1, 2, 2, TDMI_ACT_RELU},
    {2, 4, 11, 8, 9, 5, 2, 2, 4, TDMI_ACT_RELU},   {16, 8, 3, 4, 4, 5, 4, 4, 3, TDMI_ACT_NONE},
    {9, 6, 7, 7, 3, 5, 2, 1, 2, TDMI_ACT_RELU},    {4, 5, 5, 2, 1, 5, 2, 2, 2, TDMI_ACT_NONE},
    {7, 9, 6, 8, 2, 3, 1, 1, 2, TDMI_ACT_RELU},
};
enum { n_shapes = sizeof shapes / sizeof *shapes };

struct data {
    const struct shape *shape;
    struct tdmi_conv_thin conv;
    int pooled_h, pooled_w;
    size_t ins, outs, pooled, weights;
    float *x, *w, *bias, *g, *y, *dx, *dw, *dbias, *forward, *backward;
    uint8_t *winners;
    double *whole; /* what the conv alone gives */
    double *dy;    /* the gradient of that */
    void *workspace;
};

static void data_init(struct data *data, const struct shape *shape, enum tdmi_isa isa,
                      bool wants_dx)
{
    const int grow = shape->pad + shape->more_pad - shape->kernel + 1;
    *data = (struct data){.shape = shape};
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
                                         .pool = shape->pool,
                                         .act = shape->act,
                                         .isa = isa};
    assert_true(tdmi_conv_winners_can(&data->conv));
    data->pooled_h = data->conv.out_h / shape->pool;
    data->pooled_w = data->conv.out_w / shape->pool;
    data->ins = (size_t)(shape->n * shape->h * shape->w * shape->in);
    data->outs = (size_t)(shape->n * data->conv.out_h * data->conv.out_w * shape->out);
    data->pooled = (size_t)(shape->n * data->pooled_h * data->pooled_w * shape->out);
    data->weights = (size_t)(shape->kernel * shape->kernel * shape->in * shape->out);
    data->x = values(data->ins, false);
    data->w = values(data->weights, false);
    data->bias = values((size_t)shape->out, false);
    data->g = values(data->pooled, false);
    data->y = values(data->pooled, true);
    data->dx = values(data->ins, true);
    data->dw = values(data->weights, true);
    data->dbias = values((size_t)shape->out, true);
    data->forward =
        values(tdmi_conv_thin_packed_bytes(&data->conv, TDMI_CONV_FORWARD) / sizeof(float), true);
    data->backward = values(tdmi_conv_winners_packed_bytes(&data->conv) / sizeof(float), true);
    data->winners = tdmi_alloc(data->pooled, 1);
    data->whole = tdmi_alloc(data->outs, sizeof *data->whole);
    data->dy = tdmi_alloc(data->outs, sizeof *data->dy);
    assert_true(data->winners && data->whole && data->dy);
    tdmi_conv_thin_pack(&data->conv, TDMI_CONV_FORWARD, data->w, data->forward);
    tdmi_conv_winners_pack(&data->conv, data->w, data->backward);
}

static void data_release(struct data *data)
{
    void *all[] = {data->x,     data->w,  data->bias,    data->g,        data->y,
                   data->dx,    data->dw, data->dbias,   data->forward,  data->backward,
                   data->whole, data->dy, data->winners, data->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tdmi_free(all[i]);
}

static void add_forward(void *self, size_t x, size_t w, size_t y)
{
    struct data *it = self;
    it->whole[y] += (double)it->x[x] * (double)it->w[w];
}

static void run_forward(struct data *data)
{
    const size_t bytes = tdmi_conv_thin_workspace_bytes(&data->conv);
    data->workspace = values(bytes / sizeof(float), true);
    tdmi_conv_thin_forward(&data->conv,
                           &(struct tdmi_conv_forward){.n = data->shape->n,
                                                       .x = data->x,
                                                       .packed = data->forward,
                                                       .bias = data->bias,
                                                       .y = data->y,
                                                       .workspace = data->workspace},
                           data->winners);
    tdmi_free(data->workspace);
    data->workspace = NULL;
}

/* One value of the pool: its size, that the winner is one, and where its gradient goes. */
static void check_value(struct data *data, size_t at, const size_t *window, double bias)
{
    const int pool = data->shape->pool, winner = data->winners[at];
    double best = -HUGE_VAL;
    for (int tap = 0; tap < pool * pool; tap++)
        best = fmax(best, data->whole[window[tap]] + bias);
    const bool has_relu = data->shape->act == TDMI_ACT_RELU;
    near(&data->conv, data->shape->n, "y", at, (double)data->y[at],
         has_relu ? fmax(best, 0.0) : best, 50);
    assert_true(winner < pool * pool || (has_relu && winner == pool * pool));
    if (winner == pool * pool) {
        near(&data->conv, data->shape->n, "what is cut off", at, fmax(best, 0.0), 0.0, 50);
        assert_true(data->y[at] == 0.0f);
        return;
    }
    near(&data->conv, data->shape->n, "the winner", at, data->whole[window[winner]] + bias, best,
         50);
    assert_true(!has_relu || data->y[at] > 0.0f);
    data->dy[window[winner]] = (double)data->g[at];
}

static void check_forward(struct data *data)
{
    const int pool = data->shape->pool, out = data->shape->out;
    const int h = data->conv.out_h, w = data->conv.out_w;
    size_t at = 0;
    run_forward(data);
    visit(&data->conv, data->shape->n, add_forward, data);
    for (int i = 0; i < data->shape->n; i++)
        for (int row = 0; row < data->pooled_h; row++)
            for (int column = 0; column < data->pooled_w; column++)
                for (int o = 0; o < out; o++, at++) {
                    size_t window[TDMI_WINNERS_MOST_POOL * TDMI_WINNERS_MOST_POOL];
                    for (int tap = 0; tap < pool * pool; tap++)
                        window[tap] = (size_t)(((i * h + row * pool + tap / pool) * w +
                                                column * pool + tap % pool) *
                                                   out +
                                               o);
                    check_value(data, at, window, (double)data->bias[o]);
                }
    assert_int_equal(at, data->pooled);
}

static void check_backward(struct data *data)
{
    float *dx = data->conv.wants_dx ? data->dx : NULL;
    check_forward(data);
    data->workspace = values(tdmi_conv_winners_workspace_bytes(&data->conv) / sizeof(float), true);
    tdmi_conv_winners_backward(&data->conv,
                               &(struct tdmi_conv_backward){.n = data->shape->n,
                                                            .x = data->x,
                                                            .g = data->g,
                                                            .packed = data->backward,
                                                            .dweights = data->dw,
                                                            .dbias = data->dbias,
                                                            .dx = dx,
                                                            .workspace = data->workspace},
                               data->winners);
    check_gradients(&data->conv, data->shape->n,
                    &(struct gradients){data->x, data->w, data->dy, dx, data->dw, data->dbias});
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

static void forward_is_the_pool_of_the_convolution(void **state)
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

static void what_it_has_no_loops_for_is_refused(void **state)
{
    const struct tdmi_conv_thin can = {
        .h = 8, .w = 8, .in = 6, .out_h = 8, .out_w = 8, .out = 4, .kernel = 5, .pool = 2};
    struct tdmi_conv_thin conv = can;
    (void)state;
    assert_true(tdmi_conv_winners_can(&conv));
    conv.kernel = 4;
    assert_false(tdmi_conv_winners_can(&conv));
    conv = can;
    conv.in = 9;
    assert_false(tdmi_conv_winners_can(&conv));
    conv = can;
    conv.pool = 5;
    assert_false(tdmi_conv_winners_can(&conv));
    conv = can;
    conv.out_w = 1;
    assert_false(tdmi_conv_winners_can(&conv));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_pool_of_the_convolution),
        cmocka_unit_test(backward_makes_every_gradient),
        cmocka_unit_test(backward_without_dx_makes_the_weights_gradients),
        cmocka_unit_test(what_it_has_no_loops_for_is_refused),
    };
    return cmocka_run_group_tests_name(TEST_NAME, tests, NULL, NULL);
}
