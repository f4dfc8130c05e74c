/*
 * Batch norm over the last axis, parameters (scale, shift), states (running mean, running
 * variance).
 *
 * Training uses the statistics of the images in this call, that is, of the group, or of all groups
 * of the batch where a total is given; it hands out n · mean and n · variance (unbiased as in
 * PyTorch, or the biased one of Keras): summed over groups and divided by the sample count they
 * become what the running statistics move towards. Sums run in double and from the running mean, so
 * that neither a large mean nor a large picture costs digits.
 */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

static int64_t pixels_of(const struct tdmi_op_desc *desc, int n)
{
    return n * tdmi_shape_pixels(desc->out);
}

TDMI_KERNEL_RUN(reduce_forward)
{
    int channels = desc->out.c;
    int64_t n_pixels = pixels_of(desc, call->n);
    double *sum = call->norm.sums, *square = sum + channels;
    memset(sum, 0, 2 * sizeof(double) * (size_t)channels);
    for (int64_t p = 0; p < n_pixels; p++) {
        for (int c = 0; c < channels; c++) {
            double off = (double)call->x[0][p * channels + c] - (double)call->norm.centre[c];
            sum[c] += off;
            square[c] += off * off;
        }
    }
}

static void finish_channel(const struct tdmi_op_call *call, int c, double mean, double rstd)
{
    const struct tdmi_norm *norm = &call->norm;
    norm->mean[c] = (float)mean;
    norm->rstd[c] = (float)rstd;
    norm->scale[c] = call->params[0][c] * norm->rstd[c];
    norm->shift[c] = call->params[1][c] - norm->mean[c] * norm->scale[c];
}

void tdmi_ref_norm_keep(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    for (int c = 0; c < desc->out.c; c++) {
        const double variance = (double)call->states[1][c];
        finish_channel(call, c, (double)call->states[0][c],
                       1.0 / sqrt(variance + desc->attrs.epsilon));
        call->state_sums[0][c] = call->state_sums[1][c] = 0.0f;
    }
}

void tdmi_ref_norm_finish(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    const struct tdmi_norm *norm = &call->norm;
    int channels = desc->out.c;
    double m = (double)pixels_of(desc, norm->total_images);
    double unbiased = m > 1.0 && !desc->attrs.is_biased ? m / (m - 1.0) : 1.0;
    for (int c = 0; c < channels; c++) {
        double off = norm->total[c] / m;
        double variance = fmax(norm->total[channels + c] / m - off * off, 0.0);
        double mean = (double)norm->centre[c] + off;
        finish_channel(call, c, mean, 1.0 / sqrt(variance + desc->attrs.epsilon));
        call->state_sums[0][c] = (float)(mean * call->n);
        call->state_sums[1][c] = (float)(variance * unbiased * call->n);
    }
}

void tdmi_ref_norm_form(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                        float *scale, float *shift)
{
    for (int c = 0; c < desc->out.c; c++) {
        double rstd = 1.0 / sqrt((double)call->states[1][c] + desc->attrs.epsilon);
        scale[c] = call->params[0][c] * (float)rstd;
        shift[c] = call->params[1][c] - call->states[0][c] * scale[c];
    }
}

static void normalise(const struct tdmi_op_call *call, int64_t n_pixels, int channels,
                      const float *factor, const float *offset)
{
    for (int64_t p = 0; p < n_pixels; p++)
        for (int c = 0; c < channels; c++)
            call->y[p * channels + c] = call->x[0][p * channels + c] * factor[c] + offset[c];
}

TDMI_KERNEL_RUN(forward)
{
    int channels = desc->out.c;
    const float *factor = call->norm.scale, *offset = call->norm.shift;
    if (desc->is_training && desc->keeps_statistics) {
        tdmi_ref_norm_keep(desc, call);
    } else if (desc->is_training) {
        tdmi_ref_norm_finish(desc, call);
    } else {
        float *own = call->workspace;
        tdmi_ref_norm_form(desc, call, own, own + channels);
        factor = own;
        offset = own + channels;
    }
    normalise(call, pixels_of(desc, call->n), channels, factor, offset);
}

TDMI_KERNEL_RUN(reduce_backward)
{
    int channels = desc->out.c;
    int64_t n_pixels = pixels_of(desc, call->n);
    const float *mean = call->norm.mean;
    double *sum = call->norm.sums, *product = sum + channels;
    memset(sum, 0, 2 * sizeof(double) * (size_t)channels);
    for (int64_t p = 0; p < n_pixels; p++) {
        for (int c = 0; c < channels; c++) {
            double dy = (double)call->dy[p * channels + c];
            sum[c] += dy;
            product[c] += dy * (double)(call->x[0][p * channels + c] - mean[c]);
        }
    }
}

/* With x^ = (x - mean) · s:  dshift = Σ dy,  dscale = Σ dy · x^,
 * dx = scale · s · (dy - dshift / m - x^ · dscale / m), m values a channel. The gradients of scale
 * and shift are this group's part; dx needs the sums over all that share statistics. Where mean and
 * s are kept they do not depend on x, and dx = scale · s · dy. */
TDMI_KERNEL_RUN(backward)
{
    const struct tdmi_norm *norm = &call->norm;
    int channels = desc->out.c;
    int64_t n_pixels = pixels_of(desc, call->n);
    double m = (double)pixels_of(desc, norm->total_images);
    float *dy_mean = call->workspace, *dyx_mean = dy_mean + channels;
    const bool is_fixed = desc->keeps_statistics;
    for (int c = 0; c < channels; c++) {
        double rstd = (double)norm->rstd[c];
        call->dparams[0][c] = (float)(norm->sums[channels + c] * rstd);
        call->dparams[1][c] = (float)norm->sums[c];
        dy_mean[c] = is_fixed ? 0.0f : (float)(norm->total[c] / m);
        dyx_mean[c] = is_fixed ? 0.0f : (float)(norm->total[channels + c] * rstd / m);
    }
    if (!call->dx[0])
        return;
    for (int64_t p = 0; p < n_pixels; p++) {
        for (int c = 0; c < channels; c++) {
            int64_t at = p * channels + c;
            float x = (call->x[0][at] - norm->mean[c]) * norm->rstd[c];
            call->dx[0][at] = norm->scale[c] * (call->dy[at] - dy_mean[c] - x * dyx_mean[c]);
        }
    }
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    needs->workspace_bytes = (size_t)desc->out.c * 2 * sizeof(float);
}

const struct tdmi_kernel tdmi_ref_batch_norm = {
    .needs = needs,
    .forward = forward,
    .backward = backward,
    .reduce_forward = reduce_forward,
    .reduce_backward = reduce_backward,
};
