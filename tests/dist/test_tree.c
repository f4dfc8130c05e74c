/* The tree of additions against its drawing, bit by bit. */
#include "base/rng.h"
#include "dist/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { most_shards = 40, values = 50 };

static void fill(float arrays[][values], int n)
{
    for (int s = 0; s < n; s++) {
        tdmi_rng rng = tdmi_rng_at(8, TDMI_RNG_TEST, 0, (uint64_t)s);
        for (int i = 0; i < values; i++) /* of very different sizes: the order shows in the bits */
            arrays[s][i] =
                tdmi_rng_uniform(&rng, -1.0f, 1.0f) * (float)(1u << tdmi_rng_below(&rng, 24));
    }
}

/* The drawing read from its root: the left child is the largest power of two of shards below n. */
static float drawn(float arrays[][values], int first, int n, int i)
{
    if (n == 1)
        return arrays[first][i];
    int left = 1;
    while (2 * left < n)
        left *= 2;
    return drawn(arrays, first, left, i) + drawn(arrays, first + left, n - left, i);
}

static void sums_have_the_bits_of_the_drawing(void **state)
{
    (void)state;
    for (int n = 1; n <= most_shards; n++) {
        float given[most_shards][values], summed[most_shards][values], *arrays[most_shards];
        int n_unlike = 0;
        fill(given, n);
        fill(summed, n);
        for (int s = 0; s < n; s++)
            arrays[s] = summed[s];
        tdmi_tree_sum(arrays, n, 0, values);
        for (int i = 0; i < values; i++) {
            float wanted = drawn(given, 0, n, i), chained = 0.0f;
            assert_memory_equal(&summed[0][i], &wanted, sizeof wanted);
            for (int s = 0; s < n; s++)
                chained += given[s][i];
            n_unlike += memcmp(&chained, &wanted, sizeof wanted) != 0;
        }
        assert_true(n < 4 || n_unlike > 0); /* the check can tell one order from another */
    }
}

static void ranges_are_added_on_their_own_in_any_order(void **state)
{
    static const int64_t cuts[] = {0, 1, 7, 8, 30, values};
    (void)state;
    for (int n = 1; n <= 17; n++) {
        float whole[most_shards][values], parts[most_shards][values];
        float *a[most_shards], *b[most_shards];
        fill(whole, n);
        fill(parts, n);
        for (int s = 0; s < n; s++) {
            a[s] = whole[s];
            b[s] = parts[s];
        }
        tdmi_tree_sum(a, n, 0, values);
        for (int c = 4; c >= 0; c--)
            tdmi_tree_sum(b, n, cuts[c], cuts[c + 1] - cuts[c]);
        assert_memory_equal(whole[0], parts[0], sizeof whole[0]);
    }
}

static void nothing_outside_the_range_is_touched(void **state)
{
    float given[5][values], summed[5][values], *arrays[5];
    (void)state;
    fill(given, 5);
    fill(summed, 5);
    for (int s = 0; s < 5; s++)
        arrays[s] = summed[s];
    tdmi_tree_sum(arrays, 5, 10, 0);
    assert_memory_equal(given, summed, sizeof given);
    tdmi_tree_sum(arrays, 5, 10, 5);
    for (int s = 0; s < 5; s++) {
        assert_memory_equal(summed[s], given[s], sizeof(float) * 10);
        assert_memory_equal(summed[s] + 15, given[s] + 15, sizeof(float) * (values - 15));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_bits_of_the_drawing),
        cmocka_unit_test(ranges_are_added_on_their_own_in_any_order),
        cmocka_unit_test(nothing_outside_the_range_is_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
