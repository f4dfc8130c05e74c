/* Which kernel of a list a convolution is prepared for, and what happens when one is absent. */
#include "backend/cpu/cpu.h"
#include "unit.h"

static int n_prepared;

static tdm_status prepare_absent(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    (void)desc;
    (void)prepared;
    n_prepared++;
    return TDM_FAIL(err, TDM_E_ABSENT, "the library has no such convolution");
}

static tdm_status prepare_without_memory(const struct tdmi_op_desc *desc, void **prepared,
                                         tdm_error *err)
{
    (void)desc;
    (void)prepared;
    n_prepared++;
    return TDM_FAIL(err, TDM_E_MEMORY, "out of memory");
}

static tdm_status prepare_well(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    (void)desc;
    (void)err;
    n_prepared++;
    *prepared = &n_prepared;
    return TDM_OK;
}

static bool fuses(const struct tdmi_op_desc *desc)
{
    (void)desc;
    return true;
}

static bool is_not_for(const struct tdmi_op_desc *desc)
{
    (void)desc;
    return false;
}

static const struct tdmi_kernel absent = {.can_fuse = fuses, .prepare = prepare_absent};
static const struct tdmi_kernel greedy = {.can_fuse = fuses, .prepare = prepare_without_memory};
static const struct tdmi_kernel unfit = {.can_run = is_not_for, .prepare = prepare_well};
static const struct tdmi_kernel good = {.can_fuse = fuses, .prepare = prepare_well};
static const struct tdmi_kernel plain = {.prepare = prepare_well}; /* fuses nothing */
static const struct tdmi_kernel immediate = {.can_fuse = fuses};   /* prepares nothing */

static struct tdmi_op_desc desc_with(enum tdmi_act act)
{
    return (struct tdmi_op_desc){.kind = TDMI_OP_CONV, .fusion.act = act};
}

TEST(an_absent_kernel_leaves_the_case_to_the_next)
{
    const struct tdmi_kernel *const kernels[] = {&absent, &unfit, &absent, &good, &immediate, NULL};
    const struct tdmi_kernel *kernel = NULL;
    struct tdmi_op_desc desc = desc_with(TDMI_ACT_RELU);
    n_prepared = 0;
    assert_int_equal(tdmi_cpu_prepare_first(kernels, &desc, &kernel, NULL), TDM_OK);
    assert_ptr_equal(kernel, &good);
    assert_ptr_equal(desc.prepared, &n_prepared);
    assert_int_equal(n_prepared, 3);
}

TEST(a_kernel_without_preparation_is_chosen)
{
    const struct tdmi_kernel *const kernels[] = {&absent, &immediate, &good, NULL};
    const struct tdmi_kernel *kernel = NULL;
    struct tdmi_op_desc desc = desc_with(TDMI_ACT_NONE);
    assert_int_equal(tdmi_cpu_prepare_first(kernels, &desc, &kernel, NULL), TDM_OK);
    assert_ptr_equal(kernel, &immediate);
    assert_null(desc.prepared);
}

TEST(only_an_absent_kernel_is_skipped)
{
    const struct tdmi_kernel *const kernels[] = {&absent, &greedy, &good, NULL};
    const struct tdmi_kernel *kernel = NULL;
    struct tdmi_op_desc desc = desc_with(TDMI_ACT_NONE);
    tdm_error err = {0};
    n_prepared = 0;
    assert_int_equal(tdmi_cpu_prepare_first(kernels, &desc, &kernel, &err), TDM_E_MEMORY);
    assert_int_equal(n_prepared, 2);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "out of memory"));
}

TEST(the_last_kernel_reports_why_none_is_left)
{
    const struct tdmi_kernel *const kernels[] = {&absent, &plain, NULL};
    const struct tdmi_kernel *kernel = NULL;
    struct tdmi_op_desc desc = desc_with(TDMI_ACT_RELU); /* which plain cannot do */
    tdm_error err = {0};
    n_prepared = 0;
    assert_int_equal(tdmi_cpu_prepare_first(kernels, &desc, &kernel, &err), TDM_E_ABSENT);
    assert_int_equal(n_prepared, 1);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "the library has no such convolution"));
    assert_int_equal(tdmi_cpu_prepare_first(kernels + 1, &desc, &kernel, &err), TDM_E_ABSENT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "no kernel can run it"));
}

TEST_MAIN(NULL, NULL)
