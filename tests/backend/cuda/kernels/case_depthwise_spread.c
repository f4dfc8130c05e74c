/* depthwise_spread.cu: the gradient of the input where windows lie two pixels apart, against the
 * definition; and what it leaves to others. */
#include "backend/cuda/windows.h"

static bool is_its_own(const struct window_case *it)
{
    const struct tdmi_cuda_window *s = &it->shape;
    return s->stride == 2 && s->dilation == 1 && (s->kernel == 3 || s->kernel == 5) &&
           s->channels % 4 == 0 && it->off == 0;
}

void case_depthwise_spread(void **state)
{
    const struct tdmi_cuda_depthwise_data wrong = {.x_act = TDMI_ACT_HSWISH};
    int n_own = 0;
    (void)state;
    for (int k = 0; k < n_window_cases; k++) {
        if (!is_its_own(&window_cases[k]))
            continue;
        n_own++;
        for (int t = 0; t < n_float_types; t++) {
            struct window_tensors it;
            make_window(&it, &window_cases[k], float_types[t]);
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = k % 2 == 1});
            check_data(&it, tdmi_cuda_depthwise_spread, TDMI_ACT_NONE, false);
            check_data(&it, tdmi_cuda_depthwise_spread, TDMI_ACT_RELU6, true);
            drop_window(&it);
        }
        assert_int_equal(tdmi_cuda_depthwise_spread(NULL, &window_cases[k].shape, &wrong), 1);
    }
    assert_true(n_own >= 5);
    assert_int_equal(window_cases[0].shape.stride, 1);
    assert_int_equal(tdmi_cuda_depthwise_spread(NULL, &window_cases[0].shape,
                                                &(struct tdmi_cuda_depthwise_data){0}),
                     1);
}
