/*
 * A product of pairs of pixels and both halves of the columns in seven products of half the depth
 * (strassen.h), block by block: what seven products of a block make of it stays in the first
 * cache, and each value of C is written once. Part of gemm_kernels.c.
 */
#pragma once

#if defined(__AVX512F__)

enum { NO = -1, SLOTS = 3, SPLIT_VALUES = TALL_2 * 2 * LANES };

/* The use of one product P; slots are blocks in memory. */
struct split_step {
    int product; /* its number in strassen.h, less 1 */
    int begins;  /* with zeros, with what is in registers, or with a slot */
    int put;     /* to this slot, */
    int change;  /* P, times sign, is added to this one, */
    float sign;  /* */
    int plus;    /* and this one to P, */
    int end;     /* which is now this quarter of C */
};

enum { ZERO, SUMS, SLOT_0, SLOT_1 };

/* Quarters are 2 · (lower pixels) + (right columns). */
static const struct split_step split_steps[TDMI_GEMM_SPLIT + 1] = {
    {0, ZERO, 0, NO, 0.0f, NO, NO},    /* 0: P1 */
    {6, SUMS, 1, NO, 0.0f, NO, NO},    /* 1: P1 + P7 */
    {5, SLOT_0, 0, NO, 0.0f, NO, NO},  /* 0: P1 + P6 */
    {1, ZERO, 2, 0, -1.0f, NO, NO},    /* 2: P2; 0: P1 + P6 - P2 */
    {3, ZERO, NO, 1, 1.0f, 2, 2},      /* 1: P1 + P7 + P4; C21 = P4 + P2 */
    {2, ZERO, 2, NO, 0.0f, 0, 3},      /* 2: P3; C22 = P3 + P1 + P6 - P2 */
    {4, ZERO, NO, 1, -1.0f, 2, 1},     /* 1: P1 + P7 + P4 - P5; C12 = P5 + P3 */
    {NO, SLOT_1, NO, NO, 0.0f, NO, 0}, /* C11 */
};

LANES_INLINE void from_slot(lanes sums[MAX_TALL][MAX_WIDE], const float *slot, const int tall,
                            const int wide)
{
    EACH_PAIR (i, tall, j, wide)
        sums[i][j] = lanes_load(slot + (i * wide + j) * LANES);
}

LANES_INLINE void change_slot(lanes sums[MAX_TALL][MAX_WIDE], float *slot, float sign,
                              const int tall, const int wide)
{
    const lanes factor = lanes_all(sign);
    EACH_OF (i, tall) {
        UNROLL(16)
        for (int j = 0; j < wide; j++, slot += LANES)
            lanes_store(slot, lanes_multiply_add(sums[i][j], factor, lanes_load(slot)));
    }
}

LANES_INLINE void plus_slot(lanes sums[MAX_TALL][MAX_WIDE], const float *slot, const int tall,
                            const int wide)
{
    EACH_OF (i, tall) {
        UNROLL(16)
        for (int j = 0; j < wide; j++, slot += LANES)
            sums[i][j] = lanes_add(sums[i][j], lanes_load(slot));
    }
}

/* A quarter of the block is whole: row and first are those of the upper left one. */
LANES_INLINE void end_quarter(const struct tdmi_gemm_split *job, const int end, int quarter,
                              int row, int first, lanes sums[MAX_TALL][MAX_WIDE], const int tall,
                              const int wide)
{
    const bool is_lower = quarter & 2;
    const int n_rows = is_lower ? job->n_lower : job->n_upper;
    const int column = first + (quarter & 1 ? job->left : 0);
    const struct tdmi_gemm_rows *to = &job->to;
    const int64_t c = (is_lower ? job->lower : 0) + row * to->c_row + column;
    const int64_t piece = 2 * ((job->first_pair + row) / tall) + !is_lower;
    const bool is_whole = row + tall <= n_rows;
    if (end == TDMI_GEMM_GRADIENT && is_whole && !to->x && column + wide * LANES <= to->columns) {
        finish_plain(to, c, sums, to->add, tall, wide);
        return;
    }
    if (is_whole && is_usual(to, end, column + wide * LANES)) {
        if (added(to, end))
            finish_block(to, end, c, column, sums, added(to, end), false, tall, wide, piece);
        else
            finish_block(to, end, c, column, sums, NULL, false, tall, wide, piece);
        return;
    }
    float tile[SPLIT_VALUES];
    to_tile(sums, tile, tall, wide);
    const int left = row < n_rows ? n_rows - row : 0; /* 0: sums are zeros */
    finish_tile(to, tile, c, column, left < tall ? left : tall, wide, piece);
}

/* Lines of the residual and of C that a block's end reads are far away: they are prefetched a few
 * rows of a quarter at a time, in the order of their use. */
struct quarters_ahead {
    int next, at_once; /* of 4 · tall rows */
};

LANES_INLINE void ask_for_quarters(const struct tdmi_gemm_split *job, struct quarters_ahead *ahead,
                                   int row, int first, const int tall, const int wide)
{
    static const int order[4] = {2, 3, 1, 0};
    for (int i = 0; i < ahead->at_once && ahead->next < 4 * tall; i++, ahead->next++) {
        const int quarter = order[ahead->next / tall], at_row = row + ahead->next % tall;
        if (at_row >= (quarter & 2 ? job->n_lower : job->n_upper))
            continue;
        const int64_t at = (quarter & 2 ? job->lower : 0) + at_row * job->to.c_row + first +
                           (quarter & 1 ? job->left : 0);
        UNROLL(16)
        for (int j = 0; j <= wide; j++) {
            if (job->to.residual)
                lanes_prefetch(job->to.residual + at + j * LANES);
            lanes_prefetch(job->to.c + at + j * LANES);
        }
    }
}

LANES_INLINE void split_block(const struct tdmi_gemm_split *job, struct ahead *ahead, const int end,
                              int row, const float *b, int first, const int tall, const int wide)
{
    float slots[SLOTS][SPLIT_VALUES];
    lanes sums[MAX_TALL][MAX_WIDE];
    const int chunks = 5 * ((job->depth + DEPTH_STEP - 1) / DEPTH_STEP);
    struct quarters_ahead quarters = {0, (4 * tall + chunks - 1) / chunks};
    clear(sums, tall, wide);
    for (int i = 0; i < TDMI_GEMM_SPLIT + 1; i++) {
        const struct split_step *step = &split_steps[i];
        const bool has_product = step->product != NO;
        const int product = has_product ? step->product : 0;
        const struct tdmi_gemm_split_pixels *pixels = &job->a[product];
        const float *from = pixels->at + row * pixels->row;
        const float *by = b + product * job->packed_product;
        if (step->begins == ZERO)
            clear(sums, tall, wide);
        else if (step->begins != SUMS)
            from_slot(sums, slots[step->begins - SLOT_0], tall, wide);
        for (int left = has_product ? job->depth : 0; left > 0; left -= DEPTH_STEP) {
            look_ahead(ahead);
            ask_for_quarters(job, &quarters, row, first, tall, wide);
            multiply(sums, from, pixels->row, 1, by, wide * LANES,
                     left < DEPTH_STEP ? left : DEPTH_STEP, false, tall, wide);
            from += DEPTH_STEP;
            by += DEPTH_STEP * wide * LANES;
        }
        if (step->put != NO)
            to_tile(sums, slots[step->put], tall, wide);
        if (step->change != NO)
            change_slot(sums, slots[step->change], step->sign, tall, wide);
        if (step->plus != NO)
            plus_slot(sums, slots[step->plus], tall, wide);
        if (step->end != NO)
            end_quarter(job, end, step->end, row, first, sums, tall, wide);
    }
}

/* As with blocks, each has a function of its own. */
typedef void split_function(const struct tdmi_gemm_split *job, struct ahead *ahead, int row,
                            const float *b, int first);

#define SPLIT_BLOCK(name, end, tall, wide)                                                     \
    static void name##_##wide(const struct tdmi_gemm_split *job, struct ahead *ahead, int row, \
                              const float *b, int first)                                       \
    {                                                                                          \
        split_block(job, ahead, end, row, b, first, tall, wide);                               \
    }
#define X(tall, wide)                                             \
    SPLIT_BLOCK(split_raw, TDMI_GEMM_RAW, tall, wide)             \
    SPLIT_BLOCK(split_activated, TDMI_GEMM_ACTIVATED, tall, wide) \
    SPLIT_BLOCK(split_gradient, TDMI_GEMM_GRADIENT, tall, wide)
X(TALL_2, 2)
X(TALL_2 / 2, 3)
#undef X

static split_function *const split_blocks[][MAX_WIDE] = {
    [TDMI_GEMM_RAW] = {[2] = split_raw_2, [3] = split_raw_3},
    [TDMI_GEMM_ACTIVATED] = {[2] = split_activated_2, [3] = split_activated_3},
    [TDMI_GEMM_GRADIENT] = {[2] = split_gradient_2, [3] = split_gradient_3},
};

static void split(const struct tdmi_gemm_split *job)
{
    const float *b = job->packed;
    int left = job->left / LANES, first = 0;
    struct ahead ahead = ahead_of(job->to.ahead, (int64_t)(job->to_panel - job->from_panel) *
                                                     (job->n_upper / TALL_2) * TDMI_GEMM_SPLIT *
                                                     ((job->depth + DEPTH_STEP - 1) / DEPTH_STEP));
    for (int panel = 0; left > 0; panel++) {
        const int wide = tdmi_gemm_panel(left, 2), tall = wide == 2 ? TALL_2 : TALL_2 / 2;
        const bool is_wanted = panel >= job->from_panel && panel < job->to_panel;
        for (int row = 0; is_wanted && row < job->n_upper; row += TALL_2)
            for (int lower = 0; lower < TALL_2; lower += tall)
                split_blocks[job->to.end][wide](job, &ahead, row + lower, b, first);
        b += (int64_t)job->depth * wide * LANES;
        first += wide * LANES;
        left -= wide;
    }
}

LANES_INLINE void put_sum(const struct tdmi_gemm_split_sums *job, int which, int64_t at, lanes a)
{
    lanes_store(job->to + which * job->to_product + at, a);
}

/* Scratch rows have room for whole vectors. */
static void split_sums(const struct tdmi_gemm_split_sums *job)
{
    for (int i = 0; i < job->n_upper; i++) {
        const bool has_lower = i < job->n_lower;
        const float *upper = job->from + i * job->from_row, *lower = upper + job->lower;
        for (int c = 0; c < job->half; c += LANES) {
            const int part = job->half - c < LANES ? job->half - c : LANES;
            const int64_t at = i * job->to_row + c;
            const lanes a11 = load(upper + c, part), a12 = load(upper + job->half + c, part);
            const lanes a21 = has_lower ? load(lower + c, part) : lanes_all(0.0f);
            const lanes a22 = has_lower ? load(lower + job->half + c, part) : lanes_all(0.0f);
            put_sum(job, 0, at, lanes_add(a11, a22));
            put_sum(job, 1, at, lanes_add(a21, a22));
            put_sum(job, 2, at, lanes_add(a11, a12));
            put_sum(job, 3, at, lanes_sub(a21, a11));
            put_sum(job, 4, at, lanes_sub(a12, a22));
            if (job->copies) {
                put_sum(job, 5, at, a11);
                put_sum(job, 6, at, a22);
            }
        }
    }
}

#define SPLIT split, split_sums
#else
#define SPLIT NULL, NULL
#endif
