/* The self-test: everything passes on the reference, and a backend that computes wrongly is caught
 * by name. */
#include "tandem/bench.h"
#include "train/selftest/checks.h"
#include "unit.h"

struct counts {
    int passed, failed, gradients, determinism, networks;
};

static void hear(void *self, const char *group, const char *name, bool has_passed,
                 const char *detail)
{
    struct counts *counts = self;
    if (!has_passed)
        print_message("# %s, %s: %s\n", group, name, detail);
    assert_true(has_passed == (detail == NULL));
    assert_true(strlen(name) > 2);
    counts->passed += has_passed;
    counts->failed += !has_passed;
    counts->gradients += strcmp(group, "gradient") == 0;
    counts->determinism += strcmp(group, "determinism") == 0;
    counts->networks += strstr(name, "lenet5") || strstr(name, "convnet7");
}

TEST(everything_passes_on_the_reference)
{
    struct counts counts = {0};
    struct tdm_selftest_result result = {.struct_bytes = sizeof result};
    int n_cases = 0, n_inputs = 0;
    for (const struct tdmi_case *it; (it = tdmi_case_at(n_cases)) != NULL; n_cases++)
        n_inputs += it->kind == TDMI_OP_INPUT;
    assert_int_equal(tdm_selftest("ref", "all",
                                  (tdm_selftest_sink){.self = &counts, .result = hear}, &result,
                                  NULL),
                     TDM_OK);
    assert_int_equal(result.failed, 0);
    assert_int_equal(result.passed, counts.passed);
    assert_int_equal(counts.failed, 0);
    assert_int_equal(counts.gradients, n_cases - n_inputs);
    assert_int_equal(counts.determinism, n_cases);
    assert_true(counts.networks >= 4);
}

TEST(every_op_has_cases)
{
    bool has_case[TDMI_OP_KINDS] = {false};
    const struct tdmi_case *it;
    for (int i = 0; (it = tdmi_case_at(i)) != NULL; i++) {
        has_case[it->kind] = true;
        assert_true(it->n >= 1 && it->n <= it->max_images);
    }
    for (int kind = 0; kind < TDMI_OP_KINDS; kind++)
        if (!has_case[kind])
            fail_msg("the op %s has no case", tdmi_op_name((enum tdmi_op_kind)kind));
    assert_null(tdmi_case_at(-1));
}

TEST(a_device_that_is_not_there_is_an_error)
{
    struct tdm_selftest_result result = {.struct_bytes = sizeof result};
    assert_int_equal(tdm_selftest("tpu", "all", (tdm_selftest_sink){.self = NULL}, &result, NULL),
                     TDM_E_USAGE);
    assert_int_equal(tdm_selftest("cpu:7", "all", (tdm_selftest_sink){.self = NULL}, &result, NULL),
                     TDM_E_ABSENT);
}

/* ---- backends with one mistake ----------------------------------------------------------------
 */

static void wrong_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                          const struct tdmi_op_call *call)
{
    tdmi_backend_ref.kernels[desc->kind]->forward(stream, desc, call);
    call->y[call->n * tdmi_shape_values(desc->out) - 1] += 0.01f;
}

static void wrong_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                           const struct tdmi_op_call *call)
{
    tdmi_backend_ref.kernels[desc->kind]->backward(stream, desc, call);
    call->dx[0][0] += 0.3f;
}

/* Adds to the gradient where it must write: what was there before (NaN) shows. */
static void adding_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    float before = call->dx[0][0];
    tdmi_backend_ref.kernels[desc->kind]->backward(stream, desc, call);
    call->dx[0][0] += before;
}

/* Another last bit at every call. */
static void drifting_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call)
{
    static int calls;
    tdmi_backend_ref.kernels[desc->kind]->forward(stream, desc, call);
    call->y[0] += (float)(calls++ % 2) * 1e-5f;
}

TEST(a_backend_with_a_mistake_is_caught)
{
    for (int kind = TDMI_OP_CONV; kind < TDMI_OP_KINDS; kind++) {
        const struct tdmi_kernel *kernels[TDMI_OP_KINDS];
        struct tdmi_kernel faulty = *tdmi_backend_ref.kernels[kind];
        struct tdmi_backend backend = tdmi_backend_ref;
        const struct tdmi_case *it = NULL;
        struct tdmi_check check;
        for (int i = 0; it == NULL || it->kind != (enum tdmi_op_kind)kind; i++)
            it = tdmi_case_at(i);
        memcpy(kernels, tdmi_backend_ref.kernels, sizeof kernels);
        kernels[kind] = &faulty;
        backend.kernels = kernels;

        assert_int_equal(tdmi_check_match(&backend, NULL, it, &check, NULL), TDM_OK);
        assert_true(check.has_passed);
        faulty.forward = wrong_forward;
        assert_int_equal(tdmi_check_match(&backend, NULL, it, &check, NULL), TDM_OK);
        assert_false(check.has_passed);
        assert_non_null(strstr(check.detail, "output["));

        faulty = *tdmi_backend_ref.kernels[kind];
        faulty.backward = wrong_backward;
        assert_int_equal(tdmi_check_match(&backend, NULL, it, &check, NULL), TDM_OK);
        assert_false(check.has_passed);
        assert_non_null(strstr(check.detail, "input gradient[0]"));
        assert_int_equal(tdmi_check_gradient(&backend, NULL, it, &check, NULL), TDM_OK);
        assert_false(check.has_passed);

        faulty.backward = adding_backward;
        assert_int_equal(tdmi_check_match(&backend, NULL, it, &check, NULL), TDM_OK);
        assert_false(check.has_passed);

        faulty = *tdmi_backend_ref.kernels[kind];
        faulty.forward = drifting_forward;
        assert_int_equal(tdmi_check_determinism(&backend, NULL, it, &check, NULL), TDM_OK);
        assert_false(check.has_passed);
    }
}

TEST(a_backend_that_lacks_an_op_fails_its_cases)
{
    const struct tdmi_kernel *kernels[TDMI_OP_KINDS] = {NULL};
    struct tdmi_backend backend = tdmi_backend_ref;
    struct tdmi_check check;
    backend.kernels = kernels;
    assert_int_equal(tdmi_check_match(&backend, NULL, tdmi_case_at(0), &check, NULL), TDM_E_ABSENT);
}

TEST_MAIN(NULL, NULL)
