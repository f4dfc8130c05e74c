/* Names of ops and backends, and what a device name means. */
#include "backend/backend.h"
#include "tandem_features.h"
#include "unit.h"

TEST(every_op_is_found_by_its_name)
{
    for (int kind = 0; kind < TDMI_OP_KINDS; kind++)
        assert_int_equal(tdmi_op_find(tdmi_op_name((enum tdmi_op_kind)kind)), kind);
    assert_int_equal(tdmi_op_find("conv"), TDMI_OP_CONV);
    assert_int_equal(tdmi_op_find("attention"), TDMI_OP_KINDS);
    assert_int_equal(tdmi_op_find(""), TDMI_OP_KINDS);
    assert_string_equal(tdmi_op_name(TDMI_OP_KINDS), "?");
}

TEST(every_backend_is_found_by_its_name)
{
    int n = 0;
    for (const struct tdmi_backend *it; (it = tdmi_backend_at(n)) != NULL; n++) {
        const struct tdmi_backend *found = NULL;
        int number = -1;
        if (it->device.count() > 0) {
            assert_int_equal(tdmi_backend_find(it->name, &found, &number, NULL), TDM_OK);
            assert_ptr_equal(found, it);
            assert_int_equal(number, 0);
        }
        assert_true(strlen(it->summary) > 10);
    }
    assert_true(n >= 1);
    assert_null(tdmi_backend_at(-1));
    assert_null(tdmi_backend_at(n));
}

TEST(a_backend_has_every_entry_that_is_not_optional)
{
    const struct tdmi_backend *it;
    for (int i = 0; (it = tdmi_backend_at(i)) != NULL; i++) {
        assert_true(it->device.count && it->device.open && it->device.close && it->device.describe);
        assert_true(it->memory.alloc && it->memory.free && it->memory.upload &&
                    it->memory.download);
        assert_true(it->stream.open && it->stream.close && it->stream.wait);
        assert_true(it->update->sgd && it->update->rmsprop && it->update->adam);
        assert_true(it->update->lamb_measure && it->update->lamb_step && it->update->squares);
        assert_true(it->update->blend && it->update->accumulate);
    }
}

TEST(the_reference_runs_every_op)
{
    for (int kind = 0; kind < TDMI_OP_KINDS; kind++) {
        const struct tdmi_kernel *kernel = tdmi_backend_ref.kernels[kind];
        assert_non_null(kernel);
        assert_non_null(kernel->forward);
        assert_true((kernel->backward != NULL) == (kind != TDMI_OP_INPUT));
    }
}

TEST(device_names_are_understood_or_refused_in_a_sentence)
{
    static const struct {
        const char *name;
        tdm_status status;
        const char *says;
    } cases[] = {
        {"cpu", TDM_OK, NULL},
        {"cpu:0", TDM_OK, NULL},
        {"ref", TDM_OK, NULL},
        {"ref:0", TDM_OK, NULL},
        {"cpu:1", TDM_E_ABSENT, "has 1 of them"},
        {"ref:1023", TDM_E_ABSENT, "has 1 of them"},
        {"cpu:", TDM_E_USAGE, "no device number"},
        {"cpu:x", TDM_E_USAGE, "no device number"},
        {"cpu:-1", TDM_E_USAGE, "no device number"},
        {"cpu:0x", TDM_E_USAGE, "no device number"},
        {"cpu:99999999999999999999", TDM_E_USAGE, "no device number"},
        {"cpux", TDM_E_USAGE, "there is cpu, "},
        {"", TDM_E_USAGE, "there is cpu, "},
        {":0", TDM_E_USAGE, "there is cpu, "},
        {"tpu", TDM_E_USAGE, "ref"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tdmi_backend *backend = NULL;
        int number = -1;
        tdm_error err = {0};
        assert_int_equal(tdmi_backend_find(cases[i].name, &backend, &number, &err),
                         cases[i].status);
        assert_int_equal(tdmi_backend_knows(cases[i].name), cases[i].status != TDM_E_USAGE);
        if (cases[i].status == TDM_OK) {
            assert_non_null(backend);
            assert_true(backend->device.is_host);
            assert_int_equal(number, 0);
        } else {
            assert_non_null(strstr(tdm_error_sentence(&err, 0), cases[i].says));
            assert_non_null(strstr(tdm_error_sentence(&err, 0), cases[i].name));
        }
    }
}

/* For a backend that is loaded on first use, only the name is checked. */
TEST(names_of_gpus_are_known_on_machines_without_one)
{
    static const char *const known[] = {"cuda", "cuda:0", "cuda:1023"};
    static const char *const others[] = {"cud", "cudax", "cuda1", "cuda:", "cuda:x", "cuda:1024"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_true(tdmi_backend_knows(known[i]));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(tdmi_backend_knows(others[i]));
}

/* A build with the backend asks the machine; one without reports that. Neither has GPU 1023. */
TEST(a_missing_gpu_is_reported_in_a_sentence)
{
    const struct tdmi_backend *backend = NULL;
    int number;
    tdm_error err = {0};
    assert_int_equal(tdmi_backend_find("cuda:1023", &backend, &number, &err), TDM_E_ABSENT);
    assert_null(backend);
    assert_true(err.n_frames >= 1);
    assert_non_null(
        strstr(tdm_error_sentence(&err, err.n_frames - 1), "choosing the device 'cuda:1023'"));
    if (!TDM_HAVE_CUDA) {
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "no cuda backend: " TDM_CUDA_ABSENT));
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "--device cpu"));
        return;
    }
    if (!strstr(tdm_error_sentence(&err, 0), "counted from 0"))
        assert_non_null(
            strstr(tdm_error_sentence(&err, 0), "opening GPU 1023: there is no NVIDIA driver"));
    assert_int_equal(tdmi_cuda_backend(&backend, &err), TDM_OK);
    assert_string_equal(backend->name, "cuda");
    assert_false(backend->device.is_host);
}

TEST(memory_of_the_host_is_zeroed_aligned_and_copied)
{
    const struct tdmi_backend *ref = &tdmi_backend_ref;
    tdmi_device *device;
    tdmi_stream *stream;
    char text[40], small[4];
    assert_int_equal(ref->device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(ref->stream.open(device, &stream, NULL), TDM_OK);
    float *memory = ref->memory.alloc(device, 100 * sizeof *memory), back[100], given[100];
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    for (int i = 0; i < 100; i++) {
        assert_true(memory[i] == 0.0f);
        given[i] = (float)i / 7.0f;
    }
    assert_int_equal(ref->memory.upload(stream, memory, given, sizeof given, NULL), TDM_OK);
    assert_int_equal(ref->memory.download(stream, back, memory, sizeof back, NULL), TDM_OK);
    assert_int_equal(ref->stream.wait(stream, NULL), TDM_OK);
    assert_memory_equal(back, given, sizeof given);
    ref->device.describe(device, text, sizeof text);
    assert_string_equal(text, "CPU, plain C");
    ref->device.describe(device, small, sizeof small);
    assert_string_equal(small, "CPU");
    ref->memory.free(device, memory);
    ref->stream.close(stream);
    ref->device.close(device);
}

TEST_MAIN(NULL, NULL)
