/*
 * Backend ref on memory that is not the host's (guarded.h): what runs on it and gives ref's bits
 * follows no pointer of the device and leaves nothing out of what it brings there.
 */
#pragma once

#include "backend/guarded.h"
#include "backend/host.h"
#include "backend/ref_kernels.h"

static void *away_alloc(tdmi_device *device, size_t bytes)
{
    (void)device;
    return guarded_alloc(bytes);
}

static void away_free(tdmi_device *device, void *memory)
{
    (void)device;
    guarded_free(memory);
}

static tdm_status away_copy(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                            tdm_error *err)
{
    (void)stream;
    (void)err;
    guarded_copy(to, from, bytes);
    return TDM_OK;
}

static void away_clear(tdmi_stream *stream, void *memory, size_t bytes)
{
    (void)stream;
    guarded_clear(memory, bytes);
}

static void away_gather(tdmi_stream *stream, const void *table, size_t row_bytes,
                        const int64_t *numbers, int n, void *to)
{
    (void)stream;
    guarded_enter();
    for (int i = 0; i < n; i++)
        memcpy((char *)to + (size_t)i * row_bytes,
               (const char *)table + (size_t)numbers[i] * row_bytes, row_bytes);
    guarded_leave();
}

/* ---- ops --------------------------------------------------------------------------------- */

#define AWAY(name, way)                                                                   \
    static void away_##way##_##name(tdmi_stream *stream, const struct tdmi_op_desc *desc, \
                                    const struct tdmi_op_call *call)                      \
    {                                                                                     \
        guarded_enter();                                                                  \
        tdmi_ref_##name.way(stream, desc, call);                                          \
        guarded_leave();                                                                  \
    }
#define X(name, NAME, inputs)  \
    AWAY(name, forward)        \
    AWAY(name, backward)       \
    AWAY(name, reduce_forward) \
    AWAY(name, reduce_backward)
#include "backend/ops.def"
#undef X
#undef AWAY

static struct tdmi_kernel away_ops[TDMI_OP_KINDS];
static const struct tdmi_kernel *away_kernels[TDMI_OP_KINDS];

/* ---- updates ------------------------------------------------------------------------------ */

#define AWAY(way)                                                                    \
    static void away_##way(tdmi_stream *stream, const struct tdmi_update_call *call) \
    {                                                                                \
        guarded_enter();                                                             \
        tdmi_ref_update.way(stream, call);                                           \
        guarded_leave();                                                             \
    }
AWAY(sgd)
AWAY(rmsprop)
AWAY(adam)
AWAY(lamb_step)
#undef AWAY

static void away_lamb_measure(tdmi_stream *stream, const struct tdmi_update_call *call,
                              double squares[2])
{
    guarded_enter();
    tdmi_ref_update.lamb_measure(stream, call, squares);
    guarded_leave();
}

static void away_squares(tdmi_stream *stream, const float *values, int64_t n, double *sum)
{
    guarded_enter();
    tdmi_ref_update.squares(stream, values, n, sum);
    guarded_leave();
}

static void away_blend(tdmi_stream *stream, float *states, const float *sums, int64_t n,
                       float scale, float momentum)
{
    guarded_enter();
    tdmi_ref_update.blend(stream, states, sums, n, scale, momentum);
    guarded_leave();
}

static void away_accumulate(tdmi_stream *stream, enum tdmi_dtype type, void *to, const void *from,
                            int64_t n)
{
    guarded_enter();
    tdmi_ref_update.accumulate(stream, type, to, from, n);
    guarded_leave();
}

static void away_tail(tdmi_stream *stream, const struct tdmi_judgement *judgements,
                      const int32_t *labels, const struct tdmi_mixed_label *mixed, int n,
                      float *tail)
{
    guarded_enter();
    tdmi_ref_update.tail(stream, judgements, labels, mixed, n, tail);
    guarded_leave();
}

static const struct tdmi_update_table away_update = {
    .sgd = away_sgd,
    .rmsprop = away_rmsprop,
    .adam = away_adam,
    .lamb_measure = away_lamb_measure,
    .lamb_step = away_lamb_step,
    .squares = away_squares,
    .blend = away_blend,
    .accumulate = away_accumulate,
    .tail = away_tail,
};

/* A real device that the pool's threads share one queue of. */
static const struct tdmi_backend away_backend = {
    .name = "away",
    .summary = "ref, on memory that is not the host's",
    .device = {tdmi_host_count, tdmi_host_open, tdmi_host_close, NULL, false, NULL},
    .memory = {.alloc = away_alloc,
               .free = away_free,
               .upload = away_copy,
               .download = away_copy,
               .clear = away_clear,
               .gather = away_gather},
    .stream = {.open = tdmi_host_stream_open,
               .close = tdmi_host_stream_close,
               .wait = tdmi_host_stream_wait},
    .kernels = away_kernels,
    .update = &away_update,
};

static inline const struct tdmi_backend *away(void)
{
#define X(name, NAME, inputs)                                                   \
    away_ops[TDMI_OP_##NAME] = tdmi_ref_##name;                                 \
    away_ops[TDMI_OP_##NAME].forward = away_forward_##name;                     \
    if (tdmi_ref_##name.backward)                                               \
        away_ops[TDMI_OP_##NAME].backward = away_backward_##name;               \
    if (tdmi_ref_##name.reduce_forward) {                                       \
        away_ops[TDMI_OP_##NAME].reduce_forward = away_reduce_forward_##name;   \
        away_ops[TDMI_OP_##NAME].reduce_backward = away_reduce_backward_##name; \
    }                                                                           \
    away_kernels[TDMI_OP_##NAME] = &away_ops[TDMI_OP_##NAME];
#include "backend/ops.def"
#undef X
    return &away_backend;
}
