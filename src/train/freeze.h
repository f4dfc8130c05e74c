/*
 * Which part of a network a training leaves as it is: `--freeze`.
 */
#ifndef TANDEM_TRAIN_FREEZE_H
#define TANDEM_TRAIN_FREEZE_H

#include "graph/graph.h"
#include "tandem/train.h"

/* Is it one: "auto", "base", "none", or a number of layers? TDM_E_USAGE says what is accepted. */
tdm_status tdmi_freeze_check(const char *word, tdm_error *err) TDM_MUST_USE;

/* Options that thaw, beside --freeze and --epochs. TDM_E_USAGE: they contradict each other. */
tdm_status tdmi_freeze_check_unfreezing(const struct tdm_train_options *options,
                                        tdm_error *err) TDM_MUST_USE;

/* The first node that is trained. base: all but the head is frozen; none: nothing is; a number: so
 * many layers with weights of their own, counted from the input, and the batch norms between them.
 * auto is not known here. TDM_E_USAGE: so many layers leave nothing to train. */
tdm_status tdmi_freeze_point(const tdmi_graph *graph, const char *word, int *first_trained,
                             tdm_error *err) TDM_MUST_USE;

/* The first node of the head. */
int tdmi_freeze_head(const tdmi_graph *graph);
/* What is left of a border after it was moved so often, so many layers at a time towards the input,
 * from first to last at most; layers 0: all at once. */
int tdmi_freeze_point_after(const tdmi_graph *graph, int first, int last, int layers, int times);
/* Layers between a node and the head, its own counted; 0 in the head. */
int tdmi_freeze_depth(const tdmi_graph *graph, int head, int node);

/* Is all but the head frozen, where nodes before first_trained are? */
bool tdmi_freeze_has_base(const tdmi_graph *graph, int first_trained);

/* Layers with weights from one node up to another, a batch norm counting with its layer. */
int tdmi_freeze_layers(const tdmi_graph *graph, int first, int end);

#endif
