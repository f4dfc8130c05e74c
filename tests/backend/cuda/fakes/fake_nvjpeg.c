/*
 * nvJPEG as a test wants it: files become planes by libjpeg-turbo's slow integer transform, the
 * host's own, where pointers and strides say, once the stream comes to it.
 */
#include "backend/cuda/fakes/fake_nvjpeg.h"
#include "backend/cuda/vendor/nvjpeg_api.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* NVIDIA's headers, which declare these functions, are not needed here. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct fake_nvjpeg fake_nvjpeg = {.version = {12, 4, 0}, .has_engines = 1};

enum { uninitialised = 1, invalid = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is counted */

struct handle {
    int backend;
};
struct state {
    int n; /* files a batch; 0: none was begun */
};
struct header {
    bool is_for_engines;
};

static void *fresh(size_t bytes)
{
    pthread_mutex_lock(&lock);
    fake_nvjpeg.alive++;
    pthread_mutex_unlock(&lock);
    return calloc(1, bytes);
}

static int drop(void *block)
{
    pthread_mutex_lock(&lock);
    fake_nvjpeg.alive--;
    pthread_mutex_unlock(&lock);
    free(block);
    return 0;
}

/* ---- handles --------------------------------------------------------------------------------- */

int nvjpegGetProperty(int which, int *value)
{
    *value = fake_nvjpeg.version[which];
    return 0;
}

int nvjpegCreateEx(int backend, void *device_allocator, void *pinned_allocator, unsigned flags,
                   void **handle)
{
    const bool is_known = backend == TDMI_NVJPEG_BY_DEFAULT || backend == TDMI_NVJPEG_BY_HARDWARE;
    if (!is_known || device_allocator || pinned_allocator || flags)
        return invalid;
    if (fake_nvjpeg.create_code)
        return fake_nvjpeg.create_code;
    if (backend == TDMI_NVJPEG_BY_HARDWARE && !fake_nvjpeg.has_engines)
        return TDMI_NVJPEG_OTHER_GPU;
    struct handle *made = fresh(sizeof *made);
    made->backend = backend;
    *handle = made;
    return 0;
}

int nvjpegDestroy(void *handle)
{
    return drop(handle);
}

int nvjpegJpegStateCreate(void *handle, void **state)
{
    (void)handle;
    *state = fresh(sizeof(struct state));
    return 0;
}

int nvjpegJpegStateDestroy(void *state)
{
    return drop(state);
}

int nvjpegJpegStreamCreate(void *handle, void **stream)
{
    (void)handle;
    *stream = fresh(sizeof(struct header));
    return 0;
}

int nvjpegJpegStreamDestroy(void *stream)
{
    return drop(stream);
}

/* ---- a file ---------------------------------------------------------------------------------- */

struct reader {
    struct jpeg_decompress_struct decoder;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
};

_Noreturn static void stop(j_common_ptr codec)
{
    longjmp(((struct reader *)codec)->escape, 1);
}

/* false: no JPEG file. The reader is released either way by close. */
static bool open_file(struct reader *reader, const uint8_t *bytes, size_t length)
{
    memset(reader, 0, sizeof *reader);
    reader->decoder.err = jpeg_std_error(&reader->errors);
    reader->errors.error_exit = stop;
    if (setjmp(reader->escape) != 0)
        return false;
    jpeg_create_decompress(&reader->decoder);
    jpeg_mem_src(&reader->decoder, bytes, (unsigned long)length);
    return jpeg_read_header(&reader->decoder, TRUE) == JPEG_HEADER_OK;
}

/* -1: another. */
static int css_of(const struct jpeg_decompress_struct *decoder)
{
    const jpeg_component_info *luma = decoder->comp_info;
    if (decoder->num_components == 1)
        return TDMI_NVJPEG_CSS_GREY;
    if (decoder->num_components != 3 || luma[1].h_samp_factor != 1 || luma[1].v_samp_factor != 1)
        return -1;
    switch (10 * luma->h_samp_factor + luma->v_samp_factor) {
    case 11:
        return TDMI_NVJPEG_CSS_444;
    case 21:
        return TDMI_NVJPEG_CSS_422;
    case 22:
        return TDMI_NVJPEG_CSS_420;
    default:
        return -1;
    }
}

static int side_of(int side, int samples, int most)
{
    return (side * samples + most - 1) / most;
}

int nvjpegGetImageInfo(void *handle, const uint8_t *bytes, size_t length, int *n, int *css,
                       int *widths, int *heights)
{
    struct reader reader;
    if (!handle)
        return uninitialised;
    const bool is_open = open_file(&reader, bytes, length);
    const struct jpeg_decompress_struct *decoder = &reader.decoder;
    *n = is_open ? decoder->num_components : 0;
    *css = is_open ? css_of(decoder) : -1;
    for (int c = 0; c < TDMI_NVJPEG_PLANES; c++) {
        const bool has_it = c < *n;
        const int across = *css == TDMI_NVJPEG_CSS_422 || *css == TDMI_NVJPEG_CSS_420 ? 2 : 1;
        const int down = *css == TDMI_NVJPEG_CSS_420 ? 2 : 1;
        widths[c] = has_it ? side_of((int)decoder->image_width, c ? 1 : across, across) : 0;
        heights[c] = has_it ? side_of((int)decoder->image_height, c ? 1 : down, down) : 0;
        widths[c] += fake_nvjpeg.sees_other;
    }
    jpeg_destroy_decompress(&reader.decoder);
    return is_open ? 0 : TDMI_NVJPEG_BAD;
}

int nvjpegJpegStreamParseHeader(void *handle, const uint8_t *bytes, size_t length, void *stream)
{
    struct reader reader;
    struct header *header = stream;
    const struct handle *it = handle;
    const bool is_open = open_file(&reader, bytes, length);
    const int css = is_open ? css_of(&reader.decoder) : -1;
    header->is_for_engines = css == TDMI_NVJPEG_CSS_GREY || css == TDMI_NVJPEG_CSS_420;
    jpeg_destroy_decompress(&reader.decoder);
    return it->backend != TDMI_NVJPEG_BY_HARDWARE ? invalid : is_open ? 0 : TDMI_NVJPEG_BAD;
}

int nvjpegDecodeBatchedSupported(void *handle, void *stream, int *refusal)
{
    (void)handle;
    *refusal = !((const struct header *)stream)->is_for_engines;
    return 0;
}

static bool is_refused(const uint8_t *bytes, size_t length)
{
    unsigned sum = 0;
    for (size_t i = 0; i < length; i++)
        sum += bytes[i];
    return fake_nvjpeg.refuses_one_of > 0 && sum % (unsigned)fake_nvjpeg.refuses_one_of == 0;
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* Copy the planes, which are kept until then, when the stream comes to it. */
struct copy {
    struct tdmi_nvjpeg_image to;
    int n, widths[3], heights[3];
    uint8_t *planes[3];
    size_t strides[3];
    int off;
};

static void run_copy(void *self)
{
    const struct copy *it = self;
    for (int c = 0; c < it->n; c++) {
        for (int y = 0; y < it->heights[c]; y++) {
            uint8_t *to = it->to.samples[c] + it->to.stride_bytes[c] * (size_t)y;
            const uint8_t *from = it->planes[c] + it->strides[c] * (size_t)y;
            for (int x = 0; x < it->widths[c]; x++)
                to[x] = (uint8_t)(from[x] + it->off > 255 ? 255 : from[x] + it->off);
        }
        free(it->planes[c]);
    }
}

/* Rows of all components, as many as a row of MCUs has. */
static void read_planes(struct reader *reader, struct copy *it)
{
    enum { most_rows = 16 };
    struct jpeg_decompress_struct *decoder = &reader->decoder;
    JSAMPROW rows[3][most_rows];
    JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
    while (decoder->output_scanline < decoder->output_height) {
        const int mcu_row = (int)decoder->output_scanline / (decoder->max_v_samp_factor * DCTSIZE);
        for (int c = 0; c < it->n; c++) {
            const int n_rows = decoder->comp_info[c].v_samp_factor * DCTSIZE;
            for (int y = 0; y < n_rows; y++)
                rows[c][y] = it->planes[c] + it->strides[c] * (size_t)(mcu_row * n_rows + y);
        }
        (void)jpeg_read_raw_data(decoder, planes,
                                 (JDIMENSION)(decoder->max_v_samp_factor * DCTSIZE));
    }
}

static bool decode_file(const uint8_t *bytes, size_t length, struct copy *it)
{
    struct reader reader;
    if (!open_file(&reader, bytes, length) || css_of(&reader.decoder) < 0 ||
        setjmp(reader.escape) != 0) {
        jpeg_destroy_decompress(&reader.decoder);
        return false;
    }
    struct jpeg_decompress_struct *decoder = &reader.decoder;
    decoder->raw_data_out = TRUE;
    decoder->out_color_space = decoder->jpeg_color_space;
    decoder->dct_method = JDCT_ISLOW;
    (void)jpeg_start_decompress(decoder);
    it->n = decoder->num_components;
    for (int c = 0; c < it->n; c++) {
        const jpeg_component_info *component = &decoder->comp_info[c];
        it->widths[c] = (int)component->downsampled_width;
        it->heights[c] = (int)component->downsampled_height;
        it->strides[c] = (size_t)component->width_in_blocks * DCTSIZE + 64;
        it->planes[c] = calloc(it->strides[c], (size_t)component->height_in_blocks * DCTSIZE + 64);
    }
    read_planes(&reader, it);
    jpeg_destroy_decompress(&reader.decoder);
    return true;
}

/* ---- batches --------------------------------------------------------------------------------- */

int nvjpegDecodeBatchedInitialize(void *handle, void *state, int n, int threads, int format)
{
    (void)handle;
    ((struct state *)state)->n = n;
    return n > 0 && threads > 0 && format == TDMI_NVJPEG_AS_PLANES ? 0 : invalid;
}

static void tell(int n, bool is_by_engines)
{
    FILE *file = fake_nvjpeg.told ? fopen(fake_nvjpeg.told, "a") : NULL;
    pthread_mutex_lock(&lock);
    *(is_by_engines ? &fake_nvjpeg.by_engines : &fake_nvjpeg.by_kernels) += n;
    fake_nvjpeg.batches++;
    fake_nvjpeg.largest_batch = n > fake_nvjpeg.largest_batch ? n : fake_nvjpeg.largest_batch;
    pthread_mutex_unlock(&lock);
    for (int i = 0; file && i < n; i++)
        (void)fputc('.', file);
    if (file)
        (void)fclose(file);
}

/* One file that is refused spoils the batch, after those before it were queued. */
int nvjpegDecodeBatched(void *handle, void *state, const uint8_t *const *bytes,
                        const size_t *lengths, struct tdmi_nvjpeg_image *images,
                        struct CUstream_st *queue)
{
    struct state *it = state;
    if (it->n == 0)
        return uninitialised;
    if (fake_nvjpeg.has_no_memory) {
        it->n = 0;
        return TDMI_NVJPEG_NO_MEMORY;
    }
    for (int i = 0; i < it->n; i++) {
        struct copy copy = {.to = images[i], .off = fake_nvjpeg.off};
        if (is_refused(bytes[i], lengths[i]) || !decode_file(bytes[i], lengths[i], &copy)) {
            pthread_mutex_lock(&lock);
            fake_nvjpeg.failed_batches++;
            fake_nvjpeg.failed_alone += it->n == 1;
            pthread_mutex_unlock(&lock);
            it->n = 0; /* until it is begun anew */
            return TDMI_NVJPEG_BAD;
        }
        const int code = fake_nvjpeg.launch
                             ? fake_nvjpeg.launch(queue, run_copy, &copy, sizeof copy, 0)
                             : (run_copy(&copy), 0);
        if (code)
            return code;
    }
    tell(it->n, ((const struct handle *)handle)->backend == TDMI_NVJPEG_BY_HARDWARE);
    return 0;
}
