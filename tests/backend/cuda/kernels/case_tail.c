/* loss.cu beside the host's: fewer samples than a block has threads, and more; mixed and not. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/loss/loss.h"
#include "backend/host.h"

enum { most = 1000 };

static void run(int n, bool is_mixed)
{
    struct tdmi_judgement judgements[most];
    int32_t labels[most];
    struct tdmi_mixed_label mixed[most];
    float got[TDMI_TAIL_VALUES] = {-1, -1, -1}, wanted[TDMI_TAIL_VALUES];
    tdmi_rng rng = tdmi_rng_at(7, TDMI_RNG_TEST, 9, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        judgements[i] = (struct tdmi_judgement){tdmi_rng_uniform(&rng, 0.0f, 4.0f),
                                                (int)tdmi_rng_below(&rng, 3)};
        labels[i] = (int32_t)tdmi_rng_below(&rng, 3);
        mixed[i] = (struct tdmi_mixed_label){(int32_t)tdmi_rng_below(&rng, 3),
                                             0.25f * (float)tdmi_rng_below(&rng, 5)};
    }
    assert_int_equal(tdmi_cuda_tail(NULL, judgements, labels, is_mixed ? mixed : NULL, n, got), 0);
    tdmi_host_tail(NULL, judgements, labels, is_mixed ? mixed : NULL, n, wanted);
    assert_true(got[TDMI_TAIL_SAMPLES] == (float)n);
    assert_true(got[TDMI_TAIL_CORRECT] == wanted[TDMI_TAIL_CORRECT]);
    expect_near((double)got[TDMI_TAIL_LOSS], (double)wanted[TDMI_TAIL_LOSS],
                1e-6 * (double)wanted[TDMI_TAIL_LOSS], "loss", n);
}

void case_tail(void **state)
{
    static const int sizes[] = {1, 2, 31, 32, 255, 256, 257, most};
    (void)state;
    tdmi_shim_use((struct tdmi_shim_order){0});
    for (int k = 0; k < 8; k++)
        for (int is_mixed = 0; is_mixed < 2; is_mixed++)
            run(sizes[k], is_mixed);
}
