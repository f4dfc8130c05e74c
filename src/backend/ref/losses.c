/* The losses, and what their targets are. */
#include "backend/ref/ref.h"

#include <math.h>

/* How much of sample i belongs to a class: 1 or 0 by its label, parts of 1 where it was mixed, and
 * in training smoothed: (1 - s) of that and s / classes to every class. */
static double target(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i,
                     int class)
{
    double weight = call->mixed ? (double)call->mixed[i].weight : 1.0;
    double target = call->labels[i] == class ? weight : 0.0;
    if (weight < 1.0 && call->mixed[i].other == class)
        target += 1.0 - weight;
    double smoothing = desc->is_training ? desc->attrs.label_smoothing : 0.0;
    return smoothing > 0.0 ? (1.0 - smoothing) * target + smoothing / desc->out.c : target;
}

/* 1 unless training is given weights. */
static double class_weight(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                           int class)
{
    return desc->is_training && call->class_weights ? (double)call->class_weights[class] : 1.0;
}

static int largest(const float *x, int n)
{
    int best = 0;
    for (int c = 1; c < n; c++)
        if (x[c] > x[best])
            best = c;
    return best;
}

/* ---- softmax ---- */

/*
 * Softmax and its cross-entropy in one. With probabilities y, targets t and class weights w:
 *
 *     loss = Σ w[c] · t[c] · -log y[c]        dx[c] = y[c] · Σ w[j] · t[j] - w[c] · t[c]
 *
 * Both are PyTorch's cross_entropy(reduction='sum') with weight and label_smoothing; the mean over
 * samples later divides by their number, not by the sum of their weights.
 */

/* x less log_sum is the logarithm of the probability; classes that are no target count nothing. */
static double softmax_loss(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i,
                           const float *x, int guess, double log_sum)
{
    double loss = 0.0;
    for (int c = 0; c < desc->out.c; c++) {
        double share = target(desc, call, i, c) * class_weight(desc, call, c);
        if (share > 0.0)
            loss += share * (log_sum + ((double)x[guess] - (double)x[c]));
    }
    return loss;
}

TDMI_KERNEL_RUN(softmax_forward)
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
            call->judgements[i] = (struct tdmi_judgement){
                (float)softmax_loss(desc, call, i, x, guess, log(sum)), guess};
    }
}

TDMI_KERNEL_RUN(softmax_backward)
{
    if (!desc->wants_dx)
        return;
    int classes = desc->out.c;
    for (int i = 0; i < call->n; i++) {
        const float *y = call->y + (int64_t)i * classes;
        float *dx = call->dx[0] + (int64_t)i * classes;
        double weight = 0.0; /* of the sample, 1 without class weights */
        for (int c = 0; c < classes; c++)
            weight += target(desc, call, i, c) * class_weight(desc, call, c);
        for (int c = 0; c < classes; c++)
            dx[c] = (float)((double)y[c] * weight -
                            target(desc, call, i, c) * class_weight(desc, call, c));
    }
}

const struct tdmi_kernel tdmi_ref_softmax = {
    .forward = softmax_forward, .backward = softmax_backward, TDMI_SHARES_IMAGES};

/* ---- logistic ---- */

/*
 * The logistic function and its binary cross-entropy in one. Each class is a question of its own,
 * with the logit z, the probability y = 1 / (1 + exp(-z)), the target t and the class weight w:
 *
 *     loss = Σ w[c] · (t[c] · -log y[c] + (1 - t[c]) · -log(1 - y[c]))      dz[c] = w[c] · (y[c] -
 * t[c])
 *
 * One logit x decides between two classes: y[1] = 1 / (1 + exp(-x)), y[0] = 1 - y[1], and
 *
 *     loss = w[1] · t[1] · -log y[1] + w[0] · t[0] · -log y[0]
 *     dx   = w[0] · t[0] · y[1] - w[1] · t[1] · y[0]
 */

/* log(1 + exp(z)), which is -log of the probability of "no", and of "yes" at -z; exact far out. */
static double softplus(double z)
{
    return (z > 0.0 ? z : 0.0) + log1p(exp(-fabs(z)));
}

static double logistic(double z)
{
    return 1.0 / (1.0 + exp(-z));
}

static double weighted(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i,
                       int class)
{
    return target(desc, call, i, class) * class_weight(desc, call, class);
}

static double logistic_loss(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i,
                            const float *x)
{
    double z = (double)x[0], loss = 0.0;
    if (desc->in[0].c == 1)
        return weighted(desc, call, i, 1) * softplus(-z) + weighted(desc, call, i, 0) * softplus(z);
    for (int c = 0; c < desc->out.c; c++) {
        double share = target(desc, call, i, c);
        z = (double)x[c];
        loss += class_weight(desc, call, c) * (share * softplus(-z) + (1.0 - share) * softplus(z));
    }
    return loss;
}

TDMI_KERNEL_RUN(logistic_forward)
{
    int logits = desc->in[0].c, classes = desc->out.c;
    for (int i = 0; i < call->n; i++) {
        const float *x = call->x[0] + (int64_t)i * logits;
        float *y = call->y + (int64_t)i * classes;
        int guess = logits == 1 ? x[0] > 0.0f : largest(x, classes);
        if (logits == 1) {
            y[0] = (float)logistic(-(double)x[0]);
            y[1] = (float)logistic((double)x[0]);
        }
        for (int c = 0; logits > 1 && c < classes; c++)
            y[c] = (float)logistic((double)x[c]);
        if (call->labels)
            call->judgements[i] =
                (struct tdmi_judgement){(float)logistic_loss(desc, call, i, x), guess};
    }
}

TDMI_KERNEL_RUN(logistic_backward)
{
    if (!desc->wants_dx)
        return;
    int logits = desc->in[0].c, classes = desc->out.c;
    for (int i = 0; i < call->n; i++) {
        const float *y = call->y + (int64_t)i * classes;
        float *dx = call->dx[0] + (int64_t)i * logits;
        if (logits == 1)
            dx[0] = (float)(weighted(desc, call, i, 0) * (double)y[1] -
                            weighted(desc, call, i, 1) * (double)y[0]);
        for (int c = 0; logits > 1 && c < classes; c++)
            dx[c] =
                (float)(class_weight(desc, call, c) * ((double)y[c] - target(desc, call, i, c)));
    }
}

const struct tdmi_kernel tdmi_ref_logistic = {
    .forward = logistic_forward, .backward = logistic_backward, TDMI_SHARES_IMAGES};
