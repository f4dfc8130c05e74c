/*
 * The internals of a loader, shared by the file that makes it (loader/open.c) and the one that runs
 * it (loader.c).
 */
#pragma once

#include "data/loader/picture.h"

/* Number of threads and slots, chosen from measurements by a pure function (tune.c), so that tests
 * can feed it numbers; the delivered batches do not depend on it. */
struct tdmi_tuning {
    int threads, depth; /* now, at least 1 */
    int most_threads, most_depth;
    int given_back; /* number of threads before the last was stopped; 0: none was */
    int floor;      /* fewest threads to keep, since fewer made the caller wait */
};

/* A stretch of time inside an epoch. */
struct tdmi_tuning_sample {
    double seconds;
    double consumer_waits; /* the caller had nothing to do */
    double ring_waits;     /* active threads had nothing to do, added up */
};

/* Change threads or depth by one and return the reason; NULL: no change. Static storage. */
const char *tdmi_tuning_step(struct tdmi_tuning *tuning, const struct tdmi_tuning_sample *sample);

struct tdmi_batch_slot {
    void *values;
    int32_t *labels;
    int64_t *items;
    int64_t *samples;              /* index into the loader's subset */
    struct tdmi_augment_key *keys; /* NULL: the consumer of the batches applies no changes */
    char (*problems)[TDMI_PROBLEM_BYTES];
    int n_missing; /* guarded by the lock, as everything the threads share below */
};

/* Private data of one worker thread. */
struct tdmi_loader_worker {
    tdmi_loader *loader;
    int number; /* works while it is below tuning.threads */
    pthread_t thread;
    struct tdmi_picture_scratch scratch;
};

/* A moment, for differences. */
struct tdmi_loader_clock {
    int64_t at_ns, consumer_ns, ring_ns;
    int64_t n_batches;
};

struct tdmi_loader {
    struct tdmi_loader_options options;
    bool has_rest;       /* the consumer of the batches applies some random changes */
    int64_t n_positions; /* of an epoch */
    int64_t n_samples;   /* of the subset */
    tdmi_order in_file_order;
    const tdmi_order *order;
    struct tdmi_picture_pipeline pipeline;
    struct tdmi_batch_slot *slots;
    int n_slots;
    int slot_positions; /* that a slot has room for */
    struct tdmi_loader_worker *workers;
    int n_workers; /* started */
    int most_threads;
    int at_once; /* positions that a thread claims, where they are of one batch */
    int64_t memory_bytes;
    int64_t cache_limit; /* bytes that a cache in memory may take */
    bool is_undecided;   /* a cache of encoded images waits for the first rates */
    enum tdmi_cache_kind cache;
    char cache_note[200];

    pthread_mutex_t large; /* held while decoding an image that exceeds the thread's memory share */
    pthread_mutex_t lock;
    pthread_cond_t work;  /* there may be positions to claim, or the loader is stopping */
    pthread_cond_t ready; /* a slot is full, no thread is working any more, or the loader failed */

    bool is_stopping, is_seeking, has_begun;
    uint32_t epoch;
    int64_t claimed; /* positions below it are handed to threads */
    int64_t held;    /* first position the caller has not moved past: slots start here */
    int64_t next;    /* first position of the batch that next() hands out */
    int n_in_work;
    tdm_error failure; /* code TDM_OK while all is well */

    struct tdmi_tuning tuning;
    struct tdmi_stage_times times;     /* of all threads */
    int n_idle;                        /* active threads that wait for a slot */
    int64_t idle_since_ns;             /* when that last changed */
    struct tdmi_loader_clock now;      /* sums so far; at_ns: time inside epochs */
    struct tdmi_loader_clock measured; /* start of the interval that tuning measures */
    int64_t delivered_ns;              /* time of the last batch handed out, or of the seek */
    int64_t n_handed_out, n_pictures;  /* batches, and what was in them */

    struct tdmi_batch batch; /* what next() shows */
    uint8_t *is_skipped;     /* a bit per sample: already counted */
    int64_t n_skipped;
    tdmi_lost_rows lost;
    struct tdmi_skip *skips;
};

/* The thread's function: loader.c. self is a struct tdmi_loader_worker. */
void *tdmi_loader_work(void *self);
/* Called with the lock held once the first images have been read: decide whether a cache of encoded
 * images is worth its memory (loader/open.c). */
void tdmi_loader_decide(tdmi_loader *loader);
