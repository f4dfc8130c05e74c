/*
 * Description and rates of the machine: nothing about this machine in particular, only facts that
 * hold on every one.
 */
#include "base/memory.h"
#include "base/thread.h"
#include "tandem/machine.h"
#include "tandem/event.h"
#include "tune/probe.h"
#include "unit.h"

#include <unistd.h>

TEST(describes_a_machine_that_can_run_this_test)
{
    static struct tdm_machine machine = {.struct_bytes = sizeof machine};
    tdm_machine_describe(&machine);
    assert_true(machine.cpu.usable >= 1);
    assert_true(machine.cpu.threads >= machine.cpu.cores);
    assert_true(machine.cpu.cores >= machine.cpu.packages && machine.cpu.packages >= 1);
    assert_true(machine.memory.total_bytes > machine.memory.available_bytes);
    assert_true(machine.memory.available_bytes > 0);
    assert_true(machine.gpus.n > 0 || *machine.gpus.problem);
    assert_true(machine.mpi.is_found == (machine.mpi.problem[0] == '\0'));
    assert_true(machine.nccl.is_found == (machine.nccl.problem[0] == '\0'));
    for (int i = 0; i < machine.n_features; i++) {
        assert_true(machine.features[i].remedy[0] != '\0');
        assert_true(machine.features[i].is_on || machine.features[i].version[0] == '\0');
        assert_true(!machine.features[i].is_on || machine.features[i].problem[0] == '\0');
    }
}

TEST(measures_within_the_time_given)
{
    struct tdm_measure_options options = tdm_measure_options_default();
    struct tdm_machine_rates rates = {.struct_bytes = sizeof rates};
    tdm_error err = {0};
    options.seconds = 1;
    options.disk_bytes = (int64_t)4 << 20;
    assert_ok(tdm_machine_measure(&options, &rates, &err), &err);
    assert_true(rates.threads >= 1);
    /* Rates of a machine that works at all: 10 MB/s, 1 MFLOP/s; and of none that exists. */
    assert_true(rates.copy_bytes_per_s.one_thread > 1e7);
    assert_true(rates.copy_bytes_per_s.all_threads < 1e14);
    assert_true(rates.f32_flop_per_s.one_thread > 1e6);
    assert_true(rates.f32_flop_per_s.all_threads < 1e16);
    assert_true((rates.bf16_flop_per_s.all_threads > 0) == (rates.bf16_problem[0] == '\0'));
    assert_true((rates.disk_read_bytes_per_s > 0) == (rates.disk_problem[0] == '\0'));
    assert_int_equal(rates.disk_bytes, options.disk_bytes);
    /* Setting up and the last repetitions come on top; a busy or instrumented machine is slow. */
    assert_true(rates.seconds < 20);
}

TEST(the_disk_probe_leaves_nothing_behind)
{
    char folder[] = "probe-XXXXXX";
    struct tdm_machine_rates rates = {.struct_bytes = sizeof rates};
    assert_non_null(mkdtemp(folder));
    tdmi_probe_disk(folder, 0.2, (int64_t)8 << 20, &rates);
    assert_string_equal(rates.disk_problem, "");
    assert_true(rates.disk_read_bytes_per_s > 0);
    assert_true(rates.disk_bytes >= (int64_t)4 << 20 && rates.disk_bytes <= (int64_t)8 << 20);
    assert_int_equal(rmdir(folder), 0); /* fails unless empty */
}

TEST(a_folder_that_is_none_is_a_noted_problem_of_the_probe)
{
    struct tdm_machine_rates rates = {.struct_bytes = sizeof rates};
    tdmi_probe_disk("no/such/folder", 0.2, (int64_t)8 << 20, &rates);
    assert_non_null(strstr(rates.disk_problem, "no/such/folder: No such file or directory"));
    assert_true(rates.disk_read_bytes_per_s == 0);
}

TEST(the_plain_product_is_timed_and_has_no_bf16)
{
    struct tdm_machine_rates rates = {.struct_bytes = sizeof rates};
    tdmi_pool *pool = NULL;
    tdm_error err = {0};
    assert_ok(tdmi_pool_new(2, NULL, &pool, &err), &err);
    assert_ok(tdmi_probe_matmul(pool, &tdmi_matmul_plain, 0.2, &rates, &err), &err);
    tdmi_pool_free(pool);
    assert_string_equal(rates.matmul_method, "plain C loop");
    assert_true(rates.f32_flop_per_s.one_thread > 1e6);
    assert_true(rates.f32_flop_per_s.all_threads > 1e6);
    assert_true(rates.bf16_flop_per_s.all_threads == 0);
    assert_string_equal(rates.bf16_problem, "the plain C loop knows no bf16, oneDNN does");
    assert_null(rates.faster_precision);
}

/* Without oneDNN, whose allocations are its own. */
static tdm_status probe_everything(tdm_error *err)
{
    struct tdm_machine_rates rates = {.struct_bytes = sizeof rates};
    tdmi_pool *pool = NULL;
    tdm_status status = tdmi_pool_new(2, NULL, &pool, err);
    if (status == TDM_OK)
        status = tdmi_probe_copy(pool, 0.01, (int64_t)1 << 20, 0, &rates, err);
    if (status == TDM_OK)
        status = tdmi_probe_matmul(pool, &tdmi_matmul_plain, 0.01, &rates, err);
    tdmi_pool_free(pool);
    return status;
}

TEST(every_failed_allocation_is_told_and_leaks_nothing)
{
    int failures = 0;
    for (int n = 1; n < 100; n++) {
        tdm_error err = {0};
        tdmi_memory_fail_from(n);
        tdm_status status = probe_everything(&err);
        tdmi_memory_fail_from(0);
        if (status == TDM_OK)
            break;
        assert_int_equal(status, TDM_E_MEMORY);
        assert_true(err.n_frames > 0);
        failures++;
    }
    assert_true(failures >= 6 && failures < 90);
}

TEST(refuses_options_out_of_range)
{
    struct tdm_measure_options default_options = tdm_measure_options_default(), options;
    struct tdm_machine_rates rates = {.struct_bytes = sizeof rates};
    tdm_error err = {0};
    options = default_options;
    options.seconds = 0.5;
    assert_int_equal(tdm_machine_measure(&options, &rates, &err), TDM_E_USAGE);
    options = default_options;
    options.disk_bytes = 1;
    assert_int_equal(tdm_machine_measure(&options, &rates, &err), TDM_E_USAGE);
    options = default_options;
    options.folder = "no/such/folder";
    assert_int_equal(tdm_machine_measure(&options, &rates, &err), TDM_E_INPUT);
}

TEST(stops_on_request)
{
    struct tdm_measure_options options = tdm_measure_options_default();
    struct tdm_machine_rates rates = {.struct_bytes = sizeof rates};
    tdm_error err = {0};
    options.seconds = 60;
    tdm_stop_request();
    assert_int_equal(tdm_machine_measure(&options, &rates, &err), TDM_E_STOPPED);
    tdm_stop_clear();
    assert_true(rates.seconds < 20);
}

TEST_MAIN(NULL, NULL)
