/* 1 / (1 + exp(-x)), whose slope is y (1 - y). */
#include "backend/ref/ref.h"

#include <math.h>

static float value(float x)
{
    return (float)(1.0 / (1.0 + exp(-(double)x)));
}

static float gradient(float dy, float y)
{
    return dy * y * (1.0f - y);
}

TDMI_REF_ACTIVATION(sigmoid, call->y);
