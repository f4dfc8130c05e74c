/*
 * Dense layers with images as lanes against their definition in double, in every instruction set
 * that is here: groups that fill the vectors and ragged ones, sizes that blocks fit and do not.
 */
#include "backend/cpu/gemm/dense_lanes.h"
#include "base/memory.h"
#include "unit.h"

#include <math.h>

enum { GUARD = 16 };

static const struct shape {
    int n, max_images, in, out;
} shapes[] = {
    {16, 16, 400, 120}, {16, 16, 120, 84}, {16, 16, 84, 10}, {1, 16, 7, 5},   {5, 8, 1, 1},
    {17, 32, 13, 17},   {32, 32, 6, 100},  {31, 32, 5, 23},  {8, 16, 12, 24}, {3, 4, 25, 49},
    {16, 16, 3, 64},    {9, 16, 37, 11},   {2, 16, 64, 3},
};
enum { n_shapes = sizeof shapes / sizeof *shapes };

struct data {
    struct tdmi_dense_lanes dense;
    struct tdmi_dense_call call;
    float *x, *weights, *bias, *y, *dy, *dweights, *dbias, *dx, *workspace;
};

/* Noise between -1 and 1, or what is to be written: NaN, and what must stay. */
static float *values(int n, bool is_noise)
{
    static uint32_t state = 11;
    float *made = tdmi_alloc_aligned(((size_t)n + GUARD) * sizeof *made);
    assert_non_null(made);
    for (int i = 0; i < n + GUARD; i++) {
        state = state * 1664525u + 1013904223u;
        made[i] = i >= n ? 3.0f : is_noise ? (float)(state >> 8) / 8388608.0f - 1.0f : NAN;
    }
    return made;
}

static void data_init(struct data *it, const struct shape *shape, enum tdmi_isa isa)
{
    const int n = shape->n, in = shape->in, out = shape->out;
    it->dense = (struct tdmi_dense_lanes){in, out, shape->max_images, isa};
    it->x = values(n * in, true);
    it->weights = values(in * out, true);
    it->bias = values(out, true);
    it->dy = values(n * out, true);
    it->y = values(n * out, false);
    it->dweights = values(in * out, false);
    it->dbias = values(out, false);
    it->dx = values(n * in, false);
    it->workspace =
        values((int)(tdmi_dense_lanes_workspace_bytes(&it->dense) / sizeof *it->workspace), false);
    it->call = (struct tdmi_dense_call){.n = n,
                                        .x = it->x,
                                        .weights = it->weights,
                                        .bias = it->bias,
                                        .y = it->y,
                                        .dy = it->dy,
                                        .dweights = it->dweights,
                                        .dbias = it->dbias,
                                        .dx = it->dx,
                                        .workspace = it->workspace};
}

static void data_release(struct data *it)
{
    float *all[] = {it->x,        it->weights, it->bias, it->y,        it->dy,
                    it->dweights, it->dbias,   it->dx,   it->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tdmi_free(all[i]);
}

static void near(const struct data *it, const char *what, int at, float got, double wanted,
                 int terms)
{
    if (!(fabs((double)got - wanted) <= 4e-7 * (2 + terms)))
        fail_msg("%s[%d] of %d pictures, %d in, %d out, set %d is %.9g, wanted %.9g", what, at,
                 it->call.n, it->dense.in, it->dense.out, (int)it->dense.isa, (double)got, wanted);
}

static void stays(const float *values, int n)
{
    for (int i = n; i < n + GUARD; i++)
        assert_true(values[i] == 3.0f);
}

static void check_forward(const struct data *it)
{
    const int n = it->call.n, in = it->dense.in, out = it->dense.out;
    tdmi_dense_lanes_kernels(it->dense.isa)->forward(&it->dense, &it->call);
    for (int i = 0; i < n; i++)
        for (int o = 0; o < out; o++) {
            double sum = it->call.bias ? (double)it->bias[o] : 0.0;
            for (int c = 0; c < in; c++)
                sum += (double)it->x[i * in + c] * (double)it->weights[c * out + o];
            near(it, "y", i * out + o, it->y[i * out + o], sum, in);
        }
    stays(it->y, n * out);
}

static void check_dx(const struct data *it)
{
    const int n = it->call.n, in = it->dense.in, out = it->dense.out;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < in; c++) {
            double sum = 0.0;
            for (int o = 0; o < out; o++)
                sum += (double)it->dy[i * out + o] * (double)it->weights[c * out + o];
            if (it->call.dx)
                near(it, "dx", i * in + c, it->dx[i * in + c], sum, out);
            else
                assert_true(isnan(it->dx[i * in + c]));
        }
}

static void check_backward(const struct data *it)
{
    const int n = it->call.n, in = it->dense.in, out = it->dense.out;
    tdmi_dense_lanes_kernels(it->dense.isa)->backward(&it->dense, &it->call);
    for (int o = 0; o < out; o++) {
        double bias = 0.0;
        for (int i = 0; i < n; i++)
            bias += (double)it->dy[i * out + o];
        if (it->call.dbias)
            near(it, "dbias", o, it->dbias[o], bias, n);
        for (int c = 0; c < in; c++) {
            double sum = 0.0;
            for (int i = 0; i < n; i++)
                sum += (double)it->x[i * in + c] * (double)it->dy[i * out + o];
            near(it, "dweights", c * out + o, it->dweights[c * out + o], sum, n);
        }
    }
    check_dx(it);
    stays(it->dweights, in * out);
    stays(it->dbias, out);
    stays(it->dx, n * in);
    stays(it->workspace,
          (int)(tdmi_dense_lanes_workspace_bytes(&it->dense) / sizeof *it->workspace));
}

static void each(void (*check)(const struct data *it), bool has_bias, bool wants_dx)
{
    for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++)
        for (int i = 0; i < n_shapes; i++) {
            struct data data;
            data_init(&data, &shapes[i], (enum tdmi_isa)isa);
            if (!has_bias)
                data.call.bias = data.call.dbias = NULL;
            if (!wants_dx)
                data.call.dx = NULL;
            check(&data);
            data_release(&data);
        }
}

TEST(forward_is_products_and_bias)
{
    each(check_forward, true, true);
    each(check_forward, false, true);
}

TEST(backward_makes_every_requested_gradient)
{
    each(check_backward, true, true);
    each(check_backward, false, true);
    each(check_backward, true, false);
}

/* The result of an image does not depend on the others of the group. */
TEST(an_image_has_the_same_bits_alone)
{
    for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++) {
        struct data all, one;
        data_init(&all, &shapes[1], (enum tdmi_isa)isa);
        tdmi_dense_lanes_kernels((enum tdmi_isa)isa)->forward(&all.dense, &all.call);
        data_init(&one, &shapes[1], (enum tdmi_isa)isa);
        one.call = all.call;
        one.call.n = 1;
        one.call.x = all.x + 3 * all.dense.in;
        one.call.y = one.y;
        tdmi_dense_lanes_kernels((enum tdmi_isa)isa)->forward(&one.dense, &one.call);
        assert_memory_equal(one.y, all.y + 3 * all.dense.out,
                            sizeof(float) * (size_t)all.dense.out);
        data_release(&all);
        data_release(&one);
    }
}

TEST_MAIN(NULL, NULL)
