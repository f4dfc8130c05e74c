/*
 * How fast pictures come out of Parquet:
 *
 *     parquet_read write FILE SIDE N [snappy|zstd]     raw pictures of SIDE x SIDE, as prepare
 * writes them parquet_read rows|shuffled PATH THREADS SECONDS [HEIGHTxWIDTHxCHANNELS]
 *
 * "rows" asks for them in the order of the file, "shuffled" in a random one (groups, then rows
 * within, where the table has groups). Raw pictures go into memory of the caller, others into a
 * text. Prints MB/s of pictures, repeated in whole passes until SECONDS are over.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/parquet/write.h"
#include "data/source/source.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURES_A_TASK = 64, LARGEST_THREADS = 64 };

static int fail(const tdm_error *err)
{
    char text[8000];
    tdm_error_format(err, text, sizeof text);
    fputs(text, stderr);
    return 1;
}

/* ---- write -------------------------------------------------------------------------------------
 */

static tdm_status to_file(void *self, const void *bytes, size_t n_bytes, tdm_error *err)
{
    return fwrite(bytes, 1, n_bytes, self) == n_bytes
               ? TDM_OK
               : TDM_FAIL(err, TDM_E_SYSTEM, "cannot write the file");
}

static int write_file(const char *path, int side, int n, const char *codec)
{
    FILE *file = fopen(path, "wb");
    size_t n_bytes = (size_t)side * (size_t)side * 3;
    uint8_t *pixels = tdmi_alloc(n_bytes, 1);
    if (file == NULL || pixels == NULL)
        return perror(path), 1;
    struct tdmi_byte_sink sink = {file, to_file};
    struct tdmi_parquet_write_options options = {.raw_shape = {side, side, 3},
                                                 .column_codec = TDMI_ARROW_ZSTD};
    if (codec != NULL)
        options.image_codec = strcmp(codec, "zstd") == 0 ? TDMI_ARROW_ZSTD : TDMI_ARROW_SNAPPY;
    tdmi_parquet_writer *writer = NULL;
    tdm_error err = {0};
    if (tdmi_parquet_writer_open(&sink, &options, &writer, &err) != TDM_OK)
        return fail(&err);
    uint64_t state = 1;
    for (int i = 0; i < n; i++) {
        for (size_t b = 0; b + 8 <= n_bytes; b += 8) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            memcpy(pixels + b, &state, 8);
        }
        char name[32];
        snprintf(name, sizeof name, "%d.ppm", i);
        struct tdmi_parquet_row row = {.image = pixels,
                                       .image_bytes = n_bytes,
                                       .label = i % 10,
                                       .class_name = i % 2 ? "a" : "b",
                                       .path = name,
                                       .split = "train",
                                       .width = side,
                                       .height = side,
                                       .hash = state};
        row.class_name = (const char *[]){"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}[i % 10];
        if (tdmi_parquet_writer_add(writer, &row, &err) != TDM_OK)
            return fail(&err);
    }
    if (tdmi_parquet_writer_finish(writer, &err) != TDM_OK)
        return fail(&err);
    tdmi_parquet_writer_free(writer);
    tdmi_free(pixels);
    return fclose(file) == 0 ? 0 : 1;
}

/* ---- read ---------------------------------------------------------------------------------------
 */

struct reading {
    const tdmi_source *source;
    const int64_t *order;
    bool is_raw;
    size_t raw_bytes;
    struct {
        tdmi_text text;
        uint8_t *pixels;
        int64_t n_bytes;
    } workers[LARGEST_THREADS];
};

static tdm_status read_some(void *self, int index, int worker, tdm_error *err)
{
    struct reading *reading = self;
    int64_t n = tdmi_source_items(reading->source), first = (int64_t)index * PICTURES_A_TASK;
    for (int64_t i = first; i < n && i < first + PICTURES_A_TASK; i++) {
        int64_t item = reading->order[i];
        if (reading->is_raw) {
            TDM_TRY(
                tdmi_source_read_raw(reading->source, item, reading->workers[worker].pixels, err),
                err, "cannot read");
            reading->workers[worker].n_bytes += (int64_t)reading->raw_bytes;
        } else {
            tdmi_text *text = &reading->workers[worker].text;
            TDM_TRY(tdmi_source_read(reading->source, item, text, err), err, "cannot read");
            reading->workers[worker].n_bytes += (int64_t)text->length_bytes;
        }
    }
    return TDM_OK;
}

static void shuffle(int64_t *order, int64_t n, uint64_t *state)
{
    for (int64_t i = n - 1; i > 0; i--) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        int64_t j = (int64_t)((*state >> 33) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* All at random; or, where there are groups, sixteen neighbouring ones at a time. */
static void shuffle_order(const tdmi_source *source, int64_t *order)
{
    uint64_t state = 7;
    int64_t n_groups = tdmi_source_groups(source);
    if (n_groups == 0)
        shuffle(order, tdmi_source_items(source), &state);
    for (int64_t g = 0; g < n_groups; g += 16) {
        int64_t first = tdmi_source_group_first(source, g);
        int64_t end = tdmi_source_group_first(source, g + 16 < n_groups ? g + 16 : n_groups);
        shuffle(order + first, end - first, &state);
    }
}

static int read_table(const char *mode, const char *path, int n_threads, double seconds,
                      const char *shape)
{
    struct reading reading = {0};
    struct tdm_source_options options = {.raw_shape = shape};
    struct tdmi_raw_shape raw;
    tdmi_source *source = NULL;
    tdmi_pool *pool = NULL;
    tdm_error err = {0};
    if (tdmi_source_open(path, &options, &source, &err) != TDM_OK ||
        tdmi_pool_new(n_threads, NULL, &pool, &err) != TDM_OK)
        return fail(&err);
    int64_t n = tdmi_source_items(source), n_bytes = 0, passes = 0;
    int64_t *order = tdmi_alloc((size_t)n, sizeof *order);
    if (order == NULL || n_threads > LARGEST_THREADS)
        return 1;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    if (strcmp(mode, "shuffled") == 0)
        shuffle_order(source, order);
    reading.source = source;
    reading.order = order;
    reading.is_raw = tdmi_source_raw_shape(source, &raw);
    reading.raw_bytes = (size_t)raw.height * (size_t)raw.width * (size_t)raw.channels;
    for (int w = 0; w < n_threads; w++)
        if ((reading.workers[w].pixels = tdmi_alloc(reading.raw_bytes + 1, 1)) == NULL)
            return 1;
    int64_t began = tdmi_clock_ns(), now = began;
    while ((double)(now - began) < seconds * 1e9 || passes == 0) {
        int n_tasks = (int)((n + PICTURES_A_TASK - 1) / PICTURES_A_TASK);
        if (tdmi_pool_run(pool, n_tasks, read_some, &reading, &err) != TDM_OK)
            return fail(&err);
        now = tdmi_clock_ns();
        passes++;
    }
    for (int w = 0; w < n_threads; w++) {
        n_bytes += reading.workers[w].n_bytes;
        tdmi_free(reading.workers[w].pixels);
        tdmi_text_release(&reading.workers[w].text);
    }
    double taken = (double)(now - began) / 1e9;
    printf("%.1f MB/s, %.1f pictures/s, %lld passes\n", (double)n_bytes / taken / 1e6,
           (double)(n * passes) / taken, (long long)passes);
    tdmi_pool_free(pool);
    tdmi_source_close(source);
    tdmi_free(order);
    return 0;
}

int main(int n_arguments, char **arguments)
{
    if (n_arguments >= 5 && strcmp(arguments[1], "write") == 0)
        return write_file(arguments[2], (int)strtol(arguments[3], NULL, 10),
                          (int)strtol(arguments[4], NULL, 10),
                          n_arguments > 5 ? arguments[5] : NULL);
    if (n_arguments >= 5)
        return read_table(arguments[1], arguments[2], (int)strtol(arguments[3], NULL, 10),
                          strtod(arguments[4], NULL), n_arguments > 5 ? arguments[5] : NULL);
    fputs("parquet_read write FILE SIDE N [snappy|zstd]\n"
          "parquet_read rows|shuffled PATH THREADS SECONDS [SHAPE]\n",
          stderr);
    return 2;
}
