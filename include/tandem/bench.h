/*
 * What this machine reaches, with the ceiling beside it, measured in the same run and in turn.
 */
#ifndef TANDEM_BENCH_H
#define TANDEM_BENCH_H

#include "tandem/error.h"
#include "tandem/source.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- loader: from a source to batches ------------------------------------------------------- */

/* Start from tdm_bench_loader_options_default() and change fields. Strings are lent for the call.
 */
struct tdm_bench_loader_options {
    const char *source;
    struct tdm_source_options how; /* where the path does not say it */
    int size;                      /* of the batch's pictures, square; 1 to 4096 */
    int threads;                   /* 0: all usable CPUs */
    int batch;                     /* pictures, 1 to 65536 */
    double seconds;                /* of measuring, 0.5 to 3600 */
    const char *augment;           /* what is done to pictures: "flip,crop:4"; NULL: nothing */
    uint64_t seed;
};

struct tdm_bench_stage {
    int64_t images, bytes; /* that went through it; bytes as they left it */
    double seconds;        /* that threads spent in it, added up */
};

struct tdm_bench_rate {
    double median, low, high; /* over the rounds */
};

struct tdm_bench_loader {
    struct tdm_bench_rate loader; /* images per second, as below */
    /* Decoding and scaling alone: the same pictures, their files in memory, the same number of
     * threads, nothing else. For raw pixels of that size: reading them alone. */
    struct tdm_bench_rate ceiling;
    struct tdm_bench_rate fraction; /* loader / ceiling of the same round */
    /* The same three per second of processor time: what other programs on the machine change
     * least. */
    struct tdm_bench_rate loader_processor, ceiling_processor, fraction_processor;
    double milliseconds; /* a batch, at the loader's median */
    int rounds, threads;
    int64_t images;  /* handed out while measured */
    int64_t skipped; /* different pictures met that could not be read or decoded */
    int64_t others;  /* files of the source that are no pictures */
    int64_t source_images;
    bool is_raw;     /* pixels as they are stored, no decoding */
    bool uses_draft; /* large JPEG pictures are decoded at a fraction of their size */
    struct tdm_bench_stage read, decode, augment;
    double consumer_wait_seconds; /* the caller waited for a batch */
    double ring_wait_seconds;     /* threads waited for a slot, added up */
    char kind[32];                /* of the source: "folder" */
};

TDM_API struct tdm_bench_loader_options tdm_bench_loader_options_default(void);
/* Shuffled batches, nothing cached but what the system caches. TDM_E_INPUT where there is no
 * source; pictures that cannot be used are counted. */
TDM_API tdm_status tdm_bench_loader(const struct tdm_bench_loader_options *options,
                                    struct tdm_bench_loader *result, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
