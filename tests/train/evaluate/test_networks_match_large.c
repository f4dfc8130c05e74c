/* Networks against PyTorch: networks_match.h says how. The large ones. */
#include "train/evaluate/networks_match.h"

MATCHES(mobilenetv2, "mobilenetv2-0.35")
MATCHES(resnet50, "resnet50")
MATCHES(xception, "xception")

int main(void)
{
    const struct CMUnitTest quick[] = {
        cmocka_unit_test(mobilenetv2_gives_the_numbers_of_pytorch),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(resnet50_gives_the_numbers_of_pytorch),
        cmocka_unit_test(xception_gives_the_numbers_of_pytorch),
    };
    int failed = cmocka_run_group_tests(quick, NULL, NULL);
    return is_sanitized ? failed : failed + cmocka_run_group_tests(others, NULL, NULL);
}
