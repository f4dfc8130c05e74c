/*
 * Convolution by oneDNN: the list of random cases that every backend runs (conv_probe.h), shared by
 * threads, and without memory. The whole program runs a second time with oneDNN held to AVX2, whose
 * implementations are others. TANDEM_TEST_SEED chooses other shapes.
 */
#include "tandem_features.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#if TDM_HAVE_ONEDNN

#include "backend/conv_probe.h"
#include "backend/cpu/cpu.h"
#include "base/thread.h"

#include <sys/wait.h>
#include <unistd.h>

static const struct tdmi_kernel *const onednn = &tdmi_conv_by_onednn;

static void random_convolutions_match_their_formula(void **state)
{
    (void)state;
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
static void rows_that_no_window_reaches_are_left_out(void **state)
{
    (void)state;
    for (int size = 5; size <= 8; size++) {
        struct tdmi_op_desc desc = square(size, 3, 20, 3, 3, 0);
        desc.is_training = desc.wants_dx = true;
        check_conv(onednn, &desc, 2, true);
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
static void many_threads_share_one_convolution(void **state)
{
    const struct tdmi_op_desc desc = square(9, 17, 33, 3, 1, 1);
    struct shared shared;
    struct conv_probe *p = &shared.probe;
    tdm_error err = {0};
    tdmi_pool *pool;
    (void)state;
    conv_begin(p, onednn, &desc, 2, false);
    conv_run(p, 2);
    conv_check(p);
    const size_t bytes = tdmi_kernel_needs_of(onednn, &p->desc).workspace_bytes;
    assert_int_equal(tdmi_pool_new(8, false, &pool, &err), TDM_OK);
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

static void running_without_memory_fails_at_the_next_wait(void **state)
{
    const struct tdmi_stream_table *streams = &tdmi_backend_cpu.stream;
    struct tdmi_op_desc desc = square(6, 3, 5, 1, 1, 0);
    struct conv_probe p;
    tdm_error err = {0};
    tdmi_stream *stream = NULL;
    (void)state;
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
static void preparing_without_memory_is_an_error(void **state)
{
    tdm_status status = TDM_E_MEMORY;
    (void)state;
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

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_convolutions_match_their_formula),
        cmocka_unit_test(rows_that_no_window_reaches_are_left_out),
        cmocka_unit_test(many_threads_share_one_convolution),
        cmocka_unit_test(preparing_without_memory_is_an_error),
        cmocka_unit_test(running_without_memory_fails_at_the_next_wait),
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
