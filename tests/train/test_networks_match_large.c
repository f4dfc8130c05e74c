/* Networks against PyTorch: networks_match.h says how. The large ones. */
#include "train/networks_match.h"

MATCHES(resnet50, "resnet50")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet50_gives_the_numbers_of_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
