/* Networks against PyTorch: networks_match.h says how. The large ones. */
#include "train/evaluate/networks_match.h"

MATCHES(true, mobilenetv2, "mobilenetv2-0.35")
MATCHES(false, resnet50, "resnet50")
MATCHES(false, xception, "xception")

TEST_MAIN(NULL, NULL)
