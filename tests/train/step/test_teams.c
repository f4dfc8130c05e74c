/*
 * Known networks on backend cpu: a step has the same bits on any number of threads, also where
 * there are more threads than groups and teams compute a group.
 */
#include "models/noise.h"
#include "train/step/step.h"
#include "sanitized.h"

#include <string.h>

enum { most_images = 30, n_classes = 10 };

struct network {
    const char *name;
    int size, shard;
    bool is_large;
};

/* Small, but with blocks of every kind. */
static const struct network networks[] = {
    {"mobilenetv2", 64, 8, false}, {"resnet20-cifar", 32, 8, false}, {"lenet5", 28, 16, false},
    {"convnet7", 32, 8, false},    {"resnet50", 64, 8, true},        {"xception", 71, 4, true},
};

enum statistics { of_group, of_batch, frozen };

/* The sums of a step; the caller frees them. */
static float *sums_of(const struct noise *it, int shard, int n, int threads,
                      enum statistics statistics)
{
    const int64_t n_values = tdmi_graph_sums_values(it->graph);
    tdmi_plan *plan = NULL;
    tdmi_pool *pool = NULL;
    tdmi_step *step = NULL;
    const struct tdmi_plan_options request = {.max_images = shard,
                                              .is_training = true,
                                              .keeps_statistics = statistics == frozen,
                                              .team = tdmi_team_largest(threads)};
    const struct tdmi_step_options options = {.max_batch = most_images,
                                              .shares_statistics = statistics == of_batch};
    int64_t items[most_images];
    for (int i = 0; i < most_images; i++)
        items[i] = i;
    const struct tdmi_batch batch = {
        .n = n, .pixels = it->pixels, .labels = it->labels, .items = items};
    assert_int_equal(tdmi_plan_make(it->graph, &tdmi_backend_cpu, &request, &plan, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_step_open(plan, NULL, pool, &options, &step, NULL), TDM_OK);
    tdmi_step_begin(step, (struct tdmi_values){it->params, it->states}, &batch, NULL);
    assert_int_equal(tdmi_step_run(step, 0, plan->n_segments - 1, NULL), TDM_OK);
    float *sums = malloc(sizeof *sums * (size_t)n_values);
    assert_non_null(sums);
    memcpy(sums, tdmi_step_sums(step), sizeof *sums * (size_t)n_values);
    tdmi_step_close(step);
    tdmi_pool_free(pool);
    tdmi_plan_free(plan);
    return sums;
}

/* Names the first tensor that differs. */
static void same_sums(const struct noise *it, const char *name, int n, int threads,
                      const float *found, const float *wanted)
{
    for (int t = 0; t < it->graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &it->graph->params[t];
        if (memcmp(found + tensor->offset, wanted + tensor->offset,
                   sizeof *found * (size_t)tensor->n) != 0)
            fail_msg("%s, %d images, %d threads: the gradient of %s differs", name, n, threads,
                     tensor->name);
    }
    for (int t = 0; t < it->graph->n_states; t++) {
        const struct tdmi_tensor *tensor = &it->graph->states[t];
        const int64_t at = tdmi_graph_state_sums_at(it->graph) + tensor->offset;
        if (memcmp(found + at, wanted + at, sizeof *found * (size_t)tensor->n) != 0)
            fail_msg("%s, %d images, %d threads: %s differs", name, n, threads, tensor->name);
    }
    const int64_t tail = tdmi_graph_tail_at(it->graph);
    assert_memory_equal(found + tail, wanted + tail, sizeof *found * TDMI_TAIL_VALUES);
}

static void check(const struct network *network, enum statistics statistics, const int *sizes,
                  const int *threads)
{
    struct noise it = noise_new(network->name, network->size, most_images, n_classes);
    for (; *sizes; sizes++) {
        float *wanted = sums_of(&it, network->shard, *sizes, 1, statistics);
        for (const int *n = threads; *n; n++) {
            float *found = sums_of(&it, network->shard, *sizes, *n, statistics);
            same_sums(&it, network->name, *sizes, *n, found, wanted);
            free(found);
        }
        free(wanted);
    }
    noise_free(&it);
}

/* Small networks on many threads, one on more than teams can have, large ones on some. Sanitizers,
 * under which a step takes twenty times as long, look at memory and races: one size of team. */
static const int some_threads[] = {3, is_sanitized ? 0 : 16, 0};

TEST(networks_have_the_same_bits_on_any_number_of_threads)
{
    static const int sizes[] = {is_sanitized ? 11 : 30, 1, is_sanitized ? 0 : 3, 8, 0};
    static const int threads[] = {7, is_sanitized ? 0 : 2, 3, 4, 16, 0};
    static const int few[] = {3, is_sanitized ? 0 : 30, 0}, most[] = {64, 0};
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if (networks[i].is_large)
            check(&networks[i], of_group, few, some_threads);
        else
            check(&networks[i], of_group, sizes, threads);
    check(&networks[1], of_group, few, most);
}

TEST(statistics_of_a_batch_or_frozen_have_the_same_bits_too)
{
    static const int sizes[] = {is_sanitized ? 11 : 30, 0};
    for (int i = 0; i < 2; i++) {
        check(&networks[i], of_batch, sizes, some_threads);
        check(&networks[i], frozen, sizes, some_threads);
    }
}

TEST_MAIN(NULL, NULL)
