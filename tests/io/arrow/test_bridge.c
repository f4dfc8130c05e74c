/* The plugin with Arrow C++: it is opened once, whichever thread asks. */
#include "unit.h"

#include "base/thread.h"
#include "io/arrow/table.h"
#include "tandem_features.h"

enum { n_askers = 8 };

static tdm_status ask(void *self, int index, int worker, tdm_error *err)
{
    const struct tdmi_arrow_table **tables = self;
    (void)worker;
    return tdmi_arrow_load(&tables[index], err);
}

/* It runs alone in its program: nothing of Arrow is loaded yet. */
TEST(threads_that_ask_at_once_get_one_table)
{
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    const struct tdmi_arrow_table *tables[n_askers] = {NULL};
    const tdm_status expected = TDM_HAVE_ARROW ? TDM_OK : TDM_E_ABSENT;
    tdm_error err = {0};
    assert_ok(tdmi_pool_new(n_askers, NULL, &pool, &err), &err);
    assert_int_equal(tdmi_pool_run(pool, n_askers, ask, tables, &err), expected);
    assert_int_equal(tables[0] != NULL, TDM_HAVE_ARROW);
    for (int i = 1; i < n_askers; i++)
        assert_ptr_equal(tables[i], tables[0]);
    assert_int_equal(tdmi_arrow_require(&err), expected);
}

TEST_MAIN(NULL, NULL)
