/*
 * Batch norm over the last axis, parameters (scale, shift), states (running mean, running
 * variance).
 *
 * Training uses the statistics of the images in this call, that is, of the shard, and hands out
 * n · mean and n · unbiased variance: summed over shards and divided by the sample count they
 * become what the running statistics move towards. Sums run in double, so that neither a large
 * mean nor a large picture costs digits. Saved: mean and 1 / sqrt(variance + epsilon) per channel.
 */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

static void statistics(const float *x, int64_t n_pixels, int channels, double *mean,
                       double *variance)
{
    memset(mean, 0, sizeof(double) * (size_t)channels);
    memset(variance, 0, sizeof(double) * (size_t)channels);
    for (int64_t p = 0; p < n_pixels; p++)
        for (int c = 0; c < channels; c++)
            mean[c] += (double)x[p * channels + c];
    for (int c = 0; c < channels; c++)
        mean[c] /= (double)n_pixels;
    for (int64_t p = 0; p < n_pixels; p++) {
        for (int c = 0; c < channels; c++) {
            double off = (double)x[p * channels + c] - mean[c];
            variance[c] += off * off;
        }
    }
    for (int c = 0; c < channels; c++)
        variance[c] /= (double)n_pixels;
}

static void normalise(const struct tdmi_op_call *call, int64_t n_pixels, int channels,
                      const float *factor, const float *offset)
{
    for (int64_t p = 0; p < n_pixels; p++)
        for (int c = 0; c < channels; c++)
            call->y[p * channels + c] = call->x[0][p * channels + c] * factor[c] + offset[c];
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    (void)stream;
    int channels = desc->out.c;
    int64_t n_pixels = call->n * tdmi_shape_pixels(desc->out);
    double *mean = call->workspace, *variance = mean + channels;
    float *factor = (float *)(variance + channels), *offset = factor + channels;
    if (desc->is_training) {
        float *saved_mean = call->saved, *saved_scale = saved_mean + channels;
        double unbiased = n_pixels > 1 ? (double)n_pixels / (double)(n_pixels - 1) : 1.0;
        statistics(call->x[0], n_pixels, channels, mean, variance);
        for (int c = 0; c < channels; c++) {
            saved_mean[c] = (float)mean[c];
            saved_scale[c] = (float)(1.0 / sqrt(variance[c] + desc->attrs.epsilon));
            call->state_sums[0][c] = (float)(mean[c] * call->n);
            call->state_sums[1][c] = (float)(variance[c] * unbiased * call->n);
            factor[c] = call->params[0][c] * saved_scale[c];
            offset[c] = call->params[1][c] - saved_mean[c] * factor[c];
        }
    } else {
        for (int c = 0; c < channels; c++) {
            double scale = 1.0 / sqrt((double)call->states[1][c] + desc->attrs.epsilon);
            factor[c] = call->params[0][c] * (float)scale;
            offset[c] = call->params[1][c] - call->states[0][c] * factor[c];
        }
    }
    normalise(call, n_pixels, channels, factor, offset);
}

/* With x^ = (x - mean) · s:  dshift = Σ dy,  dscale = Σ dy · x^,
 * dx = scale · s · (dy - dshift / m - x^ · dscale / m), m values a channel. */
static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    (void)stream;
    int channels = desc->out.c;
    int64_t n_pixels = call->n * tdmi_shape_pixels(desc->out);
    const float *mean = call->saved, *scale = mean + channels;
    double *sum = call->workspace, *sum_x = sum + channels;
    memset(sum, 0, 2 * sizeof(double) * (size_t)channels);
    for (int64_t p = 0; p < n_pixels; p++) {
        for (int c = 0; c < channels; c++) {
            double dy = (double)call->dy[p * channels + c];
            sum[c] += dy;
            sum_x[c] += dy * (double)((call->x[0][p * channels + c] - mean[c]) * scale[c]);
        }
    }
    float *dy_mean = (float *)(sum_x + channels), *dyx_mean = dy_mean + channels;
    for (int c = 0; c < channels; c++) {
        call->dparams[0][c] = (float)sum_x[c];
        call->dparams[1][c] = (float)sum[c];
        dy_mean[c] = (float)(sum[c] / (double)n_pixels);
        dyx_mean[c] = (float)(sum_x[c] / (double)n_pixels);
    }
    if (!desc->wants_dx)
        return;
    for (int64_t p = 0; p < n_pixels; p++) {
        for (int c = 0; c < channels; c++) {
            int64_t at = p * channels + c;
            float x = (call->x[0][at] - mean[c]) * scale[c];
            call->dx[at] =
                call->params[0][c] * scale[c] * (call->dy[at] - dy_mean[c] - x * dyx_mean[c]);
        }
    }
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    size_t channels = (size_t)desc->out.c;
    needs->workspace_bytes = channels * (2 * sizeof(double) + 2 * sizeof(float));
    needs->saved_bytes = desc->is_training ? channels * 2 * sizeof(float) : 0;
}

const struct tdmi_kernel tdmi_ref_batch_norm = {NULL, needs, forward, backward};
