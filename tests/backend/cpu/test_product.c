/* The matrix product of the reference backend against a double loop over its definition. */
#include "backend/ref/ref.h"
#include "base/hash/rng.h"
#include "unit.h"

#include <math.h>

enum { seed = 11 };

struct product_case {
    int rows, columns, depth;
    int a_gap, b_gap, c_gap; /* added to the least possible row strides */
    bool is_transposed;      /* a is stored column by column */
};

static float *filled(int64_t n, uint64_t stream)
{
    float *values = malloc(sizeof *values * (size_t)(n + 1));
    assert_non_null(values);
    tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_TEST, 0, stream);
    for (int64_t i = 0; i < n; i++)
        values[i] = tdmi_rng_uniform(&rng, -1.0f, 1.0f);
    return values;
}

/* c[m][n] as one chain of f32 additions in the order of k: the promise is the very bits. */
static float chain(const struct tdmi_product *p, const float *c, int m, int n)
{
    float sum = c[m * p->c_row + n];
    for (int k = 0; k < p->depth; k++) {
        volatile float term =
            p->a[m * p->a_row + k * p->a_column] * p->b[k * p->b_row + n]; /* never fused */
        sum += term;
    }
    return sum;
}

static void check(struct product_case it)
{
    int64_t a_minor = it.is_transposed ? it.rows : it.depth;
    int64_t a_major = it.is_transposed ? it.depth : it.rows;
    int64_t a_stride = a_minor + it.a_gap;
    struct tdmi_product p = {
        .rows = it.rows,
        .columns = it.columns,
        .depth = it.depth,
        .a_row = it.is_transposed ? 1 : a_stride,
        .a_column = it.is_transposed ? a_stride : 1,
        .b_row = it.columns + it.b_gap,
        .c_row = it.columns + it.c_gap,
    };
    int64_t n_c = it.rows * p.c_row;
    float *a = filled(a_major * a_stride, 1), *b = filled(it.depth * p.b_row, 2);
    float *c = filled(n_c, 3), *before = filled(n_c, 3);
    p.a = a;
    p.b = b;
    p.c = c;
    tdmi_ref_multiply_add(&p);
    for (int m = 0; m < it.rows; m++) {
        for (int64_t n = 0; n < p.c_row; n++) {
            float wanted = n < it.columns ? chain(&p, before, m, (int)n) : before[m * p.c_row + n];
            if (memcmp(&c[m * p.c_row + n], &wanted, sizeof wanted) != 0)
                fail_msg("%d x %d x %d, gaps %d %d %d: c[%d][%d] is %.9g, wanted %.9g", it.rows,
                         it.columns, it.depth, it.a_gap, it.b_gap, it.c_gap, m, (int)n,
                         (double)c[m * p.c_row + n], (double)wanted);
        }
    }
    free(a);
    free(b);
    free(c);
    free(before);
}

TEST(every_small_size_gives_the_bits_of_its_definition)
{
    for (int rows = 1; rows <= 9; rows++)
        for (int columns = 1; columns <= 41; columns += columns < 8 ? 1 : 3)
            for (int depth = 0; depth <= 5; depth++)
                check((struct product_case){rows, columns, depth, 0, 0, 0, false});
}

TEST(strides_and_gaps_are_kept)
{
    for (int i = 0; i < 400; i++) {
        tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_TEST, 1, (uint64_t)i);
        struct product_case it;
        it.rows = 1 + (int)tdmi_rng_below(&rng, 20);
        it.columns = 1 + (int)tdmi_rng_below(&rng, 100);
        it.depth = (int)tdmi_rng_below(&rng, 40);
        it.a_gap = (int)tdmi_rng_below(&rng, 4);
        it.b_gap = (int)tdmi_rng_below(&rng, 4);
        it.c_gap = (int)tdmi_rng_below(&rng, 4);
        it.is_transposed = tdmi_rng_below(&rng, 2);
        check(it);
    }
}

/* Convolution reads windows of a row that overlap: rows of a shorter than its depth. */
TEST(rows_of_a_may_overlap)
{
    enum { rows = 7, columns = 5, depth = 9, step = 3 };
    float *a = filled(rows * step + depth, 1), *b = filled(depth * columns, 2);
    float c[rows * columns] = {0};
    tdmi_ref_multiply_add(&(struct tdmi_product){.rows = rows,
                                                 .columns = columns,
                                                 .depth = depth,
                                                 .a = a,
                                                 .a_row = step,
                                                 .a_column = 1,
                                                 .b = b,
                                                 .b_row = columns,
                                                 .c = c,
                                                 .c_row = columns});
    for (int m = 0; m < rows; m++) {
        for (int n = 0; n < columns; n++) {
            double wanted = 0.0;
            for (int k = 0; k < depth; k++)
                wanted += (double)a[m * step + k] * (double)b[k * columns + n];
            assert_true(fabs((double)c[m * columns + n] - wanted) < 1e-5);
        }
    }
    free(a);
    free(b);
}

TEST(transposing_exchanges_rows_and_columns)
{
    static const int sizes[][2] = {{1, 1}, {1, 7}, {7, 1}, {3, 5}, {16, 33}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        int rows = sizes[s][0], columns = sizes[s][1];
        float *from = filled(rows * columns, 1), *to = filled(rows * columns, 2);
        tdmi_ref_transpose(from, rows, columns, to);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                assert_true(to[j * rows + i] == from[i * columns + j]);
        free(from);
        free(to);
    }
}

TEST_MAIN(NULL, NULL)
