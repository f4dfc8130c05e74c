/* elementwise.cu: activations and sums, of every type, whole vectors or not, aligned or not; and of
 * more values than 32 bits count. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/elementwise.h"

#include <sys/mman.h>

static double act_of(enum tdmi_act act, double z)
{
    const double above = act != TDMI_ACT_NONE && z < 0.0 ? 0.0 : z;
    return act == TDMI_ACT_RELU6 && above > 6.0 ? 6.0 : above;
}

static void run(enum tdmi_dtype type, enum tdmi_act act, int64_t n, int off, bool has_second)
{
    void *blocks[4];
    void *a = tensor(type, n, off, 1, &blocks[0]), *b = tensor(type, n, off, 2, &blocks[1]);
    void *y = tensor(type, n, off, 0, &blocks[2]), *dx = tensor(type, n, off, 0, &blocks[3]);
    assert_int_equal(tdmi_cuda_add_act(NULL, type, act, a, has_second ? b : NULL, y, n), 0);
    assert_int_equal(tdmi_cuda_act_gradient(NULL, type, act, y, b, dx, n), 0);
    for (int64_t i = 0; i < n; i++) {
        const double sum = value_at(a, type, i) + (has_second ? value_at(b, type, i) : 0.0);
        const double wanted = act_of(act, sum), found = value_at(y, type, i);
        const bool passes =
            act == TDMI_ACT_NONE || (found > 0.0 && !(act == TDMI_ACT_RELU6 && found >= 6.0));
        expect_near(found, wanted, step_of(type, fabs(wanted)), "y", i);
        expect_near(value_at(dx, type, i), passes ? value_at(b, type, i) : 0.0, 0.0, "dx", i);
    }
    for (int i = 0; i < 4; i++)
        tdmi_free(blocks[i]);
}

static void *reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* 5 · 2^30 values: only blocks at both ends run, so that little of the memory is ever there. */
static void run_huge(void)
{
    const int64_t n = ((int64_t)5 << 30) + 3;
    const size_t bytes = (size_t)n * 2;
    uint16_t *a = reserve(bytes), *y = reserve(bytes);
    if (a && y) {
        put_value(a, TDMI_DTYPE_BF16, 5, 3.0f);
        put_value(a, TDMI_DTYPE_BF16, n - 9, 5.0f); /* the last whole vector */
        put_value(a, TDMI_DTYPE_BF16, n - 1, 7.0f); /* the last value */
        tdmi_shim_use((struct tdmi_shim_way){.edge_blocks = 2});
        assert_int_equal(tdmi_cuda_add_act(NULL, TDMI_DTYPE_BF16, TDMI_ACT_RELU6, a, NULL, y, n),
                         0);
        assert_true(value_at(y, TDMI_DTYPE_BF16, 5) == 3.0);
        assert_true(value_at(y, TDMI_DTYPE_BF16, n - 9) == 5.0);
        assert_true(value_at(y, TDMI_DTYPE_BF16, n - 1) == 6.0);
        assert_int_equal(tdmi_shim_facts().largest_grid, n / 8 / 256);
        assert_int_equal(tdmi_shim_facts().largest_grid_y, 1);
    }
    if (a)
        munmap(a, bytes);
    if (y)
        munmap(y, bytes);
}

void case_elementwise(void **state)
{
    static const enum tdmi_act acts[] = {TDMI_ACT_NONE, TDMI_ACT_RELU, TDMI_ACT_RELU6};
    static const struct {
        int64_t n;
        int off;
    } sizes[] = {{1, 0}, {7, 0}, {8, 0}, {2053, 0}, {2053, 1}};
    (void)state;
    for (int reversed = 0; reversed < 2; reversed++) {
        tdmi_shim_use((struct tdmi_shim_way){.is_reversed = reversed});
        for (int t = 0; t < n_float_types; t++)
            for (int k = 0; k < 3; k++)
                for (int s = 0; s < 5; s++) {
                    run(float_types[t], acts[k], sizes[s].n, sizes[s].off, true);
                    run(float_types[t], acts[k], sizes[s].n, sizes[s].off, false);
                }
    }
    float one = 1.0f;
    assert_int_equal(tdmi_cuda_add_act(NULL, TDMI_DTYPE_I32, TDMI_ACT_NONE, &one, NULL, &one, 1),
                     1);
    assert_int_equal(tdmi_cuda_add_act(NULL, TDMI_DTYPE_F32, TDMI_ACT_HSWISH, &one, NULL, &one, 1),
                     1);
    run_huge();
}
