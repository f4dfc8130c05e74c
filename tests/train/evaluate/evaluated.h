/* Evaluating images, for tests that have graph and values in memory. */
#pragma once

#include "train/evaluate/evaluator.h"
#include "base/memory.h"
#include "tandem_features.h"
#include "unit.h"

enum { MOST_EVALUATED = 16 };

/* Evaluate n images, 3 at a time; probabilities and logits (n, classes). */
static inline void evaluated(const tdmi_graph *graph, struct tdmi_values values,
                             const uint8_t *pixels, int n, float *probabilities, float *logits)
{
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_pool *pool;
    tdmi_plan *plan;
    tdmi_evaluator *evaluator;
    int gpu;
    int32_t labels[MOST_EVALUATED];
    int64_t items[MOST_EVALUATED];
    struct tdmi_judgement judgements[MOST_EVALUATED];
    assert_true(n <= MOST_EVALUATED);
    for (int i = 0; i < n; i++) {
        labels[i] = i % 2;
        items[i] = i;
    }
    assert_int_equal(tdmi_backend_find("cpu", &backend, &gpu, NULL), TDM_OK);
    assert_int_equal(backend->device.open(gpu, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(2, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_plan_new(graph, backend, 3, false, &plan, NULL), TDM_OK);
    assert_int_equal(tdmi_evaluator_open(plan, device, pool, n, &evaluator, NULL), TDM_OK);
    assert_int_equal(tdmi_evaluator_take(evaluator, values, NULL), TDM_OK);
    const struct tdmi_batch batch = {.n = n, .pixels = pixels, .labels = labels, .items = items};
    /* Without memory for a layer a batch fails, and the next one succeeds. */
    tdmi_memory_fail_from(1);
    const tdm_status without =
        tdmi_evaluator_batch(evaluator, &batch, judgements, probabilities, logits, NULL);
    tdmi_memory_fail_from(0);
    assert_int_equal(without, TDM_HAVE_ONEDNN ? TDM_E_MEMORY : TDM_OK);
    assert_int_equal(
        tdmi_evaluator_batch(evaluator, &batch, judgements, probabilities, logits, NULL), TDM_OK);
    for (int i = 0; i < n; i++) {
        const int classes = tdmi_graph_classes(graph);
        for (int c = 0; c < classes; c++)
            assert_true(probabilities[i * classes + judgements[i].predicted] >=
                        probabilities[i * classes + c]);
    }
    tdmi_evaluator_close(evaluator);
    tdmi_plan_free(plan);
    tdmi_pool_free(pool);
    backend->device.close(device);
}
