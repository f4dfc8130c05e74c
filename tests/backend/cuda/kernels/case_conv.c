/* conv.cu in every type, against sums in double: groups, strides, dilation, padding on one side
 * alone, one pixel, chunks of pixels, and a launch that no machine here could run whole. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/conv/conv.h"

#include <sys/mman.h>

struct shape {
    int h, w, in, out, n, kernel, stride, dilation, groups, top, bottom, left, right;
};

static const struct shape shapes[] = {
    {7, 5, 3, 6, 2, 3, 1, 1, 1, 1, 1, 1, 1},   {8, 8, 4, 70, 1, 1, 1, 1, 1, 0, 0, 0, 0},
    {9, 7, 6, 4, 2, 3, 2, 1, 2, 0, 1, 0, 1},   {9, 9, 5, 5, 1, 3, 1, 2, 5, 2, 2, 2, 2},
    {1, 1, 3, 2, 3, 1, 1, 1, 1, 0, 0, 0, 0},   {6, 6, 2, 3, 1, 5, 3, 1, 1, 2, 1, 3, 0},
    {5, 5, 2, 2, 2, 1, 2, 1, 1, 0, 0, 0, 0},   {23, 29, 3, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {4, 4, 130, 3, 2, 2, 1, 1, 1, 0, 1, 0, 1},
};

enum { n_shapes = sizeof shapes / sizeof shapes[0] };

static struct tdmi_cuda_conv conv_of(const struct shape *s, enum tdmi_dtype type)
{
    const int reach = s->dilation * (s->kernel - 1) + 1;
    return (struct tdmi_cuda_conv){
        .type = type,
        .in = {s->h, s->w, s->in},
        .out = {(s->h + s->top + s->bottom - reach) / s->stride + 1,
                (s->w + s->left + s->right - reach) / s->stride + 1, s->out},
        .n = s->n,
        .kernel = s->kernel,
        .stride = s->stride,
        .dilation = s->dilation,
        .groups = s->groups,
        .pad_top = s->top,
        .pad_left = s->left,
    };
}

/* In double, with the sizes of what was added: how far rounding may go. */
struct wanted {
    double *y, *dx, *dw, *y_size, *dx_size, *dw_size;
};

static double *doubles(int64_t n)
{
    double *values = calloc((size_t)n, sizeof *values);
    assert_non_null(values);
    return values;
}

static void add(double *sum, double *size, int64_t at, double term)
{
    sum[at] += term;
    size[at] += fabs(term);
}

/* Every product of a convolution once, for all three. */
static void walk(const struct tdmi_cuda_conv *c, const void *x, const void *dy, const float *w,
                 const struct wanted *to)
{
    const int deep = c->in.c / c->groups, wide = c->out.c / c->groups;
    const int64_t n_out = (int64_t)c->n * c->out.h * c->out.w * c->out.c;
    for (int64_t o = 0; o < n_out; o++) {
        const int co = (int)(o % c->out.c), ox = (int)(o / c->out.c % c->out.w);
        const int oy = (int)(o / c->out.c / c->out.w % c->out.h);
        const int64_t image = o / c->out.c / c->out.w / c->out.h;
        for (int64_t k = 0; k < (int64_t)c->kernel * c->kernel * deep; k++) {
            const int tap = (int)(k / deep);
            const int iy = oy * c->stride - c->pad_top + tap / c->kernel * c->dilation;
            const int ix = ox * c->stride - c->pad_left + tap % c->kernel * c->dilation;
            if (iy < 0 || iy >= c->in.h || ix < 0 || ix >= c->in.w)
                continue;
            const int64_t i =
                ((image * c->in.h + iy) * c->in.w + ix) * c->in.c + co / wide * deep + k % deep;
            const int64_t at = k * c->out.c + co;
            const double of_x = value_at(x, c->type, i), of_dy = value_at(dy, c->type, o);
            add(to->y, to->y_size, o, of_x * (double)w[at]);
            add(to->dx, to->dx_size, i, of_dy * (double)w[at]);
            add(to->dw, to->dw_size, at, of_x * of_dy);
        }
    }
}

static void run(const struct shape *s, enum tdmi_dtype type)
{
    const struct tdmi_cuda_conv c = conv_of(s, type);
    const int64_t n_in = c.n * tdmi_shape_values(c.in), n_out = c.n * tdmi_shape_values(c.out);
    const int64_t n_w = (int64_t)s->kernel * s->kernel * (s->in / s->groups) * s->out;
    const size_t room = tdmi_cuda_conv_workspace_bytes(&c);
    const struct wanted wanted = {doubles(n_out), doubles(n_in), doubles(n_w),
                                  doubles(n_out), doubles(n_in), doubles(n_w)};
    void *blocks[8];
    void *x = tensor(type, n_in, 3, 1, &blocks[0]), *dy = tensor(type, n_out, 1, 2, &blocks[1]);
    void *y = tensor(type, n_out, 1, 0, &blocks[2]), *dx = tensor(type, n_in, 5, 0, &blocks[3]);
    float *w = tensor(TDMI_DTYPE_F32, n_w, 1, 3, &blocks[4]);
    float *bias = tensor(TDMI_DTYPE_F32, s->out, 0, 4, &blocks[5]);
    float *dw = tensor(TDMI_DTYPE_F32, n_w, 0, 0, &blocks[6]);
    void *workspace = tensor(TDMI_DTYPE_F32, (int64_t)(room / sizeof(float)) + 1, 0, 0, &blocks[7]);
    assert_int_equal(tdmi_cuda_conv_forward(NULL, &c, x, w, bias, y), 0);
    assert_int_equal(tdmi_cuda_conv_data_gradient(NULL, &c, dy, w, NULL, dx), 0);
    assert_int_equal(tdmi_cuda_conv_weight_gradient(NULL, &c, x, dy, dw, workspace), 0);
    walk(&c, x, dy, w, &wanted);
    for (int64_t i = 0; i < n_out; i++) {
        const double value = wanted.y[i] + (double)bias[i % s->out];
        expect_near(value_at(y, type, i), value,
                    step_of(type, fabs(value)) + 1e-5 * wanted.y_size[i], "y", i);
    }
    for (int64_t i = 0; i < n_in; i++)
        expect_near(value_at(dx, type, i), wanted.dx[i],
                    step_of(type, fabs(wanted.dx[i])) + 1e-5 * wanted.dx_size[i], "dx", i);
    for (int in_place = 0; in_place < 2; in_place++) {
        /* what x holds is added, then what that left */
        assert_int_equal(tdmi_cuda_conv_data_gradient(NULL, &c, dy, w, in_place ? dx : x, dx), 0);
        for (int64_t i = 0; i < n_in; i++) {
            const double value = (1 + in_place) * wanted.dx[i] + value_at(x, type, i);
            const double size = 2.0 * wanted.dx_size[i] + fabs(value_at(x, type, i));
            expect_near(value_at(dx, type, i), value, 2.0 * step_of(type, size) + 1e-5 * size,
                        "dx + add", i);
        }
    }
    for (int64_t i = 0; i < n_w; i++)
        expect_near((double)dw[i], wanted.dw[i], 1e-6 + 1e-5 * wanted.dw_size[i], "dw", i);
    for (int i = 0; i < 8; i++)
        tdmi_free(blocks[i]);
    double *const arrays[] = {wanted.y,      wanted.dx,      wanted.dw,
                              wanted.y_size, wanted.dx_size, wanted.dw_size};
    for (int i = 0; i < 6; i++)
        free(arrays[i]);
}

/* The same bits, whatever runs first. */
static void turn_around(const struct shape *s)
{
    const struct tdmi_cuda_conv c = conv_of(s, TDMI_DTYPE_F32);
    const int64_t n_in = c.n * tdmi_shape_values(c.in), n_out = c.n * tdmi_shape_values(c.out);
    const int64_t n_w = (int64_t)s->kernel * s->kernel * (s->in / s->groups) * s->out;
    void *blocks[5];
    float *x = tensor(TDMI_DTYPE_F32, n_in, 0, 1, &blocks[0]);
    float *dy = tensor(TDMI_DTYPE_F32, n_out, 0, 2, &blocks[1]);
    float *dw[2] = {tensor(TDMI_DTYPE_F32, n_w, 0, 0, &blocks[2]),
                    tensor(TDMI_DTYPE_F32, n_w, 0, 0, &blocks[3])};
    void *workspace =
        tensor(TDMI_DTYPE_F32, (int64_t)(tdmi_cuda_conv_workspace_bytes(&c) / sizeof(float)) + 1, 0,
               0, &blocks[4]);
    for (int64_t i = 0; i < n_in; i++)
        x[i] *= 1.0f + 1e-3f * (float)(i % 7); /* so that sums round */
    for (int reversed = 0; reversed < 2; reversed++) {
        tdmi_shim_use((struct tdmi_shim_way){.is_reversed = reversed});
        assert_int_equal(tdmi_cuda_conv_weight_gradient(NULL, &c, x, dy, dw[reversed], workspace),
                         0);
    }
    assert_memory_equal(dw[0], dw[1], sizeof(float) * (size_t)n_w);
    for (int i = 0; i < 5; i++)
        tdmi_free(blocks[i]);
}

static float *reserve(int64_t n)
{
    void *memory = mmap(NULL, sizeof(float) * (size_t)n, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

/* 3 · 2³⁰ values: only the first and last blocks run, on memory that is never touched elsewhere. */
static void run_huge(void)
{
    const struct tdmi_cuda_conv c = {.type = TDMI_DTYPE_F32,
                                     .in = {1024, 1024, 3},
                                     .out = {1024, 1024, 3},
                                     .n = 1024,
                                     .kernel = 1,
                                     .stride = 1,
                                     .dilation = 1,
                                     .groups = 1};
    const int64_t n = c.n * tdmi_shape_values(c.in);
    static const float w[9] = {2, 0, 0, 0, 2, 0, 0, 0, 2};
    float *x = reserve(n), *y = reserve(n);
    x[0] = 3.0f;
    x[n - 1] = 5.0f;
    tdmi_shim_use((struct tdmi_shim_way){.edge_blocks = 2});
    assert_int_equal(tdmi_cuda_conv_forward(NULL, &c, x, w, NULL, y), 0);
    expect_near((double)y[0], 6.0, 0.0, "y", 0);
    expect_near((double)y[n - 1], 10.0, 0.0, "y", n - 1);
    assert_true(tdmi_shim_facts().largest_grid == 1 << 25);
    assert_int_equal(munmap(x, sizeof *x * (size_t)n), 0);
    assert_int_equal(munmap(y, sizeof *y * (size_t)n), 0);
}

void case_conv(void **state)
{
    (void)state;
    for (int k = 0; k < n_shapes; k++)
        for (int t = 0; t < n_float_types; t++) {
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = (k + t) % 2 == 1});
            run(&shapes[k], float_types[t]);
        }
    turn_around(&shapes[7]);
    run_huge();
}
