/* Every op, on the cases of the self-test, run by the shim. */
#include "shim_backend.h"
#include "backend/cuda/shim_run.h"
#include "train/selftest/checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef tdm_status check(const struct tdmi_backend *backend, tdmi_device *device,
                         const struct tdmi_case *it, struct tdmi_check *check, tdm_error *err);

static void run_all(check *wanted, struct tdmi_shim_way way)
{
    tdmi_device *device;
    const struct tdmi_case *it;
    int n = 0;
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    for (int i = 0; (it = tdmi_case_at(i)) != NULL; i++) {
        struct tdmi_check result;
        tdm_error err = {0};
        if (!tdmi_backend_shim.kernels[it->kind])
            fail_msg("backend cuda lacks the op %s", tdmi_op_name(it->kind));
        tdmi_shim_use(way);
        if (wanted(&tdmi_backend_shim, device, it, &result, &err) != TDM_OK)
            fail_msg("%s, '%s': %s", tdmi_op_name(it->kind), it->name, err.frames[0].text);
        if (!result.has_passed)
            fail_msg("%s, '%s': %s", tdmi_op_name(it->kind), it->name, result.detail);
        assert_true(tdmi_shim_facts().launches > 0);
        n++;
    }
    assert_true(n > 60);
    tdmi_backend_shim.device.close(device);
}

static void ops_match_the_law(void **state)
{
    (void)state;
    run_all(tdmi_check_match, (struct tdmi_shim_way){0});
}

static void ops_match_with_blocks_and_threads_in_reverse(void **state)
{
    (void)state;
    run_all(tdmi_check_match, (struct tdmi_shim_way){.is_reversed = true});
}

static void gradients_are_those_of_central_differences(void **state)
{
    (void)state;
    run_all(tdmi_check_gradient, (struct tdmi_shim_way){0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_match_the_law),
        cmocka_unit_test(ops_match_with_blocks_and_threads_in_reverse),
        cmocka_unit_test(gradients_are_those_of_central_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
