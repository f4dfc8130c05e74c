/*
 * input.cu: every scale, one channel and three, images anywhere in memory; beside the host's own
 * numbers, bit by bit, half types within half a step. Changed images: beside augmentation's own
 * bytes, with the draws of many keys.
 */
#include "backend/cuda/values.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/image/image.h"
#include "image/augment/augment.h"

enum { n = 3, side = 9 };

static void run(enum tdmi_scale scale, int channels, enum tdmi_dtype type)
{
    const struct tdmi_preprocess preprocess = {
        .width = side, .height = side, .channels = channels, .scale = scale};
    const int64_t values = (int64_t)side * side * channels;
    struct tdmi_cuda_input it = {.type = type, .n = n, .h = side, .w = side, .channels = channels};
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

/* ---- changes ---------------------------------------------------------------------------- */

enum { most = 6, wide = 23, high = 17, picture_bytes = wide * high * 3 };

struct pictures {
    struct tdmi_augment_shape shape;
    int64_t values; /* of one */
    uint8_t bytes[most * picture_bytes], wanted[most * picture_bytes];
    struct tdmi_augment_key keys[most];
    struct tdmi_mix mixes[most];
    struct tdmi_cuda_change changes[most];
};

static void make(struct pictures *it, int channels, uint32_t epoch)
{
    tdmi_rng rng = tdmi_rng_at(4, TDMI_RNG_TEST, 8, epoch);
    it->shape = (struct tdmi_augment_shape){high, wide, channels};
    it->values = (int64_t)high * wide * channels;
    for (size_t i = 0; i < sizeof it->bytes; i++) /* not all of them grey, and not all of colour */
        it->bytes[i] = (uint8_t)(tdmi_rng_below(&rng, 4) ? tdmi_rng_below(&rng, 256) : i % 256);
    for (int i = 0; i < most; i++)
        it->keys[i] = (struct tdmi_augment_key){.seed = 77, .epoch = epoch, .sample = 5 + i};
    it->keys[2] = (struct tdmi_augment_key){.seed = 77, .content = 123456789, .view = epoch};
}

/* As the host does it, to it->wanted; what is left for the GPU, to it->changes. */
static void change(struct pictures *it, const struct tdmi_augment *augment)
{
    static const int32_t labels[most] = {1, 0, 2, -1, 1, 0};
    struct tdmi_augment first, rest;
    uint8_t spare[picture_bytes];
    tdmi_augment_divide(augment, &first, &rest);
    memcpy(it->wanted, it->bytes, sizeof it->wanted);
    tdmi_augment_pair(augment, it->keys, labels, most, it->shape, it->mixes);
    for (int i = 0; i < most; i++) {
        struct tdmi_augment_change due;
        tdmi_augment_picture(augment, it->keys[i], it->shape, it->wanted + i * it->values, spare);
        tdmi_augment_picture(&first, it->keys[i], it->shape, it->bytes + i * it->values, spare);
        tdmi_augment_draw(&rest, it->keys[i], it->shape, &due);
        tdmi_cuda_changes.put(&it->changes[i], &due, &it->mixes[i], i);
    }
    tdmi_augment_mix(it->mixes, most, it->shape, it->wanted, spare);
}

static void compare(struct pictures *it, const char *spec, enum tdmi_dtype type, double limit)
{
    const struct tdmi_preprocess raw = {
        .width = wide, .height = high, .channels = it->shape.channels, .scale = TDMI_SCALE_RAW};
    struct tdmi_cuda_input input = {
        .type = type, .n = most, .h = high, .w = wide, .channels = it->shape.channels};
    const uint8_t *pixels[most];
    int32_t means[most];
    void *block, *y = tensor(type, most * it->values, 0, 0, &block);
    for (int c = 0; c < 3; c++)
        input.normal[c] = tdmi_preprocess_normal(&raw, c);
    for (int i = 0; i < most; i++)
        pixels[i] = it->bytes + i * it->values;
    assert_int_equal(tdmi_cuda_input_means(NULL, &input, pixels, it->changes, means), 0);
    assert_int_equal(tdmi_cuda_input_changed(NULL, &input, pixels, it->changes, means, y), 0);
    for (int64_t i = 0; i < most * it->values; i++)
        expect_near(value_at(y, type, i), (double)it->wanted[i],
                    limit + (type == TDMI_DTYPE_BF16 ? 0.5 : 0.0), spec, i);
    tdmi_free(block);
}

static void run_changes(void)
{
    static const struct {
        const char *spec;
        double limit; /* of 255: what a GPU may compute with other roundings */
    } specs[] = {
        {"crop:3:40", 0.0},
        {"crop:40", 0.0}, /* nothing of the image may be left */
        {"flip", 0.0},
        {"jitter:0.4:0:0:0", 0.0},
        {"jitter:0:0.9:0:0", 0.0},
        {"jitter:0:0:0.7:0", 0.0},
        {"jitter:0:0:0:0.5", 1.0},
        {"crop:2,flip,jitter:0.4:0.4:0.4:0.1,cutout:6:9", 1.0},
        {"flip,mixup:0.4", 0.0},
        {"crop:4,flip,cutmix:1", 0.0},
        {"flip,jitter:0.3:0.3:0.3:0,cutout:8,mixup:0.2,cutmix", 0.0},
        {"crop,flip,rotate:20,jitter:0.2,cutout:4", 0.0},
        {"flip,randaugment,cutout:5", 0.0},
    };
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (uint32_t epoch = 0; epoch < 4; epoch++) {
            struct pictures it;
            struct tdmi_augment augment;
            assert_int_equal(tdmi_augment_read(specs[s].spec, &augment, NULL), TDM_OK);
            make(&it, epoch % 2 ? 1 : 3, epoch);
            change(&it, &augment);
            tdmi_shim_use((struct tdmi_shim_order){.is_reversed = epoch > 1});
            compare(&it, specs[s].spec, float_types[epoch % n_float_types], specs[s].limit);
        }
}

void case_input(void **state)
{
    static const enum tdmi_scale scales[] = {TDMI_SCALE_TF, TDMI_SCALE_TORCH, TDMI_SCALE_UNIT,
                                             TDMI_SCALE_RAW, TDMI_SCALE_CAFFE};
    (void)state;
    tdmi_shim_use((struct tdmi_shim_order){0});
    for (int s = 0; s < 5; s++)
        for (int t = 0; t < n_float_types; t++)
            for (int channels = 1; channels <= 3; channels += 2)
                run(scales[s], channels, float_types[t]);
    run_changes();
}
