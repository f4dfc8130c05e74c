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
    /* Algorithms and how often they ran; those without room are not counted. */
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
    if (has_passed) {
        tdm_log(TDM_LOG_DEBUG, "%s: %s: passed", group, name);
        return;
    }
    tdm_log(TDM_LOG_ERROR, "%s: %s: %s", group, name, detail);
    tdm_json_object_begin(call->json, NULL);
    tdm_json_string(call->json, "group", group);
    tdm_json_string(call->json, "name", name);
    tdm_json_string(call->json, "detail", detail);
    tdm_json_object_end(call->json);
}

static void on_computed(void *self, const char *op, const char *direction, const char *by)
{
    struct results *results = self;
    int i = 0;
    while (i < results->n_algorithms && (strcmp(results->algorithms[i].op, op) != 0 ||
                                         strcmp(results->algorithms[i].direction, direction) != 0 ||
                                         strcmp(results->algorithms[i].by, by) != 0))
        i++;
    if (i == most_algorithms)
        return;
    struct algorithm *row = &results->algorithms[i];
    if (i == results->n_algorithms) {
        results->n_algorithms++;
        snprintf(row->op, sizeof row->op, "%s", op);
        snprintf(row->direction, sizeof row->direction, "%s", direction);
        snprintf(row->by, sizeof row->by, "%s", by);
    }
    row->n++;
}

static void report_groups(const struct results *results)
{
    tdm_json_writer *json = results->call->json;
    tdmi_print(results->call->out, "  %-40s %7s %7s\n", "check", "passed", "failed");
    tdm_json_array_begin(json, "checks");
    for (int i = 0; i < results->n_groups; i++) {
        const struct group *group = &results->groups[i];
        tdmi_print(results->call->out, "  %-40s %7d %7d\n", group->name, group->passed,
                   group->failed);
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "check", group->name);
        tdm_json_integer(json, "passed", group->passed);
        tdm_json_integer(json, "failed", group->failed);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
}

static void report_algorithms(const struct results *results)
{
    tdm_json_writer *json = results->call->json;
    struct tdmi_output *out = results->call->out;
    if (results->n_algorithms > 0)
        tdmi_print(out, "\n  %-8s %-17s %-44s %5s\n", "op", "", "computed by", "cases");
    tdm_json_array_begin(json, "computed_by");
    for (int i = 0; i < results->n_algorithms; i++) {
        const struct algorithm *it = &results->algorithms[i];
        tdmi_print(out, "  %-8s %-17s %-44s %5d\n", it->op, it->direction, it->by, it->n);
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "op", it->op);
        tdm_json_string(json, "direction", it->direction);
        tdm_json_string(json, "by", it->by);
        tdm_json_integer(json, "cases", it->n);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_selftest_result result = {.struct_bytes = sizeof result};
    struct results results = {.call = call};
    const tdm_selftest_sink sink = {&results, on_result, on_computed};
    tdm_json_array_begin(call->json, "failures");
    TDMI_TRY(tdm_selftest(values->device, values->part, sink, &result, err));
    tdm_json_array_end(call->json);
    tdmi_print(call->out, "self-test of %s\n\n", values->device);
    report_groups(&results);
    report_algorithms(&results);
    tdm_json_string(call->json, "device", values->device);
    tdm_json_integer(call->json, "passed", result.passed);
    tdm_json_integer(call->json, "failed", result.failed);
    tdmi_print(call->out, "\n%d passed, %d failed\n", result.passed, result.failed);
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
    "tandem selftest --device cuda --part ops",
    "the operations on a GPU alone",
    NULL,
};

TDMI_COMMAND(
    selftest, "check that this build computes correctly on this machine",
    "Checks every operation against the plain C reference and against central differences, "
    "equal results at any thread count, golden training runs, and failing allocations.");
