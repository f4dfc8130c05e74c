/* Networks against PyTorch: networks_match.h says how. The small ones. */
#include "train/evaluate/networks_match.h"

MATCHES(true, lenet5, "lenet5")
LEARNS(mobilenetv2, "mobilenetv2-0.1")
LEARNS(resnet20_cifar, "resnet20-cifar")
MATCHES(false, alexnet, "alexnet")
MATCHES(false, convnet7, "convnet7")
MATCHES(false, resnet18, "resnet18")
MATCHES(false, resnet20_cifar, "resnet20-cifar")

TEST_MAIN(NULL, NULL)
