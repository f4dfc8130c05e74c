/*
 * The op input, and the changes of images that it makes. Whether images are changed is decided by
 * the call alone: the changes of each image lie beside it in the GPU's memory, so that a recorded
 * step is replayed with other changes.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/image/image.h"
#include "image/augment/augment.h"

#include <math.h>

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    struct tdmi_cuda_input it = {.type = desc->storage,
                                 .n = call->n,
                                 .h = desc->out.h,
                                 .w = desc->out.w,
                                 .channels = desc->out.c};
    for (int c = 0; c < 3; c++)
        it.normal[c] = tdmi_preprocess_normal(&desc->attrs.preprocess, c);
    if (!call->changes) {
        TDMI_CUDA_LAUNCH(stream, "input", tdmi_cuda_input_forward, &it, call->pixels, call->y);
        return;
    }
    TDMI_CUDA_LAUNCH(stream, "input, means of changed images", tdmi_cuda_input_means, &it,
                     call->pixels, call->changes, call->workspace);
    TDMI_CUDA_LAUNCH(stream, "input, changed", tdmi_cuda_input_changed, &it, call->pixels,
                     call->changes, call->workspace, call->y);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    needs->workspace_bytes = (size_t)desc->max_images * sizeof(int32_t); /* means, if changed */
}

const struct tdmi_kernel tdmi_cuda_input = {.needs = needs, .forward = forward};

/* ---- changes --------------------------------------------------------------------------------- */

static void put(void *to, const struct tdmi_augment_change *change, const struct tdmi_mix *mix,
                int own)
{
    struct tdmi_cuda_change it = {
        .dx = change->dx,
        .dy = change->dy,
        .fill = change->fill,
        .is_flipped = change->is_flipped,
        .n_colours = change->n_colours,
        .cut_left = change->cut_left,
        .cut_top = change->cut_top,
        .cut_right = change->cut_right,
        .cut_bottom = change->cut_bottom,
        .cut_fill = change->cut_fill,
        .partner = mix ? mix->partner : own,
        .blend = mix ? mix->blend : 256,
    };
    for (int k = 0; k < change->n_colours; k++) {
        const double amount = change->colours[k].amount;
        it.colours[k].kind = (int32_t)change->colours[k].kind;
        it.colours[k].factor = (int32_t)floor(amount * 65536 + 0.5);
        it.colours[k].turn = (float)(6 * (amount - floor(amount)));
    }
    if (mix) {
        it.left = mix->left;
        it.top = mix->top;
        it.right = mix->right;
        it.bottom = mix->bottom;
    }
    *(struct tdmi_cuda_change *)to = it;
}

const struct tdmi_change_table tdmi_cuda_changes = {sizeof(struct tdmi_cuda_change), put};
