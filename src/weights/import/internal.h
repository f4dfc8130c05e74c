/* What the files of the importer share. */
#ifndef TANDEM_WEIGHTS_IMPORT_INTERNAL_H
#define TANDEM_WEIGHTS_IMPORT_INTERNAL_H

#include "weights/bind.h"
#include "weights/import/import.h"
#include "weights/keras/config.h"

/* What a model file or an export of ours says of itself; all that is not said is zero. */
struct tdmi_import_facts {
    bool has_preprocess, has_padding;
    struct tdmi_preprocess preprocess; /* of pixels in red, green and blue, whatever the scale */
    enum tdmi_padding padding;
    const char *network; /* in the import's arena; one of ours, unless graph is there */
    tdmi_graph *graph;   /* told node by node; owned */
    int shard;           /* of it; 0: not said */
};

struct tdmi_importing {
    const tdmi_weights *weights;
    const struct tdmi_import_request *request;
    struct tdmi_import *import; /* graph and arena are filled while working */
    struct tdmi_bindings bindings;
    enum tdmi_publisher origin;
    struct tdmi_import_facts facts;
};

/* A graph with every tensor bound, or TDM_E_INPUT: by name, as a model_config describes it, as
 * facts.graph tells it. All set import->graph (owned even after a
 * failure), network, shard, learning_rate, has_new_head. */
tdm_status tdmi_import_named(struct tdmi_importing *it, const char *name,
                             tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_import_described(struct tdmi_importing *it, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_import_told(struct tdmi_importing *it, tdm_error *err) TDM_MUST_USE;

/* What a model_config says beside a network's name. */
struct tdmi_import_config {
    tdm_json_document *document;
    struct tdmi_keras_config config;
    bool is_there; /* and can be read */
};
tdm_status tdmi_import_config_open(struct tdmi_importing *it, struct tdmi_import_config *said,
                                   tdm_error *err) TDM_MUST_USE;
void tdmi_import_config_close(struct tdmi_import_config *said);
/* False: it does not say. */
bool tdmi_import_config_padding(const struct tdmi_importing *it,
                                const struct tdmi_import_config *said, enum tdmi_padding *padding);
/* Into the nodes of import->graph. */
void tdmi_import_config_norms(const struct tdmi_importing *it,
                              const struct tdmi_import_config *said);

/* A sentence for import->notes. */
tdm_status tdmi_import_note(struct tdmi_importing *it, tdm_error *err, const char *format, ...)
    TDM_PRINTF(3, 4);

tdm_status tdmi_import_read_facts(struct tdmi_importing *it, tdm_error *err) TDM_MUST_USE;
/* What the wish says of the input, over what is there; TDM_E_USAGE for a word that is none. */
tdm_status tdmi_import_take_input(const struct tdmi_importing *it,
                                  struct tdmi_preprocess *preprocess, tdm_error *err) TDM_MUST_USE;
/* Marks all tensors from graph->head on as fresh, and what they were bound to as seen. */
void tdmi_import_renew_head(struct tdmi_importing *it);

#endif
