/*
 * Products by what looks like cuBLASLt (fake_cublaslt.c): every way of lying, in every type,
 * against sums in double; which algorithm is taken, and what is kept of that.
 */
#include "backend/cuda/fakes/fake_cublaslt.h"
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/values.h"
#include "backend/cuda/vendor/libraries.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/file/file.h"
#include "base/folder.h"

static struct fake_cublaslt *fake;

/* home NULL: without a library. */
static tdmi_device *open_card(const struct folder *home)
{
    tdmi_device *device;
    tdmi_shim_libraries(home ? "/nowhere/libcudnn.so.9" : NULL, home ? FAKE_CUBLASLT : NULL,
                        home ? home->path : NULL);
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    return device;
}

static void close_card(tdmi_device *device)
{
    tdmi_backend_shim.device.close(device);
    assert_int_equal(fake->alive, 0);
}

/* The algorithm that it runs on; -1: there is none. */
static int run_product(tdmi_device *device, const struct tdmi_cublaslt_product *it)
{
    const int64_t rows = it->rows, columns = it->columns, depth = it->depth;
    const struct tdmi_cublaslt_plan *plan = tdmi_cuda_product_plan(device, it);
    tdmi_stream stream = {.device = device};
    void *blocks[5];
    int before[FAKE_ALGORITHMS], algorithm = -1;
    if (!plan)
        return -1;
    void *a = tensor(it->type, rows * depth, 0, 1, &blocks[0]);
    void *b = tensor(it->type, depth * columns, 0, 2, &blocks[1]);
    void *bias = tensor(it->result, columns, 0, 3, &blocks[2]);
    void *d = tensor(it->result, rows * columns, it->alignment == 4, 0, &blocks[3]);
    blocks[4] = tdmi_alloc_aligned(tdmi_cuda_workspace_room(plan->workspace_bytes));
    const struct tdmi_cublaslt_call call = {
        .a = a, .b = b, .bias = it->has_bias ? bias : NULL, .d = d, .workspace = blocks[4]};
    memcpy(before, fake->runs, sizeof before);
    assert_int_equal(tdmi_cuda_product_run(&stream, plan, &call), 0);
    for (int i = 0; i < FAKE_ALGORITHMS; i++)
        algorithm = fake->runs[i] > before[i] ? i : algorithm;
    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t row = i / columns, column = i % columns;
        double sum = it->has_bias ? value_at(bias, it->result, column) : 0.0;
        for (int64_t k = 0; k < depth; k++)
            sum +=
                value_at(a, it->type, it->is_a_turned ? k * rows + row : row * depth + k) *
                value_at(b, it->type, it->is_b_turned ? column * depth + k : k * columns + column);
        if (it->act == TDMI_ACT_RELU && sum < 0.0)
            sum = 0.0;
        expect_near(value_at(d, it->result, i), sum, step_of(it->result, fabs(sum)), "d", i);
    }
    for (int i = 0; i < 5; i++)
        tdmi_free(blocks[i]);
    return algorithm;
}

static void products_of_every_type_and_lie_are_right(void **state)
{
    struct folder home = folder_new();
    tdmi_device *device = open_card(&home);
    (void)state;
    for (int t = 0; t < n_float_types; t++)
        for (int way = 0; way < 32; way++) {
            const struct tdmi_cublaslt_product it = {
                .type = float_types[t],
                .result = way & 8 ? TDMI_DTYPE_F32 : float_types[t],
                .rows = 5,
                .columns = 7,
                .depth = 3 + way,
                .is_a_turned = way & 1,
                .is_b_turned = way & 2,
                .has_bias = way & 4,
                .act = way & 16 ? TDMI_ACT_RELU : TDMI_ACT_NONE,
                .alignment = way & 8 ? 4 : 16,
            };
            assert_true(run_product(device, &it) >= 0);
        }
    close_card(device);
    folder_remove(&home);
}

static const struct tdmi_cublaslt_product plain = {
    .type = TDMI_DTYPE_F32, .rows = 4, .columns = 3, .depth = 2, .alignment = 16};

static void the_fastest_algorithm_that_runs_is_taken(void **state)
{
    struct folder home = folder_new();
    tdmi_device *device = open_card(&home);
    struct tdmi_cublaslt_product it = plain;
    (void)state;
    memset(fake->runs, 0, sizeof fake->runs);
    assert_int_equal(run_product(device, &it), FAKE_QUICKLY);
    assert_int_equal(fake->runs[FAKE_CANNOT] + fake->runs[FAKE_WIDE], 0);
    assert_int_equal(fake->runs[FAKE_BREAKS], 1);
    assert_true(fake->runs[FAKE_SLOWLY] > 1);
    it.allows_tf32 = true; /* another problem */
    const int guesses = fake->guesses;
    assert_int_equal(run_product(device, &it), FAKE_QUICKLY);
    assert_int_equal(fake->guesses, guesses + 1);
    assert_int_equal(fake->reductions, 2); /* a step of its own */
    it.may_vary = true;
    assert_int_equal(run_product(device, &it), FAKE_QUICKLY);
    assert_int_equal(fake->guesses, guesses + 2);
    assert_int_equal(fake->reductions, 3);
    it.act = TDMI_ACT_RELU;
    assert_int_equal(run_product(device, &it), FAKE_QUICKLY);
    assert_int_equal(fake->guesses, guesses + 3);
    it.act = TDMI_ACT_NONE;
    it.rows++;
    fake->guesses_nothing = 1;
    assert_int_equal(run_product(device, &it), -1);
    fake->guesses_nothing = 0;
    assert_int_equal(run_product(device, &it), -1); /* asked once */
    close_card(device);
    fake->handle_code = 1;
    device = open_card(&home);
    assert_null(tdmi_cuda_product_plan(device, &plain));
    close_card(device);
    fake->handle_code = 0;
    folder_remove(&home);
}

static int guesses_for(const struct folder *home, const char *kept)
{
    tdmi_device *device = open_card(home);
    const int before = fake->guesses;
    if (kept)
        tdmi_cuda_libraries_keep(device->libraries, kept);
    assert_int_equal(run_product(device, &plain), FAKE_QUICKLY);
    close_card(device);
    return fake->guesses - before;
}

static void spoil(const char *path, long at, const char *with)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, at, SEEK_END);
    fputs(with, file);
    fclose(file);
}

static void what_was_timed_is_kept_and_made_again_where_it_is_damaged(void **state)
{
    /* from the end: the quotation mark, digits of the algorithm, all that is behind it */
    static const struct {
        long at;
        const char *with;
    } damages[] = {{-3, "x"}, {-120, "9"}, {-20, "G"}, {-2, "]"}, {-1, "}"}};
    struct folder home = folder_new();
    char path[300];
    tdmi_arena arena;
    struct tdmi_folder_entry *entries;
    size_t n;
    (void)state;
    tdmi_arena_init(&arena, 0);
    assert_int_equal(guesses_for(&home, folder_path(&home, "run")), 1);
    assert_int_equal(guesses_for(&home, folder_path(&home, "run")), 0);
    assert_int_equal(tdmi_folder_list(folder_path(&home, "run"), &arena, &entries, &n, NULL),
                     TDM_OK);
    assert_int_equal(n, 1);
    snprintf(path, sizeof path, "%s/cuda/a0a1a2a3a4a5a6a7a8a9aaabacadaeaf-0-130100-13000/%s",
             home.path, entries[0].name);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        spoil(path, damages[i].at, damages[i].with);
        assert_int_equal(guesses_for(&home, NULL), 1);
        assert_int_equal(guesses_for(&home, NULL), 0);
    }
    assert_int_equal(remove(path), 0); /* a run knows what it began with, and tells nobody */
    assert_int_equal(guesses_for(&home, folder_path(&home, "run")), 0);
    assert_int_equal(guesses_for(&home, NULL), 1);
    tdmi_arena_release(&arena);
    folder_remove(&home);
}

/* ---- the op dense -----------------------------------------------------------------------------
 */

enum { most = 5, depth = 7, columns = 4, n_y = most * columns };

/* y of inference, from arrays of the type. Its node says what computes it. */
static void infer(tdmi_device *device, enum tdmi_dtype type, enum tdmi_act act, void *y,
                  struct tdmi_kernel_algorithms *ways)
{
    struct tdmi_op_desc desc = {.kind = TDMI_OP_DENSE,
                                .attrs = {.channels = columns, .has_bias = true},
                                .in = {{1, 1, depth}},
                                .out = {1, 1, columns},
                                .max_images = most,
                                .storage = type,
                                .device = device,
                                .fusion = {.act = act}};
    const struct tdmi_kernel *kernel = &tdmi_cuda_dense;
    struct tdmi_kernel_needs needs = {0};
    tdmi_stream stream = {.device = device};
    void *blocks[5];
    void *x = tensor(type, most * depth, 0, 1, &blocks[0]);
    float *w = tensor(TDMI_DTYPE_F32, depth * columns, 0, 2, &blocks[1]);
    float *bias = tensor(TDMI_DTYPE_F32, columns, 0, 3, &blocks[2]);
    assert_true(kernel->can_fuse(&desc));
    assert_int_equal(kernel->prepare(&desc, &desc.prepared, NULL), TDM_OK);
    kernel->needs(&desc, &needs);
    kernel->describe(&desc, ways);
    blocks[3] = tdmi_alloc_aligned(needs.packed_bytes + 1);
    blocks[4] = tdmi_alloc_aligned(needs.workspace_bytes + 1);
    if (needs.packed_bytes > 0)
        kernel->pack(&stream, &desc,
                     &(struct tdmi_pack_call){.params = {w, bias}, .packed = blocks[3]});
    kernel->forward(&stream, &desc,
                    &(struct tdmi_op_call){.n = most,
                                           .x = {x},
                                           .y = y,
                                           .params = {w, bias},
                                           .packed = blocks[3],
                                           .workspace = blocks[4]});
    assert_int_equal(stream.failure, 0);
    if (desc.prepared)
        kernel->release(desc.prepared);
    for (int i = 0; i < 5; i++)
        tdmi_free(blocks[i]);
}

/* In the product, behind it, and behind dense.cu. */
static void a_relu_behind_a_dense_layer_is_the_layers(void **state)
{
    (void)state;
    for (int card = 0; card < 3; card++) {
        struct folder home = folder_new();
        tdmi_device *device = open_card(card < 2 ? &home : NULL);
        fake->takes_no_relu = card == 1;
        for (int t = 0; t < n_float_types; t++) {
            struct tdmi_kernel_algorithms ways = {{{0}, 0}, {{0}, 0}, {{0}, 0}};
            void *at_y, *at_z;
            int n_cut = 0;
            char *y = tensor(float_types[t], n_y, 0, 0, &at_y);
            char *z = tensor(float_types[t], n_y, 0, 0, &at_z);
            infer(device, float_types[t], TDMI_ACT_NONE, y, &ways);
            infer(device, float_types[t], TDMI_ACT_RELU, z, &ways);
            assert_memory_equal(ways.forward.by, card < 2 ? "cuBLASLt" : "dense.cu", 8);
            for (int i = 0; i < n_y; i++) {
                const double value = value_at(y, float_types[t], i);
                n_cut += value < 0.0;
                assert_true(value_at(z, float_types[t], i) == (value < 0.0 ? 0.0 : value));
            }
            assert_in_range(n_cut, 1, n_y - 1);
            tdmi_free(at_y);
            tdmi_free(at_z);
        }
        close_card(device);
        folder_remove(&home);
    }
    fake->takes_no_relu = 0;
}

static void a_dense_layer_promises_nothing_else(void **state)
{
    const struct tdmi_op_desc usual = {.kind = TDMI_OP_DENSE, .fusion = {.act = TDMI_ACT_RELU}};
    struct tdmi_op_desc asked[] = {usual, usual, usual, usual, usual, usual};
    (void)state;
    asked[0].is_training = true;
    asked[1].fusion.act = TDMI_ACT_RELU6;
    asked[2].fusion.adds_residual = true;
    asked[3].fusion.folds_norm = true;
    asked[4].fusion.in[0].act = TDMI_ACT_RELU;
    asked[5].fusion.gives_sums = true;
    assert_true(tdmi_cuda_dense.can_fuse(&usual));
    for (int k = 0; k < 6; k++)
        assert_false(tdmi_cuda_dense.can_fuse(&asked[k]));
}

/* For tests that want one to be the slower. */
static int make_slow(void **state)
{
    (void)state;
    fake->slow_ns = 5000000;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_every_type_and_lie_are_right),
        cmocka_unit_test_setup(the_fastest_algorithm_that_runs_is_taken, make_slow),
        cmocka_unit_test_setup(what_was_timed_is_kept_and_made_again_where_it_is_damaged,
                               make_slow),
        cmocka_unit_test(a_relu_behind_a_dense_layer_is_the_layers),
        cmocka_unit_test(a_dense_layer_promises_nothing_else),
    };
    void *library = dlopen(FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    fake = library ? dlsym(library, "fake_cublaslt") : NULL;
    return fake ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
