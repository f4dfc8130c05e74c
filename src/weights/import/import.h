/*
 * From a list of tensors to a network of ours, filled: what a file of any program becomes before it
 * is evaluated, trained further or exported.
 *
 * The network is one of ours by name, the one that a Keras model_config describes, or the one of a
 * model file of ours. Every tensor of the graph is filled by exactly one of the file; a new head
 * (another number of classes, or none in the file) is the only exception, and reported in the
 * notes.
 */
#pragma once

#include "models/network.h"
#include "weights/lineage.h"
#include "weights/weights.h"

/* Input that the file does not describe; NULL and 0: as these weights were published. Words as in a
 * model file: "crop", "bilinear", "tf", "same". */
struct tdmi_import_input {
    const char *fit, *filter, *scale, *padding;
    double crop_fraction;
    int size; /* pixels a side */
};

/* Change the members that are given; TDM_E_USAGE for an unknown word. padding: "same" and
 * "symmetric", NULL leaves it. */
tdm_status tdmi_import_input_apply(const struct tdmi_import_input *input,
                                   struct tdmi_preprocess *preprocess, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_import_take_padding(const char *word, enum tdmi_padding *padding,
                                    tdm_error *err) TDM_MUST_USE;

struct tdmi_import_request {    /* zeroed: everything as the file says */
    const char *network;        /* one of ours by name; NULL: the file's own word */
    struct tdmi_head head;      /* classes 0: the file's head, which it must have */
    uint64_t seed;              /* of a new head */
    const char *const *classes; /* their names, as many as the head has; NULL: the file's */
    int n_classes;
    struct tdmi_import_input input;
    bool ignores_head;  /* a head that the file lacks is made without a note */
    bool wants_hash;    /* lineage.sha256: reads the whole file once more */
    const char *beside; /* text of the config.json beside the file, as another rank found it; NULL:
                           it is looked for; "": there is none */
};

/* The text of a config.json beside the file, to be freed; NULL: there is none, or the file's
 * program is not PyTorch, which timm's belong to. One that cannot be read is none. */
tdm_status tdmi_import_find_beside(const tdmi_weights *weights, char **text,
                                   tdm_error *err) TDM_MUST_USE;

#define TDMI_IMPORT_WARNING "warning: "

struct tdmi_import {
    tdmi_graph *graph;      /* ends in softmax or a logistic loss; head is set */
    float *params, *states; /* laid out like the graph */
    const char *network;    /* "mobilenetv2", or what a model_config calls itself */
    int shard;              /* of that network */
    double learning_rate;
    int n_classes;
    const char **classes; /* never NULL: "class 0" where no name is known, or ImageNet's */
    bool is_unnamed;      /* neither file nor request names them */
    bool has_new_head;
    struct tdmi_lineage lineage;
    /* Sentences about what was replaced or ignored; one that begins with TDMI_IMPORT_WARNING says
     * what was guessed. */
    const char **notes;
    int n_notes;
    size_t notes_capacity;
    tdmi_arena arena; /* holds all but the graph */
};

/* TDM_E_INPUT names every tensor that is missing, is of another shape, or fits nowhere (the first
 * in the error, all as messages of level error), and any with a NaN or an infinity. TDM_E_USAGE
 * when neither file nor request says the network. weights may be closed afterwards. */
tdm_status tdmi_import(const tdmi_weights *weights, const struct tdmi_import_request *request,
                       struct tdmi_import *import, tdm_error *err) TDM_MUST_USE;
/* Accepts a zeroed one. */
void tdmi_import_release(struct tdmi_import *import);
