/* The table of op cases: odd, ragged, strided, 1×1, one image, one channel. */
#include "train/selftest/cases.h"

#define CONV(out, k, s, before, after, bias)                                                 \
    {                                                                                        \
        .channels = out, .kernel = k, .stride = s, .pad_before = before, .pad_after = after, \
        .has_bias = bias                                                                     \
    }
#define POOL(k, s, before, after)                                          \
    {                                                                      \
        .kernel = k, .stride = s, .pad_before = before, .pad_after = after \
    }

static const struct tdmi_case cases[] = {
    {"1×1", TDMI_OP_CONV, CONV(7, 1, 1, 0, 0, false), {5, 4, 3}, 2, 2},
    {"3×3 same", TDMI_OP_CONV, CONV(8, 3, 1, 1, 1, true), {6, 7, 4}, 3, 3},
    {"3×3 valid, ragged shard", TDMI_OP_CONV, CONV(5, 3, 1, 0, 0, true), {9, 5, 2}, 2, 8},
    {"3×3 stride 2, padding after only", TDMI_OP_CONV, CONV(6, 3, 2, 0, 1, false), {8, 8, 3}, 2, 2},
    {"3×3 stride 2, odd picture", TDMI_OP_CONV, CONV(33, 3, 2, 1, 1, false), {11, 7, 5}, 2, 2},
    {"5×5 pad 2, one channel in", TDMI_OP_CONV, CONV(6, 5, 1, 2, 2, true), {7, 9, 1}, 2, 2},
    {"2×2 stride 3: pixels between windows",
     TDMI_OP_CONV,
     CONV(4, 2, 3, 0, 0, true),
     {7, 8, 3},
     1,
     1},
    {"7×7 stride 2 on 7×7: one pixel out",
     TDMI_OP_CONV,
     CONV(36, 7, 2, 0, 0, true),
     {7, 7, 2},
     2,
     2},
    {"1×1 stride 2", TDMI_OP_CONV, CONV(3, 1, 2, 0, 0, false), {5, 5, 17}, 2, 2},
    {"3×3 on one pixel", TDMI_OP_CONV, CONV(16, 3, 1, 1, 1, false), {1, 1, 16}, 4, 4},
    {"many pixels", TDMI_OP_BATCH_NORM, {.epsilon = 1e-5, .momentum = 0.1}, {6, 5, 7}, 4, 4},
    {"one channel", TDMI_OP_BATCH_NORM, {.epsilon = 1e-3, .momentum = 0.01}, {3, 3, 1}, 2, 2},
    {"one pixel, ragged shard",
     TDMI_OP_BATCH_NORM,
     {.epsilon = 1e-5, .momentum = 0.1},
     {1, 1, 20},
     5,
     8},
    {"odd sizes", TDMI_OP_RELU, {0}, {5, 3, 7}, 3, 4},
    {"2×2", TDMI_OP_MAX_POOL, POOL(2, 2, 0, 0), {6, 8, 5}, 3, 3},
    {"2×2 on odd picture", TDMI_OP_MAX_POOL, POOL(2, 2, 0, 0), {7, 5, 3}, 2, 2},
    {"3×3 stride 2, padded, overlapping", TDMI_OP_MAX_POOL, POOL(3, 2, 1, 1), {9, 8, 4}, 2, 3},
    {"3×3 stride 1", TDMI_OP_MAX_POOL, POOL(3, 1, 1, 1), {4, 4, 2}, 1, 1},
    {"7×7", TDMI_OP_GLOBAL_POOL, {0}, {7, 7, 9}, 3, 4},
    {"1×1", TDMI_OP_GLOBAL_POOL, {0}, {1, 1, 3}, 1, 1},
    {"flat", TDMI_OP_DENSE, {.channels = 10, .has_bias = true}, {1, 1, 84}, 5, 8},
    {"picture", TDMI_OP_DENSE, {.channels = 37, .has_bias = false}, {3, 4, 5}, 3, 3},
    {"one output", TDMI_OP_DENSE, {.channels = 1, .has_bias = true}, {1, 1, 9}, 1, 1},
    {"two classes", TDMI_OP_SOFTMAX, {0}, {1, 1, 2}, 4, 4},
    {"257 classes, ragged shard", TDMI_OP_SOFTMAX, {0}, {1, 1, 257}, 3, 8},
    {"grey, unit scale",
     TDMI_OP_INPUT,
     {.preprocess =
          {.width = 5, .height = 3, .channels = 1, .crop_fraction = 1.0, .scale = TDMI_SCALE_UNIT}},
     {0, 0, 0},
     2,
     4},
    {"colour, torch scale",
     TDMI_OP_INPUT,
     {.preprocess = {.width = 4,
                     .height = 6,
                     .channels = 3,
                     .crop_fraction = 1.0,
                     .scale = TDMI_SCALE_TORCH}},
     {0, 0, 0},
     3,
     3},
};

enum { n_cases = sizeof cases / sizeof cases[0] };

const struct tdmi_case *tdmi_case_at(int index)
{
    return index >= 0 && index < n_cases ? &cases[index] : NULL;
}
