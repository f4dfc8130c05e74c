/*
 * Preparation for both directions of depthwise convolution, for every instruction set (isa.h):
 * padded vectors, packed weights, the ring of rows; and the units of a team's member. A vector is a
 * block of channels of one pixel, and blocks are independent of each other.
 */
#pragma once

#include "backend/cpu/access.h"
#include "backend/cpu/depthwise/depthwise.h"

#include <limits.h>
#include <string.h>

enum { LARGEST = 9 }; /* taps that are kept in registers */

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

/* ---- units ----------------------------------------------------------------------------------- */

/* Blocks of channels of a band. */
struct blocks {
    int first, end;
};

/* A member's share of all rows times blocks, and a picture's rows times blocks. */
struct units {
    struct tdmi_share mine;
    int64_t of_picture;
    int blocks;
};

static struct units units_of(const struct tdmi_member *member, int n, int rows, int blocks)
{
    const int64_t of_picture = (int64_t)rows * blocks;
    return (struct units){tdmi_member_share(member, n * of_picture), of_picture, blocks};
}

/* Pictures first to end - 1 have units of the member. */
static struct tdmi_share pictures_of(const struct units *units)
{
    return (struct tdmi_share){units->mine.first / units->of_picture,
                               (units->mine.end + units->of_picture - 1) / units->of_picture};
}

/* The units of the band of n_rows at `row` that are the member's: those that begin in its share. */
static struct blocks blocks_of(const struct units *units, int64_t picture, int row, int n_rows)
{
    const int64_t at = picture * units->of_picture + (int64_t)row * units->blocks;
    const int64_t edges[2] = {units->mine.first - at, units->mine.end - at};
    int at_edge[2];
    for (int i = 0; i < 2; i++) {
        const int64_t block = edges[i] > 0 ? (edges[i] + n_rows - 1) / n_rows : 0;
        at_edge[i] = block < units->blocks ? (int)block : units->blocks;
    }
    return (struct blocks){at_edge[0], at_edge[1]};
}

static bool same_blocks(struct blocks a, struct blocks b)
{
    return a.first == b.first && a.end == b.end;
}

/* The row near which the member's units end in a tensor of so many rows a picture, counted over all
 * pictures. */
static int64_t end_row(const struct units *units, int rows)
{
    return (units->mine.end * rows + units->of_picture - 1) / units->of_picture;
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
    struct units units;
    struct blocks at_work; /* those of the band at work */
    /* In a team: the sums of all units (picture, band, block, n_sums, lanes), and those of the band
     * at work; else NULL. */
    float *pieces, *band_pieces;
    int n_sums, bands; /* bands: of a picture */
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

/* Blocks at work before this one are whole vectors; one behind them is not. */
static int whole_blocks(const struct job *job)
{
    const int whole = job->shape->channels / LANES;
    return job->at_work.end < whole ? job->at_work.end : whole;
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

/* n pictures of so many rows of results; in a team, each member has room of its own. */
static void start(struct job *job, const struct tdmi_depthwise *shape,
                  struct tdmi_depthwise_ring ring, void *workspace,
                  const struct tdmi_member *member, int n, int rows, int n_sums)
{
    job->shape = shape;
    job->ring = ring;
    job->blocks = (shape->channels + LANES - 1) / LANES;
    job->units = units_of(member, n, rows, job->blocks);
    job->bands = (rows + ring.band_rows - 1) / ring.band_rows;
    job->n_sums = n_sums;
    const size_t bytes = tdmi_depthwise_room_at(shape, &ring, NULL).bytes;
    job->pieces =
        member ? (float *)(void *)((char *)workspace + (size_t)member->size * bytes) : NULL;
    job->room = tdmi_depthwise_room_at(
        shape, &ring, (char *)workspace + (member ? (size_t)member->index * bytes : 0));
    job->block_values = (int64_t)ring.columns * LANES;
    job->slot_values = job->blocks * job->block_values;
    /* The borders of slots and the last slot stay zero; nothing writes there. */
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

/* The band of this number of a picture begins; false: no unit of it is the member's. */
static bool enter_band(struct job *job, int64_t picture, int row, int n_rows)
{
    job->at_work = blocks_of(&job->units, picture, row, n_rows);
    if (job->pieces)
        job->band_pieces = job->pieces + (picture * job->bands + row / job->ring.band_rows) *
                                             job->blocks * job->n_sums * LANES;
    return job->at_work.first < job->at_work.end;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Sum k of a unit of the band at work. */
LANES_INLINE void end_sum(const struct job *job, int block, int k, double *alone, lanes sum)
{
    if (job->band_pieces)
        lanes_store(job->band_pieces + ((int64_t)block * job->n_sums + k) * LANES, sum);
    else
        lanes_add_to_doubles(alone, sum);
}

static void deliver(const struct job *job, double *to, const double *from)
{
    memcpy(to, from, sizeof(double) * (size_t)job->shape->channels);
}

/* Sum `at` of all blocks, added up: one of the first two, or a tap of the weights' gradient. */
static void deliver_total(const struct job *job, int64_t at, const double *total,
                          double *const sums[2], float *dweights)
{
    const int block = (int)(at / job->n_sums), k = (int)(at % job->n_sums);
    const int64_t channel = (int64_t)block * LANES;
    for (int l = 0; l < block_channels(job, block); l++) {
        if (k >= 2)
            dweights[(k - 2) * job->shape->channels + channel + l] = (float)total[l];
        else if (sums[k])
            sums[k][channel + l] = total[l];
    }
}

/* In a team, after a wait: add up the sums of the units of n pictures, each member some. */
static void add_pieces(const struct job *job, const struct tdmi_member *member, int n,
                       double *const sums[2], float *dweights)
{
    enum { AT_ONCE = 8 };
    const int64_t all = (int64_t)job->blocks * job->n_sums, n_bands = (int64_t)n * job->bands;
    const struct tdmi_share mine = tdmi_member_share(member, all);
    double totals[AT_ONCE * LANES];
    for (int64_t at = mine.first; at < mine.end; at += AT_ONCE) {
        const int count = mine.end - at < AT_ONCE ? (int)(mine.end - at) : AT_ONCE;
        memset(totals, 0, sizeof totals);
        for (int64_t band = 0; band < n_bands; band++)
            for (int i = 0; i < count; i++)
                lanes_add_to_doubles(totals + (ptrdiff_t)i * LANES,
                                     lanes_load(job->pieces + (band * all + at + i) * LANES));
        for (int i = 0; i < count; i++)
            deliver_total(job, at + i, totals + (ptrdiff_t)i * LANES, sums, dweights);
    }
}
