/*
 * A network of layers as Keras writes one down: a functional model in the form of Keras 2, which
 * Keras 3 reads too. Members that both have by themselves are left out.
 */
#include "train/export/keras.h"

static const char *const class_names[] = {
#define X(class, name) name,
    TDMI_KERAS_CLASSES(X)
#undef X
};

static void integers(tdm_json_writer *writer, const char *key, const int *values, int n)
{
    tdm_json_array_begin(writer, key);
    for (int i = 0; i < n; i++)
        tdm_json_integer(writer, NULL, values[i]);
    tdm_json_array_end(writer);
}

static void pair(tdm_json_writer *writer, const char *key, int first, int second)
{
    integers(writer, key, (const int[]){first, second}, 2);
}

static void write_window(tdm_json_writer *writer, const struct tdmi_keras_plan *layer,
                         const char *size)
{
    pair(writer, size, layer->attrs.kernel, layer->attrs.kernel);
    pair(writer, "strides", layer->attrs.stride, layer->attrs.stride);
    tdm_json_string(writer, "padding", layer->is_same ? "same" : "valid");
    tdm_json_string(writer, "data_format", "channels_last");
}

static void write_conv(tdm_json_writer *writer, const struct tdmi_keras_plan *layer)
{
    const struct tdmi_op_attrs *attrs = &layer->attrs;
    const struct tdmi_op_attrs *last = layer->nodes[1] ? &layer->nodes[1]->attrs : attrs;
    write_window(writer, layer, "kernel_size");
    pair(writer, "dilation_rate", attrs->dilation, attrs->dilation);
    tdm_json_string(writer, "activation", "linear");
    tdm_json_bool(writer, "use_bias", last->has_bias);
    if (layer->class != TDMI_KERAS_DEPTHWISE_CONV)
        tdm_json_integer(writer, "filters", last->channels);
    if (layer->class == TDMI_KERAS_CONV)
        tdm_json_integer(writer, "groups", attrs->groups);
    else
        tdm_json_integer(writer, "depth_multiplier", attrs->channels / attrs->groups);
}

static void write_zeros(tdm_json_writer *writer, const struct tdmi_op_attrs *attrs)
{
    tdm_json_array_begin(writer, "padding");
    pair(writer, NULL, attrs->pad_top, attrs->pad_bottom);
    pair(writer, NULL, attrs->pad_left, attrs->pad_right);
    tdm_json_array_end(writer);
    tdm_json_string(writer, "data_format", "channels_last");
}

static void write_norm(tdm_json_writer *writer, const struct tdmi_op_attrs *attrs)
{
    tdm_json_integer(writer, "axis", -1);
    tdm_json_number(writer, "momentum", 1.0 - attrs->momentum);
    tdm_json_number(writer, "epsilon", attrs->epsilon);
    tdm_json_bool(writer, "center", true);
    tdm_json_bool(writer, "scale", true);
}

static void write_input(tdm_json_writer *writer, struct tdmi_shape shape)
{
    tdm_json_array_begin(writer, "batch_input_shape");
    tdm_json_null(writer, NULL);
    tdm_json_integer(writer, NULL, shape.h);
    tdm_json_integer(writer, NULL, shape.w);
    tdm_json_integer(writer, NULL, shape.c);
    tdm_json_array_end(writer);
    tdm_json_bool(writer, "sparse", false);
}

static void write_members(tdm_json_writer *writer, const struct tdmi_keras_plan *layer)
{
    switch (layer->class) {
    case TDMI_KERAS_INPUT:
        write_input(writer, layer->in);
        break;
    case TDMI_KERAS_CONV:
    case TDMI_KERAS_DEPTHWISE_CONV:
    case TDMI_KERAS_SEPARABLE_CONV:
        write_conv(writer, layer);
        break;
    case TDMI_KERAS_NORM:
        write_norm(writer, &layer->attrs);
        break;
    case TDMI_KERAS_RELU:
        if (layer->most > 0.0)
            tdm_json_number(writer, "max_value", layer->most);
        break;
    case TDMI_KERAS_ACTIVATION:
        tdm_json_string(writer, "activation", layer->function);
        break;
    case TDMI_KERAS_CONCATENATE:
        tdm_json_integer(writer, "axis", -1);
        break;
    case TDMI_KERAS_MAX_POOL:
    case TDMI_KERAS_AVERAGE_POOL:
        write_window(writer, layer, "pool_size");
        break;
    case TDMI_KERAS_ZERO_PADDING:
        write_zeros(writer, &layer->attrs);
        break;
    case TDMI_KERAS_PERMUTE: /* columns and channels change places */
        integers(writer, "dims", (const int[]){1, 3, 2}, 3);
        break;
    case TDMI_KERAS_RESCALING:
        tdm_json_number(writer, "scale", layer->scale);
        tdm_json_number(writer, "offset", layer->offset);
        break;
    case TDMI_KERAS_RESHAPE:
        integers(writer, "target_shape", (const int[]){layer->in.h, layer->in.w, layer->in.c}, 3);
        break;
    case TDMI_KERAS_DROPOUT:
        tdm_json_number(writer, "rate", layer->attrs.rate);
        break;
    case TDMI_KERAS_DENSE:
        tdm_json_integer(writer, "units", layer->attrs.channels);
        tdm_json_string(writer, "activation", "linear");
        tdm_json_bool(writer, "use_bias", layer->attrs.has_bias);
        break;
    default: /* no members */
        break;
    }
}

/* One end of an edge: the first result of the layer's only call. */
static void write_end(tdm_json_writer *writer, const char *name, bool has_arguments)
{
    tdm_json_array_begin(writer, NULL);
    tdm_json_string(writer, NULL, name);
    tdm_json_integer(writer, NULL, 0);
    tdm_json_integer(writer, NULL, 0);
    if (has_arguments) {
        tdm_json_object_begin(writer, NULL);
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
}

static void write_layer(tdm_json_writer *writer, const struct tdmi_keras_network *network,
                        const struct tdmi_keras_plan *layer)
{
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "class_name", class_names[layer->class]);
    tdm_json_string(writer, "name", layer->name);
    tdm_json_object_begin(writer, "config");
    tdm_json_string(writer, "name", layer->name);
    tdm_json_string(writer, "dtype", "float32");
    write_members(writer, layer);
    tdm_json_object_end(writer);
    tdm_json_array_begin(writer, "inbound_nodes");
    if (layer->n_inputs > 0) {
        tdm_json_array_begin(writer, NULL);
        for (int k = 0; k < layer->n_inputs; k++)
            write_end(writer, network->layers[layer->inputs[k]].name, true);
        tdm_json_array_end(writer);
    }
    tdm_json_array_end(writer);
    tdm_json_object_end(writer);
}

static void write_ends(tdm_json_writer *writer, const char *key, const char *name)
{
    tdm_json_array_begin(writer, key);
    write_end(writer, name, false);
    tdm_json_array_end(writer);
}

const char *tdmi_keras_config(const struct tdmi_keras_network *network)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "class_name", "Functional");
    tdm_json_object_begin(writer, "config");
    tdm_json_string(writer, "name", network->export->model->network);
    tdm_json_bool(writer, "trainable", true);
    tdm_json_array_begin(writer, "layers");
    for (int i = 0; i < network->n_layers; i++)
        write_layer(writer, network, &network->layers[i]);
    tdm_json_array_end(writer);
    write_ends(writer, "input_layers", network->layers[0].name);
    write_ends(writer, "output_layers", network->layers[network->n_layers - 1].name);
    tdm_json_object_end(writer);
    tdm_json_object_end(writer);
    return tdmi_export_finished(network->export, writer);
}
