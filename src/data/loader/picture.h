/*
 * One image of a batch: read ▸ decode ▸ augment, with the caches between. The pipeline is
 * fixed when the loader opens; each thread has its own working memory.
 */
#pragma once

#include "data/cache/cache_disk.h"
#include "data/cache/cache_memory.h"
#include "data/loader/loader.h"
#include <pthread.h>

enum { TDMI_CHANNELS_MAX = 3 };

/* Shared by all threads. */
struct tdmi_picture_pipeline {
    const tdmi_source *source;
    struct tdmi_preprocess preprocess;
    struct tdmi_augment augment;
    bool has_box, has_changes; /* a part is cropped, pixels are changed */
    bool is_strict;            /* damaged images are refused */
    size_t picture_bytes;      /* of an image as delivered */
    bool is_raw, is_raw_as_is; /* the source has pixels; nothing changes them */
    bool is_far;               /* batches leave the caches before they are read */
    struct tdmi_raw_shape raw; /* of those */
    /* Images that the source keeps in their own size are resized to this one first; width 0: not
     * needed, or one pass of preprocess does both. */
    struct tdmi_preprocess geometry;
    tdmi_memory_cache *decoded;         /* NULL: none */
    tdmi_memory_cache *_Atomic encoded; /* likewise; may appear between two images */
    tdmi_disk_cache *disk;
    const uint64_t *hashes;
    const uint64_t *contents; /* of every item, as it was before; NULL: not known */
    /* Owned by the loader, where contents are given: a bit per item of the source that it has read.
     */
    _Atomic uint8_t *is_read;
    /* Under a memory limit: bytes that a thread may hold, bytes that one thread at a time may, and
     * the lock of that one. 0: no limit. */
    int64_t scratch_limit, large_limit;
    pthread_mutex_t *large;
    const struct tdmi_decoder *decoder; /* NULL: none */
    _Atomic uint8_t *is_sound;          /* a bit an item: all its codes were read, for a decoder */
};

enum { TDMI_STAGE_READ, TDMI_STAGE_DECODE, TDMI_STAGE_AUGMENT, TDMI_STAGES };

/* Counters of a thread since the loader last collected them. */
struct tdmi_stage_times {
    int64_t pictures[TDMI_STAGES], bytes[TDMI_STAGES], ns[TDMI_STAGES];
    int64_t cached;
};

/* A request for one image, kept until the image is complete. */
struct tdmi_picture_job {
    int64_t sample;
    struct tdmi_augment_key key;
    uint8_t *pixels; /* destination, of picture_bytes */
    /* While a decoder has it: the file, and its bytes unless they are a cache's. */
    bool is_waiting;
    struct tdmi_decoder_file file;
    tdmi_text bytes;
    struct tdmi_decoder_room room;
};

/* Working memory of one thread; start from a zeroed object. */
struct tdmi_picture_scratch {
    const struct tdmi_picture_pipeline *pipeline;
    struct tdmi_picture_job jobs[TDMI_DECODER_FILES]; /* of one claim */
    tdmi_text bytes;
    struct tdmi_preprocess_scratch images;
    uint8_t *spare;   /* picture_bytes, for changes */
    uint8_t *raw;     /* of a source with one channel */
    tdmi_image shown; /* an image that is kept in its own size, in the size of its table */
    tdmi_decoder_thread *decoder;
    struct tdmi_stage_times times;
    tdmi_lane *lane; /* the thread's lane of the trace; NULL: it is not traced */
    bool is_changed; /* the last image differs from what was read before */
};

void tdmi_picture_pipeline_init(struct tdmi_picture_pipeline *pipeline,
                                const struct tdmi_loader_options *options);

/* Bytes that init of the scratch allocates. */
int64_t tdmi_picture_scratch_fixed(const struct tdmi_picture_pipeline *pipeline);
tdm_status tdmi_picture_scratch_init(const struct tdmi_picture_pipeline *pipeline,
                                     struct tdmi_picture_scratch *scratch,
                                     tdm_error *err) TDM_MUST_USE;
/* Free the buffers that grew with the images, where they exceed the thread's share. No job may
 * wait. */
void tdmi_picture_scratch_trim(struct tdmi_picture_scratch *scratch);
void tdmi_picture_scratch_release(struct tdmi_picture_scratch *scratch);

/* Load item key.sample of the source, which is sample `sample` of the subset, into values. For
 * several images together: begin each, run the n jobs, end those that wait. One that does not wait
 * is loaded after its beginning, or failed. run fails where the decoder does, which is no image's
 * fault. */
tdm_status tdmi_picture_begin(struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *job,
                              tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_picture_run(struct tdmi_picture_scratch *scratch, int n,
                            tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_picture_end(struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *job,
                            tdm_error *err) TDM_MUST_USE;
