/*
 * Convolutions by what looks like cuDNN (fake_cudnn.c): opening it, its graphs in every type
 * against conv.cu, which engine is taken, and what is kept of that.
 */
#include "backend/cuda/fakes/fake_cudnn.h"
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/conv/conv.h"
#include "backend/cuda/vendor/libraries.h"
#include "backend/cuda/vendor/library.h"
#include "backend/cuda/kernels/conv/weights.h"
#include "base/file/file.h"
#include "models/network.h"
#include "graph/plan.h"

#include <dlfcn.h>
#include <stdio.h>

#include "backend/cuda/fakes/fake_card.h"

static struct fake_cudnn *fake;

static void close_card(tdmi_device *device)
{
    tdmi_backend_shim.device.close(device);
    assert_int_equal(fake->alive, 0);
    assert_int_equal(fake->handles, 0);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void refused(const char *file, const char *sentence)
{
    tdmi_cudnn *cudnn;
    tdm_error err = {0};
    assert_int_equal(tdmi_cudnn_open(file, NULL, &cudnn, &err), TDM_E_ABSENT);
    assert_null(cudnn);
    for (int i = 0; i < err.n_frames; i++)
        if (strstr(tdm_error_sentence(&err, i), sentence))
            return;
    fail_msg("'%s' is nowhere in what was said of %s", sentence, file);
}

static void a_library_that_is_missing_or_old_is_refused_with_a_sentence(void **state)
{
    (void)state;
    refused("/nowhere/libcudnn.so.9", "opening cuDNN 9: ");
    refused("libm.so.6", "it lacks the function cudnnGetVersion");
    fake->version = 8907;
    refused(FAKE_CUDNN, "found version 8.9, and 9.8 or newer is wanted");
    fake->version = 90501;
    refused(FAKE_CUDNN, "found version 9.5, and 9.8 or newer is wanted");
    fake->version = 91900;
    fake->handle_code = 1001;
    refused(FAKE_CUDNN, "cuDNN 9.19 says 1001, no card for you");
    fake->handle_code = 0;
    assert_int_equal(fake->alive + fake->handles, 0);
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

static void it_is_looked_for_in_folders_of_cuda_and_of_python(void **state)
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
    const struct tdmi_cuda_library library = {"cuDNN 9", names, folders};
    struct folder root = folder_new();
    struct places found = {0};
    (void)state;
    for (int i = 0; i < 5; i++)
        folder_put(&root, files[i], "");
    folder_put(&root, "usr/lib/python3/dist-packages/nvidia/cudnn/lib/libcudnn.so.8", "");
    setenv("VIRTUAL_ENV", "/venv", 1);
    tdmi_cuda_library_places(&library, root.path, note_place, &found);
    unsetenv("VIRTUAL_ENV");
    assert_int_equal(found.n, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(found.text[i], folder_path(&root, files[i]));
    folder_remove(&root);
}

static bool note_relative(void *self, const char *path)
{
    *(int *)self += path[0] != '/';
    return false;
}

static void nothing_is_looked_for_in_the_current_folder(void **state)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    static const char *const folders[] = {"nvidia/cudnn/lib", NULL};
    const struct tdmi_cuda_library library = {"cuDNN 9", names, folders};
    struct folder here = folder_new();
    char before[4096];
    int n_relative = 0;
    (void)state;
    folder_put(&here, "venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9", "");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(here.path), 0);
    setenv("VIRTUAL_ENV", "venv", 1);
    tdmi_cuda_library_places(&library, "", note_relative, &n_relative);
    unsetenv("VIRTUAL_ENV");
    assert_int_equal(chdir(before), 0);
    assert_int_equal(n_relative, 0);
    folder_remove(&here);
}

/* ---- graphs --------------------------------------------------------------------------------- */

/* One problem's tensors in its type, and the same values in f32. */
struct tensors {
    struct tdmi_cuda_weights matrix;
    int64_t n_x, n_y, n_w;
    void *x, *y, *added, *turned, *result;
    float *x32, *y32, *added32, *weights, *bias, *wanted, *got;
    void *blocks[12], *workspace;
};

static struct tensors tensors_of(const struct tdmi_cudnn_conv *it)
{
    struct tensors of = {
        .matrix = {it->type, (int64_t)it->kernel * it->kernel * (it->in.c / it->groups), it->out.c},
        .n_x = it->n * tdmi_shape_values(it->in),
        .n_y = it->n * tdmi_shape_values(it->out),
    };
    of.n_w = of.matrix.rows * of.matrix.columns;
    const int64_t most = of.n_x + of.n_y + of.n_w;
    of.x = tensor(it->type, of.n_x, 0, 1, &of.blocks[0]);
    of.y = tensor(it->type, of.n_y, 0, 2, &of.blocks[1]);
    of.added = tensor(it->type, of.n_y, 0, 3, &of.blocks[2]);
    of.turned = tensor(it->type, of.n_w, 0, 0, &of.blocks[3]);
    of.result = tensor(it->type, most, 0, 0, &of.blocks[4]);
    of.x32 = tensor(TDMI_DTYPE_F32, of.n_x, 0, 1, &of.blocks[5]);
    of.y32 = tensor(TDMI_DTYPE_F32, of.n_y, 0, 2, &of.blocks[6]);
    of.added32 = tensor(TDMI_DTYPE_F32, of.n_y, 0, 3, &of.blocks[7]);
    of.weights = tensor(TDMI_DTYPE_F32, of.n_w, 0, 4, &of.blocks[8]);
    of.bias = tensor(TDMI_DTYPE_F32, it->out.c, 0, 5, &of.blocks[9]);
    of.wanted = tensor(TDMI_DTYPE_F32, most, 0, 0, &of.blocks[10]);
    of.got = tensor(TDMI_DTYPE_F32, of.n_w, 0, 0, &of.blocks[11]);
    assert_int_equal(tdmi_cuda_weights_turn(NULL, &of.matrix, of.weights, NULL, of.turned), 0);
    return of;
}

static void drop(struct tensors *of)
{
    for (size_t i = 0; i < sizeof of->blocks / sizeof *of->blocks; i++)
        tdmi_free(of->blocks[i]);
    tdmi_free(of->workspace);
}

/* What a plan is run with: bias and what is added, where it asks for them. */
static void run_plan(tdmi_device *device, const struct tdmi_cudnn_plan *plan,
                     const struct tdmi_cudnn_conv *it, struct tensors *of)
{
    tdmi_stream stream = {.device = device};
    void *const tensors[TDMI_CUDNN_TENSORS] = {
        [TDMI_CUDNN_X] = it->way == TDMI_CUDNN_OF_INPUT ? of->result : of->x,
        [TDMI_CUDNN_W] = it->way == TDMI_CUDNN_OF_WEIGHTS ? of->result : of->turned,
        [TDMI_CUDNN_Y] = it->way == TDMI_CUDNN_FORWARD ? of->result : of->y,
        [TDMI_CUDNN_BIAS] = it->has_bias ? of->bias : NULL,
        [TDMI_CUDNN_ADDED] = it->adds ? of->added : NULL,
    };
    void *workspace = tdmi_alloc_aligned(tdmi_cuda_workspace_room(plan->workspace_bytes));
    assert_non_null(workspace);
    assert_int_equal(tdmi_cuda_conv_run(&stream, plan, tensors, workspace), 0);
    tdmi_free(workspace);
}

/* conv.cu on f32, and what is behind it by hand. */
static void run_law(const struct tdmi_cudnn_conv *it, struct tensors *of)
{
    const struct tdmi_cuda_conv law = {TDMI_DTYPE_F32, it->in,     it->out,      it->n,
                                       it->kernel,     it->stride, it->dilation, it->groups,
                                       it->top,        it->left};
    const float *bias = it->has_bias ? of->bias : NULL;
    of->workspace = tdmi_alloc_aligned(tdmi_cuda_conv_workspace_bytes(&law) + 1);
    assert_non_null(of->workspace);
    if (it->way == TDMI_CUDNN_OF_WEIGHTS) {
        assert_int_equal(
            tdmi_cuda_conv_weight_gradient(NULL, &law, of->x32, of->y32, of->wanted, of->workspace),
            0);
        return;
    }
    if (it->way == TDMI_CUDNN_OF_INPUT) {
        assert_int_equal(
            tdmi_cuda_conv_data_gradient(NULL, &law, of->y32, of->weights, NULL, of->wanted), 0);
        return;
    }
    assert_int_equal(tdmi_cuda_conv_forward(NULL, &law, of->x32, of->weights, bias, of->wanted), 0);
    for (int64_t i = 0; i < of->n_y; i++) {
        float value = of->wanted[i] + (it->adds ? of->added32[i] : 0.0f);
        if (it->act != TDMI_ACT_NONE && value < 0.0f)
            value = 0.0f;
        of->wanted[i] = it->act == TDMI_ACT_RELU6 && value > 6.0f ? 6.0f : value;
    }
}

static void expect_law(tdmi_device *device, const struct tdmi_cudnn_conv *it)
{
    struct tensors of = tensors_of(it);
    const struct tdmi_cudnn_plan *plan = tdmi_cuda_conv_plan(device, it);
    const bool is_of_weights = it->way == TDMI_CUDNN_OF_WEIGHTS;
    assert_non_null(plan);
    run_law(it, &of);
    run_plan(device, plan, it, &of);
    if (is_of_weights)
        assert_int_equal(tdmi_cuda_weights_turn_back(NULL, &of.matrix, of.result, of.got), 0);
    const int64_t n = is_of_weights ? of.n_w : it->way == TDMI_CUDNN_OF_INPUT ? of.n_x : of.n_y;
    for (int64_t i = 0; i < n; i++) /* sums are added in another order: a few of their steps */
        expect_near(is_of_weights ? (double)of.got[i] : value_at(of.result, it->type, i),
                    (double)of.wanted[i],
                    step_of(it->type, fabs((double)of.wanted[i])) + 0x1p-8 * 0x1p-10, "value", i);
    drop(&of);
}

static const struct tdmi_cudnn_conv shapes[] = {
    {.in = {7, 5, 8},
     .out = {7, 5, 6},
     .n = 2,
     .kernel = 3,
     .stride = 1,
     .dilation = 1,
     .groups = 1,
     .top = 1,
     .bottom = 1,
     .left = 1,
     .right = 1},
    {.in = {8, 8, 3},
     .out = {4, 4, 5},
     .n = 1,
     .kernel = 3,
     .stride = 2,
     .dilation = 1,
     .groups = 1,
     .bottom = 1,
     .right = 1},
    {.in = {6, 6, 4},
     .out = {3, 3, 70},
     .n = 3,
     .kernel = 1,
     .stride = 2,
     .dilation = 1,
     .groups = 1},
    {.in = {9, 9, 6},
     .out = {9, 9, 4},
     .n = 1,
     .kernel = 3,
     .stride = 1,
     .dilation = 2,
     .groups = 2,
     .top = 2,
     .bottom = 2,
     .left = 2,
     .right = 2},
    {.in = {5, 7, 3},
     .out = {4, 7, 4},
     .n = 2,
     .kernel = 3,
     .stride = 1,
     .dilation = 1,
     .groups = 1,
     .top = 1,
     .bottom = 0,
     .left = 0,
     .right = 2},
};

static void graphs_of_every_type_give_what_conv_gives(void **state)
{
    struct folder home = folder_new();
    tdmi_device *device = open_card(&home, NULL);
    (void)state;
    tdmi_shim_use((struct tdmi_shim_way){0});
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int t = 0; t < n_float_types; t++) {
            struct tdmi_cudnn_conv it = shapes[s];
            it.type = float_types[t];
            expect_law(device, &it);
            it.way = TDMI_CUDNN_OF_WEIGHTS;
            expect_law(device, &it);
            it.way = TDMI_CUDNN_OF_INPUT;
            expect_law(device, &it);
            it.way = TDMI_CUDNN_FORWARD;
            expect_law(device, &it);
            it.adds = true;
            expect_law(device, &it);
            it.has_bias = true;
            it.act = TDMI_ACT_RELU;
            expect_law(device, &it);
            it.adds = false;
            it.act = TDMI_ACT_RELU6;
            expect_law(device, &it);
        }
    close_card(device);
    folder_remove(&home);
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* The engine that a plan runs on. */
static int engine_of(tdmi_device *device, const struct tdmi_cudnn_conv *it)
{
    struct tensors of = tensors_of(it);
    const struct tdmi_cudnn_plan *plan = tdmi_cuda_conv_plan(device, it);
    int before[FAKE_ENGINES], engine = -1;
    if (plan) {
        memcpy(before, fake->runs, sizeof before);
        run_plan(device, plan, it, &of);
        for (int i = 0; i < FAKE_ENGINES; i++)
            engine = fake->runs[i] > before[i] ? i : engine;
    }
    drop(&of);
    return engine;
}

static void the_fastest_engine_of_the_right_kind_is_taken(void **state)
{
    struct folder home = folder_new();
    tdmi_device *device = open_card(&home, NULL);
    struct tdmi_cudnn_conv it = shapes[0];
    (void)state;
    memset(fake->runs, 0, sizeof fake->runs);
    assert_int_equal(engine_of(device, &it), FAKE_RIGHT);
    assert_int_equal(fake->runs[FAKE_UNORDERED] + fake->runs[FAKE_HUNGRY] + fake->runs[FAKE_CORE],
                     0);
    assert_int_equal(fake->runs[FAKE_FAILS], 1);
    assert_true(fake->runs[FAKE_SLOW] > 1);
    it.type = TDMI_DTYPE_BF16; /* its products are exact in a tensor core, those of f32 are not */
    (void)engine_of(device, &it);
    assert_true(fake->runs[FAKE_CORE] > 0);
    it.type = TDMI_DTYPE_F32;
    it.may_vary = true; /* another problem, so that nobody else is given its answer */
    (void)engine_of(device, &it);
    assert_true(fake->runs[FAKE_UNORDERED] > 1);
    it.may_vary = false;
    assert_int_equal(engine_of(device, &it), FAKE_RIGHT);
    it.n++;
    fake->guesses_nothing = 1;
    assert_int_equal(engine_of(device, &it), FAKE_FALLS_BACK);
    it.n++;
    it.act = TDMI_ACT_RELU;
    fake->takes_no_pointwise = 1;
    assert_int_equal(engine_of(device, &it), -1);
    assert_int_equal(engine_of(device, &it), -1);
    fake->guesses_nothing = fake->takes_no_pointwise = 0;
    close_card(device);
    folder_remove(&home);
}

/* How often engines without an order were run while a network was planned. */
/* The sentence names what was asked for, and nothing more. */
static void that_no_engine_is_there_is_told_as_it_was_asked(void **state)
{
    struct tdmi_cudnn_conv it = shapes[0];
    struct tdmi_cudnn_plan plan;
    tdmi_cudnn *cudnn;
    (void)state;
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

static int unordered_runs(tdmi_device *device, bool may_vary)
{
    struct tdmi_network network;
    tdmi_graph *graph = NULL;
    tdmi_plan *plan = NULL;
    const int before = fake->runs[FAKE_UNORDERED];
    const struct tdmi_plan_options request = {
        .max_images = 2, .is_training = true, .device = device, .may_vary = may_vary};
    assert_int_equal(tdmi_network_find("lenet5", &network, NULL), TDM_OK);
    assert_int_equal(tdmi_network_build(&network, &network.preprocess, 3, &graph, NULL), TDM_OK);
    assert_int_equal(tdmi_plan_make(graph, &tdmi_backend_shim, &request, &plan, NULL), TDM_OK);
    tdmi_plan_free(plan);
    tdmi_graph_free(graph);
    return fake->runs[FAKE_UNORDERED] - before;
}

static void a_network_whose_bits_may_vary_asks_for_any_order(void **state)
{
    struct folder home = folder_new();
    tdmi_device *device = open_card(&home, NULL);
    (void)state;
    assert_int_equal(unordered_runs(device, false), 0);
    assert_true(unordered_runs(device, true) > 0);
    close_card(device);
    folder_remove(&home);
}

/* ---- keeping -------------------------------------------------------------------------------- */

static int guesses_for(const struct folder *home, const char *kept, int *engine)
{
    tdmi_device *device = open_card(home, NULL);
    const int before = fake->guesses;
    if (kept)
        tdmi_cuda_libraries_keep(device->libraries, kept);
    *engine = engine_of(device, &shapes[0]);
    assert_int_equal(engine_of(device, &shapes[0]), *engine);
    close_card(device);
    return fake->guesses - before;
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

static void what_was_timed_is_kept_and_made_again_where_it_is_damaged(void **state)
{
    static const struct {
        long at;
        const char *with;
    } damages[] = {{0, "["}, {20, "x"}, {200, "zz"}, {-3, "]"}, {-1, " "}};
    struct folder home = folder_new();
    char path[300];
    int engine;
    (void)state;
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
    fake->version = 92000; /* another cuDNN has a folder of its own */
    assert_int_equal(guesses_for(&home, NULL, &engine), 1);
    fake->version = 91900;
    folder_remove(&home);
}

static void a_run_takes_again_what_it_began_with(void **state)
{
    struct folder home = folder_new(), other = folder_new(), run = folder_new();
    int engine;
    (void)state;
    fake->guesses_nothing = 1; /* a first run that had another engine */
    assert_int_equal(guesses_for(&other, folder_path(&run, "kernels"), &engine), 2);
    assert_int_equal(engine, FAKE_FALLS_BACK);
    fake->guesses_nothing = 0;
    assert_int_equal(guesses_for(&home, NULL, &engine), 1);
    assert_int_equal(engine, FAKE_RIGHT);
    assert_int_equal(guesses_for(&home, folder_path(&run, "kernels"), &engine), 0);
    assert_int_equal(engine, FAKE_FALLS_BACK);
    /* what the card already knew is put beside a new run, too */
    assert_int_equal(guesses_for(&home, folder_path(&run, "new"), &engine), 0);
    assert_int_equal(engine, FAKE_RIGHT);
    assert_int_equal(guesses_for(&other, folder_path(&run, "new"), &engine), 0);
    assert_int_equal(engine, FAKE_RIGHT);
    folder_remove(&home);
    folder_remove(&other);
    folder_remove(&run);
}

static void a_card_without_it_says_so(void **state)
{
    struct folder home = folder_new();
    tdmi_device *device;
    char text[300];
    (void)state;
    tdmi_shim_libraries("/nowhere/libcudnn.so.9", "/nowhere/libcublasLt.so", home.path);
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_null(tdmi_cuda_conv_plan(device, &shapes[0]));
    assert_null(tdmi_cuda_conv_plan(NULL, &shapes[0]));
    tdmi_cuda_libraries_describe(device->libraries, text, sizeof text);
    assert_non_null(strstr(text, "no cuDNN (opening cuDNN 9: "));
    assert_non_null(strstr(text, "no cuBLASLt (opening cuBLASLt: "));
    tdmi_backend_shim.device.close(device);
    device = open_card(&home, NULL);
    tdmi_cuda_libraries_describe(device->libraries, text, sizeof text);
    assert_string_equal(text, "cuDNN 9.19.0, cuBLASLt 13.1.0");
    close_card(device);
    folder_remove(&home);
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
        cmocka_unit_test(a_library_that_is_missing_or_old_is_refused_with_a_sentence),
        cmocka_unit_test(it_is_looked_for_in_folders_of_cuda_and_of_python),
        cmocka_unit_test(nothing_is_looked_for_in_the_current_folder),
        cmocka_unit_test(graphs_of_every_type_give_what_conv_gives),
        cmocka_unit_test_setup(the_fastest_engine_of_the_right_kind_is_taken, make_slow),
        cmocka_unit_test_setup(what_was_timed_is_kept_and_made_again_where_it_is_damaged,
                               make_slow),
        cmocka_unit_test_setup(a_run_takes_again_what_it_began_with, make_slow),
        cmocka_unit_test(that_no_engine_is_there_is_told_as_it_was_asked),
        cmocka_unit_test(a_network_whose_bits_may_vary_asks_for_any_order),
        cmocka_unit_test(a_card_without_it_says_so),
    };
    void *library = dlopen(FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    fake = library ? dlsym(library, "fake_cudnn") : NULL;
    return fake ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
