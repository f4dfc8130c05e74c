/* The first pass over the images warms the caches and prepares weights; later ones are timed. */
#include "train/choice/speed.h"
#include "base/clock.h"
#include "base/scope.h"
#include "models/network.h"
#include "train/evaluate/evaluator.h"

/* LEAST_FOR_IMAGES: of images of 128 pixels one set lost at 128 and another gained; at 160 neither
 * lost (bench/results/weights.md). */
enum { IMAGES_A_THREAD = 2, SMALLEST_SIDE = 128, LEAST_FOR_IMAGES = 160 };

TDMI_POINTER_RELEASE(tdmi_evaluator, tdmi_evaluator_close)

struct timing {
    const struct tdmi_compute *compute;
    const tdmi_graph *graph;
    float *params, *states;
};

static void release_values(struct timing *it)
{
    tdmi_compute_free(it->compute, it->states);
    tdmi_compute_free(it->compute, it->params);
}

static tdm_status alloc_values(struct timing *it, tdm_error *err)
{
    it->params = tdmi_compute_alloc_values(it->compute, it->graph->param_values);
    it->states = tdmi_compute_alloc_values(it->compute, it->graph->state_values);
    TDMI_CHECK_MEMORY(it->params && it->states, err);
    return TDM_OK;
}

/* One pass of a small network takes a millisecond, in which other work of the machine may or may
 * not fall. */
#define LEAST_SECONDS 0.1

/* Seconds of a pass. */
static tdm_status time_pass(tdmi_evaluator *evaluator, const tdmi_graph *graph, int n,
                            double *seconds, tdm_error *err)
{
    const int64_t image_bytes = tdmi_shape_values(graph->nodes[0].out);
    TDMI_AT_END(tdmi_free_at) uint8_t *pixels = NULL;
    TDMI_AT_END(tdmi_free_at) int32_t *labels = NULL;
    TDMI_AT_END(tdmi_free_at) int64_t *items = NULL;
    TDMI_AT_END(tdmi_free_at) float *logits = NULL;
    TDMI_TRY(TDMI_NEW(pixels, n * image_bytes, err));
    TDMI_TRY(TDMI_NEW(labels, n, err));
    TDMI_TRY(TDMI_NEW(items, n, err));
    TDMI_TRY(TDMI_NEW(logits, (int64_t)n * tdmi_graph_classes(graph), err));
    for (int64_t i = 0; i < n * image_bytes; i++)
        pixels[i] = (uint8_t)(i * 2654435761u >> 24);
    const struct tdmi_batch batch = {.n = n, .pixels = pixels, .labels = labels, .items = items};
    TDMI_TRY(tdmi_evaluator_batch(evaluator, &batch, NULL, NULL, logits, err));
    const int64_t began = tdmi_clock_ns();
    for (int passes = 1; passes == 1 || *seconds * (passes - 1) < LEAST_SECONDS; passes++) {
        TDMI_TRY(tdmi_evaluator_batch(evaluator, &batch, NULL, NULL, logits, err));
        *seconds = tdmi_clock_seconds_since(began) / passes;
    }
    return TDM_OK;
}

static tdm_status measure(struct timing *it, double *image_seconds, tdm_error *err)
{
    const struct tdmi_compute *compute = it->compute;
    const tdmi_graph *graph = it->graph;
    const int n_threads = tdmi_pool_threads(compute->pool), n = IMAGES_A_THREAD * n_threads;
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *plan = NULL;
    TDMI_AT_END(tdmi_evaluator_close_at) tdmi_evaluator *evaluator = NULL;
    const struct tdmi_plan_options options = {.max_images = IMAGES_A_THREAD,
                                              .device = compute->device};
    double seconds = 0.0;
    TDMI_TRY(tdmi_plan_make(graph, compute->backend, &options, &plan, err));
    TDMI_TRY(tdmi_evaluator_open(plan, compute->device, compute->pool, n, &evaluator, err));
    TDMI_TRY(tdmi_evaluator_take(evaluator, (struct tdmi_values){it->params, it->states}, err));
    TDMI_TRY(time_pass(evaluator, graph, n, &seconds, err));
    *image_seconds = seconds / n;
    return TDM_OK;
}

tdm_status tdmi_speed_measure(const struct tdmi_compute *compute, const char *path,
                              const struct tdmi_import_request *request, struct tdmi_speed *speed,
                              tdm_error *err)
{
    TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = NULL;
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    speed->network_second = 0.0;
    if (!compute->backend->device.is_host)
        return TDM_OK;
    TDMI_TRY(tdmi_weights_open(path, &weights, err));
    TDMI_TRY(tdmi_import(weights, request, &import, err));
    const tdmi_graph *graph = import.graph;
    speed->side = tdmi_graph_preprocess(graph)->width;
    TDMI_AT_END(release_values) struct timing timing = {.compute = compute, .graph = graph};
    TDMI_TRY(alloc_values(&timing, err));
    memcpy(timing.params, import.params, sizeof(float) * (size_t)graph->param_values);
    memcpy(timing.states, import.states, sizeof(float) * (size_t)graph->state_values);
    return measure(&timing, &speed->network_second, err);
}

tdm_status tdmi_speed_of_new(const struct tdmi_compute *compute, const char *network, int size,
                             int classes, double *image_seconds, tdm_error *err)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = NULL;
    struct tdmi_network found;
    *image_seconds = 0.0;
    if (!compute->backend->device.is_host)
        return TDM_OK;
    TDMI_TRY(tdmi_network_find(network, &found, err));
    struct tdmi_build what = tdmi_network_defaults(&found, classes);
    if (size > 0)
        what.preprocess.width = what.preprocess.height = size;
    TDMI_TRY(tdmi_network_make(&found, &what, &graph, err));
    TDMI_AT_END(release_values) struct timing timing = {.compute = compute, .graph = graph};
    TDMI_TRY(alloc_values(&timing, err));
    tdmi_graph_init_values(graph, 0, timing.params, timing.states);
    return measure(&timing, image_seconds, err);
}

/* ---- the size -------------------------------------------------------------------------------- */

double tdmi_speed_seconds(const struct tdmi_speed *speed, int64_t n_images, int side)
{
    const double part = side > 0 && speed->side > 0 ? (double)side / speed->side : 1.0;
    return (double)n_images * (part * part * speed->network_second + speed->decode_second);
}

/* Sizes that published networks are used with. */
static const int sizes[] = {192, 160, SMALLEST_SIDE};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

int tdmi_size_of_images(int images_side, int own)
{
    int size = 0;
    for (int i = 0; i < N_SIZES; i++)
        if (sizes[i] < own && sizes[i] >= images_side && sizes[i] >= LEAST_FOR_IMAGES)
            size = sizes[i];
    return size;
}

int tdmi_size_from_scratch(int images_side, int own)
{
    enum { UNIT = 8, SMALLEST = 32 };
    const int size = (images_side + UNIT - 1) / UNIT * UNIT;
    return size >= own ? 0 : size > SMALLEST ? size : SMALLEST;
}

int tdmi_speed_side(const struct tdmi_speed *speed, int64_t n_images)
{
    const double own = tdmi_speed_seconds(speed, n_images, 0);
    if (n_images < TDMI_SLOW_IMAGES || !(speed->network_second > 0.0) ||
        speed->side <= SMALLEST_SIDE || own <= TDMI_SLOW_SECONDS)
        return 0;
    for (int i = 0; i < N_SIZES; i++)
        if (sizes[i] < speed->side &&
            tdmi_speed_seconds(speed, n_images, sizes[i]) <= TDMI_SLOW_SECONDS)
            return sizes[i];
    /* Long at any size: the smallest one, unless decoding takes most of the time. */
    return tdmi_speed_seconds(speed, n_images, SMALLEST_SIDE) < own / 2.0 ? SMALLEST_SIDE : 0;
}
