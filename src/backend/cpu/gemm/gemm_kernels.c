/*
 * The matrix products, written once for every instruction set (isa.h): blocks of the result of
 * TALL rows by up to four vectors, as many as there are registers for. The whole loop over a block
 * is compiled for each of its shapes; blocks of full height also do what follows in registers,
 * the lower ones at the end of a line go through a small tile in memory.
 */
#include "backend/cpu/gemm/gemm_end_body.h"
#include "backend/cpu/gemm/gemm_half_body.h"

enum { MAX_TALL = 14, MAX_WIDE = 4 };

/* Rows of a block, by its vectors: sums, the vectors of B and one value of A fit in 32 registers
 * with AVX-512, in 16 with AVX2. */
#if defined(__AVX512F__)
enum { TALL_1 = 14, TALL_2 = 14, TALL_3 = 9, TALL_4 = 7 };
#elif defined(__AVX2__)
enum { TALL_1 = 6, TALL_2 = 6, TALL_3 = 4, TALL_4 = 3 };
#else
enum { TALL_1 = 4, TALL_2 = 4, TALL_3 = 2, TALL_4 = 2 };
#endif

/* Keeps the compiler from taking a distance apart again: x86 addresses reach rows 0 to 6 from one
 * base with three distances in registers, and fourteen bases would not fit. */
#define OPAQUE(value) __asm__("" : "+r"(value))

/* ---- what the next job reads
 * --------------------------------------------------------------------- */

/* A block asks for some of it every so many steps of the depth: more at once would have to wait. */
enum { DEPTH_STEP = 64 };

struct ahead {
    const struct tdmi_gemm_ahead *ranges; /* TDMI_GEMM_AHEAD of them */
    int range;
    int64_t at;       /* floats into it */
    int64_t per_step; /* lines */
};

static struct ahead ahead_of(const struct tdmi_gemm_ahead *ranges, int64_t n_steps)
{
    int64_t lines = 0;
    for (int i = 0; i < TDMI_GEMM_AHEAD; i++)
        lines += ranges[i].at ? ranges[i].floats / TDMI_GEMM_ROUND + 1 : 0;
    return (struct ahead){ranges, 0, 0, n_steps > 0 ? (lines + n_steps - 1) / n_steps : 0};
}

LANES_INLINE void look_ahead(struct ahead *ahead)
{
    for (int64_t i = 0; i < ahead->per_step && ahead->range < TDMI_GEMM_AHEAD; i++) {
        const struct tdmi_gemm_ahead *range = &ahead->ranges[ahead->range];
        if (!range->at || ahead->at >= range->floats) {
            ahead->range++;
            ahead->at = 0;
            continue;
        }
        lanes_prefetch(range->at + ahead->at);
        ahead->at += TDMI_GEMM_ROUND;
    }
}

/* ---- the loop over the depth ------------------------------------------------------------------
 */

LANES_INLINE float left_value(const char *base, int64_t once, int64_t thrice, int64_t five_times,
                              const int row)
{
    int64_t at = row == 0   ? 0
                 : row == 1 ? once
                 : row == 2 ? 2 * once
                 : row == 3 ? thrice
                 : row == 4 ? 4 * once
                 : row == 5 ? five_times
                            : 2 * thrice;
    return *(const float *)(const void *)(base + at);
}

/* sums += a · b over depth steps: rows of a lie a_row apart, its next value a_step further on. With
 * is_outer rows lie side by side. */
LANES_INLINE void multiply(lanes sums[MAX_TALL][MAX_WIDE], const float *a, int64_t a_row,
                           int64_t a_step, const float *b, int64_t b_step, int depth,
                           const bool is_outer, const int tall, const int wide)
{
    const char *low = (const char *)a;
    int64_t once = a_row * (int64_t)sizeof(float), thrice = 3 * once, five_times = 5 * once;
    const char *high = low + 7 * once;
    if (!is_outer && tall > 3)
        OPAQUE(thrice);
    if (!is_outer && tall > 5)
        OPAQUE(five_times);
    if (!is_outer && tall > 7)
        OPAQUE(high);
    UNROLL_BY(2)
    for (int k = 0; k < depth; k++) {
        lanes right[MAX_WIDE];
        EACH_OF (j, wide)
            right[j] = lanes_load(b + j * LANES);
        EACH_OF (i, tall) {
            float value;
            if (is_outer)
                value = a[i];
            else
                value = left_value(i < 7 ? low : high, once, thrice, five_times, i % 7);
            lanes left = lanes_all(value);
            EACH_OF (j, wide)
                sums[i][j] = lanes_multiply_add(left, right[j], sums[i][j]);
        }
        if (is_outer) {
            a += a_step;
        } else {
            low += sizeof(float);
            high += sizeof(float);
        }
        b += b_step;
    }
}

LANES_INLINE void clear(lanes sums[MAX_TALL][MAX_WIDE], const int tall, const int wide)
{
    EACH_PAIR (i, tall, j, wide)
        sums[i][j] = lanes_all(0.0f);
}

/* a: floats from the first row of C to this block's; b: its panel */
LANES_INLINE void multiply_segments(const struct tdmi_gemm_rows *job, struct ahead *ahead,
                                    int64_t a, const float *b, lanes sums[MAX_TALL][MAX_WIDE],
                                    const int tall, const int wide)
{
    clear(sums, tall, wide);
    for (int s = 0; s < job->n_segments; s++) {
        const struct tdmi_gemm_segment *segment = &job->segments[s];
        const float *from = segment->a + a, *by = b + (int64_t)segment->first * wide * LANES;
        for (int left = segment->depth; left > 0; left -= DEPTH_STEP) {
            look_ahead(ahead);
            multiply(sums, from, job->a_row, 1, by, wide * LANES,
                     left < DEPTH_STEP ? left : DEPTH_STEP, false, tall, wide);
            from += DEPTH_STEP;
            by += DEPTH_STEP * wide * LANES;
        }
    }
}

LANES_INLINE void multiply_lines(const struct tdmi_gemm_outer *job, struct ahead *ahead,
                                 const float *a, const float *b, lanes sums[MAX_TALL][MAX_WIDE],
                                 const int tall, const int wide)
{
    clear(sums, tall, wide);
    for (int image = 0; image < job->n_images; image++)
        for (int line = 0; line < job->n_lines; line++) {
            const float *from = a + image * job->a_image + line * job->a_line;
            const float *by = b + image * job->b_image + line * job->b_line;
            for (int left = job->n_pixels; left > 0; left -= DEPTH_STEP) {
                look_ahead(ahead);
                multiply(sums, from, 0, job->a_pixel, by, job->b_pixel,
                         left < DEPTH_STEP ? left : DEPTH_STEP, true, tall, wide);
                from += DEPTH_STEP * job->a_pixel;
                by += DEPTH_STEP * job->b_pixel;
            }
        }
}

/* ---- blocks ------------------------------------------------------------------------------------
 */

/* Finish a tile in memory with any end: for rare cases and low blocks. */
static void finish_tile(const struct tdmi_gemm_rows *job, const float *tile, int64_t c, int first,
                        int tall, int wide, int64_t piece)
{
    for (int j = 0; j < wide; j++) {
        struct column column = column_at(job, (int)job->end, first + j * LANES);
        for (int i = 0; i < tall; i++)
            finish(job, (int)job->end, &column, c + i * job->c_row + j * LANES,
                   lanes_load(tile + (i * wide + j) * LANES));
        add_sums(job, (int)job->end, &column, first + j * LANES, piece);
    }
}

LANES_INLINE void to_tile(lanes sums[MAX_TALL][MAX_WIDE], float *tile, const int tall,
                          const int wide)
{
    EACH_PAIR (i, tall, j, wide)
        lanes_store(tile + (i * wide + j) * LANES, sums[i][j]);
}

LANES_INLINE void to_whole(const struct tdmi_gemm_outer *job, lanes sums[MAX_TALL][MAX_WIDE],
                           float *c, const int tall, const int wide)
{
    if (job->adds)
        EACH_PAIR (i, tall, j, wide)
            sums[i][j] = lanes_add(sums[i][j], lanes_load(c + i * job->c_row + j * LANES));
    EACH_PAIR (i, tall, j, wide)
        lanes_store(c + i * job->c_row + j * LANES, sums[i][j]);
}

LANES_INLINE void finish_block(const struct tdmi_gemm_rows *job, const int end, int64_t c,
                               int first, lanes sums[MAX_TALL][MAX_WIDE], const float *add,
                               const bool is_streamed, const int tall, const int wide,
                               int64_t piece)
{
    EACH_OF (j, wide) {
        struct column column = column_at(job, end, first + j * LANES);
        int64_t at = c + j * LANES;
        UNROLL(16)
        for (int i = 0; i < tall; i++, at += job->c_row)
            finish_usual(job, end, &column, at, sums[i][j], add, is_streamed);
        add_sums(job, end, &column, first + j * LANES, piece);
    }
}

/* A gradient of what neither an activation nor a batch norm made. */
LANES_INLINE void finish_plain(const struct tdmi_gemm_rows *job, int64_t c,
                               lanes sums[MAX_TALL][MAX_WIDE], const float *add, const int tall,
                               const int wide)
{
    if (add)
        EACH_PAIR (i, tall, j, wide)
            sums[i][j] = lanes_add(sums[i][j], lanes_load(add + c + i * job->c_row + j * LANES));
    if (job->is_streamed)
        EACH_PAIR (i, tall, j, wide)
            lanes_stream(job->c + c + i * job->c_row + j * LANES, sums[i][j]);
    else
        EACH_PAIR (i, tall, j, wide)
            lanes_store(job->c + c + i * job->c_row + j * LANES, sums[i][j]);
}

/* A block of full height: c is where it begins, first its first column. */
LANES_INLINE void block(const struct tdmi_gemm_rows *job, struct ahead *ahead, const int end,
                        int64_t a, const float *b, int64_t c, int first, const int tall,
                        const int wide, int64_t piece)
{
    lanes sums[MAX_TALL][MAX_WIDE];
    multiply_segments(job, ahead, a, b, sums, tall, wide);
    if (end == TDMI_GEMM_GRADIENT && !job->x && first + wide * LANES <= job->columns) {
        finish_plain(job, c, sums, job->add, tall, wide);
        return;
    }
    if (!is_usual(job, end, first + wide * LANES)) {
        float tile[MAX_TALL * MAX_WIDE * LANES];
        to_tile(sums, tile, tall, wide);
        finish_tile(job, tile, c, first, tall, wide, piece);
        return;
    }
    if (end != TDMI_GEMM_GRADIENT && !added(job, end) && !job->is_streamed)
        finish_block(job, end, c, first, sums, NULL, false, tall, wide, piece);
    else
        finish_block(job, end, c, first, sums, added(job, end), job->is_streamed, tall, wide,
                     piece);
}

#if defined(__AVX512F__)
static void half_block(const struct tdmi_gemm_rows *job, struct ahead *ahead, int64_t a,
                       const float *b, int64_t c, int first)
{
    struct half_sums sums = {0};
    for (int s = 0; s < job->n_segments; s++) {
        const struct tdmi_gemm_segment *segment = &job->segments[s];
        const float *from = segment->a + a, *by = b + (int64_t)segment->first * 2 * LANES;
        for (int left = segment->depth; left > 0; left -= DEPTH_STEP) {
            look_ahead(ahead);
            half_multiply(&sums, from, job->a_row, by, left < DEPTH_STEP ? left : DEPTH_STEP);
            from += DEPTH_STEP;
            by += DEPTH_STEP * 2 * LANES;
        }
    }
    if (added(job, TDMI_GEMM_ACTIVATED))
        half_finish(job, &sums, c, first, job->residual);
    else
        half_finish(job, &sums, c, first, NULL);
}
#endif

/* ---- every shape of a block -------------------------------------------------------------------
 */

#define EACH_TO_2(X, wide) \
    X(1, wide)             \
    X(2, wide)
#define EACH_TO_3(X, wide) EACH_TO_2(X, wide) X(3, wide)
#define EACH_TO_4(X, wide) EACH_TO_3(X, wide) X(4, wide)
#define EACH_TO_6(X, wide)        \
    EACH_TO_4(X, wide) X(5, wide) \
    X(6, wide)
#define EACH_TO_7(X, wide) EACH_TO_6(X, wide) X(7, wide)
#define EACH_TO_9(X, wide)        \
    EACH_TO_7(X, wide) X(8, wide) \
    X(9, wide)
#define EACH_TO_14(X, wide)        \
    EACH_TO_9(X, wide) X(10, wide) \
    X(11, wide)                    \
    X(12, wide)                    \
    X(13, wide)                    \
    X(14, wide)
#if defined(__AVX512F__)
#define EACH_OUTER(X) EACH_TO_14(X, 1) EACH_TO_14(X, 2) EACH_TO_9(X, 3)
#define EACH_SHAPE(X) EACH_OUTER(X) EACH_TO_7(X, 4)
#elif defined(__AVX2__)
#define EACH_OUTER(X) EACH_TO_6(X, 1) EACH_TO_6(X, 2) EACH_TO_4(X, 3)
#define EACH_SHAPE(X) EACH_OUTER(X) EACH_TO_3(X, 4)
#else
#define EACH_OUTER(X) EACH_TO_4(X, 1) EACH_TO_4(X, 2) EACH_TO_2(X, 3)
#define EACH_SHAPE(X) EACH_OUTER(X) EACH_TO_2(X, 4)
#endif
#define EACH_PANEL(X) \
    X(TALL_1, 1)      \
    X(TALL_2, 2)      \
    X(TALL_3, 3)      \
    X(TALL_4, 4)

/* Computes the blocks of full height of a panel, one below the other. There is one function for
 * each treatment of the values, because a single function with all loops needs more registers than
 * the CPU has. */
typedef void blocks_function(const struct tdmi_gemm_rows *job, struct ahead *ahead, int64_t a,
                             const float *b, int64_t c, int first, int64_t piece, int64_t n);

#define BLOCKS(name, end, tall, wide)                                                           \
    static void name##_##wide(const struct tdmi_gemm_rows *job, struct ahead *ahead, int64_t a, \
                              const float *b, int64_t c, int first, int64_t piece, int64_t n)   \
    {                                                                                           \
        for (; n > 0; n--, piece++, a += (tall)*job->a_row, c += (tall)*job->c_row)             \
            block(job, ahead, end, a, b, c, first, tall, wide, piece);                          \
    }
#define X(tall, wide)                                         \
    BLOCKS(blocks_raw, TDMI_GEMM_RAW, tall, wide)             \
    BLOCKS(blocks_activated, TDMI_GEMM_ACTIVATED, tall, wide) \
    BLOCKS(blocks_gradient, TDMI_GEMM_GRADIENT, tall, wide)
EACH_PANEL(X)
#undef X

static blocks_function *const blocks[][MAX_WIDE + 1] = {
#define X(tall, wide)                                      \
    [TDMI_GEMM_RAW][wide] = blocks_raw_##wide,             \
    [TDMI_GEMM_ACTIVATED][wide] = blocks_activated_##wide, \
    [TDMI_GEMM_GRADIENT][wide] = blocks_gradient_##wide,
    EACH_PANEL(X)
#undef X
};

typedef void part_function(const struct tdmi_gemm_rows *job, struct ahead *ahead, int64_t a,
                           const float *b, float *tile);

#define X(tall, wide)                                                                       \
    static void part_##tall##_##wide(const struct tdmi_gemm_rows *job, struct ahead *ahead, \
                                     int64_t a, const float *b, float *tile)                \
    {                                                                                       \
        lanes sums[MAX_TALL][MAX_WIDE];                                                     \
        multiply_segments(job, ahead, a, b, sums, tall, wide);                              \
        to_tile(sums, tile, tall, wide);                                                    \
    }
EACH_SHAPE(X)
#undef X

static part_function *const parts[MAX_WIDE + 1][MAX_TALL + 1] = {
#define X(tall, wide) [wide][tall] = part_##tall##_##wide,
    EACH_SHAPE(X)
#undef X
};

/* c: where the block begins, of which every vector is whole; NULL: to the tile. */
typedef void outer_function(const struct tdmi_gemm_outer *job, struct ahead *ahead, const float *a,
                            const float *b, float *c, float *tile);

#define X(tall, wide)                                                                         \
    static void outer_##tall##_##wide(const struct tdmi_gemm_outer *job, struct ahead *ahead, \
                                      const float *a, const float *b, float *c, float *tile)  \
    {                                                                                         \
        lanes sums[MAX_TALL][MAX_WIDE];                                                       \
        multiply_lines(job, ahead, a, b, sums, tall, wide);                                   \
        if (c)                                                                                \
            to_whole(job, sums, c, tall, wide);                                               \
        else                                                                                  \
            to_tile(sums, tile, tall, wide);                                                  \
    }
EACH_OUTER(X)
#undef X

static outer_function *const outers[MAX_WIDE + 1][MAX_TALL + 1] = {
#define X(tall, wide) [wide][tall] = outer_##tall##_##wide,
    EACH_OUTER(X)
#undef X
};

static const int talls[MAX_WIDE + 1] = {0, TALL_1, TALL_2, TALL_3, TALL_4};

/* ---- whole products ---------------------------------------------------------------------------
 */

/* Blocks of one line of one panel; line counts over images. */
static void line_of_panel(const struct tdmi_gemm_rows *job, struct ahead *ahead, int64_t line,
                          int64_t a, const float *b, int64_t c, int first, int wide)
{
    const int64_t tall = talls[wide], at = line * job->n_rows;
    const int64_t from = job->from > at ? job->from - at : 0;
    const int64_t to = job->to == 0 || job->to - at > job->n_rows ? job->n_rows : job->to - at;
    int64_t piece = (from + tall - 1) / tall;
    int64_t row = piece * tall;
    piece += line * ((job->n_rows + tall - 1) / tall);
#if defined(__AVX512F__)
    if (wide == 2 && is_half(job, first))
        for (; row < to && row + tall <= job->n_rows; row += tall)
            half_block(job, ahead, a + row * job->a_row, b, c + row * job->c_row, first);
#endif
    const int64_t last = to < job->n_rows - tall + 1 ? to : job->n_rows - tall + 1;
    const int64_t n = row < last ? (last - row + tall - 1) / tall : 0;
    blocks[job->end][wide](job, ahead, a + row * job->a_row, b, c + row * job->c_row, first, piece,
                           n);
    row += n * tall;
    piece += n;
    if (row < to) {
        float tile[MAX_TALL * MAX_WIDE * LANES];
        const int left = (int)(job->n_rows - row);
        parts[wide][left](job, ahead, a + row * job->a_row, b, tile);
        finish_tile(job, tile, c + row * job->c_row, first, left, wide, piece);
    }
}

/* Nearly. */
static int64_t steps_of(const struct tdmi_gemm_rows *job)
{
    int64_t panels = ((job->columns + LANES - 1) / LANES + job->wide - 1) / job->wide, steps = 0;
    for (int s = 0; s < job->n_segments; s++)
        steps += (job->segments[s].depth + DEPTH_STEP - 1) / DEPTH_STEP;
    return panels * job->n_images * job->n_lines * ((job->n_rows + TALL_2 - 1) / TALL_2) * steps;
}

static void panel(const struct tdmi_gemm_rows *job, struct ahead *ahead, const float *b, int first,
                  int wide)
{
    for (int image = 0; image < job->n_images; image++)
        for (int line = 0; line < job->n_lines; line++)
            line_of_panel(job, ahead, (int64_t)image * job->n_lines + line,
                          image * job->a_image + line * job->a_line, b,
                          image * job->c_image + line * job->c_line + first, first, wide);
}

static void rows(const struct tdmi_gemm_rows *job)
{
    const float *b = job->packed;
    int left = (job->columns + LANES - 1) / LANES, first = 0;
    struct ahead ahead = ahead_of(job->ahead, steps_of(job));
    while (left > 0) {
        const int wide = tdmi_gemm_panel(left, job->wide);
        if (first >= job->from_column && (job->to_column == 0 || first < job->to_column))
            panel(job, &ahead, b, first, wide);
        b += (int64_t)job->depth * wide * LANES;
        first += wide * LANES;
        left -= wide;
    }
    if (job->is_streamed)
        lanes_fence();
}

static void add_tile(const struct tdmi_gemm_outer *job, const float *tile, int row, int first,
                     int tall, int wide)
{
    for (int i = 0; i < tall; i++) {
        float *c = job->c + (row + i) * job->c_row + first;
        for (int j = 0; j < wide; j++, c += LANES) {
            int left = job->columns - first - j * LANES, part = left < LANES ? left : LANES;
            lanes value = lanes_load(tile + (i * wide + j) * LANES);
            if (job->adds)
                value = lanes_add(value, load(c, part));
            if (part == LANES)
                lanes_store(c, value);
            else
                store_part(c, value, part);
        }
    }
}

/* Prefetch C, which may be large and far away, before the block, which takes longer. */
static void prefetch_block(const struct tdmi_gemm_outer *job, int row, int first, int tall,
                           int wide)
{
    for (int i = 0; i < tall; i++)
        for (int j = 0; j < wide * LANES; j += TDMI_GEMM_ROUND)
            lanes_prefetch(job->c + (row + i) * job->c_row + first + j);
}

/* Blocks of nearly equal height: 24 rows are 12 and 12, not 14 and 10. */
static void outer(const struct tdmi_gemm_outer *job)
{
    float tile[MAX_TALL * MAX_WIDE * LANES];
    int left = (job->columns + LANES - 1) / LANES, first = 0;
    struct ahead ahead =
        ahead_of(job->ahead, (int64_t)((left + 1) / 2) * ((job->rows + TALL_2 - 1) / TALL_2) *
                                 job->n_images * job->n_lines *
                                 ((job->n_pixels + DEPTH_STEP - 1) / DEPTH_STEP));
    while (left > 0) {
        int wide = tdmi_gemm_panel(left, 2);
        int n_blocks = (job->rows + talls[wide] - 1) / talls[wide];
        const bool is_whole = first + wide * LANES <= job->columns;
        for (int i = 0, row = 0, tall; i < n_blocks; i++, row += tall) {
            float *c = job->c + row * job->c_row + first;
            tall = (int)((int64_t)job->rows * (i + 1) / n_blocks) - row;
            if (job->adds)
                prefetch_block(job, row, first, tall, wide);
            outers[wide][tall](job, &ahead, job->a + row, job->b + first, is_whole ? c : NULL,
                               tile);
            if (!is_whole)
                add_tile(job, tile, row, first, tall, wide);
        }
        first += wide * LANES;
        left -= wide;
    }
}

/* ---- pixels into scratch memory ----------------------------------------------------------------
 */

/* Without room behind the channels, their neighbours are left alone. */
LANES_INLINE void put_copy(const struct tdmi_gemm_copy *job, float *to, int c, int part,
                           lanes value)
{
    if (c + LANES <= job->to_row)
        lanes_store(to, value);
    else
        lanes_store_part(to, value, part);
}

static void read_form(const struct tdmi_gemm_copy *job, const struct tdmi_read_form *form)
{
    const struct lanes_range range = range_of(form->act);
    enum { TOGETHER = 4 }; /* pixels that share the loads of scale and shift */
    for (int64_t n = 0; n < job->n; n += TOGETHER) {
        int together = job->n - n < TOGETHER ? (int)(job->n - n) : TOGETHER;
        for (int c = 0; c < job->channels; c += LANES) {
            int part = job->channels - c < LANES ? job->channels - c : LANES;
            lanes scale = load_or(form->scale, c, part, 1.0f);
            lanes shift = load_or(form->shift, c, part, 0.0f);
            const float *from = job->from + n * job->from_row + c;
            float *to = job->to + n * job->to_row + c;
            for (int i = 0; i < together; i++, from += job->from_row, to += job->to_row)
                put_copy(job, to, c, part,
                         lanes_clamp(lanes_multiply_add(load(from, part), scale, shift), range.low,
                                     range.high));
        }
    }
}

static void gradient_form(const struct tdmi_gemm_copy *job, const struct tdmi_gradient_form *form)
{
    enum { TOGETHER = 4 };
    for (int64_t n = 0; n < job->n; n += TOGETHER) {
        int together = job->n - n < TOGETHER ? (int)(job->n - n) : TOGETHER;
        for (int c = 0; c < job->channels; c += LANES) {
            int part = job->channels - c < LANES ? job->channels - c : LANES;
            lanes of_g = load_or(form->of_g, c, part, 1.0f);
            lanes of_y = load_or(form->of_y, c, part, 0.0f);
            lanes one = load_or(form->one, c, part, 0.0f);
            int64_t at = n * job->from_row + c;
            float *to = job->to + n * job->to_row + c;
            for (int i = 0; i < together; i++, at += job->from_row, to += job->to_row) {
                lanes dy = lanes_multiply_add(load(job->from + at, part), of_g, one);
                if (form->of_y)
                    dy = lanes_multiply_add(load(job->y + at, part), of_y, dy);
                put_copy(job, to, c, part, dy);
            }
        }
    }
}

#include "backend/cpu/gemm/gemm_split_body.h"

const struct tdmi_gemm_kernels TDMI_THIS_ISA(tdmi_gemm) = {

    LANES, {0, TALL_1, TALL_2, TALL_3, TALL_4}, rows, outer, read_form, gradient_form, SPLIT};
