/* Every op, on the cases of the self-test, run by the shim from the last block and thread to the
 * first; in the usual order, and against central differences: test_selftest.c. */
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/shim/shim_run.h"
#include "backend/cuda/fakes/fake_cublaslt.h"
#include "backend/cuda/fakes/fake_cudnn.h"
#include "train/selftest/checks.h"

#include <dlfcn.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/folder.h"

typedef tdm_status check(const struct tdmi_backend *backend, tdmi_device *device,
                         const struct tdmi_case *it, struct tdmi_check *check, tdm_error *err);

/* Those of its ops that NVIDIA's libraries compute where they are there. */
static bool is_of_libraries(const struct tdmi_case *it)
{
    return it->kind == TDMI_OP_CONV || it->kind == TDMI_OP_DENSE;
}

static void run_all(check *wanted, struct tdmi_shim_way way, bool by_libraries)
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
        if (by_libraries && !is_of_libraries(it))
            continue;
        tdmi_shim_use(way);
        if (wanted(&tdmi_backend_shim, device, it, &result, &err) != TDM_OK)
            fail_msg("%s, '%s': %s", tdmi_op_name(it->kind), it->name, tdm_error_sentence(&err, 0));
        if (!result.has_passed)
            fail_msg("%s, '%s': %s", tdmi_op_name(it->kind), it->name, result.detail);
        assert_true(tdmi_shim_facts().launches > 0);
        n++;
    }
    assert_true(n > (by_libraries ? 10 : 60));
    tdmi_backend_shim.device.close(device);
}

static void ops_match_with_blocks_and_threads_in_reverse(void **state)
{
    (void)state;
    run_all(tdmi_check_match, (struct tdmi_shim_way){.is_reversed = true}, false);
}

/* What was computed by engines that compute rightly: which of them was quicker on a machine with
 * much to do is no matter here. */
static int computed(const struct fake_cudnn *fake)
{
    return fake->runs[FAKE_RIGHT] + fake->runs[FAKE_SLOW];
}

static int multiplied(const struct fake_cublaslt *products)
{
    return products->runs[FAKE_QUICKLY] + products->runs[FAKE_SLOWLY];
}

/* By what looks like cuDNN and cuBLASLt (fake_cudnn.c, fake_cublaslt.c), on what the ops packed for
 * them. */
static void match_by_libraries(check *wanted, int passes)
{
    struct folder home = folder_new();
    void *library = dlopen(FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    struct fake_cudnn *fake = library ? dlsym(library, "fake_cudnn") : NULL;
    assert_non_null(fake);
    void *library_of_products = dlopen(FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    struct fake_cublaslt *products =
        library_of_products ? dlsym(library_of_products, "fake_cublaslt") : NULL;
    assert_non_null(products);
    tdmi_shim_libraries(FAKE_CUDNN, FAKE_CUBLASLT, home.path);
    for (int pass = 0; pass < passes; pass++) { /* all of a graph, then the product alone */
        const int before = computed(fake);
        const int products_before = multiplied(products);
        fake->takes_no_pointwise = pass;
        run_all(wanted, (struct tdmi_shim_way){0}, true);
        assert_true(computed(fake) > before + 50);
        assert_true(multiplied(products) > products_before + 5);
        assert_int_equal(fake->alive + fake->handles + products->alive, 0);
    }
    fake->takes_no_pointwise = 0;
    tdmi_shim_libraries(NULL, NULL, NULL);
    dlclose(library);
    dlclose(library_of_products);
    folder_remove(&home);
}

static void what_libraries_compute_matches_the_law(void **state)
{
    (void)state;
    match_by_libraries(tdmi_check_match, 2);
}

static void gradients_of_libraries_are_those_of_central_differences(void **state)
{
    (void)state;
    match_by_libraries(tdmi_check_gradient, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_match_with_blocks_and_threads_in_reverse),
        cmocka_unit_test(what_libraries_compute_matches_the_law),
        cmocka_unit_test(gradients_of_libraries_are_those_of_central_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
