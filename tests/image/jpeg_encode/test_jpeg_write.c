/*
 * Our own JPEG writer against libjpeg-turbo: pictures of all sizes and kinds, at all qualities,
 * with every set of instructions that this machine has, must become the same bytes.
 */
#include "image/pictures.h"
#include "image/jpeg_encode/encode.h"
#include "tandem_features.h"

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* CHECKS has nothing but means and the last coefficient, DOTS few and far between. */
enum { SMOOTH, NOISE, EDGES, FLAT, CHECKS, DOTS, KINDS };

static void draw(tdmi_image *image, int width, int height, int kind)
{
    uint32_t state = (uint32_t)(width * 1000 + height);
    assert_int_equal(tdmi_image_reshape(image, width, height, NULL), TDM_OK);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++) {
                const int random = (int)(next_random(&state) & 255);
                const int values[KINDS] = {[SMOOTH] = 3 * x + 2 * y + 50 * c + random % 8,
                                           [NOISE] = random,
                                           [EDGES] = random < 64 ? 255 : 0,
                                           [FLAT] = 40 + 70 * c,
                                           [CHECKS] = 100 + 55 * ((x + y) % 2),
                                           [DOTS] = 90 + (random == 7 ? 60 : 0)};
                image->pixels[3 * (y * width + x) + c] = (uint8_t)values[kind];
            }
}

#if TDM_HAVE_JPEG

#include <jpeglib.h>

/* As tdmi_image_encode promises: 4:4:4 with a restart marker a row of blocks from 95 on. */
static void encode_by_library(const tdmi_image *image, int quality, tdmi_text *out)
{
    unsigned char *bytes = NULL; /* of libjpeg, which takes it from malloc */
    unsigned long length = 0;
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct encoder;
    memset(&encoder, 0, sizeof encoder);
    encoder.err = jpeg_std_error(&errors);
    jpeg_create_compress(&encoder);
    jpeg_mem_dest(&encoder, &bytes, &length);
    encoder.image_width = (JDIMENSION)image->width;
    encoder.image_height = (JDIMENSION)image->height;
    encoder.input_components = 3;
    encoder.in_color_space = JCS_RGB;
    jpeg_set_defaults(&encoder);
    jpeg_set_quality(&encoder, quality, TRUE);
    encoder.comp_info[0].h_samp_factor = encoder.comp_info[0].v_samp_factor = quality < 95 ? 2 : 1;
    encoder.restart_in_rows = quality < 95 ? 0 : 1;
    jpeg_start_compress(&encoder, TRUE);
    while (encoder.next_scanline < encoder.image_height) {
        JSAMPROW row = image->pixels + 3 * (size_t)image->width * encoder.next_scanline;
        (void)jpeg_write_scanlines(&encoder, &row, 1);
    }
    jpeg_finish_compress(&encoder);
    jpeg_destroy_compress(&encoder);
    tdmi_text_clear(out);
    tdmi_text_add(out, bytes, length);
    free(bytes);
}

#else

/* Without it the specification has to do; test_encode.c knows what Pillow makes of a few. */
static void encode_by_library(const tdmi_image *image, int quality, tdmi_text *out)
{
    tdmi_text_clear(out);
    assert_int_equal(tdmi_jpeg_write(image, quality, tdmi_jpeg_write_kernels_at(0), out, NULL),
                     TDM_OK);
}

#endif

struct pair {
    tdmi_text ours, theirs;
};

static void is_the_same(const tdmi_image *image, int quality, struct pair *pair)
{
    const struct tdmi_jpeg_write_kernels *kernels;
    encode_by_library(image, quality, &pair->theirs);
    for (int i = 0; (kernels = tdmi_jpeg_write_kernels_at(i)) != NULL; i++) {
        tdmi_text_clear(&pair->ours);
        assert_int_equal(tdmi_jpeg_write(image, quality, kernels, &pair->ours, NULL), TDM_OK);
        const size_t n = pair->theirs.length_bytes;
        size_t at = 0;
        while (at < n && at < pair->ours.length_bytes &&
               pair->ours.bytes[at] == pair->theirs.bytes[at])
            at++;
        if (at < n || pair->ours.length_bytes != n)
            fail_msg("%s: %d x %d at quality %d: %zu bytes instead of %zu, byte %zu differs",
                     kernels->name, image->width, image->height, quality, pair->ours.length_bytes,
                     n, at);
    }
}

static void release(struct pair *pair, tdmi_image *image)
{
    tdmi_text_release(&pair->ours);
    tdmi_text_release(&pair->theirs);
    tdmi_image_release(image);
}

static void every_size_is_the_same(void **state)
{
    (void)state;
    struct pair pair = {0};
    tdmi_image image = {0};
    for (int width = 1; width <= 70; width++)
        for (int height = 1; height <= 70; height += width % 7 == 1 ? 1 : 7) {
            draw(&image, width, height, (width + height) % KINDS);
            is_the_same(&image, 95 + (width + height) % 6, &pair);
            is_the_same(&image, 50 + (width + height) % 45, &pair);
        }
    release(&pair, &image);
}

static void every_quality_is_the_same(void **state)
{
    (void)state;
    struct pair pair = {0};
    tdmi_image image = {0};
    for (int kind = 0; kind < KINDS; kind++) {
        draw(&image, 61, 43, kind);
        for (int quality = 1; quality <= 100; quality++)
            is_the_same(&image, quality, &pair);
    }
    release(&pair, &image);
}

static void wide_and_large_pictures_are_the_same(void **state)
{
    (void)state;
    static const int sizes[][2] = {{299, 299}, {300, 200}, {1001, 9}, {9, 1001}, {65500, 1}};
    struct pair pair = {0};
    tdmi_image image = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        draw(&image, sizes[i][0], sizes[i][1], i % 2 == 0 ? SMOOTH : NOISE);
        is_the_same(&image, 95, &pair);
        is_the_same(&image, 75, &pair);
    }
    release(&pair, &image);
}

/* Each of the 2^24 would take too long; neighbours differ in little that matters. */
static void every_colour_is_the_same(void **state)
{
    (void)state;
    enum { SIDE = 256 };
    struct pair pair = {0};
    tdmi_image image = {0};
    assert_int_equal(tdmi_image_reshape(&image, SIDE, SIDE, NULL), TDM_OK);
    for (int blue = 0; blue < 256; blue += 51) {
        for (int i = 0; i < SIDE * SIDE; i++) {
            image.pixels[3 * i] = (uint8_t)(i % SIDE);
            image.pixels[3 * i + 1] = (uint8_t)(i / SIDE);
            image.pixels[3 * i + 2] = (uint8_t)blue;
        }
        is_the_same(&image, 100, &pair);
    }
    release(&pair, &image);
}

/* The kernels read and write whole groups: nothing may be read behind the picture's memory, which
 * ends where the picture does. */
static void pixels_behind_the_picture_are_not_read(void **state)
{
    (void)state;
    const struct tdmi_jpeg_write_kernels *kernels;
    int16_t rows[3][96];
    for (int i = 0; (kernels = tdmi_jpeg_write_kernels_at(i)) != NULL; i++)
        for (size_t n = 1; n <= 70; n++) {
            uint8_t *pixels = tdmi_alloc(3 * n, 1);
            kernels->colour(pixels, n, rows[0], rows[1], rows[2]);
            for (size_t x = 0; x < n; x++) {
                assert_int_equal(rows[0][x], -128);
                assert_int_equal(rows[1][x], 0);
                assert_int_equal(rows[2][x], 0);
            }
            tdmi_free(pixels);
        }
}

static void stuffing_is_the_same_wherever_bytes_of_ones_are(void **state)
{
    (void)state;
    enum { MOST = 100 };
    uint8_t bytes[MOST + TDMI_JPEG_WRITE_SLACK], out[2][2 * MOST + TDMI_JPEG_WRITE_SLACK];
    const struct tdmi_jpeg_write_kernels *kernels;
    uint32_t random = 5;
    for (int round = 0; round < 2000; round++) {
        const size_t n = next_random(&random) % (MOST + 1);
        const uint32_t odds = 1 + next_random(&random) % 40;
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = next_random(&random) % odds == 0 ? 0xff : (uint8_t)i;
        const size_t length = tdmi_jpeg_write_kernels_at(0)->stuff(bytes, n, out[0]);
        for (int i = 1; (kernels = tdmi_jpeg_write_kernels_at(i)) != NULL; i++) {
            assert_int_equal(kernels->stuff(bytes, n, out[1]), length);
            assert_memory_equal(out[0], out[1], length);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_the_same),
        cmocka_unit_test(every_quality_is_the_same),
        cmocka_unit_test(wide_and_large_pictures_are_the_same),
        cmocka_unit_test(every_colour_is_the_same),
        cmocka_unit_test(pixels_behind_the_picture_are_not_read),
        cmocka_unit_test(stuffing_is_the_same_wherever_bytes_of_ones_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
