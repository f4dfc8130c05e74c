/* Requests that get a slot, and those that give one up. */
#include "unit.h"
#include "serve/slots.h"

enum { most = 8 };

static struct tdmi_request_slot all[64];
static struct tdmi_slots slots;

static void begin(void)
{
    slots = (struct tdmi_slots){.most = most};
    memset(all, 0, sizeof all);
}

/* As a server does it. NULL: refused. */
static struct tdmi_request_slot *ask(int i, uint64_t address)
{
    all[i] = (struct tdmi_request_slot){.address = address};
    if (slots.n_taken == most) {
        struct tdmi_request_slot *giver = tdmi_slots_giver(&slots, address);
        if (!giver)
            return NULL;
        tdmi_slots_leave(&slots, giver);
    }
    assert_true(tdmi_slots_take(&slots, &all[i]));
    return &all[i];
}

static int held_by(uint64_t address)
{
    int n = 0;
    for (const struct tdmi_request_slot *slot = slots.first; slot; slot = slot->next)
        n += slot->address == address;
    return n;
}

TEST(an_address_has_all_of_them_while_nobody_else_asks)
{
    begin();
    for (int i = 0; i < most; i++)
        assert_non_null(ask(i, 1));
    assert_null(ask(most, 1));
    assert_false(tdmi_slots_take(&slots, &all[most]));
    tdmi_slots_leave(&slots, &all[3]);
    tdmi_slots_leave(&slots, &all[3]); /* once is enough */
    assert_int_equal(slots.n_taken, most - 1);
    assert_non_null(ask(most, 1));
}

TEST(the_youngest_of_the_address_with_the_most_gives_way)
{
    begin();
    ask(0, 1);
    ask(1, 2);
    for (int i = 2; i < most; i++)
        ask(i, 1);
    tdmi_slots_leave(&slots, &all[4]);
    ask(4, 2); /* younger than all of address 1, which has six */
    assert_ptr_equal(tdmi_slots_giver(&slots, 3), &all[7]);
    assert_non_null(ask(8, 3));
    assert_int_equal(all[7].rank, 0);
    assert_ptr_equal(tdmi_slots_giver(&slots, 3), &all[6]);
}

TEST(addresses_end_with_equally_many)
{
    for (int n = 1; n <= 12; n++) {
        begin();
        for (int i = 0; i < most; i++)
            ask(i, 0);
        for (int i = most; i < 64; i++)
            ask(i, (uint64_t)(i % n));
        assert_int_equal(slots.n_taken, most);
        for (int a = 0; a < n && n <= most; a++)
            assert_in_range(held_by((uint64_t)a), most / n, (most + n - 1) / n);
        for (int a = 0; a < n; a++) /* nobody takes one from an equal */
            assert_true(held_by((uint64_t)a) < most / n || !tdmi_slots_giver(&slots, (uint64_t)a));
    }
}

TEST(ranks_stay_counts_when_some_leave)
{
    begin();
    for (int i = 0; i < 400; i++) {
        struct tdmi_request_slot *slot = &all[i * 7 % 13];
        if (slots.n_taken < most && slot->rank == 0) {
            slot->address = (uint64_t)(i % 3);
            assert_true(tdmi_slots_take(&slots, slot));
        } else {
            tdmi_slots_leave(&slots, slot);
        }
        int seen[3] = {0};
        for (slot = slots.first; slot; slot = slot->next)
            assert_int_equal(slot->rank, ++seen[slot->address]);
        assert_int_equal(seen[0] + seen[1] + seen[2], slots.n_taken);
    }
}

TEST_MAIN(NULL, NULL)
