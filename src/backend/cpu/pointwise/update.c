/* Which instruction set a step ends with. */
#include "backend/cpu/pointwise/update.h"
#include "backend/cpu/cpu.h"
#include "backend/host.h"

TDMI_TABLE_OF(const struct tdmi_update_table *tdmi_cpu_updates, tdmi_update)

static const struct tdmi_update_table *best(void)
{
    return tdmi_cpu_updates(tdmi_isa_best());
}

/* name(stream, …) of the best instruction set */
#define BEST(name, parameters, arguments) \
    static void name parameters           \
    {                                     \
        best()->name arguments;           \
    }
BEST(sgd, (tdmi_stream * stream, const struct tdmi_update_call *call), (stream, call))
BEST(rmsprop, (tdmi_stream * stream, const struct tdmi_update_call *call), (stream, call))
BEST(adam, (tdmi_stream * stream, const struct tdmi_update_call *call), (stream, call))
BEST(lamb_measure, (tdmi_stream * stream, const struct tdmi_update_call *call, double squares[2]),
     (stream, call, squares))
BEST(lamb_step, (tdmi_stream * stream, const struct tdmi_update_call *call), (stream, call))
BEST(squares, (tdmi_stream * stream, const float *values, int64_t n, double *sum),
     (stream, values, n, sum))
BEST(blend,
     (tdmi_stream * stream, float *states, const float *sums, int64_t n, float scale,
      float momentum),
     (stream, states, sums, n, scale, momentum))
BEST(accumulate,
     (tdmi_stream * stream, enum tdmi_dtype type, void *to, const void *from, int64_t n),
     (stream, type, to, from, n))

const struct tdmi_update_table tdmi_cpu_update = {
    .sgd = sgd,
    .rmsprop = rmsprop,
    .adam = adam,
    .lamb_measure = lamb_measure,
    .lamb_step = lamb_step,
    .squares = squares,
    .blend = blend,
    .accumulate = accumulate,
    .tail = tdmi_host_tail,
};
