/*
 * The loader: from positions of an epoch to batches of pixels, ahead of whoever asks.
 *
 *     read ▸ decode ▸ preprocess            a ring of slots, allocated once
 *     threads of the loader   ──────►   [ batch k | batch k+1 | batch k+2 ]   ──►  next()
 *
 * A slot belongs to the loader while it is filled and to the caller from next() until the following
 * next() or seek. Batches arrive in order; the last one of an epoch is shorter, never padded. A
 * picture that cannot be read keeps its position with label -1 and is counted and named; what a
 * batch holds and which pictures are named never depends on the number of threads.
 *
 * One thread at a time may call seek, next and close; the queries may come from any.
 */
#ifndef TANDEM_DATA_LOADER_H
#define TANDEM_DATA_LOADER_H

#include "data/order.h"
#include "data/source.h"
#include "image/preprocess.h"

enum { TDMI_PROBLEM_BYTES = 400 };

struct tdmi_batch {
    int n;                 /* positions in this batch */
    int64_t first;         /* position of its first sample in the epoch */
    const uint8_t *pixels; /* (n, height, width, channels); of a skipped picture 0 */
    const int32_t *labels; /* -1: unlabelled, of a class the model does not know, or skipped */
    const int64_t *items;  /* item of the source at each position */
    /* "" or why the picture at a position was skipped, its path first. */
    const char (*problems)[TDMI_PROBLEM_BYTES];
};

struct tdmi_loader_options {
    const tdmi_source *source;
    struct tdmi_preprocess preprocess;
    const int64_t
        *items; /* the subset that is read, lent for the loader's life; order is over it */
    int64_t n_items;
    const int *label_map; /* source label -> model label or -1, lent too; NULL: as they are */
    uint64_t seed;
    bool is_shuffled;
    int batch;
    int threads; /* at least 1 */
    int depth;   /* slots; 0: 3 */
};

typedef struct tdmi_loader tdmi_loader;

/* Starts the threads; nothing is read before tdmi_loader_seek. */
tdm_status tdmi_loader_open(const struct tdmi_loader_options *options, tdmi_loader **loader,
                            tdm_error *err) TDM_MUST_USE;
/* Stops and joins the threads. */
void tdmi_loader_close(tdmi_loader *loader);

/* Begin at any position (a multiple of batch, or the end) of any epoch: O(1). What was being read
 * is dropped. */
tdm_status tdmi_loader_seek(tdmi_loader *loader, uint32_t epoch, int64_t position,
                            tdm_error *err) TDM_MUST_USE;
/* Waits for the next batch; NULL at the end of the epoch. Running out of memory while reading is
 * TDM_E_MEMORY, here and in every later call. */
tdm_status tdmi_loader_next(tdmi_loader *loader, const struct tdmi_batch **batch,
                            tdm_error *err) TDM_MUST_USE;

/* Distinct pictures skipped in the batches handed out so far, and the sentence about the i-th, in
 * the order they came, for the record. */
int64_t tdmi_loader_skipped(const tdmi_loader *loader);
/* false past the end; the first 100 are kept. Copies the problem, cut to fit. */
bool tdmi_loader_skip_at(const tdmi_loader *loader, int64_t index, char *text, size_t text_bytes);

#endif
