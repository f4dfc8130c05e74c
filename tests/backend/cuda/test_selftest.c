/*
 * The self-test over backend cuda as the shim runs it, as a person with a GPU runs it first: every
 * check of it passes, in every type. Of its networks LeNet-5 alone, or as many as the argument
 * says.
 */
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/shim/shim_run.h"
#include "train/selftest/checks.h"
#include "unit.h"

enum { most_groups = 16 };

static int n_networks = 1;

struct told {
    int n_groups, passed, failed, n_ways, n_depthwise, n_spread;
    struct {
        const char *name;
        int n;
    } groups[most_groups];
};

static void hear(void *self, const char *group, const char *name, bool has_passed,
                 const char *detail)
{
    struct told *told = self;
    int g = 0;
    while (g < told->n_groups && strcmp(told->groups[g].name, group) != 0)
        g++;
    assert_in_range(g, 0, most_groups - 1);
    if (g == told->n_groups)
        told->groups[told->n_groups++].name = group;
    told->groups[g].n++;
    told->passed += has_passed;
    told->failed += !has_passed;
    if (!has_passed)
        print_message("# %s, %s: %s\n", group, name, detail);
}

/* Without libraries there is one way for each op, and one more for a gradient of the input. */
static void hear_way(void *self, const char *op, const char *direction, const char *by)
{
    struct told *told = self;
    const bool is_conv = strcmp(op, "conv") == 0;
    const bool is_of_weights = strcmp(direction, "weight gradient") == 0;
    const bool is_spread = is_conv && strcmp(by, "depthwise_spread.cu") == 0;
    told->n_ways++;
    told->n_spread += is_spread;
    if (is_spread)
        assert_string_equal(direction, "input gradient");
    else if (strcmp(by, is_of_weights ? "depthwise_weights.cu" : "depthwise.cu") == 0 && is_conv)
        told->n_depthwise++;
    else
        assert_string_equal(by, is_conv ? "conv.cu" : "dense.cu");
}

static int checks_of(const struct told *told, const char *group)
{
    for (int g = 0; g < told->n_groups; g++)
        if (strcmp(told->groups[g].name, group) == 0)
            return told->groups[g].n;
    return 0;
}

TEST(all_checks_pass_in_every_type)
{
    struct told told = {.n_groups = 0};
    struct tdm_selftest_result result = {.struct_bytes = sizeof result};
    tdmi_device *device;
    tdm_error err = {0};
    int n_cases = 0;
    while (tdmi_case_at(n_cases))
        n_cases++;
    tdmi_shim_use((struct tdmi_shim_order){0});
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    const struct tdm_selftest_sink sink = {&told, hear, hear_way};
    assert_ok(tdmi_selftest_all(&tdmi_backend_shim, device, n_networks, sink, &result, &err), &err);
    assert_int_equal(result.failed, 0);
    assert_int_equal(result.passed, told.passed);
    assert_int_equal(checks_of(&told, "match"), n_cases);
    assert_int_equal(checks_of(&told, "match, stored as bf16"), n_cases);
    assert_int_equal(checks_of(&told, "match, stored as f16"), n_cases);
    assert_int_equal(checks_of(&told, "determinism"), n_cases);
    assert_true(checks_of(&told, "gradient") > 50);
    assert_int_equal(checks_of(&told, "training on one and three threads"), n_networks);
    assert_int_equal(checks_of(&told, "training, stored as bf16"), n_networks);
    assert_int_equal(checks_of(&told, "steps recorded and replayed"), n_networks);
    assert_int_equal(checks_of(&told, "memory"), 1);
    assert_true(told.n_depthwise > 9 && told.n_ways > 2 * told.n_depthwise);
    assert_true(told.n_spread > 0);
    assert_int_equal(checks_of(&told, "pictures"), 1);
    assert_int_equal(checks_of(&told, "rows"), 1);
    tdmi_backend_shim.device.close(device);
}

/* ---- GPUs that record wrongly -------------------------------------------------------------- */

static tdm_status replay_nothing(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err)
{
    (void)stream;
    (void)recording;
    (void)err;
    return TDM_OK;
}

static tdm_status replay_twice(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err)
{
    const tdm_status status = tdmi_backend_shim.stream.replay(stream, recording, err);
    return status == TDM_OK ? tdmi_backend_shim.stream.replay(stream, recording, err) : status;
}

static tdm_status begin_nothing(tdmi_stream *stream, tdm_error *err)
{
    (void)stream;
    return TDM_FAIL(err, TDM_E_SYSTEM, "planted: no beginning");
}

TEST(a_gpu_that_replays_wrongly_is_caught)
{
    struct tdmi_backend nothing = tdmi_backend_shim, twice = tdmi_backend_shim,
                        never = tdmi_backend_shim;
    const struct tdmi_backend *const backends[] = {&nothing, &twice, &never, &tdmi_backend_shim};
    static const char *const details[] = {"different bits", "different bits", " 0 of ", ""};
    tdmi_device *device;
    nothing.stream.replay = replay_nothing;
    twice.stream.replay = replay_twice;
    never.stream.capture_begin = begin_nothing;
    tdmi_shim_use((struct tdmi_shim_order){0});
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    for (int k = 0; k < 4; k++) {
        struct tdmi_check check;
        assert_true(tdmi_check_can_record(backends[k]));
        assert_int_equal(
            tdmi_check_recording(backends[k], device, "resnet8-cifar", 8, &check, NULL), TDM_OK);
        assert_int_equal(check.has_passed, k == 3);
        assert_non_null(strstr(check.detail, details[k]));
    }
    never.stream.capture_begin = NULL;
    assert_false(tdmi_check_can_record(&never));
    assert_false(tdmi_check_can_record(&tdmi_backend_ref));
    tdmi_backend_shim.device.close(device);
}

/* ---- GPUs that gather wrongly -------------------------------------------------------------- */

static void gather_nothing(tdmi_stream *stream, const void *table, size_t row_bytes,
                           const int64_t *numbers, int n, void *to)
{
    (void)stream;
    (void)table;
    (void)row_bytes;
    (void)numbers;
    (void)n;
    (void)to;
}

static void gather_one_less(tdmi_stream *stream, const void *table, size_t row_bytes,
                            const int64_t *numbers, int n, void *to)
{
    tdmi_backend_shim.memory.gather(stream, table, row_bytes, numbers, n - 1, to);
}

TEST(a_gpu_that_gathers_wrongly_is_caught)
{
    struct tdmi_backend nothing = tdmi_backend_shim, less = tdmi_backend_shim;
    const struct tdmi_backend *const backends[] = {&nothing, &less, &tdmi_backend_shim};
    tdmi_device *device;
    nothing.memory.gather = gather_nothing;
    less.memory.gather = gather_one_less;
    tdmi_shim_use((struct tdmi_shim_order){0});
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    for (int k = 0; k < 3; k++) {
        struct tdmi_check check;
        assert_int_equal(tdmi_check_rows(backends[k], device, &check, NULL), TDM_OK);
        assert_int_equal(check.has_passed, k == 2);
        assert_true(k == 2 || strstr(check.detail, "has not the bits of row") != NULL);
    }
    tdmi_backend_shim.device.close(device);
}

int main(int n_arguments, char **arguments)
{
    n_networks = n_arguments > 1 ? atoi(arguments[1]) : 1;
    fake_runtime_pace(FAKE_BY_CHANCE);
    return _cmocka_run_group_tests(TEST_NAME, unit_tests, unit_n_tests, NULL, NULL);
}
