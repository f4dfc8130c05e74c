/* A case for every .cu file: kernels.def lists them, and one without a case does not link. */
#include "backend/cuda/values.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
#define X(name) cmocka_unit_test(case_##name),
#include "backend/cuda/kernels/kernels.def"
#undef X
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
