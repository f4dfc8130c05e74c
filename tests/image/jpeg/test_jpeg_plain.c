/*
 * Our own JPEG decoder against libjpeg-turbo: files made here of all sizes, samplings and
 * qualities must give the same bytes; damaged ones must be left alone or give the same bytes.
 */
#include "image/pictures.h"
#include "image/formats/codec.h"
#include "image/jpeg/kernels.h"
#include "image/jpeg/plain.h"
#include "tandem_features.h"
#include "unit.h"

#if TDM_HAVE_JPEG

#include <jpeglib.h>

struct form {
    int across, down; /* sampling of the first component; 0: grey */
    int quality;
    bool is_optimised;
    int restart_rows, restart_blocks;
    int kind; /* of picture */
};

struct made {
    unsigned char *bytes; /* of libjpeg, which takes it from malloc */
    unsigned long length;
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

enum { SMOOTH, NOISE, EDGES, FLAT, KINDS };

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
                                           [FLAT] = 40 + 70 * c};
                image->pixels[3 * (y * width + x) + c] = (uint8_t)values[kind];
            }
}

static struct made make(const tdmi_image *image, const struct form *form)
{
    struct made made = {0};
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct encoder;
    memset(&encoder, 0, sizeof encoder);
    encoder.err = jpeg_std_error(&errors);
    jpeg_create_compress(&encoder);
    jpeg_mem_dest(&encoder, &made.bytes, &made.length);
    encoder.image_width = (JDIMENSION)image->width;
    encoder.image_height = (JDIMENSION)image->height;
    encoder.input_components = 3;
    encoder.in_color_space = JCS_RGB;
    jpeg_set_defaults(&encoder);
    if (form->across == 0)
        jpeg_set_colorspace(&encoder, JCS_GRAYSCALE);
    jpeg_set_quality(&encoder, form->quality, TRUE);
    encoder.comp_info[0].h_samp_factor = form->across > 0 ? form->across : 1;
    encoder.comp_info[0].v_samp_factor = form->across > 0 ? form->down : 1;
    encoder.optimize_coding = form->is_optimised;
    encoder.restart_in_rows = form->restart_rows;
    encoder.restart_interval = (unsigned)form->restart_blocks;
    jpeg_start_compress(&encoder, TRUE);
    while (encoder.next_scanline < encoder.image_height) {
        JSAMPROW row = image->pixels + 3 * (size_t)image->width * encoder.next_scanline;
        (void)jpeg_write_scanlines(&encoder, &row, 1);
    }
    jpeg_finish_compress(&encoder);
    jpeg_destroy_compress(&encoder);
    return made;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static struct tdmi_codec_source source_of(const void *bytes, size_t length)
{
    return (struct tdmi_codec_source){.bytes = bytes,
                                      .length_bytes = length,
                                      .max_pixels = TDMI_IMAGE_MOST_PIXELS,
                                      .deadline_ns = INT64_MAX,
                                      .max_ns = INT64_MAX,
                                      .orientation = 1,
                                      .is_strict = true,
                                      .by_library = true};
}

struct pair {
    tdmi_image ours, theirs;
};

static void release(struct pair *pair)
{
    tdmi_image_release(&pair->ours);
    tdmi_image_release(&pair->theirs);
}

/* Did our decoder take it? It must then give the pixels of libjpeg-turbo. */
static bool compare(const void *bytes, size_t length, struct pair *pair)
{
    const struct tdmi_codec_source source = source_of(bytes, length);
    bool is_done = false;
    tdm_error err = {0};
    assert_int_equal(tdmi_jpeg_plain_decode(&source, &pair->ours, &is_done, &err), TDM_OK);
    if (!is_done)
        return false;
    if (tdmi_codec_of(TDMI_IMAGE_JPEG)->decode(&source, &pair->theirs, &err) != TDM_OK)
        fail_msg("we took a file of which libjpeg-turbo reports: %s", tdm_error_sentence(&err, 0));
    assert_int_equal(pair->ours.width, pair->theirs.width);
    assert_int_equal(pair->ours.height, pair->theirs.height);
    const int n = 3 * pair->ours.width * pair->ours.height;
    for (int at = 0; at < n; at++)
        if (pair->ours.pixels[at] != pair->theirs.pixels[at])
            fail_msg("%d x %d pixels differ at (%d, %d): %d, not %d", pair->ours.width,
                     pair->ours.height, at / 3 % pair->ours.width, at / 3 / pair->ours.width,
                     pair->ours.pixels[at], pair->theirs.pixels[at]);
    return true;
}

static void is_the_same(const tdmi_image *image, const struct form *form, struct pair *pair)
{
    struct made made = make(image, form);
    if (compare(made.bytes, made.length, pair) != (tdmi_jpeg_kernels_best() != NULL))
        fail_msg("%d x %d, %d x %d, quality %d was left to libjpeg-turbo", image->width,
                 image->height, form->across, form->down, form->quality);
    free(made.bytes);
}

static const struct form samplings[] = {
    {.across = 1, .down = 1}, {.across = 0}, {.across = 2, .down = 1}, {.across = 2, .down = 2}};
enum { N_SAMPLINGS = sizeof samplings / sizeof *samplings };

/* ---- sound files ----------------------------------------------------------------------------- */

TEST(every_size_is_the_same)
{
    TDMI_AT_END(release) struct pair pair = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (int s = 0; s < N_SAMPLINGS; s++)
        for (int width = 1; width <= 70; width++)
            for (int height = 1; height <= 70; height += width % 7 == 1 ? 1 : 7) {
                struct form form = samplings[s];
                form.quality = 50 + (width + height) % 50;
                draw(&image, width, height, (width + height / 7) % KINDS);
                is_the_same(&image, &form, &pair);
            }
}

TEST(every_quality_is_the_same)
{
    TDMI_AT_END(release) struct pair pair = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (int s = 0; s < N_SAMPLINGS; s++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int quality = 1; quality <= 100; quality++) {
                struct form form = samplings[s];
                form.quality = quality;
                form.is_optimised = quality % 2 == 0;
                draw(&image, 61, 43, kind);
                struct made made = make(&image, &form);
                /* Black and white noise at the lowest qualities leaves what sums can hold. */
                const bool is_taken = compare(made.bytes, made.length, &pair);
                if (kind == SMOOTH || kind == FLAT || quality > 30)
                    assert_int_equal(is_taken, tdmi_jpeg_kernels_best() != NULL);
                free(made.bytes);
            }
}

TEST(restarts_are_the_same_wherever_they_are)
{
    TDMI_AT_END(release) struct pair pair = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    for (int s = 0; s < N_SAMPLINGS; s++)
        for (int width = 5; width < 140; width += 27) {
            draw(&image, width, 75, SMOOTH);
            struct form form = samplings[s];
            form.quality = 95;
            for (form.restart_blocks = 1; form.restart_blocks < 25; form.restart_blocks++)
                is_the_same(&image, &form, &pair);
            form.restart_blocks = 0;
            for (form.restart_rows = 1; form.restart_rows < 12; form.restart_rows++)
                is_the_same(&image, &form, &pair);
        }
}

/* ---- damage ---------------------------------------------------------------------------------- */

TEST(what_is_cut_is_left_alone)
{
    TDMI_AT_END(release) struct pair pair = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    draw(&image, 45, 37, SMOOTH);
    for (int s = 0; s < N_SAMPLINGS; s++) {
        struct form form = samplings[s];
        form.quality = 80;
        form.restart_rows = s % 2;
        struct made made = make(&image, &form);
        for (size_t length = 0; length < made.length; length++) {
            /* Where its memory ends, so that reading beyond is found. */
            uint8_t *part = tdmi_alloc(length, 1);
            memcpy(part, made.bytes, length);
            assert_false(compare(part, length, &pair));
            tdmi_free(part);
        }
        free(made.bytes);
    }
}

TEST(what_is_damaged_is_left_alone_or_the_same)
{
    TDMI_AT_END(release) struct pair pair = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    uint32_t random = 7;
    int n_taken = 0, n_left = 0;
    draw(&image, 45, 37, SMOOTH);
    for (int way = 0; way < 2 * N_SAMPLINGS; way++) { /* the second time in two rows at once */
        const int s = way % N_SAMPLINGS;
        struct form form = samplings[s];
        form.quality = 80;
        form.restart_rows = way / N_SAMPLINGS;
        form.restart_blocks = way < N_SAMPLINGS ? 4 * (s % 2) : 0; /* the last one is shorter */
        struct made made = make(&image, &form);
        for (size_t at = 0; at < made.length; at++) {
            const uint8_t was = made.bytes[at];
            made.bytes[at] ^= (uint8_t)(1 + next_random(&random) % 255);
            if (compare(made.bytes, made.length, &pair))
                n_taken++;
            else
                n_left++;
            made.bytes[at] = was;
        }
        free(made.bytes);
    }
    assert_true(n_taken > 100 && n_left > 1000);
}

/* Where a marker stands for the last time. */
static size_t find_marker(const struct made *made, uint8_t marker)
{
    size_t at = made->length - 2;
    while (made->bytes[at] != 0xff || made->bytes[at + 1] != marker)
        at--;
    return at;
}

/* The rows in which two pictures of one size differ: *first to *last; -1 for none. */
static void find_difference(const tdmi_image *a, const tdmi_image *b, int *first, int *last)
{
    const size_t row_bytes = 3 * (size_t)a->width;
    *first = *last = -1;
    for (int y = 0; y < a->height; y++)
        if (memcmp(a->pixels + row_bytes * (size_t)y, b->pixels + row_bytes * (size_t)y,
                   row_bytes) != 0) {
            *first = *first < 0 ? y : *first;
            *last = y;
        }
}

/* One file without n bytes before `at`. Returns whether it is read; when it is, less than two rows
 * of MCUs differ from the whole picture. */
static bool check_cut(const struct made *made, size_t at, size_t n, int mcu_height,
                      const tdmi_image *whole, struct pair *pair, bool *is_damaged)
{
    const struct tdmi_codec *codec = tdmi_codec_of(TDMI_IMAGE_JPEG);
    const size_t length = made->length - n;
    uint8_t *part = tdmi_alloc(length, 1);
    struct tdmi_codec_source source = source_of(part, length);
    tdm_error err = {0};
    int first, last;
    memcpy(part, made->bytes, at - n);
    memcpy(part + at - n, made->bytes + at, made->length - at);
    const bool is_sound = codec->decode(&source, &pair->theirs, &err) == TDM_OK;
    source.is_strict = false;
    tdm_error problem = {0};
    const tdm_status status = codec->decode(&source, &pair->theirs, &problem);
    source.by_library = false;
    assert_int_equal(codec->decode(&source, &pair->ours, NULL), status);
    tdmi_free(part);
    *is_damaged = status == TDM_OK && !is_sound;
    if (status != TDM_OK) {
        assert_false(is_sound);
        return false;
    }
    if (*is_damaged)
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "it is damaged at row"));
    find_difference(&pair->ours, &pair->theirs, &first, &last);
    assert_int_equal(first, -1);
    find_difference(whole, &pair->ours, &first, &last);
    assert_true(last - first < mcu_height + 2); /* colours reach a row further */
    return true;
}

/* A segment may end early in its last row of MCUs or in its only one; both decoders then give the
 * same pixels. Where a whole row is missing the file is refused. */
TEST(a_segment_that_ends_early_is_the_same_or_refused)
{
    TDMI_AT_END(release) struct pair pair = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0}, whole = {0};
    int n_refused = 0;
    draw(&image, 45, 150, SMOOTH);
    for (int way = 0; way < 3 * N_SAMPLINGS; way++) {
        struct form form = samplings[way % N_SAMPLINGS];
        const int mcu_height = form.across == 2 && form.down == 2 ? 16 : 8;
        form.quality = 90;
        form.restart_rows = way / N_SAMPLINGS * (way / N_SAMPLINGS); /* none, 1, 4 */
        struct made made = make(&image, &form);
        const struct tdmi_codec_source source = source_of(made.bytes, made.length);
        assert_int_equal(tdmi_jpeg_decode(&source, &whole, NULL), TDM_OK);
        /* The last segment, or one before others. */
        const size_t at = find_marker(&made, form.restart_rows == 0 ? 0xd9 : 0xd1);
        int n_damaged = 0;
        for (size_t n = 1; n < 700 && made.bytes[at - n] != 0xff && made.bytes[at - n - 1] != 0xff;
             n++) {
            bool is_damaged;
            n_refused += !check_cut(&made, at, n, mcu_height, &whole, &pair, &is_damaged);
            n_damaged += is_damaged;
        }
        assert_true(n_damaged > 0);
        free(made.bytes);
    }
    assert_true(n_refused > 0);
}

/* Both decode to sound pictures by a lenient reader; libjpeg refuses them. */
TEST(what_libjpeg_refuses_is_left_alone)
{
    static const uint8_t
        head[] = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0},
        tail[] = {0xff, 0xc0, 0, 11, 8,    0,    8, 0, 8, 1, 1, 0x11, 0,        /* 8 x 8 */
                  0xff, 0xc4, 0, 21, 0,    2,    0, 0, 0, 0, 0, 0,    0,  0, 0, /* 0, 1: */
                  0,    0,    0, 0,  0,    0,    1, /* … one is all ones */
                  0xff, 0xc4, 0, 20, 0x10, 1,    0, 0, 0, 0, 0, 0,    0,  0, 0,    0,    0,
                  0,    0,    0, 0,  0xff, 0xda, 0, 8, 1, 1, 0, 0,    63, 0, 0x3f, 0xff, 0xd9};
    uint8_t file[sizeof head + 64 + sizeof tail];
    TDMI_AT_END(release) struct pair pair = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    memcpy(file, head, sizeof head);
    memset(file + sizeof head, 1, 64);
    memcpy(file + sizeof head + 64, tail, sizeof tail);
    assert_false(compare(file, sizeof file, &pair));

    draw(&image, 65500, 1, SMOOTH);
    struct form form = {.across = 0, .quality = 80};
    struct made made = make(&image, &form);
    size_t at = 0;
    while (made.bytes[at] != 0xff || made.bytes[at + 1] != 0xc0)
        at++;
    assert_true(compare(made.bytes, made.length, &pair));
    made.bytes[at + 8]++; /* 65501: as many blocks, one pixel too wide */
    assert_false(compare(made.bytes, made.length, &pair));
    free(made.bytes);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct taker {
    uint8_t *pixels;
    int width, height, n_begun, n_rows;
};

static tdm_status take_size(void *self, int width, int height, bool *is_wanted, tdm_error *err)
{
    (void)err;
    struct taker *taker = self;
    taker->width = width;
    taker->height = height;
    taker->n_rows = 0;
    taker->n_begun++;
    *is_wanted = true;
    return TDM_OK;
}

static void take_rows(void *self, const uint8_t *rows, size_t stride_bytes, const uint8_t *end,
                      int first, int n)
{
    struct taker *taker = self;
    assert_int_equal(first, taker->n_rows);
    assert_int_equal(first % 4, 0);
    assert_true(n % 4 == 0 || first + n == taker->height);
    assert_true(rows + stride_bytes * (size_t)n <= end);
    for (int y = 0; y < n; y++)
        memcpy(taker->pixels + 3 * (size_t)taker->width * (size_t)(first + y),
               rows + stride_bytes * (size_t)y, 3 * (size_t)taker->width);
    taker->n_rows += n;
}

/* A file that proves unusual in its middle begins again, by the library. */
TEST(rows_are_the_same_as_the_picture)
{
    const struct tdmi_codec *codec = tdmi_codec_of(TDMI_IMAGE_JPEG);
    TDMI_AT_END(release) struct pair pair = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    struct taker taker = {.pixels = tdmi_alloc(3 * 70, 101)};
    const struct tdmi_row_sink sink = {.self = &taker, .begin = take_size, .feed = take_rows};
    for (int s = 0; s < N_SAMPLINGS; s++)
        for (int height = 1; height <= 101; height += 9)
            for (int is_odd = 0; is_odd < 2; is_odd++) {
                struct form form = samplings[s];
                form.quality = 80;
                draw(&image, 70, height, SMOOTH);
                struct made made = make(&image, &form);
                /* A byte too many before the end mark, of which libjpeg only warns. */
                tdmi_text file = {0};
                tdmi_text_add(&file, made.bytes, made.length - 2);
                tdmi_text_add(&file, "\x55\xff\xd9", is_odd ? 3 : 0);
                tdmi_text_add(&file, "\xff\xd9", is_odd ? 0 : 2);
                struct tdmi_codec_source source = source_of(file.bytes, file.length_bytes);
                assert_int_equal(codec->decode(&source, &pair.theirs, NULL), TDM_OK);
                source.sink = &sink;
                source.by_library = false;
                taker.n_begun = 0;
                assert_int_equal(codec->decode(&source, &pair.ours, NULL), TDM_OK);
                assert_int_equal(taker.n_begun, is_odd && tdmi_jpeg_kernels_best() != NULL ? 2 : 1);
                assert_int_equal(taker.n_rows, height);
                assert_memory_equal(taker.pixels, pair.theirs.pixels, 3 * 70 * (size_t)height);
                tdmi_text_release(&file);
                free(made.bytes);
            }
    tdmi_free(taker.pixels);
}

TEST_MAIN(NULL, NULL)

#else

TEST(jpeg_is_not_in_this_build)
{
    skip();
}

TEST_MAIN(NULL, NULL)

#endif
