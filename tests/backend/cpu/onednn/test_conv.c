/*
 * Convolution by oneDNN against its formula written out in double, over random shapes: strides,
 * dilations, groups, uneven padding, ragged shards, what follows the product. The whole program
 * runs a second time with oneDNN held to AVX2, whose implementations are others.
 * TANDEM_TEST_SEED chooses other shapes; a failure prints the case.
 */
#include "tandem_features.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#if TDM_HAVE_ONEDNN

#include "backend/cpu/onednn/conv.h"
#include "base/memory.h"
#include "base/hash/rng.h"
#include "base/thread.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

enum { guard = 16 };

struct probe {
    struct tdmi_onednn_conv_desc desc;
    int n;
    float *x, *weights, *factors, *bias, *residual, *dy;
    float *y, *dx, *dw, *db;
    size_t n_x, n_y, n_weights;
    char name[240];
};

static uint64_t seed(void)
{
    const char *text = getenv("TANDEM_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

static int between(tdmi_rng *rng, int low, int high)
{
    return low + (int)tdmi_rng_below(rng, (uint32_t)(high - low + 1));
}

static float *filled(size_t n, uint64_t stream)
{
    float *values = tdmi_alloc_aligned((n + guard) * sizeof *values);
    assert_non_null(values);
    tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 1, stream);
    for (size_t i = 0; i < n; i++)
        values[i] = tdmi_rng_uniform(&rng, -1.0f, 1.0f);
    for (size_t i = n; i < n + guard; i++)
        values[i] = 1234.5f;
    return values;
}

static void check_guard(const struct probe *p, const float *values, size_t n)
{
    for (size_t i = n; i < n + guard; i++)
        if (values[i] != 1234.5f)
            fail_msg("%s: wrote %zu past the end", p->name, i - n);
}

static float *unwritten(size_t n)
{
    float *values = filled(n, 0);
    for (size_t i = 0; i < n; i++)
        values[i] = NAN;
    return values;
}

static void begin(struct probe *p, struct tdmi_onednn_conv_desc desc, int n)
{
    memset(p, 0, sizeof *p);
    p->desc = desc;
    p->n = n;
    p->n_x = (size_t)(n * tdmi_shape_values(desc.in));
    p->n_y = (size_t)(n * tdmi_shape_values(desc.out));
    p->n_weights = (size_t)desc.kernel_h * (size_t)desc.kernel_w *
                   (size_t)(desc.in.c / desc.groups) * (size_t)desc.out.c;
    p->x = filled(p->n_x, 1);
    p->weights = filled(p->n_weights, 2);
    p->factors = filled((size_t)desc.out.c, 3);
    p->bias = filled((size_t)desc.out.c, 4);
    p->residual = filled(p->n_y, 5);
    p->dy = filled(p->n_y, 6);
    p->y = unwritten(p->n_y);
    p->dx = unwritten(p->n_x);
    p->dw = unwritten(p->n_weights);
    p->db = unwritten((size_t)desc.out.c);
    snprintf(p->name, sizeof p->name,
             "%d of %d images %dx%dx%d -> %dx%dx%d, kernel %dx%d, stride %d %d, dilation %d %d, "
             "groups %d, pads %d %d, bias %d, residual %d, act %d, factors %d",
             n, desc.max_images, desc.in.h, desc.in.w, desc.in.c, desc.out.h, desc.out.w,
             desc.out.c, desc.kernel_h, desc.kernel_w, desc.stride_h, desc.stride_w,
             desc.dilation_h, desc.dilation_w, desc.groups, desc.pad_top, desc.pad_left,
             desc.has_bias, desc.adds_residual, (int)desc.act, desc.scales_weights);
}

static void end(struct probe *p)
{
    float *all[] = {p->x,  p->weights, p->factors, p->bias, p->residual,
                    p->dy, p->y,       p->dx,      p->dw,   p->db};
    check_guard(p, p->y, p->n_y);
    check_guard(p, p->dx, p->n_x);
    check_guard(p, p->dw, p->n_weights);
    check_guard(p, p->db, (size_t)p->desc.out.c);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tdmi_free(all[i]);
}

/* ---- the formula -------------------------------------------------------------------------- */

static double act(enum tdmi_act kind, double v)
{
    switch (kind) {
    case TDMI_ACT_RELU:
        return fmax(v, 0.0);
    case TDMI_ACT_RELU6:
        return fmin(fmax(v, 0.0), 6.0);
    case TDMI_ACT_HSWISH:
        return v * fmin(fmax(v + 3.0, 0.0), 6.0) / 6.0;
    case TDMI_ACT_SIGMOID:
        return 1.0 / (1.0 + exp(-v));
    case TDMI_ACT_NONE:
        break;
    }
    return v;
}

struct tap { /* one product of the convolution: y[y] += x[x] · w[w] */
    size_t x, y, w;
    int channel; /* of y */
};

typedef void (*tap_visitor)(void *self, const struct tap *tap);

/* Every product once, in the order of y. */
static void visit(const struct probe *p, tap_visitor take, void *self)
{
    const struct tdmi_onednn_conv_desc *d = &p->desc;
    int in_group = d->in.c / d->groups, out_group = d->out.c / d->groups;
    for (int n = 0; n < p->n; n++)
        for (int y = 0; y < d->out.h; y++)
            for (int x = 0; x < d->out.w; x++)
                for (int o = 0; o < d->out.c; o++)
                    for (int ky = 0; ky < d->kernel_h; ky++)
                        for (int kx = 0; kx < d->kernel_w; kx++)
                            for (int i = 0; i < in_group; i++) {
                                int at_y = y * d->stride_h + ky * d->dilation_h - d->pad_top;
                                int at_x = x * d->stride_w + kx * d->dilation_w - d->pad_left;
                                if (at_y < 0 || at_y >= d->in.h || at_x < 0 || at_x >= d->in.w)
                                    continue;
                                int c = o / out_group * in_group + i;
                                struct tap tap = {
                                    (size_t)(((n * d->in.h + at_y) * d->in.w + at_x) * d->in.c + c),
                                    (size_t)(((n * d->out.h + y) * d->out.w + x) * d->out.c + o),
                                    (size_t)(((ky * d->kernel_w + kx) * in_group + i) * d->out.c +
                                             o),
                                    o};
                                take(self, &tap);
                            }
}

struct sums {
    const struct probe *p;
    double *y, *dx, *dw;                /* values */
    double *y_size, *dx_size, *dw_size; /* Σ of absolute terms: what rounding is relative to */
};

static void gather(void *self, const struct tap *tap)
{
    struct sums *s = self;
    const struct probe *p = s->p;
    double w = (double)p->weights[tap->w];
    double factor = p->desc.scales_weights ? (double)p->factors[tap->channel] : 1.0;
    double forward = (double)p->x[tap->x] * w * factor;
    double dx = (double)p->dy[tap->y] * w, dw = (double)p->dy[tap->y] * (double)p->x[tap->x];
    s->y[tap->y] += forward;
    s->y_size[tap->y] += fabs(forward);
    s->dx[tap->x] += dx;
    s->dx_size[tap->x] += fabs(dx);
    s->dw[tap->w] += dw;
    s->dw_size[tap->w] += fabs(dw);
}

static void same(const struct probe *p, const char *what, const float *got, const double *wanted,
                 const double *size, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - wanted[i]) <= 2e-6 * (1.0 + size[i])))
            fail_msg("%s: %s[%zu] is %.9g, wanted %.9g", p->name, what, i, (double)got[i],
                     wanted[i]);
}

static void check(const struct probe *p)
{
    size_t total = 2 * (p->n_x + p->n_y + p->n_weights);
    double *room = calloc(total, sizeof *room);
    assert_non_null(room);
    struct sums s = {p, room, NULL, NULL, NULL, NULL, NULL};
    s.dx = s.y + p->n_y;
    s.dw = s.dx + p->n_x;
    s.y_size = s.dw + p->n_weights;
    s.dx_size = s.y_size + p->n_y;
    s.dw_size = s.dx_size + p->n_x;
    visit(p, gather, &s);
    for (size_t i = 0; i < p->n_y; i++) {
        size_t channel = i % (size_t)p->desc.out.c;
        double v = s.y[i] + (p->desc.has_bias ? (double)p->bias[channel] : 0.0) +
                   (p->desc.adds_residual ? (double)p->residual[i] : 0.0);
        s.y[i] = act(p->desc.act, v);
        s.y_size[i] *= 2.0;
    }
    same(p, "y", p->y, s.y, s.y_size, p->n_y);
    if (p->desc.wants_dx)
        same(p, "dx", p->dx, s.dx, s.dx_size, p->n_x);
    if (p->desc.has_backward)
        same(p, "dw", p->dw, s.dw, s.dw_size, p->n_weights);
    for (int c = 0; p->desc.has_backward && p->desc.has_bias && c < p->desc.out.c; c++) {
        double sum = 0.0, size = 0.0;
        for (size_t i = (size_t)c; i < p->n_y; i += (size_t)p->desc.out.c) {
            sum += (double)p->dy[i];
            size += fabs((double)p->dy[i]);
        }
        same(p, "db", p->db + c, &sum, &size, 1);
    }
    free(room);
}

/* ---- running ------------------------------------------------------------------------------ */

static void run(struct probe *p, const tdmi_onednn_conv *conv)
{
    void *workspace = tdmi_alloc_aligned(tdmi_onednn_conv_workspace_bytes(conv) + 64);
    struct tdmi_onednn_conv_call call = {
        .n = p->n,
        .workspace = workspace,
        .x = p->x,
        .bias = p->bias,
        .residual = p->residual,
        .y = p->y,
        .dy = p->dy,
        .dx = p->dx,
        .dw = p->dw,
        .db = p->desc.has_bias ? p->db : NULL,
    };
    assert_non_null(workspace);
    for (int pass = 0; pass < TDMI_ONEDNN_PASSES; pass++) {
        if (pass == TDMI_ONEDNN_BACKWARD_DATA && !p->desc.wants_dx)
            continue;
        void *packed = tdmi_alloc_aligned(tdmi_onednn_conv_packed_bytes(conv, pass));
        assert_non_null(packed);
        tdmi_onednn_conv_pack(conv, NULL, pass, p->weights,
                              p->desc.scales_weights ? p->factors : NULL, packed);
        call.packed = packed;
        if (pass == TDMI_ONEDNN_FORWARD)
            tdmi_onednn_conv_forward(conv, &call);
        else
            tdmi_onednn_conv_backward_data(conv, &call);
        tdmi_free(packed);
    }
    if (p->desc.has_backward)
        tdmi_onednn_conv_backward_weights(conv, &call);
    tdmi_free(workspace);
}

static void check_case(struct tdmi_onednn_conv_desc desc, int n)
{
    struct probe p;
    tdm_error err = {0};
    tdmi_onednn_conv *conv;
    begin(&p, desc, n);
    if (tdmi_onednn_conv_open(&desc, &conv, &err) != TDM_OK)
        fail_msg("%s: %s", p.name, tdm_error_sentence(&err, 0));
    run(&p, conv);
    check(&p);
    tdmi_onednn_conv_close(conv);
    end(&p);
}

static int windows(int in, int before, int after, int kernel, int stride, int dilation)
{
    int room = in + before + after - (kernel - 1) * dilation - 1;
    return room < 0 ? 0 : room / stride + 1;
}

/* A random convolution whose output is not empty. */
static struct tdmi_onednn_conv_desc drawn(tdmi_rng *rng, bool is_training)
{
    static const int kernels[] = {1, 1, 3, 3, 2, 5, 7};
    struct tdmi_onednn_conv_desc d = {.groups = 1};
    do {
        d.in.h = between(rng, 1, 12);
        d.in.w = between(rng, 1, 12);
        d.kernel_h = kernels[between(rng, 0, 6)];
        d.kernel_w = between(rng, 0, 3) ? d.kernel_h : kernels[between(rng, 0, 6)];
        d.stride_h = between(rng, 1, 2);
        d.stride_w = between(rng, 0, 3) ? d.stride_h : between(rng, 1, 3);
        d.dilation_h = d.dilation_w = between(rng, 0, 4) ? 1 : 2;
        d.pad_top = between(rng, 0, d.kernel_h / 2);
        d.pad_left = between(rng, 0, d.kernel_w / 2);
        d.out.h = windows(d.in.h, d.pad_top, between(rng, 0, d.kernel_h / 2), d.kernel_h,
                          d.stride_h, d.dilation_h);
        d.out.w = windows(d.in.w, d.pad_left, between(rng, 0, d.kernel_w / 2), d.kernel_w,
                          d.stride_w, d.dilation_w);
    } while (d.out.h == 0 || d.out.w == 0);
    d.in.c = between(rng, 1, 40);
    d.out.c = between(rng, 1, 40);
    switch (between(rng, 0, 3)) {
    case 0: /* depthwise */
        d.groups = d.out.c = d.in.c;
        break;
    case 1:
        d.groups = between(rng, 1, 4);
        d.in.c = d.groups * between(rng, 1, 9);
        d.out.c = d.groups * between(rng, 1, 9);
        break;
    default:
        break;
    }
    d.max_images = between(rng, 1, 4);
    d.has_bias = between(rng, 0, 1);
    d.has_backward = is_training;
    d.wants_dx = is_training && between(rng, 0, 3);
    if (!is_training) {
        d.adds_residual = between(rng, 0, 1);
        d.act = (enum tdmi_act)between(rng, 0, TDMI_ACT_SIGMOID);
        d.scales_weights = between(rng, 0, 1);
    }
    return d;
}

static void random_convolutions_train_by_their_formula(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 150; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 2, i);
        struct tdmi_onednn_conv_desc desc = drawn(&rng, true);
        check_case(desc, between(&rng, 1, desc.max_images));
    }
}

static void random_convolutions_infer_by_their_formula(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 150; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 3, i);
        struct tdmi_onednn_conv_desc desc = drawn(&rng, false);
        check_case(desc, between(&rng, 1, desc.max_images));
    }
}

/* Padding that the last window does not reach is no part of the convolution. */
static void rows_that_no_window_reaches_are_left_out(void **state)
{
    (void)state;
    for (int in = 5; in <= 8; in++) {
        struct tdmi_onednn_conv_desc desc = {
            .max_images = 2,
            .in = {in, in, 3},
            .out = {(in - 3) / 3 + 1, (in - 3) / 3 + 1, 20},
            .kernel_h = 3,
            .kernel_w = 3,
            .stride_h = 3,
            .stride_w = 3,
            .dilation_h = 1,
            .dilation_w = 1,
            .groups = 1,
            .has_backward = true,
            .wants_dx = true,
        };
        check_case(desc, 2);
    }
}

/* ---- threads ------------------------------------------------------------------------------ */

struct shared {
    const tdmi_onednn_conv *conv;
    const struct probe *p;
    const void *packed;
    float *ys[64], *workspaces[64];
};

static tdm_status forward_task(void *self, int index, int worker, tdm_error *err)
{
    struct shared *shared = self;
    (void)worker;
    (void)err;
    tdmi_onednn_conv_forward(shared->conv, &(struct tdmi_onednn_conv_call){
                                               .n = shared->p->n,
                                               .packed = shared->packed,
                                               .workspace = shared->workspaces[index],
                                               .x = shared->p->x,
                                               .y = shared->ys[index],
                                           });
    return TDM_OK;
}

/* More threads than seats, and the same bits from each. */
static void many_threads_share_one_convolution(void **state)
{
    struct tdmi_onednn_conv_desc desc = {
        .max_images = 3,
        .in = {9, 9, 17},
        .out = {9, 9, 33},
        .kernel_h = 3,
        .kernel_w = 3,
        .stride_h = 1,
        .stride_w = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .pad_top = 1,
        .pad_left = 1,
    };
    (void)state;
    struct probe p;
    struct shared shared = {.p = &p};
    tdm_error err = {0};
    tdmi_onednn_conv *conv;
    tdmi_pool *pool;
    begin(&p, desc, 3);
    assert_int_equal(tdmi_onednn_conv_open(&desc, &conv, &err), TDM_OK);
    assert_int_equal(tdmi_pool_new(8, false, &pool, &err), TDM_OK);
    void *packed = tdmi_alloc_aligned(tdmi_onednn_conv_packed_bytes(conv, TDMI_ONEDNN_FORWARD));
    tdmi_onednn_conv_pack(conv, NULL, TDMI_ONEDNN_FORWARD, p.weights, NULL, packed);
    shared.conv = conv;
    shared.packed = packed;
    for (int i = 0; i < 64; i++) {
        shared.ys[i] = unwritten(p.n_y);
        shared.workspaces[i] = tdmi_alloc_aligned(tdmi_onednn_conv_workspace_bytes(conv) + 64);
    }
    int64_t allocations = tdmi_memory_calls();
    for (int repeat = 0; repeat < 20; repeat++)
        assert_int_equal(tdmi_pool_run(pool, 64, forward_task, &shared, &err), TDM_OK);
    assert_int_equal(tdmi_memory_calls(), allocations);
    memcpy(p.y, shared.ys[0], p.n_y * sizeof(float));
    p.desc.wants_dx = p.desc.has_backward = false;
    check(&p);
    for (int i = 0; i < 64; i++) {
        assert_memory_equal(shared.ys[i], p.y, p.n_y * sizeof(float));
        tdmi_free(shared.ys[i]);
        tdmi_free(shared.workspaces[i]);
    }
    tdmi_free(packed);
    tdmi_pool_free(pool);
    tdmi_onednn_conv_close(conv);
    end(&p);
}

/* An image's bits are its own, wherever in whatever shard it is. */
static void an_image_does_not_depend_on_its_neighbours(void **state)
{
    (void)state;
    tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 4, 0);
    for (int i = 0; i < 20; i++) {
        struct tdmi_onednn_conv_desc desc = drawn(&rng, false);
        struct probe p;
        tdm_error err = {0};
        tdmi_onednn_conv *conv;
        desc.max_images = 4;
        begin(&p, desc, 4);
        assert_int_equal(tdmi_onednn_conv_open(&desc, &conv, &err), TDM_OK);
        run(&p, conv);
        size_t n_x = p.n_x / 4, n_y = p.n_y / 4;
        float *together = filled(p.n_y, 0);
        memcpy(together, p.y, p.n_y * sizeof(float));
        p.n = 1;
        memmove(p.x, p.x + 3 * n_x, n_x * sizeof(float));
        memmove(p.residual, p.residual + 3 * n_y, n_y * sizeof(float));
        run(&p, conv);
        assert_memory_equal(p.y, together + 3 * n_y, n_y * sizeof(float));
        tdmi_free(together);
        tdmi_onednn_conv_close(conv);
        end(&p);
    }
}

/* Every allocation of ours may fail: open says so and leaves nothing behind. */
static const struct tdmi_onednn_conv_desc small = {.max_images = 2,
                                                   .in = {6, 6, 3},
                                                   .out = {6, 6, 5},
                                                   .kernel_h = 1,
                                                   .kernel_w = 1,
                                                   .stride_h = 1,
                                                   .stride_w = 1,
                                                   .dilation_h = 1,
                                                   .dilation_w = 1,
                                                   .groups = 1,
                                                   .has_backward = true,
                                                   .wants_dx = true};

static void a_convolution_without_memory_is_told_by_the_stream(void **state)
{
    const struct tdmi_stream_table *streams = &tdmi_backend_cpu.stream;
    tdm_error err = {0};
    tdmi_stream *stream = NULL;
    tdmi_onednn_conv *conv;
    struct probe p;
    (void)state;
    begin(&p, small, 2);
    assert_int_equal(streams->open(NULL, &stream, &err), TDM_OK);
    assert_int_equal(tdmi_onednn_conv_open(&small, &conv, &err), TDM_OK);
    void *packed = tdmi_alloc_aligned(tdmi_onednn_conv_packed_bytes(conv, TDMI_ONEDNN_FORWARD));
    const struct tdmi_onednn_conv_call call = {
        .n = 2,
        .stream = stream,
        .packed = packed,
        .workspace = tdmi_alloc_aligned(tdmi_onednn_conv_workspace_bytes(conv) + 64),
        .x = p.x,
        .y = p.y,
        .dy = p.dy,
        .dx = p.dx,
        .dw = p.dw};
    for (int i = 0; i < 4; i++) {
        tdmi_memory_fail_from(1);
        if (i == 0)
            tdmi_onednn_conv_pack(conv, stream, TDMI_ONEDNN_FORWARD, p.weights, NULL, packed);
        else if (i == 1)
            tdmi_onednn_conv_forward(conv, &call);
        else if (i == 2)
            tdmi_onednn_conv_backward_data(conv, &call);
        else
            tdmi_onednn_conv_backward_weights(conv, &call);
        tdmi_memory_fail_from(0);
        assert_int_equal(streams->wait(stream, &err), TDM_E_MEMORY);
        assert_int_equal(streams->wait(stream, &err), TDM_OK);
    }
    assert_true(isnan(p.y[0]) && isnan(p.dx[0]) && isnan(p.dw[0]));
    tdmi_free(packed);
    tdmi_free(call.workspace);
    tdmi_onednn_conv_close(conv);
    streams->close(stream);
    end(&p);
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    tdm_status status = TDM_E_MEMORY;
    for (int64_t n = 1; status != TDM_OK; n++) {
        tdm_error err = {0};
        tdmi_onednn_conv *conv;
        tdmi_memory_fail_from(n);
        status = tdmi_onednn_conv_open(&small, &conv, &err);
        tdmi_memory_fail_from(0);
        assert_true(status == TDM_OK || status == TDM_E_MEMORY);
        assert_true((status == TDM_OK) == (conv != NULL));
        tdmi_onednn_conv_close(conv);
        assert_true(n < 100);
    }
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_convolutions_train_by_their_formula),
        cmocka_unit_test(random_convolutions_infer_by_their_formula),
        cmocka_unit_test(rows_that_no_window_reaches_are_left_out),
        cmocka_unit_test(many_threads_share_one_convolution),
        cmocka_unit_test(an_image_does_not_depend_on_its_neighbours),
        cmocka_unit_test(running_out_of_memory_is_an_error),
        cmocka_unit_test(a_convolution_without_memory_is_told_by_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* oneDNN reads the limit once, so the second run is another process, and comes first. */
int main(void)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
        return run_all();
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
        fprintf(stderr, "the tests failed with DNNL_MAX_CPU_ISA=AVX2\n");
        return 1;
    }
    return run_all();
}

#else

int main(void)
{
    return 0;
}

#endif
