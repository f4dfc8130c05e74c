/*
 * One op of the reference backend on random values, for tests that write its formula out plainly,
 * in double. TANDEM_TEST_SEED chooses other shapes; a failure prints the case.
 */
#pragma once

#include "base/hash/rng.h"
#include "graph/op.h"
#include "train/selftest/op_run.h"
#include "unit.h"

#include <math.h>

/* An op at work: the case, what it read and wrote, and its output shape. */
struct probe {
    struct tdmi_case it;
    struct tdmi_op_values values;
    struct tdmi_shape out;
    tdmi_arena arena;
    char name[200];
};

static inline uint64_t seed(void)
{
    const char *text = getenv("TANDEM_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

/* For TEST_MAIN. */
static inline int print_seed(void **state)
{
    (void)state;
    print_message("# seed %llu\n", (unsigned long long)seed());
    return 0;
}

static inline int between(tdmi_rng *rng, int low, int high)
{
    return low + (int)tdmi_rng_below(rng, (uint32_t)(high - low + 1));
}

static inline void run(struct probe *probe, struct tdmi_case it, bool is_training)
{
    tdm_error err = {0};
    memset(probe, 0, sizeof *probe);
    probe->it = it;
    probe->it.name = "random";
    tdmi_arena_init(&probe->arena, 0);
    assert_int_equal(tdmi_op_shape(it.kind, &it.attrs, &it.in, &probe->out, &err), TDM_OK);
    snprintf(probe->name, sizeof probe->name,
             "%s of %d images %dx%dx%d, channels %d, kernel %d, stride %d, dilation %d, groups %d, "
             "pads %d %d %d %d, bias %d%s",
             tdmi_op_name(it.kind), it.n, it.in.h, it.in.w, it.in.c, it.attrs.channels,
             it.attrs.kernel, it.attrs.stride, it.attrs.dilation, it.attrs.groups, it.attrs.pad_top,
             it.attrs.pad_bottom, it.attrs.pad_left, it.attrs.pad_right, it.attrs.has_bias,
             is_training ? ", training" : "");
    assert_int_equal(
        tdmi_op_values_make(&probe->it, is_training, &probe->arena, &probe->values, &err), TDM_OK);
    tdmi_device *device;
    assert_int_equal(tdmi_backend_ref.device.open(0, &device, &err), TDM_OK);
    assert_int_equal(
        tdmi_op_run(&tdmi_backend_ref, device, &probe->it, is_training, &probe->values, &err),
        TDM_OK);
    tdmi_backend_ref.device.close(device);
}

static inline void end(struct probe *probe)
{
    tdmi_arena_release(&probe->arena);
}

static inline void same(const struct probe *probe, enum tdmi_op_tensor tensor, int64_t at,
                        double wanted, double scale)
{
    double got = (double)probe->values.of[tensor][at];
    if (!(fabs(got - wanted) <= 2e-6 * (scale > 1.0 ? scale : 1.0)))
        fail_msg("%s: %s[%lld] is %.9g, wanted %.9g", probe->name, tdmi_op_tensor_name(tensor),
                 (long long)at, got, wanted);
}

/* Index of (image, y, x, channel). */
static inline int64_t at(struct tdmi_shape shape, int n, int y, int x, int c)
{
    return (((int64_t)n * shape.h + y) * shape.w + x) * shape.c + c;
}

static inline double x_at(const struct probe *probe, int n, int y, int x, int c)
{
    struct tdmi_shape in = probe->it.in;
    if (y < 0 || y >= in.h || x < 0 || x >= in.w)
        return 0.0;
    return (double)probe->values.of[TDMI_T_X][at(in, n, y, x, c)];
}

static inline double param(const struct probe *probe, int which, int64_t i)
{
    return (double)probe->values.of[TDMI_T_PARAM0 + which][i];
}

static inline double dy_at(const struct probe *probe, int n, int y, int x, int c)
{
    return (double)probe->values.dy[at(probe->out, n, y, x, c)];
}

/* A window of at most largest pixels, and a picture that it fits. */
static inline struct tdmi_op_attrs random_window(tdmi_rng *rng, struct tdmi_shape *in, int largest,
                                                 int largest_dilation)
{
    struct tdmi_op_attrs attrs = {0};
    attrs.kernel = between(rng, 1, largest);
    attrs.stride = between(rng, 1, 4);
    attrs.dilation = largest_dilation > 1 ? between(rng, 1, largest_dilation) : 1;
    attrs.groups = 1;
    int reach = attrs.dilation * (attrs.kernel - 1);
    attrs.pad_top = between(rng, 0, reach);
    attrs.pad_bottom = between(rng, 0, reach);
    attrs.pad_left = between(rng, 0, reach);
    attrs.pad_right = between(rng, 0, reach);
    int low = reach + 1 - attrs.pad_top - attrs.pad_bottom;
    int narrow = reach + 1 - attrs.pad_left - attrs.pad_right;
    low = low < 1 ? 1 : low;
    narrow = narrow < 1 ? 1 : narrow;
    *in = (struct tdmi_shape){between(rng, low, low + 8), between(rng, narrow, narrow + 8),
                              between(rng, 1, 6)};
    return attrs;
}
