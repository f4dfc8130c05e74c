/* dense.cu in every type, against sums in double: fewer and more rows, columns and depth than a
 * tile has. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/conv/dense.h"

static double limit_of(enum tdmi_dtype type, double value, double size)
{
    return step_of(type, fabs(value)) + 1e-5 * size;
}

/* got[a][b] of Σ over k of left(a, k) · right(k, b), both as strides say. */
struct product {
    int64_t rows, columns, depth, left_row, left_k, right_k, right_column;
};

static void expect_product(const struct product *p, const void *left, enum tdmi_dtype left_type,
                           const void *right, enum tdmi_dtype right_type, const float *bias,
                           const void *got, enum tdmi_dtype type, const char *what)
{
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->columns; j++) {
            double sum = bias ? (double)bias[j] : 0.0, size = fabs(sum);
            for (int64_t k = 0; k < p->depth; k++) {
                const double term =
                    value_at(left, left_type, i * p->left_row + k * p->left_k) *
                    value_at(right, right_type, k * p->right_k + j * p->right_column);
                sum += term;
                size += fabs(term);
            }
            expect_near(value_at(got, type, i * p->columns + j), sum, limit_of(type, sum, size),
                        what, i * p->columns + j);
        }
}

static void run(int n, int64_t in, int64_t out, enum tdmi_dtype type)
{
    const struct tdmi_cuda_dense it = {type, n, in, out};
    const enum tdmi_dtype f32 = TDMI_DTYPE_F32;
    void *blocks[7];
    void *x = tensor(type, n * in, 1, 1, &blocks[0]), *dy = tensor(type, n * out, 3, 2, &blocks[1]);
    void *y = tensor(type, n * out, 1, 0, &blocks[2]), *dx = tensor(type, n * in, 0, 0, &blocks[3]);
    float *w = tensor(f32, in * out, 1, 3, &blocks[4]), *bias = tensor(f32, out, 0, 4, &blocks[5]);
    float *dw = tensor(f32, in * out, 0, 0, &blocks[6]);
    for (int has_bias = 0; has_bias < 2; has_bias++) {
        assert_int_equal(tdmi_cuda_dense_forward(NULL, &it, x, w, has_bias ? bias : NULL, y), 0);
        expect_product(&(struct product){n, out, in, in, 1, out, 1}, x, type, w, f32,
                       has_bias ? bias : NULL, y, type, "y");
    }
    assert_int_equal(tdmi_cuda_dense_data_gradient(NULL, &it, dy, w, dx), 0);
    expect_product(&(struct product){n, in, out, out, 1, 1, out}, dy, type, w, f32, NULL, dx, type,
                   "dx");
    assert_int_equal(tdmi_cuda_dense_weight_gradient(NULL, &it, x, dy, dw), 0);
    expect_product(&(struct product){in, out, n, 1, in, out, 1}, x, type, dy, type, NULL, dw, f32,
                   "dw");
    for (int i = 0; i < 7; i++)
        tdmi_free(blocks[i]);
}

void case_dense(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1},   {3, 5, 2},      {64, 16, 64}, {65, 17, 3},
                                        {2, 700, 5}, {17, 100, 130}, {300, 9, 4}};
    (void)state;
    for (int k = 0; k < 7; k++)
        for (int t = 0; t < n_float_types; t++) {
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = (k + t) % 2 == 1});
            run((int)shapes[k][0], shapes[k][1], shapes[k][2], float_types[t]);
        }
}
