/* The tiles of winograd_tiles.h, written once for every instruction set (isa.h). */
#include "backend/cpu/gemm/gemm_end_body.h"
#include "backend/cpu/conv/winograd_tiles.h"

enum { POSITIONS = TDMI_WINOGRAD_POSITIONS, PANEL = 2 * LANES };

/* The position of a tile. */
struct place {
    int64_t image;
    int row, column; /* of its first pixel */
};

LANES_INLINE struct place place_of(const struct tdmi_winograd_tiles *tiles, int64_t i)
{
    int64_t tile = tiles->first + i, picture = (int64_t)tiles->down * tiles->across;
    int64_t of_picture = tile % picture;
    return (struct place){tile / picture, 2 * (int)(of_picture / tiles->across),
                          2 * (int)(of_picture % tiles->across)};
}

/* ---- reading -----------------------------------------------------------------------------------
 */

/* Arguments for reading a vector of channels. */
struct reader {
    lanes a, b, c;
    struct lanes_range range;
};

LANES_INLINE struct reader reader_at(const struct tdmi_winograd_read *job, const bool is_gradient,
                                     int channel)
{
    struct reader reader;
    if (is_gradient) {
        reader.a = load_or(job->gradient->of_g, channel, LANES, 1.0f);
        reader.b = load_or(job->gradient->of_y, channel, LANES, 0.0f);
        reader.c = load_or(job->gradient->one, channel, LANES, 0.0f);
    } else {
        reader.a = load_or(job->read->scale, channel, LANES, 1.0f);
        reader.c = load_or(job->read->shift, channel, LANES, 0.0f);
        reader.range = range_of(job->read->act);
    }
    return reader;
}

LANES_INLINE lanes read_at(const struct tdmi_winograd_read *job, const bool is_gradient,
                           const struct reader *reader, int64_t at)
{
    if (!is_gradient)
        return lanes_clamp(lanes_multiply_add(lanes_load(job->from + at), reader->a, reader->c),
                           reader->range.low, reader->range.high);
    lanes dy = lanes_multiply_add(lanes_load(job->from + at), reader->a, reader->c);
    return job->gradient->of_y ? lanes_multiply_add(lanes_load(job->y + at), reader->b, dy) : dy;
}

/* size × size pixels from (row, column) on. */
LANES_INLINE void read_square(const struct tdmi_winograd_read *job, const bool is_gradient,
                              const bool is_inside, const int size, const struct place *place,
                              int64_t at, int channel, lanes values[4][4])
{
    const struct reader reader = reader_at(job, is_gradient, channel);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            bool is_there = is_inside || (place->row + i >= 0 && place->row + i < job->h &&
                                          place->column + j >= 0 && place->column + j < job->w);
            values[i][j] = is_there
                               ? read_at(job, is_gradient, &reader,
                                         at + ((int64_t)i * job->w + j) * job->channels + channel)
                               : lanes_all(0.0f);
        }
}

/* Bᵀ of four values. */
LANES_INLINE void difference(lanes *a, lanes *b, lanes *c, lanes *d)
{
    lanes first = lanes_sub(*a, *c), second = lanes_add(*b, *c), third = lanes_sub(*c, *b);
    *d = lanes_sub(*b, *d);
    *a = first;
    *b = second;
    *c = third;
}

/* A of two values, into four. */
LANES_INLINE void widen(lanes *a, lanes *b, lanes *c, lanes *d)
{
    lanes first = *a, second = *b;
    *b = lanes_add(first, second);
    *c = lanes_sub(first, second);
    *d = lanes_sub(lanes_all(0.0f), second);
}

LANES_INLINE void read_tile(const struct tdmi_winograd_read *job, const bool is_gradient,
                            const bool is_inside, const int size, const struct place *place,
                            float *to)
{
    const int64_t at =
        ((place->image * job->h + place->row) * job->w + place->column) * job->channels;
    for (int c = 0; c < job->channels; c += LANES) {
        lanes v[4][4];
        read_square(job, is_gradient, is_inside, size, place, at, c, v);
        for (int j = 0; j < size; j++)
            if (size == 4)
                difference(&v[0][j], &v[1][j], &v[2][j], &v[3][j]);
            else
                widen(&v[0][j], &v[1][j], &v[2][j], &v[3][j]);
        for (int i = 0; i < 4; i++) {
            if (size == 4)
                difference(&v[i][0], &v[i][1], &v[i][2], &v[i][3]);
            else
                widen(&v[i][0], &v[i][1], &v[i][2], &v[i][3]);
            for (int j = 0; j < 4; j++)
                lanes_store(to + (i * 4 + j) * job->to.position_step + c, v[i][j]);
        }
    }
}

LANES_INLINE void read_tiles(const struct tdmi_winograd_read *job, const bool is_gradient,
                             const int size)
{
    for (int64_t i = 0; i < job->tiles.n; i++) {
        struct place place = place_of(&job->tiles, i);
        float *to = job->to.at + i * job->to.tile_step;
        place.row += job->row;
        place.column += job->column;
        if (place.row >= 0 && place.column >= 0 && place.row + size <= job->h &&
            place.column + size <= job->w)
            read_tile(job, is_gradient, true, size, &place, to);
        else
            read_tile(job, is_gradient, false, size, &place, to);
    }
}

static void patches(const struct tdmi_winograd_read *job)
{
    if (job->gradient)
        read_tiles(job, true, 4);
    else
        read_tiles(job, false, 4);
}

static void spread(const struct tdmi_winograd_read *job)
{
    read_tiles(job, true, 2);
}

/* ---- writing -----------------------------------------------------------------------------------
 */

/* Aᵀ of four values, into the first two. */
LANES_INLINE void narrow(lanes *a, lanes *b, lanes *c, const lanes *d)
{
    lanes first = lanes_add(lanes_add(*a, *b), *c);
    *b = lanes_sub(lanes_sub(*b, *c), *d);
    *a = first;
}

/* n_rows, n_columns: of the tile that are in the result */
LANES_INLINE void write_tile(const struct tdmi_winograd_write *job, const int end, int64_t tile,
                             int64_t at, const int n_rows, const int n_columns)
{
    const float *from = job->from.at + tile * job->from.tile_step;
    const int64_t channels = job->end->columns;
    for (int c = 0; c < channels; c += LANES) {
        struct column column = column_at(job->end, end, c);
        lanes m[4][4];
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++)
                m[i][j] = lanes_load(from + (i * 4 + j) * job->from.position_step + c);
        for (int j = 0; j < 4; j++)
            narrow(&m[0][j], &m[1][j], &m[2][j], &m[3][j]);
        for (int i = 0; i < n_rows; i++) {
            narrow(&m[i][0], &m[i][1], &m[i][2], &m[i][3]);
            for (int j = 0; j < n_columns; j++)
                finish(job->end, end, &column, at + ((int64_t)i * job->w + j) * channels + c,
                       m[i][j]);
        }
        add_sums(job->end, end, &column, c, tile);
    }
}

LANES_INLINE void write_tiles(const struct tdmi_winograd_write *job, const int end)
{
    for (int64_t i = 0; i < job->tiles.n; i++) {
        const struct place place = place_of(&job->tiles, i);
        int64_t at =
            ((place.image * job->h + place.row) * job->w + place.column) * job->end->columns;
        int n_rows = job->h - place.row, n_columns = job->w - place.column;
        if (n_rows >= 2 && n_columns >= 2)
            write_tile(job, end, i, at, 2, 2);
        else
            write_tile(job, end, i, at, n_rows < 2 ? 1 : 2, n_columns < 2 ? 1 : 2);
    }
}

static void finish_tiles(const struct tdmi_winograd_write *job)
{
    if (job->end->end == TDMI_GEMM_RAW)
        write_tiles(job, TDMI_GEMM_RAW);
    else if (job->end->end == TDMI_GEMM_ACTIVATED)
        write_tiles(job, TDMI_GEMM_ACTIVATED);
    else
        write_tiles(job, TDMI_GEMM_GRADIENT);
    if (job->end->is_streamed)
        lanes_fence();
}

/* ---- weights -----------------------------------------------------------------------------------
 */

/* G of three values, into four. */
LANES_INLINE void filter(lanes *a, lanes *b, lanes *c, lanes *d)
{
    const lanes half = lanes_all(0.5f);
    lanes outer = lanes_multiply(lanes_add(*a, *c), half), inner = lanes_multiply(*b, half);
    *d = *c;
    *b = lanes_add(outer, inner);
    *c = lanes_sub(outer, inner);
}

/* The positions of one input and LANES outputs. */
LANES_INLINE void filter_weights(const struct tdmi_winograd_pack *job, int in, int out,
                                 lanes u[4][4])
{
    const lanes scale = load_or(job->scale, out, LANES, 1.0f);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int64_t at = ((int64_t)(i * 3 + j) * job->in + in) * job->out + out;
            u[i][j] = lanes_multiply(lanes_load(job->weights + at), scale);
        }
    for (int j = 0; j < 3; j++)
        filter(&u[0][j], &u[1][j], &u[2][j], &u[3][j]);
    for (int i = 0; i < 4; i++)
        filter(&u[i][0], &u[i][1], &u[i][2], &u[i][3]);
}

static void pack(const struct tdmi_winograd_pack *job)
{
    const int64_t matrix = (int64_t)job->in * job->out;
    for (int out = 0; out < job->out; out += LANES) {
        float *to = job->packed + (int64_t)(out / PANEL) * job->in * PANEL + out % PANEL;
        for (int in = 0; in < job->in; in++, to += PANEL) {
            lanes u[4][4];
            filter_weights(job, in, out, u);
            for (int p = 0; p < POSITIONS; p++)
                lanes_store(to + p * matrix, u[p / 4][p % 4]);
        }
    }
}

/* A block of LANES inputs and outputs, with the roles of inputs and outputs exchanged. */
static void put_rotated(const float *block, int64_t matrix, float *to)
{
    /* Rotating w swaps its first and last position; the halves between are symmetric. */
    static const int rotated[4] = {3, 1, 2, 0};
    for (int p = 0; p < POSITIONS; p++) {
        const float *from = block + (rotated[p / 4] * 4 + rotated[p % 4]) * LANES * LANES;
        for (int out = 0; out < LANES; out++)
            for (int in = 0; in < LANES; in++)
                to[p * matrix + out * PANEL + in] = from[in * LANES + out];
    }
}

static void pack_transposed(const struct tdmi_winograd_pack *job)
{
    const int64_t matrix = (int64_t)job->in * job->out;
    float block[POSITIONS * LANES * LANES];
    for (int in = 0; in < job->in; in += LANES)
        for (int out = 0; out < job->out; out += LANES) {
            for (int i = 0; i < LANES; i++) {
                lanes u[4][4];
                filter_weights(job, in + i, out, u);
                for (int p = 0; p < POSITIONS; p++)
                    lanes_store(block + (p * LANES + i) * LANES, u[p / 4][p % 4]);
            }
            put_rotated(block, matrix,
                        job->packed + (int64_t)(in / PANEL) * job->out * PANEL +
                            (int64_t)out * PANEL + in % PANEL);
        }
}

/* Gᵀ of four values, into the first three. */
LANES_INLINE void gather_row(lanes *a, lanes *b, lanes *c, const lanes *d)
{
    const lanes half = lanes_all(0.5f);
    lanes sum = lanes_multiply(lanes_add(*b, *c), half);
    lanes difference_of = lanes_multiply(lanes_sub(*b, *c), half);
    *a = lanes_add(*a, sum);
    *b = difference_of;
    *c = lanes_add(sum, *d);
}

static void gather(const float *positions, int64_t matrix, int64_t first, int64_t end,
                   float *dweights)
{
    for (int64_t at = first; at < end; at += LANES) {
        lanes u[4][4];
        for (int p = 0; p < POSITIONS; p++)
            u[p / 4][p % 4] = lanes_load(positions + p * matrix + at);
        for (int j = 0; j < 4; j++)
            gather_row(&u[0][j], &u[1][j], &u[2][j], &u[3][j]);
        for (int i = 0; i < 3; i++) {
            gather_row(&u[i][0], &u[i][1], &u[i][2], &u[i][3]);
            for (int j = 0; j < 3; j++)
                lanes_store(dweights + (i * 3 + j) * matrix + at, u[i][j]);
        }
    }
}

const struct tdmi_winograd_kernels TDMI_THIS_ISA(tdmi_winograd) = {
    patches, spread, finish_tiles, pack, pack_transposed, gather};
