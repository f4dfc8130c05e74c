/* A model in memory with room for values: what an export reads of one. */
#pragma once

#include "train/model/model_internal.h"
#include "unit.h"

/* Takes the graph; names are repeated where there are fewer than classes. */
static inline struct tdm_model empty_model(tdmi_graph *graph, const char *network, int n_classes,
                                           const char *const *names, int n_names)
{
    struct tdm_model model = {.file = {.network = network, .graph = graph}};
    struct tdmi_model_file *file = &model.file;
    file->n_classes = n_classes;
    file->classes = tdmi_alloc((size_t)n_classes, sizeof *file->classes);
    file->params = tdmi_alloc((size_t)graph->param_values + 1, sizeof(float));
    file->states = tdmi_alloc((size_t)graph->state_values + 1, sizeof(float));
    for (int i = 0; i < n_classes; i++)
        file->classes[i] = names[i % n_names];
    return model;
}

static inline void model_release(struct tdm_model *model)
{
    tdmi_free(model->file.classes);
    tdmi_free(model->file.params);
    tdmi_free(model->file.states);
    tdmi_graph_free(model->file.graph);
}
