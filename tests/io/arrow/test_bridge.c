/*
 * The door to Arrow C++ is real: the loaded library answers, it is the one the build found, and it
 * is opened once whoever asks.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/thread.h"
#include "io/arrow/table.h"
#include "tandem_features.h"

#if TDM_HAVE_ARROW
static void the_loaded_arrow_is_the_one_the_build_found(void **state)
{
    (void)state;
    assert_string_equal(tdmi_arrow_version(), TDM_ARROW_VERSION);
}

enum { n_askers = 8 };

static tdm_status ask(void *self, int index, int worker, tdm_error *err)
{
    const struct tdmi_arrow_table **tables = self;
    (void)worker;
    return tdmi_arrow_load(&tables[index], err);
}

/* This test runs first: nothing of it is loaded yet. */
static void threads_that_ask_at_once_get_one_table(void **state)
{
    const struct tdmi_arrow_table *tables[n_askers] = {NULL};
    tdmi_pool *pool = NULL;
    tdm_error err = {0};
    (void)state;
    assert_int_equal(tdmi_pool_new(n_askers, false, &pool, &err), TDM_OK);
    assert_int_equal(tdmi_pool_run(pool, n_askers, ask, tables, &err), TDM_OK);
    tdmi_pool_free(pool);
    assert_non_null(tables[0]);
    for (int i = 1; i < n_askers; i++)
        assert_ptr_equal(tables[i], tables[0]);
    assert_int_equal(tdmi_arrow_require(&err), TDM_OK);
}
#else
static void threads_that_ask_at_once_get_one_table(void **state)
{
    const struct tdmi_arrow_table *table = NULL;
    tdm_error err = {0};
    (void)state;
    assert_int_equal(tdmi_arrow_load(&table, &err), TDM_E_ABSENT);
    assert_null(table);
    assert_int_equal(tdmi_arrow_require(&err), TDM_E_ABSENT);
}

static void the_loaded_arrow_is_the_one_the_build_found(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_ask_at_once_get_one_table),
        cmocka_unit_test(the_loaded_arrow_is_the_one_the_build_found),
    };
    return cmocka_run_group_tests_name("data/arrow_bridge", tests, NULL, NULL);
}
