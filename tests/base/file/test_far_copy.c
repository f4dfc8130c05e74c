/* Copies past the caches are copies: every length and alignment, and not a byte beside. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/file/far_copy.h"
#include <string.h>

static void every_length_and_alignment_is_copied(void **state)
{
    (void)state;
    uint8_t from[500], to[500];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 7 + 1);
    for (size_t start = 0; start < 70; start += 3)
        for (size_t n = 0; n < 400; n++) {
            memset(to, 0, sizeof to);
            tdmi_far_copy(to + start, from + n % 11, n);
            tdmi_far_copy_end();
            assert_memory_equal(to + start, from + n % 11, n);
            for (size_t i = 0; i < sizeof to; i++)
                if (i < start || i >= start + n)
                    assert_int_equal(to[i], 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_length_and_alignment_is_copied)};
    return cmocka_run_group_tests_name("base/far_copy", tests, NULL, NULL);
}
