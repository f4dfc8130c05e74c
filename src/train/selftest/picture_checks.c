/*
 * The augmentations that a backend's input op claims (backend.changes), compared with those of the
 * host. The images are uploaded by a stream of their own, as in training.
 */
#include "base/hash/rng.h"
#include "base/scope.h"
#include "image/augment/augment.h"
#include "train/selftest/checks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { n = 6, wide = 23, high = 17, channels = 3, picture = wide * high * channels };

/* limit: of 255, what another order of roundings may give. */
static const struct {
    const char *spec;
    double limit;
} specs[] = {
    {"crop:3:40,flip", 0.0},   {"jitter:0.4:0.6:0.4:0,cutout:6:9", 0.0},
    {"jitter:0:0:0:0.5", 1.0}, {"flip,mixup:0.4", 0.0},
    {"crop:2,cutmix:1", 0.0},
};
enum { n_specs = sizeof specs / sizeof specs[0] };

struct pictures {
    uint8_t bytes[n * picture], expected[n * picture];
    float got[n * picture];
    char *changes;
};

/* On the device; one of each. */
enum { PICTURES, POINTERS, CHANGES, WORKSPACE, VALUES, ARRAYS };

struct there {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_stream *work, *copies;
    tdmi_event *is_there;
    void *pinned, *arrays[ARRAYS];
    struct tdmi_op_desc desc;
};

static void close_there(struct there *it)
{
    const struct tdmi_backend *backend = it->backend;
    if (it->is_there)
        backend->stream.event_close(it->is_there);
    backend->stream.close(it->copies);
    backend->stream.close(it->work);
    for (int k = 0; k < ARRAYS; k++)
        backend->memory.free(it->device, it->arrays[k]);
    if (it->pinned)
        backend->memory.free_pinned(it->device, it->pinned);
}

static tdm_status open_there(struct there *it, tdm_error *err)
{
    const struct tdmi_backend *backend = it->backend;
    it->desc = (struct tdmi_op_desc){
        .kind = TDMI_OP_INPUT,
        .attrs.preprocess = {.width = wide,
                             .height = high,
                             .channels = channels,
                             .scale = TDMI_SCALE_RAW},
        .out = {high, wide, channels},
        .max_images = n,
        .is_training = true,
        .device = it->device,
    };
    const struct tdmi_kernel_needs needs =
        tdmi_kernel_needs_of(backend->kernels[TDMI_OP_INPUT], &it->desc);
    const size_t bytes[ARRAYS] = {
        [PICTURES] = (size_t)n * picture,        [POINTERS] = n * sizeof(const uint8_t *),
        [CHANGES] = n * backend->changes->bytes, [WORKSPACE] = needs.workspace_bytes + 1,
        [VALUES] = n * picture * sizeof(float),
    };
    TDM_TRY(backend->stream.open(it->device, &it->work, err), err, "a stream");
    TDM_TRY(backend->stream.open(it->device, &it->copies, err), err, "a stream of copies");
    if (backend->stream.event_open)
        TDM_TRY(backend->stream.event_open(it->device, &it->is_there, err), err, "an event");
    if (backend->memory.alloc_pinned)
        it->pinned = backend->memory.alloc_pinned(it->device, (size_t)n * picture);
    bool is_complete = it->pinned || !backend->memory.alloc_pinned;
    for (int k = 0; k < ARRAYS && is_complete; k++)
        is_complete = (it->arrays[k] = backend->memory.alloc(it->device, bytes[k])) != NULL;
    return is_complete ? TDM_OK : TDM_FAIL(err, TDM_E_MEMORY, "images on a device: no memory");
}

/* Augment on the host, and describe the same augmentation to the device. */
static void change(struct pictures *it, const struct tdmi_backend *backend,
                   const struct tdmi_augment *augment)
{
    static const int32_t labels[n] = {1, 0, 2, 3, 1, 0};
    const struct tdmi_augment_shape shape = {high, wide, channels};
    struct tdmi_augment_key keys[n];
    struct tdmi_mix mixes[n];
    struct tdmi_augment first, rest;
    uint8_t spare[picture];
    const bool has_mix = tdmi_augment_has_mix(augment);
    (void)tdmi_augment_divide(augment, &first, &rest);
    memcpy(it->expected, it->bytes, sizeof it->expected);
    for (int i = 0; i < n; i++)
        keys[i] = (struct tdmi_augment_key){.seed = 77, .epoch = 2, .sample = 5 + i};
    if (has_mix)
        tdmi_augment_pair(augment, keys, labels, n, shape, mixes);
    for (int i = 0; i < n; i++) {
        struct tdmi_augment_change due;
        tdmi_augment_picture(augment, keys[i], shape, it->expected + i * picture, spare);
        tdmi_augment_draw(&rest, keys[i], shape, &due);
        backend->changes->put(it->changes + (size_t)i * backend->changes->bytes, &due,
                              has_mix ? &mixes[i] : NULL, i);
    }
    if (has_mix)
        tdmi_augment_mix(mixes, n, shape, it->expected, spare);
}

static tdm_status run(const struct there *it, struct pictures *pictures, tdm_error *err)
{
    const struct tdmi_backend *backend = it->backend;
    const struct tdmi_memory_table *memory = &backend->memory;
    const struct tdmi_stream_table *stream = &backend->stream;
    const uint8_t *pointers[n];
    const uint8_t *from =
        it->pinned ? memcpy(it->pinned, pictures->bytes, sizeof pictures->bytes) : pictures->bytes;
    for (int i = 0; i < n; i++)
        pointers[i] = (const uint8_t *)it->arrays[PICTURES] + i * picture;
    TDM_TRY(memory->upload(it->copies, it->arrays[PICTURES], from, sizeof pictures->bytes, err),
            err, "uploading images");
    if (it->is_there) {
        TDM_TRY(stream->event_record(it->copies, it->is_there, err), err, "uploading images");
        TDM_TRY(stream->event_wait(it->work, it->is_there, err), err, "uploading images");
    }
    TDM_TRY(memory->upload(it->work, it->arrays[POINTERS], pointers, sizeof pointers, err), err,
            "bringing pointers");
    TDM_TRY(memory->upload(it->work, it->arrays[CHANGES], pictures->changes,
                           n * backend->changes->bytes, err),
            err, "bringing changes");
    const struct tdmi_op_call call = {.n = n,
                                      .y = it->arrays[VALUES],
                                      .pixels = it->arrays[POINTERS],
                                      .changes = it->arrays[CHANGES],
                                      .workspace = it->arrays[WORKSPACE]};
    backend->kernels[TDMI_OP_INPUT]->forward(it->work, &it->desc, &call);
    TDM_TRY(
        memory->download(it->work, pictures->got, it->arrays[VALUES], sizeof pictures->got, err),
        err, "downloading results");
    TDM_TRY(stream->wait(it->copies, err), err, "uploading images");
    return TDM_WRAP(err, stream->wait(it->work, err), "augmenting images");
}

static void compare(const struct pictures *it, int spec, struct tdmi_check *check)
{
    for (int i = 0; i < n * picture && check->has_passed; i++) {
        if (fabs((double)it->got[i] - it->expected[i]) <= specs[spec].limit)
            continue;
        check->has_passed = false;
        snprintf(check->detail, sizeof check->detail,
                 "%s: value %d of image %d is %g, and %d on the host (%g apart is accepted)",
                 specs[spec].spec, i % picture, i / picture, (double)it->got[i], it->expected[i],
                 specs[spec].limit);
    }
}

static tdm_status check_all(struct there *there, struct pictures *it, struct tdmi_check *check,
                            tdm_error *err)
{
    tdmi_rng rng = tdmi_rng_at(4, TDMI_RNG_TEST, 8, 0);
    for (size_t i = 0; i < sizeof it->bytes; i++)
        it->bytes[i] = (uint8_t)tdmi_rng_below(&rng, 256);
    TDM_TRY(open_there(there, err), err, "preparing augmentation on a device");
    for (int k = 0; k < n_specs && check->has_passed; k++) {
        struct tdmi_augment augment;
        TDM_TRY(tdmi_augment_read(specs[k].spec, &augment, err), err, "augmenting images");
        change(it, there->backend, &augment);
        TDM_TRY(run(there, it, err), err, "changes '%s'", specs[k].spec);
        compare(it, k, check);
    }
    return TDM_OK;
}

tdm_status tdmi_check_pictures(const struct tdmi_backend *backend, tdmi_device *device,
                               struct tdmi_check *check, tdm_error *err)
{
    TDMI_AT_END(close_there) struct there there = {.backend = backend, .device = device};
    TDMI_AT_END(tdmi_free_at) struct pictures *it = NULL;
    TDMI_AT_END(tdmi_free_at) char *changes = NULL;
    *check = (struct tdmi_check){.has_passed = true};
    TDMI_TRY(TDMI_NEW(it, 1, err));
    TDMI_TRY(TDMI_NEW(changes, n * backend->changes->bytes, err));
    it->changes = changes;
    return check_all(&there, it, check, err);
}
