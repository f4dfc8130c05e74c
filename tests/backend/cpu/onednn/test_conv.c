/*
 * Convolution by oneDNN: the list of random cases that every backend runs (conv_probe.h), shared by
 * threads, and without memory. The whole program runs a second time with oneDNN held to AVX2, whose
 * implementations are others. TANDEM_TEST_SEED chooses other shapes.
 */
#include "tandem_features.h"

#include "backend/cpu/onednn/twice.h"

#if TDM_HAVE_ONEDNN

#include "backend/conv_probe.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/onednn/library.h"
#include "base/thread.h"

static const struct tdmi_kernel *const onednn = &tdmi_conv_by_onednn;

TEST(random_convolutions_match_their_formula)
{
    for (int i = 0; i < 200; i++) {
        check_conv_case(onednn, i, true);
        check_conv_case(onednn, i, false);
    }
}

static struct tdmi_op_desc square(int size, int in, int out, int kernel, int stride, int pad)
{
    struct tdmi_op_desc desc = {.kind = TDMI_OP_CONV, .max_images = 2};
    desc.in[0] = (struct tdmi_shape){size, size, in};
    desc.attrs = (struct tdmi_op_attrs){.channels = out,
                                        .kernel = kernel,
                                        .stride = stride,
                                        .dilation = 1,
                                        .groups = 1,
                                        .pad_top = pad,
                                        .pad_left = pad,
                                        .pad_bottom = pad,
                                        .pad_right = pad};
    assert_true(conv_shape(&desc));
    return desc;
}

/* Padding that the last window does not reach is no part of the convolution. */
TEST(rows_that_no_window_reaches_are_left_out)
{
    for (int size = 5; size <= 8; size++) {
        struct tdmi_op_desc desc = square(size, 3, 20, 3, 3, 0);
        desc.is_training = desc.wants_dx = true;
        check_conv(onednn, &desc, 2, true);
    }
}

/* ---- rectangular windows, which no op has: by the primitives alone --------------------------- */

static void check_rectangle(const struct tdmi_onednn_conv_desc *d)
{
    const int n_x = (int)tdmi_shape_values(d->in), n_y = (int)tdmi_shape_values(d->out);
    const int n_w = d->kernel_h * d->kernel_w * d->in.c * d->out.c;
    float *x = conv_filled(n_x, 1, -1.0f, 1.0f), *w = conv_filled(n_w, 2, -1.0f, 1.0f);
    float *dy = conv_filled(n_y, 3, -1.0f, 1.0f), *y = conv_unwritten(n_y);
    float *dx = conv_unwritten(n_x), *dw = conv_unwritten(n_w), *packed[TDMI_ONEDNN_PASSES];
    double *sums = tdmi_alloc((size_t)(n_x + n_y + n_w), sizeof *sums);
    double *y_sum = sums, *dx_sum = y_sum + n_y, *dw_sum = dx_sum + n_x;
    const struct tdmi_onednn_table *library;
    tdmi_onednn_conv *conv;
    tdm_error err = {0};
    assert_non_null(sums);
    assert_ok(tdmi_onednn_load(&library, &err), &err);
    const struct tdmi_onednn_conv_table *onednn_conv = library->conv;
    assert_ok(onednn_conv->open(d, &conv, &err), &err);
    for (int i = 0; i < TDMI_ONEDNN_PASSES; i++) {
        const enum tdmi_onednn_pass pass = (enum tdmi_onednn_pass)i;
        packed[i] = tdmi_alloc_aligned(onednn_conv->packed_bytes(conv, pass) + 64);
        assert_true(onednn_conv->pack(conv, pass, w, NULL, packed[i]));
    }
    struct tdmi_onednn_conv_call call = {.n = 1, .x = x, .y = y, .dy = dy, .dx = dx, .dw = dw};
    call.workspace = tdmi_alloc_aligned(onednn_conv->workspace_bytes(conv) + 64);
    call.packed = packed[TDMI_ONEDNN_FORWARD];
    assert_true(onednn_conv->forward(conv, &call));
    assert_true(onednn_conv->backward_weights(conv, &call));
    call.packed = packed[TDMI_ONEDNN_BACKWARD_DATA];
    assert_true(onednn_conv->backward_data(conv, &call));
    for (int at_y = 0; at_y < n_y; at_y++)
        for (int at_w = at_y % d->out.c; at_w < n_w; at_w += d->out.c) {
            const int tap = at_w / d->out.c / d->in.c, pixel = at_y / d->out.c;
            const int row = pixel / d->out.w * d->stride_h + tap / d->kernel_w - d->pad_top;
            const int column = pixel % d->out.w * d->stride_w + tap % d->kernel_w - d->pad_left;
            if (row < 0 || row >= d->in.h || column < 0 || column >= d->in.w)
                continue;
            const int at_x = (row * d->in.w + column) * d->in.c + at_w / d->out.c % d->in.c;
            y_sum[at_y] += (double)x[at_x] * (double)w[at_w];
            dx_sum[at_x] += (double)dy[at_y] * (double)w[at_w];
            dw_sum[at_w] += (double)dy[at_y] * (double)x[at_x];
        }
    for (int i = 0; i < n_y; i++)
        assert_true(fabs((double)y[i] - y_sum[i]) <= 1e-4);
    for (int i = 0; i < n_x; i++)
        assert_true(fabs((double)dx[i] - dx_sum[i]) <= 1e-4);
    for (int i = 0; i < n_w; i++)
        assert_true(fabs((double)dw[i] - dw_sum[i]) <= 1e-4);
    onednn_conv->close(conv);
    void *all[] = {x, w, dy, y, dx, dw, packed[0], packed[1], call.workspace, sums};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tdmi_free(all[i]);
}

TEST(rectangular_windows_and_strides_match_their_formula)
{
    static const int cases[][6] = {/* kernel, stride and padding, of rows and columns */
                                   {1, 3, 1, 1, 0, 1}, {3, 1, 1, 2, 1, 0}, {5, 2, 2, 1, 2, 1},
                                   {2, 7, 3, 2, 0, 3}, {3, 3, 2, 1, 1, 1}, {1, 1, 1, 3, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int *c = cases[i];
        struct tdmi_onednn_conv_desc desc = {.max_images = 1,
                                             .in = {11, 9, 5},
                                             .kernel_h = c[0],
                                             .kernel_w = c[1],
                                             .stride_h = c[2],
                                             .stride_w = c[3],
                                             .dilation_h = 1,
                                             .dilation_w = 1,
                                             .groups = 1,
                                             .pad_top = c[4],
                                             .pad_left = c[5],
                                             .has_backward = true,
                                             .wants_dx = true};
        desc.out = (struct tdmi_shape){(11 + 2 * c[4] - c[0]) / c[2] + 1,
                                       (9 + 2 * c[5] - c[1]) / c[3] + 1, 7};
        check_rectangle(&desc);
    }
}

/* ---- threads ------------------------------------------------------------------------------ */

enum { n_tasks = 64 };

struct shared {
    struct conv_probe probe;
    struct tdmi_op_call calls[n_tasks];
};

static tdm_status forward_task(void *self, int index, int worker, tdm_error *err)
{
    struct shared *shared = self;
    (void)worker;
    (void)err;
    onednn->forward(NULL, &shared->probe.desc, &shared->calls[index]);
    return TDM_OK;
}

/* More tasks than threads: each gives the same bits and allocates nothing. */
TEST(many_threads_share_one_convolution)
{
    const struct tdmi_op_desc desc = square(9, 17, 33, 3, 1, 1);
    struct shared shared;
    struct conv_probe *p = &shared.probe;
    tdm_error err = {0};
    tdmi_pool *pool;
    conv_begin(p, onednn, &desc, 2, false);
    conv_run(p, 2);
    conv_check(p);
    const size_t bytes = tdmi_kernel_needs_of(onednn, &p->desc).workspace_bytes;
    assert_int_equal(tdmi_pool_new(8, NULL, &pool, &err), TDM_OK);
    for (int i = 0; i < n_tasks; i++) {
        shared.calls[i] = conv_call(p);
        shared.calls[i].y = conv_unwritten(p->n_y);
        shared.calls[i].workspace = tdmi_alloc_aligned(bytes + 64);
    }
    int64_t allocations = tdmi_memory_calls();
    for (int repeat = 0; repeat < 20; repeat++)
        assert_int_equal(tdmi_pool_run(pool, n_tasks, forward_task, &shared, &err), TDM_OK);
    assert_int_equal(tdmi_memory_calls(), allocations);
    for (int i = 0; i < n_tasks; i++) {
        assert_memory_equal(shared.calls[i].y, p->y, (size_t)p->n_y * sizeof(float));
        tdmi_free(shared.calls[i].y);
        tdmi_free(shared.calls[i].workspace);
    }
    tdmi_pool_free(pool);
    conv_end(p);
}

/* ---- memory ------------------------------------------------------------------------------- */

TEST(running_without_memory_fails_at_the_next_wait)
{
    const struct tdmi_stream_table *streams = &tdmi_backend_cpu.stream;
    struct tdmi_op_desc desc = square(6, 3, 5, 1, 1, 0);
    struct conv_probe p;
    tdm_error err = {0};
    tdmi_stream *stream = NULL;
    desc.is_training = desc.wants_dx = true;
    conv_begin(&p, onednn, &desc, 2, false);
    assert_int_equal(streams->open(NULL, &stream, &err), TDM_OK);
    const struct tdmi_op_call call = conv_call(&p);
    for (int i = 0; i < 3; i++) {
        tdmi_memory_fail_from(1);
        if (i == 0)
            conv_pack(&p, stream);
        else if (i == 1)
            onednn->forward(stream, &p.desc, &call);
        else
            onednn->backward(stream, &p.desc, &call);
        tdmi_memory_fail_from(0);
        assert_int_equal(streams->wait(stream, &err), TDM_E_MEMORY);
        assert_int_equal(streams->wait(stream, &err), TDM_OK);
    }
    assert_true(isnan(p.y[0]) && isnan(p.dx[0]) && isnan(p.dw[0]));
    streams->close(stream);
    conv_end(&p);
}

/* Each allocation of ours fails once: prepare reports it and leaves nothing behind. */
TEST(preparing_without_memory_is_an_error)
{
    tdm_status status = TDM_E_MEMORY;
    for (int64_t n = 1; status != TDM_OK; n++) {
        struct tdmi_op_desc desc = square(6, 3, 5, 1, 1, 0);
        tdm_error err = {0};
        desc.is_training = desc.wants_dx = true;
        tdmi_memory_fail_from(n);
        status = onednn->prepare(&desc, &desc.prepared, &err);
        tdmi_memory_fail_from(0);
        assert_true(status == TDM_OK || status == TDM_E_MEMORY);
        assert_true((status == TDM_OK) == (desc.prepared != NULL));
        onednn->release(desc.prepared);
        assert_true(n < 100);
    }
}

ONEDNN_TEST_MAIN

#else

int main(void)
{
    return 0;
}

#endif
