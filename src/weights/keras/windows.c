/* Convolutions, pools, and the zeros around them. Shapes are the graph's to check. */
#include "weights/keras/parts.h"

#include <string.h>

typedef struct tdmi_keras_build build_t;
typedef struct tdmi_keras_layer layer_t;
typedef struct tdmi_keras_value value_t;

/* TensorFlow's: ceil(size / stride) windows. */
static void same_pads(int size, int reach, int stride, int *before, int *after)
{
    int total = ((size + stride - 1) / stride - 1) * stride + reach - size;
    total = total > 0 ? total : 0;
    *before = total / 2;
    *after = total - total / 2;
}

/* Kernel, stride and pads; the node to read. A ZeroPadding2D before it is taken over where its
 * zeros do what they would do here: can_pad. */
static tdm_status read_window(build_t *build, const layer_t *layer, struct tdmi_op_attrs *attrs,
                              bool can_pad, int *node, tdm_error *err)
{
    const value_t *from = tdmi_keras_input_of(build, layer);
    const char *padding = tdmi_keras_word(layer, "padding", "valid");
    const int reach = (attrs->dilation > 1 ? attrs->dilation : 1) * (attrs->kernel - 1) + 1;
    const int *p = from->pads;
    TDMI_TRY(tdmi_keras_check_image(build, layer, err));
    TDMI_TRY(tdmi_keras_check_order(layer, err));
    if (strcmp(padding, "valid") == 0) {
        bool takes = can_pad && p[0] < reach && p[1] < reach && p[2] < reach && p[3] < reach;
        if (takes) {
            attrs->pad_top = p[0];
            attrs->pad_bottom = p[1];
            attrs->pad_left = p[2];
            attrs->pad_right = p[3];
        }
        *node = takes ? from->node : tdmi_keras_input_node(build, layer);
        return TDM_OK;
    }
    if (strcmp(padding, "same") != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "padding %s; valid and same are accepted", padding);
    *node = tdmi_keras_input_node(build, layer);
    struct tdmi_shape in = tdmi_keras_shape_of(build, *node);
    same_pads(in.h, reach, attrs->stride, &attrs->pad_top, &attrs->pad_bottom);
    same_pads(in.w, reach, attrs->stride, &attrs->pad_left, &attrs->pad_right);
    return TDM_OK;
}

/* Attributes that all convolutions share. */
static tdm_status read_conv(build_t *build, const layer_t *layer, struct tdmi_op_attrs *attrs,
                            int *node, tdm_error *err)
{
    TDMI_TRY(tdmi_keras_read_square(layer, "kernel_size", -1, &attrs->kernel, err));
    TDMI_TRY(tdmi_keras_read_square(layer, "strides", 1, &attrs->stride, err));
    TDMI_TRY(tdmi_keras_read_square(layer, "dilation_rate", 1, &attrs->dilation, err));
    attrs->has_bias = tdmi_keras_flag(layer, "use_bias", true);
    return read_window(build, layer, attrs, true, node, err);
}

tdm_status tdmi_keras_add_conv(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    struct tdmi_op_attrs attrs = {0};
    int from;
    TDMI_TRY(tdmi_keras_read_count(layer, "filters", 1 << 20, -1, &attrs.channels, err));
    TDMI_TRY(tdmi_keras_read_count(layer, "groups", 1 << 20, 1, &attrs.groups, err));
    TDMI_TRY(read_conv(build, layer, &attrs, &from, err));
    value->node = tdmi_keras_add_node(build, layer, "", TDMI_OP_CONV, from, attrs);
    tdmi_keras_note_source(build, value->node, layer, TDMI_KERAS_WHOLE);
    return tdmi_keras_activate(build, layer, tdmi_keras_activation_of(layer), ".act", value, err);
}

static tdm_status read_depthwise(build_t *build, const layer_t *layer, struct tdmi_op_attrs *attrs,
                                 int *node, tdm_error *err)
{
    int multiplier = 1;
    TDMI_TRY(tdmi_keras_read_count(layer, "depth_multiplier", 1024, 1, &multiplier, err));
    TDMI_TRY(read_conv(build, layer, attrs, node, err));
    attrs->groups = tdmi_keras_shape_of(build, *node).c;
    if (attrs->groups > (1 << 20))
        return TDM_FAIL(err, TDM_E_INPUT, "%d channels are too many", attrs->groups);
    attrs->channels = attrs->groups * multiplier;
    return TDM_OK;
}

tdm_status tdmi_keras_add_depthwise(build_t *build, const layer_t *layer, value_t *value,
                                    tdm_error *err)
{
    struct tdmi_op_attrs attrs = {0};
    int from;
    TDMI_TRY(read_depthwise(build, layer, &attrs, &from, err));
    value->node = tdmi_keras_add_node(build, layer, "", TDMI_OP_CONV, from, attrs);
    tdmi_keras_note_source(build, value->node, layer, TDMI_KERAS_FIRST_HALF);
    return tdmi_keras_activate(build, layer, tdmi_keras_activation_of(layer), ".act", value, err);
}

tdm_status tdmi_keras_add_separable(build_t *build, const layer_t *layer, value_t *value,
                                    tdm_error *err)
{
    struct tdmi_op_attrs attrs = {0};
    struct tdmi_op_attrs point = {.kernel = 1, .stride = 1, .dilation = 1, .groups = 1};
    int from;
    TDMI_TRY(tdmi_keras_read_count(layer, "filters", 1 << 20, -1, &point.channels, err));
    TDMI_TRY(read_depthwise(build, layer, &attrs, &from, err));
    point.has_bias = attrs.has_bias;
    attrs.has_bias = false;
    from = tdmi_keras_add_node(build, layer, ".depthwise", TDMI_OP_CONV, from, attrs);
    tdmi_keras_note_source(build, from, layer, TDMI_KERAS_FIRST_HALF);
    value->node = tdmi_keras_add_node(build, layer, ".pointwise", TDMI_OP_CONV, from, point);
    tdmi_keras_note_source(build, value->node, layer, TDMI_KERAS_SECOND_HALF);
    return tdmi_keras_activate(build, layer, tdmi_keras_activation_of(layer), ".act", value, err);
}

tdm_status tdmi_keras_add_pool(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    struct tdmi_op_attrs attrs = {0};
    const bool is_max = strcmp(layer->class, "MaxPooling2D") == 0;
    int from;
    TDMI_TRY(tdmi_keras_read_square(layer, "pool_size", 2, &attrs.kernel, err));
    TDMI_TRY(tdmi_keras_read_square(layer, "strides", attrs.kernel, &attrs.stride, err));
    TDMI_TRY(read_window(build, layer, &attrs,
                         is_max && tdmi_keras_input_of(build, layer)->is_positive, &from, err));
    value->node = tdmi_keras_add_node(build, layer, "",
                                      is_max ? TDMI_OP_MAX_POOL : TDMI_OP_AVG_POOL, from, attrs);
    value->is_positive = tdmi_keras_input_of(build, layer)->is_positive;
    return TDM_OK;
}

/* Transposed columns are channels: add a node at once, for no window takes those zeros over. */
static void pad_channels(build_t *build, const layer_t *layer, value_t *value)
{
    const struct tdmi_op_attrs attrs = {.pad_top = value->pads[0],
                                        .pad_bottom = value->pads[1],
                                        .pad_front = value->pads[2],
                                        .pad_back = value->pads[3]};
    *value =
        (value_t){.node = tdmi_keras_add_node(build, layer, "", TDMI_OP_PAD, value->node, attrs),
                  .is_transposed = true,
                  .is_positive = value->is_positive};
}

tdm_status tdmi_keras_add_zero_padding(build_t *build, const layer_t *layer, value_t *value,
                                       tdm_error *err)
{
    const tdm_json_value *padding = tdm_json_member(layer->config, "padding");
    TDMI_TRY(tdmi_keras_check_image(build, layer, err));
    TDMI_TRY(tdmi_keras_check_order(layer, err));
    *value = (value_t){.node = tdmi_keras_input_node(build, layer),
                       .is_positive = tdmi_keras_input_of(build, layer)->is_positive};
    for (size_t i = 0; i < 4; i++) { /* 1, (1, 1) or ((1, 1), (1, 1)) */
        const tdm_json_value *side = padding;
        if (tdm_json_kind_of(side) == TDM_JSON_ARRAY)
            side = tdm_json_at(side, i / 2);
        if (tdm_json_kind_of(side) == TDM_JSON_ARRAY)
            side = tdm_json_at(side, i % 2);
        int64_t zeros = tdm_json_as_integer(side, -1);
        if (zeros < 0 || zeros > 4096)
            return TDM_FAIL(err, TDM_E_INPUT, "its padding is no whole number from 0 to 4096");
        value->pads[i] = (int)zeros;
    }
    if (tdmi_keras_input_of(build, layer)->is_transposed)
        pad_channels(build, layer, value);
    return TDM_OK;
}
