/* Changes of images, from augmentation's numbers to a GPU's. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/image/input.h"
#include "image/augment/augment.h"

#include <math.h>

struct tdmi_cuda_change tdmi_cuda_change_of(const struct tdmi_augment_change *change,
                                            const struct tdmi_mix *mix, int own)
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
    return it;
}

static void put(void *to, const struct tdmi_augment_change *change, const struct tdmi_mix *mix,
                int own)
{
    *(struct tdmi_cuda_change *)to = tdmi_cuda_change_of(change, mix, own);
}

const struct tdmi_change_table tdmi_cuda_changes = {sizeof(struct tdmi_cuda_change), put};
