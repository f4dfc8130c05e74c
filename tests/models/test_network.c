/* The networks by name: which names there are, and that each is what was published. */
#include "models/known_network.h"
#include "tandem/network.h"
#include "unit.h"

#include <math.h>

/* ---- what was published -----------------------------------------------------------------------
 */

static struct tdm_network_totals totals_of(const char *model, int classes, int size)
{
    tdm_network *network = NULL;
    struct tdm_network_options options = {.model = model, .classes = classes, .size = size};
    assert_int_equal(tdm_network_open(&options, &network, NULL), TDM_OK);
    struct tdm_network_totals totals = *tdm_network_totals(network);
    totals.name = model;
    tdm_network_close(network);
    return totals;
}

TEST(networks_have_the_parameters_and_the_work_that_were_published)
{
    static const struct {
        const char *model;
        int classes;
        int64_t parameters, states;
        double millions; /* of multiplications */
        double within;
    } cases[] = {
        /* 6·26 + 16·151 + 120·401 + 84·121 + 10·85 */
        {"lenet5", 10, 61706, 0, 0.4166, 1e-3},
        /* 9·(3·32 + 32·32 + 32·64 + 64·64 + 64·128 + 128·128) + 2·(32+32+64+64+128+128) + 129·10 */
        {"convnet7", 10, 288746, 896, 69.6, 1e-3},
        /* keras.applications: 22,910,480 and 3,538,984 with what training does not change */
        {"xception", 1000, 22910480 - 54528, 54528, 8363.0, 5e-3},
        {"mobilenetv2", 1000, 3538984 - 34112, 34112, 300.8, 5e-3},
        {"mobilenetv2-0.35", 1000, 1691208 - 14080, 14080, 59.2, 1e-2},
        {"mobilenetv2-1.4", 1000, 6156712 - 47936, 47936, 582.0, 1e-2},
        /* torchvision */
        {"resnet18", 1000, 11689512, 9600, 1814.0, 1e-3},
        {"resnet50", 1000, 25557032, 53120, 4089.0, 1e-3},
        {"alexnet", 1000, 61100840, 0, 714.2, 1e-3},
        /* He et al., table 6: 0.27, 0.46, 0.66, 0.85 million; the usual implementation's numbers */
        {"resnet20-cifar", 10, 269722, 1376, 40.55, 1e-2},
        {"resnet32-cifar", 10, 464154, 2272, 68.86, 1e-2},
        {"resnet44-cifar", 10, 658586, 3168, 97.2, 1e-2},
        {"resnet56-cifar", 10, 853018, 4064, 125.5, 1e-2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdm_network_totals totals = totals_of(cases[i].model, cases[i].classes, 0);
        double millions = totals.multiplications / 1e6;
        if (totals.parameters != cases[i].parameters || totals.states != cases[i].states ||
            fabs(millions - cases[i].millions) > cases[i].within * cases[i].millions)
            fail_msg("%s has %lld parameters, %lld states and %g million multiplications; %lld, "
                     "%lld and %g are expected",
                     totals.name, (long long)totals.parameters, (long long)totals.states, millions,
                     (long long)cases[i].parameters, (long long)cases[i].states, cases[i].millions);
        assert_int_equal(totals.classes, cases[i].classes);
        assert_true(totals.flops >= 2.0 * totals.multiplications);
    }
}

/* Shapes of nodes that the papers' tables, Keras' summary() or torchvision tell. */
TEST(activations_have_the_published_shapes)
{
    static const struct {
        const char *model;
        int size;
        const char *node;
        struct tdmi_shape shape;
    } cases[] = {
        {"xception", 299, "block1_conv1", {149, 149, 32}},
        {"xception", 299, "block1_conv2", {147, 147, 64}},
        {"xception", 299, "block2_add", {74, 74, 128}},
        {"xception", 299, "block3_add", {37, 37, 256}},
        {"xception", 299, "block4_add", {19, 19, 728}},
        {"xception", 299, "block12_add", {19, 19, 728}},
        {"xception", 299, "block13_add", {10, 10, 1024}},
        {"xception", 299, "block14_sepconv2_act", {10, 10, 2048}},
        {"xception", 300, "block2_add", {74, 74, 128}},
        {"mobilenetv2", 224, "Conv1", {112, 112, 32}},
        {"mobilenetv2", 224, "block_1_depthwise", {56, 56, 96}},
        {"mobilenetv2", 224, "block_16_project", {7, 7, 320}},
        {"mobilenetv2", 225, "block_1_depthwise", {57, 57, 96}},
        {"mobilenetv2-0.35", 224, "Conv1", {112, 112, 16}},
        {"mobilenetv2-0.35", 224, "block_16_project", {7, 7, 112}},
        {"mobilenetv2-1.4", 224, "Conv_1", {7, 7, 1792}},
        {"resnet50", 224, "maxpool", {56, 56, 64}},
        {"resnet50", 224, "layer2.0.conv1", {56, 56, 128}},
        {"resnet50", 224, "layer2.0.conv2", {28, 28, 128}},
        {"resnet50", 224, "layer4.2.relu3", {7, 7, 2048}},
        {"resnet18", 224, "layer4.1.relu2", {7, 7, 512}},
        {"alexnet", 224, "features.0", {55, 55, 64}},
        {"alexnet", 224, "features.12", {6, 6, 256}},
        {"resnet20-cifar", 32, "layer2.0.shortcut.pad", {16, 16, 32}},
        {"resnet20-cifar", 32, "layer3.2.relu2", {8, 8, 64}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_graph *graph = network_new(cases[i].model, cases[i].size, 10);
        const struct tdmi_node *found = NULL;
        for (int n = 0; n < graph->n_nodes; n++)
            if (strcmp(graph->nodes[n].name, cases[i].node) == 0)
                found = &graph->nodes[n];
        if (!found || !tdmi_shape_equal(found->out, cases[i].shape))
            fail_msg("%s: %s is %d×%d×%d", cases[i].model, cases[i].node, found ? found->out.h : 0,
                     found ? found->out.w : 0, found ? found->out.c : 0);
        tdmi_graph_free(graph);
    }
}

static const struct tdmi_node *node_of(const tdmi_graph *graph, const char *name)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (strcmp(graph->nodes[n].name, name) == 0)
            return &graph->nodes[n];
    fail_msg("there is no node %s", name);
    return NULL;
}

/* TensorFlow's: ceil(size / stride) windows, the odd pixel of padding below and right. */
TEST(same_padding_depends_on_the_size_and_symmetric_does_not)
{
    static const struct {
        int size;
        enum tdmi_padding padding;
        int before, after;
    } cases[] = {
        {224, TDMI_PADDING_SAME, 0, 1},
        {225, TDMI_PADDING_SAME, 1, 1},
        {224, TDMI_PADDING_SYMMETRIC, 1, 1},
        {225, TDMI_PADDING_SYMMETRIC, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_network network;
        tdmi_graph *graph = NULL;
        assert_int_equal(tdmi_network_find("mobilenetv2", &network, NULL), TDM_OK);
        struct tdmi_build what = tdmi_network_defaults(&network, 10);
        what.preprocess.width = what.preprocess.height = cases[i].size;
        what.padding = cases[i].padding;
        assert_int_equal(tdmi_network_make(&network, &what, &graph, NULL), TDM_OK);
        const struct tdmi_op_attrs *attrs = &node_of(graph, "Conv1")->attrs;
        assert_int_equal(attrs->pad_top, cases[i].before);
        assert_int_equal(attrs->pad_left, cases[i].before);
        assert_int_equal(attrs->pad_bottom, cases[i].after);
        assert_int_equal(attrs->pad_right, cases[i].after);
        tdmi_graph_free(graph);
    }
}

/* 299 becomes 147 after the stem; the pools then see 147, 74, 37 and 19 pixels. */
TEST(pools_of_xception_pad_as_tensorflow_does)
{
    static const struct {
        const char *node;
        int top, bottom;
    } cases[] = {{"block2_pool", 1, 1},
                 {"block3_pool", 0, 1},
                 {"block4_pool", 1, 1},
                 {"block13_pool", 1, 1}};
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = network_new("xception", 299, 10);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tdmi_op_attrs *attrs = &node_of(graph, cases[i].node)->attrs;
        assert_int_equal(attrs->pad_top, cases[i].top);
        assert_int_equal(attrs->pad_left, cases[i].top);
        assert_int_equal(attrs->pad_bottom, cases[i].bottom);
        assert_int_equal(attrs->pad_right, cases[i].bottom);
    }
}

/* ---- the head ---------------------------------------------------------------------------------
 */

TEST(the_head_is_what_was_asked_for)
{
    struct tdmi_network network;
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = NULL;
    assert_int_equal(tdmi_network_find("resnet20-cifar", &network, NULL), TDM_OK);
    struct tdmi_build what = tdmi_network_defaults(&network, 5);
    what.head =
        (struct tdmi_head){.classes = 5, .hidden = 33, .dropout = 0.25, .label_smoothing = 0.1};
    assert_int_equal(tdmi_network_make(&network, &what, &graph, NULL), TDM_OK);
    assert_int_equal(node_of(graph, "hidden")->out.c, 33);
    assert_int_equal(node_of(graph, "hidden_relu")->kind, TDMI_OP_RELU);
    assert_true(node_of(graph, "dropout")->attrs.rate == 0.25);
    assert_int_equal(node_of(graph, "linear")->out.c, 5);
    assert_true(node_of(graph, "softmax")->attrs.label_smoothing == 0.1);
}

TEST(a_logistic_head_has_one_logit_for_two_classes)
{
    for (int classes = 2; classes <= 3; classes++) {
        struct tdmi_network network;
        tdmi_graph *graph = NULL;
        assert_int_equal(tdmi_network_find("lenet5", &network, NULL), TDM_OK);
        struct tdmi_build what = tdmi_network_defaults(&network, classes);
        what.head.is_logistic = true;
        assert_int_equal(tdmi_network_make(&network, &what, &graph, NULL), TDM_OK);
        assert_int_equal(node_of(graph, "dense3")->out.c, classes == 2 ? 1 : 3);
        assert_int_equal(tdmi_graph_classes(graph), classes);
        tdmi_graph_free(graph);
    }
}

/* Two dropouts that drew the same would zero the same units. */
TEST(no_two_dropouts_of_a_network_draw_the_same)
{
    const struct tdmi_network *it;
    for (int i = 0; (it = tdmi_network_at(i)) != NULL; i++) {
        struct tdmi_build what = tdmi_network_defaults(it, 4);
        tdmi_graph *graph = NULL;
        bool is_taken[256] = {false};
        what.head.dropout = 0.5;
        assert_int_equal(tdmi_network_make(it, &what, &graph, NULL), TDM_OK);
        for (int n = 0; n < graph->n_nodes; n++) {
            if (graph->nodes[n].kind != TDMI_OP_DROPOUT)
                continue;
            assert_false(is_taken[graph->nodes[n].attrs.stream]);
            is_taken[graph->nodes[n].attrs.stream] = true;
        }
        assert_true(is_taken[0]);
        tdmi_graph_free(graph);
    }
}

/* ---- names ------------------------------------------------------------------------------------
 */

TEST(names_of_families_are_read_and_spelt_one_way)
{
    static const struct {
        const char *asked, *name;
        double variant;
    } cases[] = {
        {"mobilenetv2", "mobilenetv2", 1.0},
        {"mobilenetv2-1.0", "mobilenetv2", 1.0},
        {"mobilenetv2-0.350", "mobilenetv2-0.35", 0.35},
        {"mobilenetv2-1.4", "mobilenetv2-1.4", 1.4},
        {"resnet20-cifar", "resnet20-cifar", 20.0},
        {"resnet8-cifar", "resnet8-cifar", 8.0},
        {"resnet110-cifar", "resnet110-cifar", 110.0},
        {"resnet998-cifar", "resnet998-cifar", 998.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_network network;
        if (tdmi_network_find(cases[i].asked, &network, NULL) != TDM_OK)
            fail_msg("%s was refused", cases[i].asked);
        assert_string_equal(network.name, cases[i].name);
        assert_true(network.variant == cases[i].variant);
    }
}

TEST(other_names_are_refused_with_the_list_of_names_and_forms)
{
    static const char *const names[] = {
        "",
        "resnet5000",
        "resnet21-cifar",
        "resnet20-cifar10",
        "resnet02-cifar",
        "resnet 20-cifar",
        "resnet+20-cifar",
        "resnet020-cifar",
        "resnet1004-cifar",
        "resnet2-cifar",
        "mobilenetv2-",
        "mobilenetv2-x",
        "mobilenetv2--1",
        "mobilenetv2-0",
        "mobilenetv2-nan",
        "mobilenetv2-1e9",
        "mobilenetv2-1.0x",
        "mobilenetv2- 1",
        "mobilenetv2-WIDTH (0.05 to 4)",
        "mobilenetv2-0.35000000000000000000000001",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tdmi_network network;
        tdm_error err = {0};
        if (tdmi_network_find(names[i], &network, &err) != TDM_E_USAGE)
            fail_msg("'%s' was accepted", names[i]);
        for (int k = 0; tdmi_network_at(k); k++) {
            const char *forms = tdmi_network_at(k)->forms;
            assert_non_null(strstr(tdm_error_sentence(&err, 0), tdmi_network_at(k)->name));
            assert_true(!forms || strstr(tdm_error_sentence(&err, 0), forms));
        }
    }
}

TEST(a_misspelt_name_is_answered_with_the_nearest)
{
    static const struct {
        const char *typed, *nearest;
    } cases[] = {
        {"mobilnetv2", "; did you mean 'mobilenetv2'?"}, {"ResNet50", "; did you mean 'resnet50'?"},
        {"resnet-18", "; did you mean 'resnet18'?"},     {"mobilenet_v2", "mean 'mobilenetv2'?"},
        {"Xception", "; did you mean 'xception'?"},      {"vgg16", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_network network;
        tdm_error err = {0};
        assert_int_equal(tdmi_network_find(cases[i].typed, &network, &err), TDM_E_USAGE);
        const char *sentence = tdm_error_sentence(&err, 0);
        const char *expected = cases[i].nearest ? cases[i].nearest : "did you mean";
        if ((strstr(sentence, expected) != NULL) != (cases[i].nearest != NULL))
            fail_msg("'%s': %s", cases[i].typed, sentence);
    }
}

/* ---- described --------------------------------------------------------------------------------
 */

TEST(a_description_tells_every_node)
{
    tdm_network *network = NULL;
    struct tdm_network_options options = {
        .model = "mobilenetv2-0.5", .classes = 7, .size = 96, .hidden = 20, .dropout = 0.5};
    int64_t parameters = 0;
    assert_int_equal(tdm_network_open(&options, &network, NULL), TDM_OK);
    const struct tdm_network_totals *totals = tdm_network_totals(network);
    assert_string_equal(totals->name, "mobilenetv2-0.5");
    assert_int_equal(totals->height, 96);
    assert_int_equal(totals->classes, 7);
    for (int i = 0; i < totals->nodes; i++) {
        const struct tdm_network_node *node = tdm_network_node_at(network, i);
        assert_true(node->name && node->op && node->detail && node->channels > 0);
        parameters += node->parameters;
        for (int k = 0; k < node->n_inputs; k++)
            assert_true(node->inputs[k] >= 0 && node->inputs[k] < i);
        if (strcmp(node->name, "block_1_depthwise") == 0)
            assert_string_equal(node->detail,
                                "3×3 stride 2, depthwise, pad 0 above, 1 below, 0 left, 1 right");
    }
    assert_int_equal(parameters, totals->parameters);
    assert_null(tdm_network_node_at(network, -1));
    assert_null(tdm_network_node_at(network, totals->nodes));
    tdm_network_close(network);
    tdm_network_close(NULL);
}

TEST_MAIN(NULL, NULL)
