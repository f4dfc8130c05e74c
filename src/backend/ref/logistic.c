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
#include "backend/ref/ref.h"

#include <math.h>

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
    return tdmi_ref_target(desc, call, i, class) * tdmi_ref_class_weight(desc, call, class);
}

static double loss_of(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i,
                      const float *x)
{
    double z = (double)x[0], loss = 0.0;
    if (desc->in[0].c == 1)
        return weighted(desc, call, i, 1) * softplus(-z) + weighted(desc, call, i, 0) * softplus(z);
    for (int c = 0; c < desc->out.c; c++) {
        double target = tdmi_ref_target(desc, call, i, c);
        z = (double)x[c];
        loss += tdmi_ref_class_weight(desc, call, c) *
                (target * softplus(-z) + (1.0 - target) * softplus(z));
    }
    return loss;
}

static int largest(const float *y, int n)
{
    int best = 0;
    for (int c = 1; c < n; c++)
        if (y[c] > y[best])
            best = c;
    return best;
}

TDMI_KERNEL_RUN(forward)
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
            call->judgements[i] = (struct tdmi_judgement){(float)loss_of(desc, call, i, x), guess};
    }
}

TDMI_KERNEL_RUN(backward)
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
            dx[c] = (float)(tdmi_ref_class_weight(desc, call, c) *
                            ((double)y[c] - tdmi_ref_target(desc, call, i, c)));
    }
}

const struct tdmi_kernel tdmi_ref_logistic = {.forward = forward, .backward = backward};
