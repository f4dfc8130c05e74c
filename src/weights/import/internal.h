/* Internals of the importer. */
#pragma once

#include "weights/bind.h"
#include "weights/import/import.h"
#include "weights/keras/config.h"

/* Facts of a model file or an export of ours; those that it lacks are zero. */
struct tdmi_import_facts {
    bool has_preprocess, has_padding;
    struct tdmi_preprocess preprocess; /* of pixels in red, green and blue, whatever the scale */
    enum tdmi_padding padding;
    const char *network;  /* in the import's arena; one of ours, unless graph is there */
    tdmi_graph *graph;    /* stored node by node; owned */
    int shard;            /* of it; 0: not known */
    const char **classes; /* names, in the import's arena; NULL: the file has none */
    int n_classes;
};

struct tdmi_importing {
    const tdmi_weights *weights;
    const struct tdmi_import_request *request;
    struct tdmi_import *import; /* graph and arena are filled while working */
    struct tdmi_bindings bindings;
    enum tdmi_publisher origin;
    struct tdmi_import_facts facts;
};

/* A graph with every tensor bound, or TDM_E_INPUT: by name, from a model_config, or from
 * facts.graph. All set import->graph (owned even after a failure), network, shard, learning_rate,
 * has_new_head. */
tdm_status tdmi_import_named(struct tdmi_importing *it, const char *name,
                             tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_import_described(struct tdmi_importing *it, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_import_graph(struct tdmi_importing *it, tdm_error *err) TDM_MUST_USE;

/* Names of the classes of ImageNet, in the order of its outputs. */
enum { TDMI_IMAGENET_CLASSES = 1000 };
const char *const *tdmi_imagenet_classes(void);

/* How a guess of the preprocessing is checked. */
#define TDMI_IMPORT_CHECK "check it with tandem predict on images whose class you know"

/* How the tensors of a file fit one of our networks. */
struct tdmi_import_fit {
    int nodes, fitting; /* with weights, before the head; those whose tensors all are in the file */
    int extra;          /* tensors of the file that no node takes */
};
tdm_status tdmi_import_try(struct tdmi_importing *it, const char *network,
                           struct tdmi_import_fit *fit, tdm_error *err) TDM_MUST_USE;
/* The network whose tensors before the head are all in the file, which has next to no others; NULL:
 * none. */
tdm_status tdmi_import_recognise(struct tdmi_importing *it, const char **network,
                                 tdm_error *err) TDM_MUST_USE;

/* Look for all tensors of the graph by the names of it->origin. */
tdm_status tdmi_import_bind(const struct tdmi_importing *it, const tdmi_graph *graph,
                            struct tdmi_bindings *bindings, tdm_error *err) TDM_MUST_USE;

/* A sentence for import->notes. */
tdm_status tdmi_import_note(struct tdmi_importing *it, tdm_error *err, const char *format, ...)
    TDM_PRINTF(3, 4);

/* May the file's head stay? Only for classes of the same names in the same order; where the request
 * gives no names, the numbers of classes are compared by the caller alone. */
bool tdmi_import_keeps_classes(const struct tdmi_importing *it);
/* Note a new head; the file's was for so many classes, 0: it has none. */
tdm_status tdmi_import_note_head(struct tdmi_importing *it, int64_t file_classes,
                                 tdm_error *err) TDM_MUST_USE;

tdm_status tdmi_import_read_facts(struct tdmi_importing *it, tdm_error *err) TDM_MUST_USE;
/* Names of classes, an array of strings; anything else is none. */
tdm_status tdmi_import_take_classes(struct tdmi_importing *it, const tdm_json_value *names,
                                    tdm_error *err) TDM_MUST_USE;
/* Read a config.json of timm beside a PyTorch file. One that cannot be read says nothing. */
tdm_status tdmi_import_read_beside(struct tdmi_importing *it, tdm_error *err) TDM_MUST_USE;
/* Apply the input of the request; TDM_E_USAGE for an unknown word. */
tdm_status tdmi_import_take_input(const struct tdmi_importing *it,
                                  struct tdmi_preprocess *preprocess, tdm_error *err) TDM_MUST_USE;
/* Mark all tensors from graph->head on as fresh. */
void tdmi_import_renew_head(struct tdmi_importing *it);
