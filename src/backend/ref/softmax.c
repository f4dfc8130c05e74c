/*
 * Softmax and its cross-entropy in one: y are probabilities, judgements the loss and the guess of
 * every sample, and dx = y - onehot(label), a sum over samples like every gradient here.
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
        if (call->labels) {
            double off = (double)x[guess] - (double)x[call->labels[i]];
            call->judgements[i] = (struct tdmi_judgement){(float)(log(sum) + off), guess};
        }
    }
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    (void)stream;
    if (!desc->wants_dx)
        return;
    int classes = desc->out.c;
    for (int i = 0; i < call->n; i++)
        for (int c = 0; c < classes; c++)
            call->dx[(int64_t)i * classes + c] =
                call->y[(int64_t)i * classes + c] - (c == call->labels[i] ? 1.0f : 0.0f);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    (void)desc;
    (void)needs; /* none */
}

const struct tdmi_kernel tdmi_ref_softmax = {NULL, needs, forward, backward};
