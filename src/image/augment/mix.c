/*
 * mixup (Zhang et al., 2018) and cutmix (Yun et al., 2019) between neighbours of one group. A
 * group is computed by one thread or one team, so partners never cross ranks. First the operation,
 * weight and box of each image are drawn; then pixels are mixed in place:
 *
 *     0 ◄── 1 ◄── 2 ◄── … ◄── last ◄── 0      each takes from the next, which is still unchanged;
 *                                             only the first one is needed again and set aside
 */
#include "image/augment/ops.h"

#include "base/system/multiversion.h"
#include <math.h>
#include <string.h>

bool tdmi_augment_has_mix(const struct tdmi_augment *augment)
{
    return augment->is_on[TDMI_AUGMENT_MIXUP] || augment->is_on[TDMI_AUGMENT_CUTMIX];
}

/* In (0, 1): middles of 2^24 intervals. */
static double open_unit(tdmi_rng *rng)
{
    return (double)tdmi_rng_unit(rng) + 0x1p-25;
}

/* Beta(alpha, alpha). From 1 on its density is highest in the middle, so x is drawn evenly and kept
 * with the chance (4 x (1 - x))^(alpha - 1). Below 1 by Johnk's method (1964): u^(1/alpha) and
 * v^(1/alpha), drawn until their sum is at most 1; the result is the first one's part of it, in
 * logarithms, which never underflow. Either keeps at least 3 of 10 within the range of alpha. */
static double draw_beta(tdmi_rng *rng, double alpha)
{
    for (;;) {
        const double x = open_unit(rng), y = open_unit(rng);
        if (alpha >= 1) {
            if (y <= pow(4 * x * (1 - x), alpha - 1))
                return x;
            continue;
        }
        const double u = log(x) / alpha, v = log(y) / alpha;
        if (exp(u) + exp(v) <= 1)
            return 1 / (1 + exp(v - u));
    }
}

static void draw_mixup(struct tdmi_augment_key key, double alpha, struct tdmi_mix *mix)
{
    tdmi_rng rng = tdmi_augment_rng(key, TDMI_AUGMENT_MIXUP);
    mix->blend = (int)floor(256 * draw_beta(&rng, alpha) + 0.5);
    mix->weight = (float)mix->blend / 256;
}

static void draw_cutmix(struct tdmi_augment_key key, double alpha, struct tdmi_augment_shape shape,
                        struct tdmi_mix *mix)
{
    tdmi_rng rng = tdmi_augment_rng(key, TDMI_AUGMENT_CUTMIX);
    const double half = 0.5 * sqrt(1 - draw_beta(&rng, alpha));
    const int x = (int)tdmi_rng_below(&rng, (uint32_t)shape.width);
    const int y = (int)tdmi_rng_below(&rng, (uint32_t)shape.height);
    const int across = (int)(half * shape.width), down = (int)(half * shape.height);
    mix->left = tdmi_augment_between(x - across, 0, shape.width);
    mix->right = tdmi_augment_between(x + across, 0, shape.width);
    mix->top = tdmi_augment_between(y - down, 0, shape.height);
    mix->bottom = tdmi_augment_between(y + down, 0, shape.height);
    const double area = (double)(mix->right - mix->left) * (mix->bottom - mix->top);
    mix->weight = (float)(1 - area / ((double)shape.width * shape.height));
}

/* The next place after i, around the end, whose label is not negative; i when there is no other. */
static int next_of(const int32_t *labels, int n, int i)
{
    for (int step = 1; step < n; step++)
        if (labels[(i + step) % n] >= 0)
            return (i + step) % n;
    return i;
}

void tdmi_augment_pair(const struct tdmi_augment *augment, const struct tdmi_augment_key *keys,
                       const int32_t *labels, int n, struct tdmi_augment_shape shape,
                       struct tdmi_mix *mixes)
{
    const bool has_blend = augment->is_on[TDMI_AUGMENT_MIXUP];
    const bool has_cut = augment->is_on[TDMI_AUGMENT_CUTMIX];
    for (int i = 0; i < n; i++) {
        struct tdmi_mix *mix = &mixes[i];
        *mix = (struct tdmi_mix){.partner = i, .weight = 1, .blend = 256};
        if (!(has_blend || has_cut) || labels[i] < 0)
            continue;
        int partner = next_of(labels, n, i);
        if (partner == i)
            continue;
        mix->partner = partner;
        bool is_cut = has_cut;
        if (has_blend && has_cut) { /* one of them, by a draw that neither uses */
            tdmi_rng rng = tdmi_augment_rng(keys[i], TDMI_AUGMENT_CUTMIX);
            rng.counter[0] |= (uint32_t)1 << 23;
            is_cut = tdmi_rng_below(&rng, 2) == 1;
        }
        if (is_cut)
            draw_cutmix(keys[i], augment->arguments[TDMI_AUGMENT_CUTMIX][0], shape, mix);
        else
            draw_mixup(keys[i], augment->arguments[TDMI_AUGMENT_MIXUP][0], mix);
    }
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* 16-bit sums: 255 · 256 + 128 fits. */
TDMI_MULTIVERSION
static void blend(uint8_t *restrict own, const uint8_t *restrict other, size_t n, uint16_t part)
{
    const uint16_t rest = (uint16_t)(256 - part);
    for (size_t i = 0; i < n; i++)
        own[i] = (uint8_t)((uint16_t)(own[i] * part + other[i] * rest + 128) >> 8);
}

static void cut(const struct tdmi_mix *mix, struct tdmi_augment_shape shape, uint8_t *own,
                const uint8_t *other)
{
    const size_t channels = (size_t)shape.channels, row_bytes = channels * (size_t)shape.width;
    for (int y = mix->top; y < mix->bottom; y++) {
        const size_t at = row_bytes * (size_t)y + channels * (size_t)mix->left;
        memcpy(own + at, other + at, channels * (size_t)(mix->right - mix->left));
    }
}

void tdmi_augment_mix(const struct tdmi_mix *mixes, int n, struct tdmi_augment_shape shape,
                      uint8_t *pixels, uint8_t *spare)
{
    const size_t picture_bytes =
        (size_t)shape.height * (size_t)shape.width * (size_t)shape.channels;
    int set_aside = -1;
    for (int i = 0; i < n; i++) {
        const struct tdmi_mix *mix = &mixes[i];
        if (mix->partner == i)
            continue;
        uint8_t *own = pixels + picture_bytes * (size_t)i;
        if (set_aside < 0) {
            set_aside = i;
            memcpy(spare, own, picture_bytes);
        }
        const uint8_t *other =
            mix->partner == set_aside ? spare : pixels + picture_bytes * (size_t)mix->partner;
        if (mix->blend < 256)
            blend(own, other, picture_bytes, (uint16_t)mix->blend);
        else
            cut(mix, shape, own, other);
    }
}
