/*
 * Networks: those known by name, described and drawn; and networks of your own, built node by node
 * and trained batch by batch.
 */
#ifndef TANDEM_NETWORK_H
#define TANDEM_NETWORK_H

#include "tandem/data.h"
#include "tandem/error.h"
#include "tandem/event.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_network tdm_network;

struct tdm_network_options {
    size_t struct_bytes; /* see tandem/api.h */
    const char *model;   /* a name of tdm_network_name (tandem/train.h), or one of its forms */
    int classes;         /* 0: those it was published with */
    int size;            /* side of the input in pixels; 0: the network's own */
    int hidden;          /* outputs of a dense layer before the last; 0: none */
    double dropout;
};

enum { TDM_NETWORK_INPUTS = 2 };

/* One op. Multiplications and operations are of one image, forward. */
struct tdm_network_node {
    const char *name, *op;
    const char *detail; /* "3×3 stride 2, depthwise"; may be "" */
    int inputs[TDM_NETWORK_INPUTS], n_inputs;
    int height, width, channels; /* of what it gives */
    int64_t parameters;          /* changed by training */
    int64_t states;              /* running statistics */
    double multiplications;      /* of convolutions and dense layers, each with its addition */
    double flops;                /* all operations; a multiplication and its addition are two */
};

/* Sums over the nodes. */
struct tdm_network_totals {
    const char *name, *summary;
    int height, width, channels, classes; /* of the input; of the output */
    int nodes;
    int64_t parameters, states;
    double multiplications, flops;
};

/* The options' strings are read during the call alone. TDM_E_USAGE lists the models. */
TDM_API tdm_status tdm_network_open(const struct tdm_network_options *options,
                                    tdm_network **network, tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_network_close(tdm_network *network);

/* Lent until close. */
TDM_API const struct tdm_network_totals *tdm_network_totals(const tdm_network *network);
TDM_API const struct tdm_network_node *tdm_network_node_at(const tdm_network *network, int index);

/* A drawing, whole or not at all; batch norms and activations stand in the box of what they follow.
 */
TDM_API tdm_status tdm_network_draw(const tdm_network *network, const char *path,
                                    tdm_error *err) TDM_MUST_USE;

/* ---- build ------------------------------------------------------------------------------------
 */

/* A network that has only its input, node 0: images of this size with 1 or 3 channels, as bytes
 * that it scales to [-1, 1]. Add nodes, then call tdm_network_finish. */
TDM_API tdm_status tdm_network_new(int height, int width, int channels, tdm_network **network,
                                   tdm_error *err) TDM_MUST_USE;
/* Each adds a node that reads node `input`, and returns its number. A mistake, such as a size that
 * does not fit, is kept and reported by tdm_network_finish. */
TDM_API int tdm_network_conv(tdm_network *network, int input, int channels, int kernel, int stride);
TDM_API int tdm_network_depthwise(tdm_network *network, int input, int kernel, int stride);
TDM_API int tdm_network_batch_norm(tdm_network *network, int input);
TDM_API int tdm_network_relu(tdm_network *network, int input);
TDM_API int tdm_network_max_pool(tdm_network *network, int input, int kernel, int stride);
TDM_API int tdm_network_global_pool(tdm_network *network, int input);
TDM_API int tdm_network_dropout(tdm_network *network, int input, double rate);
TDM_API int tdm_network_dense(tdm_network *network, int input, int outputs);
TDM_API int tdm_network_sum(tdm_network *network, int first, int second);
/* End with a softmax over node `input`, the logits: one output a class. */
TDM_API tdm_status tdm_network_finish(tdm_network *network, int input, tdm_error *err) TDM_MUST_USE;

/* ---- train batch by batch ------------------------------------------------------------------- */

struct tdm_trainer_options {
    size_t struct_bytes;   /* see tandem/api.h */
    int batch;             /* images of the largest batch: 32 */
    int group;             /* images that share batch-norm statistics: 16 */
    const char *optimizer; /* as in tdm_train_options: "sgd" */
    double learning_rate;  /* 0.02 */
    double momentum;       /* -1: the optimizer's own */
    double weight_decay;   /* -1: the optimizer's own */
    uint64_t seed;         /* of initial weights and dropout: 42 */
    int threads;           /* 0: one per core */
};

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_trainer_options_init(struct tdm_trainer_options *options, size_t struct_bytes);
static inline struct tdm_trainer_options tdm_trainer_options_default(void)
{
    struct tdm_trainer_options options;
    tdm_trainer_options_init(&options, sizeof options);
    return options;
}

typedef struct tdm_trainer tdm_trainer;

/* Initial weights, on the CPU. The network is lent for the trainer's life. The same options and
 * batches give the same weights at any number of threads. */
TDM_API tdm_status tdm_trainer_open(const tdm_network *network,
                                    const struct tdm_trainer_options *options,
                                    tdm_trainer **trainer, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
TDM_API void tdm_trainer_close(tdm_trainer *trainer);
/* For the steps that follow, such as by a schedule. */
TDM_API void tdm_trainer_set_learning_rate(tdm_trainer *trainer, double learning_rate);

/* Both add the batch to *score, which starts zeroed. Images with label -1 are left out. Pixels have
 * the network's input size; items may be NULL in a batch of one's own. */

/* One optimizer step; the score is that before it. */
TDM_API tdm_status tdm_trainer_step(tdm_trainer *trainer, const struct tdm_batch *batch,
                                    tdm_score *score, tdm_error *err) TDM_MUST_USE;
/* No step. probabilities, (n, classes), may be NULL. */
TDM_API tdm_status tdm_trainer_evaluate(tdm_trainer *trainer, const struct tdm_batch *batch,
                                        float *probabilities, tdm_score *score,
                                        tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
