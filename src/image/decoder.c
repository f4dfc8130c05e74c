/* Selects the JPEG files that a GPU decoder can take, and describes the resize of each to it. */
#include "image/decoder.h"
#include "base/clock.h"
#include "base/scope.h"
#include "image/formats/codec.h"
#include "image/jpeg/layout.h"
#include "image/jpeg/plain.h"

#include <string.h>

void tdmi_decoder_room_release(struct tdmi_decoder_room *room)
{
    tdmi_free(room->memory);
    *room = (struct tdmi_decoder_room){0};
}

/* ---- files ----------------------------------------------------------------------------------- */

bool tdmi_decoder_describe(const void *bytes, size_t length_bytes, struct tdmi_image_limits limits,
                           struct tdmi_decoder_file *file)
{
    struct tdmi_jpeg_layout layout;
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG) ||
        !tdmi_jpeg_lay_out(bytes, length_bytes, &layout) ||
        (limits.max_bytes > 0 && length_bytes > (uint64_t)limits.max_bytes))
        return false;
    const int64_t most = limits.max_pixels > 0 && limits.max_pixels < TDMI_DECODER_MOST_PIXELS
                             ? limits.max_pixels
                             : TDMI_DECODER_MOST_PIXELS;
    *file = (struct tdmi_decoder_file){.bytes = bytes,
                                       .length_bytes = length_bytes,
                                       .width = layout.width,
                                       .height = layout.height,
                                       .n_components = layout.n_components,
                                       .across = layout.components[0].across,
                                       .down = layout.components[0].down,
                                       .orientation = tdmi_exif_orientation(bytes, length_bytes)};
    return (int64_t)layout.width * layout.height <= most;
}

tdm_status tdmi_decoder_check(const struct tdmi_decoder_file *file, struct tdmi_image_limits limits,
                              tdmi_image *room, bool *is_sound, tdm_error *err)
{
    const int64_t minute_ns = (int64_t)60 * 1000000000;
    const struct tdmi_codec_source source = {
        .bytes = file->bytes,
        .length_bytes = file->length_bytes,
        .max_pixels = TDMI_DECODER_MOST_PIXELS,
        .deadline_ns = tdmi_clock_ns() +
                       (limits.max_ns > 0 && limits.max_ns < minute_ns ? limits.max_ns : minute_ns),
        .orientation = 1,
    };
    return tdmi_jpeg_plain_check(&source, room, is_sound, err);
}

/* ---- writing into the input ------------------------------------------------------------------ */

static struct tdmi_decoder_pass fill_pass(const struct tdmi_axis *axis, enum tdmi_filter filter,
                                          struct tdmi_resize_weights *weights)
{
    tdmi_weights_fill(axis, filter, TDMI_GROUPS_ANYWHERE, weights);
    return (struct tdmi_decoder_pass){.is_wanted = true,
                                      .n_outputs = weights->n_outputs,
                                      .n_taps = weights->n_groups * TDMI_RESIZE_GROUP,
                                      .n_inputs = axis->n_inputs,
                                      .inputs = tdmi_weights_inputs(axis, weights),
                                      .spans = weights->spans,
                                      .taps = weights->taps};
}

static size_t carve_all(uint8_t *base, const struct tdmi_resize_passes *passes,
                        enum tdmi_filter filter, struct tdmi_resize_weights *across,
                        struct tdmi_resize_weights *down)
{
    size_t used = 0;
    if (passes->has_across)
        tdmi_weights_carve(base, &used, &passes->across, filter, across);
    if (passes->has_down)
        tdmi_weights_carve(base, &used, &passes->down, filter, down);
    return used;
}

static tdm_status make_room(struct tdmi_decoder_room *room, size_t bytes, tdm_error *err)
{
    if (bytes <= room->capacity_bytes)
        return TDM_OK;
    tdmi_decoder_room_release(room);
    room->memory = tdmi_alloc_aligned(bytes);
    if (!room->memory)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the %zu bytes of an image's weights",
                        bytes);
    room->capacity_bytes = bytes;
    return TDM_OK;
}

tdm_status tdmi_decoder_plan(struct tdmi_decoder_file *file, const struct tdmi_resize *how,
                             struct tdmi_decoder_room *room, bool *is_planned, tdm_error *err)
{
    struct tdmi_resize_passes passes;
    struct tdmi_resize_weights across = {0}, down = {0};
    *is_planned = false;
    if (how->reduce_x > 1 || how->reduce_y > 1 ||
        tdmi_resize_passes_of(tdmi_decoder_width(file), tdmi_decoder_height(file), how, &passes,
                              NULL) != TDM_OK)
        return TDM_OK;
    const size_t bytes = carve_all(NULL, &passes, how->filter, &across, &down);
    if (bytes > TDMI_DECODER_MOST_WEIGHT_BYTES)
        return TDM_OK;
    TDMI_TRY(make_room(room, bytes, err));
    (void)carve_all(room->memory, &passes, how->filter, &across, &down);
    file->across_pass = file->down_pass = (struct tdmi_decoder_pass){0};
    if (passes.has_across)
        file->across_pass = fill_pass(&passes.across, how->filter, &across);
    if (passes.has_down)
        file->down_pass = fill_pass(&passes.down, how->filter, &down);
    file->is_down_first = passes.is_transposed;
    file->part_x = how->part_x;
    file->part_y = how->part_y;
    file->part_width = how->part_width;
    file->part_height = how->part_height;
    *is_planned = true;
    return TDM_OK;
}
