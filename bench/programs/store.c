/*
 * The store of rows against the plain calls of the system. FOLDER is made and filled anew by fill
 * and plain, and read by the others.
 *
 *     store fill FOLDER ROWS WIDTH [f16]   fills a store and commits: MB/s of what lies on disk
 *     store plain FOLDER ROWS WIDTH        the same bytes in one file by write, then fsync: MB/s
 *     store read FOLDER ROWS WIDTH         finds and reads all rows in random order: rows/s
 *     store pread FOLDER ROWS WIDTH        as many preads of a plain file in that order: rows/s
 *     store open FOLDER WIDTH              opens the store: ms, the best of five
 */
#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "features/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POOL_ROWS = 64 };

struct job {
    const char *what, *folder;
    int64_t n_rows;
    int width;
    enum tdmi_dtype precision;
    float *pool; /* POOL_ROWS rows that are stored again and again */
};

static void check(tdm_status status, const tdm_error *err)
{
    if (status == TDM_OK)
        return;
    fprintf(stderr, "%s\n", tdm_error_sentence(err, 0));
    exit(1);
}

static void check_call(bool is_good, const char *what)
{
    if (is_good)
        return;
    perror(what);
    exit(1);
}

static tdmi_store *open_store(const struct job *job)
{
    const struct tdmi_store_options options = {.folder = job->folder,
                                               .key = "{\"bench\":1}",
                                               .width = job->width,
                                               .limit_bytes = (int64_t)1 << 50};
    tdmi_store *store = NULL;
    tdm_error err = {0};
    check(tdmi_store_open(&options, &store, &err), &err);
    return store;
}

static struct tdmi_store_row row_of(int64_t number)
{
    return (struct tdmi_store_row){.content = tdmi_xxh64_of(&number, sizeof number, 0)};
}

/* A permutation of [0, n), so that neighbours in time are no neighbours on disk. */
static int64_t *random_order(int64_t n)
{
    int64_t *order = tdmi_alloc((size_t)n, sizeof *order);
    check_call(order != NULL, "memory");
    for (int64_t i = 0; i < n; i++) {
        const int64_t other = (int64_t)(tdmi_xxh64_of(&i, sizeof i, 1) % (uint64_t)(i + 1));
        order[i] = order[other];
        order[other] = i;
    }
    return order;
}

static void plain_path(const struct job *job, char path[512])
{
    snprintf(path, 512, "%s/plain", job->folder);
}

static void fill(const struct job *job)
{
    tdm_error err = {0};
    tdmi_store *store = open_store(job);
    const int64_t begun = tdmi_clock_ns();
    check(tdmi_store_fill_begin(store, job->n_rows, job->precision, &err), &err);
    for (int64_t i = 0; i < job->n_rows; i++)
        check(tdmi_store_fill_add(store, row_of(i), job->pool + i % POOL_ROWS * job->width, &err),
              &err);
    check(tdmi_store_fill_commit(store, &err), &err);
    const double seconds = tdmi_clock_seconds_since(begun);
    printf("%.1f MB/s\n", (double)job->n_rows * job->width *
                              (job->precision == TDMI_DTYPE_F16 ? 2 : 4) / 1e6 / seconds);
    tdmi_store_close(store);
}

static void plain(const struct job *job)
{
    char path[512];
    plain_path(job, path);
    const size_t row_bytes = (size_t)job->width * sizeof *job->pool;
    check_call(mkdir(job->folder, 0777) == 0 || access(job->folder, W_OK) == 0, job->folder);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    check_call(file >= 0, path);
    const int64_t begun = tdmi_clock_ns();
    for (int64_t i = 0; i < job->n_rows; i += POOL_ROWS) {
        const size_t n = job->n_rows - i < POOL_ROWS ? (size_t)(job->n_rows - i) : POOL_ROWS;
        check_call(write(file, job->pool, n * row_bytes) == (ssize_t)(n * row_bytes), path);
    }
    check_call(fsync(file) == 0 && close(file) == 0, path);
    printf("%.1f MB/s\n",
           (double)job->n_rows * (double)row_bytes / 1e6 / tdmi_clock_seconds_since(begun));
}

static void read_rows(const struct job *job)
{
    tdm_error err = {0};
    tdmi_store *store = open_store(job);
    int64_t *order = random_order(job->n_rows);
    float *row = tdmi_alloc((size_t)job->width, sizeof *row);
    check_call(row != NULL, "memory");
    for (int turn = 0; turn < 2; turn++) { /* the first fills the page cache */
        const int64_t begun = tdmi_clock_ns();
        for (int64_t i = 0; i < job->n_rows; i++)
            check(tdmi_store_read(store, tdmi_store_find(store, row_of(order[i])), row, &err),
                  &err);
        if (turn == 1)
            printf("%.0f rows/s\n", (double)job->n_rows / tdmi_clock_seconds_since(begun));
    }
    tdmi_free(order);
    tdmi_free(row);
    tdmi_store_close(store);
}

static void pread_rows(const struct job *job)
{
    char path[512];
    plain_path(job, path);
    const size_t row_bytes = (size_t)job->width * sizeof *job->pool;
    int64_t *order = random_order(job->n_rows);
    float *row = tdmi_alloc((size_t)job->width, sizeof *row);
    int file = open(path, O_RDONLY);
    check_call(row != NULL && file >= 0, path);
    for (int turn = 0; turn < 2; turn++) {
        const int64_t begun = tdmi_clock_ns();
        for (int64_t i = 0; i < job->n_rows; i++)
            check_call(pread(file, row, row_bytes, (off_t)(order[i] * (int64_t)row_bytes)) ==
                           (ssize_t)row_bytes,
                       path);
        if (turn == 1)
            printf("%.0f rows/s\n", (double)job->n_rows / tdmi_clock_seconds_since(begun));
    }
    tdmi_free(order);
    tdmi_free(row);
    close(file);
}

static void open_only(const struct job *job)
{
    double best = 1e9;
    int64_t n_rows = 0;
    for (int i = 0; i < 5; i++) {
        const int64_t begun = tdmi_clock_ns();
        tdmi_store *store = open_store(job);
        const double seconds = tdmi_clock_seconds_since(begun);
        best = seconds < best ? seconds : best;
        n_rows = tdmi_store_rows(store);
        tdmi_store_close(store);
    }
    printf("%.1f ms for %" PRId64 " rows\n", best * 1e3, n_rows);
}

int main(int argc, char **argv)
{
    struct job job = {.precision = TDMI_DTYPE_F32};
    const bool is_open = argc == 4 && strcmp(argv[1], "open") == 0;
    if (!is_open && argc != 5 && !(argc == 6 && strcmp(argv[5], "f16") == 0)) {
        fprintf(stderr, "usage: store fill|plain|read|pread FOLDER ROWS WIDTH [f16], "
                        "store open FOLDER WIDTH\n");
        return 2;
    }
    job.what = argv[1];
    job.folder = argv[2];
    job.n_rows = is_open ? 0 : strtoll(argv[3], NULL, 10);
    job.width = (int)strtol(argv[is_open ? 3 : 4], NULL, 10);
    if (argc == 6)
        job.precision = TDMI_DTYPE_F16;
    if (job.n_rows < 0 || job.width < 1)
        return 2;
    job.pool = tdmi_alloc((size_t)job.width * POOL_ROWS, sizeof *job.pool);
    check_call(job.pool != NULL, "memory");
    for (int64_t i = 0; i < (int64_t)job.width * POOL_ROWS; i++)
        job.pool[i] = (float)(tdmi_xxh64_of(&i, sizeof i, 2) % 100000) / 1000;
    if (strcmp(job.what, "fill") == 0)
        fill(&job);
    else if (strcmp(job.what, "plain") == 0)
        plain(&job);
    else if (strcmp(job.what, "read") == 0)
        read_rows(&job);
    else if (strcmp(job.what, "pread") == 0)
        pread_rows(&job);
    else if (is_open)
        open_only(&job);
    tdmi_free(job.pool);
    return 0;
}
