/*
 * Preprocessing equals the same steps done with Pillow (tests/fixtures/image/preprocess.txt), and
 * the scales are the formulas of the header.
 */
#include "image/pictures.h"
#include "image/preprocess.h"
#include "unit.h"
#include <math.h>

static enum tdmi_fit fit_named(const char *name)
{
    if (strcmp(name, "pad") == 0)
        return TDMI_FIT_PAD;
    if (strcmp(name, "crop") == 0)
        return TDMI_FIT_CROP;
    assert_string_equal(name, "stretch");
    return TDMI_FIT_STRETCH;
}

TEST(every_fit_gives_the_expected_pixels)
{
    struct bytes table = read_checkout("tests/fixtures/image/preprocess.txt");
    char *rest = table.bytes, *line;
    tdmi_image source = {0};
    struct tdmi_preprocess_scratch scratch = {0};
    int n = 0;
    while ((line = next_line(&rest)) != NULL) {
        int width, height;
        char fit[20], filter[20], wanted[20], found[65];
        struct tdmi_preprocess preprocess = {0};
        assert_int_equal(sscanf(line, "%d %d %d %d %d %19s %lf %19s %19s", &width, &height,
                                &preprocess.width, &preprocess.height, &preprocess.channels, fit,
                                &preprocess.crop_fraction, filter, wanted),
                         9);
        preprocess.fit = fit_named(fit);
        preprocess.filter = filter_named(filter);
        draw_pattern(&source, width, height);
        size_t bytes =
            (size_t)preprocess.width * (size_t)preprocess.height * (size_t)preprocess.channels;
        uint8_t *out = malloc(bytes); /* its exact length, for the sanitizer */
        assert_non_null(out);
        assert_int_equal(tdmi_preprocess_image(&preprocess, &source, &scratch, out, NULL), TDM_OK);
        digest_of(out, bytes, found);
        if (strcmp(found, wanted) != 0)
            fail_msg("%s: %s", line, found);
        free(out);
        n++;
    }
    assert_in_range(n, 50, 1000);
    tdmi_preprocess_scratch_release(&scratch);
    tdmi_image_release(&source);
    tdmi_free(table.bytes);
}

TEST(a_file_is_decoded_turned_and_fitted_without_new_memory)
{
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG))
        skip();
    const struct tdmi_preprocess preprocess = {.width = 20,
                                               .height = 20,
                                               .channels = 3,
                                               .fit = TDMI_FIT_PAD,
                                               .filter = TDMI_FILTER_LANCZOS};
    struct bytes file = read_corpus("turned-right.jpg"); /* stored 21 x 17, seen 17 x 21 */
    struct tdmi_preprocess_scratch scratch = {0};
    uint8_t out[20 * 20 * 3];
    int64_t before = 0;
    for (int i = 0; i < 3; i++) {
        memset(out, 0, sizeof out);
        assert_int_equal(
            tdmi_preprocess_file(&preprocess, file.bytes, file.length, "test", &scratch, out, NULL),
            TDM_OK);
        if (i > 0)
            assert_int_equal(tdmi_memory_calls(), before);
        before = tdmi_memory_calls();
    }
    /* 17 x 21 into 20 x 20 is 16 x 20: two white columns on either side, the pattern (at most 187
     * before compression) between. */
    for (int y = 0; y < 20; y++)
        for (int x = 0; x < 20; x++)
            assert_int_equal(out[3 * (20 * y + x)] == 255, x < 2 || x >= 18);

    tdm_error err = {0};
    assert_int_equal(tdmi_preprocess_file(&preprocess, file.bytes, file.length / 2, "half.jpg",
                                          &scratch, out, &err),
                     TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, err.n_frames - 1), "half.jpg"));
    tdmi_preprocess_scratch_release(&scratch);
    tdmi_free(file.bytes);
}

/* By Pillow: draft(), which decodes less of a JPEG, and the means of blocks that come after. */
TEST(drafts_give_the_expected_pixels)
{
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG))
        skip();
    struct bytes table = read_checkout("tests/fixtures/image/drafts.txt");
    char *rest = table.bytes, *line;
    tdmi_image drawn = {0};
    struct tdmi_preprocess_scratch scratch = {0};
    int n = 0;
    while ((line = next_line(&rest)) != NULL) {
        char name[40], fit[20], filter[20], wanted[20], found[65];
        int width, height;
        struct tdmi_preprocess preprocess = {.uses_draft = true};
        assert_int_equal(sscanf(line, "%39s %d %d %d %19s %lf %19s %19s", name, &preprocess.width,
                                &preprocess.height, &preprocess.channels, fit,
                                &preprocess.crop_fraction, filter, wanted),
                         8);
        preprocess.fit = fit_named(fit);
        preprocess.filter = filter_named(filter);
        const size_t bytes =
            (size_t)preprocess.width * (size_t)preprocess.height * (size_t)preprocess.channels;
        uint8_t *out = malloc(bytes); /* its exact length, for the sanitizer */
        assert_non_null(out);
        if (sscanf(name, "%dx%d", &width, &height) == 2) {
            draw_pattern(&drawn, width, height);
            assert_int_equal(tdmi_preprocess_image(&preprocess, &drawn, &scratch, out, NULL),
                             TDM_OK);
        } else {
            struct bytes file = read_corpus(name);
            assert_int_equal(tdmi_preprocess_file(&preprocess, file.bytes, file.length, name,
                                                  &scratch, out, NULL),
                             TDM_OK);
            tdmi_free(file.bytes);
        }
        digest_of(out, bytes, found);
        if (strcmp(found, wanted) != 0)
            fail_msg("%s: %s", line, found);
        free(out);
        n++;
    }
    assert_in_range(n, 150, 1000);
    tdmi_preprocess_scratch_release(&scratch);
    tdmi_image_release(&drawn);
    tdmi_free(table.bytes);
}

/* Below twice the target a draft is no other picture. */
TEST(small_pictures_are_the_same_as_drafts)
{
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG))
        skip();
    static const char *const names[] = {"rgb420.jpg", "orientation3.jpg", "orientation6.jpg"};
    TDMI_AT_END(tdmi_preprocess_scratch_release) struct tdmi_preprocess_scratch scratch = {0};
    uint8_t whole[12 * 11 * 3], draft[sizeof whole];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int fit = TDMI_FIT_PAD; fit <= TDMI_FIT_STRETCH; fit++) {
            struct bytes file = read_corpus(names[i]);
            struct tdmi_preprocess preprocess = {.width = 12,
                                                 .height = 11,
                                                 .channels = 3,
                                                 .fit = (enum tdmi_fit)fit,
                                                 .crop_fraction = 1};
            assert_int_equal(tdmi_preprocess_file(&preprocess, file.bytes, file.length, names[i],
                                                  &scratch, whole, NULL),
                             TDM_OK);
            preprocess.uses_draft = true;
            assert_int_equal(tdmi_preprocess_file(&preprocess, file.bytes, file.length, names[i],
                                                  &scratch, draft, NULL),
                             TDM_OK);
            assert_memory_equal(whole, draft, sizeof whole);
            tdmi_free(file.bytes);
        }
}

/* At its own size, with margins, and resampled: into memory that is read soon, or not. */
TEST(where_a_picture_goes_changes_no_byte)
{
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG))
        skip();
    static const char *const names[] = {"rgb420.jpg", "orientation1.jpg", "orientation6.jpg"};
    TDMI_AT_END(tdmi_preprocess_scratch_release) struct tdmi_preprocess_scratch scratch = {0};
    enum { SIDE_MAX = 200 };
    static uint8_t near[SIDE_MAX * SIDE_MAX * 3], far[sizeof near];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes file = read_corpus(names[i]);
        tdmi_image whole = {0};
        assert_int_equal(tdmi_image_decode(file.bytes, file.length, names[i],
                                           (struct tdmi_image_limits){0}, &whole, NULL),
                         TDM_OK);
        for (int more = -5; more <= 5; more += 5) {
            struct tdmi_preprocess preprocess = {.width = whole.width + more,
                                                 .height = whole.height + more,
                                                 .channels = 3,
                                                 .crop_fraction = 1};
            assert_in_range(preprocess.width, 1, SIDE_MAX);
            assert_in_range(preprocess.height, 1, SIDE_MAX);
            const size_t n = 3 * (size_t)preprocess.width * (size_t)preprocess.height;
            scratch.is_far = false;
            assert_int_equal(tdmi_preprocess_file(&preprocess, file.bytes, file.length, names[i],
                                                  &scratch, near, NULL),
                             TDM_OK);
            scratch.is_far = true;
            memset(far, 1, n);
            assert_int_equal(tdmi_preprocess_file(&preprocess, file.bytes, file.length, names[i],
                                                  &scratch, far, NULL),
                             TDM_OK);
            assert_memory_equal(near, far, n);
            if (more == 0)
                assert_memory_equal(far, whole.pixels, n);
        }
        tdmi_image_release(&whole);
        tdmi_free(file.bytes);
    }
}

/* Rows are resampled while they are decoded; here the picture is made first. Cut files too. */
TEST(decoding_by_rows_gives_the_bytes_of_the_whole_picture)
{
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG))
        skip();
    static const char *const names[] = {"rgb420.jpg", "grey.jpg", "cmyk.jpg", "progressive.jpg",
                                        "turned-right.jpg"};
    static const struct tdmi_preprocess wishes[] = {
        {.width = 9, .height = 9, .channels = 3, .fit = TDMI_FIT_PAD},
        {.width = 9, .height = 9, .channels = 1, .fit = TDMI_FIT_PAD},
        {.width = 40, .height = 6, .channels = 3, .fit = TDMI_FIT_STRETCH},
        {.width = 12, .height = 10, .channels = 3, .fit = TDMI_FIT_CROP, .crop_fraction = 0.8},
        {.width = 300, .height = 300, .channels = 3, .fit = TDMI_FIT_CROP, .crop_fraction = 1},
    };
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    TDMI_AT_END(tdmi_preprocess_scratch_release) struct tdmi_preprocess_scratch scratch = {0};
    static uint8_t wanted[300 * 300 * 3], found[300 * 300 * 3];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes file = read_corpus(names[i]);
        for (size_t cut = 0; cut < 3; cut++)
            for (size_t k = 0; k < sizeof wishes / sizeof *wishes; k++) {
                const size_t length = file.length - cut * file.length / 3;
                tdm_status whole = tdmi_image_decode(file.bytes, length, names[i],
                                                     (struct tdmi_image_limits){0}, &image, NULL);
                assert_int_equal(tdmi_preprocess_file(&wishes[k], file.bytes, length, names[i],
                                                      &scratch, found, NULL),
                                 whole);
                assert_int_equal(whole, cut == 0 ? TDM_OK : TDM_E_INPUT);
                if (whole != TDM_OK)
                    continue;
                assert_int_equal(tdmi_preprocess_image(&wishes[k], &image, &scratch, wanted, NULL),
                                 TDM_OK);
                assert_memory_equal(
                    found, wanted,
                    (size_t)(wishes[k].width * wishes[k].height * wishes[k].channels));
            }
        tdmi_free(file.bytes);
    }
}

TEST(a_picture_of_the_right_size_is_not_resampled)
{
    static const enum tdmi_fit fits[] = {TDMI_FIT_PAD, TDMI_FIT_CROP, TDMI_FIT_STRETCH};
    TDMI_AT_END(tdmi_image_release) tdmi_image source = {0};
    struct tdmi_preprocess_scratch scratch = {0};
    uint8_t out[32 * 24 * 3];
    draw_pattern(&source, 32, 24);
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
        const struct tdmi_preprocess preprocess = {
            .width = 32, .height = 24, .channels = 3, .fit = fits[i], .crop_fraction = 1};
        assert_int_equal(tdmi_preprocess_image(&preprocess, &source, &scratch, out, NULL), TDM_OK);
        assert_memory_equal(out, source.pixels, sizeof out);
        assert_null(scratch.resized.pixels);
    }
}

TEST(scales_are_their_formulas)
{
    static const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
    uint8_t bytes[3 * 256];
    float out[3 * 256];
    for (int i = 0; i < 3 * 256; i++)
        bytes[i] = (uint8_t)(i / 3);
    struct tdmi_preprocess preprocess = {.channels = 3};
    for (int scale = TDMI_SCALE_TF; scale <= TDMI_SCALE_RAW; scale++) {
        preprocess.scale = (enum tdmi_scale)scale;
        tdmi_preprocess_normalise(&preprocess, bytes, 256, out);
        for (int i = 0; i < 3 * 256; i++) {
            double x = bytes[i], wanted = scale == TDMI_SCALE_TF ? x / 127.5 - 1
                                          : scale == TDMI_SCALE_TORCH
                                              ? (x / 255 - mean[i % 3]) / std[i % 3]
                                          : scale == TDMI_SCALE_UNIT ? x / 255
                                                                     : x;
            if (fabs(out[i] - wanted) > 5e-7)
                fail_msg("scale %d of %d: %.9g, not %.9g", scale, bytes[i], (double)out[i], wanted);
        }
    }
    preprocess.scale = TDMI_SCALE_CAFFE; /* x - mean, red first */
    tdmi_preprocess_normalise(&preprocess, bytes, 256, out);
    assert_true(fabs((double)out[0] - (bytes[0] - 123.68)) < 1e-4);
    assert_true(fabs((double)out[3 * 77 + 2] - (bytes[3 * 77 + 2] - 103.939)) < 1e-4);
    preprocess = (struct tdmi_preprocess){.channels = 1, .scale = TDMI_SCALE_TORCH};
    tdmi_preprocess_normalise(&preprocess, bytes, 3 * 256, out);
    for (int i = 0; i < 3 * 256; i++)
        assert_true(fabs(out[i] - (bytes[i] / 255.0 - 0.449) / 0.226) < 5e-7);
    preprocess.scale = TDMI_SCALE_TF;
    tdmi_preprocess_normalise(&preprocess, bytes, 3 * 256, out);
    assert_true(out[0] == -1.0f && out[3 * 255] == 1.0f);
}

TEST(impossible_settings_are_refused)
{
    static const struct tdmi_preprocess cases[] = {
        {.width = 0, .height = 4, .channels = 3},
        {.width = 4, .height = 65536, .channels = 3},
        {.width = 4, .height = 4, .channels = 2},
        {.width = 4, .height = 4, .channels = 3, .fit = TDMI_FIT_CROP, .crop_fraction = 0},
        {.width = 4, .height = 4, .channels = 3, .fit = TDMI_FIT_CROP, .crop_fraction = 1.1},
    };
    TDMI_AT_END(tdmi_image_release) tdmi_image source = {0};
    TDMI_AT_END(tdmi_preprocess_scratch_release) struct tdmi_preprocess_scratch scratch = {0};
    uint8_t out[64];
    draw_pattern(&source, 9, 9);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tdmi_preprocess_image(&cases[i], &source, &scratch, out, NULL),
                         TDM_E_USAGE);
}

/* One row of two million pixels. */
TEST(a_needle_is_fitted)
{
    enum { LONG = 2000000, SIDE = 299, ROW = 3 * SIDE };
    TDMI_AT_END(tdmi_image_release) tdmi_image source = {0}, line = {0};
    TDMI_AT_END(tdmi_preprocess_scratch_release) struct tdmi_preprocess_scratch scratch = {0};
    static uint8_t out[SIDE * ROW];
    assert_int_equal(tdmi_image_reshape(&source, LONG, 1, NULL), TDM_OK);
    for (size_t i = 0; i < 3 * (size_t)LONG; i++)
        source.pixels[i] = (uint8_t)((i + 20000) / 40000 + i % 3 * 31);
    struct tdmi_preprocess preprocess = {
        .width = SIDE, .height = SIDE, .channels = 3, .crop_fraction = 1};
    assert_int_equal(tdmi_preprocess_image(&preprocess, &source, &scratch, out, NULL), TDM_OK);
    assert_int_equal(tdmi_image_resize(&source, (struct tdmi_box){0, 0, LONG, 1}, SIDE, 1,
                                       TDMI_FILTER_LANCZOS, &line, NULL),
                     TDM_OK);
    for (int y = 0; y < SIDE; y++)
        for (int i = 0; i < ROW; i++)
            assert_int_equal(out[ROW * y + i], y == SIDE / 2 ? line.pixels[i] : 255);
    preprocess.fit = TDMI_FIT_CROP; /* the middle pixel, or two, over all of it */
    assert_int_equal(tdmi_preprocess_image(&preprocess, &source, &scratch, out, NULL), TDM_OK);
    const uint8_t *middle = source.pixels + 3 * (LONG / 2);
    for (int i = 0; i < SIDE * ROW; i++)
        assert_int_equal(out[i], middle[i % 3]);
}

/* Such a picture is a bad one, whatever it is fitted into: it is not looked at. */
TEST(longer_ones_are_refused_as_input)
{
    static const struct {
        int width, height;
        enum tdmi_fit fit;
        const char *words;
    } cases[] = {
        {178956970, 1, TDMI_FIT_PAD, "a side has at most"},
        {178956970, 1, TDMI_FIT_STRETCH, "a side has at most"},
        {16777216, 1, TDMI_FIT_PAD, "besides the images"},
        {100000000, 1, TDMI_FIT_CROP, "22400000000 x 224; at most 2147483647"},
        {1, 100000000, TDMI_FIT_CROP, "224 x 22400000000; at most 2147483647"},
    };
    struct tdmi_preprocess_scratch scratch = {0};
    static uint8_t out[224 * 224 * 3];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tdmi_preprocess preprocess = {
            .width = 224, .height = 224, .channels = 3, .fit = cases[i].fit, .crop_fraction = 1};
        const tdmi_image image = {.width = cases[i].width, .height = cases[i].height};
        tdm_error err = {0};
        assert_int_equal(tdmi_preprocess_image(&preprocess, &image, &scratch, out, &err),
                         TDM_E_INPUT);
        if (strstr(tdm_error_sentence(&err, 0), cases[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", tdm_error_sentence(&err, 0), cases[i].words);
        assert_null(scratch.resized.pixels);
    }
}

/* The whole way, from a file. */
TEST(a_file_that_is_a_needle_is_refused_as_input)
{
    enum { LONG = 17000000 };
    static const char header[] = "P5 17000000 1 255\n";
    const size_t n = sizeof header - 1;
    uint8_t *file = calloc(n + LONG, 1), out[8 * 8 * 3];
    assert_non_null(file);
    memcpy(file, header, n);
    struct tdmi_preprocess_scratch scratch = {0};
    for (int fit = TDMI_FIT_PAD; fit <= TDMI_FIT_STRETCH; fit++) {
        const struct tdmi_preprocess preprocess = {.width = 8,
                                                   .height = 8,
                                                   .channels = 3,
                                                   .fit = (enum tdmi_fit)fit,
                                                   .crop_fraction = 0.01};
        tdm_error err = {0};
        assert_int_equal(
            tdmi_preprocess_file(&preprocess, file, n + LONG, "needle.pgm", &scratch, out, &err),
            TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, err.n_frames - 1), "needle.pgm"));
    }
    tdmi_preprocess_scratch_release(&scratch);
    free(file);
}

/* A decoder asks for a divisor before it hears that there is no size to crop from. */
TEST(a_draft_of_what_cannot_be_cropped_is_refused_as_input)
{
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG))
        skip();
    const struct tdmi_preprocess preprocess = {.width = 400,
                                               .height = 400,
                                               .channels = 3,
                                               .fit = TDMI_FIT_CROP,
                                               .crop_fraction = 0.01,
                                               .uses_draft = true};
    static uint8_t out[400 * 400 * 3];
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text file = {0};
    TDMI_AT_END(tdmi_preprocess_scratch_release) struct tdmi_preprocess_scratch scratch = {0};
    tdm_error err = {0};
    assert_int_equal(tdmi_image_reshape(&image, 65500, 1, NULL), TDM_OK);
    memset(image.pixels, 90, 3 * 65500);
    assert_int_equal(tdmi_image_encode(&image, TDMI_IMAGE_JPEG, 90, &file, NULL), TDM_OK);
    assert_int_equal(tdmi_preprocess_file(&preprocess, tdmi_text_string(&file), file.length_bytes,
                                          "needle.jpg", &scratch, out, &err),
                     TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "2620000000 x 40000; at most 2147483647"));
}

TEST_MAIN(NULL, NULL)
