/* depthwise_weights.cu: the gradient of the weights against the definition, the same bits whatever
 * runs first, and sums over so many pixels that threads take several cells. */
#include "backend/cuda/windows.h"

static void add_up(const struct window_case *from, enum tdmi_dtype type, enum tdmi_act x_act)
{
    struct tdmi_cuda_window s = from->shape;
    s.type = type;
    const int taps = s.kernel * s.kernel;
    const int64_t n_x = s.n * s.h * s.w * s.channels, n_y = s.n * s.out_h * s.out_w * s.channels;
    const int64_t n_w = (int64_t)taps * s.channels;
    void *blocks[5];
    void *x = tensor(type, n_x, from->off, 1, &blocks[0]);
    void *dy = tensor(type, n_y, from->off, 2, &blocks[1]);
    float *got = tensor(TDMI_DTYPE_F32, n_w, 0, 0, &blocks[2]);
    float *again = tensor(TDMI_DTYPE_F32, n_w, 0, 0, &blocks[3]);
    void *workspace = tensor(TDMI_DTYPE_F32, (int64_t)tdmi_cuda_depthwise_workspace_bytes(&s) / 4,
                             0, 0, &blocks[4]);
    struct tdmi_cuda_depthwise_weights call = {
        .x = x, .dy = dy, .x_act = x_act, .dweights = got, .workspace = workspace};
    tdmi_shim_use((struct tdmi_shim_way){0});
    assert_int_equal(tdmi_cuda_depthwise_weights(NULL, &s, &call), 0);
    call.dweights = again;
    tdmi_shim_use((struct tdmi_shim_way){.is_reversed = true});
    assert_int_equal(tdmi_cuda_depthwise_weights(NULL, &s, &call), 0);
    assert_memory_equal(got, again, sizeof(float) * (size_t)n_w);
    for (int64_t i = 0; i < n_w; i++) {
        const int64_t c = i % s.channels;
        double wanted = 0.0, size = 0.0;
        for (int64_t pixel = 0; pixel < n_y / s.channels; pixel++) {
            const int64_t at = seen(&s, pixel, (int)(i / s.channels));
            if (at < 0)
                continue;
            const double term = value_at(dy, type, pixel * s.channels + c) *
                                read_through(x_act, value_at(x, type, at + c));
            wanted += term;
            size += fabs(term);
        }
        expect_near((double)got[i], wanted, 1e-6 * size, "dweights", i);
    }
    for (int k = 0; k < 5; k++)
        tdmi_free(blocks[k]);
}

void case_depthwise_weights(void **state)
{
    static const struct window_case large[] = {
        {{0, 40, 33, 33, 4, 33, 33, 3, 1, 1, 1, 1, 0}, 0},
        {{0, 3, 5, 4, 132, 3, 2, 3, 2, 1, 1, 1, 0}, 0},
        {{0, 41, 1, 201, 128, 1, 201, 3, 1, 1, 1, 1, 0}, 0}, /* 4,141 cells: threads take two */
    };
    (void)state;
    for (int t = 0; t < n_float_types; t++) {
        for (int k = 0; k < n_window_cases; k++) {
            add_up(&window_cases[k], float_types[t], TDMI_ACT_NONE);
            add_up(&window_cases[k], float_types[t], TDMI_ACT_RELU6);
        }
        for (size_t k = 0; k < sizeof large / sizeof *large; k++)
            add_up(&large[k], float_types[t], TDMI_ACT_RELU);
    }
}
