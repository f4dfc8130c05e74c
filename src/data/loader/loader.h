/*
 * The loader: from positions of an epoch to batches of pixels, prefetched ahead of the caller.
 *
 *     read ▸ decode ▸ augment               a ring of slots, allocated once
 *     threads of the loader   ──────►   [ batch k | batch k+1 | batch k+2 ]   ──►  next()
 *
 * A slot belongs to the loader while it is filled and to the caller from next() until the following
 * next() or seek. Batches arrive in order; the last one of an epoch is shorter, never padded. An
 * image that cannot be read keeps its position with label -1 and is named; the content of a batch
 * and the images named never depend on threads, depth, caches or restarts.
 *
 * One thread at a time may call seek, next and close; the queries may come from any.
 */
#pragma once

#include "base/scope.h"
#include "base/system/placement.h"
#include "base/trace.h"
#include "data/order/order.h"
#include "data/source/source.h"
#include "image/augment/augment.h"
#include "image/decoder.h"
#include "image/preprocess.h"

enum { TDMI_PROBLEM_BYTES = 400 };

/* A batch may be a part of a whole one, of which other ranks have the rest. n 0: it is whole. */
struct tdmi_batch_whole {
    int first, n; /* place of its first position there; positions of the whole batch */
};

struct tdmi_batch {
    int n; /* positions in this batch */
    struct tdmi_batch_whole whole;
    int64_t first;         /* position of its first sample in the epoch */
    const void *values;    /* (n, height, width, channels); bytes of a skipped image are 0 */
    const uint8_t *pixels; /* the same; NULL where values are feature rows */
    /* pixels is an address on the device that computes; loaders leave it false. */
    bool is_on_device;
    const int32_t *labels; /* -1: unlabelled, of a class the model does not know, or skipped */
    const int64_t *items;  /* item of the source at each position */
    /* Indices of cached feature rows on a device; values and pixels are then unused. Loaders leave
     * it NULL. */
    const int64_t *rows;
    /* Keys of the random draws of each position, where the consumer applies the remaining changes
     * (options.leaves_rest); else NULL. */
    const struct tdmi_augment_key *keys;
    /* "" or why the image at a position was skipped, its path first. */
    const char (*problems)[TDMI_PROBLEM_BYTES];
};

/* Cache for images that were read. It never changes the delivered values.
 *
 *   DECODED  their pixels as they go into a batch (before random changes), in memory; not where
 *            each epoch takes another part of the image: then ENCODED
 *   ENCODED  their files, in memory, as many as fit
 *   DISK     their files, by content, below a folder that processes and runs share
 *   AUTO     decoded where the whole subset fits; for a source in an object store: disk; else
 *            encoded when reading turns out to be slow; else none */
enum tdmi_cache_kind {
    TDMI_CACHE_NONE,
    TDMI_CACHE_AUTO,
    TDMI_CACHE_ENCODED,
    TDMI_CACHE_DECODED,
    TDMI_CACHE_DISK
};
/* In words: "none", "auto", "encoded", "decoded", "disk". TDM_E_USAGE lists them. */
tdm_status tdmi_cache_kind_find(const char *word, enum tdmi_cache_kind *kind,
                                tdm_error *err) TDM_MUST_USE;

struct tdmi_loader_cache {
    enum tdmi_cache_kind kind;
    /* Content hash of every item of the source, lent; what the disk cache goes by. An item with 0
     * is not kept there. NULL: the source's own. */
    const uint64_t *hashes;
    const char *folder; /* of the disk cache; NULL: TANDEM_HOME/pictures */
    int64_t disk_bytes; /* its limit; 0: 8 GiB */
};

/* Memory for the ring's values, such as pinned memory; zeroed: ordinary memory. */
struct tdmi_loader_allocator {
    void *(*alloc)(void *self, size_t bytes); /* aligned to 64; NULL: no memory */
    void (*free)(void *self, void *block);
    void *self;
};

/* Views of images: changes that come again. Draws then go by (augment_seed, content, view), the
 * content as the store of rows has it (tdmi_source_bytes_key). */
struct tdmi_loader_views {
    uint32_t n; /* of each image, which tdmi_order_view chooses from; 0: every epoch draws anew */
    const uint32_t *given; /* by place in the subset, lent: which one, instead; n is above 0 */
};

/* The part of every batch that is read here, where other ranks read the rest. */
struct tdmi_loader_part {
    /* Places [first, end) of a batch of n positions; NULL: all of them. */
    void (*find)(const void *self, int n, int *first, int *end);
    const void *self; /* lent for the loader's life */
    int most;         /* positions of such a part */
};

struct tdmi_loader_options {
    const tdmi_source *source;
    struct tdmi_preprocess preprocess;
    /* Augmentation of single images; mixing images of a group is part of the step. Draws depend on
     * (augment_seed, epoch, item, repeat of the order), or on views. */
    struct tdmi_augment augment;
    /* Leave the rest of the augmentation (tdmi_augment_divide) to the consumer of the batches and
     * deliver its keys.
     */
    bool leaves_rest;
    uint64_t augment_seed;
    struct tdmi_loader_views views;
    bool is_strict; /* damaged images (tdmi_image_limits) are problems too */
    /* The subset that is read, lent for the loader's life; NULL: every item of the source. */
    const int64_t *items;
    int64_t n_items;
    const tdmi_order *order; /* over the subset, lent too; NULL: as the subset stands */
    const int *label_map;    /* source label -> model label or -1, lent too; NULL: as they are */
    /* Content hash of every item as it was read before, lent too: one that cannot be read any more,
     * or holds other bytes now, ends the reading with TDM_E_INPUT. NULL, or 0 of an item: what it
     * was is not known, and what is wrong with it is a problem of that picture. */
    const uint64_t *contents;
    int batch;
    struct tdmi_loader_part part;
    bool waits_on; /* a requested stop does not end the wait for a batch: ranks stop together */
    int threads;   /* at most; at least 1 */
    /* CPUs of the threads and the share of free memory, lent for the loader's life; NULL: any CPU,
     * all memory. */
    const struct tdmi_placement *placement;
    int depth; /* slots at most; 0: 3 */
    /* Begin with one thread and find by measurement how many, and how many slots, are of use. */
    bool is_tuned;
    /* Ring, caches and working memory together stay inside; fewer slots and threads are taken where
     * need be. 0: no limit, and caches in memory take at most a quarter of what is free. */
    int64_t memory_bytes;
    int memory_parts; /* of --memory, for the error when it is too small; 0: no such option */
    int64_t spoken_for_bytes; /* memory reserved for others: not for caches */
    struct tdmi_loader_cache cache;
    struct tdmi_loader_allocator allocator;
    /* Decoder for the files that it supports (image/decoder.h), lent for the loader's life; NULL:
     * every file is decoded here, as are files of sources that store images in their original size.
     */
    const struct tdmi_decoder *decoder;
    tdmi_trace *trace; /* records what the loader's threads do; lent for its life; NULL: nothing */
};

typedef struct tdmi_loader tdmi_loader;

/* Bytes that a thread needs to read images for this target size: a usual photo, decoded in full. */
int64_t tdmi_loader_scratch_bytes(int width, int height);

/* Starts the threads; nothing is read before tdmi_loader_seek. TDM_E_USAGE with what is needed when
 * memory_bytes is too small for one batch and one thread. */
tdm_status tdmi_loader_open(const struct tdmi_loader_options *options, tdmi_loader **loader,
                            tdm_error *err) TDM_MUST_USE;
/* Stops and joins the threads. */
void tdmi_loader_close(tdmi_loader *loader);
TDMI_POINTER_RELEASE(tdmi_loader, tdmi_loader_close)

/* Begin at any position (a multiple of batch, or the end) of any epoch: O(1). What was being read
 * is dropped. At the end nothing is read: the threads rest. */
tdm_status tdmi_loader_seek(tdmi_loader *loader, uint32_t epoch, int64_t position,
                            tdm_error *err) TDM_MUST_USE;
/* Waits for the next batch; NULL at the end of the epoch. TDM_E_STOPPED when a stop is requested
 * while it waits: it may be called again. Running out of memory while reading is TDM_E_MEMORY, here
 * and in every later call. */
tdm_status tdmi_loader_next(tdmi_loader *loader, const struct tdmi_batch **batch,
                            tdm_error *err) TDM_MUST_USE;

enum { TDMI_KEPT_SKIPS = 100 };

/* An image that was skipped, and where for the first time. */
struct tdmi_skip {
    int64_t item; /* index of the image in the source */
    uint32_t epoch;
    int64_t position;
    char text[TDMI_PROBLEM_BYTES]; /* why, its path first */
};
/* The i-th distinct image skipped in the batches handed out so far, in the order they came, for the
 * record. false past the end; the first TDMI_KEPT_SKIPS are kept. */
bool tdmi_loader_skip_at(const tdmi_loader *loader, int64_t index, struct tdmi_skip *skip);

/* ---- what limits the rate ------------------------------------------------------------------ */

struct tdmi_stage_rate {
    int64_t pictures, bytes; /* that went through it; bytes as they left it */
    double seconds;          /* that threads spent in it, added up */
};

struct tdmi_loader_rates {
    struct tdmi_stage_rate read, decode, augment;
    int64_t cached;             /* images that a cache gave, decoded or encoded */
    int64_t pictures;           /* handed out */
    double seconds;             /* inside epochs: from a seek to the last batch handed out */
    double consumer_waits;      /* of these, the caller waited for a batch */
    double ring_waits;          /* threads waited for a slot, added up */
    double ceiling_per_second;  /* images, if no thread now active ever waited */
    int threads, depth;         /* active now */
    int most_threads, n_slots;  /* to choose from, after the memory limit */
    int64_t memory_bytes;       /* held or promised: ring, caches, working memory */
    enum tdmi_cache_kind cache; /* in use */
};
void tdmi_loader_rates(const tdmi_loader *loader, struct tdmi_loader_rates *rates);
/* One sentence on the cache in use, for the thread that calls next: next may still choose one. */
const char *tdmi_loader_cache_note(const tdmi_loader *loader);
