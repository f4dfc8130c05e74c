/* The counter generator: published vectors of the block function, and the layout of its counters,
 * which is part of the file format. */
#include "base/hash/rng.h"
#include "unit.h"

#include <math.h>

/* philox4x32-10 in the file kat_vectors of Random123. */
TEST(philox_gives_the_published_vectors)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[4];
        tdmi_philox(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

/* The layout as rng.h words it, written out a second time. */
TEST(a_stream_is_philox_of_the_documented_counter_and_key)
{
    const uint64_t seed = 0x0123456789abcdefu, sample = 0xfedcba9876543210u;
    uint64_t z = seed ^ ((uint64_t)TDMI_RNG_AUGMENT << 56);
    z ^= z >> 30;
    z *= 0xBF58476D1CE4E5B9u;
    z ^= z >> 27;
    z *= 0x94D049BB133111EBu;
    z ^= z >> 31;
    const uint32_t key[2] = {(uint32_t)z, (uint32_t)(z >> 32)};
    tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_AUGMENT, 7, sample);
    for (uint32_t block = 0; block < 3; block++) {
        const uint32_t counter[4] = {block, 7, 0x76543210u, 0xfedcba98u};
        uint32_t out[4];
        tdmi_philox(counter, key, out);
        for (int i = 0; i < 4; i++)
            assert_int_equal(tdmi_rng_u32(&rng), out[i]);
    }
}

TEST(streams_differ_in_every_part_of_their_name)
{
    tdmi_rng streams[] = {
        tdmi_rng_at(1, TDMI_RNG_INIT, 0, 0),  tdmi_rng_at(2, TDMI_RNG_INIT, 0, 0),
        tdmi_rng_at(1, TDMI_RNG_ORDER, 0, 0), tdmi_rng_at(1, TDMI_RNG_INIT, 1, 0),
        tdmi_rng_at(1, TDMI_RNG_INIT, 0, 1),  tdmi_rng_at(1, TDMI_RNG_INIT, 0, (uint64_t)1 << 32),
    };
    enum { n_streams = sizeof streams / sizeof streams[0] };
    uint32_t first[n_streams];
    for (int i = 0; i < n_streams; i++) {
        first[i] = tdmi_rng_u32(&streams[i]);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(first[i], first[j]);
    }
}

TEST(below_is_within_its_bound_and_even)
{
    static const uint32_t bounds[] = {1, 2, 3, 10, 1000, 0x80000001u, UINT32_MAX};
    tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        for (int draw = 0; draw < 2000; draw++)
            assert_true(tdmi_rng_below(&rng, bounds[i]) < bounds[i]);

    /* Chi-square of 60,000 throws of a die: above 20.5 in one of a thousand generators. */
    int counts[6] = {0};
    for (int draw = 0; draw < 60000; draw++)
        counts[tdmi_rng_below(&rng, 6)]++;
    double chi_square = 0.0;
    for (int i = 0; i < 6; i++)
        chi_square += (counts[i] - 10000.0) * (counts[i] - 10000.0) / 10000.0;
    assert_true(chi_square < 20.5);

    /* With a bound just above 2^31 a generator without rejection favours the lower half 2 : 1. */
    int low = 0;
    for (int draw = 0; draw < 20000; draw++)
        low += tdmi_rng_below(&rng, 0xC0000000u) < 0x60000000u;
    assert_true(abs(low - 10000) < 500);
}

TEST(unit_has_24_bits_and_is_below_one)
{
    tdmi_rng rng = tdmi_rng_at(4, TDMI_RNG_TEST, 0, 0);
    double sum = 0.0;
    for (int draw = 0; draw < 100000; draw++) {
        float unit = tdmi_rng_unit(&rng);
        assert_true(unit >= 0.0f && unit < 1.0f);
        assert_true(unit * 0x1p24f == floorf(unit * 0x1p24f));
        sum += (double)unit;
    }
    assert_true(fabs(sum / 100000.0 - 0.5) < 0.005);
    for (int draw = 0; draw < 1000; draw++) {
        float value = tdmi_rng_uniform(&rng, -2.0f, 3.0f);
        assert_true(value >= -2.0f && value <= 3.0f);
    }
}

TEST_MAIN(NULL, NULL)
