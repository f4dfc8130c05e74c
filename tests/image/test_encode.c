/*
 * Encoding: what was written reads back, the same picture always gives the same bytes, and what
 * cannot be written says so.
 */
#include "image/pictures.h"
#include "unit.h"

static tdmi_text encode(const tdmi_image *image, enum tdmi_image_format format, int quality)
{
    tdmi_text file = {0};
    tdm_error err = {0};
    if (tdmi_image_encode(image, format, quality, &file, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    return file;
}

/* The largest difference of a value after writing and reading. */
static int loss_of(const tdmi_image *image, enum tdmi_image_format format, int quality)
{
    tdmi_image back = {0};
    tdmi_text file = encode(image, format, quality);
    assert_int_equal(tdmi_image_sniff(file.bytes, file.length_bytes), format);
    assert_int_equal(tdmi_image_decode(file.bytes, file.length_bytes, "test",
                                       (struct tdmi_image_limits){0}, &back, NULL),
                     TDM_OK);
    assert_int_equal(back.width, image->width);
    assert_int_equal(back.height, image->height);
    int loss = 0;
    for (size_t i = 0; i < 3 * (size_t)image->width * (size_t)image->height; i++)
        if (abs(back.pixels[i] - image->pixels[i]) > loss)
            loss = abs(back.pixels[i] - image->pixels[i]);
    tdmi_image_release(&back);
    tdmi_text_release(&file);
    return loss;
}

TEST(lossless_formats_keep_every_pixel)
{
    static const enum tdmi_image_format formats[] = {TDMI_IMAGE_PNG, TDMI_IMAGE_BMP,
                                                     TDMI_IMAGE_PPM};
    static const int sizes[][2] = {{1, 1}, {2, 3}, {3, 2}, {64, 48}, {257, 31}, {1, 500}, {500, 1}};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            if (!tdmi_image_can_encode(formats[f]))
                continue;
            draw_pattern(&image, sizes[i][0], sizes[i][1]);
            assert_int_equal(loss_of(&image, formats[f], 0), 0);
        }
}

/* Soft slopes, which JPEG is made for. */
static void draw_slopes(tdmi_image *image, int width, int height)
{
    assert_int_equal(tdmi_image_reshape(image, width, height, NULL), TDM_OK);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t *pixel = image->pixels + 3 * ((ptrdiff_t)y * width + x);
            pixel[0] = (uint8_t)(40 + x);
            pixel[1] = (uint8_t)(60 + y);
            pixel[2] = (uint8_t)(50 + (x + y) / 2);
        }
}

TEST(jpeg_comes_close_and_closer_with_quality)
{
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG))
        skip();
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    draw_slopes(&image, 99, 61);
    assert_in_range(loss_of(&image, TDMI_IMAGE_JPEG, 100), 1, 5);
    assert_in_range(loss_of(&image, TDMI_IMAGE_JPEG, 90), 1, 12);
    assert_in_range(loss_of(&image, TDMI_IMAGE_JPEG, 30), 6, 60);
}

/* The digests are those of the files that Pillow 13 writes for the same pixels, quality and
 * sampling (from quality 95 on with restart_marker_rows=1): its libjpeg-turbo is another version,
 * built by others. */
TEST(jpeg_bytes_are_the_same_everywhere)
{
    static const struct {
        int quality;
        const char *digest;
    } cases[] = {{1, "c93aa8d2b1c7e79a"},
                 {75, "f8e98b73e490a818"},
                 {94, "9d8cd8fa1654787e"},
                 {95, "867abb800855fab7"},
                 {100, "e83fd0897112d81b"}};
    if (!tdmi_image_can_encode(TDMI_IMAGE_JPEG))
        skip();
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    draw_pattern(&image, 77, 53);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char digest[65];
        tdmi_text file = encode(&image, TDMI_IMAGE_JPEG, cases[i].quality);
        digest_of(file.bytes, file.length_bytes, digest);
        assert_string_equal(digest, cases[i].digest);
        tdmi_text_release(&file);
    }
}

TEST(encoding_twice_gives_the_same_bytes_behind_what_was_there)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    draw_pattern(&image, 120, 90);
    for (int format = TDMI_IMAGE_UNKNOWN + 1; format < TDMI_IMAGE_FORMATS; format++) {
        if (!tdmi_image_can_encode((enum tdmi_image_format)format))
            continue;
        tdmi_text first = encode(&image, (enum tdmi_image_format)format, 80), second = {0};
        tdmi_text_add(&second, "before", 6);
        assert_int_equal(
            tdmi_image_encode(&image, (enum tdmi_image_format)format, 80, &second, NULL), TDM_OK);
        assert_int_equal(second.length_bytes, first.length_bytes + 6);
        assert_memory_equal(second.bytes, "before", 6);
        assert_memory_equal(second.bytes + 6, first.bytes, first.length_bytes);
        tdmi_text_release(&first);
        tdmi_text_release(&second);
    }
}

TEST(what_cannot_be_written_is_refused)
{
    tdmi_image image = {0}, empty = {0};
    tdmi_text out = {0};
    tdm_error err = {0};
    draw_pattern(&image, 8, 8);
    assert_int_equal(tdmi_image_encode(&empty, TDMI_IMAGE_PPM, 0, &out, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "empty"));
    assert_int_equal(tdmi_image_encode(&image, TDMI_IMAGE_UNKNOWN, 0, &out, &err), TDM_E_ABSENT);
    assert_int_equal(tdmi_image_encode(&image, TDMI_IMAGE_TIFF, 0, &out, &err), TDM_E_ABSENT);
    assert_string_equal(tdm_error_sentence(&err, 0),
                        "cannot write a TIFF image: tandem reads them alone");
    if (tdmi_image_can_encode(TDMI_IMAGE_JPEG)) {
        static const int qualities[] = {-1, 0, 101};
        for (size_t i = 0; i < sizeof qualities / sizeof *qualities; i++)
            assert_int_equal(tdmi_image_encode(&image, TDMI_IMAGE_JPEG, qualities[i], &out, &err),
                             TDM_E_USAGE);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "1 to 100"));
        assert_int_equal(tdmi_image_reshape(&image, 65501, 1, NULL), TDM_OK);
        assert_int_equal(tdmi_image_encode(&image, TDMI_IMAGE_JPEG, 90, &out, &err), TDM_E_USAGE);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "65500"));
    }
    assert_int_equal(out.length_bytes, 0);
    tdmi_text_release(&out);
    tdmi_image_release(&image);
}

TEST(each_failed_allocation_is_reported)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    draw_pattern(&image, 90, 90);
    for (int format = TDMI_IMAGE_UNKNOWN + 1; format < TDMI_IMAGE_FORMATS; format++) {
        bool is_done = !tdmi_image_can_encode((enum tdmi_image_format)format);
        for (int64_t n = 1; !is_done; n++) {
            tdmi_text out = {0};
            tdm_error err = {0};
            assert_in_range(n, 1, 500);
            tdmi_memory_fail_from(n);
            tdm_status status =
                tdmi_image_encode(&image, (enum tdmi_image_format)format, 90, &out, &err);
            tdmi_memory_fail_from(0);
            is_done = status == TDM_OK;
            if (!is_done && status != TDM_E_MEMORY)
                fail_msg("%s, allocation %d: %s",
                         tdmi_image_format_name((enum tdmi_image_format)format), (int)n,
                         tdm_error_sentence(&err, 0));
            assert_true(n > 1 || !is_done);
            tdmi_text_release(&out);
        }
    }
}

TEST_MAIN(NULL, NULL)
