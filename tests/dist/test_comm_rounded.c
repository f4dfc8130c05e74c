/* Rounded sums over every transport: close to the exact ones, and the same bits on every rank. */
#include "base/hash/rng.h"
#include "dist/cut.h"
#include "dist/ranks.h"
#include "dist/tree.h"

#include <math.h>

static const char *const transports[] = {"thread", "tcp"};
enum { n_transports = sizeof transports / sizeof transports[0], margin = 3 };

static float value_of(int group, int64_t i)
{
    tdmi_rng rng = tdmi_rng_at(5, TDMI_RNG_TEST, (uint32_t)group, (uint64_t)i);
    return tdmi_rng_uniform(&rng, -1.0f, 1.0f);
}

struct rounded_case {
    int n_groups;
    int64_t n;
    bool is_done;
    float *sums; /* with margins before and after, which are not summed */
};

/* Each subtree gets an array, and the first one the sum, as in a step. */
static void sum_rank(tdmi_comm *comm, void *self)
{
    struct rounded_case *it = self;
    const int rank = tdmi_comm_rank(comm);
    int cut[most_ranks + 1], firsts[TDMI_TREE_ROOTS];
    float *roots[TDMI_TREE_ROOTS];
    bool is_right = tdmi_cut_make(it->n_groups, tdmi_comm_world(comm), cut, NULL) == TDM_OK &&
                    tdmi_comm_divide(comm, it->n_groups, NULL) == TDM_OK;
    const int n_roots = tdmi_tree_roots(cut[rank], cut[rank + 1], it->n_groups, firsts);
    const size_t n_all = (size_t)it->n + 2 * margin;
    for (int i = 0; i < n_roots || i == 0; i++) {
        const int end = i + 1 < n_roots ? firsts[i + 1] : cut[rank + 1];
        roots[i] = calloc(n_all, sizeof(float));
        for (int g = n_roots > 0 ? firsts[i] : end; g < end; g++)
            for (int64_t v = 0; v < it->n; v++)
                roots[i][margin + v] += value_of(g, v);
        for (size_t v = 0; v < margin; v++)
            roots[i][v] = roots[i][n_all - 1 - v] = (float)rank;
        if (n_roots == 0) /* a rank without groups has whatever was there */
            for (int64_t v = 0; v < it->n; v++)
                roots[i][margin + v] = NAN;
    }
    is_right = is_right && tdmi_comm_sum_rounded(comm, roots, roots[0], margin + it->n / 2,
                                                 it->n - it->n / 2, NULL) == TDM_OK;
    is_right =
        is_right && tdmi_comm_sum_rounded(comm, roots, roots[0], margin, it->n / 2, NULL) == TDM_OK;
    it->is_done = tdmi_comm_finish(comm, NULL) == TDM_OK && is_right;
    it->sums = roots[0];
    for (int i = 1; i < n_roots; i++)
        free(roots[i]);
}

/* bf16 keeps 8 bits: each part and the sum are off by 1/256 of their size at most. */
static void expect_close(const struct rounded_case *it, int rank)
{
    for (int64_t v = 0; v < it->n; v++) {
        double exact = 0.0, size = 0.0;
        for (int g = 0; g < it->n_groups; g++) {
            exact += (double)value_of(g, v);
            size += fabs((double)value_of(g, v));
        }
        if (!(fabs((double)it->sums[margin + v] - exact) <= size / 127.0))
            fail_msg("rank %d: sum %lld of %d groups is %g, and exact is %g", rank, (long long)v,
                     it->n_groups, (double)it->sums[margin + v], exact);
    }
    for (int i = 0; i < margin; i++) {
        assert_true(it->sums[i] == (float)rank);
        assert_true(it->sums[margin + it->n + i] == (float)rank);
    }
}

static void run_sums(const char *transport, int world, int n_groups, int64_t n,
                     struct rounded_case cases[most_ranks])
{
    for (int r = 0; r < world; r++)
        cases[r] = (struct rounded_case){.n_groups = n_groups, .n = n};
    run_ranks((struct job){transport, world, 20.0, false}, sum_rank, cases, sizeof cases[0]);
    for (int r = 0; r < world; r++)
        assert_true(cases[r].is_done);
}

static void release(struct rounded_case *cases, int world)
{
    for (int r = 0; r < world; r++)
        free(cases[r].sums);
}

static void expect_sums(int world, int n_groups, int64_t n)
{
    struct rounded_case cases[n_transports][most_ranks];
    const size_t n_bytes = sizeof(float) * (size_t)n;
    for (int t = 0; t < n_transports; t++) {
        run_sums(transports[t], world, n_groups, n, cases[t]);
        expect_close(&cases[t][0], 0);
        for (int r = 0; r < world; r++)
            if (memcmp(cases[t][r].sums + margin, cases[0][0].sums + margin, n_bytes) != 0)
                fail_msg("%s: %d groups of %lld values: rank %d of %d has other bits",
                         transports[t], n_groups, (long long)n, r, world);
    }
    for (int64_t v = 0; v < n; v++) { /* a sum was rounded where its owner keeps it, too */
        uint32_t bits;
        memcpy(&bits, &cases[0][0].sums[margin + v], sizeof bits);
        assert_int_equal(bits & 0xffff, 0);
    }
    for (int t = 0; t < n_transports; t++)
        release(cases[t], world);
}

TEST(rounded_sums_are_close_and_the_same_on_all_ranks)
{
    static const int64_t sizes[] = {1, 2, 33, 1000, 4097};
    for (int world = 2; world <= 5; world++)
        for (int n_groups = 1; n_groups <= 9; n_groups += 2)
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                expect_sums(world, n_groups, sizes[i]);
}

/* Two chunks and more, of which the blocks are used again. */
TEST(long_rounded_sums_go_in_chunks)
{
    expect_sums(2, 2, 700001);
    expect_sums(3, 7, 450000);
    expect_sums(4, 4, 300007);
}

/* Margins of all ranks are their own. */
TEST(nothing_beside_the_sum_changes)
{
    struct rounded_case cases[most_ranks];
    run_sums("tcp", 4, 3, 777, cases);
    for (int r = 0; r < 4; r++)
        expect_close(&cases[r], r);
    release(cases, 4);
}

TEST_MAIN(NULL, NULL)
