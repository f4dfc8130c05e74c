/*
 * Dense layers with pictures as lanes, written once for every instruction set (isa.h). Where a
 * block does not fit at the end, it begins early: what it makes again are the same bits.
 */
#include "backend/cpu/gemm/dense_lanes.h"
#include "backend/cpu/transpose.h"

#include <string.h>

/* Results of a block, each a sum in a register: as many as there are registers for. */
#if defined(__AVX512F__)
enum { MANY = 24, SOME = 12, FEW = 6 };
#else
enum { MANY = 12, SOME = 8, FEW = 4 };
#endif

/* ---- y and dx --------------------------------------------------------------------------------
 */

/* Sums over `depth` of values times weights: from one term to the next, and from one result to the
 * next, weights lie so far apart. */
struct sums {
    int depth, results;
    const float *values, *weights;
    int64_t next_term, next_result;
    const float *first; /* the sums begin with it; NULL: 0 */
    float *to;
};

LANES_INLINE void sum_block(const struct sums *it, int at, const int count)
{
    const int64_t next_term = it->next_term, next_result = it->next_result;
    const float *value = it->values, *weight = it->weights + at * next_result;
    lanes sum[MANY];
    EACH_OF (i, count)
        sum[i] = lanes_all(it->first ? it->first[at + i] : 0.0f);
    for (int d = 0; d < it->depth; d++, value += LANES, weight += next_term) {
        const lanes by = lanes_load(value);
        EACH_OF (i, count)
            sum[i] = lanes_multiply_add(by, lanes_all(weight[i * next_result]), sum[i]);
    }
    EACH_OF (i, count)
        lanes_store(it->to + (int64_t)(at + i) * LANES, sum[i]);
}

/* neighbours: weights of results lie side by side. */
LANES_INLINE void sum_all(const struct sums *wanted, const bool neighbours)
{
    struct sums it = *wanted;
    int at = 0;
    if (neighbours)
        it.next_result = 1;
    else
        it.next_term = 1;
    for (; neighbours && at + MANY <= it.results; at += MANY)
        sum_block(&it, at, MANY);
    for (; it.results >= SOME && at + FEW < it.results; at += SOME)
        sum_block(&it, at + SOME <= it.results ? at : it.results - SOME, SOME);
    for (; it.results >= FEW && at < it.results; at += FEW)
        sum_block(&it, at + FEW <= it.results ? at : it.results - FEW, FEW);
    for (; at < it.results; at++)
        sum_block(&it, at, 1);
}

static void forward(const struct tdmi_dense_lanes *desc, const struct tdmi_dense_call *call)
{
    const struct tdmi_dense_scratch scratch = tdmi_dense_lanes_scratch(desc, call->workspace);
    const int in = desc->in, out = desc->out;
    for (int i = 0; i < call->n; i += LANES) {
        const int n = call->n - i < LANES ? call->n - i : LANES;
        const struct sums y = {.depth = in,
                               .results = out,
                               .values = scratch.x,
                               .weights = call->weights,
                               .next_term = out,
                               .first = call->bias,
                               .to = scratch.result};
        transpose_in(call->x + (int64_t)i * in, in, n, in, scratch.x);
        sum_all(&y, true);
        transpose_out(scratch.result, out, call->y + (int64_t)i * out, out, n);
    }
}

/* ---- gradient of the weights -----------------------------------------------------------------
 */

enum { TALL = 6 }; /* inputs of a block; outputs are `wide` vectors */

struct outer {
    int in, out, n;
    const struct tdmi_dense_scratch *scratch;
    float *to;
};

LANES_INLINE void outer_block(const struct outer *it, int first, int column, const int tall,
                              const int wide)
{
    const struct tdmi_dense_scratch *scratch = it->scratch;
    const float *dy = scratch->rows + column;
    lanes sum[TALL][4];
    EACH_PAIR (c, tall, v, wide)
        sum[c][v] = lanes_all(0.0f);
    for (int i = 0; i < it->n; i++, dy += scratch->row) {
        const float *x = scratch->x + ((int64_t)(i / LANES) * it->in + first) * LANES + i % LANES;
        lanes right[4];
        EACH_OF (v, wide)
            right[v] = lanes_load(dy + v * LANES);
        EACH_OF (c, tall) {
            const lanes left = lanes_all(x[c * LANES]);
            EACH_OF (v, wide)
                sum[c][v] = lanes_multiply_add(left, right[v], sum[c][v]);
        }
    }
    EACH_OF (c, tall) {
        float *to = it->to + (int64_t)(first + c) * it->out + column;
        UNROLL(8)
        for (int v = 0; v < wide; v++, to += LANES) {
            const int rest = it->out - column - v * LANES;
            if (rest >= LANES)
                lanes_store(to, sum[c][v]);
            else
                lanes_store_part(to, sum[c][v], rest);
        }
    }
}

LANES_INLINE void outer_columns(const struct outer *it, int column, const int wide)
{
    if (it->in < TALL) {
        for (int c = 0; c < it->in; c++)
            outer_block(it, c, column, 1, wide);
        return;
    }
    for (int c = 0; c < it->in; c += TALL)
        outer_block(it, c + TALL <= it->in ? c : it->in - TALL, column, TALL, wide);
}

static void outer(const struct outer *it)
{
    const int end = it->scratch->row;
    int column = 0;
#if defined(__AVX512F__)
    for (; column + 4 * LANES <= end; column += 4 * LANES)
        outer_columns(it, column, 4);
#endif
    for (; column + 2 * LANES <= end; column += 2 * LANES)
        outer_columns(it, column, 2);
    if (column < end)
        outer_columns(it, column, 1);
}

/* ---- backward --------------------------------------------------------------------------------
 */

static void keep_rows(const struct tdmi_dense_lanes *desc, const struct tdmi_dense_call *call,
                      const struct tdmi_dense_scratch *scratch)
{
    const size_t out = (size_t)desc->out, rest = (size_t)scratch->row - out;
    for (int i = 0; i < call->n; i++) {
        float *row = scratch->rows + (int64_t)i * scratch->row;
        memcpy(row, call->dy + (int64_t)i * desc->out, sizeof *row * out);
        memset(row + out, 0, sizeof *row * rest);
    }
}

static void add_rows(const struct tdmi_dense_call *call, const struct tdmi_dense_scratch *scratch,
                     int out)
{
    for (int o = 0; o < out; o += LANES) {
        lanes sum = lanes_all(0.0f);
        for (int i = 0; i < call->n; i++)
            sum = lanes_add(sum, lanes_load(scratch->rows + (int64_t)i * scratch->row + o));
        lanes_store_part(call->dbias + o, sum, out - o < LANES ? out - o : LANES);
    }
}

static void backward(const struct tdmi_dense_lanes *desc, const struct tdmi_dense_call *call)
{
    const struct tdmi_dense_scratch scratch = tdmi_dense_lanes_scratch(desc, call->workspace);
    const int in = desc->in, out = desc->out;
    for (int i = 0; i < call->n; i += LANES) {
        const int n = call->n - i < LANES ? call->n - i : LANES;
        transpose_in(call->x + (int64_t)i * in, in, n, in, scratch.x + (int64_t)i * in);
        if (!call->dx)
            continue;
        const struct sums dx = {.depth = out,
                                .results = in,
                                .values = scratch.dy,
                                .weights = call->weights,
                                .next_result = out,
                                .to = scratch.result};
        transpose_in(call->dy + (int64_t)i * out, out, n, out, scratch.dy);
        sum_all(&dx, false);
        transpose_out(scratch.result, in, call->dx + (int64_t)i * in, in, n);
    }
    keep_rows(desc, call, &scratch);
    outer(&(struct outer){in, out, call->n, &scratch, call->dweights});
    if (call->dbias)
        add_rows(call, &scratch, out);
}

const struct tdmi_dense_lanes_kernels TDMI_THIS_ISA(tdmi_dense_lanes) = {
    .lanes = LANES, .forward = forward, .backward = backward};
