/* Graphs as JSON: written and read back they are the same; anything else is refused in a sentence.
 */
#include "base/text/text.h"
#include "models/known_network.h"
#include "unit.h"

/* The text of {"nodes": […]}; free it. */
static char *written(const tdmi_graph *graph)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    const char *text;
    tdm_json_object_begin(writer, NULL);
    tdmi_graph_to_json(graph, writer, "nodes");
    tdm_json_object_end(writer);
    assert_int_equal(tdm_json_finish(writer, &text, NULL, NULL), TDM_OK);
    char *copy = strdup(text);
    assert_non_null(copy);
    tdm_json_writer_free(writer);
    return copy;
}

static tdm_status read_text(const char *text, tdmi_graph **graph, tdm_error *err)
{
    tdm_json_document *document = NULL;
    assert_int_equal(tdm_json_read(text, strlen(text), "test", &document, err), TDM_OK);
    tdm_status status =
        tdmi_graph_from_json(tdm_json_member(tdm_json_root(document), "nodes"), "t", graph, err);
    tdm_json_document_free(document);
    return status;
}

static void same_graph(const tdmi_graph *a, const tdmi_graph *b)
{
    assert_int_equal(a->n_nodes, b->n_nodes);
    for (int i = 0; i < a->n_nodes; i++) {
        const struct tdmi_node *x = &a->nodes[i], *y = &b->nodes[i];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->n_inputs, y->n_inputs);
        assert_int_equal(x->inputs[0], y->inputs[0]);
        assert_true(tdmi_shape_equal(x->out, y->out));
        assert_true(x->attrs.epsilon == y->attrs.epsilon);
        assert_true(x->attrs.momentum == y->attrs.momentum);
        assert_int_equal(x->attrs.has_bias, y->attrs.has_bias);
    }
    assert_int_equal(a->n_params, b->n_params);
    for (int i = 0; i < a->n_params; i++) {
        assert_string_equal(a->params[i].name, b->params[i].name);
        assert_int_equal(a->params[i].offset, b->params[i].offset);
    }
    assert_int_equal(a->param_values, b->param_values);
    assert_int_equal(a->state_values, b->state_values);
    const struct tdmi_preprocess *p = tdmi_graph_preprocess(a), *q = tdmi_graph_preprocess(b);
    assert_int_equal(p->width, q->width);
    assert_int_equal(p->height, q->height);
    assert_int_equal(p->channels, q->channels);
    assert_int_equal(p->fit, q->fit);
    assert_int_equal(p->filter, q->filter);
    assert_int_equal(p->scale, q->scale);
    assert_true(p->crop_fraction == q->crop_fraction);
}

TEST(every_network_is_read_back_as_it_was)
{
    const struct tdmi_network *it;
    for (int i = 0; (it = tdmi_network_at(i)) != NULL; i++) {
        tdmi_graph *graph = network_new(it->name, it->preprocess.width + 3, 11), *back = NULL;
        char *text = written(graph);
        assert_int_equal(read_text(text, &back, NULL), TDM_OK);
        same_graph(graph, back);
        char *again = written(back);
        assert_string_equal(text, again);
        free(text);
        free(again);
        tdmi_graph_free(graph);
        tdmi_graph_free(back);
    }
}

/* Every op with every attribute away from its usual value, before one of the outputs. An op that
 * names an attribute outside the list of graph_json.c would run past its end here, which the
 * sanitizers see. */
static tdmi_graph *every_op(enum tdmi_op_kind output)
{
    tdmi_graph *graph = tdmi_graph_new();
    assert_non_null(graph);
    int x = tdmi_add_input(graph, &(struct tdmi_preprocess){.width = 31,
                                                            .height = 17,
                                                            .channels = 3,
                                                            .fit = TDMI_FIT_CROP,
                                                            .crop_fraction = 0.875,
                                                            .filter = TDMI_FILTER_BICUBIC,
                                                            .scale = TDMI_SCALE_TORCH});
    x = tdmi_graph_add(graph, TDMI_OP_CONV, "a \"quoted\" näme", x,
                       (struct tdmi_op_attrs){.channels = 5,
                                              .kernel = 4,
                                              .stride = 3,
                                              .dilation = 2,
                                              .groups = 1,
                                              .pad_top = 6,
                                              .pad_bottom = 5,
                                              .pad_left = 4,
                                              .pad_right = 3,
                                              .has_bias = true});
    x = tdmi_graph_add(
        graph, TDMI_OP_BATCH_NORM, "bn", x,
        (struct tdmi_op_attrs){.epsilon = 1.0 / 3.0, .momentum = 0.01, .is_biased = true});
    x = tdmi_add_sum(graph, "add", x, tdmi_add_relu(graph, "relu", x));
    x = tdmi_graph_join(graph, TDMI_OP_CONCAT, "concat", x, x - 1, (struct tdmi_op_attrs){0});
    x = tdmi_graph_add(graph, TDMI_OP_RELU6, "relu6", x, (struct tdmi_op_attrs){0});
    x = tdmi_graph_add(graph, TDMI_OP_HSWISH, "hswish", x, (struct tdmi_op_attrs){0});
    x = tdmi_graph_add(graph, TDMI_OP_SIGMOID, "sigmoid", x, (struct tdmi_op_attrs){0});
    x = tdmi_graph_add(graph, TDMI_OP_CONV, "grouped", x,
                       (struct tdmi_op_attrs){
                           .channels = 10, .kernel = 1, .stride = 1, .dilation = 1, .groups = 5});
    x = tdmi_graph_add(graph, TDMI_OP_PAD, "zeros", x,
                       (struct tdmi_op_attrs){.pad_top = 1,
                                              .pad_bottom = 2,
                                              .pad_left = 3,
                                              .pad_right = 4,
                                              .pad_front = 5,
                                              .pad_back = 6});
    x = tdmi_graph_add(
        graph, TDMI_OP_AVG_POOL, "average", x,
        (struct tdmi_op_attrs){.kernel = 2, .stride = 1, .pad_left = 1, .counts_padding = true});
    x = tdmi_graph_add(graph, TDMI_OP_MAX_POOL, "pool", x,
                       (struct tdmi_op_attrs){.kernel = 3,
                                              .stride = 2,
                                              .pad_top = 1,
                                              .pad_bottom = 2,
                                              .pad_left = 0,
                                              .pad_right = 1});
    x = tdmi_graph_add(
        graph, TDMI_OP_LRN, "lrn", x,
        (struct tdmi_op_attrs){.kernel = 5, .alpha = 1e-4, .beta = 0.75, .offset = 2.0});
    x = tdmi_graph_add(graph, TDMI_OP_DROPOUT, "dropout", x,
                       (struct tdmi_op_attrs){.rate = 0.3, .stream = 2});
    x = tdmi_add_global_pool(graph, "mean", x);
    x = tdmi_graph_add(graph, TDMI_OP_DENSE, "dense", x,
                       (struct tdmi_op_attrs){.channels = 7, .has_bias = false});
    tdmi_graph_add(graph, output, "output", x, (struct tdmi_op_attrs){.label_smoothing = 0.1});
    assert_int_equal(tdmi_graph_finish(graph, "test", NULL), TDM_OK);
    return graph;
}

static void survives(enum tdmi_op_kind output, bool *is_used)
{
    tdmi_graph *graph = every_op(output), *back = NULL;
    char *text = written(graph);
    assert_int_equal(read_text(text, &back, NULL), TDM_OK);
    same_graph(graph, back);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tdmi_op_attrs *a = &graph->nodes[i].attrs, *b = &back->nodes[i].attrs;
        is_used[graph->nodes[i].kind] = true;
        assert_int_equal(a->channels, b->channels);
        assert_int_equal(a->kernel, b->kernel);
        assert_int_equal(a->stride, b->stride);
        assert_int_equal(a->dilation, b->dilation);
        assert_int_equal(a->groups, b->groups);
        assert_int_equal(a->pad_top, b->pad_top);
        assert_int_equal(a->pad_bottom, b->pad_bottom);
        assert_int_equal(a->pad_left, b->pad_left);
        assert_int_equal(a->pad_right, b->pad_right);
        assert_int_equal(a->pad_front, b->pad_front);
        assert_int_equal(a->pad_back, b->pad_back);
        assert_int_equal(a->counts_padding, b->counts_padding);
        assert_int_equal(a->is_biased, b->is_biased);
        assert_int_equal(a->stream, b->stream);
        assert_true(a->rate == b->rate && a->alpha == b->alpha && a->beta == b->beta);
        assert_true(a->offset == b->offset && a->label_smoothing == b->label_smoothing);
    }
    free(text);
    tdmi_graph_free(graph);
    tdmi_graph_free(back);
}

TEST(every_attribute_of_every_op_survives)
{
    bool is_used[TDMI_OP_KINDS] = {false};
    survives(TDMI_OP_SOFTMAX, is_used);
    survives(TDMI_OP_LOGISTIC, is_used);
    for (int kind = 0; kind < TDMI_OP_KINDS; kind++) /* a new op belongs into this test */
        if (!is_used[kind])
            fail_msg("the op %s is not in this test", tdmi_op_name((enum tdmi_op_kind)kind));
}

/* ---- mistakes ------------------------------------------------------------------------------ */

#define INPUT                                                                                     \
    "{\"name\":\"input\",\"op\":\"input\",\"preprocess\":{\"width\":8,\"height\":8,\"channels\":" \
    "3,"                                                                                          \
    "\"fit\":\"pad\",\"crop_fraction\":1,\"filter\":\"lanczos\",\"scale\":\"tf\"}},"
#define CONV(attributes) "{\"name\":\"conv\",\"op\":\"conv\",\"input\":\"input\"" attributes "},"
#define GOOD ",\"kernel\":3,\"stride\":1,\"pad_before\":1,\"pad_after\":1,\"has_bias\":true"
#define END                                                          \
    "{\"name\":\"pool\",\"op\":\"global_pool\",\"input\":\"conv\"}," \
    "{\"name\":\"softmax\",\"op\":\"softmax\",\"input\":\"pool\"}"

TEST(what_is_no_graph_is_refused_in_a_sentence)
{
    static const struct {
        const char *nodes, *says;
    } cases[] = {
        {"", "must begin with an input"},
        {"1,2", "op ''"},
        {"null", "op ''"},
        {"{\"op\":\"relu\"}", "node ''"},
        {"{\"name\":7,\"op\":\"relu\"}", "node ''"},
        {"{\"name\":\"x\",\"op\":\"einsum\"}", "'einsum', which is not known"},
        {"{\"name\":\"x\",\"op\":\"relu\"}", "reads '', and no earlier"},
        {"{\"name\":\"x\",\"op\":\"relu\",\"input\":\"x\"}", "reads 'x', and no earlier"},
        {"{\"name\":\"x\",\"op\":\"input\"}", "preprocess"},
        {INPUT CONV(",\"channels\":4") END, "attribute 'kernel' is missing"},
        {INPUT CONV(",\"channels\":-4" GOOD) END, "attribute 'channels' is missing or out"},
        {INPUT CONV(",\"channels\":4.5" GOOD) END, "attribute 'channels' is missing or out"},
        {INPUT CONV(",\"channels\":\"4\"" GOOD) END, "attribute 'channels' is missing or out"},
        {INPUT CONV(",\"channels\":9999999999" GOOD) END, "attribute 'channels' is missing or out"},
        {INPUT CONV(",\"channels\":2147483647" GOOD) END, "values"},
        {INPUT CONV(",\"channels\":0" GOOD) END, "at least 1"},
        {INPUT CONV(",\"channels\":4,\"groups\":3" GOOD) END, "3 groups of 3 input and 4 output"},
        {INPUT CONV(",\"channels\":4,\"groups\":0" GOOD) END, "0 groups"},
        {INPUT CONV(",\"channels\":4,\"dilation\":0" GOOD) END, "dilation 0"},
        {INPUT CONV(",\"channels\":4,\"dilation\":\"2\"" GOOD) END, "attribute 'dilation'"},
        {INPUT INPUT CONV(",\"channels\":4" GOOD) END, "its name is taken"},
        {INPUT CONV(",\"channels\":4" GOOD) CONV(",\"channels\":4" GOOD) END, "its name is taken"},
        {INPUT "{\"name\":\"relu\",\"op\":\"relu\",\"input\":\"input\"}," CONV(
             ",\"channels\":4" GOOD) END,
         "'relu' is read by no other"},
        {INPUT "{\"name\":\"add\",\"op\":\"add\",\"input\":\"input\"}", "reads '', and no earlier"},
        {INPUT "{\"name\":\"add\",\"op\":\"add\",\"input\":\"input\","
               "\"second_input\":\"input\"}",
         "reads node 'input' twice"},
        {INPUT "{\"name\":\"bn\",\"op\":\"batch_norm\",\"input\":\"input\",\"epsilon\":\"0\"}",
         "attribute 'epsilon'"},
        {INPUT "{\"name\":\"d\",\"op\":\"dense\",\"input\":\"input\",\"channels\":2,"
               "\"has_bias\":1}",
         "attribute 'has_bias'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_text text = {0};
        tdmi_graph *graph = NULL;
        tdm_error err = {0};
        char said[2000];
        tdmi_text_printf(&text, "{\"nodes\":[%s]}", cases[i].nodes);
        if (read_text(tdmi_text_string(&text), &graph, &err) != TDM_E_INPUT)
            fail_msg("accepted: %s", cases[i].nodes);
        tdm_error_format(&err, said, sizeof said);
        if (!strstr(said, cases[i].says))
            fail_msg("'%s' is not in: %s", cases[i].says, said);
        assert_null(graph);
        tdmi_text_release(&text);
    }
}

TEST(the_text_of_these_cases_is_a_graph_but_for_the_mistake)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = NULL;
    assert_int_equal(
        read_text("{\"nodes\":[" INPUT CONV(",\"channels\":4" GOOD) END "]}", &graph, NULL),
        TDM_OK);
    assert_int_equal(tdmi_graph_classes(graph), 4);
}

/* Files from before paddings were told side by side, and before dilation and groups. */
TEST(what_older_files_say_is_understood)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = NULL;
    assert_int_equal(read_text("{\"nodes\":[" INPUT CONV(
                                   ",\"channels\":4,\"kernel\":3,\"stride\":1,\"pad_before\":2,"
                                   "\"pad_after\":1,\"has_bias\":true") END "]}",
                               &graph, NULL),
                     TDM_OK);
    const struct tdmi_op_attrs *attrs = &graph->nodes[1].attrs;
    assert_int_equal(attrs->pad_top, 2);
    assert_int_equal(attrs->pad_left, 2);
    assert_int_equal(attrs->pad_bottom, 1);
    assert_int_equal(attrs->pad_right, 1);
    assert_int_equal(attrs->dilation, 1);
    assert_int_equal(attrs->groups, 1);
}

TEST(a_missing_array_is_refused)
{
    tdmi_graph *graph = NULL;
    assert_int_equal(read_text("{}", &graph, NULL), TDM_E_INPUT);
    assert_int_equal(read_text("{\"nodes\":{}}", &graph, NULL), TDM_E_INPUT);
    assert_int_equal(tdmi_graph_from_json(NULL, "nothing", &graph, NULL), TDM_E_INPUT);
    assert_null(graph);
}

TEST_MAIN(NULL, NULL)
