/*
 * Translation of a desc and a call to the forms of forms.h, for ops of backend cpu.
 */
#pragma once

#include "backend/cpu/forms.h"
#include "backend/cpu/pieces.h"

static inline bool tdmi_cpu_is_clamp(enum tdmi_act act)
{
    return act == TDMI_ACT_NONE || act == TDMI_ACT_RELU || act == TDMI_ACT_RELU6;
}

/* Does the desc fuse at most read forms of its inputs, and an activation of its result? */
static inline bool tdmi_cpu_can_read(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    bool has_more = fusion->folds_norm || fusion->adds_residual || fusion->gives_sums ||
                    fusion->reads_gradient_form || fusion->is_virtual;
    return !has_more && tdmi_cpu_is_clamp(fusion->in[0].act) &&
           tdmi_cpu_is_clamp(fusion->in[1].act);
}

static inline bool tdmi_cpu_can_only_read(const struct tdmi_op_desc *desc)
{
    return tdmi_cpu_can_read(desc) && desc->fusion.act == TDMI_ACT_NONE;
}

static inline struct tdmi_read_form tdmi_cpu_form_of(const struct tdmi_op_desc *desc,
                                                     const struct tdmi_op_call *call, int k)
{
    struct tdmi_read_form form = {NULL, NULL, desc->fusion.in[k].act};
    if (desc->fusion.in[k].has_norm) {
        form.scale = call->in_norm[k].scale;
        form.shift = call->in_norm[k].shift;
    }
    return form;
}

static inline struct tdmi_backward_sums tdmi_cpu_sums_of(const struct tdmi_op_desc *desc,
                                                         const struct tdmi_op_call *call, int k)
{
    double *sums = call->dx_sums[k];
    if (!sums)
        return (struct tdmi_backward_sums){NULL, NULL, NULL};
    return (struct tdmi_backward_sums){call->in_norm[k].mean, sums, sums + desc->in[k].c};
}

/* No sums where the desc gives none. */
static inline struct tdmi_forward_sums tdmi_cpu_forward_sums_of(const struct tdmi_op_desc *desc,
                                                                const struct tdmi_op_call *call)
{
    double *sums = call->norm.sums;
    if (!desc->fusion.gives_sums)
        return (struct tdmi_forward_sums){NULL, NULL, NULL};
    return (struct tdmi_forward_sums){call->norm.centre, sums, sums + desc->out.c};
}

/* All NULL where the desc reads the gradient as it is. */
static inline struct tdmi_gradient_form tdmi_cpu_gradient_form_of(const struct tdmi_op_desc *desc,
                                                                  const struct tdmi_op_call *call)
{
    if (!desc->fusion.reads_gradient_form)
        return (struct tdmi_gradient_form){NULL, NULL, NULL};
    return (struct tdmi_gradient_form){call->norm.of_g, call->norm.of_x, call->norm.one};
}

/* The input, if its gradient is masked or summed by it; otherwise NULL, since the input may no
 * longer be alive. */
static inline const float *tdmi_cpu_masked_input(const struct tdmi_op_desc *desc,
                                                 const struct tdmi_op_call *call, int k)
{
    bool is_read = desc->fusion.in[k].act != TDMI_ACT_NONE || call->dx_sums[k];
    return is_read ? call->x[k] : NULL;
}

/* Write the sums of a gradient from the pieces of all members: waits for them. */
static inline void tdmi_cpu_add_sums(const struct tdmi_member *member, const float *pieces,
                                     int64_t n, int channels, const struct tdmi_backward_sums *sums)
{
    const struct tdmi_share columns = tdmi_pieces_share(member, channels);
    for (int64_t c = columns.first; c < columns.end && c < channels; c++)
        sums->sum[c] = sums->product[c] = 0.0;
    tdmi_member_wait(member);
    tdmi_pieces_add(pieces, n, channels, columns, sums->sum, sums->product);
}
