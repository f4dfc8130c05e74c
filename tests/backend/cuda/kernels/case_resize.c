/*
 * image.cu: the host's bytes, up and down, one pass and both in either order, of boxes and parts,
 * by every filter.
 */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/image/image.h"
#include "image/decoder.h"

static struct tdmi_cuda_resize pass_of(const struct tdmi_decoder_pass *pass)
{
    return (struct tdmi_cuda_resize){pass->n_outputs, pass->n_taps, pass->n_inputs, pass->spans,
                                     pass->taps};
}

static uint8_t *bytes_of(size_t n)
{
    uint8_t *bytes = tdmi_alloc(n, 1);
    assert_non_null(bytes);
    return bytes;
}

/* Resize an image by the GPU's passes. */
static uint8_t *resized(const tdmi_image *picture, const struct tdmi_resize *how)
{
    struct tdmi_decoder_file file = {
        .width = picture->width, .height = picture->height, .orientation = 1};
    struct tdmi_decoder_room room = {0};
    bool is_planned = false;
    assert_int_equal(tdmi_decoder_plan(&file, how, &room, &is_planned, NULL), TDM_OK);
    assert_true(is_planned);
    const struct tdmi_cuda_resize across = pass_of(&file.across_pass),
                                  down = pass_of(&file.down_pass);
    const bool has_across = file.across_pass.is_wanted, has_down = file.down_pass.is_wanted;
    const int width = picture->width, height = picture->height;
    const size_t out = 3 * (size_t)how->part_width * (size_t)how->part_height;
    uint8_t *to = bytes_of(out), *between = bytes_of(3 * (size_t)(width + how->part_width) *
                                                     (size_t)(height + how->part_height));
    if (!has_across && !has_down)
        assert_int_equal(
            tdmi_cuda_resize_part(NULL, picture->pixels + 3 * (width * how->part_y + how->part_x),
                                  3 * (int64_t)width, 3 * how->part_width, how->part_height, to),
            0);
    else if (!has_down)
        assert_int_equal(
            tdmi_cuda_resize_across(NULL, &across, picture->pixels, 0, width, height, to), 0);
    else if (!has_across)
        assert_int_equal(tdmi_cuda_resize_down(NULL, &down, picture->pixels, 0, 3 * (int64_t)width,
                                               3 * width, to),
                         0);
    else if (file.is_down_first) {
        assert_int_equal(tdmi_cuda_resize_down(NULL, &down, picture->pixels, 0, 3 * (int64_t)width,
                                               3 * width, between),
                         0);
        assert_int_equal(
            tdmi_cuda_resize_across(NULL, &across, between, 0, width, file.down_pass.n_outputs, to),
            0);
    } else {
        assert_int_equal(
            tdmi_cuda_resize_across(NULL, &across, picture->pixels, 0, width, height, between), 0);
        assert_int_equal(tdmi_cuda_resize_down(NULL, &down, between, 0,
                                               3 * (int64_t)how->part_width, 3 * how->part_width,
                                               to),
                         0);
    }
    tdmi_free(between);
    tdmi_decoder_room_release(&room);
    return to;
}

static void run(int width, int height, const struct tdmi_resize *how)
{
    tdmi_rng rng = tdmi_rng_at(12, TDMI_RNG_TEST, (uint32_t)width, (uint64_t)height);
    TDMI_AT_END(tdmi_image_release) tdmi_image picture = {0}, wanted = {0};
    assert_int_equal(tdmi_image_reshape(&picture, width, height, NULL), TDM_OK);
    for (int i = 0; i < 3 * width * height; i++) /* edges overshoot */
        picture.pixels[i] = (uint8_t)(tdmi_rng_below(&rng, 2) ? tdmi_rng_below(&rng, 256)
                                                              : 255u * (unsigned)(i / 7 % 2));
    assert_int_equal(tdmi_image_resize_part(&picture, how, &wanted, NULL), TDM_OK);
    uint8_t *got = resized(&picture, how);
    for (int i = 0; i < 3 * how->part_width * how->part_height; i++)
        if (got[i] != wanted.pixels[i])
            fail_msg("%d x %d to %d x %d, filter %d: byte %d is %d, not %d", width, height,
                     how->width, how->height, (int)how->filter, i, got[i], wanted.pixels[i]);
    tdmi_free(got);
}

/* Resize the whole image; compare all of it, or the middle without a margin. */
static void run_whole(int width, int height, int to_width, int to_height, int margin,
                      enum tdmi_filter filter)
{
    const struct tdmi_resize how = {.box = {0, 0, width, height},
                                    .width = to_width,
                                    .height = to_height,
                                    .filter = filter,
                                    .part_x = margin,
                                    .part_y = margin,
                                    .part_width = to_width - 2 * margin,
                                    .part_height = to_height - 2 * margin};
    run(width, height, &how);
}

void case_resize(void **state)
{
    static const int sizes[][4] = {{1, 1, 7, 5},      {3, 2, 40, 33},    {50, 41, 24, 24},
                                   {97, 203, 32, 17}, {203, 97, 17, 32}, {40, 40, 40, 17},
                                   {40, 40, 17, 40},  {31, 400, 33, 20}, {64, 64, 64, 64}};
    (void)state;
    for (int filter = TDMI_FILTER_LANCZOS; filter <= TDMI_FILTER_BILINEAR; filter++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int margin = 0; margin < 3; margin++) {
                const int *size = sizes[i];
                if (size[2] > 2 * margin && size[3] > 2 * margin)
                    run_whole(size[0], size[1], size[2], size[3], margin, (enum tdmi_filter)filter);
            }
    const struct tdmi_resize box = {.box = {3.25, 7.5, 40.5, 19.75},
                                    .width = 24,
                                    .height = 31,
                                    .part_width = 24,
                                    .part_height = 31};
    run(60, 50, &box);
}
