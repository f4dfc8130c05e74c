/*
 * Reads every entry of a zip or tar once: archive ARCHIVE THREADS. Thread t takes every entry whose
 * number leaves the remainder t, which is how far apart a shuffled epoch asks. The time covers
 * opening.
 */
#include "base/clock.h"
#include "io/archive/archive.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

struct reader {
    const tdmi_archive *archive;
    int first, step;
    int64_t bytes;
    bool has_failed;
};

static void *read_share(void *self)
{
    struct reader *reader = self;
    tdmi_text bytes = {0};
    int64_t n = tdmi_archive_entries(reader->archive);
    for (int64_t i = reader->first; i < n; i += reader->step) {
        reader->has_failed |=
            tdmi_archive_read(reader->archive, i, INT64_MAX, &bytes, NULL) != TDM_OK;
        reader->bytes += (int64_t)bytes.length_bytes;
    }
    tdmi_text_release(&bytes);
    return NULL;
}

int main(int argc, char **argv)
{
    tdmi_archive *archive = NULL;
    tdm_error err = {0};
    struct reader readers[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    int n_threads = argc == 3 ? (int)strtol(argv[2], NULL, 10) : 0;
    if (n_threads < 1 || n_threads > MOST_THREADS) {
        fprintf(stderr, "usage: archive ARCHIVE THREADS\n");
        return 2;
    }
    int64_t start = tdmi_clock_ns(), bytes = 0;
    if (tdmi_archive_open(argv[1], &archive, &err) != TDM_OK) {
        fprintf(stderr, "%s\n", tdm_error_sentence(&err, 0));
        return 1;
    }
    int64_t opened = tdmi_clock_ns(), n = tdmi_archive_entries(archive);
    bool has_failed = false;
    for (int t = 0; t < n_threads; t++) {
        readers[t] = (struct reader){.archive = archive, .first = t, .step = n_threads};
        if (pthread_create(&threads[t], NULL, read_share, &readers[t]) != 0)
            return 1;
    }
    for (int t = 0; t < n_threads; t++) {
        pthread_join(threads[t], NULL);
        bytes += readers[t].bytes;
        has_failed |= readers[t].has_failed;
    }
    double seconds = (double)(tdmi_clock_ns() - start) / 1e9;
    printf("%.0f entries/s (%" PRId64 " entries, %" PRId64 " bytes, opened in %.3f s)\n",
           (double)n / seconds, n, bytes, (double)(opened - start) / 1e9);
    tdmi_archive_close(archive);
    return has_failed ? 1 : 0;
}
