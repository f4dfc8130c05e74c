/* The tree of additions against its drawing, bit by bit. */
#include "base/hash/rng.h"
#include "dist/tree.h"
#include "unit.h"

enum { most_groups = 40, values = 50 };

static void fill(float arrays[][values], int n)
{
    for (int s = 0; s < n; s++) {
        tdmi_rng rng = tdmi_rng_at(8, TDMI_RNG_TEST, 0, (uint64_t)s);
        for (int i = 0; i < values; i++) /* of very different sizes: the order shows in the bits */
            arrays[s][i] =
                tdmi_rng_uniform(&rng, -1.0f, 1.0f) * (float)(1u << tdmi_rng_below(&rng, 24));
    }
}

/* The drawing read from its root: the left child is the largest power of two of groups below n. */
static float drawn(float arrays[][values], int first, int n, int i)
{
    if (n == 1)
        return arrays[first][i];
    int left = 1;
    while (2 * left < n)
        left *= 2;
    return drawn(arrays, first, left, i) + drawn(arrays, first + left, n - left, i);
}

/* Every group for itself, and all additions at once. */
static void sum_all(float *const *arrays, int n, int64_t first, int64_t n_values)
{
    struct tdmi_tree_part parts[most_groups];
    struct tdmi_tree_addition additions[most_groups];
    for (int s = 0; s < n; s++)
        parts[s] = (struct tdmi_tree_part){s, arrays[s]};
    assert_int_equal(tdmi_tree_plan(parts, n, n, n, additions), n - 1);
    tdmi_tree_sum(parts, additions, n - 1, first, n_values);
}

TEST(sums_have_the_bits_of_the_drawing)
{
    for (int n = 1; n <= most_groups; n++) {
        float given[most_groups][values], summed[most_groups][values], *arrays[most_groups];
        int n_unlike = 0;
        fill(given, n);
        fill(summed, n);
        for (int s = 0; s < n; s++)
            arrays[s] = summed[s];
        sum_all(arrays, n, 0, values);
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

/* More levels wait than whole blocks have room for, and there are several blocks. */
TEST(many_groups_are_added_in_blocks)
{
    enum { n_groups = 1500, n_values = 1100 };
    struct tdmi_tree_part *parts = calloc(n_groups, sizeof *parts);
    struct tdmi_tree_addition *additions = calloc(n_groups, sizeof *additions);
    float *given = calloc(n_groups * n_values, sizeof *given);
    float *column = calloc(n_groups, sizeof(float[values]));
    assert_true(parts && additions && given && column);
    for (int s = 0; s < n_groups; s++) {
        tdmi_rng rng = tdmi_rng_at(9, TDMI_RNG_TEST, 0, (uint64_t)s);
        parts[s] = (struct tdmi_tree_part){s, given + s * n_values};
        for (int i = 0; i < n_values; i++)
            parts[s].values[i] = tdmi_rng_uniform(&rng, -1.0f, 1.0f);
        column[s * values] = parts[s].values[n_values - 2];
    }
    const float wanted = drawn((float(*)[values])column, 0, n_groups, 0);
    assert_int_equal(tdmi_tree_plan(parts, n_groups, n_groups, n_groups, additions), n_groups - 1);
    tdmi_tree_sum(parts, additions, n_groups - 1, 1, n_values - 2);
    assert_memory_equal(&parts[0].values[n_values - 2], &wanted, sizeof wanted);
    free(column);
    free(given);
    free(additions);
    free(parts);
}

TEST(ranges_are_added_on_their_own_in_any_order)
{
    static const int64_t cuts[] = {0, 1, 7, 8, 30, values};
    for (int n = 1; n <= 17; n++) {
        float whole[most_groups][values], parts[most_groups][values];
        float *a[most_groups], *b[most_groups];
        fill(whole, n);
        fill(parts, n);
        for (int s = 0; s < n; s++) {
            a[s] = whole[s];
            b[s] = parts[s];
        }
        sum_all(a, n, 0, values);
        for (int c = 4; c >= 0; c--)
            sum_all(b, n, cuts[c], cuts[c + 1] - cuts[c]);
        assert_memory_equal(whole[0], parts[0], sizeof whole[0]);
    }
}

TEST(nothing_outside_the_range_is_touched)
{
    float given[5][values], summed[5][values], *arrays[5];
    fill(given, 5);
    fill(summed, 5);
    for (int s = 0; s < 5; s++)
        arrays[s] = summed[s];
    sum_all(arrays, 5, 10, 0);
    assert_memory_equal(given, summed, sizeof given);
    sum_all(arrays, 5, 10, 5);
    assert_memory_equal(summed[1], given[1], sizeof given - sizeof given[0]);
    assert_memory_equal(summed[0], given[0], sizeof(float) * 10);
    assert_memory_equal(summed[0] + 15, given[0] + 15, sizeof(float) * (values - 15));
}

/* The left child's size, as the drawing has it: is [first, end) drawn below [low, high)? */
static bool is_drawn(int first, int end, int low, int high)
{
    int left = 1;
    if (first == low && end == high)
        return true;
    if (high - low == 1)
        return false;
    while (2 * left < high - low)
        left *= 2;
    return end <= low + left ? is_drawn(first, end, low, low + left)
                             : first >= low + left && is_drawn(first, end, low + left, high);
}

TEST(subtrees_are_those_that_are_drawn)
{
    for (int n = 1; n <= most_groups; n++)
        for (int first = 0; first < n; first++)
            for (int end = first + 1; end <= n; end++)
                assert_int_equal(tdmi_tree_is_subtree(first, end, n), is_drawn(first, end, 0, n));
}

/* Subtrees that are summed on their own first, of whatever sizes and in whatever order. */
TEST(subtrees_summed_before_change_no_bit)
{
    for (int round = 0; round < 300; round++) {
        tdmi_rng rng = tdmi_rng_at(9, TDMI_RNG_TEST, 1, (uint64_t)round);
        const int n = 1 + (int)tdmi_rng_below(&rng, most_groups);
        float given[most_groups][values], whole[most_groups][values], *arrays[most_groups];
        struct tdmi_tree_part parts[most_groups];
        struct tdmi_tree_addition additions[most_groups];
        int n_parts = n;
        fill(given, n);
        fill(whole, n);
        for (int s = 0; s < n; s++) {
            arrays[s] = whole[s];
            parts[s] = (struct tdmi_tree_part){s, given[s]};
        }
        sum_all(arrays, n, 0, values);
        for (int i = 0; i < 60; i++) {
            const int begin = (int)tdmi_rng_below(&rng, (uint32_t)n_parts);
            const int n_taken = 1 + (int)tdmi_rng_below(&rng, (uint32_t)(n_parts - begin));
            const int end = begin + n_taken < n_parts ? parts[begin + n_taken].first : n;
            if (n_taken == n_parts || !tdmi_tree_is_subtree(parts[begin].first, end, n))
                continue;
            tdmi_tree_sum(parts + begin, additions,
                          tdmi_tree_plan(parts + begin, n_taken, end, n, additions), 0, values);
            n_parts -= n_taken - 1;
            memmove(parts + begin + 1, parts + begin + n_taken,
                    sizeof *parts * (size_t)(n_parts - begin - 1));
        }
        tdmi_tree_sum(parts, additions, tdmi_tree_plan(parts, n_parts, n, n, additions), 0, values);
        assert_memory_equal(given[0], whole[0], sizeof whole[0]);
    }
}

TEST_MAIN(NULL, NULL)
