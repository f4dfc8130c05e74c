/* dropout.cu: the very values that ref drops, whole vectors or not; samples far along; and more
 * values than 32 bits count. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/dropout.h"

#include <sys/mman.h>

enum { n = 3, epoch = 6, stream = 5 };
static const int64_t samples[n] = {7, ((int64_t)3 << 32) + 1, 0};
static const struct tdmi_draw_key key = {99, epoch};

static struct tdmi_cuda_dropout drop_of(enum tdmi_dtype type, int64_t values)
{
    return (struct tdmi_cuda_dropout){.type = type,
                                      .n = n,
                                      .values = values,
                                      .draws = {&key, samples},
                                      .first = (uint32_t)stream << 24,
                                      .rate = 0.25f,
                                      .scale = 4.0f / 3.0f};
}

static void look(const struct tdmi_cuda_dropout *it, const void *x, const void *y)
{
    int64_t n_kept = 0;
    for (int i = 0; i < n; i++) {
        const int64_t whose = it->draws.samples ? samples[i] : i;
        tdmi_rng rng = tdmi_rng_at(99, TDMI_RNG_DROPOUT, epoch, (uint64_t)whose);
        rng.counter[0] = (uint32_t)stream << 24;
        for (int64_t k = 0; k < it->values; k++) {
            const int64_t at = i * it->values + k;
            const bool stays = tdmi_rng_unit(&rng) >= it->rate;
            const double wanted = stays ? value_at(x, it->type, at) * (double)it->scale : 0.0;
            n_kept += stays;
            expect_near(value_at(y, it->type, at), wanted,
                        stays ? step_of(it->type, fabs(wanted)) : 0.0, "y", at);
        }
    }
    assert_true(it->values < 1000 || (n_kept > 2 * it->values && n_kept < 5 * it->values / 2));
}

static void run(enum tdmi_dtype type, int64_t values, int off, bool has_samples)
{
    struct tdmi_cuda_dropout it = drop_of(type, values);
    void *blocks[2];
    void *x = tensor(type, n * values, off, 1, &blocks[0]);
    void *y = tensor(type, n * values, off, 0, &blocks[1]);
    it.draws.samples = has_samples ? samples : NULL;
    assert_int_equal(tdmi_cuda_dropout_apply(NULL, &it, x, y), 0);
    look(&it, x, y);
    it.rate = 0.0f;
    it.scale = 1.0f;
    assert_int_equal(tdmi_cuda_dropout_apply(NULL, &it, x, x), 0); /* in place */
    for (int64_t i = 0; i < n * values; i++)
        expect_near(value_at(x, type, i), (double)plain_value(1, i), 0.0, "all stay", i);
    for (int i = 0; i < 2; i++)
        tdmi_free(blocks[i]);
}

/* Samples of 2^31 + 8 values: only blocks at both ends run. */
static void run_huge(void)
{
    struct tdmi_cuda_dropout it = drop_of(TDMI_DTYPE_BF16, ((int64_t)1 << 31) + 8);
    const size_t bytes = (size_t)(n * it.values) * 2;
    uint16_t *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x == MAP_FAILED)
        return;
    it.rate = 0.0f;
    it.scale = 2.0f;
    put_value(x, TDMI_DTYPE_BF16, n * it.values - 1, 3.0f);
    tdmi_shim_use((struct tdmi_shim_way){.edge_blocks = 1});
    assert_int_equal(tdmi_cuda_dropout_apply(NULL, &it, x, x), 0);
    assert_true(value_at(x, TDMI_DTYPE_BF16, n * it.values - 1) == 6.0);
    munmap(x, bytes);
}

void case_dropout(void **state)
{
    static const struct {
        int64_t values;
        int off;
    } sizes[] = {{1, 0}, {6, 0}, {8, 0}, {9, 0}, {2056, 0}, {2053, 0}, {16, 1}};
    (void)state;
    for (int t = 0; t < n_float_types; t++)
        for (int s = 0; s < 7; s++) {
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = s % 2 == 1});
            run(float_types[t], sizes[s].values, sizes[s].off, true);
            run(float_types[t], sizes[s].values, sizes[s].off, false);
        }
    run_huge();
}
