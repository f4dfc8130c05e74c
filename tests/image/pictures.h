/*
 * Helpers that the tests of the image room share: where their files are, the test pattern that
 * tests/fixtures/make_images.py draws too, and digests of pixels.
 */
#pragma once

#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "image/image.h"
#include "unit.h"

#define ENOUGH_BYTES ((size_t)64 << 20)

struct bytes {
    void *bytes; /* of tdmi_alloc */
    size_t length;
};

/* The checkout: from the test runner, or as it was when this was compiled. */
static inline void in_checkout(const char *path, char *buffer, size_t buffer_bytes)
{
    const char *root = getenv("SOURCE");
    int n = snprintf(buffer, buffer_bytes, "%s/%s", root ? root : CHECKOUT, path);
    assert_true(n > 0 && (size_t)n < buffer_bytes);
}

static inline struct bytes read_path(const char *path)
{
    struct bytes file = {0};
    tdm_error err = {0};
    if (tdmi_file_read(path, ENOUGH_BYTES, &file.bytes, &file.length, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    return file;
}

static inline struct bytes read_checkout(const char *path)
{
    char whole[1000];
    in_checkout(path, whole, sizeof whole);
    return read_path(whole);
}

static inline struct bytes read_corpus(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "fuzz/corpus/image/%s", name);
    return read_checkout(path);
}

/* The first 16 digits of the SHA-256, as the tables have them. */
static inline void digest_of(const void *bytes, size_t length, char digest[65])
{
    tdmi_sha256 state;
    uint8_t raw[32];
    tdmi_sha256_init(&state);
    tdmi_sha256_add(&state, bytes, length);
    tdmi_sha256_result(&state, raw);
    tdmi_sha256_hex(raw, digest);
    digest[16] = '\0';
}

static inline void digest_image(const tdmi_image *image, char digest[65])
{
    digest_of(image->pixels, 3 * (size_t)image->width * (size_t)image->height, digest);
}

/* pattern() of make_images.py. */
static inline void draw_pattern(tdmi_image *image, int width, int height)
{
    assert_int_equal(tdmi_image_reshape(image, width, height, NULL), TDM_OK);
    uint8_t *pixel = image->pixels;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                *pixel++ = (uint8_t)(x * (7 + c) + y * (13 - c) + ((x * x + 3 * y * y) >> (2 + c)) +
                                     64 * c + ((x ^ y) & 31));
}

static inline enum tdmi_filter filter_named(const char *name)
{
    if (strcmp(name, "lanczos") == 0)
        return TDMI_FILTER_LANCZOS;
    if (strcmp(name, "bicubic") == 0)
        return TDMI_FILTER_BICUBIC;
    assert_string_equal(name, "bilinear");
    return TDMI_FILTER_BILINEAR;
}

/* Cuts the next line off a table of read_checkout(), past comments and blanks; NULL at its end. */
static inline char *next_line(char **table)
{
    while (**table != '\0') {
        char *line = *table;
        size_t length = strcspn(line, "\n");
        *table = line + length + (line[length] == '\n');
        line[length] = '\0';
        if (length > 0 && line[0] != '#')
            return line;
    }
    return NULL;
}
