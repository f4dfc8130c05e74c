/*
 * A source without files: image i is a pattern of i, as PPM or PGM, or as raw pixels. Any number
 * of them, as slow, as damaged and as often asked as a test wants.
 */
#pragma once

#include "unit.h"
#include "data/source/listing.h"
#include "tandem/event.h"

#include <stdatomic.h>
#include <time.h>

struct virtual_source {
    int64_t n;
    struct tdmi_raw_shape shape;
    bool is_raw;           /* offers raw pixels */
    int64_t damaged_every; /* 0: none; else items 0, k, 2k … cannot be read */
    int64_t slow_ns;       /* of every read */
    const char *path;      /* NULL: "virtual" */
    atomic_bool *is_stuck; /* reads wait while it is true */
    _Atomic int n_lost;    /* reads, the next ones, that fail as where a store does not answer */
    _Atomic int64_t n_reads, n_raw_reads;
    tdmi_source *source;
};

/* The state of the source. */
struct virtual_state {
    struct tdmi_listing listing;
    struct virtual_source *of;
};

static inline uint8_t virtual_byte(int64_t item, int64_t at)
{
    return (uint8_t)((uint64_t)(item * 1000003 + at * 7919) * 0x9e3779b97f4a7c15ull >> 56);
}

static inline void virtual_wait(const struct virtual_source *self)
{
    struct timespec time = {.tv_nsec = (long)self->slow_ns};
    if (self->slow_ns > 0)
        nanosleep(&time, NULL);
    while (self->is_stuck != NULL && atomic_load(self->is_stuck))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static inline tdm_status virtual_refuse(const struct virtual_source *self, int64_t index,
                                        tdm_error *err)
{
    if (self->damaged_every > 0 && index % self->damaged_every == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "item %lld is damaged", (long long)index);
    return TDM_OK;
}

static inline void virtual_pixels(const struct virtual_source *self, int64_t index, uint8_t *pixels)
{
    int64_t n = (int64_t)self->shape.width * self->shape.height * self->shape.channels;
    for (int64_t i = 0; i < n; i++)
        pixels[i] = virtual_byte(index, i);
}

static inline tdm_status virtual_read(const void *source, int64_t index, tdmi_text *bytes,
                                      tdm_error *err)
{
    struct virtual_source *self = ((const struct virtual_state *)source)->of;
    atomic_fetch_add(&self->n_reads, 1);
    virtual_wait(self);
    if (atomic_load(&self->n_lost) > 0 && atomic_fetch_sub(&self->n_lost, 1) > 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "the store of item %lld is away", (long long)index);
    TDM_TRY(virtual_refuse(self, index, err), err, "cannot read item %lld", (long long)index);
    tdmi_text_clear(bytes);
    tdmi_text_printf(bytes, "P%d\n%d %d\n255\n", self->shape.channels == 1 ? 5 : 6,
                     self->shape.width, self->shape.height);
    char *room = tdmi_text_room(bytes, (size_t)self->shape.width * (size_t)self->shape.height *
                                           (size_t)self->shape.channels);
    if (room == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for item %lld", (long long)index);
    virtual_pixels(self, index, (uint8_t *)room);
    return TDM_OK;
}

static inline bool virtual_raw_shape(const void *source, struct tdmi_raw_shape *shape)
{
    const struct virtual_source *self = ((const struct virtual_state *)source)->of;
    *shape = self->shape;
    return self->is_raw;
}

static inline tdm_status virtual_read_raw(const void *source, int64_t index, uint8_t *pixels,
                                          tdm_error *err)
{
    struct virtual_source *self = ((const struct virtual_state *)source)->of;
    atomic_fetch_add(&self->n_raw_reads, 1);
    virtual_wait(self);
    TDM_TRY(virtual_refuse(self, index, err), err, "cannot read item %lld", (long long)index);
    virtual_pixels(self, index, pixels);
    return TDM_OK;
}

static const struct tdmi_source_table virtual_table = {
    .name = "virtual",
    .summary = "images that are computed",
    .state_bytes = sizeof(struct virtual_state),
    .read = virtual_read,
    .raw_shape = virtual_raw_shape,
    .read_raw = virtual_read_raw,
};

static inline void virtual_open(struct virtual_source *self)
{
    tdm_error err = {0};
    const char *path = self->path != NULL ? self->path : "virtual", *const classes =
                                                                        "a\0b\0c\0d\0e\0f\0g";
    assert_ok(tdmi_source_new(&virtual_table, path, &self->source, &err), &err);
    struct tdmi_listing *listing = self->source->listing;
    ((struct virtual_state *)(void *)listing)->of = self;
    for (int c = 0; c < 7; c++)
        assert_int_equal(tdmi_listing_add_class(listing, classes + 2 * c, &err), TDM_OK);
    for (int64_t i = 0; i < self->n; i++) {
        const struct tdmi_item item = {.path = "virtual", .label = (int)(i % 7)};
        assert_int_equal(tdmi_listing_add_item(listing, item, &err), TDM_OK);
    }
}

static inline void virtual_close(struct virtual_source *self)
{
    tdmi_source_close(self->source);
}
