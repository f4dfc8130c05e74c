/*
 * How many pictures a second become JPEG files of quality 95, as `prepare` writes them, and how
 * many libjpeg-turbo makes of the same pixels:
 *
 *     encode ours|bare|NAME SIDE SECONDS FILE…
 *
 * The files are decoded and fitted into SIDE x SIDE before the clock starts. "ours" is the
 * library's encoder, NAME the same with one set of instructions ("scalar", "AVX2", "AVX-512"),
 * "bare" libjpeg-turbo with one compressor and one buffer for all pictures. One thread; rates are
 * of processor time, which other programs on the same machine disturb least.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "image/jpeg_encode/encode.h"
#include "image/preprocess.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#define ENOUGH_BYTES ((size_t)256 << 20)
enum { QUALITY = 95 };

struct bench {
    const struct tdmi_jpeg_write_kernels *kernels; /* NULL: libjpeg-turbo */
    int n_pictures;
    tdmi_image *pictures;
    tdmi_text file;
    struct jpeg_compress_struct encoder;
    struct jpeg_error_mgr errors;
    unsigned char *buffer;
    unsigned long buffer_bytes;
};

static void encode_bare(struct bench *bench, const tdmi_image *image)
{
    j_compress_ptr encoder = &bench->encoder;
    unsigned char *at = bench->buffer;
    unsigned long length = bench->buffer_bytes;
    jpeg_mem_dest(encoder, &at, &length);
    encoder->image_width = (JDIMENSION)image->width;
    encoder->image_height = (JDIMENSION)image->height;
    encoder->input_components = 3;
    encoder->in_color_space = JCS_RGB;
    jpeg_set_defaults(encoder);
    jpeg_set_quality(encoder, QUALITY, TRUE);
    encoder->comp_info[0].h_samp_factor = encoder->comp_info[0].v_samp_factor = 1;
    encoder->restart_in_rows = 1;
    jpeg_start_compress(encoder, TRUE);
    while (encoder->next_scanline < encoder->image_height) {
        enum { ROWS = 16 };
        JSAMPROW rows[ROWS];
        for (JDIMENSION i = 0; i < ROWS; i++)
            rows[i] =
                image->pixels + 3 * (size_t)image->width * (encoder->next_scanline + (size_t)i);
        const JDIMENSION left = encoder->image_height - encoder->next_scanline;
        (void)jpeg_write_scanlines(encoder, rows, left < ROWS ? left : ROWS);
    }
    jpeg_finish_compress(encoder);
}

static tdm_status encode_all(struct bench *bench, tdm_error *err)
{
    for (int i = 0; i < bench->n_pictures; i++) {
        if (bench->kernels == NULL) {
            encode_bare(bench, &bench->pictures[i]);
            continue;
        }
        tdmi_text_clear(&bench->file);
        TDM_TRY(tdmi_jpeg_write(&bench->pictures[i], QUALITY, bench->kernels, &bench->file, err),
                err, "cannot encode a picture");
    }
    return TDM_OK;
}

static tdm_status load(struct bench *bench, int side, char **paths, tdm_error *err)
{
    const struct tdmi_preprocess preprocess = {.width = side,
                                               .height = side,
                                               .channels = 3,
                                               .fit = TDMI_FIT_PAD,
                                               .crop_fraction = 1,
                                               .filter = TDMI_FILTER_LANCZOS};
    struct tdmi_preprocess_scratch scratch = {0};
    tdm_status status = TDM_OK;
    bench->pictures = tdmi_alloc((size_t)bench->n_pictures, sizeof *bench->pictures);
    if (bench->pictures == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d pictures", bench->n_pictures);
    for (int i = 0; i < bench->n_pictures && status == TDM_OK; i++) {
        void *bytes = NULL;
        size_t length_bytes = 0;
        status = tdmi_image_reshape(&bench->pictures[i], side, side, err);
        if (status == TDM_OK)
            status = tdmi_file_read(paths[i], ENOUGH_BYTES, &bytes, &length_bytes, err);
        if (status == TDM_OK)
            status = tdmi_preprocess_file(&preprocess, bytes, length_bytes, paths[i], &scratch,
                                          bench->pictures[i].pixels, err);
        tdmi_free(bytes);
    }
    tdmi_preprocess_scratch_release(&scratch);
    return TDM_WRAP(err, status, "cannot measure");
}

static tdm_status measure(struct bench *bench, int side, double seconds, tdm_error *err)
{
    bench->buffer_bytes = 16 * (unsigned long)side * (unsigned long)side + 65536;
    bench->buffer = tdmi_alloc(bench->buffer_bytes, 1);
    if (bench->buffer == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a file");
    tdm_status status = encode_all(bench, err); /* memory grows, pages are touched */
    const int64_t began = tdmi_clock_ns();
    const clock_t worked = clock();
    int64_t n_passes = 0;
    while (status == TDM_OK && (double)(tdmi_clock_ns() - began) * 1e-9 < seconds) {
        status = encode_all(bench, err);
        n_passes++;
    }
    if (status == TDM_OK) {
        const double n = (double)(n_passes * bench->n_pictures);
        const double work = (double)(clock() - worked) / CLOCKS_PER_SEC;
        printf("%d pictures, %lld passes; megabytes of pixels/s of processor time: %.1f; "
               "images/s of processor time: %.1f\n",
               bench->n_pictures, (long long)n_passes, 3e-6 * side * side * n / work, n / work);
    }
    return status;
}

static void release(struct bench *bench)
{
    for (int i = 0; bench->pictures != NULL && i < bench->n_pictures; i++)
        tdmi_image_release(&bench->pictures[i]);
    tdmi_free(bench->pictures);
    tdmi_text_release(&bench->file);
    jpeg_destroy_compress(&bench->encoder);
    tdmi_free(bench->buffer);
}

static bool find_kernels(const char *name, struct bench *bench)
{
    if (strcmp(name, "bare") == 0)
        return true;
    if (strcmp(name, "ours") == 0)
        bench->kernels = tdmi_jpeg_write_kernels_best();
    const struct tdmi_jpeg_write_kernels *kernels;
    for (int i = 0; (kernels = tdmi_jpeg_write_kernels_at(i)) != NULL; i++)
        if (strcmp(name, kernels->name) == 0)
            bench->kernels = kernels;
    return bench->kernels != NULL;
}

int main(int n_words, char **words)
{
    enum { FIRST_FILE = 4 };
    struct bench bench = {.n_pictures = n_words - FIRST_FILE};
    const int side = n_words > FIRST_FILE ? (int)strtol(words[2], NULL, 10) : 0;
    if (side < 1 || !find_kernels(words[1], &bench)) {
        fprintf(stderr, "usage: encode ours|bare|scalar|AVX2|AVX-512 SIDE SECONDS FILE...\n");
        return 2;
    }
    bench.encoder.err = jpeg_std_error(&bench.errors);
    jpeg_create_compress(&bench.encoder);
    tdm_error err = {0};
    tdm_status status = load(&bench, side, words + FIRST_FILE, &err);
    if (status == TDM_OK)
        status = measure(&bench, side, strtod(words[3], NULL), &err);
    for (int i = err.n_frames - 1; i >= 0; i--)
        fprintf(stderr, "%s\n", tdm_error_sentence(&err, i));
    release(&bench);
    return status == TDM_OK ? 0 : 1;
}
