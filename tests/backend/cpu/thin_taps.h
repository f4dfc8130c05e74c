/*
 * Thin convolutions by their definition in double: every tap of every output, and the gradients
 * that follow from it.
 */
#ifndef TANDEM_TESTS_BACKEND_CPU_THIN_TAPS_H
#define TANDEM_TESTS_BACKEND_CPU_THIN_TAPS_H

#include "backend/cpu/conv/conv_thin.h"
#include "base/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* Noise between -1 and 1, or NaN for what is to be written. */
static float *values(size_t n, bool is_nothing)
{
    static uint32_t state = 7;
    float *made = tdmi_alloc_aligned((n + 1) * sizeof *made);
    assert_non_null(made);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        made[i] = is_nothing ? NAN : (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return made;
}

/* size: what the sum's terms add up to without their signs */
static void near(const struct tdmi_conv_thin *conv, int n, const char *what, size_t at, double got,
                 double wanted, double size)
{
    if (!(fabs(got - wanted) <= 2e-6 * (1 + size)))
        fail_msg("%s[%zu] of %d pictures of %d×%d×%d, %d out, kernel %d, pool %d is %.9g, wanted "
                 "%.9g",
                 what, at, n, conv->h, conv->w, conv->in, conv->out, conv->kernel, conv->pool, got,
                 wanted);
}

/* What one output sees: visit every tap inside of the picture. */
typedef void visitor(void *self, size_t x, size_t w, size_t y);

static void visit(const struct tdmi_conv_thin *conv, int n, visitor *tap, void *self)
{
    size_t y = 0;
    for (int i = 0; i < n; i++)
        for (int row = 0; row < conv->out_h; row++)
            for (int column = 0; column < conv->out_w; column++)
                for (int o = 0; o < conv->out; o++, y++)
                    for (int t = 0; t < conv->kernel * conv->kernel * conv->in; t++) {
                        int at_y = row - conv->top + t / conv->in / conv->kernel;
                        int at_x = column - conv->left + t / conv->in % conv->kernel;
                        if (at_y < 0 || at_y >= conv->h || at_x < 0 || at_x >= conv->w)
                            continue;
                        size_t pixel = (size_t)((i * conv->h + at_y) * conv->w + at_x);
                        tap(self, pixel * (size_t)conv->in + (size_t)(t % conv->in),
                            (size_t)(t * conv->out + o), y);
                    }
}

/* dx NULL: not wanted */
struct gradients {
    const float *x, *w;
    const double *g; /* of what the convolution gives */
    const float *dx, *dw, *dbias;
};

/* Sums of products and of their sizes. */
struct wanted {
    const struct gradients *of;
    double *dx, *dw;
};

static void add_backward(void *self, size_t x, size_t w, size_t y)
{
    struct wanted *it = self;
    double by_w = it->of->g[y] * (double)it->of->w[w], by_x = it->of->g[y] * (double)it->of->x[x];
    it->dx[2 * x] += by_w;
    it->dx[2 * x + 1] += fabs(by_w);
    it->dw[2 * w] += by_x;
    it->dw[2 * w + 1] += fabs(by_x);
}

static void check_gradients(const struct tdmi_conv_thin *conv, int n, const struct gradients *it)
{
    const size_t out = (size_t)conv->out;
    const size_t ins = (size_t)(n * conv->h * conv->w * conv->in);
    const size_t outs = (size_t)(n * conv->out_h * conv->out_w) * out;
    const size_t weights = (size_t)(conv->kernel * conv->kernel * conv->in) * out;
    struct wanted wanted = {it, tdmi_alloc(2 * ins, sizeof(double)),
                            tdmi_alloc(2 * weights, sizeof(double))};
    assert_true(wanted.dx && wanted.dw);
    visit(conv, n, add_backward, &wanted);
    for (size_t i = 0; it->dx && i < ins; i++)
        near(conv, n, "dx", i, (double)it->dx[i], wanted.dx[2 * i], wanted.dx[2 * i + 1]);
    for (size_t i = 0; i < weights; i++)
        near(conv, n, "dweights", i, (double)it->dw[i], wanted.dw[2 * i], wanted.dw[2 * i + 1]);
    for (size_t o = 0; o < out; o++) {
        double sum = 0, size = 0;
        for (size_t i = o; i < outs; i += out) {
            sum += it->g[i];
            size += fabs(it->g[i]);
        }
        near(conv, n, "dbias", o, (double)it->dbias[o], sum, size);
    }
    tdmi_free(wanted.dx);
    tdmi_free(wanted.dw);
}

#endif
