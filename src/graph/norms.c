/*
 * Statistics given back. A norm gives s · (x - mean) + shift, s = scale / √(variance + ε). With the
 * measured mean m and variance v of x the same is s · √(v + ε) as scale and shift + s · (m - mean).
 */
#include "graph/norms.h"

#include <math.h>

static const float *state_of(const tdmi_graph *graph, int node, int which, const float *states)
{
    return states + graph->states[graph->nodes[node].first_state + which].offset;
}

static bool is_folded(const tdmi_graph *graph, int node, const float *states)
{
    if (graph->nodes[node].kind != TDMI_OP_BATCH_NORM)
        return false;
    const float *mean = state_of(graph, node, 0, states);
    const float *variance = state_of(graph, node, 1, states);
    for (int c = 0; c < graph->nodes[node].out.c; c++)
        if (fabsf(mean[c]) > 0.0F || fabsf(variance[c] - 1.0F) > 0.01F)
            return false;
    return true;
}

int tdmi_norms_count(const tdmi_graph *graph, int first)
{
    int n = 0;
    for (int i = first; i < graph->n_nodes; i++)
        n += graph->nodes[i].kind == TDMI_OP_BATCH_NORM;
    return n;
}

int tdmi_norms_count_folded(const tdmi_graph *graph, int first, const float *states)
{
    int n = 0;
    for (int i = first; i < graph->n_nodes; i++)
        n += is_folded(graph, i, states);
    return n;
}

int tdmi_norms_quicken(tdmi_graph *graph, int first, double least)
{
    int n = 0;
    for (int i = first; i < graph->n_nodes; i++) {
        struct tdmi_node *node = &graph->nodes[i];
        if (node->kind != TDMI_OP_BATCH_NORM || node->attrs.momentum >= least)
            continue;
        node->attrs.momentum = least;
        n++;
    }
    return n;
}

int64_t tdmi_norms_sums(const tdmi_graph *graph, int first)
{
    int64_t n = 0;
    for (int i = first; i < graph->n_nodes; i++)
        if (graph->nodes[i].kind == TDMI_OP_BATCH_NORM)
            n += 2 * (int64_t)graph->nodes[i].out.c;
    return n;
}

static void restore(const tdmi_graph *graph, int index, const double *sums, int64_t n_images,
                    float *params, float *states)
{
    const struct tdmi_node *node = &graph->nodes[index];
    const int channels = node->out.c;
    const double n = (double)n_images * (double)tdmi_shape_pixels(node->out);
    const double unbiased = n > 1.0 && !node->attrs.is_biased ? n / (n - 1.0) : 1.0;
    float *scale = params + graph->params[node->first_param].offset;
    float *shift = params + graph->params[node->first_param + 1].offset;
    float *mean = states + graph->states[node->first_state].offset;
    float *variance = states + graph->states[node->first_state + 1].offset;
    for (int c = 0; c < channels; c++) {
        const double off = sums[c] / n;
        const double measured = fmax(sums[channels + c] / n - off * off, 0.0) * unbiased;
        const double factor = (double)scale[c] / sqrt((double)variance[c] + node->attrs.epsilon);
        scale[c] = (float)(factor * sqrt(measured + node->attrs.epsilon));
        shift[c] = (float)((double)shift[c] + factor * off);
        mean[c] = (float)((double)mean[c] + off);
        variance[c] = (float)measured;
    }
}

void tdmi_norms_restore(const tdmi_graph *graph, int first, const double *sums, int64_t n_images,
                        float *params, float *states)
{
    for (int i = first; i < graph->n_nodes; i++) {
        if (graph->nodes[i].kind != TDMI_OP_BATCH_NORM)
            continue;
        if (is_folded(graph, i, states))
            restore(graph, i, sums, n_images, params, states);
        sums += 2 * (int64_t)graph->nodes[i].out.c;
    }
}
