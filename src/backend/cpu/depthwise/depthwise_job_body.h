/*
 * Preparation for both directions of depthwise convolution, for every instruction set (isa.h):
 * padded vectors, packed weights, the ring of rows. A vector is a block of channels of one pixel,
 * and blocks are independent of each other.
 */
#pragma once

#include "backend/cpu/access.h"
#include "backend/cpu/depthwise/depthwise.h"

#include <limits.h>
#include <string.h>

enum { LARGEST = 9 }; /* taps that are kept in registers */

/* Which specialised loops an instruction set gets: CAN_STREAM, stores of whole lines past the
 * caches; HAS_USUAL, loops of the usual shapes. Plain C has only the general loops, since more
 * would take minutes to compile. */
enum { CAN_STREAM = LANES == 16, HAS_USUAL = LANES > 4 };

/* ---- what the next band reads -----------------------------------------------------------------
 */

/* A band's rows are filled at the speed of memory and then multiplied without it, so while a band
 * walks, each step asks for some lines of what the next one will read. */
enum { LINE = 16, MOST_AHEAD = 4 };

struct ahead {
    const float *at, *end; /* the range at work; NULL: nothing is left */
    int lines;             /* a step */
    const float *next[MOST_AHEAD], *next_end[MOST_AHEAD];
    int n_next;
    int64_t all_lines;
};

/* Values first to end of a tensor that has `all`, or none. */
static void add_ahead(struct ahead *ahead, const float *tensor, int64_t first, int64_t end,
                      int64_t all)
{
    end = end < all ? end : all;
    if (!tensor || first >= end)
        return;
    ahead->next[ahead->n_next] = tensor + first;
    ahead->next_end[ahead->n_next++] = tensor + end;
    ahead->all_lines += (end - first + LINE - 1) / LINE;
}

static void begin_ahead(struct ahead *ahead, int64_t n_steps)
{
    ahead->lines = n_steps > 0 ? (int)((ahead->all_lines + n_steps - 1) / n_steps) : 0;
    if (ahead->lines > 0 && ahead->n_next > 0) {
        ahead->at = ahead->next[--ahead->n_next];
        ahead->end = ahead->next_end[ahead->n_next];
    }
}

LANES_INLINE void look_ahead(struct ahead *ahead)
{
    const float *at = ahead->at;
    if (!at)
        return;
    const int lines = ahead->lines;
    if (ahead->end - at > lines * LINE) {
        for (int i = 0; i < lines; i++)
            lanes_prefetch(at + i * LINE);
        ahead->at = at + lines * LINE;
        return;
    }
    for (; at < ahead->end; at += LINE)
        lanes_prefetch(at);
    ahead->at = ahead->n_next > 0 ? ahead->next[--ahead->n_next] : NULL;
    ahead->end = ahead->at ? ahead->next_end[ahead->n_next] : NULL;
}

/* ---- what both directions prepare ------------------------------------------------------------ */

/* One call at work. */
struct job {
    const struct tdmi_depthwise *shape;
    struct tdmi_depthwise_ring ring;
    struct tdmi_depthwise_room room;
    int blocks;
    int64_t block_values, slot_values; /* of the ring */
    bool streams;
    struct ahead *ahead; /* of the band at work */
};

/* The index in memory of row r of x. */
LANES_INLINE int64_t slot_of(const struct tdmi_depthwise_slots *slots, int r)
{
    return slots->n > 0 ? (slots->first + r) % slots->n : r;
}

static int block_channels(const struct job *job, int block)
{
    int left = job->shape->channels - block * LANES;
    return left < LANES ? left : LANES;
}

static void pad_channels(const struct job *job, float *to, const float *from, float otherwise)
{
    for (int c = 0; c < job->blocks * LANES; c++)
        to[c] = from && c < job->shape->channels ? from[c] : otherwise;
}

static void pack_weights(const struct job *job, const float *weights)
{
    int taps = job->shape->kernel * job->shape->kernel, channels = job->shape->channels;
    for (int b = 0; b < job->blocks; b++)
        for (int tap = 0; tap < taps; tap++)
            for (int l = 0; l < LANES; l++) {
                int c = b * LANES + l;
                job->room.weights[(b * taps + tap) * LANES + l] =
                    c < channels ? weights[tap * channels + c] : 0.0f;
            }
}

static void pack_read_form(const struct job *job, const struct tdmi_read_form *form,
                           const float *centre)
{
    pad_channels(job, job->room.scale, form->scale, form->scale ? 0.0f : 1.0f);
    pad_channels(job, job->room.shift, form->shift, 0.0f);
    pad_channels(job, job->room.centre, centre, 0.0f);
    for (int i = 0; i < 2; i++)
        memset(job->room.sums[i], 0, sizeof(double) * (size_t)job->blocks * LANES);
}

static void start(struct job *job, const struct tdmi_depthwise *shape,
                  struct tdmi_depthwise_ring ring, void *workspace)
{
    job->shape = shape;
    job->ring = ring;
    job->room = tdmi_depthwise_room_at(shape, &ring, workspace);
    job->blocks = (shape->channels + LANES - 1) / LANES;
    job->block_values = (int64_t)ring.columns * LANES;
    job->slot_values = job->blocks * job->block_values;
    /* The borders of slots and the last slot stay zero; nobody writes there. */
    memset(job->room.ring, 0, sizeof(float) * (size_t)((ring.slots + 1) * job->slot_values));
}

static bool may_stream(const struct tdmi_depthwise *shape, const float *to, int64_t values)
{
    return values * (int64_t)sizeof(float) >= TDMI_STREAM_BYTES && (uintptr_t)to % 64 == 0 &&
           shape->channels % 16 == 0;
}

static float *slot(const struct job *job, int row)
{
    return job->room.ring + row % job->ring.slots * job->slot_values;
}

/* rows[k] = prepared row first + k, or zeros where there is none. */
static void list_rows(const struct job *job, int first, int n_rows)
{
    for (int k = 0; k < job->ring.slots; k++) {
        int row = first + k;
        job->room.rows[k] = row >= 0 && row < n_rows
                                ? slot(job, row)
                                : job->room.ring + job->ring.slots * job->slot_values;
    }
}

static void deliver(const struct job *job, double *to, const double *from)
{
    memcpy(to, from, sizeof(double) * (size_t)job->shape->channels);
}
