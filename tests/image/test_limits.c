/*
 * Files that would take far more memory than their size suggests: refused before a decoder sees
 * them.
 */
#include "image/pictures.h"
#include "image/facts.h"
#include "image/formats/heif_layout.h"
#include "unit.h"

static tdm_status decode(const void *bytes, size_t length, tdmi_image *image, tdm_error *err)
{
    return tdmi_image_decode(bytes, length, "test", (struct tdmi_image_limits){0}, image, err);
}

/* It is no larger than other pictures of 13 by 9 pixels: the tile would take 256 MiB. */
TEST(a_tile_far_larger_than_its_image_is_refused_before_it_takes_memory)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    struct bytes file = read_corpus("huge-tile.tif");
    struct tdmi_image_facts facts;
    tdm_error err = {0};
    assert_int_equal(tdmi_image_describe(file.bytes, file.length, "it", &facts, &err), TDM_OK);
    assert_int_equal(facts.coded_pixels, 8192 * 8192);
    if (tdmi_image_can_decode(TDMI_IMAGE_TIFF)) {
        assert_int_equal(decode(file.bytes, file.length, &image, &err), TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0),
                               "its tiles have 8192 x 8192 pixels, far more than the image"));
    }
    tdmi_free(file.bytes);
}

/* Their boxes say 24 by 16 pixels; a decoder would take memory for the 8192 by 8192 of the data. */
TEST(frames_far_larger_than_their_image_are_refused_before_they_take_memory)
{
    static const struct {
        const char *name, *says;
    } cases[] = {
        {"large-frame.heic", "its data have frames of 67108864 pixels, far more than the size"},
        {"large-frame-in-data.heic", "its data have frames of 67108864 pixels"},
        {"large-frame-in-pieces.heic", "cut coded data into pieces"},
        {"large-frame.avif", "its data have frames of 67108864 pixels"},
        {"large-frame-in-data.avif", "its data have frames of 67108864 pixels"},
    };
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = read_corpus(cases[i].name);
        const enum tdmi_image_format format = tdmi_image_sniff(file.bytes, file.length);
        tdm_error err = {0};
        assert_true(format == TDMI_IMAGE_HEIC || format == TDMI_IMAGE_AVIF);
        if (tdmi_image_can_decode(format)) {
            assert_int_equal(decode(file.bytes, file.length, &image, &err), TDM_E_INPUT);
            if (strstr(tdm_error_sentence(&err, 0), cases[i].says) == NULL)
                fail_msg("%s: \"%s\"", cases[i].name, tdm_error_sentence(&err, 0));
            assert_null(image.pixels);
        }
        tdmi_free(file.bytes);
    }
}

/* Encoders pad the sides of small images to a multiple of their blocks. The larger frame of
 * layers.heic is of a second layer, which nothing decodes. */
TEST(the_frames_of_a_sound_file_are_found)
{
    static const struct {
        const char *name;
        int64_t pixels;
    } cases[] = {{"rgb.heic", 64 * 64},          {"rgba.heic", 64 * 64},
                 {"orientation5.heic", 64 * 64}, {"layers.heic", 64 * 64},
                 {"rgb.avif", 24 * 16},          {"rgba.avif", 24 * 16},
                 {"grey.avif", 24 * 16},         {"orientation6.avif", 24 * 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = read_corpus(cases[i].name);
        struct tdmi_heif_layout layout;
        tdm_error err = {0};
        assert_int_equal(tdmi_heif_walk(file.bytes, file.length, &layout, &err), TDM_OK);
        if (layout.frame_pixels != cases[i].pixels)
            fail_msg("%s: %lld pixels", cases[i].name, (long long)layout.frame_pixels);
        assert_false(layout.has_larger_frames || layout.is_tangled);
        tdmi_free(file.bytes);
    }
}

TEST_MAIN(NULL, NULL)
