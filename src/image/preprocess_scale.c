/* Bytes to floats: the end of a preprocessing, and the first op of a network. */
#include "base/system/multiversion.h"
#include "image/preprocess.h"

/* Divisions, not products with a rounded reciprocal: the same floats as the formulas in the header
 * give in other programs. */
static const float mean_rgb[3] = {0.485f, 0.456f, 0.406f}, std_rgb[3] = {0.229f, 0.224f, 0.225f};
static const float caffe_rgb[3] = {123.68f, 116.779f, 103.939f};
static const float mean_grey = 0.449f, std_grey = 0.226f, caffe_grey = 114.799f; /* averages */

struct tdmi_normal tdmi_preprocess_normal(const struct tdmi_preprocess *preprocess, int channel)
{
    switch (preprocess->scale) {
    case TDMI_SCALE_TF:
        return (struct tdmi_normal){127.5f, 1.0f, 1.0f};
    case TDMI_SCALE_TORCH:
        if (preprocess->channels == 1)
            return (struct tdmi_normal){255.0f, mean_grey, std_grey};
        return (struct tdmi_normal){255.0f, mean_rgb[channel % 3], std_rgb[channel % 3]};
    case TDMI_SCALE_UNIT:
        return (struct tdmi_normal){255.0f, 0.0f, 1.0f};
    case TDMI_SCALE_CAFFE:
        return (struct tdmi_normal){
            1.0f, preprocess->channels == 1 ? caffe_grey : caffe_rgb[channel % 3], 1.0f};
    case TDMI_SCALE_RAW:
        break;
    }
    return (struct tdmi_normal){1.0f, 0.0f, 1.0f};
}

TDMI_MULTIVERSION
void tdmi_preprocess_normalise(const struct tdmi_preprocess *preprocess, const uint8_t *bytes,
                               int64_t n_pixels, float *out)
{
    const int64_t n = n_pixels * preprocess->channels;
    switch (preprocess->scale) {
    case TDMI_SCALE_TF:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)bytes[i] / 127.5f - 1.0f;
        return;
    case TDMI_SCALE_TORCH:
        if (preprocess->channels == 1)
            for (int64_t i = 0; i < n; i++)
                out[i] = ((float)bytes[i] / 255.0f - mean_grey) / std_grey;
        else
            for (int64_t i = 0; i < n_pixels; i++)
                for (int64_t c = 0; c < 3; c++)
                    out[3 * i + c] = ((float)bytes[3 * i + c] / 255.0f - mean_rgb[c]) / std_rgb[c];
        return;
    case TDMI_SCALE_UNIT:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)bytes[i] / 255.0f;
        return;
    case TDMI_SCALE_RAW:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)bytes[i];
        return;
    case TDMI_SCALE_CAFFE:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)bytes[i] - (preprocess->channels == 1 ? caffe_grey : caffe_rgb[i % 3]);
        return;
    }
}
