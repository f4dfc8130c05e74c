/*
 * Numbers are delivered through a table: what a byte becomes depends on nothing but the byte and
 * its channel, so 256 pixels given to the one preprocessing hold every answer, bit by bit.
 */
#include "data/loader/picture.h"

#include "base/clock.h"
#include "base/file/far_copy.h"
#include "base/memory.h"
#include "data/audit/contents.h"
#include "image/facts.h"
#include <stdatomic.h>
#include <string.h>

/* ---- fixed settings ---------------------------------------------------------------------------
 */

/* The upper half of a float, rounded to nearest, ties to even. None of them is NaN. */
static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static void fill_tables(struct tdmi_picture_pipeline *pipeline)
{
    const int channels = pipeline->preprocess.channels;
    uint8_t bytes[256 * TDMI_CHANNELS_MAX] = {0};
    float floats[256 * TDMI_CHANNELS_MAX];
    for (int i = 0; i < 256 * channels; i++)
        bytes[i] = (uint8_t)(i / channels);
    tdmi_preprocess_normalise(&pipeline->preprocess, bytes, 256, floats);
    for (int i = 0; i < 256 * channels; i++) {
        pipeline->floats[i / channels][i % channels] = floats[i];
        pipeline->halves[i / channels][i % channels] = to_bf16(floats[i]);
    }
}

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
    static const size_t bytes_of[] = {
        [TDMI_DELIVER_U8] = 1, [TDMI_DELIVER_F32] = 4, [TDMI_DELIVER_BF16] = 2};
    const struct tdmi_preprocess *preprocess = &options->preprocess;
    *pipeline = (struct tdmi_picture_pipeline){
        .source = options->source,
        .preprocess = *preprocess,
        .delivery = options->delivery,
        .augment = options->augment,
        .has_box = options->augment.is_on[TDMI_AUGMENT_RESIZED_CROP],
        .has_changes = tdmi_augment_has_pixels(&options->augment),
        .is_strict = options->is_strict,
        .hashes = options->cache.hashes,
        .contents = options->contents,
        .decoder = options->decoder,
        .picture_bytes =
            (size_t)preprocess->width * (size_t)preprocess->height * (size_t)preprocess->channels};
    pipeline->value_bytes = pipeline->picture_bytes * bytes_of[options->delivery];
    pipeline->is_raw = tdmi_source_raw_shape(options->source, &pipeline->raw);
    pipeline->is_raw_as_is =
        pipeline->is_raw && !pipeline->has_box && is_unchanged(preprocess, &pipeline->raw);
    find_geometry(pipeline);
    fill_tables(pipeline);
}

static size_t raw_bytes(const struct tdmi_picture_pipeline *pipeline)
{
    return (size_t)pipeline->raw.width * (size_t)pipeline->raw.height *
           (size_t)pipeline->raw.channels;
}

/* Grey pixels wait beside the picture that they are spread into. */
static bool has_raw_room(const struct tdmi_picture_pipeline *pipeline)
{
    return pipeline->is_raw && !pipeline->is_raw_as_is && pipeline->raw.channels == 1;
}

int64_t tdmi_picture_scratch_fixed(const struct tdmi_picture_pipeline *pipeline)
{
    int64_t bytes = pipeline->delivery == TDMI_DELIVER_U8 ? 0 : (int64_t)pipeline->picture_bytes;
    bytes += pipeline->has_changes ? (int64_t)pipeline->picture_bytes : 0;
    bytes += (int64_t)3 * pipeline->geometry.width * pipeline->geometry.height;
    return bytes + (has_raw_room(pipeline) ? (int64_t)raw_bytes(pipeline) : 0);
}

tdm_status tdmi_picture_scratch_init(const struct tdmi_picture_pipeline *pipeline,
                                     struct tdmi_picture_scratch *scratch, tdm_error *err)
{
    bool is_complete = true;
    scratch->images.limits.is_strict = pipeline->is_strict;
    if (pipeline->delivery != TDMI_DELIVER_U8)
        is_complete = (scratch->pixels = tdmi_alloc_aligned(pipeline->picture_bytes)) != NULL;
    if (is_complete && pipeline->has_changes)
        is_complete = (scratch->spare = tdmi_alloc_aligned(pipeline->picture_bytes)) != NULL;
    if (is_complete && has_raw_room(pipeline))
        is_complete = (scratch->raw = tdmi_alloc(raw_bytes(pipeline), 1)) != NULL;
    if (is_complete && pipeline->geometry.width > 0)
        is_complete = tdmi_image_reshape(&scratch->shown, pipeline->geometry.width,
                                         pipeline->geometry.height, NULL) == TDM_OK;
    if (!is_complete)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a thread that loads pictures");
    return pipeline->decoder != NULL
               ? pipeline->decoder->open(pipeline->decoder, &scratch->decoder, err)
               : TDM_OK;
}

int64_t tdmi_picture_scratch_bytes(const struct tdmi_picture_scratch *scratch)
{
    return (int64_t)(scratch->bytes.capacity_bytes + scratch->images.decoded.capacity_bytes +
                     scratch->images.resized.capacity_bytes);
}

void tdmi_picture_scratch_shrink(struct tdmi_picture_scratch *scratch)
{
    tdmi_text_release(&scratch->bytes);
    scratch->bytes = (tdmi_text){0};
    tdmi_preprocess_scratch_release(&scratch->images);
    scratch->images = (struct tdmi_preprocess_scratch){.limits = scratch->images.limits};
}

void tdmi_picture_scratch_release(const struct tdmi_picture_pipeline *pipeline,
                                  struct tdmi_picture_scratch *scratch)
{
    if (pipeline->decoder != NULL)
        pipeline->decoder->close(scratch->decoder);
    tdmi_picture_scratch_shrink(scratch);
    tdmi_free(scratch->pixels);
    tdmi_free(scratch->spare);
    tdmi_free(scratch->raw);
    tdmi_image_release(&scratch->shown);
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Ends a stage that began at *since; the next one begins now. */
static void count(struct tdmi_picture_scratch *scratch, int stage, size_t bytes, int64_t *since)
{
    int64_t now = tdmi_clock_ns();
    scratch->times.pictures[stage]++;
    scratch->times.bytes[stage] += (int64_t)bytes;
    scratch->times.ns[stage] += now - *since;
    *since = now;
}

/* Has the item been read before: for its content, or, where its source knew that beforehand, by
 * this loader? */
static bool was_read(const struct tdmi_picture_pipeline *pipeline, int64_t index)
{
    if (pipeline->contents == NULL || pipeline->contents[index] == 0)
        return false;
    return tdmi_source_hash(pipeline->source, index) == 0 ||
           (atomic_load(&pipeline->is_read[index / 8]) >> (index % 8) & 1) != 0;
}

/* Report an item that was read before as gone; others keep their error. */
static tdm_status check_reading(const struct tdmi_picture_pipeline *pipeline,
                                struct tdmi_picture_scratch *scratch, int64_t index,
                                tdm_status status, tdm_error *err)
{
    scratch->is_changed = status == TDM_E_INPUT && was_read(pipeline, index);
    if (status == TDM_OK && pipeline->contents != NULL)
        atomic_fetch_or(&pipeline->is_read[index / 8], (uint8_t)(1 << index % 8));
    return TDM_WRAP(err, status, "%s",
                    scratch->is_changed ? "it could be read before, and cannot any more"
                                        : "cannot read it");
}

/* Does it still hold what it held? What a source knows are hashes of the pictures that its own were
 * made of. */
static tdm_status check_content(const struct tdmi_picture_pipeline *pipeline,
                                struct tdmi_picture_scratch *scratch, int64_t index, tdm_error *err)
{
    const tdmi_text *bytes = &scratch->bytes;
    if (pipeline->contents == NULL || pipeline->contents[index] == 0 ||
        tdmi_source_hash(pipeline->source, index) != 0 ||
        tdmi_contents_hash(tdmi_text_string(bytes), bytes->length_bytes) ==
            pipeline->contents[index])
        return TDM_OK;
    scratch->is_changed = true;
    return TDM_FAIL(err, TDM_E_INPUT, "it holds other bytes than when it was read before");
}

static tdm_status read_source(const struct tdmi_picture_pipeline *pipeline,
                              struct tdmi_picture_scratch *scratch, int64_t index, tdm_error *err)
{
    tdm_status status = tdmi_source_read(pipeline->source, index, &scratch->bytes, err);
    status = check_reading(pipeline, scratch, index, status, err);
    return status == TDM_OK ? check_content(pipeline, scratch, index, err) : status;
}

/* The encoded bytes, from the nearest place that has them. */
static tdm_status read_encoded(const struct tdmi_picture_pipeline *pipeline,
                               struct tdmi_picture_scratch *scratch, int64_t sample,
                               struct tdmi_augment_key key, const void **bytes,
                               size_t *length_bytes, tdm_error *err)
{
    tdmi_memory_cache *encoded = atomic_load_explicit(&pipeline->encoded, memory_order_acquire);
    if (encoded != NULL &&
        (*bytes = tdmi_memory_cache_get(encoded, sample, length_bytes)) != NULL) {
        scratch->times.cached++;
        return TDM_OK;
    }
    struct tdmi_bytes_key name = {0};
    bool is_here = false;
    if (pipeline->disk != NULL) {
        name = tdmi_source_bytes_key(pipeline->source, key.sample, pipeline->hashes);
        is_here = name.number != 0 && tdmi_disk_cache_get(pipeline->disk, name, &scratch->bytes);
        scratch->times.cached += is_here;
    }
    tdm_status status = is_here ? TDM_OK : read_source(pipeline, scratch, key.sample, err);
    if (status != TDM_OK)
        return status;
    *bytes = tdmi_text_string(&scratch->bytes);
    *length_bytes = scratch->bytes.length_bytes;
    if (name.number != 0 && !is_here)
        tdmi_disk_cache_put(pipeline->disk, name, &scratch->bytes);
    if (encoded != NULL)
        tdmi_memory_cache_put(encoded, sample, *bytes, *length_bytes);
    return TDM_OK;
}

/* The decoded picture into the wanted shape: as preprocessing says, or the part that was drawn. */
static tdm_status fit(const struct tdmi_picture_pipeline *pipeline,
                      struct tdmi_picture_scratch *scratch, const tdmi_image *decoded,
                      struct tdmi_augment_key key, uint8_t *pixels, tdm_error *err)
{
    struct tdmi_preprocess how = pipeline->preprocess;
    struct tdmi_preprocess_scratch *images = &scratch->images;
    struct tdmi_box box;
    if (!tdmi_augment_box(&pipeline->augment, key, decoded->width, decoded->height, &box))
        return tdmi_preprocess_image(&how, decoded, images, pixels, err);
    TDM_TRY(
        tdmi_image_resize(decoded, box, how.width, how.height, how.filter, &images->resized, err),
        err, "cannot take a part of it");
    how.fit = TDMI_FIT_STRETCH; /* it has the size already */
    return tdmi_preprocess_image(&how, &images->resized, images, pixels, err);
}

static tdm_status decode_freely(const struct tdmi_picture_pipeline *pipeline,
                                struct tdmi_picture_scratch *scratch, struct tdmi_augment_key key,
                                const void *bytes, size_t length_bytes, uint8_t *pixels,
                                tdm_error *err)
{
    const char *path = tdmi_source_item(pipeline->source, key.sample).path;
    if (pipeline->geometry.width > 0) {
        TDM_TRY(tdmi_preprocess_file(&pipeline->geometry, bytes, length_bytes, path,
                                     &scratch->images, scratch->shown.pixels, err),
                err, "cannot bring it to the size of its table");
        return fit(pipeline, scratch, &scratch->shown, key, pixels, err);
    }
    if (!pipeline->has_box)
        return tdmi_preprocess_file(&pipeline->preprocess, bytes, length_bytes, path,
                                    &scratch->images, pixels, err);
    tdm_status status = tdmi_image_decode(bytes, length_bytes, path, scratch->images.limits,
                                          &scratch->images.decoded, err);
    return status == TDM_OK ? fit(pipeline, scratch, &scratch->images.decoded, key, pixels, err)
                            : status;
}

/* Bytes that decoding will hold: the file, a JPEG's coded bytes once more, the pixels, and those
 * once more where they are turned. A size that the decoder refuses before it takes memory counts as
 * none. */
static int64_t decoding_bytes(const void *bytes, size_t length_bytes)
{
    struct tdmi_image_facts facts = {0};
    if (tdmi_image_describe(bytes, length_bytes, "", &facts, NULL) != TDM_OK)
        return (int64_t)length_bytes; /* and the decoder says why it is none */
    if (facts.height > 0 && facts.width > TDMI_IMAGE_MOST_PIXELS / facts.height)
        return (int64_t)length_bytes;
    int64_t pixels = facts.width * facts.height * (facts.orientation > 4 ? 2 : 1);
    const int copies = facts.format == TDMI_IMAGE_JPEG ? 2 : 1;
    return copies * (int64_t)length_bytes + 3 * pixels;
}

/* Under a memory limit pictures beyond a thread's share are decoded one at a time. */
static tdm_status decode(const struct tdmi_picture_pipeline *pipeline,
                         struct tdmi_picture_scratch *scratch, struct tdmi_augment_key key,
                         const void *bytes, size_t length_bytes, uint8_t *pixels, tdm_error *err)
{
    int64_t needed = pipeline->scratch_limit > 0 ? decoding_bytes(bytes, length_bytes) : 0;
    if (needed <= pipeline->scratch_limit)
        return decode_freely(pipeline, scratch, key, bytes, length_bytes, pixels, err);
    if (needed > pipeline->large_limit)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "decoding it needs %lld bytes and the memory limit leaves %lld; a larger "
                        "limit, or to leave the picture out, is wanted",
                        (long long)needed, (long long)pipeline->large_limit);
    pthread_mutex_lock(pipeline->large);
    tdm_status status = decode_freely(pipeline, scratch, key, bytes, length_bytes, pixels, err);
    tdmi_picture_scratch_shrink(scratch);
    pthread_mutex_unlock(pipeline->large);
    return status;
}

/* ---- another decoder ------------------------------------------------------------------------- */

/* Were all its codes read, now or before? */
static tdm_status check_codes(const struct tdmi_picture_pipeline *pipeline,
                              struct tdmi_picture_scratch *scratch, int64_t index,
                              const struct tdmi_decoder_file *file, bool *is_sound, tdm_error *err)
{
    const uint8_t bit = (uint8_t)(1 << index % 8);
    *is_sound = (atomic_load(&pipeline->is_sound[index / 8]) & bit) != 0;
    if (*is_sound)
        return TDM_OK;
    const tdm_status status =
        tdmi_decoder_check(file, scratch->images.limits, &scratch->images.decoded, is_sound, err);
    if (status == TDM_OK && *is_sound)
        atomic_fetch_or(&pipeline->is_sound[index / 8], bit);
    return status;
}

/* Is it a file for the decoder? Then the job keeps its bytes, and waits. Pictures beyond a thread's
 * share of the memory are no such files: of those one is held at a time. */
static tdm_status offer(const struct tdmi_picture_pipeline *pipeline,
                        struct tdmi_picture_scratch *scratch, const void *bytes,
                        size_t length_bytes, struct tdmi_picture_job *job, tdm_error *err)
{
    struct tdmi_decoder_file *file = &job->file;
    struct tdmi_resize how;
    struct tdmi_box box;
    bool is_for_it = false;
    if (pipeline->geometry.width > 0 ||
        !tdmi_decoder_describe(bytes, length_bytes, scratch->images.limits, file) ||
        (pipeline->scratch_limit > 0 &&
         decoding_bytes(bytes, length_bytes) > pipeline->scratch_limit))
        return TDM_OK;
    const int width = tdmi_decoder_width(file), height = tdmi_decoder_height(file);
    const bool has_box = tdmi_augment_box(&pipeline->augment, job->key, width, height, &box);
    if (!tdmi_preprocess_plan(&pipeline->preprocess, width, height, has_box ? &box : NULL, &how))
        return TDM_OK;
    tdm_status status = tdmi_decoder_plan(file, &how, &job->room, &is_for_it, err);
    if (status == TDM_OK && is_for_it)
        status = check_codes(pipeline, scratch, job->key.sample, file, &is_for_it, err);
    if (status != TDM_OK || !is_for_it)
        return status;
    if (bytes == tdmi_text_string(&scratch->bytes)) {
        const tdmi_text kept = job->bytes;
        job->bytes = scratch->bytes;
        scratch->bytes = kept;
    }
    job->is_waiting = true;
    return TDM_OK;
}

tdm_status tdmi_picture_run(const struct tdmi_picture_pipeline *pipeline,
                            struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *jobs,
                            int n, tdm_error *err)
{
    struct tdmi_decoder_file files[TDMI_DECODER_FILES];
    const int64_t since = tdmi_clock_ns();
    int n_files = 0;
    for (int i = 0; i < n; i++)
        if (jobs[i].is_waiting)
            files[n_files++] = jobs[i].file;
    if (n_files == 0)
        return TDM_OK;
    const tdm_status status = pipeline->decoder->run(scratch->decoder, files, n_files, err);
    for (int i = 0, at = 0; i < n && status == TDM_OK; i++)
        if (jobs[i].is_waiting)
            jobs[i].file.pixels = files[at++].pixels;
    scratch->times.ns[TDMI_STAGE_DECODE] += tdmi_clock_ns() - since;
    return status;
}

int64_t tdmi_picture_job_bytes(const struct tdmi_picture_job *job)
{
    return (int64_t)(job->bytes.capacity_bytes + job->room.capacity_bytes);
}

void tdmi_picture_job_release(struct tdmi_picture_job *job)
{
    tdmi_text_release(&job->bytes);
    tdmi_decoder_room_release(&job->room);
    *job = (struct tdmi_picture_job){0};
}

/* ---- from a file, from pixels ---------------------------------------------------------------- */

static tdm_status load_encoded(const struct tdmi_picture_pipeline *pipeline,
                               struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *job,
                               uint8_t *pixels, int64_t *since, tdm_error *err)
{
    const void *bytes = NULL;
    size_t length_bytes = 0;
    tdm_status status =
        read_encoded(pipeline, scratch, job->sample, job->key, &bytes, &length_bytes, err);
    count(scratch, TDMI_STAGE_READ, length_bytes, since);
    if (status != TDM_OK)
        return status;
    if (scratch->decoder != NULL)
        status = offer(pipeline, scratch, bytes, length_bytes, job, err);
    if (status == TDM_OK && job->is_waiting) { /* the picture is counted when it is there */
        scratch->times.ns[TDMI_STAGE_DECODE] += tdmi_clock_ns() - *since;
        return TDM_OK;
    }
    if (status == TDM_OK)
        status = decode(pipeline, scratch, job->key, bytes, length_bytes, pixels, err);
    count(scratch, TDMI_STAGE_DECODE, pipeline->picture_bytes, since);
    return TDM_WRAP(err, status, "cannot use it as a picture");
}

/* Pixels of another shape are processed like a decoded image. */
static tdm_status read_raw_picture(const struct tdmi_picture_pipeline *pipeline,
                                   struct tdmi_picture_scratch *scratch, int64_t index,
                                   tdm_error *err)
{
    tdmi_image *picture = &scratch->images.decoded;
    TDM_TRY(tdmi_image_reshape(picture, pipeline->raw.width, pipeline->raw.height, err), err,
            "cannot hold its pixels");
    if (pipeline->raw.channels == 3)
        return tdmi_source_read_raw(pipeline->source, index, picture->pixels, err);
    tdm_status status = tdmi_source_read_raw(pipeline->source, index, scratch->raw, err);
    if (status != TDM_OK)
        return status;
    const size_t n = raw_bytes(pipeline);
    for (size_t i = 0; i < n; i++)
        memset(picture->pixels + 3 * i, scratch->raw[i], 3);
    return TDM_OK;
}

static tdm_status load_raw(const struct tdmi_picture_pipeline *pipeline,
                           struct tdmi_picture_scratch *scratch, struct tdmi_augment_key key,
                           uint8_t *pixels, int64_t *since, tdm_error *err)
{
    tdm_status status = pipeline->is_raw_as_is
                            ? tdmi_source_read_raw(pipeline->source, key.sample, pixels, err)
                            : read_raw_picture(pipeline, scratch, key.sample, err);
    count(scratch, TDMI_STAGE_READ, raw_bytes(pipeline), since);
    status = check_reading(pipeline, scratch, key.sample, status, err);
    if (status != TDM_OK || pipeline->is_raw_as_is)
        return status;
    status = fit(pipeline, scratch, &scratch->images.decoded, key, pixels, err);
    count(scratch, TDMI_STAGE_DECODE, pipeline->picture_bytes, since);
    return TDM_WRAP(err, status, "cannot use it as a picture");
}

/* Pixels that are changed next are wanted in the nearest cache. */
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

static void keep_pixels(const struct tdmi_picture_pipeline *pipeline, int64_t sample,
                        const uint8_t *pixels)
{
    if (pipeline->decoded != NULL)
        tdmi_memory_cache_put(pipeline->decoded, sample, pixels, pipeline->picture_bytes);
}

static tdm_status load_pixels(const struct tdmi_picture_pipeline *pipeline,
                              struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *job,
                              uint8_t *pixels, int64_t *since, tdm_error *err)
{
    size_t length_bytes;
    const void *kept = pipeline->decoded
                           ? tdmi_memory_cache_get(pipeline->decoded, job->sample, &length_bytes)
                           : NULL;
    if (kept != NULL) {
        copy_kept(pipeline, kept, pixels);
        scratch->times.cached++;
        count(scratch, TDMI_STAGE_READ, pipeline->picture_bytes, since);
        return TDM_OK;
    }
    bool has_encoded = atomic_load_explicit(&pipeline->encoded, memory_order_relaxed) != NULL;
    /* A disk cache is keyed by the hash of encoded bytes, so with one the source is read as encoded
     * images. */
    tdm_status status = pipeline->is_raw && pipeline->disk == NULL && !has_encoded
                            ? load_raw(pipeline, scratch, job->key, pixels, since, err)
                            : load_encoded(pipeline, scratch, job, pixels, since, err);
    if (status == TDM_OK && !job->is_waiting)
        keep_pixels(pipeline, job->sample, pixels);
    return status;
}

/* Bytes to what the caller wants, (pixels, channels). */
static void pack(const struct tdmi_picture_pipeline *pipeline, const uint8_t *pixels, void *values)
{
    const size_t channels = (size_t)pipeline->preprocess.channels,
                 n = pipeline->picture_bytes / channels;
    float *floats = values;
    uint16_t *halves = values;
    if (pipeline->delivery == TDMI_DELIVER_F32) {
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < channels; c++)
                floats[channels * i + c] = pipeline->floats[pixels[channels * i + c]][c];
        return;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < channels; c++)
            halves[channels * i + c] = pipeline->halves[pixels[channels * i + c]][c];
}

/* The same pixels, changed and packed. */
static void finish(const struct tdmi_picture_pipeline *pipeline,
                   struct tdmi_picture_scratch *scratch, const struct tdmi_picture_job *job,
                   uint8_t *pixels, int64_t *since)
{
    if (pipeline->has_changes) {
        const struct tdmi_augment_shape shape = {
            pipeline->preprocess.height, pipeline->preprocess.width, pipeline->preprocess.channels};
        tdmi_augment_picture(&pipeline->augment, job->key, shape, pixels, scratch->spare);
        count(scratch, TDMI_STAGE_AUGMENT, pipeline->picture_bytes, since);
    }
    if (pipeline->delivery != TDMI_DELIVER_U8) {
        pack(pipeline, pixels, job->values);
        count(scratch, TDMI_STAGE_PACK, pipeline->value_bytes, since);
    }
}

/* Buffer for its bytes. */
static uint8_t *pixels_of(const struct tdmi_picture_pipeline *pipeline,
                          const struct tdmi_picture_scratch *scratch,
                          const struct tdmi_picture_job *job)
{
    return pipeline->delivery == TDMI_DELIVER_U8 ? job->values : scratch->pixels;
}

tdm_status tdmi_picture_begin(const struct tdmi_picture_pipeline *pipeline,
                              struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *job,
                              tdm_error *err)
{
    int64_t since = tdmi_clock_ns();
    /* Images that are changed, cached or scaled again afterwards are read at once. */
    scratch->images.is_far = pipeline->is_far && !pipeline->has_changes &&
                             pipeline->decoded == NULL && pipeline->geometry.width == 0;
    scratch->is_changed = false;
    job->is_waiting = false;
    uint8_t *pixels = pixels_of(pipeline, scratch, job);
    const tdm_status status = load_pixels(pipeline, scratch, job, pixels, &since, err);
    if (status == TDM_OK && !job->is_waiting)
        finish(pipeline, scratch, job, pixels, &since);
    return status;
}

tdm_status tdmi_picture_end(const struct tdmi_picture_pipeline *pipeline,
                            struct tdmi_picture_scratch *scratch, struct tdmi_picture_job *job,
                            tdm_error *err)
{
    const struct tdmi_decoder_file *file = &job->file;
    int64_t since = tdmi_clock_ns();
    uint8_t *pixels = pixels_of(pipeline, scratch, job);
    tdm_status status = TDM_OK;
    job->is_waiting = false;
    if (file->pixels != NULL)
        tdmi_preprocess_place(&pipeline->preprocess, file->pixels, file->part_width,
                              file->part_height, pixels);
    else
        status = decode(pipeline, scratch, job->key, file->bytes, file->length_bytes, pixels, err);
    count(scratch, TDMI_STAGE_DECODE, pipeline->picture_bytes, &since);
    if (status != TDM_OK)
        return TDM_WRAP(err, status, "cannot use it as a picture");
    keep_pixels(pipeline, job->sample, pixels);
    finish(pipeline, scratch, job, pixels, &since);
    return TDM_OK;
}
