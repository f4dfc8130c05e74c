/*
 * Sums over pixels that convolutions of backend cpu hand out: as good as the values that are
 * summed. All values have one sign and sums are long, so that f32 alone is off by several of its
 * roundings. Wanted is the sum in double of the very values that the kernel wrote.
 */
#include "backend/cpu/conv/conv_gemm.h"
#include "base/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { side = 41, images = 2, pixels = images * side * side };

static const struct shape {
    int in, out, kernel;
} shapes[] = {
    {16, 48, 1}, /* pixels alone */
    {5, 24, 3},  /* a window */
    {32, 32, 3}, /* tiles */
};
enum { n_shapes = sizeof shapes / sizeof *shapes };

struct data {
    struct tdmi_conv_gemm conv;
    float *x, *y, *weights, *packed, *g, *dx, *dbias;
    double *found;
    void *workspace;
};

static void *room(size_t bytes)
{
    void *made = tdmi_alloc_aligned(bytes);
    assert_non_null(made);
    return made;
}

/* Between 0.75 and 1.25. */
static float *values(int n)
{
    static uint32_t state = 7;
    float *made = room((size_t)n * sizeof *made);
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        made[i] = 0.75f + (float)(state >> 8) / 33554432.0f;
    }
    return made;
}

static void data_init(struct data *data, const struct shape *shape, enum tdmi_isa isa)
{
    data->conv = (struct tdmi_conv_gemm){.max_images = images,
                                         .in_h = side,
                                         .in_w = side,
                                         .in_c = shape->in,
                                         .out_h = side,
                                         .out_w = side,
                                         .out_c = shape->out,
                                         .kernel_h = shape->kernel,
                                         .kernel_w = shape->kernel,
                                         .stride = 1,
                                         .dilation = 1,
                                         .pad_top = shape->kernel / 2,
                                         .pad_left = shape->kernel / 2,
                                         .isa = isa};
    data->x = values(pixels * shape->in);
    data->y = values(pixels * shape->out);
    data->g = values(pixels * shape->out);
    data->dx = values(pixels * shape->in);
    data->dbias = values(shape->out);
    data->weights = values(shape->kernel * shape->kernel * shape->in * shape->out);
    size_t forward = tdmi_conv_gemm_packed_bytes(&data->conv, TDMI_CONV_FORWARD);
    size_t backward = tdmi_conv_gemm_packed_bytes(&data->conv, TDMI_CONV_BACKWARD);
    data->packed = room(forward > backward ? forward : backward);
    data->found = room(2 * sizeof(double) * (size_t)(shape->in + shape->out));
    data->workspace = room(tdmi_conv_gemm_workspace_bytes(&data->conv));
}

static void data_release(struct data *data)
{
    tdmi_free(data->x);
    tdmi_free(data->y);
    tdmi_free(data->g);
    tdmi_free(data->dx);
    tdmi_free(data->dbias);
    tdmi_free(data->weights);
    tdmi_free(data->packed);
    tdmi_free(data->found);
    tdmi_free(data->workspace);
}

/* The sum over pixels of a, or of a · b. */
static double sum_of(const float *a, const float *b, int channel, int channels)
{
    double sum = 0.0;
    for (int p = 0; p < pixels; p++)
        sum += (double)a[p * channels + channel] * (b ? (double)b[p * channels + channel] : 1.0);
    return sum;
}

static void assert_sum(const char *what, int channel, double found, double wanted)
{
    if (!(fabs(found / wanted - 1.0) <= 0x1p-24))
        fail_msg("%s[%d]: %.12g, not %.12g", what, channel, found, wanted);
}

static void for_each_shape(void (*check)(const struct data *data, int in, int out))
{
    for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++)
        for (int i = 0; i < n_shapes; i++) {
            struct data data;
            data_init(&data, &shapes[i], (enum tdmi_isa)isa);
            check(&data, shapes[i].in, shapes[i].out);
            data_release(&data);
        }
}

static void check_forward(const struct data *data, int in, int out)
{
    (void)in;
    double *sum = data->found, *square = sum + out;
    tdmi_conv_gemm_pack(&data->conv, TDMI_CONV_FORWARD, data->weights, NULL, data->packed);
    tdmi_conv_gemm_forward(&data->conv, &(struct tdmi_conv_forward){.n = images,
                                                                    .x = data->x,
                                                                    .packed = data->packed,
                                                                    .y = data->y,
                                                                    .sums = {NULL, sum, square},
                                                                    .workspace = data->workspace});
    for (int c = 0; c < out; c++) {
        assert_sum("sum of y", c, sum[c], sum_of(data->y, NULL, c, out));
        assert_sum("square of y", c, square[c], sum_of(data->y, data->y, c, out));
    }
}

static void sums_of_outputs_are_as_good_as_outputs(void **state)
{
    (void)state;
    for_each_shape(check_forward);
}

static void check_backward(const struct data *data, int in, int out)
{
    double *sum = data->found, *product = sum + in;
    tdmi_conv_gemm_pack(&data->conv, TDMI_CONV_BACKWARD, data->weights, NULL, data->packed);
    tdmi_conv_gemm_backward(&data->conv,
                            &(struct tdmi_conv_backward){.n = images,
                                                         .x = data->x,
                                                         .g = data->g,
                                                         .packed = data->packed,
                                                         .dbias = data->dbias,
                                                         .dx = data->dx,
                                                         .sums = {NULL, sum, product},
                                                         .workspace = data->workspace});
    for (int c = 0; c < in; c++) {
        assert_sum("sum of dx", c, sum[c], sum_of(data->dx, NULL, c, in));
        assert_sum("product of dx", c, product[c], sum_of(data->dx, data->x, c, in));
    }
    for (int c = 0; c < out; c++)
        assert_sum("dbias", c, (double)data->dbias[c], sum_of(data->g, NULL, c, out));
}

static void sums_of_gradients_are_as_good_as_gradients(void **state)
{
    (void)state;
    for_each_shape(check_backward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_outputs_are_as_good_as_outputs),
        cmocka_unit_test(sums_of_gradients_are_as_good_as_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
