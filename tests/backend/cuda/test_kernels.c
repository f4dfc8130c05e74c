/* Kernels that are no op, each against the host's own result, and tensors of huge sizes. */
#include "backend/cuda/values.h"
#include "unit.h"

#define X(kernel)                    \
    TEST(kernel##_is_as_on_the_host) \
    {                                \
        case_##kernel(state);        \
    }
KERNEL_CASES(X)

TEST_MAIN(NULL, NULL)
