/*
 * Files of JPEG images become images in the network's size, for a thread of the host:
 *
 *     nvJPEG ▸ planes ▸ image.cu ▸ RGB, upright ▸ image.cu, two passes ▸ one copy to the host
 *
 * all on a stream and in memory of the thread's own, for as many files at once as its memory is
 * meant for; RGB and what lies between the passes belong to one file at a time.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/libraries.h"
#include "backend/cuda/vendor/nvjpeg.h"
#include "backend/cuda/kernels/image/image.h"
#include "base/scope.h"

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

/* Memory of a thread: on the GPU, and from WEIGHTS_HERE on pinned memory of the host. */
enum { PLANES, RGB, BETWEEN, WEIGHTS, MADE, WEIGHTS_HERE, MADE_HERE, N_BUFFERS };

struct tdmi_decoder_thread {
    const struct decoder *decoder;
    tdmi_stream *stream;
    tdmi_nvjpeg_state *state;
    struct buffer buffers[N_BUFFERS];
};

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t rounded(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static void drop(tdmi_decoder_thread *thread, int index)
{
    const struct decoder *decoder = thread->decoder;
    const struct tdmi_memory_table *table = &decoder->backend->memory;
    void *memory = thread->buffers[index].memory;
    if (memory)
        (index < WEIGHTS_HERE ? table->free : table->free_pinned)(decoder->device, memory);
    thread->buffers[index] = (struct buffer){0};
}

/* The old content is lost, and no queued work may use it. */
static tdm_status grow(tdmi_decoder_thread *thread, int index, size_t bytes, tdm_error *err)
{
    const struct decoder *decoder = thread->decoder;
    const struct tdmi_memory_table *table = &decoder->backend->memory;
    const bool is_pinned = index >= WEIGHTS_HERE;
    if (bytes <= thread->buffers[index].bytes)
        return TDM_OK;
    drop(thread, index);
    bytes += bytes / 4; /* files differ in size: not anew for each that is a little larger */
    void *memory = (is_pinned ? table->alloc_pinned : table->alloc)(decoder->device, bytes);
    if (!memory)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "decoding images on the GPU: no room for %zu bytes of %s memory; use a "
                        "smaller batch, fewer --threads or --decode cpu",
                        bytes, is_pinned ? "pinned" : "its");
    thread->buffers[index] = (struct buffer){memory, bytes};
    return TDM_OK;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void close_thread(tdmi_decoder_thread *thread)
{
    if (!thread)
        return;
    tdmi_cuda_make_current(thread->decoder->device);
    if (thread->stream)
        thread->decoder->backend->stream.close(thread->stream);
    tdmi_nvjpeg_state_close(thread->state);
    for (int i = 0; i < N_BUFFERS; i++)
        drop(thread, i);
    tdmi_free(thread);
}
TDMI_POINTER_RELEASE(tdmi_decoder_thread, close_thread)

static tdm_status open_thread(const struct tdmi_decoder *base, tdmi_decoder_thread **thread,
                              tdm_error *err)
{
    const struct decoder *decoder = (const struct decoder *)base;
    TDMI_AT_END(close_thread_at) tdmi_decoder_thread *made = NULL;
    *thread = NULL;
    TDM_TRY(TDMI_NEW(made, 1, err), err, "preparing to decode images on the GPU");
    made->decoder = decoder;
    tdmi_cuda_make_current(decoder->device);
    TDM_TRY(decoder->backend->stream.open(decoder->device, &made->stream, err), err,
            "preparing to decode images on the GPU");
    TDM_TRY(tdmi_nvjpeg_state_open(decoder->nvjpeg, &made->state, err), err,
            "preparing to decode images on the GPU");
    *thread = tdmi_take(&made);
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

struct passes {
    struct tdmi_cuda_resize across, down;
};

/* Write the tables of a file's passes; here NULL: only count. Returns where the next file's begin.
 */
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
    uint8_t *between = thread->buffers[BETWEEN].memory;
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

/* Files that are decoded at once, where what they need begins, and the bytes of all buffers but
 * MADE_HERE, which belongs to all groups. */
struct group {
    struct tdmi_decoder_file *files;
    int n;
    size_t made[TDMI_DECODER_FILES], planes[TDMI_DECODER_FILES];
    size_t bytes[N_BUFFERS];
};

static void raise_to(size_t *bytes, size_t to)
{
    *bytes = to > *bytes ? to : *bytes;
}

static struct group group_of(struct tdmi_decoder_file *files, int n)
{
    struct group it = {.files = files};
    struct passes passes;
    for (int i = 0; i < n; i++) {
        size_t planes;
        (void)planes_of(&files[i], NULL, &planes);
        if (i > 0 && it.bytes[PLANES] + planes > GROUP_BYTES)
            break;
        it.made[i] = it.bytes[MADE];
        it.planes[i] = it.bytes[PLANES];
        it.bytes[MADE] += made_bytes(&files[i]);
        it.bytes[PLANES] += planes;
        it.bytes[WEIGHTS] = put_weights(&files[i], NULL, NULL, it.bytes[WEIGHTS], &passes);
        it.bytes[WEIGHTS_HERE] = it.bytes[WEIGHTS];
        raise_to(&it.bytes[RGB], 3 * (size_t)files[i].width * (size_t)files[i].height);
        raise_to(&it.bytes[BETWEEN], between_bytes(&files[i]));
        it.n++;
    }
    return it;
}

/* Decode the files, mix and scale their planes, and download the images to `here`. */
static tdm_status run_group(tdmi_decoder_thread *thread, struct group *group, uint8_t *here,
                            tdm_error *err)
{
    const struct tdmi_backend *backend = thread->decoder->backend;
    const struct buffer *buffers = thread->buffers;
    tdmi_stream *stream = thread->stream;
    struct tdmi_nvjpeg_image images[TDMI_DECODER_FILES];
    struct tdmi_cuda_planes planes[TDMI_DECODER_FILES];
    struct passes passes[TDMI_DECODER_FILES] = {{{0}, {0}}};
    bool is_done[TDMI_DECODER_FILES];
    size_t used = 0;
    for (int i = 0; i < MADE_HERE; i++)
        TDMI_TRY(grow(thread, i, group->bytes[i], err));
    uint8_t *const rgb = buffers[RGB].memory, *const made = buffers[MADE].memory;
    for (int i = 0; i < group->n; i++) {
        size_t bytes;
        planes[i] = planes_of(&group->files[i],
                              (uint8_t *)buffers[PLANES].memory + group->planes[i], &bytes);
        images[i] = image_of(&planes[i]);
        used = put_weights(&group->files[i], buffers[WEIGHTS_HERE].memory, buffers[WEIGHTS].memory,
                           used, &passes[i]);
    }
    if (used > 0)
        TDMI_TRY(backend->memory.upload(stream, buffers[WEIGHTS].memory,
                                        buffers[WEIGHTS_HERE].memory, used, err));
    TDMI_TRY(
        tdmi_nvjpeg_decode(thread->state, stream, group->files, images, group->n, is_done, err));
    for (int i = 0; i < group->n; i++) {
        if (!is_done[i])
            continue;
        int code = tdmi_cuda_planes_mix(tdmi_cuda_queue(stream), &planes[i], rgb);
        if (code == 0)
            code = scale(thread, &group->files[i], &passes[i], rgb, made + group->made[i]);
        tdmi_cuda_note(stream, code, "decoding images");
        group->files[i].pixels = here + group->made[i];
    }
    TDMI_TRY(backend->memory.download(stream, here, made, group->bytes[MADE], err));
    return backend->stream.wait(stream, err);
}

static tdm_status run(tdmi_decoder_thread *thread, struct tdmi_decoder_file *files, int n,
                      tdm_error *err)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        files[i].pixels = NULL;
        bytes += made_bytes(&files[i]);
    }
    tdmi_cuda_make_current(thread->decoder->device); /* another thread may have opened it */
    tdm_status status = grow(thread, MADE_HERE, bytes, err);
    uint8_t *here = thread->buffers[MADE_HERE].memory;
    for (int at = 0; at < n && status == TDM_OK;) {
        struct group group = group_of(files + at, n - at);
        status = TDM_WRAP(err, run_group(thread, &group, here, err), "decoding %d images", group.n);
        here += group.bytes[MADE];
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
    TDMI_AT_END(tdmi_free_at) struct decoder *made = NULL;
    const char *file =
        device->libraries ? tdmi_cuda_libraries_places(device->libraries)->nvjpeg : NULL;
    *decoder = NULL;
    TDM_TRY(TDMI_NEW(made, 1, err), err, "opening nvJPEG");
    made->base.open = open_thread;
    made->base.close = close_thread;
    made->base.run = run;
    made->backend = backend;
    made->device = device;
    tdmi_cuda_make_current(device);
    TDMI_TRY(tdmi_nvjpeg_open(file, &made->nvjpeg, err));
    const int version = tdmi_nvjpeg_version(made->nvjpeg);
    snprintf(made->base.name, sizeof made->base.name, "nvJPEG %d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    *decoder = tdmi_take(&made);
    return TDM_OK;
}

const struct tdmi_picture_table tdmi_cuda_pictures = {open_decoder, close_decoder};
