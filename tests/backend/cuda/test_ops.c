/*
 * Every op on the cases of the self-test and on more of them, by the kernels that the shim runs and
 * by the stand-ins for cuDNN and cuBLASLt, against the reference backend. In the usual order, with
 * gradients against central differences: test_selftest.c.
 */
#include "backend/cuda/fakes/fake_cublaslt.h"
#include "backend/cuda/fakes/fake_cudnn.h"
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/shim/shim_run.h"
#include "sanitized.h"
#include "train/selftest/checks.h"

#include <dlfcn.h>

#include "base/folder.h"
#include "unit.h"

#define SAME(before) \
    .pad_top = before, .pad_bottom = before, .pad_left = before, .pad_right = before
#define CONV(out, k, s, before)                                                             \
    {                                                                                       \
        .channels = out, .kernel = k, .stride = s, SAME(before), .dilation = 1, .groups = 1 \
    }
#define DEPTHWISE(c, k, s, d, before)                                                     \
    {                                                                                     \
        .channels = c, .kernel = k, .stride = s, SAME(before), .dilation = d, .groups = c \
    }
#define POOL(k, s, before)                     \
    {                                          \
        .kernel = k, .stride = s, SAME(before) \
    }

/* Shapes that only GPU kernels treat apart: channels that fill vectors of 16 bytes of every type,
 * more values than a block has threads, sums of several chunks, many classes, ragged batches. */
static const struct tdmi_case more_cases[] = {
    {"1x1, ragged", TDMI_OP_CONV, CONV(6, 1, 1, 0), {5, 5, 8}, 2, 3},
    {"3x3, several chunks of pixels", TDMI_OP_CONV, CONV(4, 3, 1, 1), {23, 29, 3}, 3, 3},
    {"more outputs than a tile", TDMI_OP_CONV, CONV(70, 1, 1, 0), {8, 8, 4}, 1, 1},
    {"depthwise, whole vectors", TDMI_OP_CONV, DEPTHWISE(8, 3, 1, 1, 1), {6, 5, 8}, 2, 2},
    {"depthwise, stride 2", TDMI_OP_CONV, DEPTHWISE(16, 3, 2, 1, 1), {11, 7, 16}, 2, 2},
    {"depthwise, 5x5 stride 2", TDMI_OP_CONV, DEPTHWISE(20, 5, 2, 1, 2), {7, 9, 20}, 2, 2},
    {"depthwise, 7x7", TDMI_OP_CONV, DEPTHWISE(8, 7, 1, 1, 3), {9, 9, 8}, 2, 2},
    {"depthwise, dilated", TDMI_OP_CONV, DEPTHWISE(8, 3, 1, 2, 2), {9, 13, 8}, 1, 1},
    {"depthwise, rows of padding", TDMI_OP_CONV, DEPTHWISE(8, 3, 1, 1, 2), {5, 5, 8}, 1, 1},
    {"depthwise, several cells a thread",
     TDMI_OP_CONV,
     DEPTHWISE(4, 3, 1, 1, 1),
     {33, 33, 4},
     9,
     9},
    {"8 channels", TDMI_OP_BATCH_NORM, {.epsilon = 1e-3, .momentum = 0.1}, {7, 7, 8}, 3, 3},
    {"24 channels", TDMI_OP_BATCH_NORM, {.epsilon = 1e-3, .momentum = 0.1}, {5, 5, 24}, 3, 4},
    {"2051 channels", TDMI_OP_BATCH_NORM, {.epsilon = 1e-3, .momentum = 0.1}, {1, 2, 2051}, 3, 3},
    {"9025 pixels", TDMI_OP_BATCH_NORM, {.epsilon = 1e-3, .momentum = 0.1}, {95, 95, 16}, 1, 1},
    {"several blocks", TDMI_OP_RELU, {0}, {17, 11, 11}, 1, 1},
    {"several blocks", TDMI_OP_RELU6, {0}, {16, 11, 16}, 1, 1},
    {"several blocks", TDMI_OP_HSWISH, {0}, {17, 11, 11}, 1, 1},
    {"several blocks", TDMI_OP_SIGMOID, {0}, {16, 11, 16}, 1, 1},
    {"several blocks", TDMI_OP_ADD, {0}, {17, 11, 11}, 1, 1},
    {"whole vectors", TDMI_OP_CONCAT, {0}, {9, 7, 16}, 2, 2},
    {"whole vectors", TDMI_OP_PAD, {.pad_top = 1, .pad_front = 8, .pad_back = 8}, {3, 3, 8}, 2, 2},
    {"whole vectors", TDMI_OP_MAX_POOL, POOL(3, 2, 1), {9, 8, 16}, 2, 2},
    {"225 pixels a window", TDMI_OP_MAX_POOL, POOL(15, 1, 0), {15, 15, 2}, 1, 1},
    {"whole vectors", TDMI_OP_AVG_POOL, POOL(3, 2, 1), {9, 8, 16}, 2, 2},
    {"2056 channels", TDMI_OP_GLOBAL_POOL, {0}, {10, 10, 2056}, 2, 2},
    {"300 channels",
     TDMI_OP_LRN,
     {.kernel = 3, .alpha = 0.5, .beta = 0.75, .offset = 2.0},
     {1, 2, 300},
     2,
     2},
    {"whole vectors", TDMI_OP_DROPOUT, {.rate = 0.25, .stream = 5}, {11, 13, 8}, 3, 3},
    {"long sums", TDMI_OP_DENSE, {.channels = 5, .has_bias = true}, {1, 1, 700}, 2, 3},
    {"several tiles", TDMI_OP_DENSE, {.channels = 130, .has_bias = true}, {1, 1, 100}, 66, 66},
    {"1000 classes", TDMI_OP_SOFTMAX, {.label_smoothing = 0.1}, {1, 1, 1000}, 3, 3},
    {"1000 classes", TDMI_OP_LOGISTIC, {.label_smoothing = 0.1}, {1, 1, 1000}, 3, 3},
};
enum { n_more = sizeof more_cases / sizeof *more_cases };

typedef tdm_status check_op(const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_case *it, struct tdmi_check *check, tdm_error *err);

static tdm_status match_bf16(const struct tdmi_backend *backend, tdmi_device *device,
                             const struct tdmi_case *it, struct tdmi_check *result, tdm_error *err)
{
    return tdmi_check_match_stored(backend, device, it, TDMI_DTYPE_BF16, result, err);
}

static tdm_status match_f16(const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_case *it, struct tdmi_check *result, tdm_error *err)
{
    return tdmi_check_match_stored(backend, device, it, TDMI_DTYPE_F16, result, err);
}

/* Sanitizers are slow: they check one type. */
enum { n_types = is_sanitized ? 1 : 3 };

static check_op *const matches[] = {tdmi_check_match, match_bf16, match_f16};

static bool is_of_libraries(const struct tdmi_case *it)
{
    return it->kind == TDMI_OP_CONV || it->kind == TDMI_OP_DENSE;
}

struct pass {
    const struct tdmi_backend *backend;
    check_op *check;
    bool is_reversed, by_libraries, has_all; /* all: the cases of the self-test, too */
};

static void run_all(struct pass pass)
{
    const int n_cases = pass.has_all ? INT32_MAX : 0;
    const struct tdmi_case *it;
    tdmi_device *device;
    assert_int_equal(pass.backend->device.open(0, &device, NULL), TDM_OK);
    for (int i = -n_more; i < n_cases; i++) {
        struct tdmi_check result;
        tdm_error err = {0};
        if (!(it = i < 0 ? &more_cases[i + n_more] : tdmi_case_at(i)))
            break;
        if (!pass.backend->kernels[it->kind])
            fail_msg("backend cuda lacks the op %s", tdmi_op_name(it->kind));
        if (pass.by_libraries && !is_of_libraries(it))
            continue;
        tdmi_shim_use((struct tdmi_shim_order){.is_reversed = pass.is_reversed});
        if (pass.check(pass.backend, device, it, &result, &err) != TDM_OK)
            fail_msg("%s, '%s': %s", tdmi_op_name(it->kind), it->name, tdm_error_sentence(&err, 0));
        if (!result.has_passed)
            fail_msg("%s, '%s': %s", tdmi_op_name(it->kind), it->name, result.detail);
        assert_true(tdmi_shim_facts().launches > 0);
    }
    pass.backend->device.close(device);
}

TEST(ops_match_with_blocks_and_threads_in_reverse)
{
    for (int t = 0; t < n_types; t++)
        run_all((struct pass){&tdmi_backend_shim, matches[t], true, false, t == 0});
}

/* ---- memory without vectors ----------------------------------------------------------------- */

enum { off_bytes = 8 }; /* no vector of 16 bytes begins there */

static void *alloc_off(tdmi_device *device, size_t bytes)
{
    char *memory = tdmi_backend_shim.memory.alloc(device, bytes + off_bytes);
    return memory ? memory + off_bytes : NULL;
}

static void free_off(tdmi_device *device, void *memory)
{
    tdmi_backend_shim.memory.free(device, memory ? (char *)memory - off_bytes : NULL);
}

TEST(ops_match_where_no_tensor_begins_on_16_bytes)
{
    struct tdmi_backend off = tdmi_backend_shim;
    off.memory.alloc = alloc_off;
    off.memory.free = free_off;
    for (int t = 0; t < n_types; t++)
        run_all((struct pass){&off, matches[t], false, false, false});
}

/* ---- libraries ------------------------------------------------------------------------------ */

struct libraries {
    void *of_convs, *of_products;
    struct fake_cudnn *convs;
    struct fake_cublaslt *products;
    struct folder home;
};

/* The shim keeps the address of the folder's name, so it is filled in place. */
static void open_libraries(struct libraries *it, const char *cudnn)
{
    *it = (struct libraries){.of_convs = dlopen(FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL),
                             .of_products = dlopen(FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL),
                             .home = folder_new()};
    assert_true(it->of_convs && it->of_products);
    it->convs = dlsym(it->of_convs, "fake_cudnn");
    it->products = dlsym(it->of_products, "fake_cublaslt");
    assert_true(it->convs && it->products);
    tdmi_shim_libraries(cudnn, FAKE_CUBLASLT, it->home.path);
}

static void close_libraries(struct libraries *it)
{
    it->convs->takes_no_pointwise = 0;
    tdmi_shim_libraries(NULL, NULL, NULL);
    assert_int_equal(it->convs->alive + it->convs->handles + it->products->alive, 0);
    dlclose(it->of_convs);
    dlclose(it->of_products);
    folder_remove(&it->home);
}

/* Runs of engines and algorithms that compute rightly; which is faster depends on the machine. */
static int runs_of_convs(const struct libraries *it)
{
    return it->convs->runs[FAKE_RIGHT] + it->convs->runs[FAKE_SLOW] + it->convs->runs[FAKE_CORE];
}

static int runs_of_products(const struct libraries *it)
{
    return it->products->runs[FAKE_QUICKLY] + it->products->runs[FAKE_SLOWLY];
}

TEST(ops_match_by_libraries)
{
    struct libraries it;
    open_libraries(&it, FAKE_CUDNN);
    for (int t = 0; t < 4; t += is_sanitized ? 3 : 1) { /* at last without activations in a graph */
        const int convs = runs_of_convs(&it), products = runs_of_products(&it);
        it.convs->takes_no_pointwise = t == 3;
        run_all((struct pass){&tdmi_backend_shim, matches[t % 3], false, true, true});
        assert_true(runs_of_convs(&it) > convs + 50);
        assert_true(runs_of_products(&it) > products + 5);
    }
    close_libraries(&it);
}

TEST(products_match_by_cublaslt_alone)
{
    struct libraries it;
    open_libraries(&it, "/nowhere/libcudnn.so.9");
    for (int t = 0; t < n_types; t++) {
        const int products = runs_of_products(&it);
        run_all((struct pass){&tdmi_backend_shim, matches[t], false, true, true});
        assert_true(runs_of_products(&it) > products + 5);
    }
    close_libraries(&it);
}

TEST(gradients_of_libraries_are_those_of_central_differences)
{
    struct libraries it;
    open_libraries(&it, FAKE_CUDNN);
    run_all((struct pass){&tdmi_backend_shim, tdmi_check_gradient, false, true, true});
    close_libraries(&it);
}

TEST_MAIN(NULL, NULL)
