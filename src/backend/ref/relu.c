/* max(x, 0). Backward reads the output, so that the input need not live so long. */
#include "backend/ref/ref.h"

static float value(float x)
{
    return x > 0.0f ? x : 0.0f;
}

static float gradient(float dy, float y)
{
    return y > 0.0f ? dy : 0.0f;
}

TDMI_REF_ACTIVATION(relu, call->y);
