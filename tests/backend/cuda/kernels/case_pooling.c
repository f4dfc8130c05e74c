/* pooling.cu: pools and their gradients against the definition, ties among them. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/pooling.h"

struct tensors {
    struct tdmi_cuda_window shape;
    int64_t n_x, n_y;
    void *x, *y, *dy, *dx, *winners;
    void *blocks[5];
    double *y_wanted, *dx_wanted;
};

static void make(struct tensors *it, int off)
{
    const struct tdmi_cuda_window *s = &it->shape;
    it->n_x = s->n * s->h * s->w * s->channels;
    it->n_y = s->n * s->out_h * s->out_w * s->channels;
    it->x = tensor(s->type, it->n_x, off, 1, &it->blocks[0]);
    it->y = tensor(s->type, it->n_y, off, 0, &it->blocks[1]);
    it->dy = tensor(s->type, it->n_y, off, 2, &it->blocks[2]);
    it->dx = tensor(s->type, it->n_x, off, 0, &it->blocks[3]);
    it->winners = tensor(TDMI_DTYPE_F32, (it->n_y + 3) / 4, 0, 0, &it->blocks[4]);
    it->y_wanted = tdmi_alloc((size_t)it->n_y, sizeof(double));
    it->dx_wanted = tdmi_alloc((size_t)it->n_x, sizeof(double));
    assert_non_null(it->y_wanted);
    assert_non_null(it->dx_wanted);
    for (int64_t i = 0; i < it->n_x; i += 3) /* equals beside each other, and below */
        put_value(it->x, s->type, i, i % 2 == 0 ? 7.5f : -7.5f);
}

static void drop(struct tensors *it)
{
    for (int k = 0; k < 5; k++)
        tdmi_free(it->blocks[k]);
    tdmi_free(it->y_wanted);
    tdmi_free(it->dx_wanted);
}

/* Where a tap of output value i lies in x; -1: padding. */
static int64_t seen(const struct tdmi_cuda_window *s, int64_t i, int tap)
{
    const int64_t c = i % s->channels, pixel = i / s->channels, column = pixel % s->out_w;
    const int64_t row = pixel / s->out_w % s->out_h, picture = pixel / s->out_w / s->out_h;
    const int64_t y = row * s->stride + tap / s->kernel - s->top;
    const int64_t x = column * s->stride + tap % s->kernel - s->left;
    const bool is_inside = y >= 0 && y < s->h && x >= 0 && x < s->w;
    return is_inside ? ((picture * s->h + y) * s->w + x) * s->channels + c : -1;
}

static void look(const struct tensors *it, const char *y_name, const char *dx_name)
{
    const enum tdmi_dtype type = it->shape.type;
    for (int64_t i = 0; i < it->n_y; i++)
        expect_near(value_at(it->y, type, i), it->y_wanted[i],
                    step_of(type, fabs(it->y_wanted[i])) + 1e-6, y_name, i);
    for (int64_t i = 0; i < it->n_x; i++)
        expect_near(value_at(it->dx, type, i), it->dx_wanted[i],
                    step_of(type, fabs(it->dx_wanted[i])) + 1e-5, dx_name, i);
}

static void maxima(struct tensors *it, bool keeps_winners)
{
    const struct tdmi_cuda_window *s = &it->shape;
    const uint8_t *winners = it->winners;
    memset(it->dx_wanted, 0, sizeof(double) * (size_t)it->n_x);
    for (int64_t i = 0; i < it->n_y; i++) {
        int64_t best = -1;
        for (int tap = 0; tap < s->kernel * s->kernel; tap++) {
            const int64_t at = seen(s, i, tap);
            if (at >= 0 &&
                (best < 0 || value_at(it->x, s->type, at) > value_at(it->x, s->type, best)))
                best = at;
        }
        it->y_wanted[i] = value_at(it->x, s->type, best);
        it->dx_wanted[best] += value_at(it->dy, s->type, i);
    }
    assert_int_equal(tdmi_cuda_pool_max(NULL, s, it->x, it->y, keeps_winners ? it->winners : NULL),
                     0);
    if (keeps_winners)
        assert_int_equal(tdmi_cuda_pool_max_gradient(NULL, s, it->dy, winners, it->dx), 0);
    look(it, "maximum", "gradient of maxima");
}

static void means(struct tensors *it, bool counts_padding)
{
    struct tdmi_cuda_window *s = &it->shape;
    s->counts_padding = counts_padding;
    memset(it->dx_wanted, 0, sizeof(double) * (size_t)it->n_x);
    for (int64_t i = 0; i < it->n_y; i++) {
        int n = 0;
        double sum = 0.0;
        for (int tap = 0; tap < s->kernel * s->kernel; tap++) {
            const int64_t at = seen(s, i, tap);
            n += at >= 0;
            sum += at >= 0 ? value_at(it->x, s->type, at) : 0.0;
        }
        n = counts_padding ? s->kernel * s->kernel : n;
        it->y_wanted[i] = sum / n;
        for (int tap = 0; tap < s->kernel * s->kernel; tap++)
            if (seen(s, i, tap) >= 0)
                it->dx_wanted[seen(s, i, tap)] += value_at(it->dy, s->type, i) / n;
    }
    assert_int_equal(tdmi_cuda_pool_average(NULL, s, it->x, it->y), 0);
    assert_int_equal(tdmi_cuda_pool_average_gradient(NULL, s, it->dy, it->dx), 0);
    look(it, "mean", "gradient of means");
}

static void whole(enum tdmi_dtype type, int64_t n, int pixels, int channels, int off)
{
    struct tensors it = {.shape = {type, n, pixels, 1, channels, 1, 1, 1, 1, 1, 0, 0, false}};
    make(&it, off);
    memset(it.y_wanted, 0, sizeof(double) * (size_t)it.n_y);
    for (int64_t i = 0; i < it.n_x; i++) {
        const int64_t at = i / channels / pixels * channels + i % channels;
        it.y_wanted[at] += value_at(it.x, type, i) / pixels;
        it.dx_wanted[i] = value_at(it.dy, type, at) / pixels;
    }
    assert_int_equal(tdmi_cuda_pool_all(NULL, type, n, pixels, channels, it.x, it.y), 0);
    assert_int_equal(tdmi_cuda_pool_all_gradient(NULL, type, n, pixels, channels, it.dy, it.dx), 0);
    look(&it, "mean of a picture", "its gradient");
    drop(&it);
}

void case_pooling(void **state)
{
    static const struct {
        struct tdmi_cuda_window shape;
        int off;
    } cases[] = {
        {{0, 3, 6, 8, 16, 3, 4, 2, 2, 1, 0, 0, false}, 0},
        {{0, 2, 9, 8, 8, 5, 4, 3, 2, 1, 1, 1, false}, 0},
        {{0, 2, 9, 8, 8, 5, 4, 3, 2, 1, 1, 1, false}, 1},
        {{0, 2, 5, 6, 5, 5, 6, 3, 1, 1, 1, 1, false}, 0},
        {{0, 1, 7, 5, 24, 2, 2, 2, 3, 1, 0, 0, false}, 0}, /* pixels that no window sees */
        {{0, 2, 6, 5, 3, 3, 4, 3, 2, 1, 0, 2, false}, 0},
        {{0, 1, 1, 1, 136, 1, 1, 3, 1, 1, 1, 1, false}, 0},
        {{0, 1, 15, 15, 8, 1, 1, 15, 1, 1, 0, 0, false}, 0}, /* winners up to 224 */
    };
    (void)state;
    for (int t = 0; t < n_float_types; t++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            struct tensors it = {.shape = cases[k].shape};
            it.shape.type = float_types[t];
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = k % 2 == 1});
            make(&it, cases[k].off);
            maxima(&it, true);
            maxima(&it, false);
            means(&it, false);
            means(&it, true);
            drop(&it);
        }
    for (int t = 0; t < n_float_types; t++) {
        whole(float_types[t], 3, 49, 24, 0);
        whole(float_types[t], 2, 100, 2056, 0);
        whole(float_types[t], 1, 1, 7, 0);
        whole(float_types[t], 5, 17, 16, 1);
        whole(float_types[t], 1, 9000, 3, 0);
    }
}
