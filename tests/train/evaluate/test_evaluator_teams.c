/*
 * Known networks on backend cpu: an image gives the same bits alone and in a batch, on any number
 * of threads, also where teams of them compute an image.
 */
#include "models/noise.h"
#include "train/evaluate/evaluator.h"
#include "sanitized.h"

#include <string.h>

/* Sanitizers slow an image down twenty times: fewer of them, and fewer teams. */
enum { most_images = is_sanitized ? 9 : 30, n_classes = 10 };

struct network {
    const char *name;
    int size, group;
};

/* Small, but with blocks of every kind. */
static const struct network networks[] = {
    {"mobilenetv2", 64, 8}, {"resnet50", 64, 8},         {"xception", 71, 4},
    {"lenet5", 28, 16},     {"mobilenetv2-0.35", 64, 8}, {"convnet7", 64, 8},
};

struct verdict {
    float probabilities[most_images * n_classes], logits[most_images * n_classes];
    struct tdmi_judgement judgements[most_images];
};

/* Images first to first + n - 1 in one batch, into the same places of the verdict. */
static void evaluate(const struct noise *it, tdmi_evaluator *evaluator, int first, int n,
                     struct verdict *verdict)
{
    const size_t image = (size_t)tdmi_shape_values(it->graph->nodes[0].out);
    const struct tdmi_batch batch = {
        .n = n, .pixels = it->pixels + (size_t)first * image, .labels = it->labels + first};
    assert_int_equal(tdmi_evaluator_batch(evaluator, &batch, verdict->judgements + first,
                                          verdict->probabilities + first * n_classes,
                                          verdict->logits + first * n_classes, NULL),
                     TDM_OK);
}

static void same(const struct network *network, const struct noise *it, int n, int threads,
                 const struct verdict *found, const struct verdict *wanted)
{
    const size_t bytes = (size_t)(n * n_classes) * sizeof(float);
    bool is_same = memcmp(found->logits, wanted->logits, bytes) == 0 &&
                   memcmp(found->probabilities, wanted->probabilities, bytes) == 0;
    for (int i = 0; i < n; i++)
        is_same = is_same && (it->labels[i] < 0 ||
                              (found->judgements[i].loss == wanted->judgements[i].loss &&
                               found->judgements[i].predicted == wanted->judgements[i].predicted));
    if (!is_same)
        fail_msg("%s, %d images, %d threads: other bits than those of one image at a time",
                 network->name, n, threads);
}

/* With at most that many images a batch: memory is for no more. */
static void check_threads(const struct network *network, const struct noise *it, int most,
                          const int *sizes, int threads, const struct verdict *wanted)
{
    static struct verdict found;
    const struct tdmi_plan_options request = {.max_images = network->group,
                                              .team = tdmi_team_largest(threads)};
    tdmi_plan *plan;
    tdmi_pool *pool;
    tdmi_evaluator *evaluator;
    assert_int_equal(tdmi_plan_make(it->graph, &tdmi_backend_cpu, &request, &plan, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_evaluator_open(plan, NULL, pool, most, &evaluator, NULL), TDM_OK);
    assert_int_equal(
        tdmi_evaluator_take(evaluator, (struct tdmi_values){it->params, it->states}, NULL), TDM_OK);
    for (; *sizes; sizes++) {
        memset(&found, 0x55, sizeof found);
        evaluate(it, evaluator, 0, *sizes, &found);
        same(network, it, *sizes, threads, &found, wanted);
    }
    tdmi_evaluator_close(evaluator);
    tdmi_pool_free(pool);
    tdmi_plan_free(plan);
}

/* By a plan for one image, and one thread. */
static void evaluate_singly(const struct noise *it, struct verdict *verdict)
{
    tdmi_plan *plan;
    tdmi_pool *pool;
    tdmi_evaluator *evaluator;
    assert_int_equal(tdmi_plan_new(it->graph, &tdmi_backend_cpu, 1, false, &plan, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_evaluator_open(plan, NULL, pool, 1, &evaluator, NULL), TDM_OK);
    assert_int_equal(
        tdmi_evaluator_take(evaluator, (struct tdmi_values){it->params, it->states}, NULL), TDM_OK);
    for (int i = 0; i < most_images; i++)
        evaluate(it, evaluator, i, 1, verdict);
    tdmi_evaluator_close(evaluator);
    tdmi_pool_free(pool);
    tdmi_plan_free(plan);
}

TEST(an_image_gives_the_same_bits_on_any_number_of_threads)
{
    static const int sizes[] = {most_images, 1, 2, 3, 8, 0}, few[] = {3, 1, 0};
    static const int threads[] = {4, 7, 1, 2, 3, 16};
    const size_t n_threads = is_sanitized ? 2 : sizeof threads / sizeof threads[0];
    static struct verdict wanted;
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        const struct network *network = &networks[i];
        struct noise it = noise_new(network->name, network->size, most_images, n_classes);
        evaluate_singly(&it, &wanted);
        for (size_t t = 0; t < n_threads; t++) {
            check_threads(network, &it, most_images, sizes, threads[t], &wanted);
            check_threads(network, &it, few[0], few, threads[t], &wanted);
        }
        noise_free(&it);
    }
}

/* ---- memory -----------------------------------------------------------------------------------
 */

TEST(memory_grows_with_the_images_at_work_and_not_with_threads)
{
    const struct tdmi_plan_options request = {.max_images = 8};
    tdmi_graph *graph = network_new("mobilenetv2", 64, n_classes);
    tdmi_plan *plan;
    assert_int_equal(tdmi_plan_make(graph, &tdmi_backend_cpu, &request, &plan, NULL), TDM_OK);
    const int64_t image = (int64_t)plan->image_bytes, weights = (int64_t)plan->packed_bytes;
    const int64_t room = (int64_t)tdmi_plan_bytes(plan, 0);
    assert_true(image > 0);
    assert_int_equal(tdmi_plan_bytes(plan, 8), plan->arena_bytes);
    assert_int_equal(tdmi_evaluator_needs(plan, 32, 4), weights + 4 * room + 32 * image);
    assert_int_equal(tdmi_evaluator_needs(plan, 32, 1), weights + room + 8 * image);
    assert_int_equal(tdmi_evaluator_needs(plan, 32, 32), weights + 32 * (room + image));
    assert_int_equal(tdmi_evaluator_needs(plan, 1, 32), weights + room + image);
    tdmi_plan_free(plan);
    tdmi_graph_free(graph);
}

TEST(small_networks_are_computed_by_one_thread)
{
    tdmi_graph *small = network_new("lenet5", 28, n_classes);
    tdmi_graph *large = network_new("resnet50", 224, n_classes);
    assert_int_equal(tdmi_evaluator_team(small, &tdmi_backend_cpu, 8), 1);
    assert_int_equal(tdmi_evaluator_team(large, &tdmi_backend_cpu, 8), 8);
    assert_int_equal(tdmi_evaluator_team(large, &tdmi_backend_cpu, 1), 1);
    tdmi_graph_free(small);
    tdmi_graph_free(large);
}

TEST_MAIN(NULL, NULL)
