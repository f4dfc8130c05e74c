/* Networks against PyTorch: networks_match.h says how. The small ones. */
#include "train/evaluate/networks_match.h"

MATCHES(alexnet, "alexnet")
MATCHES(convnet7, "convnet7")
MATCHES(lenet5, "lenet5")
MATCHES(resnet18, "resnet18")
MATCHES(resnet20_cifar, "resnet20-cifar")
LEARNS(mobilenetv2, "mobilenetv2-0.1")
LEARNS(resnet20_cifar, "resnet20-cifar")

int main(void)
{
    const struct CMUnitTest quick[] = {
        cmocka_unit_test(lenet5_gives_the_numbers_of_pytorch),
        cmocka_unit_test(mobilenetv2_learns_as_in_pytorch),
        cmocka_unit_test(resnet20_cifar_learns_as_in_pytorch),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(alexnet_gives_the_numbers_of_pytorch),
        cmocka_unit_test(convnet7_gives_the_numbers_of_pytorch),
        cmocka_unit_test(resnet18_gives_the_numbers_of_pytorch),
        cmocka_unit_test(resnet20_cifar_gives_the_numbers_of_pytorch),
    };
    int failed = cmocka_run_group_tests(quick, NULL, NULL);
    return is_sanitized ? failed : failed + cmocka_run_group_tests(others, NULL, NULL);
}
