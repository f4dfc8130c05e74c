/*
 * 1x1 convolutions by cuBLASLt or cuDNN (their stand-ins): the faster one computes, a run keeps the
 * choice, and both are timed in the same memory. Their results: test_ops.c.
 */
#include "backend/cuda/fakes/fake_gpu.h"
#include "backend/cuda/values.h"
#include "backend/cuda/vendor/plans.h"

enum { most = 3, in = 8, out = 6, side = 5, pixels = side * side };

static struct tdmi_op_desc desc_of(tdmi_device *device, enum tdmi_dtype type)
{
    return (struct tdmi_op_desc){
        .kind = TDMI_OP_CONV,
        .attrs = {.channels = out, .kernel = 1, .stride = 1, .dilation = 1, .groups = 1},
        .in = {{side, side, in}},
        .out = {side, side, out},
        .max_images = most,
        .is_training = true,
        .wants_dx = true,
        .storage = type,
        .device = device,
    };
}

/* Make one library slower than the other. */
static void make_slow(bool is_cudnn)
{
    convs->every_ns = is_cudnn ? 1500000 : 0;
    products->every_ns = is_cudnn ? 0 : 1500000;
}

/* ---- choosing ------------------------------------------------------------------------------- */

static int n_products(const struct tdmi_cuda_plans *plans)
{
    int n = 0;
    for (int i = 0; i < TDMI_CUDNN_DIRECTIONS; i++) {
        assert_true((plans->of[i].conv != NULL) != (plans->of[i].product != NULL));
        n += plans->of[i].product != NULL;
    }
    return n;
}

static int chosen(const struct folder *home, const char *run, enum tdmi_dtype type)
{
    tdmi_device *device = open_gpu(home, run);
    const struct tdmi_op_desc desc = desc_of(device, type);
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_choose(&desc);
    const int n = n_products(&plans);
    close_gpu(device);
    return n;
}

TEST(the_faster_library_computes_and_a_run_keeps_the_choice)
{
    TDMI_AT_END(folder_remove)
    struct folder home = folder_new(), other = folder_new(), runs = folder_new();
    for (int t = 0; t < n_float_types; t++) {
        make_slow(true);
        assert_int_equal(chosen(&home, folder_path(&runs, "a"), float_types[t]), 3);
        make_slow(false);
        assert_int_equal(chosen(&other, folder_path(&runs, "b"), float_types[t]), 0);
        /* each resumes with what it began with, wherever, and so does the GPU */
        assert_int_equal(chosen(&other, folder_path(&runs, "a"), float_types[t]), 3);
        assert_int_equal(chosen(&home, NULL, float_types[t]), 3);
        make_slow(true);
        assert_int_equal(chosen(&home, folder_path(&runs, "b"), float_types[t]), 0);
        assert_int_equal(chosen(&other, NULL, float_types[t]), 0);
    }
}

/* Within a limit cuDNN's engine may be another, and then the slower of both. */
TEST(each_limit_has_a_choice_of_its_own)
{
    TDMI_AT_END(folder_remove)
    struct folder home = folder_new(), other = folder_new(), runs = folder_new();
    struct tdmi_op_desc desc = desc_of(NULL, TDMI_DTYPE_F32);
    static const size_t limits[] = {0, 1 << 16, 0, 1 << 16};
    make_slow(false);
    convs->right_bytes = 1 << 20;
    for (int again = 0; again < 2; again++) { /* then from the GPU's files */
        const int guesses = convs->guesses + products->guesses;
        desc.device = open_gpu(&home, again ? NULL : folder_path(&runs, "a"));
        for (int k = 0; k < 4; k++) {
            desc.most_workspace = limits[k];
            const struct tdmi_cuda_plans plans = tdmi_cuda_plans_choose(&desc);
            assert_int_equal(n_products(&plans), limits[k] ? 3 : 0);
        }
        close_gpu(desc.device);
        make_slow(true); /* who times again finds another */
        assert_int_equal(convs->guesses + products->guesses == guesses, again);
    }
    make_slow(false);
    /* the run was planned within the limit */
    assert_int_equal(chosen(&other, folder_path(&runs, "a"), TDMI_DTYPE_F32), 3);
    convs->right_bytes = 1000;
}

/* The desc above in bf16, for the gradient of the weights. */
enum { wide = 64 };
static const struct tdmi_cudnn_conv of_conv = {.direction = TDMI_CUDNN_OF_WEIGHTS,
                                               .type = TDMI_DTYPE_BF16,
                                               .in = {side, side, wide},
                                               .out = {side, side, wide},
                                               .n = most,
                                               .kernel = 1,
                                               .stride = 1,
                                               .dilation = 1,
                                               .groups = 1};
static const struct tdmi_cublaslt_product of_product = {.type = TDMI_DTYPE_BF16,
                                                        .result = TDMI_DTYPE_F32,
                                                        .rows = wide,
                                                        .columns = wide,
                                                        .depth = most * pixels,
                                                        .is_a_transposed = true,
                                                        .alignment = sizeof(float)};

/* x, w and y are what the product calls a, b and d, and there is one of each. */
TEST(both_libraries_are_timed_in_the_same_memory)
{
    static const struct {
        enum tdmi_cudnn_direction direction;
        int of[3]; /* what a, b and d are */
    } ways[] = {{TDMI_CUDNN_FORWARD, {TDMI_CUDNN_X, TDMI_CUDNN_W, TDMI_CUDNN_Y}},
                {TDMI_CUDNN_OF_INPUT, {TDMI_CUDNN_Y, TDMI_CUDNN_W, TDMI_CUDNN_X}},
                {TDMI_CUDNN_OF_WEIGHTS, {TDMI_CUDNN_X, TDMI_CUDNN_Y, TDMI_CUDNN_W}}};
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    tdmi_device *device = open_gpu(&home, NULL);
    make_slow(true);
    for (int k = 0; k < 3; k++) {
        struct tdmi_cudnn_conv conv = of_conv;
        struct tdmi_cublaslt_product product = of_product;
        conv.direction = ways[k].direction;
        if (k < 2) {
            product.result = TDMI_DTYPE_BF16;
            product.rows = most * pixels;
            product.depth = wide;
            product.is_a_transposed = false;
            product.is_b_transposed = k == 0;
            product.alignment = 16;
        }
        (void)tdmi_cuda_conv_algorithm(device, &conv, &product);
        for (int i = 0; i < 3; i++)
            assert_ptr_equal(products->last[i], convs->last[ways[k].of[i]]);
    }
    close_gpu(device);
}

/* A gradient of weights is f32 for cuBLASLt and bf16 for cuDNN: a GPU that has room for the one
 * and not for the other times neither of both. */
TEST(shared_memory_has_room_for_the_larger_tensor)
{
    static const size_t limits[] = {wide * wide * 4 + 1, wide * wide * 4};
    for (int k = 0; k < 2; k++) {
        struct folder home = folder_new();
        tdmi_device *device = open_gpu(&home, NULL);
        make_slow(true);
        assert_non_null(tdmi_cuda_conv_plan(device, &of_conv));
        assert_non_null(tdmi_cuda_product_plan(device, &of_product));
        fake_runtime_limit(limits[k]);
        const struct tdmi_cuda_algorithm way =
            tdmi_cuda_conv_algorithm(device, &of_conv, &of_product);
        fake_runtime_limit(0);
        assert_int_equal(way.product != NULL, k == 0);
        close_gpu(device);
        folder_remove(&home);
    }
}

static int products_of(tdmi_device *device, const struct tdmi_op_desc *desc)
{
    const int before = products->guesses;
    (void)device;
    (void)tdmi_cuda_plans_choose(desc);
    return products->guesses - before;
}

TEST(only_products_are_offered_to_cublaslt)
{
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    tdmi_device *device = open_gpu(&home, NULL);
    struct tdmi_op_desc desc = desc_of(device, TDMI_DTYPE_BF16);
    make_slow(true);
    desc.attrs.stride = 2;
    desc.out.h = desc.out.w = 3;
    assert_int_equal(products_of(device, &desc), 0);
    desc = desc_of(device, TDMI_DTYPE_BF16);
    desc.attrs.groups = 2;
    assert_int_equal(products_of(device, &desc), 0);
    desc = desc_of(device, TDMI_DTYPE_BF16);
    desc.attrs.pad_top = 1;
    desc.out.h++;
    assert_int_equal(products_of(device, &desc), 0);
    desc = desc_of(device, TDMI_DTYPE_BF16);
    desc.attrs.kernel = 3;
    desc.out.h = desc.out.w = side - 2;
    assert_int_equal(products_of(device, &desc), 0);
    /* in bf16 the activation is a pass of its own: cuDNN would compile a kernel for both */
    desc = desc_of(device, TDMI_DTYPE_BF16);
    desc.is_training = false;
    desc.fusion.act = TDMI_ACT_RELU;
    assert_int_equal(products_of(device, &desc), 1);
    assert_false(tdmi_cuda_plans_choose(&desc).is_whole);
    /* in f32 cuBLASLt has a bias and a relu; what it lacks is computed by cuDNN, without timing */
    desc = desc_of(device, TDMI_DTYPE_F32);
    desc.is_training = false;
    desc.fusion.act = TDMI_ACT_RELU;
    assert_int_equal(products_of(device, &desc), 1);
    desc.attrs.has_bias = true;
    assert_int_equal(products_of(device, &desc), 1);
    desc.fusion.adds_residual = true;
    assert_int_equal(products_of(device, &desc), 0);
    desc.fusion.adds_residual = false;
    desc.fusion.act = TDMI_ACT_RELU6;
    assert_int_equal(products_of(device, &desc), 0);
    close_gpu(device);
}

TEST(without_cudnn_products_are_computed_by_cublaslt)
{
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    tdmi_device *device = open_gpu_with("/nowhere/libcudnn.so.9", &home);
    const struct tdmi_op_desc desc = desc_of(device, TDMI_DTYPE_F32);
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_choose(&desc);
    assert_int_equal(n_products(&plans), 3);
    close_gpu(device);
}

TEST(a_node_names_its_algorithm)
{
    for (int k = 0; k < 2; k++) {
        struct folder choices = folder_new();
        make_slow(k);
        tdmi_device *device = open_gpu(&choices, NULL);
        struct tdmi_op_desc desc = desc_of(device, TDMI_DTYPE_F32);
        struct tdmi_kernel_algorithms ways = {{{0}, 0}, {{0}, 0}, {{0}, 0}};
        assert_int_equal(tdmi_cuda_conv.prepare(&desc, &desc.prepared, NULL), TDM_OK);
        tdmi_cuda_conv.describe(&desc, &ways);
        const struct tdmi_kernel_algorithm *all[] = {&ways.forward, &ways.of_input,
                                                     &ways.of_weights};
        for (int i = 0; i < 3; i++) {
            const char *wanted = k ? "cuBLASLt algorithm " : "cuDNN engine ";
            assert_memory_equal(all[i]->by, wanted, strlen(wanted));
            assert_true(all[i]->workspace_bytes >= 1000);
        }
        tdmi_cuda_conv.release(desc.prepared);
        desc.prepared = NULL;
        desc.device = NULL;
        tdmi_cuda_conv.describe(&desc, &ways);
        assert_string_equal(ways.forward.by, "conv.cu");
        assert_int_equal(ways.forward.workspace_bytes, 0);
        close_gpu(device);
        folder_remove(&choices);
    }
}

/* Planned workspace has room for each direction, and a limit holds for both libraries. */
TEST(workspace_is_planned_and_limited)
{
    for (int k = 0; k < 6; k++) {
        struct folder choices = folder_new();
        make_slow(k & 1);
        convs->right_bytes = 1 << 20;
        tdmi_device *device = open_gpu(&choices, NULL);
        struct tdmi_op_desc desc = desc_of(device, TDMI_DTYPE_F32);
        struct tdmi_kernel_needs needs = {0};
        struct tdmi_kernel_algorithms ways = {{{0}, 0}, {{0}, 0}, {{0}, 0}};
        desc.is_training = k < 4;
        desc.most_workspace = k & 2 ? 1 : 0;
        assert_int_equal(tdmi_cuda_conv.prepare(&desc, &desc.prepared, NULL), TDM_OK);
        tdmi_cuda_conv.describe(&desc, &ways);
        tdmi_cuda_conv.needs(&desc, &needs);
        const size_t wanted = ways.forward.workspace_bytes + ways.of_input.workspace_bytes +
                              ways.of_weights.workspace_bytes;
        assert_true((wanted > 0) == !(k & 2));
        assert_true(needs.workspace_bytes >= ways.forward.workspace_bytes);
        assert_true(needs.workspace_bytes >= ways.of_input.workspace_bytes);
        assert_true(needs.workspace_bytes >= ways.of_weights.workspace_bytes);
        if (desc.most_workspace)
            assert_string_equal(ways.forward.by, "conv.cu");
        tdmi_cuda_conv.release(desc.prepared);
        close_gpu(device);
        folder_remove(&choices);
    }
    convs->right_bytes = 1000;
}

TEST_MAIN(open_fakes, NULL)
