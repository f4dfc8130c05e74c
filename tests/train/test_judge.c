/* Judging: as many logits as classes, whatever the network computes, and nothing beside them. */
#include "nn/network.h"
#include "train/judged.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 2, PICTURES = 11, GUARD = 4 };

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

static void one_logit_is_handed_out_as_two(void **state)
{
    (void)state;
    tdmi_graph *graph = one_logit();
    float *params = calloc((size_t)graph->param_values, sizeof *params);
    uint8_t pixels[PICTURES * SIDE * SIDE];
    float logits[2 * PICTURES + GUARD], probabilities[2 * PICTURES + GUARD];
    assert_int_equal(tdmi_graph_classes(graph), 2);
    assert_int_equal(tdmi_graph_logits(graph), 1);
    params[graph->params[0].offset] = 8.0F;
    params[graph->params[1].offset] = -0.1F;
    for (int i = 0; i < PICTURES; i++)
        memset(pixels + i * SIDE * SIDE, i, SIDE * SIDE);
    memset(logits, 0x55, sizeof logits);
    memset(probabilities, 0x55, sizeof probabilities);
    judged(graph, (struct tdmi_values){params, params}, pixels, PICTURES, probabilities, logits);
    for (int i = 0; i < PICTURES; i++) {
        const double z = logit_of(i);
        assert_true(fabs((double)logits[2 * i] + z) < 1e-6);
        assert_true(fabs((double)logits[2 * i + 1] - z) < 1e-6);
        assert_true(fabs((double)probabilities[2 * i] - 1.0 / (1.0 + exp(z))) < 1e-6);
        assert_true(fabs((double)probabilities[2 * i + 1] - 1.0 / (1.0 + exp(-z))) < 1e-6);
    }
    is_untouched(logits + 2 * PICTURES);
    is_untouched(probabilities + 2 * PICTURES);
    tdmi_graph_free(graph);
    free(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_logit_is_handed_out_as_two)};
    return cmocka_run_group_tests_name(TEST_NAME, tests, NULL, NULL);
}
