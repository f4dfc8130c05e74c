/* Placing buffers in one arena: whatever the lifetimes, nobody stands on anybody's toes. */
#include "base/hash/rng.h"
#include "graph/plan.h"
#include "unit.h"

enum { most_buffers = 60, times = 40 };

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static bool overlap(const struct tdmi_buffer *a, const struct tdmi_buffer *b)
{
    bool in_time = a->first <= b->last && b->first <= a->last;
    bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    return in_time && in_space;
}

/* The largest number of bytes that live at one time: no arena can be smaller. */
static size_t most_live(const struct tdmi_buffer *buffers, int n)
{
    size_t most = 0;
    for (int time = 0; time < times; time++) {
        size_t live = 0;
        for (int i = 0; i < n; i++)
            if (buffers[i].first <= time && time <= buffers[i].last)
                live += rounded(buffers[i].bytes);
        most = live > most ? live : most;
    }
    return most;
}

TEST(random_lifetimes_never_overlap_in_time_and_space)
{
    for (int round = 0; round < 500; round++) {
        tdmi_rng rng = tdmi_rng_at(5, TDMI_RNG_TEST, 0, (uint64_t)round);
        struct tdmi_buffer buffers[most_buffers], wanted[most_buffers], *places[most_buffers];
        int n = 1 + (int)tdmi_rng_below(&rng, most_buffers);
        size_t sum = 0;
        for (int i = 0; i < n; i++) {
            int first = (int)tdmi_rng_below(&rng, times);
            int last = first + (int)tdmi_rng_below(&rng, (uint32_t)(times - first));
            size_t bytes = tdmi_rng_below(&rng, 5) == 0 ? 0 : tdmi_rng_below(&rng, 5000);
            buffers[i] = (struct tdmi_buffer){.bytes = bytes, .first = first, .last = last};
            places[i] = &buffers[i];
            sum += rounded(bytes);
        }
        memcpy(wanted, buffers, sizeof wanted);
        size_t total = tdmi_place_buffers(places, n);
        assert_true(total <= sum);
        assert_true(total >= most_live(wanted, n));
        for (int i = 0; i < n; i++) {
            assert_int_equal(buffers[i].first, wanted[i].first);
            assert_int_equal(buffers[i].last, wanted[i].last);
            assert_true(buffers[i].bytes >= wanted[i].bytes);
            assert_true((buffers[i].bytes == 0) == (wanted[i].bytes == 0));
            if (buffers[i].bytes == 0)
                continue;
            assert_int_equal(buffers[i].offset % 64, 0);
            assert_true(buffers[i].offset + buffers[i].bytes <= total);
            for (int j = 0; j < i; j++)
                assert_false(buffers[j].bytes && overlap(&buffers[i], &buffers[j]));
        }
    }
}

TEST(buffers_that_never_meet_share_their_bytes)
{
    struct tdmi_buffer a = {1000, 0, 0, 3, false}, b = {900, 0, 4, 7, false},
                       c = {64, 0, 3, 4, false};
    struct tdmi_buffer *places[] = {&a, &b, &c};
    assert_int_equal(tdmi_place_buffers(places, 3), 1024 + 64);
    assert_int_equal(a.offset, b.offset);
}

TEST(nothing_needs_nothing)
{
    struct tdmi_buffer a = {0, 0, 0, 3, false}, *places[] = {&a};
    assert_int_equal(tdmi_place_buffers(places, 1), 0);
    assert_int_equal(tdmi_place_buffers(places, 0), 0);
}

TEST_MAIN(NULL, NULL)
