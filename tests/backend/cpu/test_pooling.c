/*
 * Pooling of backend cpu against its definition in double, in every instruction set that is here,
 * with every form, over windows that overlap, leave gaps and hang over the borders.
 */
#include "backend/cpu/pointwise/pooling.h"
#include "base/memory.h"
#include "unit.h"

#include <math.h>

static const struct shape {
    int n, h, w, c, kernel, stride, top, bottom, left, right;
} shapes[] = {
    {2, 8, 8, 6, 2, 2, 0, 0, 0, 0},      {1, 7, 9, 16, 2, 2, 0, 0, 0, 0},
    {2, 9, 7, 17, 3, 2, 1, 1, 1, 1},     {1, 10, 12, 64, 3, 2, 0, 1, 0, 1},
    {3, 5, 5, 1, 3, 1, 1, 1, 1, 1},      {1, 1, 1, 3, 3, 2, 1, 1, 1, 1},
    {2, 11, 6, 45, 2, 3, 0, 0, 0, 0},    {1, 13, 4, 5, 5, 2, 4, 3, 2, 4},
    {1, 6, 6, 1030, 3, 3, 0, 0, 0, 0},   {1, 4, 5, 7, 4, 4, 0, 0, 0, 3},
    {1, 150, 150, 16, 3, 2, 1, 1, 1, 1},
};
enum { n_shapes = sizeof shapes / sizeof *shapes };

struct variant {
    enum tdmi_act act;
    bool has_form, has_add, has_sums, counts_padding;
};

static const struct variant variants[] = {
    {TDMI_ACT_NONE, false, false, false, false}, {TDMI_ACT_RELU, false, true, false, true},
    {TDMI_ACT_RELU, true, false, true, false},   {TDMI_ACT_RELU6, true, true, true, true},
    {TDMI_ACT_NONE, true, true, true, false},
};
enum { n_variants = sizeof variants / sizeof *variants };

struct data {
    const struct shape *shape;
    const struct variant *variant;
    struct tdmi_pooling pool;
    size_t ins, outs, channels;
    float *x, *y, *dy, *dx, *add, *scale, *shift, *centre;
    uint8_t *winners;
    double *sums, *v, *dv; /* v: what is read; dv: its gradient */
    struct tdmi_read_form form;
};

static float *values(size_t n, float low, float high)
{
    static uint32_t state = 7;
    float *made = tdmi_alloc_aligned(n * sizeof *made);
    assert_non_null(made);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        made[i] = low + (high - low) * ((float)(state >> 8) / 16777216.0f);
    }
    return made;
}

static double z_of(const struct data *data, size_t at)
{
    size_t c = at % data->channels;
    double x = (double)data->x[at];
    return data->form.scale ? x * (double)data->scale[c] + (double)data->shift[c] : x;
}

static double activated(const struct data *data, double z)
{
    if (data->variant->act != TDMI_ACT_NONE && z < 0)
        z = 0;
    return data->variant->act == TDMI_ACT_RELU6 && z > 6 ? 6 : z;
}

static void data_init(struct data *data, const struct shape *s, const struct variant *variant)
{
    data->shape = s;
    data->variant = variant;
    data->pool =
        (struct tdmi_pooling){.h = s->h,
                              .w = s->w,
                              .channels = s->c,
                              .out_h = (s->h + s->top + s->bottom - s->kernel) / s->stride + 1,
                              .out_w = (s->w + s->left + s->right - s->kernel) / s->stride + 1,
                              .kernel = s->kernel,
                              .stride = s->stride,
                              .top = s->top,
                              .left = s->left,
                              .counts_padding = variant->counts_padding};
    data->channels = (size_t)s->c;
    data->ins = (size_t)(s->n * s->h * s->w * s->c);
    data->outs = (size_t)(s->n * data->pool.out_h * data->pool.out_w * s->c);
    data->x = values(data->ins, -3, 5);
    data->y = values(data->outs, NAN, NAN);
    data->dy = values(data->outs, -1, 1);
    data->dx = values(data->ins, NAN, NAN);
    data->add = values(data->ins, -1, 1);
    data->scale = values(data->channels, -1, 3);
    data->shift = values(data->channels, -1, 1);
    data->centre = values(data->channels, -1, 1);
    data->winners = tdmi_alloc(tdmi_pooling_winner_bytes(&data->pool, s->n), 1);
    data->sums = tdmi_alloc(2 * data->channels, sizeof(double));
    data->v = tdmi_alloc(data->ins, sizeof(double));
    data->dv = tdmi_alloc(data->ins, sizeof(double));
    assert_true(data->winners && data->sums && data->v && data->dv);
    data->form = (struct tdmi_read_form){variant->has_form ? data->scale : NULL,
                                         variant->has_form ? data->shift : NULL, variant->act};
    for (size_t i = 0; i < data->ins; i++)
        data->v[i] = activated(data, z_of(data, i));
}

static void data_release(struct data *data)
{
    void *all[] = {data->x,     data->y,      data->dy,      data->dx,   data->add, data->scale,
                   data->shift, data->centre, data->winners, data->sums, data->v,   data->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tdmi_free(all[i]);
}

static void near(const struct data *data, const char *what, size_t at, double got, double wanted,
                 double size)
{
    const struct shape *s = data->shape;
    if (!(fabs(got - wanted) <= 2e-6 * (1 + size)))
        fail_msg("%s[%zu] of %d×%d×%d×%d, kernel %d, stride %d, variant %d is %.9g, wanted %.9g",
                 what, at, s->n, s->h, s->w, s->c, s->kernel, s->stride,
                 (int)(data->variant - variants), got, wanted);
}

/* The place in x of a tap of the window of output at, or -1 outside of the picture. */
static int64_t place(const struct data *data, size_t at, int tap)
{
    const struct tdmi_pooling *p = &data->pool;
    size_t pixel = at / data->channels;
    int column = (int)(pixel % (size_t)p->out_w), row = (int)(pixel / (size_t)p->out_w) % p->out_h;
    int image = (int)(pixel / (size_t)p->out_w) / p->out_h;
    int y = row * p->stride - p->top + tap / p->kernel;
    int x = column * p->stride - p->left + tap % p->kernel;
    if (y < 0 || y >= p->h || x < 0 || x >= p->w)
        return -1;
    return (((int64_t)image * p->h + y) * p->w + x) * p->channels + (int64_t)(at % data->channels);
}

static struct tdmi_pooling_forward forward_call(const struct data *data)
{
    return (struct tdmi_pooling_forward){.n = data->shape->n,
                                         .x = data->x,
                                         .form = data->form,
                                         .y = data->y,
                                         .winners = data->winners};
}

static struct tdmi_pooling_backward backward_call(const struct data *data)
{
    struct tdmi_pooling_backward call = {.n = data->shape->n,
                                         .dy = data->dy,
                                         .winners = data->winners,
                                         .x = data->x,
                                         .form = data->form,
                                         .dx = data->dx,
                                         .add = data->variant->has_add ? data->add : NULL};
    if (data->variant->has_sums)
        call.sums =
            (struct tdmi_backward_sums){data->centre, data->sums, data->sums + data->channels};
    else if (data->variant->act == TDMI_ACT_NONE)
        call.x = NULL;
    return call;
}

/* dv is what the windows return. */
static void check_dx(struct data *data)
{
    double *wanted = tdmi_alloc(3 * data->channels, sizeof(double));
    assert_non_null(wanted);
    for (size_t i = 0; i < data->ins; i++) {
        double z = z_of(data, i), g = data->dv[i], *sum = wanted + 3 * (i % data->channels);
        enum tdmi_act act = data->variant->act;
        bool is_edge = act != TDMI_ACT_NONE && (fabs(z) < 1e-5 || fabs(z - 6) < 1e-5);
        bool is_open = act == TDMI_ACT_NONE || (z > 0 && (act == TDMI_ACT_RELU || z < 6));
        double added = data->variant->has_add ? (double)data->add[i] : 0;
        if (!is_edge)
            near(data, "dx", i, (double)data->dx[i], (is_open ? g : 0) + added, fabs(g));
        double got = (double)data->dx[i];
        double off = (double)data->x[i] - (double)data->centre[i % data->channels];
        sum[0] += got;
        sum[1] += got * off;
        sum[2] += fabs(got) + fabs(got * off);
    }
    for (size_t c = 0; data->variant->has_sums && c < data->channels; c++) {
        near(data, "sum", c, data->sums[c], wanted[3 * c], wanted[3 * c + 2]);
        near(data, "product", c, data->sums[data->channels + c], wanted[3 * c + 1],
             wanted[3 * c + 2]);
    }
    tdmi_free(wanted);
}

static void check_max(struct data *data, const struct tdmi_pooling_kernels *kernels)
{
    const int taps = data->pool.kernel * data->pool.kernel;
    const struct tdmi_pooling_forward forward = forward_call(data);
    data->pool.is_max = true;
    kernels->forward(&data->pool, &forward);
    memset(data->dv, 0, data->ins * sizeof *data->dv);
    for (size_t i = 0; i < data->outs; i++) {
        double best = -INFINITY;
        for (int t = 0; t < taps; t++)
            if (place(data, i, t) >= 0 && data->v[place(data, i, t)] > best)
                best = data->v[place(data, i, t)];
        near(data, "max", i, (double)data->y[i], best, fabs(best));
        int64_t winner = place(data, i, data->winners[i]);
        assert_true(winner >= 0);
        near(data, "winner", i, data->v[winner], best, fabs(best));
        /* Ties that rounding makes aside, the first wins. */
        for (int t = 0; t < data->winners[i]; t++)
            if (place(data, i, t) >= 0 && data->v[place(data, i, t)] == data->v[winner] &&
                data->v[winner] == 0)
                fail_msg("max[%zu]: tap %d of the window won, tap %d is as large", i,
                         data->winners[i], t);
        data->dv[winner] += (double)data->dy[i];
    }
    const struct tdmi_pooling_backward backward = backward_call(data);
    kernels->backward(&data->pool, &backward);
    check_dx(data);
}

static void check_average(struct data *data, const struct tdmi_pooling_kernels *kernels)
{
    const int taps = data->pool.kernel * data->pool.kernel;
    const struct tdmi_pooling_forward forward = forward_call(data);
    kernels->forward(&data->pool, &forward);
    memset(data->dv, 0, data->ins * sizeof *data->dv);
    for (size_t i = 0; i < data->outs; i++) {
        double sum = 0;
        int seen = 0;
        for (int t = 0; t < taps; t++) {
            seen += place(data, i, t) >= 0;
            sum += place(data, i, t) >= 0 ? data->v[place(data, i, t)] : 0;
        }
        double share = 1.0 / (data->pool.counts_padding ? taps : seen);
        near(data, "average", i, (double)data->y[i], sum * share, 6);
        for (int t = 0; t < taps; t++)
            if (place(data, i, t) >= 0)
                data->dv[place(data, i, t)] += (double)data->dy[i] * share;
    }
    const struct tdmi_pooling_backward backward = backward_call(data);
    kernels->backward(&data->pool, &backward);
    check_dx(data);
}

static void each(void (*check)(struct data *data, const struct tdmi_pooling_kernels *kernels))
{
    for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++)
        for (int s = 0; s < n_shapes; s++)
            for (int v = 0; v < n_variants; v++) {
                struct data data;
                data_init(&data, &shapes[s], &variants[v]);
                check(&data, tdmi_pooling_kernels((enum tdmi_isa)isa));
                data_release(&data);
            }
}

TEST(max_pooling_finds_the_first_largest_and_returns_to_it)
{
    each(check_max);
}

TEST(average_pooling_shares_alike)
{
    each(check_average);
}

/* Where dx holds what other readers wrote, it is added to in place. */
TEST(gradients_are_added_in_place)
{
    for (int s = 0; s < n_shapes; s++) {
        struct data data;
        data_init(&data, &shapes[s], &variants[3]);
        const struct tdmi_pooling_kernels *kernels = tdmi_pooling_kernels(tdmi_isa_best());
        const struct tdmi_pooling_forward forward = forward_call(&data);
        struct tdmi_pooling_backward backward = backward_call(&data);
        data.pool.is_max = true;
        kernels->forward(&data.pool, &forward);
        kernels->backward(&data.pool, &backward);
        backward.dx = data.add;
        kernels->backward(&data.pool, &backward);
        assert_memory_equal(data.add, data.dx, data.ins * sizeof *data.dx);
        data_release(&data);
    }
}

TEST_MAIN(NULL, NULL)
