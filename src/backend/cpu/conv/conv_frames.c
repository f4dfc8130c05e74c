/* Frames are filled row by row, and a team divides the rows of all frames of a stretch. */
#include "backend/cpu/conv/conv_frames.h"

#include <string.h>

/* ---- frames ------------------------------------------------------------------------------------
 */

/* A picture, or dy as one, where a frame of it begins, which may be outside, and the frame's rows.
 */
struct picture {
    int h, w, c;
    int row, column;
    int rows;
};

static bool is_dense(const struct tdmi_gemm_copy *copy)
{
    return copy->from_row == copy->channels && copy->to_row == copy->channels;
}

/* A row of image number `image` as a row of a frame. */
static void fill_row(const struct tdmi_conv_work *work, const struct picture *picture,
                     int64_t image, int row, float *to)
{
    const struct tdmi_conv_source *source = &work->source;
    const struct tdmi_conv_frame *frame = &work->stretch.chunk.frame;
    /* First and one past the last pixel of the frame that are in the picture. */
    int begin = picture->column < 0 ? (-picture->column + frame->take - 1) / frame->take : 0;
    int end = (picture->w - picture->column + frame->take - 1) / frame->take;
    end = end > frame->w ? frame->w : end;
    if (row < 0 || row >= picture->h || begin >= end)
        begin = end = 0;
    memset(to, 0, sizeof(float) * (size_t)(begin * frame->pixel));
    memset(to + end * frame->pixel, 0, sizeof(float) * (size_t)((frame->w - end) * frame->pixel));
    if (begin == end)
        return;
    const int64_t at =
        ((image * picture->h + row) * picture->w + picture->column + (int64_t)begin * frame->take) *
        picture->c;
    struct tdmi_gemm_copy copy = {source->from + at, source->y ? source->y + at : NULL,
                                  end - begin,       (int64_t)frame->take * picture->c,
                                  picture->c,        to + begin * frame->pixel,
                                  frame->pixel};
    if (source->gradient)
        work->kernels->gradient(&copy, source->gradient);
    else if (is_dense(&copy) && tdmi_read_form_is_plain(source->read))
        memcpy(copy.to, copy.from, sizeof(float) * (size_t)(copy.n * copy.channels));
    else
        work->kernels->read(&copy, source->read);
}

/* ---- chunks ------------------------------------------------------------------------------------
 */

struct tdmi_conv_work tdmi_conv_work_of(const struct tdmi_conv_gemm *desc,
                                        const struct tdmi_member *member, int n,
                                        const struct tdmi_conv_stretch *stretch, void *workspace)
{
    return (struct tdmi_conv_work){.desc = desc,
                                   .kernels = tdmi_gemm_kernels_of(desc->isa),
                                   .member = member,
                                   .stretch = *stretch,
                                   .scratch =
                                       tdmi_conv_scratch_of(desc, stretch, member, workspace),
                                   .n = n,
                                   .rows = desc->out_h,
                                   .image_rows = desc->out_h,
                                   .width = desc->out_w,
                                   .step = 1};
}

static int chunks_of_image(const struct tdmi_conv_work *work)
{
    return (work->rows + work->stretch.chunk.rows - 1) / work->stretch.chunk.rows;
}

int64_t tdmi_conv_all_chunks(const struct tdmi_conv_work *work)
{
    const int images = work->stretch.chunk.images;
    return (int64_t)((work->n + images - 1) / images) * chunks_of_image(work);
}

struct tdmi_conv_place tdmi_conv_place_of(const struct tdmi_conv_work *work, int64_t chunk)
{
    const struct tdmi_conv_chunk *size = &work->stretch.chunk;
    const int of_image = chunks_of_image(work);
    struct tdmi_conv_place place = {.image = (int)(chunk / of_image) * size->images,
                                    .row = (int)(chunk % of_image) * size->rows};
    place.images = work->n - place.image < size->images ? work->n - place.image : size->images;
    place.rows = work->rows - place.row < size->rows ? work->rows - place.row : size->rows;
    return place;
}

static struct picture picture_of(const struct tdmi_conv_work *work,
                                 const struct tdmi_conv_place *place)
{
    const struct tdmi_conv_gemm *desc = work->desc;
    const int row = work->first_row + place->row;
    if (!work->is_input)
        return (struct picture){desc->in_h,
                                desc->in_w,
                                desc->in_c,
                                row * desc->stride - desc->pad_top,
                                -desc->pad_left,
                                (place->rows - 1) * work->stretch.chunk.frame.step +
                                    (desc->kernel_h - 1) * desc->dilation + 1};
    struct picture picture = {
        desc->out_h,
        desc->out_w,
        desc->out_c,
        tdmi_conv_first_output(row, desc->pad_top, desc->kernel_h, desc->dilation, desc->stride),
        tdmi_conv_first_output(0, desc->pad_left, desc->kernel_w, desc->dilation, desc->stride),
        0};
    picture.rows =
        tdmi_conv_last_output(row + place->rows - 1, desc->pad_top, desc->stride) - picture.row + 1;
    return picture;
}

/* Rows first to end - 1 of the frames of a place, counted over its images. */
static void fill_rows(const struct tdmi_conv_work *work, const struct tdmi_conv_place *place,
                      const struct picture *picture, struct tdmi_share part, float *frames)
{
    const struct tdmi_conv_frame *frame = &work->stretch.chunk.frame;
    for (int64_t i = part.first; i < part.end; i++) {
        const int64_t image = i / picture->rows, row = i % picture->rows;
        fill_row(work, picture, place->image + image, picture->row + (int)row * frame->take,
                 frames + image * tdmi_conv_frame_floats(frame) + row * frame->w * frame->pixel);
    }
}

/* The member's part of the frames of n chunks. */
void tdmi_conv_fill_frames(const struct tdmi_conv_work *work, int64_t begin, int64_t n)
{
    int64_t all = 0, at = 0;
    for (int64_t i = 0; i < n; i++) {
        const struct tdmi_conv_place place = tdmi_conv_place_of(work, begin + i);
        all += (int64_t)place.images * picture_of(work, &place).rows;
    }
    const struct tdmi_share mine = tdmi_member_share(work->member, all);
    struct tdmi_share part;
    for (int64_t i = 0; i < n; i++) {
        const struct tdmi_conv_place place = tdmi_conv_place_of(work, begin + i);
        const struct picture picture = picture_of(work, &place);
        const int64_t rows = (int64_t)place.images * picture.rows;
        if (tdmi_share_within(mine, at, rows, &part))
            fill_rows(work, &place, &picture, part, tdmi_conv_frames_of(work, i));
        at += rows;
    }
}

/* ---- windows -----------------------------------------------------------------------
 */

int tdmi_conv_window(const struct tdmi_conv_work *work, const float *frames)
{
    const struct tdmi_conv_gemm *desc = work->desc;
    const struct tdmi_conv_frame *frame = &work->stretch.chunk.frame;
    const bool has_long_rows = tdmi_conv_has_long_rows(desc);
    const int columns = has_long_rows ? 1 : desc->kernel_w;
    const int depth = desc->in_c * (has_long_rows ? desc->kernel_w : 1);
    int n = 0;
    for (int ky = 0; ky < desc->kernel_h; ky++)
        for (int kx = 0; kx < columns; kx++, n++)
            work->scratch.segments[n] = (struct tdmi_gemm_segment){
                frames + ((int64_t)ky * frame->w + kx) * desc->dilation * frame->pixel, n * depth,
                depth};
    return n;
}

int tdmi_conv_phase_window(const struct tdmi_conv_work *work, const struct tdmi_conv_place *place,
                           int row, int column, const float *frames)
{
    const struct tdmi_conv_gemm *desc = work->desc;
    const struct tdmi_conv_frame *frame = &work->stretch.chunk.frame;
    const struct picture picture = picture_of(work, place);
    int n = 0;
    for (int ky = 0; ky < desc->kernel_h; ky++)
        for (int kx = 0; kx < desc->kernel_w; kx++) {
            /* In the units of the input, from the frame's first pixel: never negative. */
            int down =
                place->row + row + desc->pad_top - ky * desc->dilation - picture.row * desc->stride;
            int right =
                column + desc->pad_left - kx * desc->dilation - picture.column * desc->stride;
            if (down % desc->stride || right % desc->stride)
                continue;
            work->scratch.segments[n++] = (struct tdmi_gemm_segment){
                frames + ((int64_t)(down / desc->stride) * frame->w + right / desc->stride) *
                             frame->pixel,
                (ky * desc->kernel_w + kx) * desc->out_c, desc->out_c};
        }
    return n;
}
