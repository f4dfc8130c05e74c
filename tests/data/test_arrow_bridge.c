/*
 * The link to Arrow C++ is real: the loaded library answers, and it is the one the build found.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "data/arrow_bridge.h"
#include "tandem_features.h"

#if TDM_HAVE_ARROW
static void the_loaded_arrow_is_the_one_the_build_found(void **state)
{
    (void)state;
    assert_string_equal(tdmi_arrow_version(), TDM_ARROW_VERSION);
}
#else
static void the_loaded_arrow_is_the_one_the_build_found(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loaded_arrow_is_the_one_the_build_found),
    };
    return cmocka_run_group_tests_name("data/arrow_bridge", tests, NULL, NULL);
}
