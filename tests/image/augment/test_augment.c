/*
 * Augmentation as a whole: pure functions of (seed, epoch, sample, repeat), with the draws that a
 * second implementation makes, the distributions that were promised, and partners inside a group.
 */
#include "image/pictures.h"
#include "base/thread.h"
#include "image/augment/ops.h"
#include "unit.h"

#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { SIDE = 48, PICTURE = SIDE * SIDE * 3 };
static const struct tdmi_augment_shape square = {SIDE, SIDE, 3};

static struct tdmi_augment read_spec(const char *spec)
{
    struct tdmi_augment augment;
    tdm_error err = {0};
    if (tdmi_augment_read(spec, &augment, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    return augment;
}

static void draw(uint8_t pixels[PICTURE], int which)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    draw_pattern(&image, SIDE, SIDE);
    for (int i = 0; i < PICTURE; i++)
        pixels[i] = (uint8_t)(image.pixels[i] + 37 * which);
}

/* ---- draws --------------------------------------------------------------------------------- */

/* Seed 42, epoch 7. By a second implementation in another language: a change is a change of
 * format. */
static const struct {
    int64_t sample, repeat;
    double box[4];          /* of 500 x 375 */
    int dx, dy, is_flipped; /* crop:4 */
    int x, y;               /* cutout, of 48 x 32 */
    int blend;              /* mixup:0.2 */
    int cut[4];             /* cutmix:1, of 48 x 32 */
} golden[] = {
    {0, 0, {103, 82, 310, 276}, -2, 0, 0, 5, 18, 0, {24, 0, 48, 27}},
    {1, 0, {50, 17, 316, 356}, -2, 2, 1, 47, 4, 253, {14, 2, 48, 24}},
    {2, 0, {96, 46, 228, 268}, 4, 0, 0, 41, 31, 256, {5, 24, 19, 32}},
    {3, 0, {107, 24, 386, 330}, 1, -3, 0, 28, 6, 255, {32, 26, 46, 32}},
    {1000000007, 0, {231, 24, 233, 280}, -2, 2, 0, 7, 13, 17, {20, 0, 48, 28}},
    {3, 5, {166, 72, 300, 298}, -2, 1, 0, 11, 17, 254, {26, 14, 32, 18}},
};

static struct tdmi_augment_key golden_key(size_t i)
{
    return (struct tdmi_augment_key){
        .seed = 42, .epoch = 7, .sample = golden[i].sample, .repeat = golden[i].repeat};
}

TEST(boxes_and_shifts_never_change)
{
    const struct tdmi_augment part = read_spec("resized-crop"), shift = read_spec("crop:4:9"),
                              mirror = read_spec("flip");
    for (size_t i = 0; i < COUNT(golden); i++) {
        struct tdmi_box box;
        assert_true(tdmi_augment_box(&part, golden_key(i), 500, 375, &box));
        assert_true(box.x == golden[i].box[0] && box.y == golden[i].box[1]);
        assert_true(box.width == golden[i].box[2] && box.height == golden[i].box[3]);
        assert_false(tdmi_augment_box(&shift, golden_key(i), 500, 375, &box));

        static uint8_t found[PICTURE], expected[PICTURE], spare[PICTURE], other[PICTURE];
        draw(found, 0);
        draw(expected, 0);
        struct tdmi_canvas canvas = {square, expected, other};
        tdmi_warp_shift(&canvas, golden[i].dx, golden[i].dy, 9);
        tdmi_augment_picture(&shift, golden_key(i), square, found, spare);
        assert_memory_equal(found, canvas.pixels, PICTURE);
        if (golden[i].is_flipped)
            tdmi_warp_flip(&canvas);
        tdmi_augment_picture(&mirror, golden_key(i), square, found, spare);
        assert_memory_equal(found, canvas.pixels, PICTURE);
    }
}

/* Rows of changed pictures are kept on disk by content and view: their draws stay, too. */
TEST(draws_of_views_never_change)
{
    static const struct {
        uint64_t content;
        uint32_t view;
        int dx, dy, is_flipped;
    } views[] = {
        {1, 0, 3, 4, 0},
        {1, 3, 1, 1, 0},
        {0x0123456789abcdefu, 0, -1, 3, 0},
        {0x0123456789abcdefu, 3, -4, 4, 1},
        {0xfedcba9876543210u, 0, 4, -2, 0},
        {0xfedcba9876543210u, 3, 2, -4, 0},
    };
    const struct tdmi_augment both = read_spec("crop:4:9,flip");
    for (size_t i = 0; i < COUNT(views); i++) {
        static uint8_t found[PICTURE], expected[PICTURE], spare[PICTURE], other[PICTURE];
        draw(found, 0);
        draw(expected, 0);
        struct tdmi_canvas canvas = {square, expected, other};
        tdmi_warp_shift(&canvas, views[i].dx, views[i].dy, 9);
        if (views[i].is_flipped)
            tdmi_warp_flip(&canvas);
        /* Neither place nor epoch counts. */
        tdmi_augment_picture(&both,
                             (struct tdmi_augment_key){.seed = 42,
                                                       .epoch = (uint32_t)i,
                                                       .sample = 1000 * (int64_t)i,
                                                       .repeat = (int64_t)i,
                                                       .content = views[i].content,
                                                       .view = views[i].view},
                             square, found, spare);
        assert_memory_equal(found, canvas.pixels, PICTURE);
    }
}

TEST(cutouts_never_change)
{
    const struct tdmi_augment_shape shape = {32, 48, 1};
    const struct tdmi_augment augment = read_spec("cutout:9:200");
    for (size_t i = 0; i < COUNT(golden); i++) {
        uint8_t pixels[32 * 48] = {0}, spare[32 * 48];
        tdmi_augment_picture(&augment, golden_key(i), shape, pixels, spare);
        for (int y = 0; y < 32; y++)
            for (int x = 0; x < 48; x++) {
                bool is_cut = y >= golden[i].y - 4 && y < golden[i].y + 5 && x >= golden[i].x - 4 &&
                              x < golden[i].x + 5;
                assert_int_equal(pixels[y * 48 + x], is_cut ? 200 : 0);
            }
    }
}

TEST(shares_and_cuts_never_change)
{
    const struct tdmi_augment_shape shape = {32, 48, 3};
    const struct tdmi_augment blend = read_spec("mixup:0.2"), cut = read_spec("cutmix");
    struct tdmi_augment_key keys[COUNT(golden)];
    int32_t labels[COUNT(golden)] = {0};
    struct tdmi_mix mixes[COUNT(golden)];
    for (size_t i = 0; i < COUNT(golden); i++)
        keys[i] = golden_key(i);
    tdmi_augment_pair(&blend, keys, labels, COUNT(golden), shape, mixes);
    for (size_t i = 0; i < COUNT(golden); i++) {
        assert_int_equal(mixes[i].blend, golden[i].blend);
        assert_true(mixes[i].weight == (float)golden[i].blend / 256);
    }
    tdmi_augment_pair(&cut, keys, labels, COUNT(golden), shape, mixes);
    for (size_t i = 0; i < COUNT(golden); i++) {
        const int *box = golden[i].cut;
        assert_int_equal(mixes[i].left, box[0]);
        assert_int_equal(mixes[i].top, box[1]);
        assert_int_equal(mixes[i].right, box[2]);
        assert_int_equal(mixes[i].bottom, box[3]);
        double rest = 1 - (box[2] - box[0]) * (box[3] - box[1]) / (32.0 * 48.0);
        assert_true(fabs((double)mixes[i].weight - rest) < 1e-7);
    }
}

/* Values of torchvision's RandAugment with 31 bins for some magnitudes: linspace(0, 0.3), 30
 * and 0.9; int() of linspace(0, 150 / 331 * 48); 8 - round(m / 7.5); linspace(255, 0), of which a
 * byte reaches the next whole number. */
static const struct strength {
    int magnitude;
    double shear, degrees, factor;
    int shift, bits, threshold;
} strengths[] = {
    {0, 0, 0, 0, 0, 8, 255},         {1, 0.01, 1, 0.03, 0, 8, 247},
    {4, 0.04, 4, 0.12, 2, 7, 221},   {9, 0.09, 9, 0.27, 6, 7, 179},
    {12, 0.12, 12, 0.36, 8, 6, 153}, {15, 0.15, 15, 0.45, 10, 6, 128},
    {19, 0.19, 19, 0.57, 13, 5, 94}, {22, 0.22, 22, 0.66, 15, 5, 68},
    {27, 0.27, 27, 0.81, 19, 4, 26}, {30, 0.3, 30, 0.9, 21, 4, 0},
};

/* RandAugment by hand. */
static void one_by_hand(struct tdmi_canvas *canvas, uint32_t which, int sign,
                        const struct strength *strength)
{
    switch (which) {
    case 0:
        return;
    case 1:
        tdmi_warp_affine(canvas, (const double[]){1, sign * strength->shear, 0, 0, 1, 0}, 0);
        return;
    case 2:
        tdmi_warp_affine(canvas, (const double[]){1, 0, 0, sign * strength->shear, 1, 0}, 0);
        return;
    case 3:
        tdmi_warp_shift(canvas, sign * strength->shift, 0, 0);
        return;
    case 4:
        tdmi_warp_shift(canvas, 0, sign * strength->shift, 0);
        return;
    case 5:
        tdmi_warp_rotate(canvas, sign * strength->degrees, 0);
        return;
    case 6:
        tdmi_colour_brightness(canvas, 1 + sign * strength->factor);
        return;
    case 7:
        tdmi_colour_saturation(canvas, 1 + sign * strength->factor);
        return;
    case 8:
        tdmi_colour_contrast(canvas, 1 + sign * strength->factor);
        return;
    case 9:
        tdmi_colour_sharpness(canvas, 1 + sign * strength->factor);
        return;
    case 10:
        tdmi_colour_posterize(canvas, strength->bits);
        return;
    case 11:
        tdmi_colour_solarize(canvas, strength->threshold);
        return;
    case 12:
        tdmi_colour_autocontrast(canvas);
        return;
    default:
        tdmi_colour_equalize(canvas);
    }
}

static struct tdmi_augment randaugment_of(int n_operations, int magnitude)
{
    struct tdmi_augment augment = read_spec("randaugment");
    augment.arguments[TDMI_AUGMENT_RANDAUGMENT][0] = n_operations;
    augment.arguments[TDMI_AUGMENT_RANDAUGMENT][1] = magnitude;
    return augment;
}

TEST(randaugment_does_what_its_table_says)
{
    static uint8_t found[PICTURE], expected[PICTURE], spare[PICTURE], other[PICTURE];
    int counts[14] = {0};
    for (int i = 0; i < 620; i++) {
        const struct strength *strength = &strengths[(size_t)i % COUNT(strengths)];
        const int n_operations = 1 + i / 10 % 2;
        const struct tdmi_augment augment = randaugment_of(n_operations, strength->magnitude);
        const struct tdmi_augment_key key = {.seed = 5, .epoch = 1, .sample = i};
        tdmi_rng rng = tdmi_augment_rng(key, TDMI_AUGMENT_RANDAUGMENT);
        draw(found, i);
        draw(expected, i);
        struct tdmi_canvas canvas = {square, expected, other};
        for (int k = 0; k < n_operations; k++) {
            uint32_t which = tdmi_rng_below(&rng, 14);
            counts[which]++;
            one_by_hand(&canvas, which, tdmi_rng_below(&rng, 2) == 1 ? -1 : 1, strength);
        }
        tdmi_augment_picture(&augment, key, square, found, spare);
        assert_memory_equal(found, canvas.pixels, PICTURE);
    }
    for (int k = 0; k < 14; k++) /* 930 draws: 66 each, 8 a standard deviation */
        assert_in_range(counts[k], 30, 106);
}

/* Every operation at every magnitude; a change is a change of format. */
TEST(randaugment_never_changes)
{
    static uint8_t pixels[PICTURE], spare[PICTURE];
    uint64_t digest = 0;
    for (int i = 0; i < 31 * 100; i++) {
        const struct tdmi_augment augment = randaugment_of(2, i % 31);
        draw(pixels, i);
        tdmi_augment_picture(&augment,
                             (struct tdmi_augment_key){.seed = 6, .epoch = 1, .sample = i}, square,
                             pixels, spare);
        digest = tdmi_xxh64_of(pixels, PICTURE, digest);
    }
    if (digest != UINT64_C(0xea72cfe0b5576218))
        fail_msg("%016llx", (unsigned long long)digest);
}

/* A side of 331 pixels is what the paper's 150 are of: a step of the magnitude is five pixels. */
TEST(randaugment_shifts_whole_pixels_without_losing_one)
{
    enum { LONG = 331 };
    for (uint32_t wanted = 3; wanted <= 4; wanted++) /* x, y */
        for (int magnitude = 0; magnitude <= 30; magnitude++) {
            struct tdmi_augment_key key = {.seed = 7, .epoch = 1, .sample = magnitude};
            tdmi_rng rng = tdmi_augment_rng(key, TDMI_AUGMENT_RANDAUGMENT);
            while (tdmi_rng_below(&rng, 14) != wanted) {
                key.repeat++;
                rng = tdmi_augment_rng(key, TDMI_AUGMENT_RANDAUGMENT);
            }
            const int shift = (tdmi_rng_below(&rng, 2) == 1 ? -5 : 5) * magnitude;
            const struct tdmi_augment_shape shape = {wanted == 3 ? 1 : LONG, wanted == 3 ? LONG : 1,
                                                     1};
            const struct tdmi_augment augment = randaugment_of(1, magnitude);
            uint8_t pixels[LONG], spare[LONG];
            for (int i = 0; i < LONG; i++)
                pixels[i] = (uint8_t)(1 + i % 250);
            tdmi_augment_picture(&augment, key, shape, pixels, spare);
            for (int i = 0; i < LONG; i++) {
                const int from = i + shift;
                assert_int_equal(pixels[i], from >= 0 && from < LONG ? 1 + from % 250 : 0);
            }
        }
}

/* ---- zoom ---------------------------------------------------------------------------------- */

static void zoom(const char *spec, int64_t sample, uint8_t pixels[PICTURE])
{
    static uint8_t spare[PICTURE];
    const struct tdmi_augment augment = read_spec(spec);
    draw(pixels, 0);
    tdmi_augment_picture(&augment,
                         (struct tdmi_augment_key){.seed = 8, .epoch = 1, .sample = sample}, square,
                         pixels, spare);
}

/* Bilinear, in double precision: the square of half the side at (left, top), twice as large. */
static double enlarged(const uint8_t *image, int left, int top, int x, int y, int channel)
{
    double sum = 0;
    const double u = left + (x + 0.5) / 2 - 0.5, v = top + (y + 0.5) / 2 - 0.5;
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++) {
            const int column = tdmi_augment_between((int)floor(u) + dx, 0, SIDE - 1);
            const int row = tdmi_augment_between((int)floor(v) + dy, 0, SIDE - 1);
            sum += image[(row * SIDE + column) * 3 + channel] * (1 - fabs(u - floor(u) - dx)) *
                   (1 - fabs(v - floor(v) - dy));
        }
    return sum;
}

static bool is_enlarged(const uint8_t *image, const uint8_t *found, int left, int top)
{
    for (int i = 0; i < PICTURE; i++)
        if (fabs(enlarged(image, left, top, i / 3 % SIDE, i / 3 / SIDE, i % 3) - found[i]) > 1)
            return false;
    return true;
}

TEST(zoom_enlarges_a_part_that_lies_anywhere)
{
    static uint8_t image[PICTURE], found[PICTURE];
    bool is_left[2] = {false}, is_top[2] = {false};
    draw(image, 0);
    for (int64_t sample = 0, n = 0; sample < 20; sample++, n = 0) {
        zoom("zoom:0.25:0.25:1", sample, found);
        for (int at = 0; at <= SIDE / 2 * (SIDE / 2 + 2); at++) {
            const int left = at % (SIDE / 2 + 1), top = at / (SIDE / 2 + 1);
            if (!is_enlarged(image, found, left, top))
                continue;
            n++;
            is_left[left < SIDE / 4] = is_top[top < SIDE / 4] = true;
        }
        assert_int_equal(n, 1);
    }
    assert_true(is_left[0] && is_left[1] && is_top[0] && is_top[1]);
}

/* ---- distributions ------------------------------------------------------------------------- */

TEST(boxes_keep_to_their_ranges)
{
    const struct tdmi_augment augment = read_spec("resized-crop:0.2:0.7:1.5");
    static const int sizes[][2] = {{500, 375}, {32, 32}, {7, 1000}, {1000, 7}, {1, 1}, {3, 2}};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int64_t i = 0; i < 2000; i++) {
            struct tdmi_box box;
            const int w = sizes[s][0], h = sizes[s][1];
            assert_true(tdmi_augment_box(
                &augment, (struct tdmi_augment_key){.seed = 1, .epoch = 0, .sample = i}, w, h,
                &box));
            assert_true(box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1);
            assert_true(box.x + box.width <= w && box.y + box.height <= h);
            assert_true(box.x == floor(box.x) && box.width == floor(box.width));
            if (s > 1)
                continue;
            const double share = box.width * box.height / ((double)w * h);
            const double aspect = box.width / box.height;
            assert_true(share > 0.18 && share < 0.74);
            assert_true(aspect > 0.6 && aspect < 1.65);
        }
    struct tdmi_box box; /* too long for any aspect: the middle */
    tdmi_augment_box(&augment, (struct tdmi_augment_key){0}, 1000, 7, &box);
    assert_true(box.x == 494 && box.width == 11 && box.y == 0 && box.height == 7);
    tdmi_augment_box(&augment, (struct tdmi_augment_key){0}, 7, 1000, &box);
    assert_true(box.x == 0 && box.width == 7 && box.y == 494 && box.height == 11);
}

/* Mean 1/2 and variance 1 / (4 (2 alpha + 1)) within five standard errors. */
TEST(shares_follow_the_beta_distribution)
{
    static const double alphas[] = {0.01, 0.1, 0.2, 0.4, 1, 2, 8};
    enum { N = 20000 };
    static struct tdmi_augment_key keys[N];
    static int32_t labels[N];
    static struct tdmi_mix mixes[N];
    for (int i = 0; i < N; i++)
        keys[i] = (struct tdmi_augment_key){.seed = 9, .epoch = 2, .sample = i};
    for (size_t a = 0; a < COUNT(alphas); a++) {
        struct tdmi_augment augment = read_spec("mixup");
        augment.arguments[TDMI_AUGMENT_MIXUP][0] = alphas[a];
        tdmi_augment_pair(&augment, keys, labels, N, square, mixes);
        double sum = 0, squares = 0;
        for (int i = 0; i < N; i++) {
            const double off = (double)mixes[i].weight - 0.5;
            sum += off;
            squares += off * off;
        }
        const double variance = 1 / (4 * (2 * alphas[a] + 1));
        assert_true(fabs(sum / N) < 5 * sqrt(variance / N));
        assert_true(fabs(squares / N - variance) < 5 * 0.25 / sqrt(N));
    }
}

TEST(a_chance_is_kept)
{
    static const double chances[] = {0, 0.1, 0.5, 1};
    for (size_t c = 0; c < COUNT(chances); c++) {
        struct tdmi_augment augment = read_spec("flip");
        augment.arguments[TDMI_AUGMENT_FLIP][0] = chances[c];
        int n_flipped = 0;
        for (int64_t i = 0; i < 10000; i++) {
            uint8_t pixels[2] = {1, 2}, spare[2];
            tdmi_augment_picture(&augment,
                                 (struct tdmi_augment_key){.seed = 3, .epoch = 0, .sample = i},
                                 (struct tdmi_augment_shape){1, 2, 1}, pixels, spare);
            n_flipped += pixels[0] == 2;
        }
        assert_true(abs(n_flipped - (int)(10000 * chances[c])) <= (c == 0 || c == 3 ? 0 : 250));
    }
}

TEST(jitter_draws_each_factor_from_its_range)
{
    const struct tdmi_augment augment = read_spec("jitter:0.4:0:0:0");
    double least = 1000, most = 0, sum = 0;
    for (int64_t i = 0; i < 2000; i++) {
        uint8_t pixels[3] = {100, 100, 100}, spare[3];
        tdmi_augment_picture(&augment,
                             (struct tdmi_augment_key){.seed = 3, .epoch = 0, .sample = i},
                             (struct tdmi_augment_shape){1, 1, 3}, pixels, spare);
        assert_true(pixels[0] == pixels[1] && pixels[1] == pixels[2]);
        least = fmin(least, pixels[0]);
        most = fmax(most, pixels[0]);
        sum += pixels[0];
    }
    assert_true(least >= 60 && least <= 61 && most >= 139 && most <= 140);
    assert_true(fabs(sum / 2000 - 100) < 5 * 40 / sqrt(3.0 * 2000));
}

/* ---- purity -------------------------------------------------------------------------------- */

static const char everything[] =
    "resized-crop,zoom,crop:4,flip,rotate,randaugment,jitter:0.4:0.4:0.4:"
    "0.1,cutout:8,mixup,cutmix";

/* (pictures) digests of what becomes of each. */
struct crowd {
    struct tdmi_augment augment;
    uint64_t digests[200];
};

static tdm_status change_one(void *self, int index, int worker, tdm_error *err)
{
    struct crowd *crowd = self;
    uint8_t pixels[PICTURE], spare[PICTURE];
    (void)worker;
    (void)err;
    memset(spare, index, sizeof spare);
    draw(pixels, index);
    tdmi_augment_picture(&crowd->augment,
                         (struct tdmi_augment_key){.seed = 1, .epoch = 3, .sample = index}, square,
                         pixels, spare);
    crowd->digests[index] = tdmi_xxh64_of(pixels, PICTURE, 0);
    return TDM_OK;
}

TEST(neither_threads_nor_the_order_of_calls_matter)
{
    static struct crowd forwards, backwards, threaded;
    forwards.augment = backwards.augment = threaded.augment = read_spec(everything);
    for (int i = 0; i < 200; i++)
        assert_int_equal(change_one(&forwards, i, 0, NULL), TDM_OK);
    for (int i = 199; i >= 0; i--)
        assert_int_equal(change_one(&backwards, i, 0, NULL), TDM_OK);
    assert_memory_equal(forwards.digests, backwards.digests, sizeof forwards.digests);
    tdmi_pool *pool = NULL;
    assert_int_equal(tdmi_pool_new(4, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_run(pool, 200, change_one, &threaded, NULL), TDM_OK);
    tdmi_pool_free(pool);
    assert_memory_equal(forwards.digests, threaded.digests, sizeof forwards.digests);
}

static uint64_t digest_with(const struct tdmi_augment *augment, struct tdmi_augment_key key)
{
    uint8_t pixels[PICTURE], spare[PICTURE];
    draw(pixels, 0);
    tdmi_augment_picture(augment, key, square, pixels, spare);
    return tdmi_xxh64_of(pixels, PICTURE, 0);
}

TEST(seed_and_epoch_and_sample_or_content_and_view_all_count)
{
    const struct tdmi_augment augment = read_spec("jitter,crop:20");
    const struct tdmi_augment_key keys[] = {
        {1, 1, 1, 0, 0, 0}, {2, 1, 1, 0, 0, 0}, {1, 2, 1, 0, 0, 0},
        {1, 1, 2, 0, 0, 0}, {1, 1, 1, 1, 0, 0}, {1, 0, 0, 0, 1, 1},
        {2, 0, 0, 0, 1, 1}, {1, 0, 0, 0, 2, 1}, {1, 0, 0, 0, 1, 2}};
    for (size_t i = 0; i < COUNT(keys); i++)
        for (size_t j = 0; j < COUNT(keys); j++)
            assert_int_equal(digest_with(&augment, keys[i]) == digest_with(&augment, keys[j]),
                             i == j);
}

TEST(stages_know_whether_they_have_work)
{
    const struct tdmi_augment none = {0}, part = read_spec("resized-crop"),
                              pixels = read_spec("cutout"), pairs = read_spec("cutmix");
    assert_false(tdmi_augment_changes(&none));
    assert_true(tdmi_augment_changes(&part) && tdmi_augment_changes(&pixels) &&
                tdmi_augment_changes(&pairs));
    assert_false(tdmi_augment_has_pixels(&none) || tdmi_augment_has_mix(&none));
    assert_false(tdmi_augment_has_pixels(&part) || tdmi_augment_has_mix(&part));
    assert_true(tdmi_augment_has_pixels(&pixels) && !tdmi_augment_has_mix(&pixels));
    assert_true(!tdmi_augment_has_pixels(&pairs) && tdmi_augment_has_mix(&pairs));
    uint8_t expected[PICTURE];
    draw(expected, 0);
    assert_true(digest_with(&none, (struct tdmi_augment_key){0}) ==
                tdmi_xxh64_of(expected, PICTURE, 0));
}

/* ---- groups -------------------------------------------------------------------------------- */

enum { GROUP = 8 };

TEST(partners_are_neighbours_with_labels)
{
    const struct tdmi_augment augment = read_spec("mixup:1,cutmix");
    struct tdmi_augment_key keys[GROUP];
    struct tdmi_mix mixes[GROUP];
    int n_cut = 0, n_blended = 0;
    for (uint32_t epoch = 0; epoch < 100; epoch++) {
        const int32_t labels[GROUP] = {3, -1, 0, 2, -1, -1, 1, 0};
        static const int partners[GROUP] = {2, 1, 3, 6, 4, 5, 7, 0};
        for (int i = 0; i < GROUP; i++)
            keys[i] = (struct tdmi_augment_key){.seed = 1, .epoch = epoch, .sample = 100 + i};
        tdmi_augment_pair(&augment, keys, labels, GROUP, square, mixes);
        for (int i = 0; i < GROUP; i++) {
            assert_int_equal(mixes[i].partner, partners[i]);
            if (labels[i] < 0)
                assert_true(mixes[i].weight == 1);
            n_cut += mixes[i].right > mixes[i].left;
            n_blended += mixes[i].blend < 256;
        }
    }
    assert_in_range(n_cut, 180, 320); /* a coin for each of 500 */
    assert_in_range(n_blended, 180, 320);
    const int32_t one[GROUP] = {-1, -1, 5, -1, -1, -1, -1, -1};
    tdmi_augment_pair(&augment, keys, one, GROUP, square, mixes);
    for (int i = 0; i < GROUP; i++)
        assert_true(mixes[i].partner == i && mixes[i].weight == 1);
    tdmi_augment_pair(&augment, keys, one, 0, square, mixes);
}

TEST(mixing_in_place_equals_the_formula)
{
    const struct tdmi_augment augment = read_spec("mixup:1,cutmix");
    static uint8_t before[GROUP * PICTURE], pixels[GROUP * PICTURE], spare[PICTURE];
    struct tdmi_augment_key keys[GROUP];
    struct tdmi_mix mixes[GROUP];
    for (int n = 1; n <= GROUP; n++) {
        int32_t labels[GROUP] = {-1, 0, 1, 2, -1, 4, 5, 6};
        for (int i = 0; i < n; i++) {
            keys[i] = (struct tdmi_augment_key){.seed = 1, .epoch = 4, .sample = i};
            draw(before + i * PICTURE, i);
        }
        memcpy(pixels, before, sizeof pixels);
        tdmi_augment_pair(&augment, keys, labels, n, square, mixes);
        tdmi_augment_mix(mixes, n, square, pixels, spare);
        for (int i = 0; i < n; i++)
            for (int at = 0; at < PICTURE; at++) {
                const struct tdmi_mix *mix = &mixes[i];
                const int x = at / 3 % SIDE, y = at / 3 / SIDE;
                const int own = before[i * PICTURE + at];
                const int other = before[mix->partner * PICTURE + at];
                int expected = own;
                if (mix->blend < 256)
                    expected = (own * mix->blend + other * (256 - mix->blend) + 128) / 256;
                else if (x >= mix->left && x < mix->right && y >= mix->top && y < mix->bottom)
                    expected = other;
                assert_int_equal(pixels[i * PICTURE + at], expected);
            }
    }
}

TEST_MAIN(NULL, NULL)
