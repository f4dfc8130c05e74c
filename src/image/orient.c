/*
 * Applies EXIF orientations. Orientations 2 to 4 keep the size and swap pixels in place; 5 to 8
 * exchange width and height through a second half of the image's own memory, so that a loader
 * thread allocates nothing once that memory has grown.
 */
#include "base/scope.h"
#include "image/formats/codec.h"
#include "image/image.h"
#include <string.h>

static void swap_pixels(uint8_t *a, uint8_t *b)
{
    for (int c = 0; c < 3; c++) {
        uint8_t kept = a[c];
        a[c] = b[c];
        b[c] = kept;
    }
}

/* Reverse the order of n pixels. */
static void reverse(uint8_t *pixels, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        swap_pixels(pixels + 3 * i, pixels + 3 * (n - 1 - i));
}

static void mirror(tdmi_image *image)
{
    size_t width = (size_t)image->width;
    for (size_t y = 0; y < (size_t)image->height; y++)
        reverse(image->pixels + 3 * width * y, width);
}

/* Grow the memory to twice the image while keeping the image. */
static tdm_status make_room(tdmi_image *image, size_t picture_bytes, tdm_error *err)
{
    if (image->capacity_bytes / 2 >= picture_bytes)
        return TDM_OK;
    uint8_t *grown = tdmi_realloc(image->pixels, picture_bytes, 2);
    if (grown == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to rotate an image of %d x %d pixels",
                        image->width, image->height);
    image->pixels = grown;
    image->capacity_bytes = 2 * picture_bytes;
    return TDM_OK;
}

/* Rows become columns: pixel (x, y) of the result is pixel (y, x) of the source, counted from its
 * right edge when is_from_right, from its bottom when is_from_bottom. Works on tiles, so that
 * neither side walks through memory by columns for long. */
static tdm_status transpose(tdmi_image *image, bool is_from_right, bool is_from_bottom,
                            tdm_error *err)
{
    enum { TILE = 32 };
    const ptrdiff_t width = image->width, height = image->height;
    size_t picture_bytes = 3 * (size_t)width * (size_t)height;
    TDMI_TRY(make_room(image, picture_bytes, err));

    const uint8_t *first = image->pixels + 3 * ((is_from_right ? width - 1 : 0) +
                                                (is_from_bottom ? (height - 1) * width : 0));
    const ptrdiff_t step_x = 3 * (is_from_bottom ? -width : width); /* along a row of the result */
    const ptrdiff_t step_y = is_from_right ? -3 : 3;
    uint8_t *rotated = image->pixels + picture_bytes; /* (width, height, 3) */
    for (ptrdiff_t tile_y = 0; tile_y < width; tile_y += TILE)
        for (ptrdiff_t tile_x = 0; tile_x < height; tile_x += TILE)
            for (ptrdiff_t y = tile_y; y < width && y < tile_y + TILE; y++)
                for (ptrdiff_t x = tile_x; x < height && x < tile_x + TILE; x++)
                    memcpy(rotated + 3 * (y * height + x), first + x * step_x + y * step_y, 3);
    memcpy(image->pixels, rotated, picture_bytes);
    image->width = (int)height;
    image->height = (int)width;
    return TDM_OK;
}

tdm_status tdmi_image_orient(tdmi_image *image, int orientation, tdm_error *err)
{
    size_t width = (size_t)image->width, height = (size_t)image->height;
    switch (orientation) {
    case 1:
        return TDM_OK;
    case 2:
        mirror(image);
        return TDM_OK;
    case 3:
        reverse(image->pixels, width * height);
        return TDM_OK;
    case 4: /* upside down is rotated by half, then mirrored */
        reverse(image->pixels, width * height);
        mirror(image);
        return TDM_OK;
    case 5:
        return transpose(image, false, false, err);
    case 6:
        return transpose(image, false, true, err);
    case 7:
        return transpose(image, true, true, err);
    case 8:
        return transpose(image, true, false, err);
    default:
        return TDM_FAIL(err, TDM_E_USAGE, "the orientation is %d; it must be 1 to 8", orientation);
    }
}
