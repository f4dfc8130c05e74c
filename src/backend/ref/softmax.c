/*
 * Softmax and its cross-entropy in one. With probabilities y, targets t and class weights w:
 *
 *     loss = Σ w[c] · t[c] · -log y[c]        dx[c] = y[c] · Σ w[j] · t[j] - w[c] · t[c]
 *
 * Both are PyTorch's cross_entropy(reduction='sum') with weight and label_smoothing; the mean over
 * samples later divides by their number, not by the sum of their weights.
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

/* x less log_sum is the logarithm of the probability; classes that are no target count nothing. */
static double loss_of(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i,
                      const float *x, int guess, double log_sum)
{
    double loss = 0.0;
    for (int c = 0; c < desc->out.c; c++) {
        double target = tdmi_ref_target(desc, call, i, c) * tdmi_ref_class_weight(desc, call, c);
        if (target > 0.0)
            loss += target * (log_sum + ((double)x[guess] - (double)x[c]));
    }
    return loss;
}

TDMI_KERNEL_RUN(forward)
{
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
                (struct tdmi_judgement){(float)loss_of(desc, call, i, x, guess, log(sum)), guess};
    }
}

TDMI_KERNEL_RUN(backward)
{
    if (!desc->wants_dx)
        return;
    int classes = desc->out.c;
    for (int i = 0; i < call->n; i++) {
        const float *y = call->y + (int64_t)i * classes;
        float *dx = call->dx[0] + (int64_t)i * classes;
        double weight = 0.0; /* of the sample, 1 without class weights */
        for (int c = 0; c < classes; c++)
            weight += tdmi_ref_target(desc, call, i, c) * tdmi_ref_class_weight(desc, call, c);
        for (int c = 0; c < classes; c++)
            dx[c] = (float)((double)y[c] * weight - tdmi_ref_target(desc, call, i, c) *
                                                        tdmi_ref_class_weight(desc, call, c));
    }
}

const struct tdmi_kernel tdmi_ref_softmax = {.forward = forward, .backward = backward};
