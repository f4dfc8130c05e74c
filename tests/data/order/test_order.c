/* The order of an epoch: one to one, even, unlike its neighbours, and the same for ever. */
#include "unit.h"
#include "data/order/order.h"

TEST(every_sample_stands_at_one_position)
{
    static const int64_t sizes[] = {1,    2,    3,    4,    5,     6,     7,    8,    9,
                                    15,   16,   17,   63,   64,    65,    97,   100,  127,
                                    128,  129,  255,  256,  257,   999,   1000, 1023, 1024,
                                    1025, 4093, 4096, 4097, 10007, 65536, 65537};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            tdmi_order order = {.seed = 42 + s, .n = sizes[s], .is_shuffled = true};
            unsigned char *seen = calloc((size_t)sizes[s], 1);
            assert_non_null(seen);
            for (int64_t p = 0; p < sizes[s]; p++) {
                int64_t sample = tdmi_order_at(&order, epoch, p);
                assert_in_range(sample, 0, sizes[s] - 1);
                assert_int_equal(seen[sample], 0);
                seen[sample] = 1;
            }
            free(seen);
        }
    }
}

TEST(unshuffled_positions_are_samples)
{
    tdmi_order order = {.seed = 7, .n = 1000, .is_shuffled = false};
    for (int64_t p = 0; p < order.n; p++)
        assert_int_equal(tdmi_order_at(&order, 5, p), p);
}

TEST(the_largest_sizes_stay_in_range_and_apart)
{
    static const int64_t sizes[] = {((int64_t)1 << 32) - 1, ((int64_t)1 << 32) + 1,
                                    ((int64_t)1 << 61) + 1, (int64_t)1 << 62};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        tdmi_order order = {.seed = 1, .n = sizes[s], .is_shuffled = true};
        int64_t seen[200];
        for (int i = 0; i < 200; i++) {
            int64_t position = i % 2 == 0 ? i : sizes[s] - i;
            seen[i] = tdmi_order_at(&order, 0, position);
            assert_true(seen[i] >= 0 && seen[i] < sizes[s]);
            for (int j = 0; j < i; j++)
                assert_true(seen[i] != seen[j]);
        }
    }
}

/* Positions of one sample over many epochs against the uniform law: chi-square with n - 1 degrees
 * of freedom stays below its mean plus five standard deviations. */
TEST(a_sample_stands_everywhere_equally_often)
{
    static const int64_t sizes[] = {2, 3, 5, 16, 50, 100};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        tdmi_order order = {.seed = 99, .n = sizes[s], .is_shuffled = true};
        double counts[100] = {0}, chi_square = 0;
        const uint32_t n_epochs = 20000;
        for (uint32_t epoch = 0; epoch < n_epochs; epoch++)
            counts[tdmi_order_at(&order, epoch, sizes[s] / 2)]++;
        double expected = (double)n_epochs / (double)sizes[s];
        for (int64_t i = 0; i < sizes[s]; i++)
            chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
        double freedom = (double)(sizes[s] - 1);
        assert_true((chi_square - freedom) * (chi_square - freedom) < 25 * 2 * freedom);
    }
}

/* All 24 orders of four samples, so that small data sets are shuffled as well as large ones. */
TEST(every_permutation_of_a_small_set_occurs_equally_often)
{
    double counts[256] = {0}, chi_square = 0;
    const uint32_t n_epochs = 24000;
    tdmi_order order = {.seed = 3, .n = 4, .is_shuffled = true};
    for (uint32_t epoch = 0; epoch < n_epochs; epoch++) {
        int code = 0;
        for (int64_t p = 0; p < 4; p++)
            code = code * 4 + (int)tdmi_order_at(&order, epoch, p);
        counts[code]++;
    }
    int n_seen = 0;
    for (int i = 0; i < 256; i++) {
        if (counts[i] == 0)
            continue;
        n_seen++;
        chi_square += (counts[i] - 1000) * (counts[i] - 1000) / 1000;
    }
    assert_int_equal(n_seen, 24);
    assert_true(chi_square < 23 + 5 * 6.8);
}

/* In a random order two neighbours are adjacent samples 2/n of the time, ascending half of it, and
 * share a position with the next epoch 1/n of the time. */
TEST(neighbours_know_nothing_of_each_other)
{
    tdmi_order order = {.seed = 123456789, .n = 100003, .is_shuffled = true};
    int n_adjacent = 0, n_ascending = 0, n_same_place = 0, n_same_seed = 0;
    tdmi_order other = order;
    other.seed++;
    int64_t last = tdmi_order_at(&order, 0, 0);
    for (int64_t p = 1; p < order.n; p++) {
        int64_t sample = tdmi_order_at(&order, 0, p);
        n_adjacent += llabs(sample - last) == 1;
        n_ascending += sample > last;
        n_same_place += sample == tdmi_order_at(&order, 1, p);
        n_same_seed += sample == tdmi_order_at(&other, 0, p);
        last = sample;
    }
    assert_true(n_adjacent < 15);
    assert_true(abs(n_ascending - 50001) < 500);
    assert_true(n_same_place < 12);
    assert_true(n_same_seed < 12);
}

/* Computed by a second implementation in another language. Resumed runs and other ranks rely on
 * these: a change of the function is a change of format. */
TEST(the_order_never_changes)
{
    static const struct {
        uint64_t seed;
        int64_t n;
        uint32_t epoch;
        int64_t samples[8];
    } golden[] = {
        {0u, 10, 0u, {3, 4, 5, 9, 8, 1, 6, 2}},
        {0u, 10, 1u, {3, 8, 5, 2, 9, 7, 6, 1}},
        {42u, 1000, 0u, {58, 248, 144, 3, 128, 752, 211, 193}},
        {42u, 1000, 7u, {883, 12, 912, 437, 499, 539, 244, 161}},
        {18446744073709551615u,
         1281167,
         89u,
         {1140255, 168432, 590305, 678180, 561810, 100590, 202271, 472133}},
        {1u,
         1099511627776,
         3u,
         {336325767501, 490987875205, 423130929620, 1072911109678, 712614659327, 200784215021,
          1091327300186, 177656971003}},
        {42u, 60000, 4294967295u, {52760, 53776, 39946, 2726, 51157, 58652, 57036, 41108}},
        {7u,
         4611686018427387904,
         0u,
         {1783163192887193971, 1230311129401665198, 1900057253694859109, 585979209709742901,
          2150623521658639804, 3729552384957077866, 3663291261540182225, 3372022166188266890}},
    };
    for (size_t g = 0; g < sizeof golden / sizeof golden[0]; g++) {
        tdmi_order order = {.seed = golden[g].seed, .n = golden[g].n, .is_shuffled = true};
        for (int64_t p = 0; p < 8; p++)
            assert_int_equal(tdmi_order_at(&order, golden[g].epoch, p), golden[g].samples[p]);
    }
}

TEST_MAIN(NULL, NULL)
