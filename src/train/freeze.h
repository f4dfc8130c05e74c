/*
 * Which part of a network a training leaves as it is: `--freeze`.
 */
#ifndef TANDEM_TRAIN_FREEZE_H
#define TANDEM_TRAIN_FREEZE_H

#include "nn/graph.h"

/* Is it one: "auto", "base", "none", or a number of layers? TDM_E_USAGE says what is accepted. */
tdm_status tdmi_freeze_check(const char *word, tdm_error *err) TDM_MUST_USE;

/* The first node that is trained. base: all but the head is frozen; none: nothing is; a number: so
 * many layers with weights of their own, counted from the input, and the batch norms between them.
 * auto is not known here. TDM_E_USAGE: so many layers leave nothing to train. */
tdm_status tdmi_freeze_border(const tdmi_graph *graph, const char *word, int *first_trained,
                              tdm_error *err) TDM_MUST_USE;

/* Is all but the head frozen, where nodes before first_trained are? */
bool tdmi_freeze_has_base(const tdmi_graph *graph, int first_trained);

#endif
