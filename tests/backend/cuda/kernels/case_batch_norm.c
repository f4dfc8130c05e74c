/* batch_norm.cu: each pass against the definition in double, with an activation behind the norm and
 * a residual's gradient beside its own. Single ops against ref: test_ops.c. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/batch_norm.h"

struct fixture {
    enum tdmi_dtype type;
    int64_t pixels;
    int channels;
    void *x, *y, *dy, *dx, *g, *workspace;
    float *centre, *params[2], *dparams[2], *state_sums[2];
    void *norm_memory;
    void *blocks[16];
    int n_blocks;
    struct tdmi_cuda_norm call;
};

static void *take(struct fixture *it, enum tdmi_dtype type, int64_t n, int off, uint32_t stream)
{
    return tensor(type, n, off, stream, &it->blocks[it->n_blocks++]);
}

static void make(struct fixture *it, int off)
{
    const int64_t n = it->pixels * it->channels;
    it->x = take(it, it->type, n, off, 1);
    it->y = take(it, it->type, n, off, 2); /* its sign is all that is asked */
    it->dy = take(it, it->type, n, off, 3);
    it->dx = take(it, it->type, n, off, 0);
    it->g = take(it, it->type, n, off, 0);
    it->centre = take(it, TDMI_DTYPE_F32, it->channels, 0, 4);
    for (int i = 0; i < 2; i++) {
        it->params[i] = take(it, TDMI_DTYPE_F32, it->channels, 0, 5 + (uint32_t)i);
        it->dparams[i] = take(it, TDMI_DTYPE_F32, it->channels, 0, 0);
        it->state_sums[i] = take(it, TDMI_DTYPE_F32, it->channels, 0, 0);
    }
    it->norm_memory = take(it, TDMI_DTYPE_F32, (int64_t)tdmi_norm_bytes(it->channels) / 4, 0, 0);
    it->workspace =
        take(it, TDMI_DTYPE_F32,
             (int64_t)tdmi_cuda_norm_workspace_bytes(it->pixels, it->channels) / 4, 0, 0);
    struct tdmi_norm norm = tdmi_norm_at(it->norm_memory, it->channels);
    norm.centre = it->centre;
    norm.total = norm.sums;
    it->call = (struct tdmi_cuda_norm){.type = it->type,
                                       .act = TDMI_ACT_RELU,
                                       .x = it->x,
                                       .y = it->y,
                                       .dy = it->dy,
                                       .dx = it->dx,
                                       .g = it->g,
                                       .pixels = it->pixels,
                                       .channels = it->channels,
                                       .norm = norm,
                                       .total_pixels = (double)it->pixels,
                                       .workspace = it->workspace};
}

static void forward(struct fixture *it)
{
    const struct tdmi_norm *norm = &it->call.norm;
    const struct tdmi_cuda_norm_finish finish = {.norm = *norm,
                                                 .channels = it->channels,
                                                 .total_pixels = (double)it->pixels,
                                                 .epsilon = 1e-3,
                                                 .n = 3,
                                                 .scale = it->params[0],
                                                 .shift = it->params[1],
                                                 .sum_of_means = it->state_sums[0],
                                                 .sum_of_variances = it->state_sums[1]};
    assert_int_equal(tdmi_cuda_norm_sums(NULL, &it->call), 0);
    assert_int_equal(tdmi_cuda_norm_finish(NULL, &finish), 0);
    for (int c = 0; c < it->channels; c++) {
        double mean = 0.0, variance = 0.0;
        for (int64_t p = 0; p < it->pixels; p++)
            mean += value_at(it->x, it->type, p * it->channels + c) / (double)it->pixels;
        for (int64_t p = 0; p < it->pixels; p++)
            variance += pow(value_at(it->x, it->type, p * it->channels + c) - mean, 2.0);
        const double m = (double)it->pixels, unbiased = m > 1.0 ? variance / (m - 1.0) : 0.0;
        const double rstd = 1.0 / sqrt(variance / m + 1e-3);
        expect_near((double)norm->mean[c], mean, 1e-5, "mean", c);
        expect_near((double)norm->rstd[c], rstd, 1e-4 * rstd, "rstd", c);
        expect_near((double)it->state_sums[0][c], 3.0 * mean, 3e-5, "sum of means", c);
        expect_near((double)it->state_sums[1][c], 3.0 * unbiased, 1e-4 * (1.0 + 3.0 * unbiased),
                    "sum of variances", c);
    }
}

static double gradient_at(const struct fixture *it, int64_t i)
{
    return value_at(it->y, it->type, i) > 0.0 ? value_at(it->dy, it->type, i) : 0.0;
}

static void backward(struct fixture *it)
{
    const struct tdmi_norm *norm = &it->call.norm;
    assert_int_equal(tdmi_cuda_norm_gradient_sums(NULL, &it->call), 0);
    assert_int_equal(
        tdmi_cuda_norm_backward(NULL, &it->call, false, it->dparams[0], it->dparams[1]), 0);
    for (int c = 0; c < it->channels; c++) {
        const double mean = (double)norm->mean[c], rstd = (double)norm->rstd[c];
        double sum = 0.0, product = 0.0;
        for (int64_t i = c; i < it->pixels * it->channels; i += it->channels) {
            sum += gradient_at(it, i);
            product += gradient_at(it, i) * (value_at(it->x, it->type, i) - mean) * rstd;
        }
        expect_near((double)it->dparams[1][c], sum, 1e-5 * (1.0 + fabs(sum)), "dshift", c);
        expect_near((double)it->dparams[0][c], product, 2e-5 * (double)it->pixels * rstd * 8.0,
                    "dscale", c);
        for (int64_t i = c; i < it->pixels * it->channels; i += it->channels) {
            const double g = gradient_at(it, i), m = (double)it->pixels;
            const double hat = (value_at(it->x, it->type, i) - mean) * rstd;
            const double wanted = (double)norm->scale[c] * (g - sum / m - hat * product / m);
            const double size = fabs(wanted) + 1e-5 * fabs((double)norm->scale[c]) * 64.0;
            expect_near(value_at(it->dx, it->type, i), wanted,
                        step_of(it->type, fabs(wanted)) + 1e-5 * size +
                            3e-6 * fabs((double)norm->scale[c]) * 8.0,
                        "dx", i);
            expect_near(value_at(it->g, it->type, i), g, 0.0, "g", i);
        }
    }
}

void case_batch_norm(void **state)
{
    static const struct {
        int64_t pixels;
        int channels, off;
    } sizes[] = {{2, 3, 0}, {147, 8, 0}, {75, 24, 0}, {31, 96, 1}, {5, 2051, 0}, {9001, 16, 0}};
    (void)state;
    for (int t = 0; t < n_float_types; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            struct fixture it = {
                .type = float_types[t], .pixels = sizes[s].pixels, .channels = sizes[s].channels};
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = s % 2 == 1});
            make(&it, sizes[s].off);
            forward(&it);
            backward(&it);
            while (it.n_blocks > 0)
                tdmi_free(it.blocks[--it.n_blocks]);
        }
}
