/*
 * Facts of files without decoding; the expected ones are in tests/fixtures/image/facts.txt
 * (make_zoo.py, by Pillow). A file cut short is distinguished from a damaged one, at every
 * hundredth of every stored image. All of it in every build.
 */
#include "image/pictures.h"
#include "image/facts.h"
#include "unit.h"

static tdm_status describe(const void *bytes, size_t length, struct tdmi_image_facts *facts,
                           tdm_error *err)
{
    /* A copy of the exact length: a read past the end then meets the sanitizer. */
    void *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    tdm_status status = tdmi_image_describe(copy, length, "test", facts, err);
    /* The header alone says the same. */
    const int width = (int)facts->width, height = (int)facts->height;
    if (status == TDM_OK)
        assert_true(tdmi_image_is_jpeg_of(copy, length, width, height) ==
                    (facts->format == TDMI_IMAGE_JPEG));
    assert_false(tdmi_image_is_jpeg_of(copy, length, width + 1, height));
    assert_false(tdmi_image_is_jpeg_of(copy, length, width, height + 1));
    free(copy);
    return status;
}

static const char *const colours_names[] = {
    [TDMI_COLOURS_UNKNOWN] = "unknown", [TDMI_COLOURS_GREY] = "grey", [TDMI_COLOURS_RGB] = "rgb",
    [TDMI_COLOURS_PALETTE] = "palette", [TDMI_COLOURS_CMYK] = "cmyk", [TDMI_COLOURS_YCCK] = "ycck",
};

static void write_facts(const struct tdmi_image_facts *facts, char *text, size_t text_bytes)
{
    char flags[40] = "";
    if (facts->has_alpha)
        snprintf(flags, sizeof flags, ",alpha");
    if (facts->has_icc)
        snprintf(flags + strlen(flags), sizeof flags - strlen(flags), ",icc");
    if (facts->is_layered)
        snprintf(flags + strlen(flags), sizeof flags - strlen(flags), ",layered");
    snprintf(text, text_bytes, "%s %lldx%lld %d %s %d %lld %s",
             tdmi_image_format_name(facts->format), (long long)facts->width,
             (long long)facts->height, facts->orientation, colours_names[facts->colours],
             facts->bits, (long long)facts->n_frames, flags[0] != '\0' ? flags + 1 : "-");
}

/* A file of the table: stored here, or of the test data; false when that is not there. */
static bool find_file(const char *name, struct bytes *file)
{
    char path[1000];
    if (strncmp(name, "corpus/", 7) == 0) {
        *file = read_corpus(name + 7);
        return true;
    }
    const char *data = getenv("TANDEM_TEST_DATA");
    if (data == NULL)
        return false;
    snprintf(path, sizeof path, "%s/images/%s", data, name);
    *file = read_path(path);
    return true;
}

TEST(every_file_says_what_pillow_finds)
{
    struct bytes table = read_checkout("tests/fixtures/image/facts.txt");
    char *rest = table.bytes, *line;
    int n = 0, n_wrong = 0;
    while ((line = next_line(&rest)) != NULL) {
        char name[200], found[200];
        int used = 0;
        assert_int_equal(sscanf(line, "%199s %n", name, &used), 1);
        struct bytes file = {0};
        if (!find_file(name, &file))
            continue;
        struct tdmi_image_facts facts;
        tdm_error err = {0};
        tdm_status status = describe(file.bytes, file.length, &facts, &err);
        write_facts(&facts, found, sizeof found);
        if (status != TDM_OK || strcmp(found, line + used) != 0) {
            print_error("%s: \"%s\", not \"%s\" %s\n", name, found, line + used,
                        status != TDM_OK ? tdm_error_sentence(&err, 0) : "");
            n_wrong++;
        }
        tdmi_free(file.bytes);
        n++;
    }
    assert_int_equal(n_wrong, 0);
    assert_in_range(n, getenv("TANDEM_TEST_DATA") ? 250 : 99, 1000);
    tdmi_free(table.bytes);
}

/* ---- cut or damaged -------------------------------------------------------------------------- */

static bool same_pixels(const tdmi_image *a, const tdmi_image *b)
{
    return a->width == b->width && a->height == b->height &&
           memcmp(a->pixels, b->pixels, 3 * (size_t)a->width * (size_t)a->height) == 0;
}

/* Every hundredth: where the picture still decodes nothing of it may be missing; else it looks cut.
 * Returns how often it was refused. */
static int cut_everywhere(const char *name, const struct bytes *file, const tdmi_image *whole)
{
    int n_refused = 0;
    tdmi_image image = {0};
    for (size_t percent = 0; percent < 100; percent++) {
        const size_t length = file->length * percent / 100;
        struct tdmi_image_facts facts;
        tdm_status described = describe(file->bytes, length, &facts, NULL);
        tdm_error err = {0};
        tdm_status decoded = tdmi_image_decode(file->bytes, length, name,
                                               (struct tdmi_image_limits){0}, &image, &err);
        if (decoded == TDM_OK && !same_pixels(whole, &image))
            fail_msg("%s cut at %zu %% is another picture", name, percent);
        if (decoded == TDM_OK)
            continue;
        n_refused++;
        /* Bare codestreams of JPEG XL do not tell where they end; their decoder does. */
        const bool looks_cut =
            facts.is_cut || (facts.format == TDMI_IMAGE_JXL &&
                             strstr(tdm_error_sentence(&err, 0), "truncated") != NULL);
        if (facts.format != TDMI_IMAGE_UNKNOWN && !looks_cut)
            fail_msg("%s cut at %zu %% does not look cut", name, percent);
        if (facts.format == TDMI_IMAGE_UNKNOWN && (described != TDM_E_INPUT || length > 12))
            fail_msg("%s cut at %zu %% is no picture", name, percent);
    }
    tdmi_image_release(&image);
    return n_refused;
}

TEST(a_file_cut_at_any_hundredth_looks_cut)
{
    struct bytes table = read_checkout("tests/fixtures/image/pictures.txt");
    char *rest = table.bytes, *line;
    tdmi_image whole = {0};
    int n = 0;
    while ((line = next_line(&rest)) != NULL) {
        char name[100];
        assert_int_equal(sscanf(line, "%99s", name), 1);
        struct bytes file = read_corpus(name);
        struct tdmi_image_facts facts;
        assert_int_equal(describe(file.bytes, file.length, &facts, NULL), TDM_OK);
        if (facts.is_cut)
            fail_msg("%s looks cut", name);
        if (tdmi_image_can_decode(facts.format)) {
            assert_int_equal(tdmi_image_decode(file.bytes, file.length, name,
                                               (struct tdmi_image_limits){0}, &whole, NULL),
                             TDM_OK);
            /* An animation's later frames are nothing of its first, nor are later pages. */
            const bool is_series = facts.n_frames > 1 && (facts.format == TDMI_IMAGE_GIF ||
                                                          facts.format == TDMI_IMAGE_TIFF);
            int least = is_series ? 60 : 95;
            int n_refused = cut_everywhere(name, &file, &whole);
            if (n_refused < least)
                fail_msg("%s: only %d of 100 cuts are refused", name, n_refused);
        }
        tdmi_free(file.bytes);
        n++;
    }
    assert_in_range(n, 100, 1000);
    tdmi_image_release(&whole);
    tdmi_free(table.bytes);
}

/* The same of larger pictures: in the middle of scans, restarts, rows and runs. */
TEST(a_collected_picture_cut_at_any_hundredth_looks_cut)
{
    static const char *const names[] = {
        "jpeg-corner/rgb.jpg",          "jpeg-corner/ycck.jpg",
        "jpeg-corner/progressive3.jpg", "jpeg-corner/grayscale_large.jpg",
        "jpeg-corner/restarts.jpg",     "jpeg-corner/rgb_250x167.png",
        "other-formats/cat.jpg",        "other-formats/iptc.jpg",
        "other-formats/Core_1_Bit.bmp", "other-formats/pal8rle.bmp",
        "other-formats/rgba32.bmp",     "other-formats/basi0g16.png",
    };
    TDMI_AT_END(tdmi_image_release) tdmi_image whole = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes file = {0};
        if (!find_file(names[i], &file))
            skip();
        if (tdmi_image_can_decode(tdmi_image_sniff(file.bytes, file.length))) {
            assert_int_equal(tdmi_image_decode(file.bytes, file.length, names[i],
                                               (struct tdmi_image_limits){0}, &whole, NULL),
                             TDM_OK);
            int n_refused = cut_everywhere(names[i], &file, &whole);
            if (n_refused < 99)
                fail_msg("%s: only %d of 100 cuts are refused", names[i], n_refused);
        }
        tdmi_free(file.bytes);
    }
}

TEST(a_damaged_file_does_not_look_cut)
{
    static const char *const names[] = {"rgb420.jpg", "rgb8.png", "plain.gif", "lossy.webp"};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes file = read_corpus(names[i]);
        uint8_t *bytes = file.bytes;
        int n_refused = 0;
        /* The coded pixels, in the middle and behind; no length stands there. */
        for (size_t at = file.length * 7 / 8; at < file.length * 15 / 16; at++) {
            bytes[at] ^= 0x55;
            struct tdmi_image_facts facts;
            assert_int_equal(describe(bytes, file.length, &facts, NULL), TDM_OK);
            tdm_status status = tdmi_image_decode(bytes, file.length, names[i],
                                                  (struct tdmi_image_limits){0}, &image, NULL);
            n_refused += status == TDM_E_INPUT;
            if (facts.is_cut)
                fail_msg("%s with byte %zu changed looks cut", names[i], at);
            bytes[at] ^= 0x55;
        }
        if (strcmp(names[i], "rgb8.png") == 0 && tdmi_image_can_decode(TDMI_IMAGE_PNG))
            assert_int_not_equal(n_refused, 0);
        tdmi_free(file.bytes);
    }
}

/* The broken ones of the test data that are refused: cut, damaged, or nothing at all. */
TEST(refused_files_are_told_apart)
{
    static const struct {
        const char *name;
        bool is_cut;
    } cases[] = {
        {"jpeg-broken/missing-sof.jpg", true},
        {"jpeg-broken/invalid-dimensions.jpg", true},
        {"jpeg-broken/null_height.jpg", false},
        {"jpeg-broken/subtract-with-overflow.jpg", false},
        {"other-formats/Bad_shortfile.bmp", true},
        {"other-formats/Bad_clrsUsed.bmp", false},
        {"other-formats/Bad_badbitcount.bmp", false},
        {"other-formats/badpalettesize.bmp", false},
        {"other-formats/pal4rlecut.bmp", false},
        {"other-formats/rle_overflow.bmp", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = {0};
        struct tdmi_image_facts facts;
        if (!find_file(cases[i].name, &file))
            skip();
        (void)describe(file.bytes, file.length, &facts, &(tdm_error){0});
        if (facts.is_cut != cases[i].is_cut)
            fail_msg("%s looks %s", cases[i].name, facts.is_cut ? "cut" : "whole");
        tdmi_free(file.bytes);
    }
}

TEST(what_is_no_picture_is_said)
{
    static const struct {
        const char *bytes;
        size_t length;
        bool is_cut;
        const char *words;
    } cases[] = {
        {"", 0, false, "no bytes"},
        {"hello", 5, false, "text that begins with 'hello'"},
        {"\xff\xd8\xff", 3, true, "truncated: no frame header"},
        {"\xff\xd8\xff\xd9", 4, false, "damaged: no frame header"},
        {"\xff\xd8\xff\xe0\0\1", 6, true, "truncated: no frame header"},
        {"\xff\xd8\xff\xc0\0\x0b\x08\0\0\0\x05\1\1\x11\0\xff\xd9", 17, false, "5 x 0 pixels"},
        {"\x89PNG\r\n\x1a\n", 8, true, "truncated: no IHDR"},
        {"\x89PNG\r\n\x1a\n\0\0\0\0IENDabcd", 20, false, "damaged: no IHDR"},
        {"GIF89a\1\0\1\0", 10, true, "truncated"},
        {"GIF89a\1\0\1\0\0\0\0;", 14, false, "damaged: no frame"},
        {"RIFF\x04\0\0\0WEBP", 12, false, "damaged"},
        {"RIFF\x40\0\0\0WEBPVP8 ", 16, true, "truncated"},
        {"BM", 2, true, "truncated"},
        {"II*\0\x40\0\0\0\0\0\0\0\0\0\0\0", 16, true, "truncated: its directory"},
        {"II*\0\x08\0\0\0\0\0\0\0\0\0\0\0", 16, false, "damaged: its directory names no size"},
        {"\0\0\0\x10"
         "ftypheic\0\0\0\0",
         16, false, "damaged: no primary image"},
        {"\0\0\0\x20"
         "ftypavif\0\0\0\0",
         16, true, "truncated: no primary image"},
        {"\xff\x0a\x08", 3, true, "truncated: its header"},
        {"\0\0\0\x0cJXL \r\n\x87\n", 12, true, "truncated: no image header"},
        {"P6 3", 4, true, "truncated"},
        {"P6 3 x", 6, false, "damaged"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tdmi_image_facts facts;
        tdm_error err = {0};
        assert_int_equal(describe(cases[i].bytes, cases[i].length, &facts, &err), TDM_E_INPUT);
        if (strstr(tdm_error_sentence(&err, 0), cases[i].words) == NULL)
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, tdm_error_sentence(&err, 0),
                     cases[i].words);
        if (facts.is_cut != cases[i].is_cut)
            fail_msg("case %zu: is_cut is %d", i, facts.is_cut);
    }
}

/* Describing allocates nothing and survives every changed byte. */
TEST(every_changed_byte_gives_facts_or_a_sentence)
{
    static const char *const names[] = {"profile.jpg",
                                        "progressive.jpg",
                                        "palette2-clear.png",
                                        "animated.gif",
                                        "animated-placed.webp",
                                        "rgba32.bmp",
                                        "rle8-moves.bmp",
                                        "profile-exif.webp",
                                        "text.pgm",
                                        "strips.tif",
                                        "rgb8-bigtiff.tif",
                                        "orientation6.heic",
                                        "rgba.avif",
                                        "boxes.jxl",
                                        "rgba.jxl"};
    static const uint8_t flips[] = {0x01, 0x80, 0xff};
    int64_t before = tdmi_memory_calls();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes file = read_corpus(names[i]);
        uint8_t *bytes = file.bytes;
        before = tdmi_memory_calls();
        for (size_t at = 0; at < 3 * file.length; at++) {
            struct tdmi_image_facts facts;
            tdm_error err = {0};
            bytes[at / 3] ^= flips[at % 3];
            if (describe(bytes, file.length, &facts, &err) != TDM_OK)
                assert_true(err.n_frames > 0 && tdm_error_sentence(&err, 0)[0] != '\0');
            bytes[at / 3] ^= flips[at % 3];
        }
        assert_int_equal(tdmi_memory_calls(), before);
        tdmi_free(file.bytes);
    }
}

TEST_MAIN(NULL, NULL)
