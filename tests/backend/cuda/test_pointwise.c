/*
 * Convolutions of 1×1 by what looks like cuBLASLt in the place of what looks like cuDNN: the faster
 * one computes, a run keeps which, and either gives what conv.cu does, ragged batches and gradients
 * that are added to others among them.
 */
#include "backend/cuda/fakes/fake_cublaslt.h"
#include "backend/cuda/fakes/fake_cudnn.h"
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/values.h"
#include "backend/cuda/vendor/conv_plans.h"

#include <dlfcn.h>
#include <stdio.h>

#include "backend/cuda/fakes/fake_card.h"

static struct fake_cudnn *convs;
static struct fake_cublaslt *products;

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

static void close_card(tdmi_device *device)
{
    tdmi_backend_shim.device.close(device);
    assert_int_equal(convs->alive + convs->handles + products->alive, 0);
}

/* Which is the slower, beyond what a busy machine does to either. */
static void make_slow(bool is_cudnn)
{
    convs->every_ns = is_cudnn ? 1500000 : 0;
    products->every_ns = is_cudnn ? 0 : 1500000;
}

/* ---- choosing ------------------------------------------------------------------------------- */

static int n_products(const struct tdmi_cuda_conv_plans *plans)
{
    const struct tdmi_cuda_way *all[] = {&plans->forward, &plans->of_input, &plans->of_weights};
    int n = 0;
    for (int i = 0; i < 3; i++) {
        assert_true((all[i]->conv != NULL) != (all[i]->product != NULL));
        n += all[i]->product != NULL;
    }
    return n;
}

static int chosen(const struct folder *home, const char *run, enum tdmi_dtype type)
{
    tdmi_device *device = open_card(home, run);
    const struct tdmi_op_desc desc = desc_of(device, type);
    const struct tdmi_cuda_conv_plans plans = tdmi_cuda_conv_plans_of(&desc);
    const int n = n_products(&plans);
    close_card(device);
    return n;
}

static void the_faster_of_both_computes_and_a_run_keeps_which(void **state)
{
    struct folder home = folder_new(), other = folder_new(), runs = folder_new();
    (void)state;
    for (int t = 0; t < n_float_types; t++) {
        make_slow(true);
        assert_int_equal(chosen(&home, folder_path(&runs, "a"), float_types[t]), 3);
        make_slow(false);
        assert_int_equal(chosen(&other, folder_path(&runs, "b"), float_types[t]), 0);
        /* each goes on with what it began with, wherever, and so does the card */
        assert_int_equal(chosen(&other, folder_path(&runs, "a"), float_types[t]), 3);
        assert_int_equal(chosen(&home, NULL, float_types[t]), 3);
        make_slow(true);
        assert_int_equal(chosen(&home, folder_path(&runs, "b"), float_types[t]), 0);
        assert_int_equal(chosen(&other, NULL, float_types[t]), 0);
    }
    folder_remove(&home);
    folder_remove(&other);
    folder_remove(&runs);
}

/* Within a limit cuDNN's engine may be another, and then the slower of both. */
static void a_limit_is_asked_about_on_its_own(void **state)
{
    struct folder home = folder_new(), other = folder_new(), runs = folder_new();
    struct tdmi_op_desc desc = desc_of(NULL, TDMI_DTYPE_F32);
    static const size_t limits[] = {0, 1 << 16, 0, 1 << 16};
    const long slow_ns = convs->slow_ns;
    (void)state;
    make_slow(false);
    convs->right_bytes = 1 << 20;
    convs->slow_ns = 6000000;
    for (int again = 0; again < 2; again++) { /* then from the card's files */
        const int guesses = convs->guesses + products->guesses;
        desc.device = open_card(&home, again ? NULL : folder_path(&runs, "a"));
        for (int k = 0; k < 4; k++) {
            desc.most_workspace = limits[k];
            const struct tdmi_cuda_conv_plans plans = tdmi_cuda_conv_plans_of(&desc);
            assert_int_equal(n_products(&plans), limits[k] ? 3 : 0);
        }
        close_card(desc.device);
        make_slow(true); /* who times again finds another */
        assert_int_equal(convs->guesses + products->guesses == guesses, again);
    }
    make_slow(false);
    /* the run was planned within the limit */
    assert_int_equal(chosen(&other, folder_path(&runs, "a"), TDMI_DTYPE_F32), 3);
    convs->right_bytes = 1000;
    convs->slow_ns = slow_ns;
    folder_remove(&home);
    folder_remove(&other);
    folder_remove(&runs);
}

/* Of the kind of the desc above, in bf16, for the gradient of the weights. */
enum { wide = 64 };
static const struct tdmi_cudnn_conv of_conv = {.way = TDMI_CUDNN_OF_WEIGHTS,
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
                                                        .is_a_turned = true,
                                                        .alignment = sizeof(float)};

/* x, w and y are what the product calls a, b and d, and there is one of each. */
static void who_is_timed_in_turn_works_on_the_same_memory(void **state)
{
    static const struct {
        enum tdmi_cudnn_way way;
        int of[3]; /* what a, b and d are */
    } ways[] = {{TDMI_CUDNN_FORWARD, {TDMI_CUDNN_X, TDMI_CUDNN_W, TDMI_CUDNN_Y}},
                {TDMI_CUDNN_OF_INPUT, {TDMI_CUDNN_Y, TDMI_CUDNN_W, TDMI_CUDNN_X}},
                {TDMI_CUDNN_OF_WEIGHTS, {TDMI_CUDNN_X, TDMI_CUDNN_Y, TDMI_CUDNN_W}}};
    struct folder home = folder_new();
    tdmi_device *device = open_card(&home, NULL);
    (void)state;
    make_slow(true);
    for (int k = 0; k < 3; k++) {
        struct tdmi_cudnn_conv conv = of_conv;
        struct tdmi_cublaslt_product product = of_product;
        conv.way = ways[k].way;
        if (k < 2) {
            product.result = TDMI_DTYPE_BF16;
            product.rows = most * pixels;
            product.depth = wide;
            product.is_a_turned = false;
            product.is_b_turned = k == 0;
            product.alignment = 16;
        }
        (void)tdmi_cuda_conv_way(device, &conv, &product);
        for (int i = 0; i < 3; i++)
            assert_ptr_equal(products->last[i], convs->last[ways[k].of[i]]);
    }
    close_card(device);
    folder_remove(&home);
}

/* A gradient of weights is f32 for cuBLASLt and bf16 for cuDNN: a card that has room for the one
 * and not for the other times neither of both. */
static void what_is_shared_has_room_for_the_larger(void **state)
{
    static const size_t limits[] = {wide * wide * 4 + 1, wide * wide * 4};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct folder home = folder_new();
        tdmi_device *device = open_card(&home, NULL);
        make_slow(true);
        assert_non_null(tdmi_cuda_conv_plan(device, &of_conv));
        assert_non_null(tdmi_cuda_product_plan(device, &of_product));
        fake_runtime_limit(limits[k]);
        const struct tdmi_cuda_way way = tdmi_cuda_conv_way(device, &of_conv, &of_product);
        fake_runtime_limit(0);
        assert_int_equal(way.product != NULL, k == 0);
        close_card(device);
        folder_remove(&home);
    }
}

static int products_of(tdmi_device *device, const struct tdmi_op_desc *desc)
{
    const int before = products->guesses;
    (void)device;
    (void)tdmi_cuda_conv_plans_of(desc);
    return products->guesses - before;
}

static void only_what_is_a_product_is_asked_as_one(void **state)
{
    struct folder home = folder_new();
    tdmi_device *device = open_card(&home, NULL);
    struct tdmi_op_desc desc = desc_of(device, TDMI_DTYPE_BF16);
    (void)state;
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
    /* what is behind it would take another pass: cuDNN's graph is taken unasked */
    desc = desc_of(device, TDMI_DTYPE_BF16);
    desc.is_training = false;
    desc.fusion.act = TDMI_ACT_RELU;
    assert_int_equal(products_of(device, &desc), 0);
    convs->takes_no_pointwise = 1;
    desc.fusion.act = TDMI_ACT_RELU6;
    assert_int_equal(products_of(device, &desc), 1);
    convs->takes_no_pointwise = 0;
    /* but a bias and a relu in f32, which cuBLASLt has itself */
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
    close_card(device);
    folder_remove(&home);
}

static void without_cudnn_products_are_cublaslts(void **state)
{
    struct folder home = folder_new();
    tdmi_device *device;
    (void)state;
    tdmi_shim_libraries("/nowhere/libcudnn.so.9", FAKE_CUBLASLT, home.path);
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    const struct tdmi_op_desc desc = desc_of(device, TDMI_DTYPE_F32);
    const struct tdmi_cuda_conv_plans plans = tdmi_cuda_conv_plans_of(&desc);
    assert_int_equal(n_products(&plans), 3);
    close_card(device);
    folder_remove(&home);
}

static void a_node_says_what_computes_it(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct folder choices = folder_new();
        make_slow(k);
        tdmi_device *device = open_card(&choices, NULL);
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
        close_card(device);
        folder_remove(&choices);
    }
}

/* What is planned has room for each direction, and a limit is one for either library. */
static void its_workspace_is_planned_and_limited(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) {
        struct folder choices = folder_new();
        make_slow(k & 1);
        convs->right_bytes = 1 << 20;
        tdmi_device *device = open_card(&choices, NULL);
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
        close_card(device);
        folder_remove(&choices);
    }
    convs->right_bytes = 1000;
}

/* ---- computing ------------------------------------------------------------------------------ */

struct arrays {
    void *x, *dy, *y, *dx, *add;
    float *w, *dw;
    void *blocks[8], *packed;
};

static struct arrays arrays_of(enum tdmi_dtype type)
{
    struct arrays it;
    it.x = tensor(type, most * pixels * in, 0, 1, &it.blocks[0]);
    it.dy = tensor(type, most * pixels * out, 0, 2, &it.blocks[1]);
    it.add = tensor(type, most * pixels * in, 0, 3, &it.blocks[2]);
    it.y = tensor(type, most * pixels * out, 0, 0, &it.blocks[3]);
    it.dx = tensor(type, most * pixels * in, 0, 0, &it.blocks[4]);
    it.w = tensor(TDMI_DTYPE_F32, in * out, 0, 4, &it.blocks[5]);
    it.dw = tensor(TDMI_DTYPE_F32, in * out + 1, 0, 0, &it.blocks[6]);
    it.dw++; /* gradients lie where they lie */
    it.blocks[7] = it.packed = NULL;
    return it;
}

static void free_arrays(struct arrays *it)
{
    for (int i = 0; i < 8; i++)
        tdmi_free(it->blocks[i]);
    tdmi_free(it->packed);
}

/* As a plan may place it: on 64 bytes and on no more. What is behind it is full of zeros. */
static char *place_workspace(struct arrays *it, size_t bytes)
{
    char *block = it->blocks[7] = tdmi_alloc_aligned(bytes + 512);
    assert_non_null(block);
    return block + (256 - (uintptr_t)block % 256) % 256 + 64;
}

static void expect_no_more(const char *workspace, size_t bytes)
{
    for (size_t i = bytes; i < bytes + 128; i++)
        assert_int_equal(workspace[i], 0);
}

/* One call forward and backward; is_in_place: what dx is added to is dx. */
static struct arrays run(tdmi_device *device, enum tdmi_dtype type, int n, bool is_in_place)
{
    struct arrays it = arrays_of(type);
    struct tdmi_op_desc desc = desc_of(device, type);
    const struct tdmi_kernel *kernel = &tdmi_cuda_conv;
    struct tdmi_kernel_needs needs = {0};
    tdmi_stream stream = {.device = device};
    assert_int_equal(kernel->prepare(&desc, &desc.prepared, NULL), TDM_OK);
    kernel->needs(&desc, &needs);
    it.packed = tdmi_alloc_aligned(needs.packed_bytes + 1);
    char *workspace = place_workspace(&it, needs.workspace_bytes);
    if (is_in_place)
        memcpy(it.dx, it.add, (size_t)(most * pixels * in) * tdmi_dtype_bytes(type));
    const struct tdmi_op_call call = {
        .n = n,
        .x = {it.x},
        .y = it.y,
        .dy = it.dy,
        .dx = {it.dx},
        .dx_add = {is_in_place ? it.dx : it.add},
        .params = {it.w},
        .dparams = {it.dw},
        .packed = it.packed,
        .workspace = workspace,
    };
    if (needs.packed_bytes > 0)
        kernel->pack(&stream, &desc,
                     &(struct tdmi_pack_call){.params = {it.w}, .packed = it.packed});
    kernel->forward(&stream, &desc, &call);
    kernel->backward(&stream, &desc, &call);
    assert_int_equal(stream.failure, 0);
    expect_no_more(workspace, needs.workspace_bytes);
    if (desc.prepared)
        kernel->release(desc.prepared);
    return it;
}

static void expect_same(const void *got, const void *wanted, enum tdmi_dtype type, int64_t n,
                        double terms, const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        const double value = value_at(wanted, type, i);
        expect_near(value_at(got, type, i), value,
                    2.0 * step_of(type, fabs(value)) + terms * 0x1p-20, what, i);
    }
}

static void products_give_what_conv_gives(void **state)
{
    struct folder home = folder_new();
    (void)state;
    make_slow(true);
    tdmi_device *device = open_card(&home, NULL), *plain;
    tdmi_shim_libraries(NULL, NULL, NULL);
    assert_int_equal(tdmi_backend_shim.device.open(0, &plain, NULL), TDM_OK);
    for (int t = 0; t < n_float_types; t++)
        for (int way = 0; way < 4; way++) {
            const enum tdmi_dtype type = float_types[t];
            const int n = way & 1 ? most - 1 : most;
            const int before = products->runs[FAKE_QUICKLY] + products->runs[FAKE_SLOWLY];
            struct arrays got = run(device, type, n, way & 2),
                          wanted = run(plain, type, n, way & 2);
            assert_true(products->runs[FAKE_QUICKLY] + products->runs[FAKE_SLOWLY] > before);
            expect_same(got.y, wanted.y, type, n * pixels * out, 64.0, "y");
            expect_same(got.dx, wanted.dx, type, n * pixels * in, 64.0, "dx");
            expect_same(got.dw, wanted.dw, TDMI_DTYPE_F32, in * out, 64.0 * most * pixels, "dw");
            free_arrays(&got);
            free_arrays(&wanted);
        }
    close_card(device);
    tdmi_backend_shim.device.close(plain);
    folder_remove(&home);
}

/* y of inference, with what is behind the product. */
static void *infer(tdmi_device *device, const struct tdmi_op_fusion *fusion, bool has_bias,
                   struct arrays *it)
{
    static float numbers[5][out] = {{0}};
    struct tdmi_op_desc desc = desc_of(device, TDMI_DTYPE_F32);
    const struct tdmi_kernel *kernel = &tdmi_cuda_conv;
    struct tdmi_kernel_needs needs = {0};
    tdmi_stream stream = {.device = device};
    *it = arrays_of(TDMI_DTYPE_F32);
    desc.is_training = desc.wants_dx = false;
    desc.attrs.has_bias = has_bias;
    desc.fusion = *fusion;
    for (int c = 0; c < out; c++) {
        numbers[0][c] = 0.5f * (float)(c - 3);             /* bias */
        numbers[1][c] = 1.0f - 0.25f * (float)c;           /* scale */
        numbers[2][c] = numbers[3][c] = 0.125f * (float)c; /* shift, mean */
        numbers[4][c] = 1.0f + (float)c;                   /* variance */
    }
    assert_true(kernel->can_fuse(&desc));
    assert_int_equal(kernel->prepare(&desc, &desc.prepared, NULL), TDM_OK);
    kernel->needs(&desc, &needs);
    it->packed = tdmi_alloc_aligned(needs.packed_bytes + 1);
    char *workspace = place_workspace(it, needs.workspace_bytes);
    const struct tdmi_pack_call pack = {.params = {it->w, numbers[0]},
                                        .norm_params = {numbers[1], numbers[2]},
                                        .norm_states = {numbers[3], numbers[4]},
                                        .norm_epsilon = 1e-3,
                                        .packed = it->packed};
    if (needs.packed_bytes > 0)
        kernel->pack(&stream, &desc, &pack);
    const struct tdmi_op_call call = {.n = most,
                                      .x = {it->x},
                                      .y = it->y,
                                      .residual = it->dy,
                                      .params = {it->w, numbers[0]},
                                      .packed = it->packed,
                                      .workspace = workspace};
    kernel->forward(&stream, &desc, &call);
    assert_int_equal(stream.failure, 0);
    if (desc.prepared)
        kernel->release(desc.prepared);
    return it->y;
}

/* By cuDNN, by cuBLASLt with a relu of its own and without, and where there is no cuDNN:
 * what conv.cu and channels.cu give. */
static void what_is_behind_a_product_is_in_it(void **state)
{
    static const struct tdmi_op_fusion fusions[] = {
        {.act = TDMI_ACT_RELU},
        {.folds_norm = true},
        {.folds_norm = true, .act = TDMI_ACT_RELU},
        {.folds_norm = true, .act = TDMI_ACT_RELU6},
        {.folds_norm = true, .act = TDMI_ACT_RELU, .adds_residual = true},
    };
    tdmi_device *plain;
    (void)state;
    tdmi_shim_libraries(NULL, NULL, NULL);
    assert_int_equal(tdmi_backend_shim.device.open(0, &plain, NULL), TDM_OK);
    for (int card = 0; card < 4; card++) {
        struct folder home = folder_new();
        make_slow(card > 0);
        products->takes_no_relu = card == 2;
        tdmi_device *device = open_card(&home, NULL);
        if (card == 3) {
            close_card(device);
            tdmi_shim_libraries("/nowhere/libcudnn.so.9", FAKE_CUBLASLT, home.path);
            assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
        }
        for (size_t k = 0; k < 2 * sizeof fusions / sizeof *fusions; k++) {
            const struct tdmi_op_fusion *fusion = &fusions[k / 2];
            const bool is_whole = !fusion->adds_residual && fusion->act != TDMI_ACT_RELU6 &&
                                  (card != 2 || fusion->act == TDMI_ACT_NONE);
            const int before = products->runs[FAKE_QUICKLY] + products->runs[FAKE_SLOWLY];
            struct arrays got, wanted;
            (void)infer(device, fusion, k & 1, &got);
            const int after = products->runs[FAKE_QUICKLY] + products->runs[FAKE_SLOWLY];
            (void)infer(plain, fusion, k & 1, &wanted);
            expect_same(got.y, wanted.y, TDMI_DTYPE_F32, most * pixels * out, 64.0, "y");
            if (card == 3 || (card == 1 && is_whole))
                assert_true(after > before);
            free_arrays(&got);
            free_arrays(&wanted);
        }
        close_card(device);
        folder_remove(&home);
    }
    products->takes_no_relu = 0;
    tdmi_backend_shim.device.close(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_of_both_computes_and_a_run_keeps_which),
        cmocka_unit_test(a_limit_is_asked_about_on_its_own),
        cmocka_unit_test(who_is_timed_in_turn_works_on_the_same_memory),
        cmocka_unit_test(what_is_shared_has_room_for_the_larger),
        cmocka_unit_test(only_what_is_a_product_is_asked_as_one),
        cmocka_unit_test(a_node_says_what_computes_it),
        cmocka_unit_test(its_workspace_is_planned_and_limited),
        cmocka_unit_test(without_cudnn_products_are_cublaslts),
        cmocka_unit_test(products_give_what_conv_gives),
        cmocka_unit_test(what_is_behind_a_product_is_in_it),
    };
    void *library = dlopen(FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    void *of_products = dlopen(FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    convs = library ? dlsym(library, "fake_cudnn") : NULL;
    products = of_products ? dlsym(of_products, "fake_cublaslt") : NULL;
    return convs && products ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
