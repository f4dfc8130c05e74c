/*
 * Rare JPEG files, made here with libjpeg itself or by changing stored ones: arithmetic coding, two
 * components, many passes, other precisions.
 */
#include "image/pictures.h"
#include "base/clock.h"
#include "tandem_features.h"
#include "unit.h"

#if TDM_HAVE_JPEG

#include <jpeglib.h>

struct made {
    unsigned char *bytes; /* of libjpeg, which takes it from malloc */
    unsigned long length;
};

static struct made make_jpeg(const tdmi_image *image, int n_components, bool is_arithmetic,
                             bool is_progressive)
{
    struct made made = {0};
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct encoder;
    memset(&encoder, 0, sizeof encoder);
    encoder.err = jpeg_std_error(&errors);
    jpeg_create_compress(&encoder);
    jpeg_mem_dest(&encoder, &made.bytes, &made.length);
    encoder.image_width = (JDIMENSION)(image->width * 3 / n_components);
    encoder.image_height = (JDIMENSION)image->height;
    encoder.input_components = n_components;
    encoder.in_color_space = n_components == 3 ? JCS_RGB : JCS_UNKNOWN;
    jpeg_set_defaults(&encoder);
    if (is_progressive)
        jpeg_simple_progression(&encoder);
    encoder.arith_code = is_arithmetic;
    jpeg_start_compress(&encoder, TRUE);
    while (encoder.next_scanline < encoder.image_height) {
        JSAMPROW row = image->pixels + 3 * (size_t)image->width * encoder.next_scanline;
        (void)jpeg_write_scanlines(&encoder, &row, 1);
    }
    jpeg_finish_compress(&encoder);
    jpeg_destroy_compress(&encoder);
    return made;
}

static void refused_with(const void *bytes, size_t length, const char *words)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    tdm_error err = {0};
    assert_int_equal(
        tdmi_image_decode(bytes, length, "test", (struct tdmi_image_limits){0}, &image, &err),
        TDM_E_INPUT);
    if (strstr(tdm_error_sentence(&err, 0), words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", tdm_error_sentence(&err, 0), words);
}

/* The two codings keep the same coefficients. */
TEST(arithmetic_coding_gives_the_pixels_of_huffman_coding)
{
    tdmi_image image = {0}, decoded[2] = {{0}, {0}};
    draw_pattern(&image, 75, 50);
    for (int is_progressive = 0; is_progressive < 2; is_progressive++) {
        for (int is_arithmetic = 0; is_arithmetic < 2; is_arithmetic++) {
            struct made made = make_jpeg(&image, 3, is_arithmetic, is_progressive);
            tdm_error err = {0};
            if (tdmi_image_decode(made.bytes, made.length, "test", (struct tdmi_image_limits){0},
                                  &decoded[is_arithmetic], &err) != TDM_OK)
                fail_msg("%s", tdm_error_sentence(&err, 0));
            refused_with(made.bytes, made.length / 2, "truncated");
            free(made.bytes);
        }
        assert_memory_equal(decoded[0].pixels, decoded[1].pixels, 3 * 75 * 50);
    }
    tdmi_image_release(&image);
    tdmi_image_release(&decoded[0]);
    tdmi_image_release(&decoded[1]);
}

TEST(two_components_are_refused)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    draw_pattern(&image, 8, 8);
    struct made made = make_jpeg(&image, 2, false, false);
    refused_with(made.bytes, made.length, "2 colour components");
    free(made.bytes);
}

/* The stored progressive picture with its last pass n times. */
static tdmi_text with_passes(int n)
{
    struct bytes file = read_corpus("progressive.jpg");
    const uint8_t *bytes = file.bytes;
    size_t scan = file.length - 2;
    while (!(bytes[scan] == 0xff && bytes[scan + 1] == 0xda))
        scan--;
    tdmi_text many = {0};
    tdmi_text_add(&many, bytes, scan);
    for (int i = 0; i < n; i++)
        tdmi_text_add(&many, bytes + scan, file.length - 2 - scan);
    tdmi_text_add(&many, bytes + file.length - 2, 2);
    tdmi_free(file.bytes);
    return many;
}

/* A file that repeats its last pass would keep a decoder busy for as long as it likes. */
TEST(passes_are_counted_before_the_first)
{
    tdmi_text many = with_passes(1000);
    refused_with(many.bytes, many.length_bytes, "in 1009 scans; at most 500 are decoded");
    tdmi_text_release(&many);

    /* Fewer, over a header that says 12000 x 12000 pixels. */
    many = with_passes(30);
    uint8_t *frame = (uint8_t *)many.bytes;
    while (!(frame[0] == 0xff && frame[1] == 0xc2))
        frame++;
    memcpy(frame + 5, "\x2e\xe0\x2e\xe0", 4);
    refused_with(many.bytes, many.length_bytes, "in 39 scans; at most 29 are decoded");
    tdmi_text_release(&many);
}

/* Passes over a large picture cost time, however few bytes they have. */
TEST(many_passes_over_a_large_picture_run_out_of_time)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    assert_int_equal(tdmi_image_reshape(&image, 2000, 2000, NULL), TDM_OK);
    memset(image.pixels, 90, (size_t)3 * 2000 * 2000);
    struct made made = make_jpeg(&image, 3, false, true);
    size_t scan = made.length - 2;
    while (!(made.bytes[scan] == 0xff && made.bytes[scan + 1] == 0xda))
        scan--;
    tdmi_text many = {0};
    tdmi_text_add(&many, made.bytes, scan);
    for (int i = 0; i < 450; i++)
        tdmi_text_add(&many, made.bytes + scan, made.length - 2 - scan);
    tdmi_text_add(&many, made.bytes + made.length - 2, 2);
    tdm_error err = {0};
    int64_t start = tdmi_clock_ns();
    const struct tdmi_image_limits limits = {.max_ns = 20 * 1000 * 1000};
    assert_int_equal(tdmi_image_decode(many.bytes, many.length_bytes, "test", limits, &image, &err),
                     TDM_E_INPUT);
    assert_true(tdmi_clock_seconds_since(start) < 2);
    if (strstr(tdm_error_sentence(&err, 0), "longer than the 0.02 s") == NULL)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    tdmi_text_release(&many);
    free(made.bytes);
}

TEST(other_precisions_and_processes_are_refused_by_name)
{
    struct bytes file = read_corpus("rgb420.jpg");
    uint8_t *bytes = file.bytes;
    size_t frame = 0;
    while (!(bytes[frame] == 0xff && bytes[frame + 1] == 0xc0))
        frame++;
    bytes[frame + 4] = 12;
    refused_with(bytes, file.length, "precision 12");
    bytes[frame + 4] = 8;
    bytes[frame + 1] = 0xc5; /* a differential frame, which no one writes */
    refused_with(bytes, file.length, "SOF type 0xc5");
    tdmi_free(file.bytes);
}

TEST_MAIN(NULL, NULL)

#else

TEST(jpeg_is_not_in_this_build)
{
    skip();
}

TEST_MAIN(NULL, NULL)

#endif
