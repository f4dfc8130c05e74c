/*
 * Steps that are recorded and replayed while what looks like cuDNN and cuBLASLt compute: they have
 * the bits of the same steps queued one by one, in memory that only what is queued may touch, and a
 * replay asks nothing of a library.
 */
#include "backend/cuda/fakes/fake_cublaslt.h"
#include "backend/cuda/fakes/fake_cudnn.h"
#include "backend/cuda/recorded.h"

#include <dlfcn.h>

#include "base/folder.h"

static struct fake_cudnn *convs;
static struct fake_cublaslt *products;

/* A bias behind a convolution, a product, and a sum whose gradients meet at one. */
static tdmi_graph *small_graph(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_conv(graph, "conv1", x, 6, 3, 2, 1, true));
    const int y =
        tdmi_add_batch_norm(graph, "bn", tdmi_add_conv(graph, "conv2", x, 6, 1, 1, 0, false));
    x = tdmi_add_relu(graph, "relu2", tdmi_add_sum(graph, "sum", x, y));
    x = tdmi_add_global_pool(graph, "pool", tdmi_add_conv(graph, "conv3", x, 8, 1, 1, 0, true));
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "small", NULL), TDM_OK);
    return graph;
}

static int runs(void)
{
    int n = 0;
    for (int i = 0; i < FAKE_ENGINES; i++)
        n += convs->runs[i];
    for (int i = 0; i < FAKE_ALGORITHMS; i++)
        n += products->runs[i];
    return n;
}

/* The last batch of an epoch is smaller: it has a recording of its own. */
static const int sizes[] = {17, 17, 12, 17, 17, 12, 17, 17, 12};
enum { n_steps = sizeof sizes / sizeof *sizes };

static void compare(const struct bench *of, enum tdmi_dtype storage)
{
    const struct way way = {
        .shard = most_batch, .threads = 1, .optimizer = "sgd", .storage = storage};
    const struct tdmi_backend plain_shim = plain_backend();
    struct training plain = begin(of, &plain_shim, way);
    struct training recorded = begin(of, &tdmi_backend_shim, way);
    tdmi_update_use_stream(plain.update, tdmi_step_stream(plain.step));
    tdmi_update_use_stream(recorded.update, tdmi_step_stream(recorded.step));
    for (int s = 0; s < n_steps; s++) {
        const struct tdmi_batch batch = first_of(of, sizes[s]);
        float tails[2][TDMI_TAIL_VALUES];
        const struct tdmi_update_rates rates = {
            .learning_rate = 0.01f * (float)(1 + s % 3), .momentum = 0.9f, .step = s + 1};
        const int before = runs();
        step(&plain, &batch, NULL, rates, tails[0]);
        const int of_plain = runs() - before;
        step(&recorded, &batch, NULL, rates, tails[1]);
        assert_true(of_plain > 0);
        /* each size is queued first, then recorded: from then on nothing is asked of a library */
        const bool is_asked = s < 3 || s == 5;
        assert_int_equal(runs() - before - of_plain, is_asked ? of_plain : 0);
        same_values(&plain, &recorded, s);
        assert_memory_equal(tails[0], tails[1], sizeof tails[0]);
    }
    assert_true(tdmi_step_replays(recorded.step) >= n_steps - 2);
    assert_int_equal(tdmi_step_replays(plain.step), 0);
    end(&plain);
    end(&recorded);
}

static void replayed_steps_of_libraries_have_the_bits_of_queued_ones(void **state)
{
    struct bench of;
    (void)state;
    fake_runtime_guard(true);
    open_bench_of(&of, small_graph());
    for (int k = 0; k < 4; k++) { /* pointwise convolutions by one library, then by the other */
        convs->every_ns = k & 1 ? 0 : 1000000;
        products->every_ns = k & 1 ? 1000000 : 0;
        struct folder choices = folder_new();
        tdmi_shim_libraries(FAKE_CUDNN, FAKE_CUBLASLT, choices.path);
        const int before = products->runs[FAKE_QUICKLY];
        compare(&of, k & 2 ? TDMI_DTYPE_BF16 : TDMI_DTYPE_F32);
        assert_true(products->runs[FAKE_QUICKLY] > before);
        assert_int_equal(convs->alive + convs->handles + products->alive, 0);
        folder_remove(&choices);
    }
    close_bench(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replayed_steps_of_libraries_have_the_bits_of_queued_ones),
    };
    void *library = dlopen(FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    void *of_products = dlopen(FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    convs = library ? dlsym(library, "fake_cudnn") : NULL;
    products = of_products ? dlsym(of_products, "fake_cublaslt") : NULL;
    fake_runtime_pace(FAKE_LATE);
    return convs && products ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
