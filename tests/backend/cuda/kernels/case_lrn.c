/* lrn.cu: windows of odd and even numbers of channels, wider than the picture has too, against the
 * definition in double. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/lrn.h"

static double size_of(const struct tdmi_cuda_lrn *it, const void *x, int64_t pixel, int channel)
{
    double sum = 0.0;
    for (int c = channel - it->kernel / 2; c <= channel + (it->kernel - 1) / 2; c++)
        if (c >= 0 && c < it->channels) {
            const double value = value_at(x, it->type, pixel * it->channels + c);
            sum += value * value;
        }
    return (double)it->offset + (double)it->part * sum;
}

/* What dy of channel j gives to x of channel c, the derivative of y[j] by x[c], in its two terms.
 */
static void slope(const struct tdmi_cuda_lrn *it, const void *x, int64_t pixel, int j, int c,
                  double terms[2])
{
    const double s = size_of(it, x, pixel, j);
    const double own = value_at(x, it->type, pixel * it->channels + j);
    const bool is_in = c >= j - it->kernel / 2 && c <= j + (it->kernel - 1) / 2;
    terms[0] = j == c ? pow(s, -(double)it->beta) : 0.0;
    terms[1] = is_in ? -2.0 * (double)it->part * (double)it->beta * own *
                           value_at(x, it->type, pixel * it->channels + c) *
                           pow(s, -(double)it->beta - 1.0)
                     : 0.0;
}

static void run(enum tdmi_dtype type, int64_t pixels, int channels, int kernel, int off)
{
    const struct tdmi_cuda_lrn it = {type, pixels, channels, kernel, 0.125f, 0.75f, 2.0f};
    const int64_t n = pixels * channels;
    void *blocks[4];
    void *x = tensor(type, n, off, 1, &blocks[0]), *dy = tensor(type, n, off, 2, &blocks[1]);
    void *y = tensor(type, n, off, 0, &blocks[2]), *dx = tensor(type, n, off, 0, &blocks[3]);
    assert_int_equal(tdmi_cuda_lrn_forward(NULL, &it, x, y), 0);
    assert_int_equal(tdmi_cuda_lrn_backward(NULL, &it, x, dy, dx), 0);
    for (int64_t i = 0; i < n; i++) {
        const int64_t pixel = i / channels;
        const int c = (int)(i % channels);
        const double wanted =
            value_at(x, type, i) * pow(size_of(&it, x, pixel, c), -(double)it.beta);
        double back = 0.0, size = 0.0, terms[2];
        for (int j = 0; j < channels; j++) {
            const double of_dy = value_at(dy, type, pixel * channels + j);
            slope(&it, x, pixel, j, c, terms);
            back += of_dy * (terms[0] + terms[1]);
            size += fabs(of_dy) * (fabs(terms[0]) + fabs(terms[1]));
        }
        expect_near(value_at(y, type, i), wanted, step_of(type, fabs(wanted)), "y", i);
        expect_near(value_at(dx, type, i), back, step_of(type, fabs(back)) + 1e-6 * size, "dx", i);
    }
    for (int i = 0; i < 4; i++)
        tdmi_free(blocks[i]);
}

void case_lrn(void **state)
{
    (void)state;
    for (int t = 0; t < n_float_types; t++)
        for (int off = 0; off < 2; off++) {
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = off == 1});
            run(float_types[t], 11, 9, 5, off);
            run(float_types[t], 3, 7, 4, off);
            run(float_types[t], 2, 2, 5, off);
            run(float_types[t], 5, 1, 1, off);
            run(float_types[t], 2, 300, 3, off);
        }
}
