/* What the op takes over from its neighbours (graph/fuse.c) against the ops one by one, in double.
 */
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/conv/depthwise.h"
#include "backend/cuda/windows.h"

static const struct tdmi_op_desc plain = {
    .kind = TDMI_OP_CONV,
    .attrs = {.channels = 8,
              .kernel = 3,
              .stride = 2,
              .dilation = 1,
              .groups = 8,
              .pad_top = 1,
              .pad_bottom = 1,
              .pad_left = 1,
              .pad_right = 1,
              .has_bias = true},
    .in = {{7, 6, 8}},
    .out = {4, 3, 8},
    .max_images = 3,
};

static const struct tdmi_cuda_window shape = {TDMI_DTYPE_F32, 3, 7, 6, 8, 4, 3, 3, 2, 1, 1, 1,
                                              false};
enum { n_x = 3 * 7 * 6 * 8, n_y = 3 * 4 * 3 * 8, n_w = 9 * 8, n_c = 8, most_blocks = 16 };

struct memory {
    void *blocks[most_blocks];
    int n;
};

static float *take(struct memory *it, int64_t n, uint32_t stream)
{
    assert_true(it->n < most_blocks);
    return tensor(TDMI_DTYPE_F32, n, 0, stream, &it->blocks[it->n++]);
}

static void drop(struct memory *it)
{
    while (it->n > 0)
        tdmi_free(it->blocks[--it->n]);
}

static double sum_at(const float *x, enum tdmi_act act, const float *weights, int64_t i)
{
    double sum = 0.0;
    for (int tap = 0; tap < 9; tap++) {
        const int64_t at = seen(&shape, i / n_c, tap);
        if (at >= 0)
            sum +=
                read_through(act, (double)x[at + i % n_c]) * (double)weights[tap * n_c + i % n_c];
    }
    return sum;
}

static void a_norm_and_an_activation_behind_are_one_call(void **state)
{
    const struct tdmi_kernel *kernel = tdmi_backend_shim.kernels[TDMI_OP_CONV];
    struct tdmi_op_desc desc = plain;
    struct tdmi_kernel_needs needs = {0};
    struct memory of = {.n = 0};
    tdmi_device *device;
    tdmi_stream *stream;
    (void)state;
    desc.fusion.folds_norm = true;
    desc.fusion.act = TDMI_ACT_RELU6;
    desc.fusion.in[0].act = TDMI_ACT_RELU;
    assert_true(tdmi_cuda_depthwise.can_run(&desc) && kernel->can_fuse(&desc));
    kernel->needs(&desc, &needs);
    assert_int_equal(needs.packed_bytes, (n_w + n_c) * sizeof(float));
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_backend_shim.stream.open(device, &stream, NULL), TDM_OK);
    float *x = take(&of, n_x, 1), *y = take(&of, n_y, 0), *packed = take(&of, n_w + n_c, 0);
    const struct tdmi_pack_call pack = {.params = {take(&of, n_w, 2), take(&of, n_c, 3)},
                                        .norm_params = {take(&of, n_c, 4), take(&of, n_c, 5)},
                                        .norm_states = {take(&of, n_c, 6), take(&of, n_c, 7)},
                                        .norm_epsilon = 1e-3,
                                        .packed = packed};
    for (int c = 0; c < n_c; c++)
        ((float *)pack.norm_states[1])[c] = 2.0f + (float)c;
    kernel->pack(stream, &desc, &pack);
    kernel->forward(stream, &desc,
                    &(struct tdmi_op_call){.n = 3, .x = {x}, .y = y, .packed = packed});
    assert_int_equal(tdmi_backend_shim.stream.wait(stream, NULL), TDM_OK);
    for (int64_t i = 0; i < n_y; i++) {
        const int64_t c = i % n_c;
        const double raw = sum_at(x, TDMI_ACT_RELU, pack.params[0], i) + (double)pack.params[1][c];
        const double root = sqrt((double)pack.norm_states[1][c] + 1e-3);
        const double normed =
            (raw - (double)pack.norm_states[0][c]) / root * (double)pack.norm_params[0][c] +
            (double)pack.norm_params[1][c];
        expect_near((double)y[i], read_through(TDMI_ACT_RELU6, normed), 1e-3, "y", i);
    }
    drop(&of);
    tdmi_backend_shim.stream.close(stream);
    tdmi_backend_shim.device.close(device);
}

static void an_activation_before_is_read_through_and_masks_the_gradient(void **state)
{
    const struct tdmi_kernel *kernel = tdmi_backend_shim.kernels[TDMI_OP_CONV];
    struct tdmi_op_desc desc = plain;
    struct tdmi_kernel_needs needs = {0};
    struct memory of = {.n = 0};
    tdmi_device *device;
    tdmi_stream *stream;
    (void)state;
    desc.is_training = desc.wants_dx = true;
    desc.fusion.in[0].act = TDMI_ACT_RELU6;
    assert_true(kernel->can_fuse(&desc) && kernel->adds_dx);
    kernel->needs(&desc, &needs);
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_backend_shim.stream.open(device, &stream, NULL), TDM_OK);
    float *x = take(&of, n_x, 1), *y = take(&of, n_y, 0), *dy = take(&of, n_y, 2);
    float *dx = take(&of, n_x, 0), *add = take(&of, n_x, 3), *dw = take(&of, n_w, 0);
    float *weights = take(&of, n_w, 4), *bias = take(&of, n_c, 5), *db = take(&of, n_c, 0);
    const struct tdmi_op_call call = {.n = 3,
                                      .x = {x},
                                      .y = y,
                                      .dy = dy,
                                      .dx = {dx},
                                      .dx_add = {add},
                                      .params = {weights, bias},
                                      .dparams = {dw, db},
                                      .workspace =
                                          take(&of, (int64_t)needs.workspace_bytes / 4, 0)};
    kernel->forward(stream, &desc, &call);
    kernel->backward(stream, &desc, &call);
    assert_int_equal(tdmi_backend_shim.stream.wait(stream, NULL), TDM_OK);
    double dx_wanted[n_x] = {0}, dw_wanted[n_w] = {0}, db_wanted[n_c] = {0};
    for (int64_t i = 0; i < n_y; i++) {
        const int64_t c = i % n_c;
        expect_near((double)y[i], sum_at(x, TDMI_ACT_RELU6, weights, i) + (double)bias[c], 1e-3,
                    "y", i);
        db_wanted[c] += (double)dy[i];
        for (int tap = 0; tap < 9; tap++) {
            const int64_t at = seen(&shape, i / n_c, tap) + c;
            if (at < c)
                continue;
            dx_wanted[at] += (double)dy[i] * (double)weights[tap * n_c + c];
            dw_wanted[tap * n_c + c] += (double)dy[i] * read_through(TDMI_ACT_RELU6, (double)x[at]);
        }
    }
    for (int i = 0; i < n_x; i++)
        expect_near((double)dx[i],
                    (x[i] > 0.0f && x[i] < 6.0f ? dx_wanted[i] : 0.0) + (double)add[i], 1e-3, "dx",
                    i);
    for (int i = 0; i < n_w; i++)
        expect_near((double)dw[i], dw_wanted[i], 1e-2, "dweights", i);
    for (int c = 0; c < n_c; c++)
        expect_near((double)db[c], db_wanted[c], 1e-3, "dbias", c);
    drop(&of);
    tdmi_backend_shim.stream.close(stream);
    tdmi_backend_shim.device.close(device);
}

static void what_it_cannot_do_it_does_not_promise(void **state)
{
    const struct tdmi_kernel *kernel = tdmi_backend_shim.kernels[TDMI_OP_CONV];
    (void)state;
    struct tdmi_op_desc asked[] = {plain, plain, plain, plain, plain, plain, plain};
    asked[0].fusion.adds_residual = true;
    asked[1].fusion.act = TDMI_ACT_HSWISH;
    asked[2].fusion.gives_sums = true;
    asked[3].fusion.reads_gradient_form = true;
    asked[4].fusion.in[0].has_norm = true;
    asked[5].fusion.pool = 2;
    asked[6].fusion.in[0].act = TDMI_ACT_SIGMOID;
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++)
        assert_false(kernel->can_fuse(&asked[k]));
    asked[0].attrs.groups = 4;
    asked[1].out.c = 16;
    for (int k = 0; k < 2; k++) {
        /* convolutions of other shapes carry what is behind them, and only without training */
        assert_false(tdmi_cuda_depthwise.can_run(&asked[k]));
        asked[k].fusion = (struct tdmi_op_fusion){.act = TDMI_ACT_RELU, .adds_residual = true};
        assert_true(kernel->can_fuse(&asked[k]));
        asked[k].is_training = true;
        assert_false(kernel->can_fuse(&asked[k]));
        asked[k].is_training = false;
        asked[k].fusion.in[0].act = TDMI_ACT_RELU;
        assert_false(kernel->can_fuse(&asked[k]));
        asked[k].fusion = (struct tdmi_op_fusion){.act = TDMI_ACT_HSWISH};
        assert_false(kernel->can_fuse(&asked[k]));
    }
}

/* What is said to compute the gradient of the input takes the shape; what is not, does not. */
static void what_computes_is_named(void **state)
{
    static const struct {
        int kernel, stride, dilation, channels;
        bool is_spread;
    } asked[] = {{3, 2, 1, 8, true},  {5, 2, 1, 8, true},  {3, 1, 1, 8, false},
                 {7, 2, 1, 8, false}, {3, 2, 2, 8, false}, {3, 2, 1, 6, false}};
    enum { most_values = 7 * 6 * 8, most_weights = 49 * 8 };
    void *blocks[3];
    const struct tdmi_cuda_depthwise_data call = {
        .dy = tensor(TDMI_DTYPE_F32, most_values, 0, 1, &blocks[0]),
        .weights = tensor(TDMI_DTYPE_F32, most_weights, 0, 2, &blocks[1]),
        .dx = tensor(TDMI_DTYPE_F32, most_values, 0, 0, &blocks[2])};
    (void)state;
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        struct tdmi_kernel_algorithms ways = {{{0}, 0}, {{0}, 0}, {{0}, 0}};
        struct tdmi_op_desc desc = plain;
        desc.is_training = desc.wants_dx = true;
        desc.attrs.kernel = asked[k].kernel;
        desc.attrs.stride = asked[k].stride;
        desc.attrs.dilation = asked[k].dilation;
        desc.attrs.groups = desc.in[0].c = desc.out.c = asked[k].channels;
        const struct tdmi_cuda_window window = tdmi_cuda_window_of(&desc, 1);
        tdmi_cuda_conv.describe(&desc, &ways);
        assert_string_equal(ways.forward.by, "depthwise.cu");
        assert_string_equal(ways.of_weights.by, "depthwise_weights.cu");
        assert_string_equal(ways.of_input.by,
                            asked[k].is_spread ? "depthwise_spread.cu" : "depthwise.cu");
        assert_int_equal(tdmi_cuda_depthwise_spread(NULL, &window, &call) == 0, asked[k].is_spread);
        desc.wants_dx = false;
        ways.of_input.by[0] = '\0';
        tdmi_cuda_conv.describe(&desc, &ways);
        assert_string_equal(ways.of_input.by, "");
    }
    for (int i = 0; i < 3; i++)
        tdmi_free(blocks[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_norm_and_an_activation_behind_are_one_call),
        cmocka_unit_test(an_activation_before_is_read_through_and_masks_the_gradient),
        cmocka_unit_test(what_it_cannot_do_it_does_not_promise),
        cmocka_unit_test(what_computes_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
