/* As bench/programs/archive.c, through libzip: a handle is for one thread, so each thread opens its
 * own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zip.h>

enum { MOST_THREADS = 64 };

struct reader {
    const char *path;
    int first, step, has_failed;
    long long n, bytes;
};

static void *read_share(void *self)
{
    struct reader *reader = self;
    char *bytes = NULL;
    zip_uint64_t room = 0;
    zip_t *zip = zip_open(reader->path, ZIP_RDONLY, NULL);
    if (zip == NULL) {
        reader->has_failed = 1;
        return NULL;
    }
    reader->n = zip_get_num_entries(zip, 0);
    for (long long i = reader->first; i < reader->n; i += reader->step) {
        zip_stat_t facts;
        zip_stat_index(zip, (zip_uint64_t)i, 0, &facts);
        if (facts.size > room) {
            room = 2 * facts.size;
            bytes = realloc(bytes, room);
        }
        zip_file_t *file = zip_fopen_index(zip, (zip_uint64_t)i, 0);
        zip_int64_t got = file == NULL ? -1 : zip_fread(file, bytes, facts.size);
        reader->has_failed |= got != (zip_int64_t)facts.size;
        reader->bytes += got;
        if (file != NULL)
            zip_fclose(file);
    }
    zip_close(zip);
    free(bytes);
    return NULL;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct reader readers[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    int n_threads = argc == 3 ? atoi(argv[2]) : 0, has_failed = 0;
    long long bytes = 0;
    if (n_threads < 1 || n_threads > MOST_THREADS)
        return 2;
    double start = now();
    for (int t = 0; t < n_threads; t++) {
        readers[t] = (struct reader){.path = argv[1], .first = t, .step = n_threads};
        pthread_create(&threads[t], NULL, read_share, &readers[t]);
    }
    for (int t = 0; t < n_threads; t++) {
        pthread_join(threads[t], NULL);
        bytes += readers[t].bytes;
        has_failed |= readers[t].has_failed;
    }
    printf("%.0f entries/s (%lld entries, %lld bytes)\n", (double)readers[0].n / (now() - start),
           readers[0].n, bytes);
    return has_failed;
}
