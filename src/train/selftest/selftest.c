/*
 * The self-test: all checks on one device, reported one by one.
 */
#include "tandem/bench.h"
#include "base/sized.h"
#include "train/selftest/checks.h"
#include "train/selftest/op_run.h"

#include <stdio.h>
#include <string.h>

/* Networks small enough to be checked in a second, at the size they are checked at, with the losses
 * of their first steps. */
static const struct {
    const char *network;
    int size;
    double goldens[TDMI_GOLDENS];
} networks[] = {
    {"lenet5", 28, {1.25471, 0.913613, 0.667902, 0.477590, 0.319427, 0.201284}},
    {"resnet8-cifar", 16, {2.29358, 1.98292, 1.59745, 1.20941, 0.876716, 0.630385}},
    {"convnet7", 16, {0.957659, 0.600321, 0.382435, 0.257445, 0.186255, 0.142317}},
};

/* Types of stored activations. */
static const struct {
    enum tdmi_dtype type;
    const char *group;
} types[] = {{TDMI_DTYPE_F32, "match"},
             {TDMI_DTYPE_BF16, "match, stored as bf16"},
             {TDMI_DTYPE_F16, "match, stored as f16"}};

enum {
    n_networks = sizeof networks / sizeof networks[0],
    n_types = sizeof types / sizeof types[0]
};

struct listener {
    tdm_selftest_sink sink;
    struct tdm_selftest_result *result;
};

static void report(struct listener *listener, const char *group, const char *name,
                   const struct tdmi_check *check)
{
    listener->result->passed += check->has_passed;
    listener->result->failed += !check->has_passed;
    if (listener->sink.result)
        listener->sink.result(listener->sink.self, group, name, check->has_passed,
                              check->has_passed ? NULL : check->detail);
}

/* A missing op is a failed check; other errors end the self-test. */
static tdm_status absent_fails(tdm_status status, struct tdmi_check *check, tdm_error *err)
{
    if (status != TDM_E_ABSENT)
        return status;
    *check = (struct tdmi_check){.has_passed = false};
    snprintf(check->detail, sizeof check->detail, "%.239s",
             err ? tdm_error_sentence(err, 0) : tdm_status_text(status));
    tdm_error_clear(err);
    return TDM_OK;
}

static void report_algorithm(const struct listener *listener, const struct tdmi_case *it,
                             const char *direction, const struct tdmi_kernel_algorithm *algorithm)
{
    if (*algorithm->by)
        listener->sink.computed(listener->sink.self, tdmi_op_name(it->kind), direction,
                                algorithm->by);
}

/* Report the algorithms chosen for the case, in every type that is checked. */
static tdm_status report_algorithms(const struct tdmi_backend *backend, tdmi_device *device,
                                    const struct tdmi_case *it, const struct listener *listener,
                                    tdm_error *err)
{
    for (int k = 0; k < n_types && listener->sink.computed; k++) {
        struct tdmi_kernel_algorithms found;
        if (!tdmi_backend_stores(backend, types[k].type))
            continue;
        TDM_TRY(tdmi_op_describe(backend, device, it, types[k].type, &found, err), err,
                "finding the algorithms");
        report_algorithm(listener, it, "forward", &found.forward);
        report_algorithm(listener, it, "input gradient", &found.of_input);
        report_algorithm(listener, it, "weight gradient", &found.of_weights);
    }
    return TDM_OK;
}

static tdm_status check_op(const struct tdmi_backend *backend, tdmi_device *device,
                           const struct tdmi_case *it, struct listener *listener, tdm_error *err)
{
    struct tdmi_check check;
    char name[120];
    snprintf(name, sizeof name, "%s: %s", tdmi_op_name(it->kind), it->name);
    if (!backend->kernels[it->kind]) {
        check = (struct tdmi_check){.has_passed = false};
        snprintf(check.detail, sizeof check.detail, "the backend %s lacks this op", backend->name);
        report(listener, "op", name, &check);
        return TDM_OK;
    }
    for (int k = 0; k < n_types; k++) {
        if (!tdmi_backend_stores(backend, types[k].type) ||
            (k == 0 && backend == &tdmi_backend_ref)) /* it cannot be checked against itself */
            continue;
        TDM_TRY(tdmi_check_match_stored(backend, device, it, types[k].type, &check, err), err,
                "op case '%s'", name);
        report(listener, types[k].group, name, &check);
    }
    if (it->kind != TDMI_OP_INPUT) {
        TDM_TRY(tdmi_check_gradient(backend, device, it, &check, err), err, "op case '%s'", name);
        report(listener, "gradient", name, &check);
    }
    TDM_TRY(tdmi_check_determinism(backend, device, it, &check, err), err, "op case '%s'", name);
    report(listener, "determinism", name, &check);
    return TDM_WRAP(err, report_algorithms(backend, device, it, listener, err), "op case '%s'",
                    name);
}

static tdm_status check_network(const struct tdmi_backend *backend, tdmi_device *device, int i,
                                struct listener *listener, tdm_error *err)
{
    struct tdmi_check check;
    tdm_status status = tdmi_check_network_gradient(backend, device, networks[i].network,
                                                    networks[i].size, &check, err);
    TDM_TRY(absent_fails(status, &check, err), err, "network %s", networks[i].network);
    report(listener, "network gradient", networks[i].network, &check);
    for (int k = 0; k < 2; k++) {
        const enum tdmi_dtype type = k ? TDMI_DTYPE_BF16 : TDMI_DTYPE_F32;
        if (!tdmi_backend_stores(backend, type))
            continue;
        status = tdmi_check_training(backend, device, networks[i].network, networks[i].size, type,
                                     networks[i].goldens, &check, err);
        TDM_TRY(absent_fails(status, &check, err), err, "network %s", networks[i].network);
        report(listener, k ? "training, stored as bf16" : "training on one and three threads",
               networks[i].network, &check);
    }
    if (!tdmi_check_can_record(backend))
        return TDM_OK;
    status =
        tdmi_check_recording(backend, device, networks[i].network, networks[i].size, &check, err);
    TDM_TRY(absent_fails(status, &check, err), err, "network %s", networks[i].network);
    report(listener, "steps recorded and replayed", networks[i].network, &check);
    return TDM_OK;
}

tdm_status tdmi_selftest_all(const struct tdmi_backend *backend, tdmi_device *device,
                             int most_networks, tdm_selftest_sink sink,
                             struct tdm_selftest_result *result, tdm_error *err)
{
    TDMI_RESULT(tdm_selftest_result, result, err);
    const struct tdmi_case *it;
    struct tdmi_check check;
    struct listener all = {sink, result}, *listener = &all;
    *result = (struct tdm_selftest_result){0};
    for (int i = 0; (it = tdmi_case_at(i)) != NULL; i++)
        TDM_TRY(check_op(backend, device, it, listener, err), err, "self-test");
    if (backend->changes) {
        TDM_TRY(tdmi_check_pictures(backend, device, &check, err), err, "self-test");
        report(listener, "pictures", "changed on the device as on the host", &check);
    }
    if (backend->memory.gather) {
        TDM_TRY(tdmi_check_rows(backend, device, &check, err), err, "self-test");
        report(listener, "rows", "kept on the device and found by number", &check);
    }
    if (most_networks < 0)
        return TDM_OK;
    for (int i = 0; i < n_networks && i < most_networks; i++)
        TDM_TRY(check_network(backend, device, i, listener, err), err, "self-test");
    TDM_TRY(absent_fails(tdmi_check_memory(backend, device, &check, err), &check, err), err,
            "self-test");
    report(listener, "memory", "more than there is is refused, what there is serves", &check);
    return TDM_OK;
}

tdm_status tdm_selftest(const char *device, const char *part, tdm_selftest_sink sink,
                        struct tdm_selftest_result *result, tdm_error *err)
{
    const struct tdmi_backend *backend;
    tdmi_device *opened;
    int gpu;
    const bool is_all = strcmp(part, "all") == 0;
    if (!is_all && strcmp(part, "ops") != 0)
        return TDM_FAIL(err, TDM_E_USAGE, "self-test of %s: part '%s'; all or ops is accepted",
                        device, part);
    TDM_TRY(tdmi_backend_find(device, &backend, &gpu, err), err, "self-test of %s", device);
    TDM_TRY(backend->device.open(gpu, &opened, err), err, "self-test of %s", device);
    tdm_status status =
        tdmi_selftest_all(backend, opened, is_all ? n_networks : -1, sink, result, err);
    backend->device.close(opened);
    return status;
}
