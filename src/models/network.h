/*
 * The networks that are known by name.
 */
#pragma once

#include "graph/graph.h"

/* Zeros around windows: as TensorFlow says "same" (the odd one below and right), or equally many on
 * all sides. They differ where a stride meets an even size. None at all: as PyTorch's tutorial
 * writes LeNet-5 for 32×32 pixels. */
enum tdmi_padding { TDMI_PADDING_SAME, TDMI_PADDING_SYMMETRIC, TDMI_PADDING_NONE };

/* "same", "symmetric", "none" */
const char *tdmi_padding_word(enum tdmi_padding padding);

/* The publisher whose form of a network is built, where several differ: in batch norms of
 * mobilenetv2; in strides, biases and batch norms of resnet50. */
enum tdmi_publisher { TDMI_PUBLISHER_OURS, TDMI_PUBLISHER_KERAS, TDMI_PUBLISHER_TORCH };

/* The head: [dense + ReLU], [dropout], dense, softmax or logistic loss. */
struct tdmi_head {
    int classes;
    int hidden;     /* outputs of a dense layer before; 0: none */
    double dropout; /* before the last dense layer; 0: none */
    double label_smoothing;
    bool is_logistic; /* yes or no for every class, for two classes with one logit */
};

/* The request to a builder. */
struct tdmi_build {
    struct tdmi_preprocess preprocess;
    struct tdmi_head head;
    enum tdmi_padding padding;
    enum tdmi_publisher publisher; /* whose form; ours is one of theirs */
    double variant;                /* of a family: its width, its number of layers */
};

struct tdmi_network {
    char name[32]; /* "mobilenetv2-0.35" */
    const char *summary;
    /* A family: what its names look like, and whether a name is one of it. NULL: one name only. */
    const char *forms;
    bool (*reads)(const char *name, struct tdmi_network *network);
    double variant;
    struct tdmi_preprocess preprocess; /* its own input; training may ask for another size */
    enum tdmi_padding padding;
    int classes;          /* that it was published with */
    int shard;            /* images a group unless --shard says otherwise */
    double learning_rate; /* for SGD with momentum 0.9 at batch 32 */
    /* Adds all nodes, input to softmax. */
    void (*build)(tdmi_graph *graph, const struct tdmi_build *what);
};

/* The usual inputs: colour images cropped as ImageNet's are, or images padded to a small square. */
#define TDMI_CROPPED(size, scaling)                                              \
    {                                                                            \
        .width = size, .height = size, .channels = 3, .fit = TDMI_FIT_CROP,      \
        .crop_fraction = 0.875, .filter = TDMI_FILTER_BILINEAR, .scale = scaling \
    }
#define TDMI_PADDED(size, n_channels, scaling)                                                    \
    {                                                                                             \
        .width = size, .height = size, .channels = n_channels, .fit = TDMI_FIT_PAD,               \
        .crop_fraction = 1.0, .filter = TDMI_FILTER_LANCZOS, .scale = scaling, .uses_draft = true \
    }

/* TDM_E_USAGE lists the names and suggests the nearest. */
tdm_status tdmi_network_find(const char *name, struct tdmi_network *network,
                             tdm_error *err) TDM_MUST_USE;
/* One of each file in models; NULL past the end. */
const struct tdmi_network *tdmi_network_at(int index);

/* The request that builds the network with its defaults. */
struct tdmi_build tdmi_network_defaults(const struct tdmi_network *network, int classes);
tdm_status tdmi_network_make(const struct tdmi_network *network, const struct tdmi_build *what,
                             tdmi_graph **graph, tdm_error *err) TDM_MUST_USE;
/* The defaults with this preprocessing. */
tdm_status tdmi_network_build(const struct tdmi_network *network,
                              const struct tdmi_preprocess *preprocess, int classes,
                              tdmi_graph **graph, tdm_error *err) TDM_MUST_USE;

/* ---- for builders: each returns the node it ends with ------------------------------------ */

/* A name made of parts, used at once: tdmi_name("layer%d.conv", 1).text */
struct tdmi_name {
    char text[64];
};
struct tdmi_name tdmi_name(const char *format, ...) TDM_PRINTF(1, 2);

int tdmi_add_input(tdmi_graph *graph, const struct tdmi_preprocess *preprocess);
/* The same padding on every side: kernel / 2 keeps the size at stride 1. */
int tdmi_add_conv(tdmi_graph *graph, const char *name, int input, int channels, int kernel,
                  int stride, int pad, bool has_bias);
/* Channels, kernel and stride, padded as what says; groups and dilation are 1 where they are 0. */
int tdmi_add_padded_conv(tdmi_graph *graph, const struct tdmi_build *what, const char *name,
                         int input, struct tdmi_op_attrs attrs);
/* A channel each. */
int tdmi_add_depthwise(tdmi_graph *graph, const struct tdmi_build *what, const char *name,
                       int input, int kernel, int stride);
/* PyTorch's: epsilon 1e-5, running statistics move by a tenth. */
int tdmi_add_batch_norm(tdmi_graph *graph, const char *name, int input);
/* Keras': epsilon 1e-3, running statistics move by a hundredth, towards the biased variance. */
int tdmi_add_keras_norm(tdmi_graph *graph, const char *name, int input);
/* PyTorch's for a network that its users publish, Keras' otherwise. */
int tdmi_add_published_norm(tdmi_graph *graph, const struct tdmi_build *what, const char *name,
                            int input);
int tdmi_add_relu(tdmi_graph *graph, const char *name, int input);
int tdmi_add_relu6(tdmi_graph *graph, const char *name, int input);
int tdmi_add_max_pool(tdmi_graph *graph, const char *name, int input, int kernel, int stride);
int tdmi_add_padded_max_pool(tdmi_graph *graph, const struct tdmi_build *what, const char *name,
                             int input, int kernel, int stride);
int tdmi_add_global_pool(tdmi_graph *graph, const char *name, int input);
/* stream: another number for each dropout of a network; 0 is the head's. */
int tdmi_add_dropout(tdmi_graph *graph, const char *name, int input, double rate, int stream);
int tdmi_add_dense(tdmi_graph *graph, const char *name, int input, int channels);
int tdmi_add_sum(tdmi_graph *graph, const char *name, int first, int second);
int tdmi_add_softmax(tdmi_graph *graph, int input);
/* All that follows the features; name is that of the last dense layer. */
int tdmi_add_head(tdmi_graph *graph, const struct tdmi_head *head, const char *name, int input);

/* Channels of a node; 1 after a mistake. */
int tdmi_channels_of(const tdmi_graph *graph, int node);
