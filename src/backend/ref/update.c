/*
 * What one step changes, and sums of gradients. Running statistics move towards the batch's.
 * Parameters follow stochastic gradient descent with momentum and weight decay, in PyTorch's form:
 * g = sum / n + decay · w;  v = momentum · v + g;  w -= rate · (nesterov ? g + momentum · v : v).
 */
#include "backend/ref/ref.h"

void tdmi_ref_sgd(tdmi_stream *stream, const struct tdmi_update_call *call)
{
    (void)stream;
    float *params = call->params, *velocity = call->slots[0];
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->gradient_sums[i] * call->gradient_scale + call->weight_decay * params[i];
        velocity[i] = call->momentum * velocity[i] + g;
        params[i] -= call->learning_rate *
                     (call->is_nesterov ? g + call->momentum * velocity[i] : velocity[i]);
    }
}

void tdmi_ref_blend(tdmi_stream *stream, float *states, const float *sums, int64_t n, float scale,
                    float momentum)
{
    (void)stream;
    for (int64_t i = 0; i < n; i++)
        states[i] += momentum * (sums[i] * scale - states[i]);
}

void tdmi_ref_accumulate(tdmi_stream *stream, float *to, const float *from, int64_t n)
{
    (void)stream;
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}
