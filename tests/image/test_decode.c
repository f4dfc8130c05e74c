/*
 * Decoding: every form of picture gives the pixels that were put in (fuzz/corpus/image, expected
 * values by make_images.py), and whatever is not a whole picture is refused.
 */
#include "image/pictures.h"
#include "image/formats/codec.h"
#include "image/formats/library.h"
#include "base/clock.h"
#include "unit.h"

static tdm_status decode(const void *bytes, size_t length, tdmi_image *image, tdm_error *err)
{
    /* A copy of the exact length: a read past the end then meets the sanitizer. */
    void *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    tdm_status status =
        tdmi_image_decode(copy, length, "test", (struct tdmi_image_limits){0}, image, err);
    free(copy);
    return status;
}

TEST(every_form_gives_the_expected_pixels)
{
    struct bytes table = read_checkout("tests/fixtures/image/pictures.txt");
    char *rest = table.bytes, *line;
    tdmi_image image = {0};
    int n = 0;
    while ((line = next_line(&rest)) != NULL) {
        char name[100], wanted[20], found[65];
        int width, height;
        assert_int_equal(sscanf(line, "%99s %d %d %19s", name, &width, &height, wanted), 4);
        struct bytes file = read_corpus(name);
        enum tdmi_image_format format = tdmi_image_sniff(file.bytes, file.length);
        assert_int_not_equal(format, TDMI_IMAGE_UNKNOWN);
        n++;
        tdm_error err = {0};
        tdm_status status = decode(file.bytes, file.length, &image, &err);
        if (!tdmi_image_can_decode(format)) {
            assert_int_equal(status, TDM_E_ABSENT);
        } else {
            if (status != TDM_OK)
                fail_msg("%s: %s", name, tdm_error_sentence(&err, 0));
            digest_image(&image, found);
            if (image.width != width || image.height != height || strcmp(found, wanted) != 0)
                fail_msg("%s: %d x %d %s, not %d x %d %s", name, image.width, image.height, found,
                         width, height, wanted);
        }
        tdmi_free(file.bytes);
    }
    assert_in_range(n, 50, 500);
    tdmi_image_release(&image);
    tdmi_free(table.bytes);
}

TEST(a_file_cut_anywhere_is_refused)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image drawn = {0}, image = {0};
    draw_pattern(&drawn, 150, 110);
    for (int i = TDMI_IMAGE_UNKNOWN + 1; i < TDMI_IMAGE_FORMATS; i++) {
        enum tdmi_image_format format = (enum tdmi_image_format)i;
        if (!tdmi_image_can_decode(format) || !tdmi_image_can_encode(format))
            continue;
        tdmi_text file = {0};
        assert_int_equal(tdmi_image_encode(&drawn, format, 90, &file, NULL), TDM_OK);
        assert_int_equal(decode(file.bytes, file.length_bytes, &image, NULL), TDM_OK);
        for (size_t percent = 0; percent < 100; percent++) {
            tdm_error err = {0};
            size_t length = file.length_bytes * percent / 100;
            if (decode(file.bytes, length, &image, &err) != TDM_E_INPUT)
                fail_msg("%s cut at %zu %% is taken", tdmi_image_format_name(format), percent);
            if (length > 1000 && strstr(tdm_error_sentence(&err, 0), "truncated") == NULL)
                fail_msg("%s cut at %zu %%: %s", tdmi_image_format_name(format), percent,
                         tdm_error_sentence(&err, 0));
        }
        tdmi_text_release(&file);
    }
}

/* Progressive and interlaced files have all pixels early, in a coarse form: still not whole. */
TEST(stored_files_without_their_end_are_refused)
{
    static const struct {
        const char *name;
        size_t spare; /* bytes at the end that hold nothing of the picture */
    } cases[] = {
        {"progressive.jpg", 0},
        {"rgb420.jpg", 0},
        {"cmyk.jpg", 0},
        {"restarts.jpg", 0},
        {"plain.gif", 1}, /* the trailer */
        {"placed-clear.gif", 1},
        {"lossy.webp", 0},
        {"lossy-alpha.webp", 0},
        {"animated.webp", 0},
        {"rgba16-interlaced.png", 4},
        {"palette1.png", 4}, /* the empty last chunk's checksum */
        {"palette8.bmp", 3},
        {"rgba32.bmp", 0}, /* padding of the last row */
        {"rle8.bmp", 5},   /* padding and two end marks */
        {"deep.ppm", 0},
        {"text.ppm", 2}, /* the last number's last digits */
        {"strips.tif", 0},
        {"tiles-deflate.tif", 0},
        {"jpeg.tif", 0},
        {"rgb8-bigtiff.tif", 0},
        {"rgb.heic", 0},
        {"rgba.avif", 0},
        {"rgb.jxl", 0},
        {"boxes.jxl", 0},
    };
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = read_corpus(cases[i].name);
        if (tdmi_image_can_decode(tdmi_image_sniff(file.bytes, file.length)))
            for (size_t length = 0; length + cases[i].spare < file.length; length++)
                if (decode(file.bytes, length, &image, NULL) != TDM_E_INPUT)
                    fail_msg("%s cut to %zu of %zu bytes is taken", cases[i].name, length,
                             file.length);
        tdmi_free(file.bytes);
    }
}

static const struct tdmi_image_limits strictly = {.is_strict = true};

TEST(a_flipped_bit_in_a_png_is_refused_or_harmless)
{
    if (!tdmi_image_can_decode(TDMI_IMAGE_PNG))
        skip();
    static const char *const names[] = {"rgb8.png", "palette2-clear.png", "turned-left.png"};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes file = read_corpus(names[i]);
        char wanted[65], found[65];
        int n_read = 0;
        assert_int_equal(decode(file.bytes, file.length, &image, NULL), TDM_OK);
        digest_image(&image, wanted);
        for (size_t at = 0; at < file.length; at++) {
            ((uint8_t *)file.bytes)[at] ^= 16;
            if (tdmi_image_decode(file.bytes, file.length, names[i], strictly, &image, NULL) !=
                TDM_E_INPUT)
                fail_msg("%s with byte %zu changed is taken", names[i], at);
            if (decode(file.bytes, file.length, &image, NULL) == TDM_OK) {
                digest_image(&image, found);
                if (strcmp(found, wanted) != 0)
                    fail_msg("%s with byte %zu changed has other pixels", names[i], at);
                n_read++;
            }
            ((uint8_t *)file.bytes)[at] ^= 16;
        }
        assert_true(n_read >= 8); /* the checksums of the last two chunks */
        tdmi_free(file.bytes);
    }
}

/* pictures.txt has the pixels that Pillow makes of them. */
TEST(a_damaged_picture_is_read_unless_the_caller_is_strict)
{
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"cut-end.jpg", "it is damaged at row 62 of 70: Corrupt JPEG data: premature end"},
        {"cut-restart.jpg", "it is damaged at row 30 of 70: Corrupt JPEG data: premature end"},
        {"cut-progressive.jpg", "it is damaged at row 0 of 70: Corrupt JPEG data: premature end"},
        {"checksum-pixels.png", "it is damaged: invalid chunk checksum"},
        {"checksum-end.png", "it is damaged: invalid chunk checksum"},
    };
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = read_corpus(cases[i].name);
        if (tdmi_image_can_decode(tdmi_image_sniff(file.bytes, file.length))) {
            tdm_error err = {0};
            assert_int_equal(decode(file.bytes, file.length, &image, &err), TDM_OK);
            assert_int_equal(
                tdmi_image_decode(file.bytes, file.length, cases[i].name, strictly, &image, &err),
                TDM_E_INPUT);
            if (strstr(tdm_error_sentence(&err, 0), cases[i].words) == NULL)
                fail_msg("%s: \"%s\"", cases[i].name, tdm_error_sentence(&err, 0));
        }
        tdmi_free(file.bytes);
    }
}

TEST(every_changed_byte_gives_a_picture_or_a_sentence)
{
    static const char *const names[] = {
        "rgb16.bmp",  "rle4.bmp",         "rgba32.bmp",      "low.pgm",      "text.ppm",
        "core24.bmp", "grey.jpg",         "progressive.jpg", "animated.gif", "animated-placed.webp",
        "lossy.webp", "turned-right.jpg", "palette4.bmp"};
    static const uint8_t flips[] = {0x01, 0x80, 0xff};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes file = read_corpus(names[i]);
        uint8_t *bytes = file.bytes;
        for (size_t at = 0; at < 3 * file.length; at++) {
            tdm_error err = {0};
            bytes[at / 3] ^= flips[at % 3];
            tdm_status status =
                tdmi_image_decode(bytes, file.length, names[i],
                                  (struct tdmi_image_limits){.max_pixels = 10000}, &image, &err);
            bytes[at / 3] ^= flips[at % 3];
            if (status != TDM_OK)
                assert_true(err.n_frames > 0 && tdm_error_sentence(&err, 0)[0] != '\0');
            else
                assert_in_range(image.width * image.height, 1, 10000);
        }
        tdmi_free(file.bytes);
    }
}

TEST(refusals_say_what_was_found)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *words;
    } cases[] = {
        {"", 0, "no bytes"},
        {"\0\0\0\x0cjP  \r\n\x87\n", 12,
         "bytes 00 00 00 0c 6a 50 20 20, as a JPEG 2000 image does; JPEG"},
        {"%PDF-1.4", 8, "bytes 25 50 44 46 2d 31 2e 34, as a PDF document does; JPEG"},
        {"\x01\x02", 2,
         "bytes 01 02; JPEG, PNG, GIF, WebP, BMP, PPM, TIFF, HEIC, AVIF and JPEG XL images are "
         "read"},
        {"text\0", 5, "bytes 74 65 78 74 00; JPEG"},
        {"caf\xe9", 4, "bytes 63 61 66 e9; JPEG"},
        {"\n\n", 2, "bytes 0a 0a; JPEG"},
        {"B", 1, "it is text that begins with 'B', perhaps an error message"},
        {"caf\xc3\xa9 \n two", 11, "it is text that begins with 'caf\xc3\xa9 ', perhaps"},
        {"<HTML>\r\n<body>", 14,
         "it is a web page: text that begins with '<HTML>', perhaps an error"},
        {"\xef\xbb\xbf\n <!DOCTYPE html>", 20,
         "a web page: text that begins with '<!DOCTYPE html>'"},
        {"<html>\xe9t", 8, "a web page: text that begins with '<html>\\xe9t', perhaps"},
        {"<?xml version=\"1.0\"?><Error>", 28, "it is XML: text that begins with '<?xml"},
        {"<svg>", 5, "it is an SVG drawing: text that begins with '<svg>'; JPEG"},
        {"{\"error\": \"not found\"}", 22,
         "it is JSON: text that begins with '{\"error\": \"not found\"}', perhaps an error message "
         "that was saved in place of the image"},
        {"[\n {\"a\": 1}]", 12, "it is JSON: text that begins with '['"},
        {"{ }", 3, "it is JSON: text"},
        {"{name}", 6, "it is text that begins with '{name}', perhaps"},
        {"[info] started", 14, "it is text that begins with '[info] started', perhaps"},
        {"<?xml version=\"1.0\"?>\n<svg>", 27,
         "it is an SVG drawing: text that begins with '<?xml"},
        {"<!-- made by hand -->\n<SVG>", 27, "it is an SVG drawing: text that begins with '<!-- "},
        {"<!-- made by hand -->\n<html>", 28, "it is a web page: text that begins with '<!-- "},
        {"<?xml version=\"1.0\"?><html>", 27, "it is a web page: text that begins with '<?xml"},
        {"<\x01\x02", 3, "it begins with the bytes 3c 01 02; JPEG"},
        {"<b>\xe9t\0", 6, "it begins with the bytes 3c 62 3e e9 74 00; JPEG"},
        {"Access denied", 13,
         "it is text that begins with 'Access denied', perhaps an error message that was saved in "
         "place of the image"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", 59,
         "it is a Git LFS pointer, not the image itself; git lfs pull"},
        {"P6 0 5 255\n", 11, "0 x 5 pixels"},
        {"P6 99999 99999 255\n", 19, "99999 x 99999 pixels"},
        {"P6 2 2 70000\n", 13, "maximum is 70000"},
        {"P6 2 2 0\n", 9, "maximum is 0"},
        {"P6 2", 4, "truncated"},
        {"P6 2 x", 6, "damaged"},
        {"P2 2 1 10 7 11", 14, "sample is 11"},
        {"P5 2 1 10\n\x07\x0b", 12, "sample is 11"},
        {"P3 1 1 255 1 2", 14, "truncated"},
        {"P3 1 1 255 1 2 z", 16, "damaged"},
        {"P5 3 1 255\nab", 13, "2 samples of 1 bytes"},
        {"P4 9 2\nabc", 10, "1 rows of 2 bytes follow the header; it says 2"},
        {"P4 9", 4, "header is truncated: width and height must follow P4"},
        {"P1 2 2 01 1", 11, "truncated: sample 4 of 4"},
        {"P1 2 1 02", 9, "damaged: sample 2 of 2"},
        {"BM", 2, "truncated"},
    };
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tdm_error err = {0};
        assert_int_equal(decode(cases[i].bytes, cases[i].length, &image, &err), TDM_E_INPUT);
        if (strstr(tdm_error_sentence(&err, 0), cases[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", tdm_error_sentence(&err, 0), cases[i].words);
        assert_int_equal(err.n_frames, 2);
        assert_non_null(strstr(tdm_error_sentence(&err, 1), "\"test\""));
    }
}

TEST(a_picture_above_the_limit_takes_no_memory)
{
    tdmi_image drawn = {0}, image = {0};
    draw_pattern(&drawn, 40, 25);
    for (int format = TDMI_IMAGE_UNKNOWN + 1; format < TDMI_IMAGE_FORMATS; format++) {
        if (!tdmi_image_can_encode((enum tdmi_image_format)format) ||
            !tdmi_image_can_decode((enum tdmi_image_format)format))
            continue;
        tdmi_text file = {0};
        assert_int_equal(tdmi_image_encode(&drawn, (enum tdmi_image_format)format, 90, &file, NULL),
                         TDM_OK);
        struct tdmi_image_limits limits = {.max_pixels = 999};
        tdm_error err = {0};
        assert_int_equal(
            tdmi_image_decode(file.bytes, file.length_bytes, "test", limits, &image, &err),
            TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "40 x 25"));
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "999"));
        assert_null(image.pixels);
        limits.max_pixels = 1000;
        assert_int_equal(
            tdmi_image_decode(file.bytes, file.length_bytes, "test", limits, &image, NULL), TDM_OK);
        tdmi_image_release(&image);
        tdmi_text_release(&file);
    }
    tdmi_image_release(&drawn);
}

/* Headers that claim 30,000 × 30,000 pixels are refused by the header alone. */
TEST(a_giant_header_is_refused_at_once)
{
    static const struct {
        const char *name;
        size_t at; /* of the size's bytes; 0: behind JPEG's first frame header */
        size_t length;
        const char *size;
    } cases[] = {
        {"rgb420.jpg", 0, 4, "\x75\x30\x75\x30"},
        {"progressive.jpg", 0, 4, "\x75\x30\x75\x30"},
        {"rgb24.bmp", 18, 8, "\x30\x75\0\0\x30\x75\0\0"},
        {"rle8.bmp", 18, 8, "\x30\x75\0\0\x30\x75\0\0"},
        {"plain.gif", 6, 4, "\x30\x75\x30\x75"},
        {"animated.webp", 24, 6, "\x2f\x75\0\x2f\x75\0"},
    };
    tdmi_image image = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = read_corpus(cases[i].name);
        uint8_t *bytes = file.bytes;
        size_t at = cases[i].at;
        for (size_t k = 0; at == 0 && k + 9 < file.length; k++)
            if (bytes[k] == 0xff && (bytes[k + 1] == 0xc0 || bytes[k + 1] == 0xc2))
                at = k + 5;
        memcpy(bytes + at, cases[i].size, cases[i].length);
        tdm_error err = {0};
        int64_t before = tdmi_clock_ns();
        if (tdmi_image_can_decode(tdmi_image_sniff(bytes, file.length))) {
            assert_int_equal(decode(bytes, file.length, &image, &err), TDM_E_INPUT);
            if (strstr(tdm_error_sentence(&err, 0), "30000 x 30000 pixels; at most") == NULL)
                fail_msg("%s: \"%s\"", cases[i].name, tdm_error_sentence(&err, 0));
        }
        assert_true(tdmi_clock_seconds_since(before) < 1);
        assert_null(image.pixels);
        tdmi_free(bytes);
    }
    assert_int_equal(decode("P6 30000 30000 255\n", 19, &image, &(tdm_error){0}), TDM_E_INPUT);
    assert_null(image.pixels);
}

/* The same of sizes in a directory and in a property. */
TEST(a_giant_size_elsewhere_is_refused_at_once)
{
    static const struct {
        const char *name;
        const char *before; /* the first bytes of it stand before the width … */
        size_t before_bytes, width_at, height_at, n_bytes; /* … so far behind their beginning */
        const char *size;
    } cases[] = {
        {"rgb8.tif", "\0\1\3\0\1\0\0\0", 8, 8, 20, 2, "\x30\x75"},
        {"rgb8-big-endian.tif", "\1\0\0\3\0\0\0\1", 8, 8, 20, 2, "\x75\x30"},
        {"rgb.avif", "ispe\0\0\0\0", 8, 8, 12, 4, "\0\0\x75\x30"},
    };
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = read_corpus(cases[i].name);
        uint8_t *at = memmem(file.bytes, file.length, cases[i].before, cases[i].before_bytes);
        tdm_error err = {0};
        assert_non_null(at);
        memcpy(at + cases[i].width_at, cases[i].size, cases[i].n_bytes);
        memcpy(at + cases[i].height_at, cases[i].size, cases[i].n_bytes);
        if (tdmi_image_can_decode(tdmi_image_sniff(file.bytes, file.length))) {
            assert_int_equal(decode(file.bytes, file.length, &image, &err), TDM_E_INPUT);
            if (strstr(tdm_error_sentence(&err, 0), "30000 x 30000 pixels; at most") == NULL)
                fail_msg("%s: \"%s\"", cases[i].name, tdm_error_sentence(&err, 0));
        }
        assert_null(image.pixels);
        tdmi_free(file.bytes);
    }
}

/* Phones write the rotation twice, into the file's own properties and into EXIF data. */
TEST(a_picture_rotated_by_its_file_is_not_rotated_again_by_its_exif_data)
{
    static const struct {
        const char *name, *upright;
    } cases[] = {{"orientation6.heic", "rgb.heic"},
                 {"orientation3.heic", "rgb.heic"},
                 {"orientation5.heic", "rgb.heic"},
                 {"orientation6.jxl", "rgb.jxl"}};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0}, wanted = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = read_corpus(cases[i].name), upright = read_corpus(cases[i].upright);
        const uint8_t *exif = memmem(file.bytes, file.length, "MM\0*", 4);
        assert_non_null(exif);
        const size_t exif_bytes = file.length - (size_t)(exif - (const uint8_t *)file.bytes);
        const int orientation = cases[i].name[strlen("orientation")] - '0';
        assert_int_equal(tdmi_exif_orientation_in(exif, exif_bytes), orientation);
        assert_int_equal(tdmi_exif_orientation(file.bytes, file.length), 1);
        if (tdmi_image_can_decode(tdmi_image_sniff(file.bytes, file.length))) {
            char found[65], expected[65];
            assert_int_equal(decode(upright.bytes, upright.length, &wanted, NULL), TDM_OK);
            assert_int_equal(tdmi_image_orient(&wanted, orientation, NULL), TDM_OK);
            assert_int_equal(decode(file.bytes, file.length, &image, NULL), TDM_OK);
            digest_image(&image, found);
            digest_image(&wanted, expected);
            assert_int_equal(image.width, wanted.width);
            assert_string_equal(found, expected);
        }
        tdmi_free(file.bytes);
        tdmi_free(upright.bytes);
    }
}

TEST(a_camera_raw_file_is_refused_and_not_taken_for_its_thumbnail)
{
    struct bytes file = read_corpus("rgb8.tif");
    uint8_t *bytes = file.bytes;
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    tdm_error err = {0};
    memcpy(bytes + 10, "\x12\xc6\1\0", 4); /* its first tag becomes the version of DNG */
    uint8_t *samples = memmem(bytes, file.length, "\x15\1\3\0\1\0\0\0", 8);
    assert_non_null(samples);
    memcpy(samples, "\0\1", 2); /* … and the number of samples the width */
    if (tdmi_image_can_decode(TDMI_IMAGE_TIFF)) {
        assert_int_equal(decode(bytes, file.length, &image, &err), TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "camera's raw file"));
    }
    tdmi_free(bytes);
}

TEST(a_missing_library_is_named_with_its_package)
{
    static const char *const missing[] = {"libtandem-has-no-such.so.9", NULL};
    static const char *const other[] = {"libtandem-has-no-such.so.9", "libm.so.6", NULL};
    static const struct tdmi_image_library_symbol symbols[] = {
        {"cos", 0}, {"cosine", 0}, {NULL, 0}};
    struct tdmi_image_library library = {"libpicture", missing, "libpicture7", symbols};
    double (*function)(double) = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_image_library_open(&library, &function, &err), TDM_E_ABSENT);
    assert_string_equal(tdm_error_sentence(&err, 0),
                        "libpicture is not on this machine (libtandem-has-no-such.so.9; Debian 12: "
                        "sudo apt-get install libpicture7)");
    library.files = other;
    err = (tdm_error){0};
    assert_int_equal(tdmi_image_library_open(&library, &function, &err), TDM_E_ABSENT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "lacks the function cosine"));
    assert_true(function(0) == 1);
}

TEST(a_name_decides_nothing)
{
    struct bytes gif = read_corpus("plain.gif"), bmp = read_corpus("rgb24.bmp");
    tdmi_image image = {0};
    tdm_status status = tdmi_image_decode(gif.bytes, gif.length, "photo.jpg",
                                          (struct tdmi_image_limits){0}, &image, NULL);
    assert_int_equal(status, tdmi_image_can_decode(TDMI_IMAGE_GIF) ? TDM_OK : TDM_E_ABSENT);
    status = tdmi_image_decode(bmp.bytes, bmp.length, "photo.jpg", (struct tdmi_image_limits){0},
                               &image, NULL);
    assert_int_equal(status, TDM_OK);
    assert_int_equal(image.width, 13);
    tdmi_image_release(&image);
    tdmi_free(gif.bytes);
    tdmi_free(bmp.bytes);
}

TEST(every_format_keeps_to_its_bytes_and_its_time)
{
    struct bytes table = read_checkout("tests/fixtures/image/pictures.txt");
    char *rest = table.bytes, *line;
    tdmi_image image = {0};
    while ((line = next_line(&rest)) != NULL) {
        char name[100];
        assert_int_equal(sscanf(line, "%99s", name), 1);
        struct bytes file = read_corpus(name);
        if (tdmi_image_can_decode(tdmi_image_sniff(file.bytes, file.length))) {
            struct tdmi_image_limits limits = {.max_bytes = (int64_t)file.length};
            tdm_error err = {0};
            assert_int_equal(tdmi_image_decode(file.bytes, file.length, name, limits, &image, NULL),
                             TDM_OK);
            limits.max_bytes--;
            assert_int_equal(tdmi_image_decode(file.bytes, file.length, name, limits, &image, &err),
                             TDM_E_INPUT);
            assert_non_null(strstr(tdm_error_sentence(&err, 0), "bytes; at most"));
            limits = (struct tdmi_image_limits){.max_ns = 1};
            err = (tdm_error){0};
            if (tdmi_image_decode(file.bytes, file.length, name, limits, &image, &err) !=
                    TDM_E_INPUT ||
                strstr(tdm_error_sentence(&err, 0), "takes longer than the 1e-09 s") == NULL)
                fail_msg("%s is decoded after its time: %s", name,
                         err.n_frames > 0 ? tdm_error_sentence(&err, 0) : "without an error");
            limits.max_ns = INT64_MAX;
            assert_int_equal(tdmi_image_decode(file.bytes, file.length, name, limits, &image, NULL),
                             TDM_OK);
        }
        tdmi_free(file.bytes);
    }
    tdmi_image_release(&image);
    tdmi_free(table.bytes);
}

TEST(a_used_image_takes_no_new_memory)
{
    static const char *const names[] = {"rgb420.jpg", "cmyk.jpg", "turned-right.jpg",
                                        "rgb.ppm",    "rle8.bmp", "rgba32.bmp"};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes file = read_corpus(names[i]);
        if (tdmi_image_can_decode(tdmi_image_sniff(file.bytes, file.length))) {
            assert_int_equal(decode(file.bytes, file.length, &image, NULL), TDM_OK);
            int64_t before = tdmi_memory_calls();
            assert_int_equal(decode(file.bytes, file.length, &image, NULL), TDM_OK);
            assert_int_equal(tdmi_memory_calls(), before);
        }
        tdmi_free(file.bytes);
    }
}

TEST(each_failed_allocation_is_reported)
{
    static const char *const names[] = {"rgb8.png",        "rgba16-interlaced.png",
                                        "turned-left.png", "rgb24.bmp",
                                        "rgb.ppm",         "turned-right.jpg",
                                        "placed.gif",      "animated-placed.webp",
                                        "lossy.webp",      "lossless-alpha.webp",
                                        "strips.tif",      "tiles-deflate.tif",
                                        "rgb.heic",        "rgba.jxl"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes file = read_corpus(names[i]);
        bool is_done = !tdmi_image_can_decode(tdmi_image_sniff(file.bytes, file.length));
        for (int64_t n = 1; !is_done; n++) {
            tdmi_image image = {0};
            tdm_error err = {0};
            assert_in_range(n, 1, 200);
            tdmi_memory_fail_from(n);
            tdm_status status = decode(file.bytes, file.length, &image, &err);
            tdmi_memory_fail_from(0);
            is_done = status == TDM_OK;
            if (!is_done && status != TDM_E_MEMORY)
                fail_msg("%s, allocation %d: %s", names[i], (int)n, tdm_error_sentence(&err, 0));
            assert_true(n > 1 || !is_done);
            tdmi_image_release(&image);
        }
        tdmi_free(file.bytes);
    }
}

TEST(formats_are_told_by_content_and_names_by_ending)
{
    assert_int_equal(tdmi_image_sniff("\xff\xd8\xff\xe0", 4), TDMI_IMAGE_JPEG);
    assert_int_equal(tdmi_image_sniff("\x89PNG\r\n\x1a\n", 8), TDMI_IMAGE_PNG);
    assert_int_equal(tdmi_image_sniff("\x89PNG\r\n\x1a", 7), TDMI_IMAGE_UNKNOWN);
    assert_int_equal(tdmi_image_sniff("BM", 2), TDMI_IMAGE_BMP);
    assert_int_equal(tdmi_image_sniff("GIF87a", 6), TDMI_IMAGE_GIF);
    assert_int_equal(tdmi_image_sniff("GIF89a", 6), TDMI_IMAGE_GIF);
    assert_int_equal(tdmi_image_sniff("GIF88a", 6), TDMI_IMAGE_UNKNOWN);
    assert_int_equal(tdmi_image_sniff("RIFF\1\2\3\4WEBP", 12), TDMI_IMAGE_WEBP);
    assert_int_equal(tdmi_image_sniff("RIFF\1\2\3\4WAVE", 12), TDMI_IMAGE_UNKNOWN);
    assert_int_equal(tdmi_image_sniff("P5\n", 3), TDMI_IMAGE_PPM);
    assert_int_equal(tdmi_image_sniff("P7\n", 3), TDMI_IMAGE_UNKNOWN);
    assert_int_equal(tdmi_image_sniff("P5x", 3), TDMI_IMAGE_UNKNOWN);
    assert_int_equal(tdmi_image_sniff("II*\0", 4), TDMI_IMAGE_TIFF);
    assert_int_equal(tdmi_image_sniff("MM\0+", 4), TDMI_IMAGE_TIFF);
    assert_int_equal(tdmi_image_sniff("II*\1", 4), TDMI_IMAGE_UNKNOWN);
    assert_int_equal(tdmi_image_sniff("\0\0\0\x10"
                                      "ftypheic\0\0\0\0",
                                      16),
                     TDMI_IMAGE_HEIC);
    assert_int_equal(tdmi_image_sniff("\0\0\0\x14"
                                      "ftypmif1\0\0\0\0avif",
                                      20),
                     TDMI_IMAGE_AVIF);
    assert_int_equal(tdmi_image_sniff("\0\0\0\x14"
                                      "ftypmp42\0\0\0\0isom",
                                      20),
                     TDMI_IMAGE_UNKNOWN);
    assert_int_equal(tdmi_image_sniff("\xff\x0a", 2), TDMI_IMAGE_JXL);
    assert_int_equal(tdmi_image_sniff("\0\0\0\x0cJXL \r\n\x87\n", 12), TDMI_IMAGE_JXL);
    assert_int_equal(tdmi_image_sniff("", 0), TDMI_IMAGE_UNKNOWN);
    assert_string_equal(tdmi_image_format_name(TDMI_IMAGE_JPEG), "JPEG");
    assert_string_equal(tdmi_image_format_name(TDMI_IMAGE_FORMATS), "unknown");
    assert_false(tdmi_image_can_decode(TDMI_IMAGE_UNKNOWN));
    assert_true(tdmi_image_can_decode(TDMI_IMAGE_PPM));

    static const char *const yes[] = {"a.jpg",  "a/b.JPEG", ".x/y.z.png", "a.Gif",
                                      "a.webp", "a.JpE",    "a.dib",      "a.ppm",
                                      "a.TIF",  "a.heic",   "a.avif",     "a.jxl"};
    static const char *const no[] = {"a.txt", "jpg", ".jpg", "a.", "a.jp", "a.jpgx", "a.jpg/b", ""};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!tdmi_image_has_extension(yes[i]))
            fail_msg("%s is no picture", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (tdmi_image_has_extension(no[i]))
            fail_msg("%s is a picture", no[i]);
}

TEST_MAIN(NULL, NULL)
