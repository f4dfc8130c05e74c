/* min(max(x, 0), 6). Backward reads the output, as that of ReLU does. */
#include "backend/ref/ref.h"

static float value(float x)
{
    float above = x > 0.0f ? x : 0.0f;
    return above < 6.0f ? above : 6.0f;
}

static float gradient(float dy, float y)
{
    return y > 0.0f && y < 6.0f ? dy : 0.0f;
}

TDMI_REF_ACTIVATION(relu6, call->y);
