/*
 * Products by the stand-in for cuBLASLt (fake_cublaslt.c): every layout, in every type, against
 * sums in double; which algorithm is chosen, and what files keep of it. The op dense: test_ops.c.
 */
#include "backend/cuda/fakes/fake_gpu.h"
#include "backend/cuda/values.h"
#include "backend/cuda/vendor/libraries.h"

#include "base/file/file.h"

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
    memcpy(before, products->runs, sizeof before);
    assert_int_equal(tdmi_cuda_product_run(&stream, plan, &call), 0);
    for (int i = 0; i < FAKE_ALGORITHMS; i++)
        algorithm = products->runs[i] > before[i] ? i : algorithm;
    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t row = i / columns, column = i % columns;
        double sum = it->has_bias ? value_at(bias, it->result, column) : 0.0;
        for (int64_t k = 0; k < depth; k++)
            sum += value_at(a, it->type, it->is_a_transposed ? k * rows + row : row * depth + k) *
                   value_at(b, it->type,
                            it->is_b_transposed ? column * depth + k : k * columns + column);
        if (it->act == TDMI_ACT_RELU && sum < 0.0)
            sum = 0.0;
        expect_near(value_at(d, it->result, i), sum, step_of(it->result, fabs(sum)), "d", i);
    }
    for (int i = 0; i < 5; i++)
        tdmi_free(blocks[i]);
    return algorithm;
}

TEST(products_of_every_type_and_layout_are_right)
{
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    tdmi_device *device = open_gpu_with("/nowhere/libcudnn.so.9", &home);
    for (int t = 0; t < n_float_types; t++)
        for (int way = 0; way < 32; way++) {
            const struct tdmi_cublaslt_product it = {
                .type = float_types[t],
                .result = way & 8 ? TDMI_DTYPE_F32 : float_types[t],
                .rows = 5,
                .columns = 7,
                .depth = 3 + way,
                .is_a_transposed = way & 1,
                .is_b_transposed = way & 2,
                .has_bias = way & 4,
                .act = way & 16 ? TDMI_ACT_RELU : TDMI_ACT_NONE,
                .alignment = way & 8 ? 4 : 16,
            };
            assert_true(run_product(device, &it) >= 0);
        }
    close_gpu(device);
}

static const struct tdmi_cublaslt_product plain = {
    .type = TDMI_DTYPE_F32, .rows = 4, .columns = 3, .depth = 2, .alignment = 16};

TEST(the_fastest_working_algorithm_is_chosen)
{
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    tdmi_device *device = open_gpu_with("/nowhere/libcudnn.so.9", &home);
    struct tdmi_cublaslt_product it = plain;
    memset(products->runs, 0, sizeof products->runs);
    assert_int_equal(run_product(device, &it), FAKE_QUICKLY);
    assert_int_equal(products->runs[FAKE_CANNOT] + products->runs[FAKE_WIDE], 0);
    assert_int_equal(products->runs[FAKE_BREAKS], 1);
    assert_true(products->runs[FAKE_SLOWLY] > 1);
    it.allows_tf32 = true; /* another problem */
    const int guesses = products->guesses;
    assert_int_equal(run_product(device, &it), FAKE_QUICKLY);
    assert_int_equal(products->guesses, guesses + 1);
    assert_int_equal(products->reductions, 2); /* a step of its own */
    it.may_vary = true;
    assert_int_equal(run_product(device, &it), FAKE_QUICKLY);
    assert_int_equal(products->guesses, guesses + 2);
    assert_int_equal(products->reductions, 3);
    it.act = TDMI_ACT_RELU;
    assert_int_equal(run_product(device, &it), FAKE_QUICKLY);
    assert_int_equal(products->guesses, guesses + 3);
    it.act = TDMI_ACT_NONE;
    it.rows++;
    products->guesses_nothing = 1;
    assert_int_equal(run_product(device, &it), -1);
    products->guesses_nothing = 0;
    assert_int_equal(run_product(device, &it), -1); /* asked once */
    close_gpu(device);
    products->handle_code = 1;
    device = open_gpu_with("/nowhere/libcudnn.so.9", &home);
    assert_null(tdmi_cuda_product_plan(device, &plain));
    close_gpu(device);
    products->handle_code = 0;
}

static int guesses_for(const struct folder *home, const char *kept)
{
    tdmi_device *device = open_gpu_with("/nowhere/libcudnn.so.9", home);
    const int before = products->guesses;
    if (kept)
        tdmi_cuda_libraries_keep(device->libraries, kept);
    assert_int_equal(run_product(device, &plain), FAKE_QUICKLY);
    close_gpu(device);
    return products->guesses - before;
}

static void spoil(const char *path, long at, const char *with)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, at, SEEK_END);
    fputs(with, file);
    fclose(file);
}

TEST(choices_are_kept_and_timed_again_where_damaged)
{
    /* from the end: the quotation mark, digits of the algorithm, all that is behind it */
    static const struct {
        long at;
        const char *with;
    } damages[] = {{-3, "x"}, {-120, "9"}, {-20, "G"}, {-2, "]"}, {-1, "}"}};
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    char path[300];
    tdmi_arena arena;
    struct tdmi_folder_entry *entries;
    size_t n;
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
}

TEST_MAIN(open_fakes, NULL)
