/*
 * Resizing equals Pillow's bit by bit (tests/fixtures/image/resize.txt), whole or in part.
 */
#include "image/pictures.h"
#include "image/resize/resize.h"
#include "unit.h"
#include <math.h>

TEST(sizes_filters_and_boxes_give_pillows_pixels)
{
    struct bytes table = read_checkout("tests/fixtures/image/resize.txt");
    char *rest = table.bytes, *line;
    tdmi_image source = {0}, target = {0};
    int n = 0;
    while ((line = next_line(&rest)) != NULL) {
        int width, height, target_width, target_height;
        struct tdmi_box box;
        char filter[20], wanted[20], found[65];
        assert_int_equal(sscanf(line, "%d %d %lf %lf %lf %lf %d %d %19s %19s", &width, &height,
                                &box.x, &box.y, &box.width, &box.height, &target_width,
                                &target_height, filter, wanted),
                         10);
        draw_pattern(&source, width, height);
        assert_int_equal(tdmi_image_resize(&source, box, target_width, target_height,
                                           filter_named(filter), &target, NULL),
                         TDM_OK);
        assert_int_equal(target.width, target_width);
        assert_int_equal(target.height, target_height);
        digest_image(&target, found);
        if (strcmp(found, wanted) != 0)
            fail_msg("%s: %s", line, found);
        n++;
    }
    assert_in_range(n, 50, 1000);
    tdmi_image_release(&source);
    tdmi_image_release(&target);
    tdmi_free(table.bytes);
}

TEST(a_part_equals_the_same_part_of_the_whole)
{
    static const struct {
        int width, height, x, y, part_width, part_height;
    } cases[] = {
        {50, 40, 0, 0, 50, 40}, {50, 40, 7, 9, 20, 30},    {50, 40, 49, 39, 1, 1},
        {83, 40, 3, 0, 80, 40}, {50, 61, 0, 20, 50, 40},   {83, 61, 0, 0, 83, 61},
        {83, 61, 5, 6, 70, 50}, {200, 150, 90, 0, 9, 150}, {83, 30, 10, 0, 20, 30},
        {40, 61, 0, 17, 40, 9}, {90, 20, 30, 3, 50, 15},   {83, 20, 11, 0, 60, 20},
        {80, 7, 1, 1, 5, 4},
    };
    TDMI_AT_END(tdmi_image_release) tdmi_image source = {0}, whole = {0}, part = {0};
    draw_pattern(&source, 83, 61);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int filter = TDMI_FILTER_LANCZOS; filter <= TDMI_FILTER_BILINEAR; filter++) {
            struct tdmi_resize how = {.box = {0, 0, 83, 61},
                                      .width = cases[i].width,
                                      .height = cases[i].height,
                                      .filter = (enum tdmi_filter)filter,
                                      .part_x = cases[i].x,
                                      .part_y = cases[i].y,
                                      .part_width = cases[i].part_width,
                                      .part_height = cases[i].part_height};
            assert_int_equal(tdmi_image_resize(&source, how.box, how.width, how.height, how.filter,
                                               &whole, NULL),
                             TDM_OK);
            assert_int_equal(tdmi_image_resize_part(&source, &how, &part, NULL), TDM_OK);
            assert_int_equal(part.width, how.part_width);
            assert_int_equal(part.height, how.part_height);
            for (int y = 0; y < part.height; y++)
                assert_memory_equal(part.pixels + 3 * y * part.width,
                                    whole.pixels +
                                        3 * ((how.part_y + y) * whole.width + how.part_x),
                                    3 * (size_t)part.width);
        }
}

TEST(one_colour_stays_that_colour)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image source = {0}, target = {0};
    for (int value = 0; value < 256; value += 15)
        for (int filter = TDMI_FILTER_LANCZOS; filter <= TDMI_FILTER_BILINEAR; filter++) {
            assert_int_equal(tdmi_image_reshape(&source, 41, 29, NULL), TDM_OK);
            memset(source.pixels, value, 3 * 41 * 29);
            struct tdmi_box box = {0.3, 1.7, 39.9, 26.1};
            assert_int_equal(
                tdmi_image_resize(&source, box, 17, 53, (enum tdmi_filter)filter, &target, NULL),
                TDM_OK);
            for (size_t i = 0; i < 3 * 17 * 53; i++)
                assert_int_equal(target.pixels[i], value);
        }
}

TEST(a_used_target_takes_no_new_memory)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image source = {0}, target = {0};
    draw_pattern(&source, 200, 150);
    const struct tdmi_box box = {0, 0, 200, 150};
    assert_int_equal(tdmi_image_resize(&source, box, 64, 48, TDMI_FILTER_LANCZOS, &target, NULL),
                     TDM_OK);
    int64_t before = tdmi_memory_calls();
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            tdmi_image_resize(&source, box, 64 - i, 48, TDMI_FILTER_BICUBIC, &target, NULL),
            TDM_OK);
    assert_int_equal(tdmi_memory_calls(), before);
}

TEST(impossible_wishes_are_refused)
{
    static const struct {
        struct tdmi_box box;
        int width, height;
        const char *words;
    } cases[] = {
        {{0, 0, 10, 8}, 0, 5, "1 or more"},
        {{0, 0, 10, 8}, 5, -1, "1 or more"},
        {{-0.5, 0, 9, 8}, 5, 5, "not inside"},
        {{0, 0, 10.5, 8}, 5, 5, "not inside"},
        {{3, 0, 7.01, 8}, 5, 5, "not inside"},
        {{0, 0, 0, 8}, 5, 5, "not inside"},
        {{0, 0, 10, (double)NAN}, 5, 5, "not inside"},
    };
    tdmi_image source = {0}, target = {0}, empty = {0};
    draw_pattern(&source, 10, 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tdm_error err = {0};
        assert_int_equal(tdmi_image_resize(&source, cases[i].box, cases[i].width, cases[i].height,
                                           TDMI_FILTER_BILINEAR, &target, &err),
                         TDM_E_USAGE);
        if (strstr(tdm_error_sentence(&err, 0), cases[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", tdm_error_sentence(&err, 0), cases[i].words);
    }
    assert_int_equal(tdmi_image_resize(&empty, (struct tdmi_box){0, 0, 1, 1}, 2, 2,
                                       TDMI_FILTER_BILINEAR, &target, NULL),
                     TDM_E_USAGE);
    struct tdmi_resize how = {.box = {0, 0, 10, 8}, .width = 5, .height = 4, .part_x = 3};
    how.part_width = 3;
    how.part_height = 4;
    assert_int_equal(tdmi_image_resize_part(&source, &how, &target, NULL), TDM_E_USAGE);
    tdmi_memory_fail_from(1);
    tdm_status status = tdmi_image_resize(&source, (struct tdmi_box){0, 0, 10, 8}, 5, 4,
                                          TDMI_FILTER_BILINEAR, &target, NULL);
    tdmi_memory_fail_from(0);
    assert_int_equal(status, TDM_E_MEMORY);
    tdmi_image_release(&source);
    tdmi_image_release(&target);
}

/* ---- one source of coefficients, many instruction sets ----------------------------------------
 */

static uint64_t next_random(uint64_t *seed) /* Knuth's constants */
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static int between(uint64_t *seed, int low, int high)
{
    return low + (int)(next_random(seed) % (uint64_t)(high - low + 1));
}

/* Noise of all bytes, or of black and white only, where sums overshoot most. */
static void draw_noise(tdmi_image *image, int width, int height, uint64_t *seed)
{
    tdmi_image_release(image); /* its exact length, for the sanitizer */
    assert_int_equal(tdmi_image_reshape(image, width, height, NULL), TDM_OK);
    const bool is_harsh = next_random(seed) % 2;
    for (size_t i = 0; i < 3 * (size_t)width * (size_t)height; i++) {
        uint8_t byte = (uint8_t)next_random(seed);
        image->pixels[i] = is_harsh ? (byte & 1 ? 255 : 0) : byte;
    }
}

/* Sides from needles to ten times the target's, boxes and parts of all kinds. */
static struct tdmi_resize random_request(tdmi_image *source, uint64_t *seed)
{
    static const int most[] = {6, 40, 150, 700};
    const int side = most[next_random(seed) % 4], target = most[next_random(seed) % 3];
    draw_noise(source, between(seed, 1, side), between(seed, 1, side), seed);
    struct tdmi_resize how = {.box = {0, 0, source->width, source->height},
                              .width = between(seed, 1, target),
                              .height = between(seed, 1, target),
                              .filter = (enum tdmi_filter)between(seed, 0, 2)};
    switch (next_random(seed) % 4) {
    case 0:
        how.width = source->width;
        break;
    case 1:
        how.height = source->height;
        break;
    case 2:
        how.box.x = source->width * 0.01 * between(seed, 0, 50);
        how.box.y = source->height * 0.01 * between(seed, 0, 50);
        how.box.width = (source->width - how.box.x) * 0.01 * between(seed, 1, 99);
        how.box.height = (source->height - how.box.y) * 0.01 * between(seed, 1, 99);
        break;
    default:
        break;
    }
    how.part_width = how.width;
    how.part_height = how.height;
    if (next_random(seed) % 3 == 0) {
        how.part_width = between(seed, 1, how.width);
        how.part_height = between(seed, 1, how.height);
        how.part_x = between(seed, 0, how.width - how.part_width);
        how.part_y = between(seed, 0, how.height - how.part_height);
    }
    return how;
}

TEST(every_instruction_set_gives_the_bytes_of_the_specification)
{
    enum { WISHES = 600 };
    uint64_t seed = 4;
    TDMI_AT_END(tdmi_image_release) tdmi_image source = {0}, wanted = {0}, found = {0};
    assert_string_equal(tdmi_resize_kernels_at(0)->name, "scalar");
    for (int i = 0; i < WISHES; i++) {
        struct tdmi_resize how = random_request(&source, &seed);
        how.kernels = tdmi_resize_kernels_at(0);
        assert_int_equal(tdmi_image_resize_part(&source, &how, &wanted, NULL), TDM_OK);
        for (int k = 1; (how.kernels = tdmi_resize_kernels_at(k)) != NULL; k++) {
            assert_int_equal(tdmi_image_resize_part(&source, &how, &found, NULL), TDM_OK);
            for (int at = 0; at < 3 * how.part_width * how.part_height; at++)
                if (found.pixels[at] != wanted.pixels[at])
                    fail_msg("wish %d, %s: %d x %d to %d x %d: byte %d is %d, not %d", i,
                             how.kernels->name, source.width, source.height, how.width, how.height,
                             at, found.pixels[at], wanted.pixels[at]);
        }
    }
}

TEST(rows_as_they_come_give_the_bytes_of_the_whole)
{
    enum { WISHES = 300 };
    uint64_t seed = 5;
    int n_fed = 0;
    TDMI_AT_END(tdmi_image_release) tdmi_image source = {0}, wanted = {0}, room = {0};
    for (int i = 0; i < WISHES; i++) {
        struct tdmi_resize how = random_request(&source, &seed);
        struct tdmi_resampler resampler;
        const size_t stride = 3 * (size_t)source.width;
        const size_t wide = 3 * (size_t)how.part_width + 5; /* target rows in a larger picture */
        assert_int_equal(tdmi_image_resize_part(&source, &how, &wanted, NULL), TDM_OK);
        assert_int_equal(
            tdmi_resampler_begin(&resampler, source.width, source.height, &how, &room, NULL),
            TDM_OK);
        if (!tdmi_resampler_takes_rows(&resampler))
            continue;
        n_fed++;
        uint8_t *target = malloc(wide * (size_t)how.part_height);
        assert_non_null(target);
        memset(target, 77, wide * (size_t)how.part_height);
        resampler.target = (struct tdmi_rows){target, wide};
        for (int y = 0, n; y < source.height; y += n) {
            uint8_t strip[40 * 3 * 700];
            n = 4 * between(&seed, 1, 10);
            n = n < source.height - y ? n : source.height - y;
            memcpy(strip, source.pixels + stride * (size_t)y, stride * (size_t)n);
            tdmi_resampler_feed(&resampler, strip, stride, strip + stride * (size_t)n, y, n);
        }
        for (size_t y = 0; y < (size_t)how.part_height; y++) {
            assert_memory_equal(target + wide * y, wanted.pixels + (wide - 5) * y, wide - 5);
            for (size_t x = wide - 5; x < wide; x++)
                assert_int_equal(target[wide * y + x], 77);
        }
        free(target);
    }
    assert_in_range(n_fed, WISHES / 4, WISHES);
}

/* ---- needles ---------------------------------------------------------------------------------
 */

/* A side of 15 million pixels takes 37 bytes for each of them, so the limit is never far. */
TEST(needles_take_memory_in_proportion)
{
    enum { LONG = 2000000 };
    uint64_t seed = 6;
    tdmi_image source = {0}, wanted = {0}, found = {0};
    for (int is_tall = 0; is_tall < 2; is_tall++) {
        draw_noise(&source, is_tall ? 1 : LONG, is_tall ? LONG : 1, &seed);
        struct tdmi_resize how = {.box = {0, 0, source.width, source.height},
                                  .width = is_tall ? 1 : 299,
                                  .height = is_tall ? 299 : 1,
                                  .filter = TDMI_FILTER_LANCZOS};
        how.part_width = how.width;
        how.part_height = how.height;
        how.kernels = tdmi_resize_kernels_at(0);
        assert_int_equal(tdmi_image_resize_part(&source, &how, &wanted, NULL), TDM_OK);
        for (int k = 1; (how.kernels = tdmi_resize_kernels_at(k)) != NULL; k++) {
            tdmi_image_release(&found);
            assert_int_equal(tdmi_image_resize_part(&source, &how, &found, NULL), TDM_OK);
            assert_in_range(found.capacity_bytes, 1, 40 * (size_t)LONG);
            assert_memory_equal(found.pixels, wanted.pixels, 3 * 299);
        }
    }
    tdmi_image_release(&source);
    tdmi_image_release(&wanted);
    tdmi_image_release(&found);
}

/* Bad pictures, refused before memory is asked for: not the end of a run. */
TEST(longer_ones_are_refused_as_input)
{
    static const struct {
        int width, height, target_width, target_height;
        const char *words;
    } cases[] = {
        {178956970, 1, 299, 1, "a side has at most 16777216"},
        {1, 178956970, 1, 299, "a side has at most 16777216"},
        {16777217, 1, 299, 299, "a side has at most 16777216"},
        {16777216, 1, 299, 1, "besides the images; at most 587"},
        {1, 16777216, 1, 299, "besides the images; at most 587"},
        {16777216, 4, 28, 1, "besides the images; at most 738"},
        {8000000, 1, 1, 1, "besides the images; at most 560"},
    };
    tdmi_image room = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tdmi_resize how = {.box = {0, 0, cases[i].width, cases[i].height},
                                        .width = cases[i].target_width,
                                        .height = cases[i].target_height,
                                        .filter = TDMI_FILTER_LANCZOS,
                                        .part_width = cases[i].target_width,
                                        .part_height = cases[i].target_height};
        struct tdmi_resampler resampler;
        tdm_error err = {0};
        assert_int_equal(
            tdmi_resampler_begin(&resampler, cases[i].width, cases[i].height, &how, &room, &err),
            TDM_E_INPUT);
        if (strstr(tdm_error_sentence(&err, 0), cases[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", tdm_error_sentence(&err, 0), cases[i].words);
        assert_null(room.pixels);
    }
}

TEST_MAIN(NULL, NULL)
