/*
 * image.cu: bytes of the host's decoder, of planes full of anything, in every sampling, all small
 * sizes and some large ones, in every orientation; beside the kernels of the host's decoder and its
 * own orientation.
 */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/image/image.h"
#include "image/image.h"
#include "image/jpeg/kernels.h"

enum { off = 3, most_side = 400, narrowest = 3 };

struct sampling {
    int n_components, across, down;
};

static uint8_t *random_plane(int width, int height, int64_t stride, uint32_t seed)
{
    tdmi_rng rng = tdmi_rng_at(11, TDMI_RNG_TEST, seed, (uint64_t)(width * 1000 + height));
    uint8_t *plane = tdmi_alloc((size_t)(stride * height) + TDMI_JPEG_SLACK, 1);
    assert_non_null(plane);
    /* Bytes between rows differ from all samples, so that reading one shows. */
    memset(plane, 0xff, (size_t)(stride * height) + TDMI_JPEG_SLACK);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            plane[stride * y + x] =
                (uint8_t)(tdmi_rng_below(&rng, 3) ? tdmi_rng_below(&rng, 256) : 255 * (seed & 1));
    return plane;
}

/* A row of colour, as wide as the image. */
static void colour_row(const struct tdmi_cuda_planes *it, int c, int y, uint8_t *wide)
{
    static int16_t sums[most_side + 2 + TDMI_JPEG_SLACK];
    const uint8_t *row = it->samples[c] + it->stride_bytes[c] * (y / it->down);
    const int width = (it->width + it->across - 1) / it->across;
    const int height = (it->height + it->down - 1) / it->down;
    if (it->across == 1) {
        memcpy(wide, row, (size_t)width);
    } else if (width < narrowest) {
        for (int x = 0; x < it->width; x++)
            wide[x] = row[x / 2];
    } else if (it->down == 1) {
        tdmi_jpeg_avx2.widen(row, (size_t)width, sums, wide);
    } else {
        int other = y / 2 + (y % 2 ? 1 : -1);
        other = other < 0 ? 0 : other < height ? other : height - 1;
        tdmi_jpeg_avx2.widen_between(row, it->samples[c] + it->stride_bytes[c] * other,
                                     (size_t)width, sums, wide);
    }
}

static void expected(const struct tdmi_cuda_planes *it, tdmi_image *image)
{
    static uint8_t wide[2][2 * most_side + TDMI_JPEG_SLACK], row[3 * most_side + TDMI_JPEG_SLACK];
    assert_int_equal(tdmi_image_reshape(image, it->width, it->height, NULL), TDM_OK);
    for (int y = 0; y < it->height; y++) {
        const uint8_t *luma = it->samples[0] + it->stride_bytes[0] * y;
        if (it->n_components == 1) {
            tdmi_jpeg_avx2.grey(luma, (size_t)it->width, row);
        } else {
            colour_row(it, 1, y, wide[0]);
            colour_row(it, 2, y, wide[1]);
            tdmi_jpeg_avx2.colour(luma, wide[0], wide[1], (size_t)it->width, row);
        }
        memcpy(image->pixels + 3 * (size_t)it->width * (size_t)y, row, 3 * (size_t)it->width);
    }
    assert_int_equal(tdmi_image_orient(image, it->orientation, NULL), TDM_OK);
}

static void run(struct sampling sampling, int width, int height, int orientation)
{
    struct tdmi_cuda_planes it = {.width = width,
                                  .height = height,
                                  .n_components = sampling.n_components,
                                  .across = sampling.across,
                                  .down = sampling.down,
                                  .orientation = orientation};
    const size_t n = 3 * (size_t)width * (size_t)height;
    uint8_t *planes[3] = {NULL}, *pixels = tdmi_alloc(n + 1, 1);
    tdmi_image image = {0};
    assert_non_null(pixels);
    for (int c = 0; c < it.n_components; c++) {
        const int w = c ? (width + it.across - 1) / it.across : width;
        const int h = c ? (height + it.down - 1) / it.down : height;
        it.stride_bytes[c] = w + off + c;
        it.samples[c] = planes[c] = random_plane(w, h, it.stride_bytes[c], (uint32_t)c);
    }
    expected(&it, &image);
    pixels[n] = 0x5a;
    assert_int_equal(tdmi_cuda_planes_mix(NULL, &it, pixels), 0);
    assert_int_equal(pixels[n], 0x5a);
    for (size_t i = 0; i < n; i++)
        if (pixels[i] != image.pixels[i])
            fail_msg("%d x %d, %d components, %d x %d, orientation %d: byte %zu is %d, not %d",
                     width, height, it.n_components, it.across, it.down, orientation, i, pixels[i],
                     image.pixels[i]);
    tdmi_image_release(&image);
    tdmi_free(pixels);
    for (int c = 0; c < it.n_components; c++)
        tdmi_free(planes[c]);
}

void case_planes(void **state)
{
    static const struct sampling samplings[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 2, 2}};
    (void)state;
    if (!tdmi_jpeg_kernels_best())
        skip(); /* the host's decoder needs AVX2 */
    for (size_t s = 0; s < sizeof samplings / sizeof *samplings; s++) {
        for (int width = 1; width <= 9; width++)
            for (int height = 1; height <= 9; height++)
                for (int orientation = 1; orientation <= 8; orientation++)
                    run(samplings[s], width, height, orientation);
        run(samplings[s], most_side, 33, 1);
        run(samplings[s], 33, 301, 6);
    }
}
