/*
 * Convolutions by the stand-in for cuDNN (fake_cudnn.c): opening it, which engine is chosen, and
 * what files keep of it. Results of its graphs: test_ops.c.
 */
#include "backend/cuda/fakes/fake_gpu.h"
#include "backend/cuda/values.h"
#include "backend/cuda/vendor/libraries.h"
#include "backend/cuda/vendor/library.h"
#include "base/file/file.h"

/* ---- opening -------------------------------------------------------------------------------- */

static void refused(const char *file, const char *sentence)
{
    tdmi_cudnn *cudnn;
    tdm_error err = {0};
    assert_int_equal(tdmi_cudnn_open(file, NULL, &cudnn, &err), TDM_E_ABSENT);
    assert_null(cudnn);
    assert_says(&err, sentence);
}

TEST(a_missing_or_old_library_is_refused_with_a_reason)
{
    refused("/nowhere/libcudnn.so.9", "opening cuDNN: ");
    refused("libm.so.6", "it lacks the function cudnnGetVersion");
    convs->version = 8907;
    refused(FAKE_CUDNN, "found version 8.9, and 9.8 or newer is needed");
    convs->version = 90501;
    refused(FAKE_CUDNN, "found version 9.5, and 9.8 or newer is needed");
    convs->version = 91900;
    convs->handle_code = 1001;
    refused(FAKE_CUDNN, "cuDNN 9.19 says 1001, no GPU for you");
    convs->handle_code = 0;
    assert_int_equal(convs->alive + convs->handles, 0);
}

struct places {
    int n;
    char text[8][200];
};

static bool note_place(void *self, const char *path)
{
    struct places *it = self;
    assert_true(it->n < 8);
    snprintf(it->text[it->n++], sizeof it->text[0], "%s", path);
    return false;
}

TEST(the_folders_of_cuda_and_python_are_searched)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    static const char *const folders[] = {"nvidia/cudnn/lib", NULL};
    static const char *const files[] = {
        "usr/local/cuda/lib64/libcudnn.so.9",
        "usr/local/cuda-13.0/lib/libcudnn.so.9",
        "venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9",
        "usr/local/lib/python3.12/dist-packages/nvidia/cudnn/lib/libcudnn.so.9",
        "usr/lib/python3/dist-packages/nvidia/cudnn/lib/libcudnn.so.9",
    };
    const struct tdmi_cuda_library library = {.name = "cuDNN", .files = names, .folders = folders};
    TDMI_AT_END(folder_remove) struct folder root = folder_new();
    struct places found = {0};
    for (int i = 0; i < 5; i++)
        folder_put(&root, files[i], "");
    folder_put(&root, "usr/lib/python3/dist-packages/nvidia/cudnn/lib/libcudnn.so.8", "");
    setenv("VIRTUAL_ENV", "/venv", 1);
    tdmi_cuda_library_places(&library, root.path, note_place, &found);
    unsetenv("VIRTUAL_ENV");
    assert_int_equal(found.n, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(found.text[i], folder_path(&root, files[i]));
}

static bool note_relative(void *self, const char *path)
{
    *(int *)self += path[0] != '/';
    return false;
}

TEST(the_current_folder_is_not_searched)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    static const char *const folders[] = {"nvidia/cudnn/lib", NULL};
    const struct tdmi_cuda_library library = {.name = "cuDNN", .files = names, .folders = folders};
    TDMI_AT_END(folder_remove) struct folder here = folder_new();
    char before[4096];
    int n_relative = 0;
    folder_put(&here, "venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9", "");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(here.path), 0);
    setenv("VIRTUAL_ENV", "venv", 1);
    tdmi_cuda_library_places(&library, "", note_relative, &n_relative);
    unsetenv("VIRTUAL_ENV");
    assert_int_equal(chdir(before), 0);
    assert_int_equal(n_relative, 0);
}

/* ---- choosing ------------------------------------------------------------------------------- */

static const struct tdmi_cudnn_conv shapes[] = {{.in = {7, 5, 8},
                                                 .out = {7, 5, 6},
                                                 .n = 2,
                                                 .kernel = 3,
                                                 .stride = 1,
                                                 .dilation = 1,
                                                 .groups = 1,
                                                 .top = 1,
                                                 .bottom = 1,
                                                 .left = 1,
                                                 .right = 1}};

/* The engine that a plan of shapes[0], or of a few images more, runs on; -1: there is no plan. */
static int engine_of(tdmi_device *device, const struct tdmi_cudnn_conv *it)
{
    const struct tdmi_cudnn_plan *plan = tdmi_cuda_conv_plan(device, it);
    tdmi_stream stream = {.device = device};
    void *tensors[TDMI_CUDNN_TENSORS];
    int before[FAKE_ENGINES], engine = -1;
    if (!plan)
        return -1;
    memcpy(before, convs->runs, sizeof before);
    for (int i = 0; i < TDMI_CUDNN_TENSORS; i++)
        assert_non_null(tensors[i] = tdmi_alloc_aligned(1 << 14));
    void *workspace = tdmi_alloc_aligned(tdmi_cuda_workspace_room(plan->workspace_bytes));
    assert_non_null(workspace);
    assert_int_equal(tdmi_cuda_conv_run(&stream, plan, tensors, workspace), 0);
    for (int i = 0; i < FAKE_ENGINES; i++)
        engine = convs->runs[i] > before[i] ? i : engine;
    for (int i = 0; i < TDMI_CUDNN_TENSORS; i++)
        tdmi_free(tensors[i]);
    tdmi_free(workspace);
    return engine;
}

TEST(the_fastest_engine_of_the_right_kind_is_chosen)
{
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    tdmi_device *device = open_gpu(&home, NULL);
    struct tdmi_cudnn_conv it = shapes[0];
    memset(convs->runs, 0, sizeof convs->runs);
    assert_int_equal(engine_of(device, &it), FAKE_RIGHT);
    assert_int_equal(
        convs->runs[FAKE_UNORDERED] + convs->runs[FAKE_HUNGRY] + convs->runs[FAKE_CORE], 0);
    assert_int_equal(convs->runs[FAKE_FAILS], 1);
    assert_true(convs->runs[FAKE_SLOW] > 1);
    it.type = TDMI_DTYPE_BF16; /* its products are exact in a tensor core, those of f32 are not */
    assert_int_equal(engine_of(device, &it), FAKE_CORE);
    it.type = TDMI_DTYPE_F32;
    it.may_vary = true; /* another problem, so that nobody else is given its answer */
    (void)engine_of(device, &it);
    assert_true(convs->runs[FAKE_UNORDERED] > 1);
    it.may_vary = false;
    assert_int_equal(engine_of(device, &it), FAKE_RIGHT);
    it.n++;
    convs->guesses_nothing = 1;
    assert_int_equal(engine_of(device, &it), FAKE_FALLS_BACK);
    it.n++;
    it.act = TDMI_ACT_RELU;
    convs->takes_no_pointwise = 1;
    assert_int_equal(engine_of(device, &it), -1);
    assert_int_equal(engine_of(device, &it), -1);
    convs->guesses_nothing = convs->takes_no_pointwise = 0;
    close_gpu(device);
}

/* The sentence names what was asked for, and nothing more. */
TEST(the_error_without_an_engine_names_the_request)
{
    struct tdmi_cudnn_conv it = shapes[0];
    struct tdmi_cudnn_plan plan;
    tdmi_cudnn *cudnn;
    assert_int_equal(tdmi_cudnn_open(FAKE_CUDNN, NULL, &cudnn, NULL), TDM_OK);
    it.most_workspace = 1;
    for (int k = 0; k < 2; k++) {
        tdm_error err = {0};
        it.may_vary = k;
        assert_int_equal(tdmi_cudnn_plan_find(cudnn, &it, NULL, NULL, &plan, &err), TDM_E_ABSENT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "has no engine"));
        assert_int_equal(strstr(tdm_error_sentence(&err, 0), "same bits") != NULL, !k);
    }
    tdmi_cudnn_close(cudnn);
}

/* ---- keeping -------------------------------------------------------------------------------- */

static int guesses_for(const struct folder *home, const char *kept, int *engine)
{
    tdmi_device *device = open_gpu(home, NULL);
    const int before = convs->guesses;
    if (kept)
        tdmi_cuda_libraries_keep(device->libraries, kept);
    *engine = engine_of(device, &shapes[0]);
    assert_int_equal(engine_of(device, &shapes[0]), *engine);
    close_gpu(device);
    return convs->guesses - before;
}

/* The file of the only choice in a folder. */
static void only_file(const char *folder, char path[300])
{
    tdmi_arena arena;
    struct tdmi_folder_entry *entries;
    size_t n;
    tdmi_arena_init(&arena, 0);
    assert_int_equal(tdmi_folder_list(folder, &arena, &entries, &n, NULL), TDM_OK);
    assert_int_equal(n, 1);
    snprintf(path, 300, "%s/%s", folder, entries[0].name);
    tdmi_arena_release(&arena);
}

static void spoil(const char *path, long at, const char *with)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    fputs(with, file);
    fclose(file);
}

TEST(choices_are_kept_and_timed_again_where_damaged)
{
    static const struct {
        long at;
        const char *with;
    } damages[] = {{0, "["}, {20, "x"}, {200, "zz"}, {-3, "]"}, {-1, " "}};
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    char path[300];
    int engine;
    assert_int_equal(guesses_for(&home, NULL, &engine), 1);
    assert_int_equal(guesses_for(&home, NULL, &engine), 0);
    assert_int_equal(engine, FAKE_RIGHT);
    only_file(folder_path(&home, "cuda/a0a1a2a3a4a5a6a7a8a9aaabacadaeaf-91900-130100-13000"), path);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        spoil(path, damages[i].at, damages[i].with);
        assert_int_equal(guesses_for(&home, NULL, &engine), 1);
        assert_int_equal(guesses_for(&home, NULL, &engine), 0);
    }
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(guesses_for(&home, NULL, &engine), 1);
    convs->version = 92000; /* another cuDNN has a folder of its own */
    assert_int_equal(guesses_for(&home, NULL, &engine), 1);
    convs->version = 91900;
}

TEST(a_resumed_run_uses_its_first_choices)
{
    TDMI_AT_END(folder_remove)
    struct folder home = folder_new(), other = folder_new(), run = folder_new();
    int engine;
    convs->guesses_nothing = 1; /* a first run that had another engine */
    assert_int_equal(guesses_for(&other, folder_path(&run, "kernels"), &engine), 2);
    assert_int_equal(engine, FAKE_FALLS_BACK);
    convs->guesses_nothing = 0;
    assert_int_equal(guesses_for(&home, NULL, &engine), 1);
    assert_int_equal(engine, FAKE_RIGHT);
    assert_int_equal(guesses_for(&home, folder_path(&run, "kernels"), &engine), 0);
    assert_int_equal(engine, FAKE_FALLS_BACK);
    /* what the GPU already knew is put beside a new run, too */
    assert_int_equal(guesses_for(&home, folder_path(&run, "new"), &engine), 0);
    assert_int_equal(engine, FAKE_RIGHT);
    assert_int_equal(guesses_for(&other, folder_path(&run, "new"), &engine), 0);
    assert_int_equal(engine, FAKE_RIGHT);
}

TEST(a_gpu_without_the_library_reports_it)
{
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    tdmi_device *device;
    char text[300];
    tdmi_shim_libraries("/nowhere/libcudnn.so.9", "/nowhere/libcublasLt.so", home.path);
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_null(tdmi_cuda_conv_plan(device, &shapes[0]));
    assert_null(tdmi_cuda_conv_plan(NULL, &shapes[0]));
    tdmi_cuda_libraries_describe(device->libraries, text, sizeof text);
    assert_non_null(strstr(text, "no cuDNN (opening cuDNN: "));
    assert_non_null(strstr(text, "no cuBLASLt (opening cuBLASLt: "));
    tdmi_backend_shim.device.close(device);
    device = open_gpu(&home, NULL);
    tdmi_cuda_libraries_describe(device->libraries, text, sizeof text);
    assert_string_equal(text, "cuDNN 9.19.0, cuBLASLt 13.1.0");
    close_gpu(device);
}

TEST_MAIN(open_fakes, NULL)
