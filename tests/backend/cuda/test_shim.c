/* The shim itself: threads meet as on a GPU, and what is undefined there is an error here. */
#include "backend/cuda/values.h"
#include "backend/cuda/meet.h"
#include "unit.h"

TEST(threads_meet_at_barriers_and_in_warps)
{
    int64_t sums[3];
    int from[3 * 100], to[3 * 100];
    uint32_t bits[2];
    for (int i = 0; i < 300; i++)
        from[i] = 7 * i;
    for (int reversed = 0; reversed < 2; reversed++) {
        tdmi_shim_use((struct tdmi_shim_order){.is_reversed = reversed});
        assert_int_equal(meet_add(3, 128, sums), 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(sums[i], 128 * 1000 * i + 127 * 64 + 128);
        assert_int_equal(meet_turn(3, 100, from, to), 0);
        for (int i = 0; i < 300; i++)
            assert_int_equal(to[i], 7 * (i % 100 == 99 ? i : i + 1));
        assert_int_equal(meet_ballot(64, bits), 0);
        assert_int_equal(bits[0], 0xaaaaaaaau);
        assert_int_equal(bits[1], 0xaaaaaaaau);
        assert_int_equal(tdmi_shim_facts().launches, 3);
        assert_int_equal(tdmi_shim_facts().largest_block, 128);
    }
}

static void expect_problem(int code, const char *says)
{
    assert_int_equal(code, 719);
    if (!strstr(tdmi_shim_facts().problem, says))
        fail_msg("the problem is '%s' and should say '%s'", tdmi_shim_facts().problem, says);
}

TEST(undefined_behaviour_of_kernels_fails)
{
    float value = 0.0f;
    tdmi_shim_use((struct tdmi_shim_order){0});
    expect_problem(meet_apart(64), "wait at the barriers of lines");
    expect_problem(meet_alone(1), "lane 1 is gone");
    tdmi_shim_use((struct tdmi_shim_order){.is_reversed = true});
    expect_problem(meet_alone(32), "lane 1 is gone");
    tdmi_shim_use((struct tdmi_shim_order){0});
    expect_problem(meet_alone(32), "waits in its warp for lanes ffffffff");
    expect_problem(meet_too_much(), "a block shares 49160 bytes");
    assert_int_equal(meet_unwritten(&value), 0);
    assert_true(isnan(value));
}

TEST(impossible_launches_are_refused)
{
    tdmi_shim_use((struct tdmi_shim_order){.edge_blocks = 3});
    assert_int_equal(meet_grid(1, 1, 1025), 9);
    assert_non_null(
        strstr(tdmi_shim_facts().problem, "no GPU runs a grid of 1×1×1 blocks of 1025"));
    assert_int_equal(meet_grid(0, 1, 32), 9);
    assert_int_equal(meet_grid(1, 65536, 32), 9);
    assert_int_equal(meet_grid(1u << 31, 1, 32), 9);
    assert_int_equal(meet_grid(INT32_MAX, 65535, 32), 0);
    assert_int_equal(tdmi_shim_facts().largest_grid, (int64_t)INT32_MAX * 65535);
}

TEST_MAIN(NULL, NULL)
