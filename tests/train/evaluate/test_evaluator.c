/* Evaluation gives as many logits as classes, and writes nothing beside them. */
#include "base/hash/rng.h"
#include "models/network.h"
#include "sanitized.h"
#include "train/evaluate/evaluated.h"
#include "unit.h"

#include <math.h>

enum { SIDE = 2, IMAGES = 11, GUARD = 4 };

/* A mean of grey pixels, less a bias, in one logit for two classes. */
static tdmi_graph *one_logit(void)
{
    const struct tdmi_preprocess preprocess = {
        .width = SIDE, .height = SIDE, .channels = 1, .crop_fraction = 1, .scale = TDMI_SCALE_UNIT};
    tdmi_graph *graph = tdmi_graph_new();
    int x = tdmi_add_global_pool(graph, "pool", tdmi_add_input(graph, &preprocess));
    tdmi_add_head(graph, &(struct tdmi_head){.classes = 2, .is_logistic = true}, "dense", x);
    assert_int_equal(tdmi_graph_finish(graph, "one", NULL), TDM_OK);
    return graph;
}

static double logit_of(int picture)
{
    return 8.0 * picture / 255.0 - 0.1;
}

static void is_untouched(const float *values)
{
    uint8_t bytes[GUARD * sizeof(float)];
    memcpy(bytes, values, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], 0x55);
}

TEST(one_logit_is_returned_as_two)
{
    tdmi_graph *graph = one_logit();
    float *params = calloc((size_t)graph->param_values, sizeof *params);
    uint8_t pixels[IMAGES * SIDE * SIDE];
    float logits[2 * IMAGES + GUARD], probabilities[2 * IMAGES + GUARD];
    assert_int_equal(tdmi_graph_classes(graph), 2);
    assert_int_equal(tdmi_graph_logits(graph), 1);
    params[graph->params[0].offset] = 8.0F;
    params[graph->params[1].offset] = -0.1F;
    for (int i = 0; i < IMAGES; i++)
        memset(pixels + i * SIDE * SIDE, i, SIDE * SIDE);
    memset(logits, 0x55, sizeof logits);
    memset(probabilities, 0x55, sizeof probabilities);
    evaluated(graph, (struct tdmi_values){params, params}, pixels, IMAGES, probabilities, logits);
    for (int i = 0; i < IMAGES; i++) {
        const double z = logit_of(i);
        assert_true(fabs((double)logits[2 * i] + z) < 1e-6);
        assert_true(fabs((double)logits[2 * i + 1] - z) < 1e-6);
        assert_true(fabs((double)probabilities[2 * i] - 1.0 / (1.0 + exp(z))) < 1e-6);
        assert_true(fabs((double)probabilities[2 * i + 1] - 1.0 / (1.0 + exp(-z))) < 1e-6);
    }
    is_untouched(logits + 2 * IMAGES);
    is_untouched(probabilities + 2 * IMAGES);
    tdmi_graph_free(graph);
    free(params);
}

/* ---- the same bits in any company ------------------------------------------------------------ */

enum { IN_COMPANY = 19, CLASSES = 7, LANE_IMAGES = 8 };

struct company {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_plan *plan;
    tdmi_graph *graph;
    float *params, *states;
    uint8_t *pixels;
    size_t image_bytes;
};

static void gather(struct company *it, const char *name, int size)
{
    struct tdmi_network network;
    int gpu;
    assert_int_equal(tdmi_network_find(name, &network, NULL), TDM_OK);
    struct tdmi_preprocess preprocess = network.preprocess;
    if (size)
        preprocess.width = preprocess.height = size;
    assert_int_equal(tdmi_network_build(&network, &preprocess, CLASSES, &it->graph, NULL), TDM_OK);
    it->params = calloc((size_t)it->graph->param_values, sizeof *it->params);
    it->states = calloc((size_t)it->graph->state_values + 1, sizeof *it->states);
    tdmi_graph_init_values(it->graph, 7, it->params, it->states);
    assert_int_equal(tdmi_backend_find("cpu", &it->backend, &gpu, NULL), TDM_OK);
    assert_int_equal(it->backend->device.open(gpu, &it->device, NULL), TDM_OK);
    assert_int_equal(tdmi_plan_new(it->graph, it->backend, LANE_IMAGES, false, &it->plan, NULL),
                     TDM_OK);
    it->image_bytes = tdmi_plan_sample_bytes(it->plan);
    it->pixels = malloc(IN_COMPANY * it->image_bytes);
    tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < IN_COMPANY * it->image_bytes; i++)
        it->pixels[i] = (uint8_t)tdmi_rng_below(&rng, 256);
}

static void part(struct company *it)
{
    tdmi_plan_free(it->plan);
    it->backend->device.close(it->device);
    tdmi_graph_free(it->graph);
    free(it->params);
    free(it->states);
    free(it->pixels);
}

/* Pictures first, first + 1, …, together, by so many threads. */
static void ask(const struct company *it, int first, int n, int threads, float *logits)
{
    tdmi_pool *pool;
    tdmi_evaluator *evaluator;
    int32_t labels[IN_COMPANY] = {0};
    const struct tdmi_batch batch = {
        .n = n, .pixels = it->pixels + (size_t)first * it->image_bytes, .labels = labels};
    assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_evaluator_open(it->plan, it->device, pool, 256, &evaluator, NULL),
                     TDM_OK);
    assert_int_equal(
        tdmi_evaluator_take(evaluator, (struct tdmi_values){it->params, it->states}, NULL), TDM_OK);
    assert_int_equal(tdmi_evaluator_batch(evaluator, &batch, NULL, NULL, logits, NULL), TDM_OK);
    tdmi_evaluator_close(evaluator);
    tdmi_pool_free(pool);
}

static void in_any_company(const char *name, int size)
{
    static const struct {
        int first, n, threads;
    } companies[] = {{0, 1, 1}, {18, 1, 2}, {5, 2, 2}, {3, 3, 1},  {9, 5, 2},
                     {2, 7, 1}, {4, 8, 1},  {1, 9, 2}, {0, 19, 2}, {0, 19, 3}};
    float all[IN_COMPANY * CLASSES], some[IN_COMPANY * CLASSES];
    struct company it = {0};
    gather(&it, name, size);
    ask(&it, 0, IN_COMPANY, 1, all);
    for (size_t i = 0; i < sizeof companies / sizeof *companies; i++) {
        const int first = companies[i].first, n = companies[i].n;
        ask(&it, first, n, companies[i].threads, some);
        if (memcmp(some, all + first * CLASSES, (size_t)(n * CLASSES) * sizeof *some) != 0)
            fail_msg("%s: pictures %d to %d give other bits with %d threads", name, first,
                     first + n - 1, companies[i].threads);
    }
    part(&it);
}

TEST(a_picture_gives_the_same_bits_in_any_company)
{
    in_any_company("lenet5", 0);
    in_any_company("convnet7", 0);
    in_any_company("resnet20-cifar", 0);
    in_any_company("mobilenetv2-0.35", 96);
    if (is_sanitized)
        return;
    in_any_company("mobilenetv2", 128);
    in_any_company("resnet18", 64);
}

TEST_MAIN(NULL, NULL)
