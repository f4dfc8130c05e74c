/*
 * Inside kernels (isa.h): how a vector is loaded and stored, as a constant that the compiler sees
 * through, and the range of an activation that is a clamp.
 */
#pragma once

#include "backend/cpu/forms.h"
#include "backend/cpu/lanes.h"

#include <math.h>

/* Other instruction sets have no stores past the caches, so loops with them are not compiled. */
enum { CAN_STREAM = LANES == 16 };

/* Are there loops of the usual shapes? Plain C has only the general ones, since more would take
 * long to compile. */
enum { HAS_USUAL = LANES > 4 };

/* A store goes past the caches, is whole, or covers the first n lanes only. OVER: a whole store
 * although only n lanes are meant, because what lies behind them is written later and no longer
 * read; partial stores are slow. Vectors of channels have nothing behind them. */
enum access { ACCESS_STREAM, ACCESS_WHOLE, ACCESS_PART, ACCESS_OVER };

LANES_INLINE void put(float *to, lanes a, const enum access access, int n)
{
    if (access == ACCESS_STREAM)
        lanes_stream(to, a);
    else if (access == ACCESS_PART)
        lanes_store_part(to, a, n);
    else
        lanes_store(to, a);
}

LANES_INLINE lanes get(const float *from, const enum access access, int n)
{
    return access == ACCESS_PART ? lanes_load_part(from, n) : lanes_load(from);
}

/* Everything where it is no clamp. */
LANES_INLINE struct lanes_range range_of(enum tdmi_act act)
{
    const bool is_clamp = act == TDMI_ACT_RELU || act == TDMI_ACT_RELU6;
    return (struct lanes_range){lanes_all(is_clamp ? 0.0f : -INFINITY),
                                lanes_all(act == TDMI_ACT_RELU6 ? 6.0f : INFINITY)};
}
