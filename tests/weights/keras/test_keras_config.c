/*
 * Networks that a Keras model_config describes, of every version: taken apart, built, bound, and
 * refused by name. The files are made here; their form is safetensors, their names are Keras'.
 */
#include "weights/import/import.h"
#include "weights/keras/config.h"
#include "weights/safetensors/safetensors.h"
#include "tandem/log.h"
#include "unit.h"

/* Quotes are written as ' so that the texts can be read. */
static const char *quoted(const char *text)
{
    static char out[20000];
    size_t n = strlen(text);
    assert_true(n < sizeof out);
    for (size_t i = 0; i <= n; i++)
        out[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    return out;
}

struct file {
    void *bytes;
    tdmi_weights *weights;
    float values[2000];
};

struct tensor {
    const char *name;
    int rank;
    int64_t shape[4];
};

/* Tensor number t holds t, t + 0.5, … */
static void make(struct file *file, const char *config, const struct tensor *tensors)
{
    size_t n_bytes = 0, at = 0;
    tdm_error err = {0};
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_safetensors_note(writer, "model_config", quoted(config));
    for (int t = 0; tensors[t].name; t++) {
        size_t n = 1;
        for (int d = 0; d < tensors[t].rank; d++)
            n *= (size_t)tensors[t].shape[d];
        assert_true(at + n < 2000);
        for (size_t i = 0; i < n; i++)
            file->values[at + i] = (float)t + 0.5F * (float)i;
        tdmi_safetensors_add(writer, tensors[t].name, TDMI_DTYPE_F32, tensors[t].rank,
                             tensors[t].shape, file->values + at);
        at += n;
    }
    if (tdmi_safetensors_finish_bytes(writer, &file->bytes, &n_bytes, &err) != TDM_OK ||
        tdmi_weights_open_bytes(file->bytes, n_bytes, "made", &file->weights, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    tdmi_safetensors_writer_free(writer);
}

static void done(struct file *file)
{
    tdmi_weights_close(file->weights);
    tdmi_free(file->bytes);
}

static void import_it(struct file *file, const struct tdmi_import_request *request,
                      struct tdmi_import *import)
{
    tdm_error err = {0};
    char text[3500];
    if (tdmi_import(file->weights, request, import, &err) != TDM_OK) {
        tdm_error_format(&err, text, sizeof text);
        fail_msg("%s", text);
    }
}

/* "input conv relu softmax" */
static void has_ops(const struct tdmi_import *import, const char *wanted)
{
    char found[400] = "";
    size_t n = 0;
    for (int i = 0; i < import->graph->n_nodes; i++)
        n += (size_t)snprintf(found + n, sizeof found - n, "%s%s", i ? " " : "",
                              tdmi_op_name(import->graph->nodes[i].kind));
    assert_string_equal(found, wanted);
}

static const struct tdmi_node *node(const struct tdmi_import *import, const char *name)
{
    for (int i = 0; i < import->graph->n_nodes; i++)
        if (strcmp(import->graph->nodes[i].name, name) == 0)
            return &import->graph->nodes[i];
    fail_msg("there is no node %s", name);
    return NULL;
}

static float first_param(const struct tdmi_import *import, const char *name, int i)
{
    return import->params[import->graph->params[node(import, name)->first_param + i].offset];
}

/* ---- Keras 2 --------------------------------------------------------------------------------- */

static const char keras_2[] =
    "{'class_name':'Model','config':{'name':'small','layers':["
    "{'class_name':'InputLayer','name':'in','config':{'name':'in','batch_input_shape':[null,8,8,3]}"
    ","
    "'inbound_nodes':[]},"
    "{'class_name':'ZeroPadding2D','name':'pad','config':{'name':'pad','padding':[[0,1],[0,1]]},"
    "'inbound_nodes':[[['in',0,0,{}]]]},"
    "{'class_name':'Conv2D','name':'c','config':{'name':'c','filters':4,'kernel_size':[3,3],"
    "'strides':[2,2],'padding':'valid','use_bias':false,'activation':'linear'},"
    "'inbound_nodes':[[['pad',0,0,{}]]]},"
    "{'class_name':'BatchNormalization','name':'n','config':{'name':'n','axis':[3],'momentum':0.9,"
    "'epsilon':0.002,'scale':false},'inbound_nodes':[[['c',0,0,{}]]]},"
    "{'class_name':'ReLU','name':'r','config':{'name':'r','max_value':6.0},"
    "'inbound_nodes':[[['n',0,0,{}]]]},"
    "{'class_name':'SeparableConv2D','name':'s','config':{'name':'s','filters':4,'kernel_size':[3,"
    "3],"
    "'padding':'same','use_bias':true},'inbound_nodes':[[['r',0,0,{}]]]},"
    "{'class_name':'Add','name':'a','config':{'name':'a'},"
    "'inbound_nodes':[[['s',0,0,{}],['r',0,0,{}]]]},"
    "{'class_name':'Flatten','name':'f','config':{'name':'f'},'inbound_nodes':[[['a',0,0,{}]]]},"
    "{'class_name':'Dense','name':'d','config':{'name':'d','units':3,'activation':'softmax'},"
    "'inbound_nodes':[[['f',0,0,{}]]]}],"
    "'input_layers':[['in',0,0]],'output_layers':[['d',0,0]]}}";

static const struct tensor keras_2_tensors[] = {
    {"model_weights/c/c/kernel:0", 4, {3, 3, 3, 4}},
    {"model_weights/n/n/beta:0", 1, {4}},
    {"model_weights/n/n/moving_mean:0", 1, {4}},
    {"model_weights/n/n/moving_variance:0", 1, {4}},
    {"model_weights/s/s/depthwise_kernel:0", 4, {3, 3, 4, 1}},
    {"model_weights/s/s/pointwise_kernel:0", 4, {1, 1, 4, 4}},
    {"model_weights/s/s/bias:0", 1, {4}},
    {"model_weights/d/d/kernel:0", 2, {64, 3}},
    {"model_weights/d/d/bias:0", 1, {3}},
    {"optimizer_weights/Variable:0", 1, {4}},
    {NULL}};

TEST(layers_become_nodes_with_their_tensors)
{
    TDMI_AT_END(done) struct file file = {.bytes = NULL};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    make(&file, keras_2, keras_2_tensors);
    import_it(&file, &(struct tdmi_import_request){0}, &import);
    has_ops(&import, "input conv batch_norm relu6 conv conv add dense softmax");
    const struct tdmi_node *c = node(&import, "c"), *n = node(&import, "n");
    assert_int_equal(c->attrs.pad_top, 0); /* of the layer before it */
    assert_int_equal(c->attrs.pad_bottom, 1);
    assert_int_equal(c->out.h, 4);
    assert_true(n->attrs.epsilon == 0.002);
    assert_true(n->attrs.momentum > 0.0999 && n->attrs.momentum < 0.1001);
    assert_true(n->attrs.is_biased);
    assert_true(first_param(&import, "n", 0) == 1.0F); /* Keras keeps no scale here */
    assert_true(first_param(&import, "n", 1) == 1.0F); /* tensor number 1 */
    assert_true(import.states[import.graph->states[n->first_state + 1].offset] == 3.0F);
    assert_true(first_param(&import, "s.depthwise", 0) == 4.0F);
    assert_true(first_param(&import, "s.pointwise", 0) == 5.0F);
    assert_true(first_param(&import, "s.pointwise", 1) == 6.0F);
    assert_int_equal(node(&import, "s.depthwise")->attrs.pad_top, 1);
    assert_true(first_param(&import, "d", 0) == 7.0F);
    assert_string_equal(import.graph->nodes[import.graph->head].name, "d");
    assert_string_equal(import.network, "small");
    assert_int_equal(import.n_classes, 3);
    assert_int_equal(import.n_notes, 1); /* the scale is taken for granted */
    tdmi_import_release(&import);
    import_it(&file, &(struct tdmi_import_request){.input.scale = "raw"}, &import);
    assert_int_equal(import.n_notes, 0);
    assert_int_equal(tdmi_graph_preprocess(import.graph)->scale, TDMI_SCALE_RAW);
}

TEST(other_classes_take_the_place_of_the_last_layer)
{
    TDMI_AT_END(done) struct file file = {.bytes = NULL};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    make(&file, keras_2, keras_2_tensors);
    import_it(&file,
              &(struct tdmi_import_request){.head = {.classes = 5, .hidden = 6, .dropout = 0.5}},
              &import);
    has_ops(&import, "input conv batch_norm relu6 conv conv add dense relu dropout dense softmax");
    assert_true(import.has_new_head);
    assert_int_equal(import.n_classes, 5);
    assert_true(first_param(&import, "s.pointwise", 1) == 6.0F);
    assert_non_null(strstr(import.notes[1], "'d'"));
}

/* Dense layers on the features of a global pooling, or on a whole image (Flatten). */
#define DENSE_IN_A_ROW(pooling)                                                      \
    "{'class_name':'Sequential','config':{'name':'m','layers':["                     \
    "{'class_name':'InputLayer','config':{'name':'i','batch_shape':[null,2,2,1]}},"  \
    "{'class_name':'Conv2D','config':{'name':'c','filters':4,'kernel_size':[1,1]}}," \
    "{'class_name':'" pooling "','config':{'name':'p'}},"                            \
    "{'class_name':'Dropout','config':{'name':'before','rate':0.25}},"               \
    "{'class_name':'Dense','config':{'name':'d1','units':6,'activation':'relu'}},"   \
    "{'class_name':'BatchNormalization','config':{'name':'n','epsilon':0.01}},"      \
    "{'class_name':'Dropout','config':{'name':'within','rate':0.5}},"                \
    "{'class_name':'Dense','config':{'name':'d2','units':3,'activation':'softmax'}}]}}"

TEST(all_dense_layers_behind_a_global_pooling_are_head)
{
    static const struct {
        const char *config, *head, *others, *note;
        int inputs;
    } cases[] = {
        {DENSE_IN_A_ROW("GlobalAveragePooling2D"), "d1",
         "input conv global_pool dropout dense softmax", "'d1' to 'd2'", 4},
        {DENSE_IN_A_ROW("Flatten"), "d2",
         "input conv dropout dense relu batch_norm dropout dense softmax", "of layer 'd2'", 16},
    };
    for (int i = 0; i < 2; i++) {
        const struct tensor tensors[] = {{"c/kernel", 4, {1, 1, 1, 4}},
                                         {"c/bias", 1, {4}},
                                         {"d1/kernel", 2, {cases[i].inputs, 6}},
                                         {"d1/bias", 1, {6}},
                                         {"n/gamma", 1, {6}},
                                         {"n/beta", 1, {6}},
                                         {"n/moving_mean", 1, {6}},
                                         {"n/moving_variance", 1, {6}},
                                         {"d2/kernel", 2, {6, 3}},
                                         {"d2/bias", 1, {3}},
                                         {NULL}};
        TDMI_AT_END(done) struct file file = {.bytes = NULL};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        make(&file, cases[i].config, tensors);
        import_it(&file, &(struct tdmi_import_request){.head = {.classes = 3}}, &import);
        assert_false(import.has_new_head);
        assert_string_equal(import.graph->nodes[import.graph->head].name, cases[i].head);
        tdmi_import_release(&import);
        import_it(&file, &(struct tdmi_import_request){.head = {.classes = 2}}, &import);
        assert_true(import.has_new_head);
        has_ops(&import, cases[i].others);
        assert_non_null(strstr(import.notes[1], cases[i].note));
    }
}

/* ---- Keras 3 and nested models -----------------------------------------------------------------
 */

#define FROM(name) \
    "{'class_name':'__keras_tensor__','config':{'shape':[null],'keras_history':['" name "',0,0]}}"

static const char keras_3[] =
    "{'class_name':'Sequential','config':{'name':'outer','layers':["
    "{'class_name':'InputLayer','config':{'name':'i','batch_shape':[null,6,6,1]}},"
    "{'class_name':'Rescaling','config':{'name':'scale','scale':0.00392156862745098,'offset':0.0}},"
    "{'class_name':'Functional','config':{'name':'base','layers':["
    "{'class_name':'InputLayer','name':'x','config':{'name':'x','batch_shape':[null,6,6,1]},"
    "'inbound_nodes':[]},"
    "{'class_name':'Conv2D','name':'c1','config':{'name':'c1','filters':2,'kernel_size':[1,1]},"
    "'inbound_nodes':[{'args':[" FROM(
        "x") "],'kwargs':{}}]},"
             "{'class_name':'Conv2D','name':'c2','config':{'name':'c2','filters':2,'kernel_size':3,"
             "'padding':'same','activation':{'class_name':'function','config':'relu'}},"
             "'inbound_nodes':[{'args':[" FROM(
                 "c1") "],'kwargs':{}}]},"
                       "{'class_name':'Concatenate','name':'cat','config':{'name':'cat','axis':-1},"
                       "'inbound_nodes':[{'args':[[" FROM("c1") "," FROM(
                           "c2") "]],'kwargs':{}}]}],"
                                 "'input_layers':['x',0,0],'output_layers':['cat',0,0]}},"
                                 "{'class_name':'GlobalAveragePooling2D','config':{'name':'gap'}},"
                                 "{'class_name':'Dropout','config':{'name':'dropout','rate':0.3}},"
                                 "{'class_name':'Dense','config':{'name':'d','units':1,'activation'"
                                 ":'sigmoid'}}]}}";

static const struct tensor keras_3_tensors[] = {
    {"layers/dense/vars/0", 2, {4, 1}},
    {"layers/dense/vars/1", 1, {1}},
    {"layers/functional/layers/conv2d/vars/0", 4, {1, 1, 1, 2}},
    {"layers/functional/layers/conv2d/vars/1", 1, {2}},
    {"layers/functional/layers/conv2d_1/vars/0", 4, {3, 3, 2, 2}},
    {"layers/functional/layers/conv2d_1/vars/1", 1, {2}},
    {"optimizer/vars/0", 1, {1}},
    {NULL}};

TEST(numbered_tensors_of_nested_models_are_found)
{
    TDMI_AT_END(done) struct file file = {.bytes = NULL};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    make(&file, keras_3, keras_3_tensors);
    import_it(&file, &(struct tdmi_import_request){0}, &import);
    has_ops(&import, "input conv conv relu concat global_pool dropout dense logistic");
    assert_int_equal(tdmi_graph_preprocess(import.graph)->scale, TDMI_SCALE_UNIT);
    assert_int_equal(import.n_notes, 0);
    assert_int_equal(import.n_classes, 2);
    assert_true(first_param(&import, "c1", 0) == 2.0F);
    assert_true(first_param(&import, "c2", 1) == 5.0F);
    assert_true(first_param(&import, "d", 1) == 1.0F);
}

/* ---- refusals ----------------------------------------------------------------------------------
 */

#define ONE(class, config)                                                          \
    "{'class_name':'Sequential','config':{'name':'m','layers':["                    \
    "{'class_name':'InputLayer','config':{'name':'i','batch_shape':[null,4,4,3]}}," \
    "{'class_name':'" class "','config':{'name':'x'," config "}}]}}"

TEST(layers_without_an_op_are_refused_by_name)
{
    static const struct tensor none[] = {{"c/kernel", 1, {1}}, {NULL}};
    static const struct {
        const char *config, *says;
    } cases[] = {
        {ONE("LeakyReLU", "'alpha':0.1"), "layer 'x' is a LeakyReLU, and there is no op"},
        {ONE("ReLU", "'negative_slope':0.2"), "layer 'x' (ReLU)"},
        {ONE("ReLU", "'max_value':4"), "max_value none or 6"},
        {ONE("Activation", "'activation':'swish'"), "the activation swish"},
        {ONE("Conv2D", "'filters':0,'kernel_size':[3,3]"), "filters is no whole number"},
        {ONE("Conv2D", "'filters':4,'kernel_size':[3,1]"), "kernel_size is not square (3 and 1)"},
        {ONE("Conv2D", "'filters':4,'kernel_size':[3,3],'data_format':'channels_first'"),
         "channels_first"},
        {ONE("Conv2D", "'filters':4,'kernel_size':[3,3],'padding':'causal'"), "padding causal"},
        {ONE("Conv2D", "'filters':4,'kernel_size':[9,9]"), "no room for a window"},
        {ONE("Dense", "'units':4"), "an image that is not flattened"},
        {ONE("BatchNormalization", "'axis':1"), "another axis"},
        {ONE("Rescaling", "'scale':2"), "rescales by 2 and 0"},
        {ONE("Dropout", "'rate':1"), "its rate"},
        {ONE("Conv2D", "'filters':4,'kernel_size':[3,3]"), "image of features"},
        {ONE("MaxPooling2D", "'pool_size':[2,2],'strides':null"), "image of features"},
        {ONE("Permute", "'dims':[2,1,3]"), "(1, 3, 2) around zeros"},
        {ONE("Permute", "'dims':[1,3,2]"), "image of features"},
        {ONE("Permute", "'dims':[1,3,2]}},{'class_name':'Conv2D','config':{'name':'y','filters':4,"
                        "'kernel_size':[3,3]"),
         "layer 'y' (Conv2D) reads an image whose columns and channels"},
        {"{'class_name':'Custom','config':{}}", "a model of the class 'Custom'"},
        {"[1", "model_config"},
        {"{'class_name':'Sequential','config':{'layers':[]}}", "without layers"},
        {"{'class_name':'Sequential','config':{'layers':[{'class_name':'Dense'}]}}",
         "lacks its class_name"},
        {"{'class_name':'Sequential','config':{'layers':[{'class_name':'InputLayer','config':"
         "{'name':'i','batch_shape':[null,4]}}]}}",
         "no image"},
        {"{'class_name':'Functional','config':{'layers':[],'input_layers':[['a',0,0],['b',0,0]],"
         "'output_layers':['a',0,0]}}",
         "2 inputs and 1 outputs"},
        {"{'class_name':'Functional','config':{'layers':[{'class_name':'InputLayer','name':'a',"
         "'config':{'name':'a','batch_shape':[null,4,4,3]}},{'class_name':'Flatten','name':'f',"
         "'config':{'name':'f'},'inbound_nodes':[[['g',0,0,{}]]]}],'input_layers':['a',0,0],"
         "'output_layers':['f',0,0]}}",
         "reads 'g', and no earlier layer"},
        {"{'class_name':'Functional','config':{'layers':[{'class_name':'InputLayer','name':'a',"
         "'config':{'name':'a','batch_shape':[null,4,4,3]}},{'class_name':'Flatten','name':'f',"
         "'config':{'name':'f'},'inbound_nodes':[[['a',0,0,{}]],[['a',0,0,{}]]]}],"
         "'input_layers':['a',0,0],'output_layers':['f',0,0]}}",
         "is used 2 times"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TDMI_AT_END(done) struct file file = {.bytes = NULL};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        tdm_error err = {0};
        char text[3500];
        make(&file, cases[i].config, none);
        tdm_status status =
            tdmi_import(file.weights, &(struct tdmi_import_request){0}, &import, &err);
        tdm_error_format(&err, text, sizeof text);
        if (status != TDM_E_INPUT || !strstr(text, cases[i].says))
            fail_msg("status %d; '%s' is not in: %s", (int)status, cases[i].says, text);
        assert_null(import.graph);
    }
}

/* As a session of TensorFlow names them that loaded the model before it saved it. */
TEST(a_group_whose_tensors_are_named_anew_goes_by_order)
{
    TDMI_AT_END(done) struct file file = {.bytes = NULL};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    struct tensor tensors[sizeof keras_2_tensors / sizeof keras_2_tensors[0]];
    memcpy(tensors, keras_2_tensors, sizeof tensors);
    tensors[0].name = "model_weights/c/c_1/kernel:0";
    tensors[1].name = "model_weights/n/n_1/beta:0";
    tensors[2].name = "model_weights/n/n_1/moving_mean:0";
    tensors[3].name = "model_weights/n/n_1/moving_variance:0";
    tensors[7].name = "model_weights/d/d_1/Variable:0";
    tensors[8].name = "model_weights/d/d_1/Variable_1:0";
    make(&file, keras_2, tensors);
    import_it(&file, &(struct tdmi_import_request){0}, &import);
    const struct tdmi_node *n = node(&import, "n");
    assert_true(first_param(&import, "c", 0) == 0.0F);
    assert_true(first_param(&import, "n", 1) == 1.0F);
    assert_true(import.states[import.graph->states[n->first_state + 1].offset] == 3.0F);
    assert_true(first_param(&import, "d", 0) == 7.0F);
    assert_true(first_param(&import, "d", 1) == 8.0F);
}

/* Its new name may be that of another layer, whose own is then another again. */
TEST(a_tensor_in_another_group_is_not_taken_for_its_name)
{
    static const char config[] =
        "{'class_name':'Sequential','config':{'name':'m','layers':["
        "{'class_name':'InputLayer','config':{'name':'i','batch_shape':[null,2,2,1]}},"
        "{'class_name':'Conv2D','config':{'name':'conv2d','filters':1,'kernel_size':1}},"
        "{'class_name':'Conv2D','config':{'name':'conv2d_1','filters':1,'kernel_size':1}},"
        "{'class_name':'GlobalAveragePooling2D','config':{'name':'p'}},"
        "{'class_name':'Dense','config':{'name':'d','units':2,'activation':'softmax'}}]}}";
    static const struct tensor tensors[] = {
        {"model_weights/conv2d/conv2d_1/kernel:0", 4, {1, 1, 1, 1}},
        {"model_weights/conv2d/conv2d_1/bias:0", 1, {1}},
        {"model_weights/conv2d_1/conv2d_1_1/kernel:0", 4, {1, 1, 1, 1}},
        {"model_weights/conv2d_1/conv2d_1_1/bias:0", 1, {1}},
        {"model_weights/d/d_1/kernel:0", 2, {1, 2}},
        {"model_weights/d/d_1/bias:0", 1, {2}},
        {NULL}};
    TDMI_AT_END(done) struct file file = {.bytes = NULL};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    make(&file, config, tensors);
    import_it(&file, &(struct tdmi_import_request){0}, &import);
    assert_true(first_param(&import, "conv2d", 0) == 0.0F);
    assert_true(first_param(&import, "conv2d", 1) == 1.0F);
    assert_true(first_param(&import, "conv2d_1", 0) == 2.0F);
    assert_true(first_param(&import, "conv2d_1", 1) == 3.0F);
    assert_true(first_param(&import, "d", 0) == 4.0F);
}

/* A model within the model is one group: what is trained comes first, layer by layer, then all
 * statistics; of frozen layers everything, layer by layer. */
static void check_nested(const char *trainable, const struct tensor *tensors, const int *numbers)
{
    static const char config[] =
        "{'class_name':'Sequential','config':{'name':'outer','layers':["
        "{'class_name':'InputLayer','config':{'name':'i','batch_shape':[null,2,2,1]}},"
        "{'class_name':'Sequential','config':{'name':'base','layers':["
        "{'class_name':'Conv2D','config':{'name':'c1','filters':1,'kernel_size':1,"
        "'use_bias':false,'trainable':%s,'batch_input_shape':[null,2,2,1]}},"
        "{'class_name':'BatchNormalization','config':{'name':'n1','trainable':%s}},"
        "{'class_name':'Conv2D','config':{'name':'c2','filters':1,'kernel_size':1,"
        "'trainable':%s}}]}},"
        "{'class_name':'GlobalAveragePooling2D','config':{'name':'p'}},"
        "{'class_name':'Dense','config':{'name':'d','units':2,'activation':'softmax'}}]}}";
    TDMI_AT_END(done) struct file file = {.bytes = NULL};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    char text[sizeof config + 20];
    snprintf(text, sizeof text, config, trainable, trainable, trainable);
    make(&file, text, tensors);
    import_it(&file, &(struct tdmi_import_request){0}, &import);
    const struct tdmi_node *n1 = node(&import, "n1");
    const float *states = import.states;
    const float found[] = {first_param(&import, "c1", 0),
                           first_param(&import, "n1", 0),
                           first_param(&import, "n1", 1),
                           states[import.graph->states[n1->first_state].offset],
                           states[import.graph->states[n1->first_state + 1].offset],
                           first_param(&import, "c2", 0),
                           first_param(&import, "c2", 1),
                           first_param(&import, "d", 0)};
    for (int i = 0; i < 8; i++)
        if (found[i] != (float)numbers[i])
            fail_msg("trainable %s: tensor %d is number %g", trainable, i, (double)found[i]);
}

TEST(a_nested_model_whose_tensors_are_named_anew_goes_by_order)
{
    static const struct tensor trained[] = {{"model_weights/base/c1_1/kernel:0", 4, {1, 1, 1, 1}},
                                            {"model_weights/base/n1_1/gamma:0", 1, {1}},
                                            {"model_weights/base/n1_1/beta:0", 1, {1}},
                                            {"model_weights/base/c2_1/kernel:0", 4, {1, 1, 1, 1}},
                                            {"model_weights/base/c2_1/bias:0", 1, {1}},
                                            {"model_weights/base/n1_1/moving_mean:0", 1, {1}},
                                            {"model_weights/base/n1_1/moving_variance:0", 1, {1}},
                                            {"model_weights/d/d/kernel:0", 2, {1, 2}},
                                            {"model_weights/d/d/bias:0", 1, {2}},
                                            {NULL}};
    /* Names that were those of other layers: c2 is called c1 here, and c1 c0. */
    static const struct tensor frozen[] = {{"model_weights/base/c0/kernel:0", 4, {1, 1, 1, 1}},
                                           {"model_weights/base/n/gamma:0", 1, {1}},
                                           {"model_weights/base/n/beta:0", 1, {1}},
                                           {"model_weights/base/n/moving_mean:0", 1, {1}},
                                           {"model_weights/base/n/moving_variance:0", 1, {1}},
                                           {"model_weights/base/c1/kernel:0", 4, {1, 1, 1, 1}},
                                           {"model_weights/base/c1/bias:0", 1, {1}},
                                           {"model_weights/d/d/kernel:0", 2, {1, 2}},
                                           {"model_weights/d/d/bias:0", 1, {2}},
                                           {NULL}};
    check_nested("true", trained, (const int[]){0, 1, 2, 5, 6, 3, 4, 7});
    check_nested("false", frozen, (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
}

TEST(a_tensor_that_is_missing_is_named_by_its_layer)
{
    TDMI_AT_END(done) struct file file = {.bytes = NULL};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    struct tensor tensors[sizeof keras_2_tensors / sizeof keras_2_tensors[0]];
    tdm_error err = {0};
    char text[3500];
    memcpy(tensors, keras_2_tensors, sizeof tensors);
    tensors[5].name = "model_weights/other/other/pointwise_kernel:0";
    make(&file, keras_2, tensors);
    assert_int_equal(tdmi_import(file.weights, &(struct tdmi_import_request){0}, &import, &err),
                     TDM_E_INPUT);
    tdm_error_format(&err, text, sizeof text);
    assert_non_null(strstr(text, "missing: s/pointwise_kernel of 1×1×4×4"));
    assert_non_null(strstr(text, "of no use: model_weights/other/other/pointwise_kernel:0"));
}

TEST(facts_of_the_file_need_no_option)
{
    TDMI_AT_END(done) struct file file = {.bytes = NULL};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    tdm_error err = {0};
    make(&file, keras_3, keras_3_tensors);
    assert_int_equal(tdmi_import(file.weights, &(struct tdmi_import_request){.input.scale = "tf"},
                                 &import, &err),
                     TDM_E_USAGE);
    assert_int_equal(tdmi_import(file.weights,
                                 &(struct tdmi_import_request){.input.padding = "same"}, &import,
                                 &err),
                     TDM_E_USAGE);
}

static int silence(void **state)
{
    (void)state;
    tdm_log_set_level(TDM_LOG_SILENT);
    return 0;
}

TEST_MAIN(silence, NULL)
