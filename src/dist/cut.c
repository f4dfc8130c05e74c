/*
 * Ranks are taken from the last to the first. best[r][g] is the fewest subtrees that the ranks from
 * r on make of the groups from g on.
 */
#include "dist/cut.h"
#include "base/scope.h"

/* The fewest subtrees, or `too_many`, of the groups from `at` on; take gets the number of groups
 * that rank r computes then. after: the same of the rank after it. */
static int fewest(int at, int n_groups, int most, const int *after, int *take)
{
    int roots[TDMI_TREE_ROOTS], least = after[at];
    *take = 0;
    for (int n = 1; n <= most && at + n <= n_groups; n++) {
        const int all = after[at + n] == INT32_MAX
                            ? INT32_MAX
                            : tdmi_tree_roots(at, at + n, n_groups, roots) + after[at + n];
        if (all < INT32_MAX && all <= least) {
            least = all;
            *take = n;
        }
    }
    return least;
}

tdm_status tdmi_cut_make(int n_groups, int world, int *firsts, tdm_error *err)
{
    const int most = (n_groups + world - 1) / world, width = n_groups + 1;
    TDMI_AT_END(tdmi_free_at) int *best = NULL;
    TDMI_AT_END(tdmi_free_at) int *takes = NULL;
    TDMI_TRY(TDMI_NEW(best, 2 * (size_t)width, err));
    TDMI_TRY(TDMI_NEW(takes, (size_t)world * (size_t)width, err));
    for (int g = 0; g <= n_groups; g++)
        best[world % 2 * width + g] = g == n_groups ? 0 : INT32_MAX;
    for (int r = world - 1; r >= 0; r--)
        for (int g = 0; g <= n_groups; g++)
            best[r % 2 * width + g] =
                fewest(g, n_groups, most, best + (r + 1) % 2 * width, &takes[r * width + g]);
    firsts[0] = 0;
    for (int r = 0; r < world; r++)
        firsts[r + 1] = firsts[r] + takes[r * width + firsts[r]];
    return TDM_OK;
}
