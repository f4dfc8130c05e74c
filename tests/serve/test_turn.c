/* Whose pictures come into a turn. */
#include "serve/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define SHARES(room, n, ...)                                    \
    do {                                                        \
        const int numbers[2][n] = {__VA_ARGS__};                \
        int shares[n];                                          \
        tdmi_turn_share(numbers[0], n, room, shares);           \
        assert_memory_equal(shares, numbers[1], sizeof shares); \
    } while (0)

static void who_is_alone_has_all_of_it(void **state)
{
    (void)state;
    SHARES(16, 1, {1}, {1});
    SHARES(16, 1, {256}, {16});
    SHARES(1, 1, {256}, {1});
}

static void one_picture_slips_through_beside_a_form(void **state)
{
    (void)state;
    SHARES(16, 3, {256, 1, 1}, {14, 1, 1});
    SHARES(16, 3, {1, 256, 1}, {1, 14, 1});
    SHARES(4, 6, {256, 256, 1, 1, 1, 1}, {2, 1, 1, 0, 0, 0});
}

static void the_oldest_form_goes_on_before_the_next(void **state)
{
    (void)state;
    SHARES(16, 3, {256, 256, 256}, {14, 1, 1});
    SHARES(16, 3, {9, 256, 256}, {9, 6, 1});
    SHARES(16, 4, {2, 2, 2, 2}, {2, 2, 2, 2});
}

static void a_turn_is_never_larger_than_its_room(void **state)
{
    (void)state;
    int rests[20], shares[20];
    for (int room = 1; room < 40; room++) {
        for (int n = 1; n <= 20; n++) {
            int sum = 0, wanted = 0;
            for (int i = 0; i < n; i++)
                wanted += rests[i] = 1 + (i * 7 + room) % 11;
            tdmi_turn_share(rests, n, room, shares);
            for (int i = 0; i < n; i++) {
                assert_in_range(shares[i], 0, rests[i]);
                sum += shares[i];
            }
            assert_int_equal(sum, wanted < room ? wanted : room); /* and never smaller */
            assert_true(shares[0] >= 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_alone_has_all_of_it),
        cmocka_unit_test(one_picture_slips_through_beside_a_form),
        cmocka_unit_test(the_oldest_form_goes_on_before_the_next),
        cmocka_unit_test(a_turn_is_never_larger_than_its_room),
    };
    return cmocka_run_group_tests_name(TEST_NAME, tests, NULL, NULL);
}
