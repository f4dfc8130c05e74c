/* input.cu: every scale, one channel and three, pictures anywhere in memory. Beside the host's own
 * numbers, to the bit; half types within half a step. */
#include "values.h"
#include "backend/cuda/input.h"

enum { n = 3, side = 9 };

static void run(enum tdmi_scale scale, int channels, enum tdmi_dtype type)
{
    const struct tdmi_preprocess preprocess = {
        .width = side, .height = side, .channels = channels, .scale = scale};
    const int64_t values = (int64_t)side * side * channels;
    struct tdmi_cuda_input it = {.type = type, .n = n, .channels = channels, .values = values};
    uint8_t bytes[n * (side * side * 3 + 5)];
    const uint8_t *pixels[n];
    float wanted[side * side * 3];
    void *block, *y = tensor(type, n * values, 1, 0, &block);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    for (int i = 0; i < n; i++) /* the last one first */
        pixels[i] = bytes + (n - 1 - i) * (side * side * 3 + 5) + i;
    for (int c = 0; c < 3; c++)
        it.normal[c] = tdmi_preprocess_normal(&preprocess, c);
    assert_int_equal(tdmi_cuda_input_forward(NULL, &it, pixels, y), 0);
    for (int i = 0; i < n; i++) {
        tdmi_preprocess_normalise(&preprocess, pixels[i], side * side, wanted);
        for (int64_t k = 0; k < values; k++)
            expect_near(value_at(y, type, i * values + k), (double)wanted[k],
                        type == TDMI_DTYPE_F32 ? 0.0 : step_of(type, fabs((double)wanted[k])), "y",
                        i * values + k);
    }
    tdmi_free(block);
}

void case_input(void **state)
{
    static const enum tdmi_scale scales[] = {TDMI_SCALE_TF, TDMI_SCALE_TORCH, TDMI_SCALE_UNIT,
                                             TDMI_SCALE_RAW, TDMI_SCALE_CAFFE};
    (void)state;
    tdmi_shim_use((struct tdmi_shim_way){0});
    for (int s = 0; s < 5; s++)
        for (int t = 0; t < n_float_types; t++)
            for (int channels = 1; channels <= 3; channels += 2)
                run(scales[s], channels, float_types[t]);
}
