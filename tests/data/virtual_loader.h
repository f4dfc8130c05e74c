/*
 * Loaders of virtual pictures, and all they hand out in one number.
 */
#pragma once

#include "base/hash/hash.h"
#include "data/loaders.h"
#include "data/virtual_source.h"
#include "unit.h"

enum { N = 101, SIDE = 6 };

static inline struct virtual_source source_of(int channels, bool is_raw)
{
    return (struct virtual_source){
        .n = N, .shape = {SIDE, SIDE, channels}, .is_raw = is_raw, .damaged_every = 37};
}

static inline struct tdmi_loader_options options_of(const struct virtual_source *virtual,
                                                    const tdmi_order *order)
{
    return (struct tdmi_loader_options){
        .source = virtual->source,
        .preprocess = {.width = SIDE,
                       .height = SIDE,
                       .channels = virtual->shape.channels,
                       .fit = TDMI_FIT_STRETCH,
                       .crop_fraction = 1,
                       .scale = TDMI_SCALE_TORCH},
        .order = order,
        .batch = 8,
        .threads = 2,
    };
}

static inline size_t value_bytes(const struct tdmi_loader_options *o)
{
    return (size_t)o->preprocess.width * (size_t)o->preprocess.height *
           (size_t)o->preprocess.channels;
}

/* Everything that is handed out from (epoch, position) to the end of epoch 2, in one number. */
static inline uint64_t digest_from(tdmi_loader *loader, const struct tdmi_loader_options *options,
                                   uint32_t epoch, int64_t position)
{
    tdmi_xxh64 hash;
    tdmi_xxh64_init(&hash, 0);
    for (; epoch < 3; epoch++, position = 0) {
        seek(loader, epoch, position);
        for (const struct tdmi_batch *b; (b = next(loader)) != NULL;) {
            size_t n = (size_t)b->n;
            tdmi_xxh64_add(&hash, b->values, n * value_bytes(options));
            tdmi_xxh64_add(&hash, b->labels, n * sizeof *b->labels);
            tdmi_xxh64_add(&hash, b->items, n * sizeof *b->items);
            for (size_t i = 0; i < n; i++)
                tdmi_xxh64_add(&hash, b->problems[i], strlen(b->problems[i]));
        }
    }
    return tdmi_xxh64_result(&hash);
}

static inline uint64_t digest(const struct tdmi_loader_options *options)
{
    tdmi_loader *loader = open_loader(options);
    uint64_t value = digest_from(loader, options, 0, 0);
    assert_int_equal(loader_skips(loader), 3);
    tdmi_loader_close(loader);
    return value;
}

/* The hash of each image's bytes; 0: unreadable. */
static inline void hash_images(const struct virtual_source *virtual, uint64_t hashes[N])
{
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    for (int64_t i = 0; i < N; i++)
        hashes[i] = tdmi_source_read(virtual->source, i, &bytes, NULL) == TDM_OK
                        ? tdmi_xxh64_of(bytes.bytes, bytes.length_bytes, 0)
                        : 0;
}

static const tdmi_order shuffled = {.seed = 3, .n = N, .is_shuffled = true};
