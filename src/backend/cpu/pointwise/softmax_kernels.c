/*
 * Softmax, written once for every instruction set (isa.h). The sum of the powers is one chain of
 * additions in double, in the order of the classes, as in ref; all else is a vector of classes at a
 * time, with a rounding wherever ref has one.
 */
#include "backend/cpu/pointwise/softmax.h"
#include "backend/cpu/lanes.h"
#include "backend/cpu/pointwise/powers_body.h"

/* Each lane finds the first of its largest logits, then the lanes are compared. As in ref, a NaN
 * wins only as the first logit, and then against all others. Indices are exact as floats. */
static int largest(const float *x, int n)
{
    lanes value = lanes_all(x[0]), at = lanes_all(0.0f), index = lanes_all(0.0f);
    for (int i = 0; i < LANES; i++)
        index[i] = (float)i;
    int c = 0;
    for (; c + LANES <= n; c += LANES) {
        value = lanes_larger(value, lanes_load(x + c), &at, index);
        index = lanes_add(index, lanes_all((float)LANES));
    }
    int best = (int)at[0];
    for (int i = 1; i < LANES; i++) {
        const int other = (int)at[i];
        if (x[other] > x[best] || (x[other] == x[best] && other < best))
            best = other;
    }
    for (; c < n; c++)
        if (x[c] > x[best])
            best = c;
    return best;
}

static int forward(const float *x, int classes, float *y, double *sum)
{
    const int guess = largest(x, classes);
    double total = 0.0, power[POWERS_MOST];
    for (int at = 0; at < classes; at += POWERS_MOST) {
        const int n = classes - at < POWERS_MOST ? classes - at : POWERS_MOST;
        for (int c = 0; c < n; c++)
            power[c] = (double)x[at + c] - (double)x[guess];
        powers(power, n);
        for (int c = 0; c < n; c++) {
            y[at + c] = (float)power[c];
            total += power[c];
        }
    }
    for (int c = 0; c < classes; c++)
        y[c] = (float)((double)y[c] / total);
    *sum = total;
    return guess;
}

static void backward(const struct tdmi_softmax_gradient *call)
{
    const float *restrict y = call->y, *restrict weights = call->class_weights;
    float *restrict dx = call->dx;
    if (weights)
        for (int c = 0; c < call->classes; c++)
            dx[c] = (float)((double)y[c] * call->weight - call->target * (double)weights[c]);
    else
        for (int c = 0; c < call->classes; c++)
            dx[c] = (float)((double)y[c] * call->weight - call->target);
}

const struct tdmi_softmax_kernels TDMI_THIS_ISA(tdmi_softmax) = {forward, backward};
