/*
 * Frozen layers (--freeze) and gradual unfreezing (--unfreeze).
 */
#pragma once

#include "graph/graph.h"
#include "tandem/train.h"

/* Check a word of --freeze: "auto", "base", "none", or a number of layers. */
tdm_status tdmi_freeze_check(const char *word, tdm_error *err) TDM_MUST_USE;

/* TDM_E_USAGE: the options of unfreezing contradict each other, --freeze or --epochs. */
tdm_status tdmi_freeze_check_unfreezing(const struct tdm_train_options *options,
                                        tdm_error *err) TDM_MUST_USE;

/* The first trained node. base: all but the head is frozen; none: nothing is; a number: that many
 * layers with weights, counted from the input, and the batch norms between them. auto must have
 * been resolved before. TDM_E_USAGE: nothing would be left to train. */
tdm_status tdmi_freeze_point(const tdmi_graph *graph, const char *word, int *first_trained,
                             tdm_error *err) TDM_MUST_USE;

/* The first node of the head. */
int tdmi_freeze_head(const tdmi_graph *graph);

/*
 * Gradual unfreezing (--unfreeze): the head is trained alone first, on cached features; every
 * `every` epochs the freeze point then moves towards the input. The freeze point is a function of
 * the epoch, so checkpoints do not store it. A move resets the optimizer: its moments belong to the
 * previous set of trained weights.
 */
struct tdmi_unfreeze {
    int every;       /* epochs between moves; 0: the freeze point stays at `first` */
    int layers;      /* layers per move; 0: all at once */
    int first, last; /* first trained node before the first move and after the last */
};

/* The first trained node during an epoch, counted from 0. */
int tdmi_unfreeze_point(const struct tdmi_unfreeze *schedule, const tdmi_graph *graph, int epoch);
/* The same during the last of total_epochs epochs; 0: the number is not known. */
int tdmi_unfreeze_final_point(const struct tdmi_unfreeze *schedule, const tdmi_graph *graph,
                              double total_epochs);
/* The epoch, at most `epoch`, before which the freeze point moved to freeze_point; 0: it was there
 * from the start. */
int tdmi_unfreeze_began(const struct tdmi_unfreeze *schedule, const tdmi_graph *graph, int epoch,
                        int freeze_point);
/* TDM_E_USAGE: --steps ends the training before the first move. */
tdm_status tdmi_unfreeze_check_steps(const struct tdm_train_options *options,
                                     int64_t steps_per_epoch, tdm_error *err) TDM_MUST_USE;
/* Layers between a node and the head, including the node's own; 0 in the head. */
int tdmi_freeze_depth(const tdmi_graph *graph, int head, int node);

/* Is all but the head frozen when nodes before first_trained are? */
bool tdmi_freeze_has_base(const tdmi_graph *graph, int first_trained);

/* Number of layers with weights in nodes [first, end); a batch norm counts with its layer. */
int tdmi_freeze_layers(const tdmi_graph *graph, int first, int end);
