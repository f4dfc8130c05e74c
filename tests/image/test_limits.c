/*
 * Files that would take far more memory than their size suggests: refused before a decoder sees
 * them.
 */
#include "base/clock.h"
#include "base/text/text.h"
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

static void put_big(uint8_t *at, uint64_t value, int n_bytes)
{
    while (n_bytes > 0) {
        at[--n_bytes] = (uint8_t)value;
        value >>= 8;
    }
}

/* A box of n_bytes bytes of content, 0 each; where they begin. */
static uint8_t *add_box(tdmi_text *file, const char *name, size_t n_bytes)
{
    uint8_t *box = (uint8_t *)tdmi_text_room(file, 8 + n_bytes);
    assert_non_null(box);
    memset(box, 0, 8 + n_bytes);
    put_big(box, 8 + n_bytes, 4);
    memcpy(box + 4, name, 4);
    return box + 8;
}

/* One item of 2,000 properties and 255 associations with none of them but the first, whose data are
 * 65,535 pieces of no bytes, fifty times over: a file of 17 kB that would be looked at for hours.
 */
TEST(looking_at_a_small_file_ends)
{
    enum { PROPERTIES = 2000, ASSOCIATIONS = 255, ITEMS = 50 };
    TDMI_AT_END(tdmi_text_release) tdmi_text file = {0}, meta = {0}, ipco = {0}, iprp = {0};
    struct tdmi_heif_layout layout;
    tdm_error err = {0};
    memcpy(add_box(&file, "ftyp", 8), "heic\0\0\0\0", 8);
    add_box(&ipco, "hvcC", 23);
    for (int i = 0; i < PROPERTIES; i++)
        add_box(&ipco, "free", 0);
    memcpy(add_box(&iprp, "ipco", ipco.length_bytes), ipco.bytes, ipco.length_bytes);
    uint8_t *at = add_box(&iprp, "ipma", 4 + 4 + 3 + 2 * ASSOCIATIONS);
    at[3] = 1; /* indices of 15 bits */
    at[7] = at[9] = 1;
    at[10] = ASSOCIATIONS;
    for (int i = 0; i < ASSOCIATIONS; i++)
        put_big(at + 11 + 2 * i, i + 1 < ASSOCIATIONS ? PROPERTIES + 10 : 1, 2);
    add_box(&meta, "pitm", 6)[5] = 1;
    at = add_box(&meta, "iinf", 6 + 8 + 13);
    at[5] = 1;
    put_big(at + 6, 8 + 13, 4);
    memcpy(at + 10, "infe\2\0\0\0\0\1\0\0hvc1", 16);
    at = add_box(&meta, "iloc", 8 + 6 * ITEMS);
    at[7] = ITEMS;
    for (int i = 0; i < ITEMS; i++)
        memcpy(at + 8 + 6 * i, "\0\1\0\0\xff\xff", 6);
    memcpy(add_box(&meta, "iprp", iprp.length_bytes), iprp.bytes, iprp.length_bytes);
    memcpy(add_box(&file, "meta", 4 + meta.length_bytes) + 4, meta.bytes, meta.length_bytes);
    add_box(&file, "mdat", 100);
    const int64_t began = tdmi_clock_ns();
    assert_int_equal(tdmi_heif_walk((uint8_t *)file.bytes, file.length_bytes, &layout, &err),
                     TDM_E_INPUT); /* its image has no size */
    assert_true(layout.is_tangled);
    assert_true(tdmi_clock_seconds_since(began) < 20.0);
}

TEST_MAIN(NULL, NULL)
