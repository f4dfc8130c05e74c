/*
 * Names and layouts of our tensors in other programs.
 */
#include "weights/names.h"
#include "base/memory.h"
#include "models/known_network.h"
#include "weights/layouts.h"
#include "unit.h"

static void torch_is(const char *network, const char *node, const char *wanted)
{
    char layer[TDMI_NAME_BYTES];
    assert_true(tdmi_torch_layer(network, node, layer));
    assert_string_equal(layer, wanted);
}

TEST(mobilenetv2_is_named_as_torchvision_names_it)
{
    torch_is("mobilenetv2", "Conv1", "features.0.0");
    torch_is("mobilenetv2", "bn_Conv1", "features.0.1");
    torch_is("mobilenetv2-0.35", "expanded_conv_depthwise", "features.1.conv.0.0");
    torch_is("mobilenetv2-0.35", "expanded_conv_project_BN", "features.1.conv.2");
    torch_is("mobilenetv2", "block_1_expand", "features.2.conv.0.0");
    torch_is("mobilenetv2", "block_16_depthwise_BN", "features.17.conv.1.1");
    torch_is("mobilenetv2", "block_9_project", "features.10.conv.2");
    torch_is("mobilenetv2", "Conv_1_bn", "features.18.1");
    torch_is("mobilenetv2", "predictions", "classifier.1");
}

TEST(other_names_of_pytorch_are_ours)
{
    torch_is("resnet50", "layer1.0.downsample.1", "layer1.0.downsample.1");
    torch_is("resnet20-cifar", "linear", "linear");
    torch_is("alexnet", "classifier.6", "classifier.6");
    torch_is("convnet7", "block_1_expand", "block_1_expand"); /* a rule of another network */
    torch_is("mobilenetv2", "hidden", "hidden");              /* torchvision has no such layer */
    torch_is("mobilenetv2", "block_01_expand", "block_01_expand");
    torch_is("mobilenetv2", "block_1_expand_relu", "block_1_expand_relu");
}

TEST(networks_of_others_are_known)
{
    assert_true(tdmi_is_of_torchvision("resnet18") && tdmi_is_of_torchvision("mobilenetv2-0.35"));
    assert_true(tdmi_is_of_torchvision("alexnet") && tdmi_is_of_torchvision("resnet50"));
    assert_false(tdmi_is_of_torchvision("resnet50-cifar"));
    assert_false(tdmi_is_of_torchvision("xception"));
    assert_false(tdmi_is_of_torchvision("resnet5"));
}

TEST(names_that_are_too_long_are_refused)
{
    char out[TDMI_NAME_BYTES], name[TDMI_NAME_BYTES + 1];
    memset(name, 'a', sizeof name);
    name[TDMI_NAME_BYTES] = '\0';
    assert_false(tdmi_torch_layer("resnet18", name, out));
    name[TDMI_NAME_BYTES - 1] = '\0';
    assert_true(tdmi_torch_layer("resnet18", name, out));
    assert_string_equal(out, name);
}

static const struct tdmi_node *node_of(const tdmi_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return &graph->nodes[i];
    fail_msg("no node %s", name);
    return NULL;
}

TEST(every_tensor_of_a_network_gets_a_name_of_its_own)
{
    tdmi_graph *graph = network_new("mobilenetv2-0.35", 32, 3);
    char(*names)[TDMI_NAME_BYTES] = tdmi_alloc((size_t)graph->n_params, sizeof *names);
    int n = 0;
    assert_non_null(names);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        for (int p = node->first_param; p < node->first_param + node->n_params; p++) {
            assert_true(tdmi_torch_name("mobilenetv2-0.35", node, &graph->params[p], names[n]));
            assert_true(strncmp(names[n], "features.", 9) == 0 ||
                        strncmp(names[n], "classifier.1.", 13) == 0);
            for (int earlier = 0; earlier < n; earlier++)
                assert_string_not_equal(names[n], names[earlier]);
            n++;
        }
    }
    assert_int_equal(n, graph->n_params);
    tdmi_free(names);
    tdmi_graph_free(graph);
}

static void keras_is(const tdmi_graph *graph, const char *tensor, const char *wanted)
{
    char node_name[TDMI_NAME_BYTES], layer[TDMI_NAME_BYTES], whole[2 * TDMI_NAME_BYTES];
    const char *dot = strrchr(tensor, '.');
    snprintf(node_name, sizeof node_name, "%.*s", (int)(dot - tensor), tensor);
    const struct tdmi_node *node = node_of(graph, node_name);
    const struct tdmi_tensor *found = NULL;
    for (int p = node->first_param; p < node->first_param + node->n_params; p++)
        found = strcmp(graph->params[p].name, tensor) == 0 ? &graph->params[p] : found;
    for (int s = node->first_state; s < node->first_state + node->n_states; s++)
        found = strcmp(graph->states[s].name, tensor) == 0 ? &graph->states[s] : found;
    assert_non_null(found);
    assert_true(tdmi_keras_layer("xception", node_name, layer));
    snprintf(whole, sizeof whole, "%s/%s", layer, tdmi_keras_variable(node, found));
    assert_string_equal(whole, wanted);
}

TEST(xception_is_named_as_keras_names_it)
{
    tdmi_graph *graph = network_new("xception", 71, 3);
    keras_is(graph, "block1_conv1.weight", "block1_conv1/kernel");
    keras_is(graph, "block1_conv1_bn.weight", "block1_conv1_bn/gamma");
    keras_is(graph, "block1_conv1_bn.running_var", "block1_conv1_bn/moving_variance");
    keras_is(graph, "block5_sepconv3.depthwise.weight", "block5_sepconv3/depthwise_kernel");
    keras_is(graph, "block5_sepconv3.pointwise.weight", "block5_sepconv3/pointwise_kernel");
    keras_is(graph, "block5_sepconv3_bn.bias", "block5_sepconv3_bn/beta");
    keras_is(graph, "block13_shortcut.weight", "conv2d_3/kernel");
    keras_is(graph, "block13_shortcut_bn.running_mean", "batch_normalization_3/moving_mean");
    keras_is(graph, "predictions.weight", "predictions/kernel");
    keras_is(graph, "predictions.bias", "predictions/bias");
    assert_true(tdmi_keras_is_numbered("xception", "block2_shortcut"));
    assert_true(tdmi_keras_is_numbered("xception", "block2_shortcut_bn"));
    assert_false(tdmi_keras_is_numbered("xception", "block1_conv1_bn"));
    tdmi_graph_free(graph);
}

/* One value of a tensor, counted: ours at index i is i. */
TEST(weights_are_transposed_to_pytorch_layout_and_back)
{
    enum { in = 3, out = 37, side = 3 };
    float ours[side * side * in * out], theirs[side * side * in * out],
        back[side * side * in * out];
    struct tdmi_node conv = {.kind = TDMI_OP_CONV, .in = {{8, 8, in}}};
    struct tdmi_tensor tensor = {.spec = {.dims = {side, side, in, out}, .n_dims = 4},
                                 .n = side * side * in * out};
    for (int i = 0; i < side * side * in * out; i++)
        ours[i] = (float)i;
    struct tdmi_layout layout = tdmi_layout_of_torch(&conv, &tensor);
    assert_int_equal(layout.rank, 4);
    assert_int_equal(layout.shape[0], out);
    assert_int_equal(layout.shape[1], in);
    tdmi_values_to_torch(&conv, &tensor, ours, theirs);
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            for (int c = 0; c < in; c++)
                for (int o = 0; o < out; o++)
                    assert_true(theirs[((o * in + c) * side + y) * side + x] ==
                                ours[((y * side + x) * in + c) * out + o]);
    tdmi_values_from_torch(&conv, &tensor, theirs, back);
    assert_memory_equal(back, ours, sizeof ours);
}

TEST(dense_layers_read_images_channel_first_in_pytorch)
{
    enum { h = 2, w = 3, c = 5, out = 4 };
    float ours[h * w * c * out], theirs[h * w * c * out], back[h * w * c * out];
    struct tdmi_node dense = {.kind = TDMI_OP_DENSE, .in = {{h, w, c}}};
    struct tdmi_tensor tensor = {.spec = {.dims = {h * w * c, out}, .n_dims = 2},
                                 .n = h * w * c * out};
    for (int i = 0; i < h * w * c * out; i++)
        ours[i] = (float)i;
    struct tdmi_layout layout = tdmi_layout_of_torch(&dense, &tensor);
    assert_int_equal(layout.rank, 2);
    assert_int_equal(layout.shape[0], out);
    assert_int_equal(layout.shape[1], h * w * c);
    tdmi_values_to_torch(&dense, &tensor, ours, theirs);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int k = 0; k < c; k++)
                for (int o = 0; o < out; o++)
                    assert_true(theirs[((o * c + k) * h + y) * w + x] ==
                                ours[((y * w + x) * c + k) * out + o]);
    tdmi_values_from_torch(&dense, &tensor, theirs, back);
    assert_memory_equal(back, ours, sizeof ours);
}

TEST(depthwise_kernels_have_a_shape_of_their_own_in_keras)
{
    struct tdmi_node node = {
        .kind = TDMI_OP_CONV, .attrs = {.groups = 6, .channels = 12}, .in = {{8, 8, 6}}};
    struct tdmi_tensor tensor = {.spec = {.dims = {3, 3, 1, 12}, .n_dims = 4}, .n = 108};
    struct tdmi_layout layout = tdmi_layout_of_keras(&node, &tensor);
    assert_int_equal(layout.shape[2], 6);
    assert_int_equal(layout.shape[3], 2);
    node.attrs.groups = 1;
    node.in[0].c = tensor.spec.dims[2] = 1; /* of one channel: as any other */
    layout = tdmi_layout_of_keras(&node, &tensor);
    assert_int_equal(layout.shape[2], 1);
    assert_int_equal(layout.shape[3], 12);
}

TEST_MAIN(NULL, NULL)
