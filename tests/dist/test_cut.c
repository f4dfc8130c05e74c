/* How groups are cut for ranks: against all other cuts, where there are few. */
#include "dist/cut.h"
#include "unit.h"

#include <stdlib.h>

enum { most_world = 5, most_groups = 12 };

static int roots_of(const int *firsts, int world, int n_groups)
{
    int n = 0, roots[TDMI_TREE_ROOTS];
    for (int r = 0; r < world; r++)
        n += tdmi_tree_roots(firsts[r], firsts[r + 1], n_groups, roots);
    return n;
}

static int largest_of(const int *firsts, int world)
{
    int most = 0;
    for (int r = 0; r < world; r++)
        most = firsts[r + 1] - firsts[r] > most ? firsts[r + 1] - firsts[r] : most;
    return most;
}

/* The fewest subtrees of all cuts whose largest part is `most`. */
static int fewest_roots(int *firsts, int rank, int world, int n_groups, int most)
{
    int least = INT32_MAX;
    if (rank == world)
        return firsts[world] == n_groups ? roots_of(firsts, world, n_groups) : INT32_MAX;
    for (int n = 0; n <= most && firsts[rank] + n <= n_groups; n++) {
        firsts[rank + 1] = firsts[rank] + n;
        const int roots = fewest_roots(firsts, rank + 1, world, n_groups, most);
        least = roots < least ? roots : least;
    }
    return least;
}

TEST(no_other_cut_is_better)
{
    for (int world = 1; world <= most_world; world++)
        for (int n = 1; n <= most_groups; n++) {
            int firsts[most_world + 1], others[most_world + 1] = {0};
            assert_int_equal(tdmi_cut_make(n, world, firsts, NULL), TDM_OK);
            assert_int_equal(firsts[0], 0);
            assert_int_equal(firsts[world], n);
            assert_int_equal(largest_of(firsts, world), (n + world - 1) / world);
            assert_int_equal(roots_of(firsts, world, n),
                             fewest_roots(others, 0, world, n, (n + world - 1) / world));
        }
}

TEST(earlier_ranks_have_more_groups)
{
    int firsts[5];
    assert_int_equal(tdmi_cut_make(5, 2, firsts, NULL), TDM_OK);
    assert_int_equal(firsts[1], 2); /* fewer subtrees come first */
    assert_int_equal(tdmi_cut_make(3, 4, firsts, NULL), TDM_OK);
    for (int r = 0; r <= 3; r++)
        assert_int_equal(firsts[r], r);
    assert_int_equal(firsts[4], 3);
    assert_int_equal(tdmi_cut_make(4, 4, firsts, NULL), TDM_OK);
    for (int r = 0; r <= 4; r++)
        assert_int_equal(firsts[r], r);
}

/* A batch of 1,000 images in groups of 8, on 8 ranks: blocks of 16 groups are one subtree each. */
TEST(large_batches_are_cut_at_large_subtrees)
{
    int firsts[9];
    assert_int_equal(tdmi_cut_make(125, 8, firsts, NULL), TDM_OK);
    for (int r = 0; r < 8; r++)
        assert_int_equal(firsts[r], 16 * r);
    assert_int_equal(roots_of(firsts, 8, 125), 8);
}
TEST_MAIN(NULL, NULL)
