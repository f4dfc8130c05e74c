/*
 * tandem selftest: does this build compute rightly on this machine?
 */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/log.h"
#include "tandem/bench.h"

#include <stdio.h>
#include <string.h>

struct values {
    const char *device, *part;
};

static void defaults(void *values)
{
    struct values *own = values;
    own->device = "cpu";
    own->part = "all";
}

/* Results so far: one row for each kind of check, in order of arrival. */
enum { most_groups = 16, most_algorithms = 200 };

struct results {
    struct tdmi_call *call;
    int n_groups;
    struct group {
        char name[48];
        int passed, failed;
    } groups[most_groups];
    /* Algorithms and how often they ran; the last entry, "others", counts those without room. */
    int n_algorithms;
    struct algorithm {
        char op[16], direction[24], by[64];
        int n;
    } algorithms[most_algorithms];
};

static struct group *group_of(struct results *results, const char *name)
{
    for (int i = 0; i < results->n_groups; i++)
        if (strcmp(results->groups[i].name, name) == 0)
            return &results->groups[i];
    if (results->n_groups == most_groups)
        return &results->groups[most_groups - 1];
    struct group *made = &results->groups[results->n_groups++];
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

static void on_result(void *self, const char *group, const char *name, bool has_passed,
                      const char *detail)
{
    struct results *results = self;
    struct tdmi_call *call = results->call;
    struct group *row = group_of(results, group);
    row->passed += has_passed;
    row->failed += !has_passed;
    if (call->json && !has_passed) {
        tdm_json_object_begin(call->json, NULL);
        tdm_json_string(call->json, "group", group);
        tdm_json_string(call->json, "name", name);
        tdm_json_string(call->json, "detail", detail ? detail : "");
        tdm_json_object_end(call->json);
    }
    if (!has_passed)
        tdm_log(TDM_LOG_ERROR, "%s: %s: %s", group, name, detail ? detail : "failed");
    else
        tdm_log(TDM_LOG_DEBUG, "%s: %s: passed", group, name);
}

static void on_computed(void *self, const char *op, const char *direction, const char *by)
{
    struct results *results = self;
    int i = 0;
    while (i < results->n_algorithms && i < most_algorithms - 1 &&
           (strcmp(results->algorithms[i].op, op) != 0 ||
            strcmp(results->algorithms[i].direction, direction) != 0 ||
            strcmp(results->algorithms[i].by, by) != 0))
        i++;
    const bool is_full = i == most_algorithms - 1;
    struct algorithm *row = &results->algorithms[i];
    if (i == results->n_algorithms) {
        results->n_algorithms++;
        snprintf(row->op, sizeof row->op, "%s", is_full ? "any" : op);
        snprintf(row->direction, sizeof row->direction, "%s", is_full ? "any" : direction);
        snprintf(row->by, sizeof row->by, "%s", is_full ? "others" : by);
    }
    row->n++;
}

static void print_algorithms(const struct results *results)
{
    struct tdmi_output *out = results->call->out;
    if (results->n_algorithms > 0)
        tdmi_print(out, "\n  %-8s %-17s %-44s %5s\n", "op", "", "computed by", "cases");
    for (int i = 0; i < results->n_algorithms; i++)
        tdmi_print(out, "  %-8s %-17s %-44s %5d\n", results->algorithms[i].op,
                   results->algorithms[i].direction, results->algorithms[i].by,
                   results->algorithms[i].n);
}

static void print_result(const struct results *results, const char *device,
                         const struct tdm_selftest_result *result)
{
    struct tdmi_output *out = results->call->out;
    tdmi_print(out, "self-test of %s\n\n  %-40s %7s %7s\n", device, "check", "passed", "failed");
    for (int i = 0; i < results->n_groups; i++)
        tdmi_print(out, "  %-40s %7d %7d\n", results->groups[i].name, results->groups[i].passed,
                   results->groups[i].failed);
    print_algorithms(results);
    tdmi_print(out, "\n%d passed, %d failed\n", result->passed, result->failed);
}

static void write_groups(const struct results *results)
{
    tdm_json_writer *json = results->call->json;
    tdm_json_array_begin(json, "checks");
    for (int i = 0; i < results->n_groups; i++) {
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "check", results->groups[i].name);
        tdm_json_integer(json, "passed", results->groups[i].passed);
        tdm_json_integer(json, "failed", results->groups[i].failed);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
}

static void write_algorithms(const struct results *results)
{
    tdm_json_writer *json = results->call->json;
    tdm_json_array_begin(json, "computed_by");
    for (int i = 0; i < results->n_algorithms; i++) {
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "op", results->algorithms[i].op);
        tdm_json_string(json, "direction", results->algorithms[i].direction);
        tdm_json_string(json, "by", results->algorithms[i].by);
        tdm_json_integer(json, "cases", results->algorithms[i].n);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_selftest_result result = {.struct_bytes = sizeof result};
    struct results results = {.call = call};
    if (call->json)
        tdm_json_array_begin(call->json, "failures");
    tdm_status status =
        tdm_selftest(values->device, values->part,
                     (tdm_selftest_sink){&results, on_result, on_computed}, &result, err);
    TDMI_TRY(status);
    if (call->json) {
        tdm_json_array_end(call->json);
        write_groups(&results);
        write_algorithms(&results);
        tdm_json_string(call->json, "device", values->device);
        tdm_json_integer(call->json, "passed", result.passed);
        tdm_json_integer(call->json, "failed", result.failed);
    } else {
        print_result(&results, values->device, &result);
    }
    call->exit_status = result.failed > 0;
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {{.name = NULL}};

static const struct tdmi_option options[] = {
    TDMI_ROW_DEVICE(device, "device to check: cpu, or one backend: cuda, cuda:1, ref"),
    TDMI_ROW(CHOICE, "part", part, "Machine",
             "ops: only the cases of the operations, such as for a checker of GPU memory",
             .choices = "all|ops"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem selftest",
    "exit 0: every case passed; 1: some failed; 4: no such device",
    NULL,
};

TDMI_COMMAND(
    selftest, "check that this build computes correctly on this machine",
    "Checks every operation against the plain C reference and against central differences, "
    "equal results at any thread count, golden training runs, and failing allocations.");
