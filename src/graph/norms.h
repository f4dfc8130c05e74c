/*
 * Batch norms that were folded into the convolutions before them, so that every mean is 0 and every
 * variance 1. From measured inputs they get statistics back, with scales and shifts that do not
 * change the function of the network. And norms whose momentum is too small for a training of
 * hundreds of steps.
 */
#pragma once

#include "graph/executor.h"

/* The batch norms from node `first` on; states on the host. */
int tdmi_norms_count(const tdmi_graph *graph, int first);
int tdmi_norms_count_folded(const tdmi_graph *graph, int first, const float *states);

/* Raise the momentum (PyTorch's sense) of the norms from `first` on to at least `least`; returns
 * how many had less. */
int tdmi_norms_quicken(tdmi_graph *graph, int first, double least);

/* Doubles that the sums of all norms from `first` on take: 2 · channels each, in their order. */
int64_t tdmi_norms_sums(const tdmi_graph *graph, int first);
/* Give those that are folded their statistics back, from sums that tdmi_executor_measure took over
 * n_images in all with these same states. params and states lie on the host. */
void tdmi_norms_restore(const tdmi_graph *graph, int first, const double *sums, int64_t n_images,
                        float *params, float *states);
