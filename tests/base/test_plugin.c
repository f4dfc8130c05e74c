/*
 * A library of ours that cannot be opened: a sentence, and nothing to call. Those that can are
 * opened by the tests of their rooms.
 */
#include "base/plugin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void one_that_is_not_there_is_absent_by_name(void **state)
{
    const void *table = "not NULL";
    tdm_error err = {0};
    (void)state;
    assert_int_equal(tdmi_plugin_open("none", "the part of tandem that is not", &table, &err),
                     TDM_E_ABSENT);
    assert_null(table);
    assert_int_equal(err.n_frames, 1);
    assert_non_null(
        strstr(err.frames[0].text, "libtandem_none.so, the part of tandem that is not"));
    assert_non_null(strstr(err.frames[0].text, "No such file"));
    assert_non_null(strstr(err.frames[0].text, "make install"));
    assert_int_equal(tdmi_plugin_open("none", "", &table, NULL), TDM_E_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_not_there_is_absent_by_name),
    };
    return cmocka_run_group_tests_name(TEST_NAME, tests, NULL, NULL);
}
