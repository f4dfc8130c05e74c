/* Read, decode and augment one image of a batch. */
#include "data/loader/picture.h"

#include "base/clock.h"
#include "base/file/far_copy.h"
#include "data/audit/contents.h"
#include "image/facts.h"
#include <stdatomic.h>

/* ---- fixed settings -------------------------------------------------------------------------- */

/* Would preprocessing hand out exactly the bytes it was given? */
static bool is_unchanged(const struct tdmi_preprocess *preprocess,
                         const struct tdmi_raw_shape *shape)
{
    return shape->width == preprocess->width && shape->height == preprocess->height &&
           shape->channels == preprocess->channels &&
           (preprocess->fit != TDMI_FIT_CROP || preprocess->crop_fraction >= 1.0);
}

/* The scale is the network's alone. */
static void find_geometry(struct tdmi_picture_pipeline *pipeline)
{
    struct tdmi_preprocess geometry;
    if (!tdmi_source_geometry(pipeline->source, &geometry))
        return;
    const struct tdmi_raw_shape shape = {geometry.height, geometry.width, geometry.channels};
    if (!pipeline->has_box && is_unchanged(&pipeline->preprocess, &shape)) {
        geometry.scale = pipeline->preprocess.scale;
        pipeline->preprocess = geometry;
        return;
    }
    pipeline->geometry = geometry;
}

void tdmi_picture_pipeline_init(struct tdmi_picture_pipeline *pipeline,
                                const struct tdmi_loader_options *options)
{
    const struct tdmi_preprocess *preprocess = &options->preprocess;
    *pipeline = (struct tdmi_picture_pipeline){
        .source = options->source,
        .preprocess = *preprocess,
        .augment = options->augment,
        .has_box = options->augment.is_on[TDMI_AUGMENT_RESIZED_CROP],
        .has_changes = tdmi_augment_has_pixels(&options->augment),
        .is_strict = options->is_strict,
        .hashes = options->cache.hashes,
        .contents = options->contents,
        .decoder = options->decoder,
        .picture_bytes =
            (size_t)preprocess->width * (size_t)preprocess->height * (size_t)preprocess->channels};
    pipeline->is_raw = tdmi_source_raw_shape(options->source, &pipeline->raw);
    pipeline->is_raw_as_is =
        pipeline->is_raw && !pipeline->has_box && is_unchanged(preprocess, &pipeline->raw);
    find_geometry(pipeline);
}

static size_t raw_bytes(const struct tdmi_picture_pipeline *pipeline)
{
    return (size_t)pipeline->raw.width * (size_t)pipeline->raw.height *
           (size_t)pipeline->raw.channels;
}

/* Grey pixels wait beside the image that they are spread into. */
static bool has_raw_room(const struct tdmi_picture_pipeline *pipeline)
{
    return pipeline->is_raw && !pipeline->is_raw_as_is && pipeline->raw.channels == 1;
}

int64_t tdmi_picture_scratch_fixed(const struct tdmi_picture_pipeline *pipeline)
{
    int64_t bytes = pipeline->has_changes ? (int64_t)pipeline->picture_bytes : 0;
    bytes += (int64_t)3 * pipeline->geometry.width * pipeline->geometry.height;
    return bytes + (has_raw_room(pipeline) ? (int64_t)raw_bytes(pipeline) : 0);
}

tdm_status tdmi_picture_scratch_init(const struct tdmi_picture_pipeline *pipeline,
                                     struct tdmi_picture_scratch *scratch, tdm_error *err)
{
    const size_t picture_bytes = pipeline->picture_bytes;
    scratch->pipeline = pipeline;
    scratch->images.limits.is_strict = pipeline->is_strict;
    if (pipeline->has_changes)
        scratch->spare = tdmi_alloc_aligned(picture_bytes);
    TDMI_CHECK_MEMORY(!pipeline->has_changes || scratch->spare != NULL, err);
    if (has_raw_room(pipeline))
        TDMI_TRY(TDMI_NEW(scratch->raw, raw_bytes(pipeline), err));
    if (pipeline->geometry.width > 0)
        TDMI_TRY(tdmi_image_reshape(&scratch->shown, pipeline->geometry.width,
                                    pipeline->geometry.height, err));
    return pipeline->decoder != NULL
               ? pipeline->decoder->open(pipeline->decoder, &scratch->decoder, err)
               : TDM_OK;
}

static void release_images(struct tdmi_picture_scratch *scratch)
{
    tdmi_text_release(&scratch->bytes);
    scratch->bytes = (tdmi_text){0};
    tdmi_preprocess_scratch_release(&scratch->images);
    scratch->images = (struct tdmi_preprocess_scratch){.limits = scratch->images.limits};
}

static void release_grown(struct tdmi_picture_scratch *scratch)
{
    release_images(scratch);
    for (int i = 0; i < TDMI_DECODER_FILES; i++) {
        tdmi_text_release(&scratch->jobs[i].bytes);
        tdmi_decoder_room_release(&scratch->jobs[i].room);
        scratch->jobs[i] = (struct tdmi_picture_job){0};
    }
}

void tdmi_picture_scratch_trim(struct tdmi_picture_scratch *scratch)
{
    size_t bytes = scratch->bytes.capacity_bytes + scratch->images.decoded.capacity_bytes +
                   scratch->images.resized.capacity_bytes;
    for (int i = 0; i < TDMI_DECODER_FILES; i++)
        bytes += scratch->jobs[i].bytes.capacity_bytes + scratch->jobs[i].room.capacity_bytes;
    const int64_t limit = scratch->pipeline->scratch_limit;
    if (limit > 0 && (int64_t)bytes > limit)
        release_grown(scratch);
}

void tdmi_picture_scratch_release(struct tdmi_picture_scratch *scratch)
{
    if (scratch->decoder != NULL)
        scratch->pipeline->decoder->close(scratch->decoder);
    release_grown(scratch);
    tdmi_free(scratch->spare);
    tdmi_free(scratch->raw);
    tdmi_image_release(&scratch->shown);
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* End a stage that began at *since; the next one begins now. */
static void count(struct tdmi_picture_scratch *scratch, int stage, size_t bytes, int64_t *since)
{
    static const int32_t kinds[TDMI_STAGES] = {TDMI_TRACE_READ, TDMI_TRACE_DECODE,
                                               TDMI_TRACE_AUGMENT};
    int64_t now = tdmi_clock_ns();
    if (scratch->lane)
        tdmi_lane_add(scratch->lane, &(struct tdmi_trace_event){.begin_ns = *since,
                                                                .end_ns = now,
                                                                .values = {(int64_t)bytes},
                                                                .kind = kinds[stage]});
    scratch->times.pictures[stage]++;
    scratch->times.bytes[stage] += (int64_t)bytes;
    scratch->times.ns[stage] += now - *since;
    *since = now;
}

/* The hash of the item when it was read before; 0: not known. */
static uint64_t content_before(const struct tdmi_picture_pipeline *pipeline, int64_t index)
{
    return pipeline->contents == NULL ? 0 : pipeline->contents[index];
}

/* Report an item that could be read before as gone; others keep their error. Where the source knew
 * the content beforehand, only an item that this loader has read counts. */
static tdm_status check_reading(struct tdmi_picture_scratch *scratch, int64_t index,
                                tdm_status status, tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    const uint8_t bit = (uint8_t)(1 << index % 8);
    scratch->is_changed = status == TDM_E_INPUT && content_before(pipeline, index) != 0 &&
                          (tdmi_source_hash(pipeline->source, index) == 0 ||
                           (atomic_load(&pipeline->is_read[index / 8]) & bit) != 0);
    if (status == TDM_OK && pipeline->contents != NULL)
        atomic_fetch_or(&pipeline->is_read[index / 8], bit);
    return TDM_WRAP(err, status, "%s",
                    scratch->is_changed ? "it could be read before, and cannot any more"
                                        : "cannot read it");
}

/* Read the item and compare its content with what was read before. The hashes that a source knows
 * are those of the original images, which cannot be compared. */
static tdm_status read_source(struct tdmi_picture_scratch *scratch, int64_t index, tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    const tdmi_text *bytes = &scratch->bytes;
    const uint64_t before = content_before(pipeline, index);
    tdm_status status = tdmi_source_read(pipeline->source, index, &scratch->bytes, err);
    TDMI_TRY(check_reading(scratch, index, status, err));
    scratch->is_changed =
        before != 0 && tdmi_source_hash(pipeline->source, index) == 0 &&
        tdmi_contents_hash(tdmi_text_string(bytes), bytes->length_bytes) != before;
    if (scratch->is_changed)
        return TDM_FAIL(err, TDM_E_INPUT, "it holds other bytes than when it was read before");
    return TDM_OK;
}

struct encoded {
    const void *bytes;
    size_t length_bytes;
};

/* The encoded bytes, from the nearest place that has them. */
static tdm_status read_encoded(struct tdmi_picture_scratch *scratch,
                               const struct tdmi_picture_job *job, struct encoded *file,
                               tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    tdmi_memory_cache *cache = atomic_load_explicit(&pipeline->encoded, memory_order_acquire);
    struct tdmi_bytes_key name = {0};
    bool is_here = false;
    if (cache != NULL)
        file->bytes = tdmi_memory_cache_get(cache, job->sample, &file->length_bytes);
    if (file->bytes != NULL) {
        scratch->times.cached++;
        return TDM_OK;
    }
    if (pipeline->disk != NULL) {
        name = tdmi_source_bytes_key(pipeline->source, job->key.sample, pipeline->hashes);
        is_here = name.number != 0 && tdmi_disk_cache_get(pipeline->disk, name, &scratch->bytes);
        scratch->times.cached += is_here;
    }
    if (!is_here)
        TDMI_TRY(read_source(scratch, job->key.sample, err));
    *file = (struct encoded){tdmi_text_string(&scratch->bytes), scratch->bytes.length_bytes};
    if (name.number != 0 && !is_here)
        tdmi_disk_cache_put(pipeline->disk, name, &scratch->bytes);
    if (cache != NULL)
        tdmi_memory_cache_put(cache, job->sample, file->bytes, file->length_bytes);
    return TDM_OK;
}

/* Resize the decoded image to its shape: as preprocessing does, or the part that was drawn. */
static tdm_status fit(struct tdmi_picture_scratch *scratch, const tdmi_image *decoded,
                      struct tdmi_augment_key key, uint8_t *pixels, tdm_error *err)
{
    struct tdmi_preprocess how = scratch->pipeline->preprocess;
    struct tdmi_preprocess_scratch *images = &scratch->images;
    struct tdmi_box box;
    if (!tdmi_augment_box(&scratch->pipeline->augment, key, decoded->width, decoded->height, &box))
        return tdmi_preprocess_image(&how, decoded, images, pixels, err);
    TDM_TRY(
        tdmi_image_resize(decoded, box, how.width, how.height, how.filter, &images->resized, err),
        err, "cannot take a part of it");
    how.fit = TDMI_FIT_STRETCH; /* it has the size already */
    return tdmi_preprocess_image(&how, &images->resized, images, pixels, err);
}

static tdm_status decode_freely(struct tdmi_picture_scratch *scratch, struct tdmi_augment_key key,
                                const struct encoded *file, uint8_t *pixels, tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    struct tdmi_preprocess_scratch *images = &scratch->images;
    const char *path = tdmi_source_item(pipeline->source, key.sample).path;
    if (pipeline->geometry.width > 0) {
        TDM_TRY(tdmi_preprocess_file(&pipeline->geometry, file->bytes, file->length_bytes, path,
                                     images, scratch->shown.pixels, err),
                err, "cannot resize it to the size of its table");
        return fit(scratch, &scratch->shown, key, pixels, err);
    }
    if (!pipeline->has_box)
        return tdmi_preprocess_file(&pipeline->preprocess, file->bytes, file->length_bytes, path,
                                    images, pixels, err);
    TDMI_TRY(tdmi_image_decode(file->bytes, file->length_bytes, path, images->limits,
                               &images->decoded, err));
    return fit(scratch, &images->decoded, key, pixels, err);
}

/* Bytes a pixel that the library of a format holds beside our pixels: a strip as libtiff unpacks it
 * and its RGBA; libheif's planes and their RGB; libjxl's floats of an image that is not coded in
 * blocks. The others hold rows. */
static int64_t library_bytes(enum tdmi_image_format format)
{
    switch (format) {
    case TDMI_IMAGE_TIFF:
    case TDMI_IMAGE_HEIC:
    case TDMI_IMAGE_AVIF:
        return 8;
    case TDMI_IMAGE_JXL:
        return 32;
    default:
        return 0;
    }
}

/* Bytes that decoding will hold: the file, a JPEG's coded bytes once more, the pixels, those once
 * more where they are transposed, and what a library holds. A size that the decoder refuses before
 * it takes memory counts as none. */
static int64_t decoding_bytes(const struct encoded *file)
{
    struct tdmi_image_facts facts = {0};
    const int64_t length_bytes = (int64_t)file->length_bytes;
    if (tdmi_image_describe(file->bytes, file->length_bytes, "", &facts, NULL) != TDM_OK ||
        (facts.height > 0 && facts.width > TDMI_IMAGE_MOST_PIXELS / facts.height) ||
        facts.coded_pixels > TDMI_IMAGE_MOST_PIXELS)
        return length_bytes; /* and the decoder reports why it is none */
    int64_t pixels = facts.width * facts.height * (facts.orientation > 4 ? 2 : 1);
    const int copies = facts.format == TDMI_IMAGE_JPEG ? 2 : 1;
    const int64_t shown = facts.width * facts.height;
    const int64_t coded = facts.coded_pixels > shown ? facts.coded_pixels : shown;
    return copies * length_bytes + 3 * pixels + library_bytes(facts.format) * coded;
}

/* Under a memory limit images beyond a thread's share are decoded one at a time. */
static tdm_status decode(struct tdmi_picture_scratch *scratch, struct tdmi_augment_key key,
                         const struct encoded *file, uint8_t *pixels, tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    int64_t needed = pipeline->scratch_limit > 0 ? decoding_bytes(file) : 0;
    if (needed <= pipeline->scratch_limit)
        return decode_freely(scratch, key, file, pixels, err);
    if (needed > pipeline->large_limit)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "decoding it needs %lld bytes and the memory limit leaves %lld: raise the "
                        "limit, or leave the image out",
                        (long long)needed, (long long)pipeline->large_limit);
    pthread_mutex_lock(pipeline->large);
    tdm_status status = decode_freely(scratch, key, file, pixels, err);
    release_images(scratch);
    pthread_mutex_unlock(pipeline->large);
    return status;
}

/* ---- another decoder ------------------------------------------------------------------------- */

/* Were all its codes read, now or before? */
static tdm_status check_codes(struct tdmi_picture_scratch *scratch, int64_t index,
                              const struct tdmi_decoder_file *file, bool *is_sound, tdm_error *err)
{
    _Atomic uint8_t *sound = &scratch->pipeline->is_sound[index / 8];
    const uint8_t bit = (uint8_t)(1 << index % 8);
    *is_sound = (atomic_load(sound) & bit) != 0;
    if (*is_sound)
        return TDM_OK;
    TDMI_TRY(
        tdmi_decoder_check(file, scratch->images.limits, &scratch->images.decoded, is_sound, err));
    if (*is_sound)
        atomic_fetch_or(sound, bit);
    return TDM_OK;
}

/* Is it a file for the decoder? Then the job keeps its bytes, and waits. Images beyond a thread's
 * share of the memory are no such files: of those one is held at a time. */
static tdm_status offer(struct tdmi_picture_scratch *scratch, const struct encoded *encoded,
                        struct tdmi_picture_job *job, tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    struct tdmi_decoder_file *file = &job->file;
    struct tdmi_resize how;
    struct tdmi_box box;
    bool is_for_it = false;
    if (pipeline->geometry.width > 0 ||
        !tdmi_decoder_describe(encoded->bytes, encoded->length_bytes, scratch->images.limits,
                               file) ||
        (pipeline->scratch_limit > 0 && decoding_bytes(encoded) > pipeline->scratch_limit))
        return TDM_OK;
    const int width = tdmi_decoder_width(file), height = tdmi_decoder_height(file);
    const bool has_box = tdmi_augment_box(&pipeline->augment, job->key, width, height, &box);
    if (!tdmi_preprocess_plan(&pipeline->preprocess, width, height, has_box ? &box : NULL, &how))
        return TDM_OK;
    TDMI_TRY(tdmi_decoder_plan(file, &how, &job->room, &is_for_it, err));
    if (is_for_it)
        TDMI_TRY(check_codes(scratch, job->key.sample, file, &is_for_it, err));
    if (is_for_it && encoded->bytes == tdmi_text_string(&scratch->bytes)) {
        const tdmi_text kept = job->bytes;
        job->bytes = scratch->bytes;
        scratch->bytes = kept;
    }
    job->is_waiting = is_for_it;
    return TDM_OK;
}

tdm_status tdmi_picture_run(struct tdmi_picture_scratch *scratch, int n, tdm_error *err)
{
    struct tdmi_decoder_file files[TDMI_DECODER_FILES];
    struct tdmi_picture_job *jobs = scratch->jobs;
    const int64_t since = tdmi_clock_ns();
    int n_files = 0;
    for (int i = 0; i < n; i++)
        if (jobs[i].is_waiting)
            files[n_files++] = jobs[i].file;
    if (n_files == 0)
        return TDM_OK;
    TDMI_TRY(scratch->pipeline->decoder->run(scratch->decoder, files, n_files, err));
    for (int i = 0, at = 0; i < n; i++)
        if (jobs[i].is_waiting)
            jobs[i].file.pixels = files[at++].pixels;
    scratch->times.ns[TDMI_STAGE_DECODE] += tdmi_clock_ns() - since;
    return TDM_OK;
}

/* ---- from a file, from pixels ---------------------------------------------------------------- */

static tdm_status load_encoded(struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *job,
                               uint8_t *pixels, int64_t *since, tdm_error *err)
{
    struct encoded file = {0};
    tdm_status status = read_encoded(scratch, job, &file, err);
    count(scratch, TDMI_STAGE_READ, file.length_bytes, since);
    TDMI_TRY(status);
    if (scratch->decoder != NULL)
        status = offer(scratch, &file, job, err);
    if (status == TDM_OK && job->is_waiting) { /* the image is counted when it is decoded */
        scratch->times.ns[TDMI_STAGE_DECODE] += tdmi_clock_ns() - *since;
        return TDM_OK;
    }
    if (status == TDM_OK)
        status = decode(scratch, job->key, &file, pixels, err);
    count(scratch, TDMI_STAGE_DECODE, scratch->pipeline->picture_bytes, since);
    return TDM_WRAP(err, status, "cannot use it as an image");
}

/* Pixels of another shape are processed like a decoded image. */
static tdm_status read_raw(struct tdmi_picture_scratch *scratch, int64_t index, tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    tdmi_image *picture = &scratch->images.decoded;
    TDM_TRY(tdmi_image_reshape(picture, pipeline->raw.width, pipeline->raw.height, err), err,
            "cannot hold its pixels");
    if (pipeline->raw.channels == 3)
        return tdmi_source_read_raw(pipeline->source, index, picture->pixels, err);
    TDMI_TRY(tdmi_source_read_raw(pipeline->source, index, scratch->raw, err));
    const size_t n = raw_bytes(pipeline);
    for (size_t i = 0; i < n; i++)
        memset(picture->pixels + 3 * i, scratch->raw[i], 3);
    return TDM_OK;
}

static tdm_status load_raw(struct tdmi_picture_scratch *scratch, struct tdmi_augment_key key,
                           uint8_t *pixels, int64_t *since, tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    tdm_status status = pipeline->is_raw_as_is
                            ? tdmi_source_read_raw(pipeline->source, key.sample, pixels, err)
                            : read_raw(scratch, key.sample, err);
    count(scratch, TDMI_STAGE_READ, raw_bytes(pipeline), since);
    TDMI_TRY(check_reading(scratch, key.sample, status, err));
    if (pipeline->is_raw_as_is)
        return TDM_OK;
    status = fit(scratch, &scratch->images.decoded, key, pixels, err);
    count(scratch, TDMI_STAGE_DECODE, pipeline->picture_bytes, since);
    return TDM_WRAP(err, status, "cannot use it as an image");
}

/* Pixels that are changed next should be in the nearest CPU cache. */
static void copy_kept(const struct tdmi_picture_pipeline *pipeline, const void *kept,
                      uint8_t *pixels)
{
    if (!pipeline->is_far || pipeline->has_changes) {
        memcpy(pixels, kept, pipeline->picture_bytes);
        return;
    }
    tdmi_far_copy(pixels, kept, pipeline->picture_bytes);
    tdmi_far_copy_end();
}

/* Augment the pixels. */
static void finish(struct tdmi_picture_scratch *scratch, const struct tdmi_picture_job *job,
                   uint8_t *pixels, int64_t *since)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    if (pipeline->has_changes) {
        const struct tdmi_augment_shape shape = {
            pipeline->preprocess.height, pipeline->preprocess.width, pipeline->preprocess.channels};
        tdmi_augment_picture(&pipeline->augment, job->key, shape, pixels, scratch->spare);
        count(scratch, TDMI_STAGE_AUGMENT, pipeline->picture_bytes, since);
    }
}

/* Keep new pixels in the cache, if there is one, and finish them. */
static void keep_and_finish(struct tdmi_picture_scratch *scratch,
                            const struct tdmi_picture_job *job, uint8_t *pixels, int64_t *since)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    if (pipeline->decoded != NULL)
        tdmi_memory_cache_put(pipeline->decoded, job->sample, pixels, pipeline->picture_bytes);
    finish(scratch, job, pixels, since);
}

tdm_status tdmi_picture_begin(struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *job,
                              tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    int64_t since = tdmi_clock_ns();
    uint8_t *pixels = job->pixels;
    const void *kept = NULL;
    size_t length_bytes;
    /* Images that are changed, cached or scaled again afterwards are read at once. */
    scratch->images.is_far = pipeline->is_far && !pipeline->has_changes &&
                             pipeline->decoded == NULL && pipeline->geometry.width == 0;
    scratch->is_changed = false;
    job->is_waiting = false;
    if (pipeline->decoded != NULL)
        kept = tdmi_memory_cache_get(pipeline->decoded, job->sample, &length_bytes);
    if (kept != NULL) {
        copy_kept(pipeline, kept, pixels);
        scratch->times.cached++;
        count(scratch, TDMI_STAGE_READ, pipeline->picture_bytes, &since);
        finish(scratch, job, pixels, &since);
        return TDM_OK;
    }
    /* A disk cache is keyed by the hash of encoded bytes, so with one the source is read as encoded
     * images. */
    const bool is_encoded = !pipeline->is_raw || pipeline->disk != NULL ||
                            atomic_load_explicit(&pipeline->encoded, memory_order_relaxed) != NULL;
    TDMI_TRY(is_encoded ? load_encoded(scratch, job, pixels, &since, err)
                        : load_raw(scratch, job->key, pixels, &since, err));
    if (!job->is_waiting)
        keep_and_finish(scratch, job, pixels, &since);
    return TDM_OK;
}

tdm_status tdmi_picture_end(struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *job,
                            tdm_error *err)
{
    const struct tdmi_picture_pipeline *pipeline = scratch->pipeline;
    const struct tdmi_decoder_file *file = &job->file;
    const struct encoded encoded = {file->bytes, file->length_bytes};
    int64_t since = tdmi_clock_ns();
    uint8_t *pixels = job->pixels;
    tdm_status status = TDM_OK;
    job->is_waiting = false;
    if (file->pixels != NULL)
        tdmi_preprocess_place(&pipeline->preprocess, file->pixels, file->part_width,
                              file->part_height, pixels);
    else
        status = decode(scratch, job->key, &encoded, pixels, err);
    count(scratch, TDMI_STAGE_DECODE, pipeline->picture_bytes, &since);
    TDM_TRY(status, err, "cannot use it as an image");
    keep_and_finish(scratch, job, pixels, &since);
    return TDM_OK;
}
