/*
 * Limits on workspace (backend/op.h, most_workspace): the algorithms that libraries give where
 * memory is short, and which of them the folders of runs and GPUs keep (algorithm_cache.c).
 */
#include "backend/cuda/fakes/fake_gpu.h"
#include "backend/cuda/values.h"
#include "backend/cuda/vendor/libraries.h"

enum { roomy = 3 << 20, limit = 1 << 20, of_slow = 4096 };

static const struct tdmi_cudnn_conv conv = {.in = {6, 5, 4},
                                            .out = {6, 5, 3},
                                            .n = 2,
                                            .kernel = 3,
                                            .stride = 1,
                                            .dilation = 1,
                                            .groups = 1,
                                            .top = 1,
                                            .bottom = 1,
                                            .left = 1,
                                            .right = 1};

/* Workspace of the plan; -1: there is none. */
static int64_t workspace_within(tdmi_device *device, size_t most)
{
    struct tdmi_cudnn_conv it = conv;
    it.most_workspace = most;
    const struct tdmi_cudnn_plan *plan = tdmi_cuda_conv_plan(device, &it);
    return plan ? (int64_t)plan->workspace_bytes : -1;
}

/* The same of a GPU that is opened for it, which asks heuristics so often. */
static int64_t workspace_of(const struct folder *home, const char *run, size_t most, int guesses)
{
    const int before = convs->guesses;
    tdmi_device *device = open_gpu(home, run);
    const int64_t bytes = workspace_within(device, most);
    close_gpu(device);
    assert_int_equal(convs->guesses - before, guesses);
    return bytes;
}

static int make_plain(void **state)
{
    (void)state;
    convs->right_bytes = roomy;
    return 0;
}

TEST_WITH(a_limit_chooses_an_engine_with_less_workspace, make_plain, NULL)
{
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    tdmi_device *device = open_gpu(&home, NULL);
    struct tdmi_cublaslt_product product = {
        .type = TDMI_DTYPE_F32, .rows = 4, .columns = 3, .depth = 2, .alignment = 16};
    assert_int_equal(workspace_within(device, 0), roomy);
    assert_int_equal(workspace_within(device, roomy), roomy);
    assert_int_equal(workspace_within(device, roomy - 1), of_slow);
    assert_int_equal(workspace_within(device, 1), -1);
    assert_int_equal(workspace_within(device, 0), roomy);
    assert_int_equal(tdmi_cuda_product_plan(device, &product)->workspace_bytes, 512 * FAKE_QUICKLY);
    product.most_workspace = 512 * FAKE_QUICKLY - 1;
    assert_int_equal(tdmi_cuda_product_plan(device, &product)->workspace_bytes, 512 * FAKE_SLOWLY);
    product.most_workspace = 1;
    assert_null(tdmi_cuda_product_plan(device, &product));
    close_gpu(device);
}

/* It knows nothing of limits when it is resumed, on a GPU with more memory or less. */
TEST_WITH(a_resumed_run_keeps_its_choices_whatever_the_limit, make_plain, NULL)
{
    TDMI_AT_END(folder_remove)
    struct folder home = folder_new(), other = folder_new(), runs = folder_new();
    assert_int_equal(workspace_of(&home, folder_path(&runs, "a"), limit, 1), of_slow);
    assert_int_equal(workspace_of(&other, folder_path(&runs, "a"), 0, 0), of_slow);
    /* planned with all first, then with less: the last is what it has */
    assert_int_equal(workspace_of(&other, folder_path(&runs, "b"), 0, 1), roomy);
    assert_int_equal(workspace_of(&other, folder_path(&runs, "b"), limit, 1), of_slow);
    assert_int_equal(workspace_of(&other, folder_path(&runs, "b"), 0, 0), of_slow);
    /* nothing is an answer, too: its own kernels compute on */
    assert_int_equal(workspace_of(&other, folder_path(&runs, "b"), 1, 2), -1);
    assert_int_equal(workspace_of(&other, folder_path(&runs, "b"), 0, 0), -1);
}

/* Limits are asked about one after another, for one size of a batch and then for the next: what
 * both have in common is answered from memory then, and kept all the same. */
TEST_WITH(a_run_keeps_the_last_choice, make_plain, NULL)
{
    static const struct {
        size_t limits[4];
        int64_t last;
    } asked[] = {
        {{0, limit, 1, 1}, -1}, {{0, limit, 1, limit}, of_slow}, {{limit, 1, limit, 0}, roomy}};
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        struct folder home = folder_new(), other = folder_new(), runs = folder_new();
        tdmi_device *device = open_gpu(&home, folder_path(&runs, "a"));
        (void)workspace_within(device, 0);
        for (int i = 0; i < 4; i++)
            (void)workspace_within(device, asked[k].limits[i]);
        close_gpu(device);
        assert_int_equal(workspace_of(&other, folder_path(&runs, "a"), 0, 0), asked[k].last);
        folder_remove(&home);
        folder_remove(&other);
        folder_remove(&runs);
    }
}

TEST_WITH(the_gpus_folder_keeps_limited_choices_apart, make_plain, NULL)
{
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    assert_int_equal(workspace_of(&home, NULL, limit, 1), of_slow);
    assert_int_equal(workspace_of(&home, NULL, limit, 0), of_slow);
    assert_int_equal(workspace_of(&home, NULL, 0, 1), roomy);
    assert_int_equal(workspace_of(&home, NULL, 0, 0), roomy);
    assert_int_equal(workspace_of(&home, NULL, limit, 0), of_slow);
    /* the fastest of all is the fastest of those within a limit that it stays below */
    assert_int_equal(workspace_of(&home, NULL, roomy, 0), roomy);
    assert_int_equal(workspace_of(&home, NULL, 1, 2), -1);
    assert_int_equal(workspace_of(&home, NULL, 1, 2), -1);
}

/* A GPU whose memory was full when it was asked. */
TEST_WITH(choices_of_a_full_gpu_are_kept_by_the_run_alone, make_plain, NULL)
{
    TDMI_AT_END(folder_remove) struct folder home = folder_new(), runs = folder_new();
    fake_runtime_limit(limit);
    assert_int_equal(workspace_of(&home, folder_path(&runs, "a"), 0, 1), of_slow);
    fake_runtime_limit(0);
    assert_int_equal(workspace_of(&home, NULL, 0, 1), roomy);
    assert_int_equal(workspace_of(&home, folder_path(&runs, "a"), 0, 0), of_slow);
}

TEST_MAIN(open_fakes, NULL)
