/*
 * The matrix product that every build has: a plain loop that the compiler vectorises for its
 * baseline, far below what oneDNN reaches. doctor names the method beside the number.
 */
#include "base/scope.h"
#include "tune/probe.h"

#include <string.h>

struct plain {
    size_t n;
    float *a, *b, *c; /* (n, n) each, in one block */
};

static void plain_release(void *self)
{
    struct plain *plain = self;
    if (plain)
        tdmi_free(plain->a);
    tdmi_free(plain);
}

static tdm_status plain_make(int n, bool is_bf16, void **product, tdm_error *err)
{
    const size_t count = (size_t)n * (size_t)n;
    struct plain *plain;
    *product = NULL;
    if (is_bf16)
        return TDM_FAIL(err, TDM_E_ABSENT, "the plain C loop knows no bf16; oneDNN does");
    TDMI_TRY(TDMI_NEW(plain, 1, err));
    *plain = (struct plain){.n = (size_t)n, .a = tdmi_alloc_aligned(3 * count * sizeof(float))};
    if (!plain->a) {
        plain_release(plain);
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d x %d matrices", n, n);
    }
    plain->b = plain->a + count;
    plain->c = plain->b + count;
    for (size_t i = 0; i < count; i++) {
        plain->a[i] = 0.5f + (float)(i * 7919 % 1009) / 1009.0f;
        plain->b[i] = 0.5f + (float)(i * 104729 % 997) / 997.0f;
    }
    *product = plain;
    return TDM_OK;
}

/* Four rows of a at a time reuse each row of b from the first cache. */
static tdm_status plain_run(void *self, tdm_error *err)
{
    const struct plain *plain = self;
    const size_t n = plain->n;
    (void)err;
    memset(plain->c, 0, n * n * sizeof(float));
    for (size_t i = 0; i + 4 <= n; i += 4) {
        for (size_t k = 0; k < n; k++) {
            const float *a = plain->a + i * n + k, *b = plain->b + k * n;
            float *restrict c = plain->c + i * n;
            float a0 = a[0], a1 = a[n], a2 = a[2 * n], a3 = a[3 * n];
            for (size_t j = 0; j < n; j++) {
                c[j] += a0 * b[j];
                c[n + j] += a1 * b[j];
                c[2 * n + j] += a2 * b[j];
                c[3 * n + j] += a3 * b[j];
            }
        }
    }
    return TDM_OK;
}

const struct tdmi_matmul_method tdmi_matmul_plain = {
    .name = "plain C loop",
    .make = plain_make,
    .run = plain_run,
    .release = plain_release,
};
