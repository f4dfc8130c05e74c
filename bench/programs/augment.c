/*
 * How many pictures of 224 x 224 a second one thread augments:
 *
 *     augment SPEC SECONDS
 *
 * Pictures are made up and changed in place, each time as another sample, in groups of eight; a
 * spec with pairs mixes each group. bench/peers/augment.py does the same with Pillow.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "image/augment/augment.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 224, GROUP = 8 };

static void change(const struct tdmi_augment *augment, int64_t first, uint8_t *pixels,
                   uint8_t *spare)
{
    const struct tdmi_augment_shape shape = {SIDE, SIDE, 3};
    const size_t picture_bytes = (size_t)SIDE * SIDE * 3;
    const int32_t labels[GROUP] = {0};
    struct tdmi_augment_key keys[GROUP];
    struct tdmi_mix mixes[GROUP];
    for (int i = 0; i < GROUP; i++) {
        keys[i] = (struct tdmi_augment_key){.seed = 1, .epoch = 0, .sample = first + i};
        tdmi_augment_picture(augment, keys[i], shape, pixels + picture_bytes * (size_t)i, spare);
    }
    if (tdmi_augment_has_mix(augment)) {
        tdmi_augment_pair(augment, keys, labels, GROUP, shape, mixes);
        tdmi_augment_mix(mixes, GROUP, shape, pixels, spare);
    }
}

int main(int argc, char **argv)
{
    struct tdmi_augment augment;
    tdm_error err = {0};
    const size_t picture_bytes = (size_t)SIDE * SIDE * 3;
    if (argc != 3 || tdmi_augment_read(argv[1], &augment, &err) != TDM_OK) {
        fprintf(stderr, "%s\n",
                argc == 3 ? tdm_error_sentence(&err, 0) : "usage: augment SPEC SECONDS");
        return 2;
    }
    uint8_t *pixels = tdmi_alloc(GROUP, picture_bytes), *spare = tdmi_alloc(1, picture_bytes);
    if (pixels == NULL || spare == NULL)
        return 1;
    for (size_t i = 0; i < GROUP * picture_bytes; i++)
        pixels[i] = (uint8_t)(i * 7 + i / 671);
    const double seconds = strtod(argv[2], NULL);
    const int64_t start = tdmi_clock_ns();
    int64_t n = 0;
    for (; tdmi_clock_seconds_since(start) < seconds; n += GROUP)
        change(&augment, n, pixels, spare);
    printf("%.0f images/s\n", (double)n / tdmi_clock_seconds_since(start));
    tdmi_free(pixels);
    tdmi_free(spare);
    return 0;
}
