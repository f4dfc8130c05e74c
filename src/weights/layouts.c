/*
 * Both kinds of weights are an image of (y, x, channel) for each output: ours lies with the
 * outputs last and the channel before them, PyTorch's with the outputs first and x last.
 */
#include "weights/layouts.h"

#include <string.h>

struct tdmi_layout tdmi_layout_of_ours(const struct tdmi_tensor *tensor)
{
    struct tdmi_layout layout = {.rank = tensor->spec.n_dims};
    for (int d = 0; d < layout.rank; d++)
        layout.shape[d] = tensor->spec.dims[d];
    return layout;
}

/* The weights of one output. */
struct image {
    int h, w, c, outputs;
};

static bool is_transposed(const struct tdmi_tensor *tensor)
{
    return tensor->spec.n_dims > 1;
}

static struct image image_of(const struct tdmi_node *node, const struct tdmi_tensor *tensor)
{
    const int *dims = tensor->spec.dims;
    if (tensor->spec.n_dims == 4)
        return (struct image){dims[0], dims[1], dims[2], dims[3]};
    return (struct image){node->in[0].h, node->in[0].w, node->in[0].c, dims[1]};
}

struct tdmi_layout tdmi_layout_of_torch(const struct tdmi_node *node,
                                        const struct tdmi_tensor *tensor)
{
    if (!is_transposed(tensor))
        return tdmi_layout_of_ours(tensor);
    struct image p = image_of(node, tensor);
    if (tensor->spec.n_dims == 4)
        return (struct tdmi_layout){4, {p.outputs, p.c, p.h, p.w}};
    return (struct tdmi_layout){2, {p.outputs, tensor->spec.dims[0]}};
}

struct tdmi_layout tdmi_layout_of_keras(const struct tdmi_node *node,
                                        const struct tdmi_tensor *tensor)
{
    struct tdmi_layout layout = tdmi_layout_of_ours(tensor);
    int groups = node->attrs.groups;
    if (node->kind == TDMI_OP_CONV && groups == node->in[0].c && groups > 1 &&
        is_transposed(tensor)) {
        layout.shape[2] = groups;
        layout.shape[3] = node->attrs.channels / groups;
    }
    return layout;
}

/* So many outputs at a time that a line of the cache is used whole on both sides. */
enum { outputs_at_a_time = 16 };

static void transpose(const struct tdmi_node *node, const struct tdmi_tensor *tensor, bool to_torch,
                      const float *from, float *to)
{
    if (!is_transposed(tensor)) {
        memcpy(to, from, sizeof(float) * (size_t)tensor->n);
        return;
    }
    const struct image p = image_of(node, tensor);
    const int64_t pixels = (int64_t)p.h * p.w, depth = pixels * p.c;
    for (int first = 0; first < p.outputs; first += outputs_at_a_time) {
        const int left = p.outputs - first;
        const int end = first + (left < outputs_at_a_time ? left : outputs_at_a_time);
        for (int64_t at = 0; at < depth; at++) { /* theirs: (channel, pixel) */
            const int64_t ours = (at % pixels * p.c + at / pixels) * p.outputs;
            for (int o = first; o < end; o++)
                if (to_torch)
                    to[o * depth + at] = from[ours + o];
                else
                    to[ours + o] = from[o * depth + at];
        }
    }
}

void tdmi_values_to_torch(const struct tdmi_node *node, const struct tdmi_tensor *tensor,
                          const float *ours, float *theirs)
{
    transpose(node, tensor, true, ours, theirs);
}

void tdmi_values_from_torch(const struct tdmi_node *node, const struct tdmi_tensor *tensor,
                            const float *theirs, float *ours)
{
    transpose(node, tensor, false, theirs, ours);
}
