/*
 * Augmentation: how images are changed while training. Every change is a pure function of (seed,
 * epoch, sample, repeat), or of (seed, content, view) where the same changes must recur,
 * drawn from the counter generator: threads, ranks, restarts and the order of calls cannot change
 * it. Three stages, each optional:
 *
 *     decoded image ──box──► resized to (height, width, channels) ──image──► ──mix──► group
 *
 * The list, with arguments and ranges, is augments.def; docs/reference/augmentations.md defines
 * each.
 */
#pragma once

#include "base/text/text.h"
#include "image/image.h"

enum { TDMI_AUGMENT_ARGUMENTS = 4 };

enum tdmi_augment_kind {
#define X(name, ...) TDMI_AUGMENT_##name,
#include "image/augment/augments.def"
#undef X
    TDMI_AUGMENTS
};

/* Augmentations to apply; zeroed: none. */
struct tdmi_augment {
    bool is_on[TDMI_AUGMENTS];
    double arguments[TDMI_AUGMENTS][TDMI_AUGMENT_ARGUMENTS]; /* as in augments.def; 0 where off */
};

/* The counter of the generator: one sample in one epoch. */
struct tdmi_augment_key {
    uint64_t seed;
    uint32_t epoch;
    int64_t sample; /* below 2^40 */
    int64_t repeat; /* tdmi_order_repeat: separates draws of the same sample; below 2^24 */
    /* Not 0: hash of what the image holds, which decides with the seed and the number of the view
     * alone. sample and repeat say nothing then, so an image is changed alike wherever it lies. */
    uint64_t content;
    uint32_t view;
};

struct tdmi_augment_shape {
    int height, width;
    int channels; /* 1 (grey) or 3 (RGB) */
};

/* ---- description --------------------------------------------------------------------------- */

/* "flip,crop:4,jitter:0.4:0.4:0.2": names of augments.def with the values of their arguments in
 * order; what is left out has its default. "" and "none" are nothing. TDM_E_USAGE in one sentence.
 */
tdm_status tdmi_augment_read(const char *spec, struct tdmi_augment *augment,
                             tdm_error *err) TDM_MUST_USE;
/* The spec with every value written out, names in the order of the list; appended to text. Reads
 * back to the same. */
void tdmi_augment_write(const struct tdmi_augment *augment, tdmi_text *text);

const char *tdmi_augment_name(enum tdmi_augment_kind kind); /* "flip" */

/* ---- before scaling ------------------------------------------------------------------------ */

/* With resized-crop: the box of a decoded image that is to become the whole input, and true. */
bool tdmi_augment_box(const struct tdmi_augment *augment, struct tdmi_augment_key key, int width,
                      int height, struct tdmi_box *box);

/* ---- one image ----------------------------------------------------------------------------- */

/* Is anything done at all? */
bool tdmi_augment_changes(const struct tdmi_augment *augment);
/* Is there anything between box and mix? */
bool tdmi_augment_has_pixels(const struct tdmi_augment *augment);
/* Changes (height, width, channels) bytes in place; spare is as large and its content is lost.
 * Allocates nothing, never fails, any thread. */
void tdmi_augment_picture(const struct tdmi_augment *augment, struct tdmi_augment_key key,
                          struct tdmi_augment_shape shape, uint8_t *pixels, uint8_t *spare);

/* ---- one image, elsewhere ----------------------------------------------------------------- */

enum tdmi_augment_colour {
    TDMI_COLOUR_BRIGHTNESS,
    TDMI_COLOUR_CONTRAST, /* wants the mean luma of all pixels at this point */
    TDMI_COLOUR_SATURATION,
    TDMI_COLOUR_HUE
};

/* The draws of crop, flip, jitter and cutout for one image, applied in the order of the fields.
 * Each output pixel depends on one input pixel, so a GPU applies them while it converts bytes to
 * numbers (backend/cuda/kernels/image/input.cu). */
struct tdmi_augment_change {
    int dx, dy, fill; /* content moves left by dx and up by dy; what comes in is fill */
    bool is_flipped;
    int n_colours; /* steps of jitter, in their order */
    struct {
        enum tdmi_augment_colour kind;
        double amount; /* factor, or rotation of the hue */
    } colours[4];
    int cut_left, cut_top, cut_right, cut_bottom, cut_fill;
};
/* Divides what is done to one image: `first` up to the last kind that is no such change (zoom,
 * rotate, randaugment; resized-crop is done before either), then `rest`, which tdmi_augment_draw
 * draws. mixup and cutmix are in neither. Is there a rest? */
bool tdmi_augment_divide(const struct tdmi_augment *augment, struct tdmi_augment *first,
                         struct tdmi_augment *rest);
void tdmi_augment_draw(const struct tdmi_augment *rest, struct tdmi_augment_key key,
                       struct tdmi_augment_shape shape, struct tdmi_augment_change *change);

/* ---- a group ------------------------------------------------------------------------------- */

/* Mix of one image: own · weight + partner · (1 - weight), labels likewise. */
struct tdmi_mix {
    int partner;  /* place in the group; its own when it stays as it is */
    float weight; /* of its own label; 1: stays as it is */
    int blend;    /* mixup: its own part in 256ths; 256: none, a cut */
    int left, top, right,
        bottom; /* cutmix: pixels [left, right) × [top, bottom) are the partner's */
};

bool tdmi_augment_has_mix(const struct tdmi_augment *augment);
/* Pairs each image of a group with the next one (the last with the first), passing over those
 * with a negative label, which stay as they are. keys, labels and mixes have n entries. A group is
 * what one step adds up on its own, so the pairing is the same for every world and thread. */
void tdmi_augment_pair(const struct tdmi_augment *augment, const struct tdmi_augment_key *keys,
                       const int32_t *labels, int n, struct tdmi_augment_shape shape,
                       struct tdmi_mix *mixes);
/* Carries it out on (n, height, width, channels) bytes in place: blended bytes are
 * (own · blend + partner · (256 - blend) + 128) >> 8. spare holds one image. */
void tdmi_augment_mix(const struct tdmi_mix *mixes, int n, struct tdmi_augment_shape shape,
                      uint8_t *pixels, uint8_t *spare);
