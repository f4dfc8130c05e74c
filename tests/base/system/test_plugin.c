/*
 * A library of ours that cannot be opened or is of another build: a sentence, and nothing to call.
 * Those that can are opened by the tests of their rooms.
 */
#include "base/system/plugin.h"
#include "io/arrow/table.h"
#include "base/memory.h"
#include "tandem_features.h"
#include "unit.h"

TEST(one_that_is_not_there_is_absent_by_name)
{
    const void *table = "not NULL";
    tdm_error err = {0};
    assert_int_equal(tdmi_plugin_open("none", "the part of tandem that is not", 8, 0, &table, &err),
                     TDM_E_ABSENT);
    assert_null(table);
    assert_int_equal(err.n_frames, 1);
    assert_non_null(
        strstr(tdm_error_sentence(&err, 0), "libtandem_none.so, the part of tandem that is not"));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "No such file"));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "make install"));
    assert_int_equal(tdmi_plugin_open("none", "", 8, 0, &table, NULL), TDM_E_ABSENT);
    assert_int_equal(tdmi_plugin_open("none", "", 8, 1 << 20, &table, NULL), TDM_E_ABSENT);
    tdmi_memory_fail_from(1);
    assert_int_equal(tdmi_plugin_open("none", "", 8, 1 << 20, &table, NULL), TDM_E_MEMORY);
    tdmi_memory_fail_from(0);
}

TEST(one_of_this_version_with_another_table_is_of_another_build)
{
    const struct tdmi_arrow_table *known = NULL;
    const void *table = "not NULL";
    tdm_error err = {0};
    if (!TDM_HAVE_ARROW)
        skip(); /* no library of ours in this build */
    assert_int_equal(tdmi_arrow_load(&known, &err), TDM_OK);
    assert_int_equal(
        tdmi_plugin_open("arrow", "the part", sizeof *known + sizeof(void *), 0, &table, &err),
        TDM_E_ABSENT);
    assert_null(table);
    assert_int_equal(err.n_frames, 1);
    assert_non_null(
        strstr(tdm_error_sentence(&err, 0), "libtandem_arrow.so, the part, cannot be used: "));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "of another build of tandem 0"));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "make install"));
    assert_int_equal(tdmi_plugin_open("arrow", "the part", sizeof *known, 0, &table, &err), TDM_OK);
    assert_ptr_equal(table, known);
}

TEST_MAIN(NULL, NULL)
