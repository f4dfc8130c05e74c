/* depthwise.cu: forward and the gradient of the input against the definition, with what each reads
 * and does besides; and pictures of more values than 32 bits count. */
#include "backend/cuda/windows.h"

#include <sys/mman.h>

static void forward(struct window_tensors *it, enum tdmi_act x_act, enum tdmi_act act,
                    bool has_bias)
{
    const struct tdmi_cuda_window *s = &it->shape;
    const struct tdmi_cuda_depthwise_forward call = {.x = it->x,
                                                     .x_act = x_act,
                                                     .weights = it->weights,
                                                     .bias = has_bias ? it->bias : NULL,
                                                     .act = act,
                                                     .y = it->y};
    assert_int_equal(tdmi_cuda_depthwise_forward(NULL, s, &call), 0);
    for (int64_t i = 0; i < it->n_y; i++) {
        const int64_t c = i % s->channels;
        double sum = has_bias ? (double)it->bias[c] : 0.0, size = fabs(sum);
        for (int tap = 0; tap < s->kernel * s->kernel; tap++) {
            const int64_t at = seen(s, i / s->channels, tap);
            if (at < 0)
                continue;
            const double term = read_through(x_act, value_at(it->x, s->type, at + c)) *
                                (double)it->weights[tap * s->channels + c];
            sum += term;
            size += fabs(term);
        }
        it->wanted[i] = read_through(act, sum);
        it->size[i] = size;
    }
    look_at_window(it, it->y, it->n_y, "y");
}

/* What a batch norm makes of weights and bias is what it makes of their outputs. */
static void fold(bool has_bias, bool has_norm)
{
    enum { taps = 9, channels = 131 };
    void *blocks[7];
    float *of[7];
    for (uint32_t k = 0; k < 7; k++)
        of[k] = tensor(TDMI_DTYPE_F32,
                       k == 0  ? taps * channels
                       : k < 6 ? channels
                               : channels * 10,
                       0, k < 6 ? k + 1 : 0, &blocks[k]);
    for (int c = 0; c < channels; c++)
        of[5][c] = fabsf(of[5][c]); /* a variance */
    const struct tdmi_cuda_depthwise_fold call = {.taps = taps,
                                                  .channels = channels,
                                                  .weights = of[0],
                                                  .bias = has_bias ? of[1] : NULL,
                                                  .scale = has_norm ? of[2] : NULL,
                                                  .shift = of[3],
                                                  .mean = of[4],
                                                  .variance = of[5],
                                                  .epsilon = 1e-3,
                                                  .packed = of[6]};
    assert_int_equal(tdmi_cuda_depthwise_fold(NULL, &call), 0);
    for (int i = 0; i < (taps + 1) * channels; i++) {
        const int c = i % channels;
        const double factor = has_norm ? (double)of[2][c] / sqrt((double)of[5][c] + 1e-3) : 1.0;
        double wanted = i < taps * channels ? (double)of[0][i] : has_bias ? (double)of[1][c] : 0.0;
        if (i >= taps * channels && has_norm)
            wanted -= (double)of[4][c];
        wanted *= factor;
        if (i >= taps * channels && has_norm)
            wanted += (double)of[3][c];
        expect_near((double)of[6][i], wanted, step_of(TDMI_DTYPE_F32, fabs(wanted)), "packed", i);
    }
    for (int k = 0; k < 7; k++)
        tdmi_free(blocks[k]);
}

/* Many pictures of 5 · 2^30 values in all: blocks at both ends alone run. */
static void run_huge(int channels, int kernel)
{
    struct tdmi_cuda_window s = {TDMI_DTYPE_BF16, 0, 512, 512,        channels,   512,  512,
                                 kernel,          1, 1,   kernel / 2, kernel / 2, false};
    s.n = ((int64_t)5 << 30) / ((int64_t)s.h * s.w * channels);
    const int64_t n = s.n * s.h * s.w * channels;
    const size_t bytes = (size_t)n * 2;
    uint16_t *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint16_t *y = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *block;
    float *weights = tensor(TDMI_DTYPE_F32, (int64_t)kernel * kernel * channels, 0, 0, &block);
    for (int i = 0; i < kernel * kernel * channels; i++)
        weights[i] = (float)(1 + i / channels);
    if (x != MAP_FAILED && y != MAP_FAILED) {
        put_value(x, TDMI_DTYPE_BF16, 1, 3.0f);
        put_value(x, TDMI_DTYPE_BF16, n - 1, 2.0f);
        tdmi_shim_use((struct tdmi_shim_way){.edge_blocks = 2});
        const struct tdmi_cuda_depthwise_forward call = {.x = x, .weights = weights, .y = y};
        assert_int_equal(tdmi_cuda_depthwise_forward(NULL, &s, &call), 0);
        const double middle = (double)(kernel * kernel + 1) / 2.0;
        assert_true(value_at(y, TDMI_DTYPE_BF16, 1) == 3.0 * middle);
        assert_true(value_at(y, TDMI_DTYPE_BF16, n - 1) == 2.0 * middle);
        assert_int_equal(tdmi_shim_facts().largest_grid_y, 1);
    }
    if (x != MAP_FAILED)
        munmap(x, bytes);
    if (y != MAP_FAILED)
        munmap(y, bytes);
    tdmi_free(block);
}

void case_depthwise(void **state)
{
    (void)state;
    for (int t = 0; t < n_float_types; t++)
        for (int k = 0; k < n_window_cases; k++) {
            struct window_tensors it;
            make_window(&it, &window_cases[k], float_types[t]);
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = k % 2 == 1});
            forward(&it, TDMI_ACT_NONE, TDMI_ACT_NONE, false);
            forward(&it, TDMI_ACT_RELU6, TDMI_ACT_RELU, true);
            forward(&it, TDMI_ACT_RELU, TDMI_ACT_RELU6, true);
            check_data(&it, tdmi_cuda_depthwise_data, TDMI_ACT_NONE, false);
            check_data(&it, tdmi_cuda_depthwise_data, TDMI_ACT_RELU6, true);
            check_data(&it, tdmi_cuda_depthwise_data, TDMI_ACT_RELU, false);
            drop_window(&it);
        }
    fold(true, true);
    fold(false, true);
    fold(true, false);
    const struct tdmi_cuda_depthwise_forward wrong = {.act = TDMI_ACT_HSWISH};
    assert_int_equal(tdmi_cuda_depthwise_forward(NULL, &window_cases[0].shape, &wrong), 1);
    run_huge(8, 3);
    run_huge(8, 7);
    run_huge(5, 3);
}
