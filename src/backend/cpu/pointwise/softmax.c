/*
 * Softmax and its cross-entropy with ref's bits (backend/ref/losses.c has the formulas). Without
 * smoothing only the label, and the other label of a mixed sample, are targets; the other classes
 * would add zeros, which change no sum.
 */
#include "backend/cpu/pointwise/softmax.h"
#include "backend/cpu/cpu.h"

#include <limits.h>
#include <math.h>

TDMI_TABLE_OF(const struct tdmi_softmax_kernels *tdmi_softmax_kernels, tdmi_softmax)

/* Targets of a sample: of the classes low and high, which are the same where it is not mixed, and
 * of each other class. A label that is no class is the target of none. */
struct targets {
    int low, high;
    double of_low, of_high, of_rest;
};

static struct targets targets_of(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                                 int i)
{
    const int label = call->labels[i];
    const double weight = call->mixed ? (double)call->mixed[i].weight : 1.0;
    const int other = weight < 1.0 ? call->mixed[i].other : label;
    struct targets it = {label, label, weight, weight, 0.0};
    if (other == label && weight < 1.0)
        it.of_low = it.of_high = weight + (1.0 - weight);
    else if (other < label)
        it = (struct targets){other, label, 1.0 - weight, weight, 0.0};
    else if (other > label)
        it = (struct targets){label, other, weight, 1.0 - weight, 0.0};
    const double smoothing = desc->is_training ? desc->attrs.label_smoothing : 0.0;
    if (smoothing > 0.0) {
        it.of_rest = smoothing / desc->out.c;
        it.of_low = (1.0 - smoothing) * it.of_low + it.of_rest;
        it.of_high = (1.0 - smoothing) * it.of_high + it.of_rest;
    }
    return it;
}

/* The first class from c on whose target is not 0; past the last: INT_MAX. */
static int next(const struct targets *it, int c)
{
    if (it->of_rest > 0.0)
        return c;
    return c <= it->low ? it->low : c <= it->high ? it->high : INT_MAX;
}

/* The target of a class times its weight. */
static double share(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                    const struct targets *it, int c)
{
    double target = c == it->low ? it->of_low : c == it->high ? it->of_high : it->of_rest;
    bool is_weighted = desc->is_training && call->class_weights;
    return is_weighted ? target * (double)call->class_weights[c] : target;
}

static double loss_of(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i,
                      const float *x, int guess, double log_sum)
{
    const struct targets it = targets_of(desc, call, i);
    double loss = 0.0;
    for (int c = next(&it, 0); c < desc->out.c; c = next(&it, c + 1)) {
        double part = share(desc, call, &it, c);
        if (part > 0.0)
            loss += part * (log_sum + ((double)x[guess] - (double)x[c]));
    }
    return loss;
}

TDMI_KERNEL_RUN(forward)
{
    const struct tdmi_softmax_kernels *kernels = tdmi_softmax_kernels(tdmi_isa_best());
    for (int i = 0; i < call->n; i++) {
        const float *x = call->x[0] + (int64_t)i * desc->out.c;
        double sum;
        int guess = kernels->forward(x, desc->out.c, call->y + (int64_t)i * desc->out.c, &sum);
        if (call->labels)
            call->judgements[i] =
                (struct tdmi_judgement){(float)loss_of(desc, call, i, x, guess, log(sum)), guess};
    }
}

/* All classes as if none were a label, then the labels. */
static void backward_of_sample(const struct tdmi_softmax_kernels *kernels,
                               const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                               int i)
{
    const int classes = desc->out.c;
    const struct targets it = targets_of(desc, call, i);
    double weight = 0.0;
    for (int c = next(&it, 0); c < classes; c = next(&it, c + 1))
        weight += share(desc, call, &it, c);
    const float *y = call->y + (int64_t)i * classes;
    float *dx = call->dx[0] + (int64_t)i * classes;
    kernels->backward(&(struct tdmi_softmax_gradient){
        .classes = classes,
        .y = y,
        .weight = weight,
        .target = it.of_rest,
        .class_weights = desc->is_training ? call->class_weights : NULL,
        .dx = dx});
    const int labels[] = {it.low, it.high};
    for (int k = 0; k < 2; k++)
        if (labels[k] >= 0 && labels[k] < classes)
            dx[labels[k]] =
                (float)((double)y[labels[k]] * weight - share(desc, call, &it, labels[k]));
}

TDMI_KERNEL_RUN(backward)
{
    for (int i = 0; i < call->n && desc->wants_dx; i++)
        backward_of_sample(tdmi_softmax_kernels(tdmi_isa_best()), desc, call, i);
}

const struct tdmi_kernel tdmi_cpu_softmax = {.forward = forward, .backward = backward};
