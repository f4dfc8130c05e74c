/*
 * Softmax and its cross-entropy in one: y are probabilities, judgements the loss and the guess of
 * every sample, and dx = y - onehot(label), a sum over samples like every gradient here. Of a mixed
 * sample both are the weighted means over its two labels.
 */
#include "backend/ref/ref.h"

#include <math.h>

static int largest(const float *x, int n)
{
    int best = 0;
    for (int c = 1; c < n; c++)
        if (x[c] > x[best])
            best = c;
    return best;
}

/* Of one class: the logarithm of the sum of powers, less its own power. */
static double loss_of(const float *x, int guess, double log_sum, int label)
{
    return log_sum + ((double)x[guess] - (double)x[label]);
}

static double mixed_loss(const struct tdmi_op_call *call, int i, const float *x, int guess,
                         double log_sum)
{
    const double own = loss_of(x, guess, log_sum, call->labels[i]);
    if (!call->mixed || call->mixed[i].weight >= 1.0f)
        return own;
    const double weight = (double)call->mixed[i].weight;
    return weight * own + (1.0 - weight) * loss_of(x, guess, log_sum, call->mixed[i].other);
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    (void)stream;
    int classes = desc->out.c;
    for (int i = 0; i < call->n; i++) {
        const float *x = call->x[0] + (int64_t)i * classes;
        float *y = call->y + (int64_t)i * classes;
        int guess = largest(x, classes);
        double sum = 0.0;
        for (int c = 0; c < classes; c++) {
            double power = exp((double)x[c] - (double)x[guess]);
            y[c] = (float)power;
            sum += power;
        }
        for (int c = 0; c < classes; c++)
            y[c] = (float)((double)y[c] / sum);
        if (call->labels)
            call->judgements[i] =
                (struct tdmi_judgement){(float)mixed_loss(call, i, x, guess, log(sum)), guess};
    }
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    (void)stream;
    if (!desc->wants_dx)
        return;
    int classes = desc->out.c;
    for (int i = 0; i < call->n; i++) {
        const float weight = call->mixed ? call->mixed[i].weight : 1.0f;
        float *dx = call->dx + (int64_t)i * classes;
        for (int c = 0; c < classes; c++)
            dx[c] = call->y[(int64_t)i * classes + c];
        dx[call->labels[i]] -= weight;
        if (weight < 1.0f)
            dx[call->mixed[i].other] -= 1.0f - weight;
    }
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    (void)desc;
    (void)needs; /* none */
}

const struct tdmi_kernel tdmi_ref_softmax = {NULL, needs, forward, backward};
