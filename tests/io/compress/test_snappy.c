/*
 * Blocks that Snappy packed: streams are drawn element by element together with what they mean, so
 * that nothing but the format says what is right.
 */

#include "io/compress/snappy.h"
#include "unit.h"

struct stream {
    uint8_t packed[TDMI_SNAPPY_MOST_BYTES], bytes[TDMI_SNAPPY_BLOCK_BYTES];
    size_t n_packed, n_bytes;
    uint32_t state;
};

static uint32_t draw(struct stream *stream, uint32_t below)
{
    stream->state = stream->state * 1664525u + 1013904223u;
    return (stream->state >> 8) % below;
}

static void put(struct stream *stream, size_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        stream->packed[stream->n_packed++] = (uint8_t)(value >> 8 * i);
}

/* n_length: bytes of its own for the length; 0: it stands in the tag. */
static void add_literal(struct stream *stream, size_t n, size_t n_length)
{
    put(stream, n_length == 0 ? (n - 1) << 2 : (59 + n_length) << 2, 1);
    put(stream, n - 1, n_length);
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)draw(stream, 256);
        put(stream, byte, 1);
        stream->bytes[stream->n_bytes++] = byte;
    }
}

static void add_copy(struct stream *stream, size_t n, size_t distance, int kind)
{
    if (kind == 1) {
        put(stream, 1 | (n - 4) << 2 | distance >> 8 << 5, 1);
        put(stream, distance, 1);
    } else {
        put(stream, (size_t)kind | (n - 1) << 2, 1);
        put(stream, distance, kind == 2 ? 2 : 4);
    }
    for (size_t i = 0; i < n; i++, stream->n_bytes++)
        stream->bytes[stream->n_bytes] = stream->bytes[stream->n_bytes - distance];
}

static void add_any(struct stream *stream)
{
    const int kind = stream->n_bytes == 0 ? 0 : (int)draw(stream, 4);
    if (kind == 0) {
        const size_t n_length = draw(stream, 5);
        add_literal(stream, 1 + draw(stream, n_length == 0 ? 60 : 300),
                    n_length == 1 ? 2 : n_length);
        return;
    }
    const size_t most = stream->n_bytes < 2047 ? stream->n_bytes
                        : kind == 1            ? 2047
                                               : stream->n_bytes;
    const size_t distance = 1 + draw(stream, (uint32_t)(draw(stream, 2) && most > 20 ? 20 : most));
    add_copy(stream, kind == 1 ? 4 + draw(stream, 8) : 1 + draw(stream, 64), distance, kind);
}

static struct stream *stream_of(uint32_t seed, size_t at_least)
{
    struct stream *stream = calloc(1, sizeof *stream);
    assert_non_null(stream);
    stream->state = seed;
    while (stream->n_bytes < at_least)
        add_any(stream);
    return stream;
}

/* In memory of exactly its size, so that the sanitizers see a byte too far. */
static int64_t unpack(const struct stream *stream, size_t n_packed, size_t n_wanted, uint8_t **out)
{
    uint8_t *packed = malloc(n_packed + 1);
    *out = malloc(n_wanted + 1);
    assert_non_null(packed);
    assert_non_null(*out);
    uint8_t *end = packed + 1; /* not where malloc's alignment begins */
    memcpy(end, stream->packed, n_packed);
    int64_t n = tdmi_snappy_block(end, n_packed, stream->n_bytes, *out, n_wanted);
    free(packed);
    return n;
}

TEST(every_element_is_unpacked)
{
    for (uint32_t seed = 0; seed < 300; seed++) {
        struct stream *stream = stream_of(seed, seed < 200 ? 1 + seed : 40000);
        uint8_t *out;
        assert_int_equal(unpack(stream, stream->n_packed, stream->n_bytes, &out), stream->n_packed);
        assert_memory_equal(out, stream->bytes, stream->n_bytes);
        free(out);
        free(stream);
    }
}

TEST(a_part_may_be_requested)
{
    struct stream *stream = stream_of(5, 900);
    for (size_t n = 0; n <= stream->n_bytes; n++) {
        uint8_t *out;
        assert_true(unpack(stream, stream->n_packed, n, &out) >= 0);
        assert_memory_equal(out, stream->bytes, n);
        free(out);
    }
    free(stream);
}

TEST(input_that_ends_early_is_refused)
{
    struct stream *stream = stream_of(6, 900);
    for (size_t n = 0; n < stream->n_packed; n++) {
        uint8_t *out;
        assert_int_equal(unpack(stream, n, stream->n_bytes, &out), -1);
        free(out);
    }
    free(stream);
}

TEST(a_block_stands_alone)
{
    static const uint8_t before[] = {0x00, 'a', 0x05, 2},      /* two before one byte */
        nowhere[] = {0x00, 'a', 0x05, 0},                      /* no distance */
        beyond[] = {0x04, 'a', 'b', 0xfe, 1, 0},               /* 64 bytes where 3 are left */
        far_off[] = {0x00, 'a', 0x03, 0xff, 0xff, 0xff, 0xff}, /* four bytes of distance */
        endless[] = {0xfc, 0xff, 0xff, 0xff, 0xff, 'a', 'b'};  /* 2^32 bytes as they are */
    uint8_t out[8];
    assert_int_equal(tdmi_snappy_block(before, sizeof before, 5, out, 5), -1);
    assert_int_equal(tdmi_snappy_block(nowhere, sizeof nowhere, 5, out, 5), -1);
    assert_int_equal(tdmi_snappy_block(beyond, sizeof beyond, 5, out, 5), -1);
    assert_int_equal(tdmi_snappy_block(far_off, sizeof far_off, 2, out, 2), -1);
    assert_int_equal(tdmi_snappy_block(endless, sizeof endless, 5, out, 5), -1);
}

TEST(the_length_is_read)
{
    static const uint8_t small[] = {0x40}, large[] = {0xfe, 0xff, 0xff, 0xff, 0x0f},
                         larger[] = {0xff, 0xff, 0xff, 0xff, 0x1f}, open[] = {0x80, 0x80};
    int64_t n;
    assert_int_equal(tdmi_snappy_length(small, sizeof small, &n), 1);
    assert_int_equal(n, 64);
    assert_int_equal(tdmi_snappy_length(large, sizeof large, &n), 5);
    assert_int_equal(n, 0xfffffffe);
    assert_int_equal(tdmi_snappy_length(larger, sizeof larger, &n), 0);
    assert_int_equal(tdmi_snappy_length(open, sizeof open, &n), 0);
    assert_int_equal(tdmi_snappy_length(small, 0, &n), 0);
}

TEST_MAIN(NULL, NULL)
