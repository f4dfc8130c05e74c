/* Tests of what Arrow reads and writes. */
#pragma once

#include "tandem_features.h"

#include <stdbool.h>

/* Was this build made with Arrow? With it, a plugin that does not open fails the tests. */
static inline bool has_arrow(void)
{
    return TDM_HAVE_ARROW;
}
