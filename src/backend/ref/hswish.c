/* x · min(max(x + 3, 0), 6) / 6. Its slope is 0 up to -3, (2x + 3) / 6 to 3, then 1. */
#include "backend/ref/ref.h"

static float value(float x)
{
    if (x <= -3.0f)
        return 0.0f;
    return x >= 3.0f ? x : x * (x + 3.0f) / 6.0f;
}

static float slope(float x)
{
    if (x <= -3.0f)
        return 0.0f;
    return x >= 3.0f ? 1.0f : (2.0f * x + 3.0f) / 6.0f;
}

static float gradient(float dy, float x)
{
    return dy * slope(x);
}

TDMI_REF_ACTIVATION(hswish, call->x[0]);
