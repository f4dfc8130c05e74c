/*
 * Files of JPEG images become images in the network's size, for a thread of the host:
 *
 *     nvJPEG ▸ planes ▸ planes.cu ▸ RGB, upright ▸ resize.cu, two passes ▸ one copy to the host
 *
 * all on a stream and in memory of the thread's own, for as many files at once as its memory is
 * meant for; RGB and what lies between the passes belong to one file at a time.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/libraries.h"
#include "backend/cuda/vendor/nvjpeg.h"
#include "backend/cuda/kernels/image/planes.h"
#include "backend/cuda/kernels/image/resize.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum {
    GROUP_BYTES = 16 << 20, /* planes of files that are decoded at once, unless one has more */
    ALIGNMENT = 64,
    LINE = 16 /* rows and their bytes are rounded up to it */
};

/* A decoder; it serves any number of threads. */
struct decoder {
    struct tdmi_decoder base; /* first, so that its functions find it */
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_nvjpeg *nvjpeg;
};

struct buffer {
    void *memory;
    size_t bytes;
};

struct tdmi_decoder_thread {
    const struct decoder *decoder;
    tdmi_stream *stream;
    tdmi_nvjpeg_state *state;
    struct buffer planes, rgb, between, weights, made; /* on the GPU */
    struct buffer weights_here, made_here;             /* pinned */
};

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t rounded(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* The old content is lost, and no queued work may use it. */
static tdm_status grow(const struct decoder *decoder, struct buffer *buffer, size_t bytes,
                       bool is_pinned, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &decoder->backend->memory;
    if (bytes <= buffer->bytes)
        return TDM_OK;
    if (buffer->memory)
        (is_pinned ? memory->free_pinned : memory->free)(decoder->device, buffer->memory);
    *buffer = (struct buffer){0};
    bytes += bytes / 4; /* files differ in size: not anew for each that is a little larger */
    buffer->memory = (is_pinned ? memory->alloc_pinned : memory->alloc)(decoder->device, bytes);
    if (!buffer->memory)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "decoding images on the GPU: no room for %zu bytes of %s memory; use a "
                        "smaller batch, fewer --threads or --decode cpu",
                        bytes, is_pinned ? "pinned" : "its");
    buffer->bytes = bytes;
    return TDM_OK;
}

static void drop(const struct decoder *decoder, struct buffer *buffer, bool is_pinned)
{
    const struct tdmi_memory_table *memory = &decoder->backend->memory;
    if (buffer->memory)
        (is_pinned ? memory->free_pinned : memory->free)(decoder->device, buffer->memory);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void close_thread(tdmi_decoder_thread *thread)
{
    if (!thread)
        return;
    const struct decoder *decoder = thread->decoder;
    tdmi_cuda_make_current(decoder->device);
    if (thread->stream)
        decoder->backend->stream.close(thread->stream);
    tdmi_nvjpeg_state_close(thread->state);
    struct buffer *const on_gpu[] = {&thread->planes, &thread->rgb, &thread->between,
                                     &thread->weights, &thread->made};
    for (size_t i = 0; i < sizeof on_gpu / sizeof on_gpu[0]; i++)
        drop(decoder, on_gpu[i], false);
    drop(decoder, &thread->weights_here, true);
    drop(decoder, &thread->made_here, true);
    tdmi_free(thread);
}

static tdm_status open_thread(const struct tdmi_decoder *base, tdmi_decoder_thread **thread,
                              tdm_error *err)
{
    const struct decoder *decoder = (const struct decoder *)base;
    tdmi_decoder_thread *made = tdmi_alloc(1, sizeof *made);
    *thread = NULL;
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "decoding pictures on the GPU: out of memory");
    made->decoder = decoder;
    tdmi_cuda_make_current(decoder->device);
    tdm_status status = decoder->backend->stream.open(decoder->device, &made->stream, err);
    if (status == TDM_OK)
        status = tdmi_nvjpeg_state_open(decoder->nvjpeg, &made->state, err);
    if (status != TDM_OK) {
        close_thread(made);
        return TDM_WRAP(err, status, "preparing to decode pictures on the GPU");
    }
    *thread = made;
    return TDM_OK;
}

/* ---- one file -------------------------------------------------------------------------------- */

/* The planes of a file, one behind the other from base on; *bytes is what they take. */
static struct tdmi_cuda_planes planes_of(const struct tdmi_decoder_file *file, uint8_t *base,
                                         size_t *bytes)
{
    struct tdmi_cuda_planes it = {.width = file->width,
                                  .height = file->height,
                                  .n_components = file->n_components,
                                  .across = file->across,
                                  .down = file->down,
                                  .orientation = file->orientation};
    size_t used = 0;
    for (int c = 0; c < file->n_components; c++) {
        const size_t across = c ? (size_t)file->across : 1, down = c ? (size_t)file->down : 1;
        const size_t stride = rounded(((size_t)file->width + across - 1) / across, LINE);
        const size_t rows = rounded(((size_t)file->height + down - 1) / down, LINE);
        it.samples[c] = base ? base + used : NULL;
        it.stride_bytes[c] = (int64_t)stride;
        used = rounded(used + stride * rows, ALIGNMENT);
    }
    *bytes = used;
    return it;
}

static struct tdmi_nvjpeg_image image_of(const struct tdmi_cuda_planes *planes)
{
    struct tdmi_nvjpeg_image it = {{NULL}, {0}};
    for (int c = 0; c < planes->n_components; c++) {
        it.samples[c] = (uint8_t *)(uintptr_t)planes->samples[c];
        it.stride_bytes[c] = (size_t)planes->stride_bytes[c];
    }
    return it;
}

static size_t made_bytes(const struct tdmi_decoder_file *file)
{
    return rounded(3 * (size_t)file->part_width * (size_t)file->part_height, ALIGNMENT);
}

static size_t between_bytes(const struct tdmi_decoder_file *file)
{
    const struct tdmi_decoder_pass *across = &file->across_pass, *down = &file->down_pass;
    if (!across->is_wanted || !down->is_wanted)
        return 0;
    return file->is_down_first ? 3 * (size_t)across->inputs.n * (size_t)down->n_outputs
                               : 3 * (size_t)across->n_outputs * (size_t)down->inputs.n;
}

static size_t put_pass(const struct tdmi_decoder_pass *pass, uint8_t *here, uint8_t *there,
                       size_t used, struct tdmi_cuda_resize *to)
{
    const size_t spans = sizeof *pass->spans * (size_t)pass->n_outputs;
    const size_t taps = sizeof *pass->taps * (size_t)pass->n_outputs * (size_t)pass->n_taps;
    const size_t at = rounded(used + spans, ALIGNMENT);
    if (!pass->is_wanted)
        return used;
    if (here) {
        memcpy(here + used, pass->spans, spans);
        memcpy(here + at, pass->taps, taps);
        *to = (struct tdmi_cuda_resize){.n_outputs = pass->n_outputs,
                                        .n_taps = pass->n_taps,
                                        .n_inputs = pass->n_inputs,
                                        .spans = (const struct tdmi_span *)(void *)(there + used),
                                        .taps = (const int32_t *)(void *)(there + at)};
    }
    return rounded(at + taps, ALIGNMENT);
}

/* Upload the tables of a file's passes. */
struct passes {
    struct tdmi_cuda_resize across, down;
};

/* here NULL: only counts. Returns where the next one's begin. */
static size_t put_weights(const struct tdmi_decoder_file *file, uint8_t *here, uint8_t *there,
                          size_t used, struct passes *to)
{
    used = put_pass(&file->across_pass, here, there, used, &to->across);
    return put_pass(&file->down_pass, here, there, used, &to->down);
}

/* RGB of the upright image into the requested part and size. */
static int scale(tdmi_decoder_thread *thread, const struct tdmi_decoder_file *file,
                 const struct passes *passes, const uint8_t *rgb, uint8_t *to)
{
    struct CUstream_st *queue = tdmi_cuda_queue(thread->stream);
    const struct tdmi_decoder_pass *across = &file->across_pass, *down = &file->down_pass;
    const int width = tdmi_decoder_width(file), height = tdmi_decoder_height(file);
    const int64_t stride = 3 * (int64_t)width;
    uint8_t *between = thread->between.memory;
    int code;
    if (!across->is_wanted && !down->is_wanted)
        return tdmi_cuda_resize_part(queue, rgb + stride * file->part_y + 3 * file->part_x, stride,
                                     3 * file->part_width, file->part_height, to);
    if (!down->is_wanted)
        return tdmi_cuda_resize_across(queue, &passes->across, rgb, 0, width, height, to);
    if (!across->is_wanted)
        return tdmi_cuda_resize_down(queue, &passes->down, rgb, 0, stride, 3 * width, to);
    if (file->is_down_first) {
        code = tdmi_cuda_resize_down(queue, &passes->down, rgb + 3 * (int64_t)across->inputs.first,
                                     0, stride, 3 * across->inputs.n, between);
        return code ? code
                    : tdmi_cuda_resize_across(queue, &passes->across, between, across->inputs.first,
                                              across->inputs.n, down->n_outputs, to);
    }
    code = tdmi_cuda_resize_across(queue, &passes->across, rgb + stride * down->inputs.first, 0,
                                   width, down->inputs.n, between);
    return code ? code
                : tdmi_cuda_resize_down(queue, &passes->down, between, down->inputs.first,
                                        3 * (int64_t)across->n_outputs, 3 * across->n_outputs, to);
}

/* ---- several files --------------------------------------------------------------------------- */

/* Files that are decoded at once, and where what they need begins. */
struct group {
    struct tdmi_decoder_file *files;
    int n;
    size_t made[TDMI_DECODER_FILES], planes[TDMI_DECODER_FILES];
    size_t made_bytes, planes_bytes, weights_bytes, rgb_bytes, between_bytes;
};

static struct group group_of(struct tdmi_decoder_file *files, int n)
{
    struct group it = {.files = files};
    struct passes passes;
    for (int i = 0; i < n; i++) {
        const size_t rgb = 3 * (size_t)files[i].width * (size_t)files[i].height;
        size_t planes;
        (void)planes_of(&files[i], NULL, &planes);
        if (i > 0 && it.planes_bytes + planes > GROUP_BYTES)
            break;
        it.made[i] = it.made_bytes;
        it.planes[i] = it.planes_bytes;
        it.made_bytes += made_bytes(&files[i]);
        it.planes_bytes += planes;
        it.weights_bytes = put_weights(&files[i], NULL, NULL, it.weights_bytes, &passes);
        it.rgb_bytes = rgb > it.rgb_bytes ? rgb : it.rgb_bytes;
        if (between_bytes(&files[i]) > it.between_bytes)
            it.between_bytes = between_bytes(&files[i]);
        it.n++;
    }
    return it;
}

static tdm_status make_room(tdmi_decoder_thread *thread, const struct group *group, tdm_error *err)
{
    const struct decoder *decoder = thread->decoder;
    tdm_status status = grow(decoder, &thread->planes, group->planes_bytes, false, err);
    if (status == TDM_OK)
        status = grow(decoder, &thread->rgb, group->rgb_bytes, false, err);
    if (status == TDM_OK)
        status = grow(decoder, &thread->between, group->between_bytes, false, err);
    if (status == TDM_OK)
        status = grow(decoder, &thread->made, group->made_bytes, false, err);
    if (status == TDM_OK)
        status = grow(decoder, &thread->weights, group->weights_bytes, false, err);
    if (status == TDM_OK)
        status = grow(decoder, &thread->weights_here, group->weights_bytes, true, err);
    return status;
}

/* Their images to `here`. */
static tdm_status run_group(tdmi_decoder_thread *thread, struct group *group, uint8_t *here,
                            tdm_error *err)
{
    const struct tdmi_backend *backend = thread->decoder->backend;
    struct tdmi_nvjpeg_image images[TDMI_DECODER_FILES];
    struct tdmi_cuda_planes planes[TDMI_DECODER_FILES];
    struct passes passes[TDMI_DECODER_FILES] = {{{0}, {0}}};
    bool is_done[TDMI_DECODER_FILES];
    size_t used = 0;
    TDM_TRY(make_room(thread, group, err), err, "decoding %d pictures", group->n);
    for (int i = 0; i < group->n; i++) {
        size_t bytes;
        planes[i] = planes_of(&group->files[i], (uint8_t *)thread->planes.memory + group->planes[i],
                              &bytes);
        images[i] = image_of(&planes[i]);
        used = put_weights(&group->files[i], thread->weights_here.memory, thread->weights.memory,
                           used, &passes[i]);
    }
    if (used > 0)
        TDM_TRY(backend->memory.upload(thread->stream, thread->weights.memory,
                                       thread->weights_here.memory, used, err),
                err, "decoding %d pictures", group->n);
    TDM_TRY(tdmi_nvjpeg_decode(thread->state, thread->stream, group->files, images, group->n,
                               is_done, err),
            err, "decoding %d pictures", group->n);
    for (int i = 0; i < group->n; i++) {
        if (!is_done[i])
            continue;
        int code =
            tdmi_cuda_planes_mix(tdmi_cuda_queue(thread->stream), &planes[i], thread->rgb.memory);
        if (code == 0)
            code = scale(thread, &group->files[i], &passes[i], thread->rgb.memory,
                         (uint8_t *)thread->made.memory + group->made[i]);
        tdmi_cuda_note(thread->stream, code, "decoding pictures");
        group->files[i].pixels = here + group->made[i];
    }
    TDM_TRY(
        backend->memory.download(thread->stream, here, thread->made.memory, group->made_bytes, err),
        err, "decoding %d pictures", group->n);
    return TDM_WRAP(err, backend->stream.wait(thread->stream, err), "decoding %d pictures",
                    group->n);
}

static tdm_status run(tdmi_decoder_thread *thread, struct tdmi_decoder_file *files, int n,
                      tdm_error *err)
{
    size_t bytes = 0;
    tdm_status status;
    for (int i = 0; i < n; i++) {
        files[i].pixels = NULL;
        bytes += made_bytes(&files[i]);
    }
    tdmi_cuda_make_current(thread->decoder->device); /* another thread may have opened it */
    status = grow(thread->decoder, &thread->made_here, bytes, true, err);
    uint8_t *here = thread->made_here.memory;
    for (int at = 0; at < n && status == TDM_OK;) {
        struct group group = group_of(files + at, n - at);
        status = run_group(thread, &group, here, err);
        here += group.made_bytes;
        at += group.n;
    }
    if (status != TDM_OK) /* what was queued may still read files, which are the caller's */
        (void)thread->decoder->backend->stream.wait(thread->stream, NULL);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void close_decoder(const struct tdmi_decoder *base)
{
    struct decoder *decoder = (struct decoder *)(uintptr_t)base;
    if (!decoder)
        return;
    tdmi_cuda_make_current(decoder->device);
    tdmi_nvjpeg_close(decoder->nvjpeg);
    tdmi_free(decoder);
}

static tdm_status open_decoder(const struct tdmi_backend *backend, tdmi_device *device,
                               const struct tdmi_decoder **decoder, tdm_error *err)
{
    struct decoder *made = tdmi_alloc(1, sizeof *made);
    const char *file = device->libraries ? tdmi_cuda_libraries_nvjpeg(device->libraries) : NULL;
    *decoder = NULL;
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening nvJPEG: out of memory");
    made->base.open = open_thread;
    made->base.close = close_thread;
    made->base.run = run;
    made->backend = backend;
    made->device = device;
    tdmi_cuda_make_current(device);
    const tdm_status status = tdmi_nvjpeg_open(file, &made->nvjpeg, err);
    if (status != TDM_OK) {
        tdmi_free(made);
        return status;
    }
    const int version = tdmi_nvjpeg_version(made->nvjpeg);
    snprintf(made->base.name, sizeof made->base.name, "nvJPEG %d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    *decoder = &made->base;
    return TDM_OK;
}

const struct tdmi_picture_table tdmi_cuda_pictures = {open_decoder, close_decoder};
