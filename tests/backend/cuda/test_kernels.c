/* Kernels that are no op, each against the host's own result, and tensors of huge sizes. */
#include "backend/cuda/values.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
#define X(name) cmocka_unit_test(case_##name),
        KERNEL_CASES(X)
#undef X
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
