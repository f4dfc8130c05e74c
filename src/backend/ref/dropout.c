/*
 * Dropout by draws of (seed, epoch, sample): one number in [0, 1) a value, in the order of the
 * values, from a stream of the generator's blocks that is this node's own. A value stays when its
 * number is at least the rate.
 */
#include "backend/ref/ref.h"
#include "base/hash/rng.h"

#include <string.h>

/* Block numbers are 32 bits: 2^24 blocks of four draws for each stream. */
static tdmi_rng draws_of(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i)
{
    uint64_t sample = (uint64_t)(call->draws.samples ? call->draws.samples[i] : i);
    const struct tdmi_draw_key *key = call->draws.key;
    tdmi_rng rng = tdmi_rng_at(key ? key->seed : 0, TDMI_RNG_DROPOUT, key ? key->epoch : 0, sample);
    rng.counter[0] = (uint32_t)desc->attrs.stream << 24;
    return rng;
}

/* to = from where it stays, scaled. */
static void apply(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                  const float *from, float *to)
{
    int64_t n = tdmi_shape_values(desc->out);
    float rate = (float)desc->attrs.rate, scale = (float)(1.0 / (1.0 - desc->attrs.rate));
    for (int i = 0; i < call->n; i++, from += n, to += n) {
        tdmi_rng rng = draws_of(desc, call, i);
        for (int64_t k = 0; k < n; k++)
            to[k] = tdmi_rng_unit(&rng) >= rate ? from[k] * scale : 0.0f;
    }
}

TDMI_KERNEL_RUN(forward)
{
    if (desc->is_training)
        apply(desc, call, call->x[0], call->y);
    else
        memcpy(call->y, call->x[0],
               sizeof(float) * (size_t)(call->n * tdmi_shape_values(desc->out)));
}

TDMI_KERNEL_RUN(backward)
{
    if (desc->wants_dx)
        apply(desc, call, call->dy, call->dx[0]);
}

const struct tdmi_kernel tdmi_ref_dropout = {
    .forward = forward, .backward = backward, TDMI_SHARES_IMAGES};
