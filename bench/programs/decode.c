/*
 * How many pictures a second become a network's input, and how many libjpeg-turbo alone decodes:
 *
 *     decode ours|draft|bare|write|write-draft SIDE THREADS SECONDS FILE…
 *
 * "ours" is the library's preprocessing (decode, orient, fit into SIDE x SIDE, white around),
 * "draft" the same with reduced decoding of large pictures, "write" and "write-draft" write its
 * results to standard output instead of measuring it,
 * "bare" libjpeg-turbo into rows of RGB with one decompressor a thread, the most that any caller of
 * it could reach. Files are read before the clock starts. Whole passes over all files are repeated
 * until SECONDS are over. CPU time is printed too: with one thread, the rate that other programs
 * on the same machine disturb least.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include "image/preprocess.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#define ENOUGH_BYTES ((size_t)256 << 20)

struct file {
    void *bytes;
    size_t length_bytes;
    const char *name;
};

struct worker {
    struct tdmi_preprocess_scratch scratch;
    uint8_t *input; /* (side, side, 3) */
    struct jpeg_decompress_struct decoder;
    struct jpeg_error_mgr errors;
    uint8_t *pixels;
    size_t pixels_bytes;
};

struct bench {
    bool is_bare, is_draft, is_writing;
    int side, n_files, n_workers;
    struct file *files;
    struct worker *workers;
};

static tdm_status decode_bare(struct worker *worker, const struct file *file, tdm_error *err)
{
    j_decompress_ptr decoder = &worker->decoder;
    enum { ROWS = 16 };
    jpeg_mem_src(decoder, file->bytes, (unsigned long)file->length_bytes);
    (void)jpeg_read_header(decoder, TRUE); /* an error ends the program, as jpeg_std_error does */
    decoder->out_color_space = JCS_RGB;
    (void)jpeg_start_decompress(decoder);
    const size_t row_bytes = 3 * (size_t)decoder->output_width;
    const size_t needed_bytes = row_bytes * (decoder->output_height + ROWS);
    if (needed_bytes > worker->pixels_bytes) {
        tdmi_free(worker->pixels);
        worker->pixels = tdmi_alloc(needed_bytes, 1);
        worker->pixels_bytes = needed_bytes;
        if (worker->pixels == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %zu bytes", needed_bytes);
    }
    while (decoder->output_scanline < decoder->output_height) {
        JSAMPROW rows[ROWS];
        for (size_t i = 0; i < ROWS; i++)
            rows[i] = worker->pixels + row_bytes * (decoder->output_scanline + i);
        (void)jpeg_read_scanlines(decoder, rows, ROWS);
    }
    (void)jpeg_finish_decompress(decoder);
    return TDM_OK;
}

static tdm_status decode_one(void *self, int index, int worker, tdm_error *err)
{
    struct bench *bench = self;
    const struct file *file = &bench->files[index % bench->n_files];
    struct worker *mine = &bench->workers[worker];
    if (bench->is_bare)
        return decode_bare(mine, file, err);
    const struct tdmi_preprocess preprocess = {.width = bench->side,
                                               .height = bench->side,
                                               .channels = 3,
                                               .fit = TDMI_FIT_PAD,
                                               .crop_fraction = 1,
                                               .filter = TDMI_FILTER_LANCZOS,
                                               .uses_draft = bench->is_draft};
    return tdmi_preprocess_file(&preprocess, file->bytes, file->length_bytes, file->name,
                                &mine->scratch, mine->input, err);
}

static tdm_status prepare(struct bench *bench, char **paths, tdm_error *err)
{
    const size_t input_bytes = 3 * (size_t)bench->side * (size_t)bench->side;
    bench->files = tdmi_alloc((size_t)bench->n_files, sizeof *bench->files);
    bench->workers = tdmi_alloc((size_t)bench->n_workers, sizeof *bench->workers);
    if (bench->files == NULL || bench->workers == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d files", bench->n_files);
    memset(bench->files, 0, (size_t)bench->n_files * sizeof *bench->files);
    memset(bench->workers, 0, (size_t)bench->n_workers * sizeof *bench->workers);
    for (int i = 0; i < bench->n_workers; i++) {
        struct worker *worker = &bench->workers[i];
        worker->decoder.err = jpeg_std_error(&worker->errors);
        jpeg_create_decompress(&worker->decoder);
        worker->input = tdmi_alloc(input_bytes, 1);
        if (worker->input == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %zu bytes", input_bytes);
    }
    for (int i = 0; i < bench->n_files; i++) {
        struct file *file = &bench->files[i];
        file->name = paths[i];
        TDM_TRY(tdmi_file_read(paths[i], ENOUGH_BYTES, &file->bytes, &file->length_bytes, err), err,
                "cannot measure");
    }
    return TDM_OK;
}

static void release(struct bench *bench)
{
    for (int i = 0; bench->workers != NULL && i < bench->n_workers; i++) {
        struct worker *worker = &bench->workers[i];
        tdmi_preprocess_scratch_release(&worker->scratch);
        tdmi_free(worker->input);
        tdmi_free(worker->pixels);
        if (worker->decoder.err != NULL)
            jpeg_destroy_decompress(&worker->decoder);
    }
    for (int i = 0; bench->files != NULL && i < bench->n_files; i++)
        tdmi_free(bench->files[i].bytes);
    tdmi_free(bench->workers);
    tdmi_free(bench->files);
}

static tdm_status write_inputs(struct bench *bench, tdm_error *err)
{
    const size_t input_bytes = 3 * (size_t)bench->side * (size_t)bench->side;
    for (int i = 0; i < bench->n_files; i++) {
        tdm_status status = decode_one(bench, i, 0, err);
        if (status != TDM_OK)
            return status;
        if (fwrite(bench->workers[0].input, 1, input_bytes, stdout) != input_bytes)
            return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write to standard output");
    }
    return TDM_OK;
}

static tdm_status measure(struct bench *bench, double seconds, tdm_error *err)
{
    tdmi_pool *pool = NULL;
    tdm_status status = tdmi_pool_new(bench->n_workers, NULL, &pool, err);
    int64_t began = tdmi_clock_ns();
    if (status == TDM_OK) /* memory grows, pages are touched */
        status = tdmi_pool_run(pool, bench->n_files, decode_one, bench, err);
    /* Threads wait for each other at the end of a run only: a run is half a second or more. */
    const double pass = (double)(tdmi_clock_ns() - began) * 1e-9;
    const int64_t n_at_once = pass < 0.5 ? (int64_t)(0.5 / pass) + 1 : 1;
    began = tdmi_clock_ns();
    const clock_t worked = clock();
    double passed = 0;
    int64_t n_passes = 0;
    while (status == TDM_OK && passed < seconds) {
        status = tdmi_pool_run(pool, (int)(bench->n_files * n_at_once), decode_one, bench, err);
        passed = (double)(tdmi_clock_ns() - began) * 1e-9;
        n_passes += n_at_once;
    }
    if (status == TDM_OK) {
        const double n = (double)(n_passes * bench->n_files);
        const double work = (double)(clock() - worked) / CLOCKS_PER_SEC;
        printf("%d files, %lld passes; images/s: %.1f; images/s of processor time: %.1f\n",
               bench->n_files, (long long)n_passes, n / passed, n / work);
    }
    tdmi_pool_free(pool);
    return status;
}

int main(int n_words, char **words)
{
    enum { FIRST_FILE = 5 };
    static const char *const ways[] = {"ours", "draft", "bare", "write", "write-draft"};
    size_t way = 0;
    while (n_words > FIRST_FILE && way < 5 && strcmp(words[1], ways[way]) != 0)
        way++;
    if (n_words <= FIRST_FILE || way == 5) {
        fprintf(stderr, "usage: decode ours|draft|bare|write|write-draft SIDE THREADS SECONDS "
                        "FILE...\n");
        return 2;
    }
    struct bench bench = {.is_bare = way == 2,
                          .is_draft = way == 1 || way == 4,
                          .is_writing = way >= 3,
                          .side = (int)strtol(words[2], NULL, 10),
                          .n_workers = (int)strtol(words[3], NULL, 10),
                          .n_files = n_words - FIRST_FILE};
    const double seconds = strtod(words[4], NULL);
    tdm_error err = {0};
    tdm_status status = TDM_E_USAGE;
    if (bench.side < 1 || bench.n_workers < 1)
        fprintf(stderr, "SIDE and THREADS must be 1 or more\n");
    else if ((status = prepare(&bench, words + FIRST_FILE, &err)) == TDM_OK)
        status = bench.is_writing ? write_inputs(&bench, &err) : measure(&bench, seconds, &err);
    for (int i = err.n_frames - 1; i >= 0; i--)
        fprintf(stderr, "%s\n", tdm_error_sentence(&err, i));
    release(&bench);
    return status == TDM_OK ? 0 : 1;
}
