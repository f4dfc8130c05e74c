/* Every op, on the cases of the self-test, run by the shim from the last block and thread to the
 * first; in the usual order, and against central differences: test_selftest.c. */
#include "shim_backend.h"
#include "backend/cuda/shim_run.h"
#include "train/selftest/checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void ops_match_with_blocks_and_threads_in_reverse(void **state)
{
    tdmi_device *device;
    const struct tdmi_case *it;
    int n = 0;
    (void)state;
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    for (int i = 0; (it = tdmi_case_at(i)) != NULL; i++) {
        struct tdmi_check result;
        tdm_error err = {0};
        if (!tdmi_backend_shim.kernels[it->kind])
            fail_msg("backend cuda lacks the op %s", tdmi_op_name(it->kind));
        tdmi_shim_use((struct tdmi_shim_way){.is_reversed = true});
        if (tdmi_check_match(&tdmi_backend_shim, device, it, &result, &err) != TDM_OK)
            fail_msg("%s, '%s': %s", tdmi_op_name(it->kind), it->name, err.frames[0].text);
        if (!result.has_passed)
            fail_msg("%s, '%s': %s", tdmi_op_name(it->kind), it->name, result.detail);
        assert_true(tdmi_shim_facts().launches > 0);
        n++;
    }
    assert_true(n > 60);
    tdmi_backend_shim.device.close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_match_with_blocks_and_threads_in_reverse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
