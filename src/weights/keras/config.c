/*
 * Sequential models are chains. Functional ones name what each layer reads: Keras 2 as lists
 * ["layer", 0, 0, {}], Keras 3 as tensors with a history of that form, anywhere in the arguments.
 */
#include "weights/keras/config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { most_layers = 4096, most_inputs = 64, most_name = 200 };

struct reader {
    tdmi_arena *arena;
    struct tdmi_keras_config *config;
};

/* A model being read: its place in the configuration, and its input. */
struct place {
    const char *group;  /* NULL: outermost */
    const char *number; /* "" or "functional/" */
    int input;          /* layer whose values it reads; -1: it has an input of its own */
};

static bool is_model(const char *class)
{
    return strcmp(class, "Sequential") == 0 || strcmp(class, "Functional") == 0 ||
           strcmp(class, "Model") == 0;
}

static const char *text_of(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_string(tdm_json_member(object, key), NULL);
}

/* A functional model's layers have their name beside their config, others in it. */
static const char *name_of(const tdm_json_value *layer)
{
    const char *name = text_of(tdm_json_member(layer, "config"), "name");
    return name ? name : text_of(layer, "name");
}

/* ---- the list -------------------------------------------------------------------------------- */

static tdm_status append(struct reader *in, const struct tdmi_keras_layer *layer, int *index,
                         tdm_error *err)
{
    struct tdmi_keras_config *config = in->config;
    if (config->n_layers >= most_layers)
        return TDM_FAIL(err, TDM_E_INPUT, "more than %d layers", most_layers);
    if (strlen(layer->name) > most_name)
        return TDM_FAIL(err, TDM_E_INPUT, "the name of layer '%s' has more than %d bytes",
                        layer->name, most_name);
    TDMI_ARENA_ROOM(in->arena, config->layers, config->capacity, (size_t)config->n_layers, err);
    config->layers[config->n_layers] = *layer;
    *index = config->n_layers++;
    return TDM_OK;
}

/* (batch, height, width, channels), of which all but the channels may be open. */
static tdm_status add_input(struct reader *in, const char *name, const tdm_json_value *shape,
                            int *index, tdm_error *err)
{
    int *const sides[] = {&in->config->height, &in->config->width, &in->config->channels};
    if (in->config->n_layers > 0)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is a second input; networks of one are read", name);
    if (tdm_json_count(shape) == 1 && tdm_json_kind_of(tdm_json_at(shape, 0)) == TDM_JSON_ARRAY)
        shape = tdm_json_at(shape, 0);
    if (tdm_json_kind_of(shape) != TDM_JSON_ARRAY || tdm_json_count(shape) != 4)
        return TDM_FAIL(err, TDM_E_INPUT, "the input '%s' is no image of (height, width, channels)",
                        name);
    for (size_t i = 0; i < 3; i++) {
        const tdm_json_value *side = tdm_json_at(shape, i + 1);
        int64_t number = tdm_json_as_integer(side, 0);
        if (tdm_json_kind_of(side) != TDM_JSON_NULL && (number < 1 || number > 65535))
            return TDM_FAIL(err, TDM_E_INPUT,
                            "the input '%s' has a side that is no whole number from 1 to 65535",
                            name);
        *sides[i] = (int)number;
    }
    return append(in,
                  &(struct tdmi_keras_layer){
                      .name = name, .class = "InputLayer", .group = name, .number = ""},
                  index, err);
}

static const tdm_json_value *shape_of(const tdm_json_value *config)
{
    static const char *const keys[] = {"batch_shape", "batch_input_shape", "build_input_shape"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (tdm_json_kind_of(tdm_json_member(config, keys[i])) == TDM_JSON_ARRAY)
            return tdm_json_member(config, keys[i]);
    return NULL;
}

/* "SeparableConv2D" -> "separable_conv2d": a capital begins a word when a small letter follows it,
 * or one went before it. */
static void snake(const char *class, char *out, size_t out_bytes)
{
    size_t n = 0;
    for (size_t i = 0; class[i] && n + 2 < out_bytes; i++) {
        bool is_upper = isupper((unsigned char)class[i]) != 0;
        bool begins = islower((unsigned char)class[i + 1]) != 0 ||
                      (i > 0 && islower((unsigned char)class[i - 1]) != 0);
        if (i > 0 && is_upper && begins)
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)class[i]);
    }
    out[n] = '\0';
}

/* The number of a layer among its class in its model, as Keras 3 saves it. */
static const char *number_of(struct reader *in, const struct place *place,
                             const tdm_json_value *layers, size_t index)
{
    char word[most_name];
    const char *class = text_of(tdm_json_at(layers, index), "class_name");
    int before = 0;
    for (size_t i = 0; i < index; i++) {
        const char *other = text_of(tdm_json_at(layers, i), "class_name");
        before += other && strcmp(other, class) == 0;
    }
    snake(class, word, sizeof word);
    return tdmi_arena_printf(in->arena, before ? "%s%s_%d" : "%s%s", place->number, word, before);
}

/* ---- models ---------------------------------------------------------------------------------- */

static tdm_status read_model(struct reader *in, const tdm_json_value *model,
                             const struct place *place, int *output, tdm_error *err);

/* A layer or a nested model; inputs are earlier layers, none for a model with its own input. */
static tdm_status read_layer(struct reader *in, const struct place *place,
                             const tdm_json_value *layers, size_t index, const int *inputs,
                             int n_inputs, int *output, tdm_error *err)
{
    const tdm_json_value *value = tdm_json_at(layers, index);
    struct tdmi_keras_layer layer = {.name = name_of(value),
                                     .class = text_of(value, "class_name"),
                                     .config = tdm_json_member(value, "config"),
                                     .n_inputs = n_inputs};
    layer.group = place->group ? place->group : layer.name;
    layer.number = number_of(in, place, layers, index);
    TDMI_CHECK_MEMORY(layer.number, err);
    if (is_model(layer.class)) {
        const char *below = tdmi_arena_printf(in->arena, "%s/", layer.number);
        TDMI_CHECK_MEMORY(below, err);
        if (n_inputs > 1)
            return TDM_FAIL(err, TDM_E_INPUT, "the model '%s' reads %d tensors; one is accepted",
                            layer.name, n_inputs);
        struct place inner = {layer.group, below, n_inputs ? inputs[0] : -1};
        return read_model(in, value, &inner, output, err);
    }
    TDMI_ARENA_NEW(in->arena, layer.inputs, n_inputs + 1, err);
    memcpy(layer.inputs, inputs, (size_t)n_inputs * sizeof *inputs);
    return append(in, &layer, output, err);
}

static tdm_status check_layer(const tdm_json_value *layer, tdm_error *err)
{
    if (!text_of(layer, "class_name") || !name_of(layer))
        return TDM_FAIL(err, TDM_E_INPUT, "a layer lacks its class_name or its name");
    return TDM_OK;
}

static tdm_status read_sequential(struct reader *in, const tdm_json_value *config,
                                  const tdm_json_value *layers, const struct place *place,
                                  int *output, tdm_error *err)
{
    int last = place->input;
    for (size_t i = 0; i < tdm_json_count(layers); i++) {
        const tdm_json_value *layer = tdm_json_at(layers, i),
                             *own = tdm_json_member(layer, "config");
        TDMI_TRY(check_layer(layer, err));
        const char *class = text_of(layer, "class_name");
        const bool is_input = strcmp(class, "InputLayer") == 0;
        if (last < 0 && (is_input || !is_model(class))) {
            const tdm_json_value *shape = shape_of(own);
            TDM_TRY(add_input(in, is_input ? name_of(layer) : "input",
                              shape ? shape : shape_of(config), &last, err),
                    err, "the beginning");
        }
        if (is_input)
            continue;
        TDM_TRY(read_layer(in, place, layers, i, &last, last >= 0, &last, err), err, "layer '%s'",
                name_of(layer));
    }
    if (last < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "a Sequential model without layers");
    *output = last;
    return TDM_OK;
}

/* Names that a layer reads, gathered from whatever form they have. */
struct reads {
    const char *names[most_inputs];
    int n;
    bool is_odd; /* a second output of a layer, or too many */
};

static void gather_one(const tdm_json_value *history, struct reads *reads)
{
    const char *name = tdm_json_as_string(tdm_json_at(history, 0), NULL);
    if (!name || reads->n == most_inputs || tdm_json_as_integer(tdm_json_at(history, 2), 0) != 0)
        reads->is_odd = true;
    else
        reads->names[reads->n++] = name;
}

/* JSON is at most 128 levels deep. */
static void gather(const tdm_json_value *value, struct reads *reads)
{
    const char *class = text_of(value, "class_name");
    if (class && strcmp(class, "__keras_tensor__") == 0) {
        gather_one(tdm_json_member(tdm_json_member(value, "config"), "keras_history"), reads);
    } else if (tdm_json_kind_of(value) == TDM_JSON_ARRAY &&
               tdm_json_kind_of(tdm_json_at(value, 0)) == TDM_JSON_STRING) {
        gather_one(value, reads);
    } else if (tdm_json_kind_of(value) == TDM_JSON_OBJECT && tdm_json_member(value, "args")) {
        gather(tdm_json_member(value, "args"), reads);
    } else if (tdm_json_kind_of(value) == TDM_JSON_ARRAY) {
        for (size_t i = 0; i < tdm_json_count(value); i++)
            gather(tdm_json_at(value, i), reads);
    }
}

/* Outputs of the layers of one functional model, by index in its list; -1: not built yet. */
struct scope {
    const tdm_json_value *layers;
    int *outputs;
};

static int find(const struct scope *scope, size_t end, const char *name)
{
    for (size_t i = 0; i < end; i++)
        if (strcmp(name_of(tdm_json_at(scope->layers, i)), name) == 0)
            return scope->outputs[i];
    return -1;
}

static tdm_status read_functional_layer(struct reader *in, const struct scope *scope, size_t i,
                                        const struct place *place, tdm_error *err)
{
    const tdm_json_value *layer = tdm_json_at(scope->layers, i);
    const tdm_json_value *nodes = tdm_json_member(layer, "inbound_nodes");
    struct reads reads = {.n = 0};
    int inputs[most_inputs];
    TDMI_TRY(check_layer(layer, err));
    const char *name = name_of(layer);
    if (find(scope, i, name) >= 0)
        return TDM_FAIL(err, TDM_E_INPUT, "two layers are called '%s'", name);
    if (strcmp(text_of(layer, "class_name"), "InputLayer") == 0) {
        if (place->input < 0)
            return add_input(in, name, shape_of(tdm_json_member(layer, "config")),
                             &scope->outputs[i], err);
        scope->outputs[i] = place->input;
        return TDM_OK;
    }
    if (tdm_json_count(nodes) != 1)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "layer '%s' is used %zu times; layers that are used once are read", name,
                        tdm_json_count(nodes));
    gather(nodes, &reads);
    if (reads.is_odd || reads.n == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "layer '%s' reads what is no first output of a layer, none or more than %d",
                        name, most_inputs);
    for (int k = 0; k < reads.n; k++) {
        inputs[k] = find(scope, i, reads.names[k]);
        if (inputs[k] < 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "layer '%s' reads '%s', and no earlier layer is called so", name,
                            reads.names[k]);
    }
    return TDM_WRAP(
        err, read_layer(in, place, scope->layers, i, inputs, reads.n, &scope->outputs[i], err),
        "layer '%s'", name);
}

static tdm_status read_functional(struct reader *in, const tdm_json_value *config,
                                  const tdm_json_value *layers, const struct place *place,
                                  int *output, tdm_error *err)
{
    const size_t n = tdm_json_count(layers);
    struct reads inputs = {.n = 0}, outputs = {.n = 0};
    struct scope scope = {.layers = layers};
    TDMI_ARENA_NEW(in->arena, scope.outputs, n + 1, err);
    gather(tdm_json_member(config, "input_layers"), &inputs);
    gather(tdm_json_member(config, "output_layers"), &outputs);
    if (inputs.n != 1 || outputs.n != 1 || inputs.is_odd || outputs.is_odd)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "a model of %d inputs and %d outputs; models of one each are read",
                        inputs.n, outputs.n);
    for (size_t i = 0; i < n; i++)
        scope.outputs[i] = -1;
    for (size_t i = 0; i < n; i++)
        TDMI_TRY(read_functional_layer(in, &scope, i, place, err));
    *output = find(&scope, n, outputs.names[0]);
    if (*output < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "its output '%s' is no layer of it", outputs.names[0]);
    return TDM_OK;
}

static tdm_status read_model(struct reader *in, const tdm_json_value *model,
                             const struct place *place, int *output, tdm_error *err)
{
    const tdm_json_value *config = tdm_json_member(model, "config");
    const char *class = tdm_json_as_string(tdm_json_member(model, "class_name"), "");
    /* The first Keras 2 wrote a Sequential's layers in the place of its config. */
    const tdm_json_value *layers =
        tdm_json_kind_of(config) == TDM_JSON_ARRAY ? config : tdm_json_member(config, "layers");
    if (!is_model(class) || tdm_json_kind_of(layers) != TDM_JSON_ARRAY)
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "a model of the class '%s'; Sequential and Functional with their layers are read",
            class);
    if (tdm_json_count(layers) > most_layers)
        return TDM_FAIL(err, TDM_E_INPUT, "more than %d layers", most_layers);
    if (strcmp(class, "Sequential") == 0)
        return read_sequential(in, config, layers, place, output, err);
    return read_functional(in, config, layers, place, output, err);
}

tdm_status tdmi_keras_config_read(const tdm_json_value *model, tdmi_arena *arena,
                                  struct tdmi_keras_config *config, tdm_error *err)
{
    struct reader in = {arena, config};
    const struct place outermost = {NULL, "", -1};
    const char *name = text_of(tdm_json_member(model, "config"), "name");
    *config = (struct tdmi_keras_config){.name = name ? name : "keras"};
    return read_model(&in, model, &outermost, &config->output, err);
}
