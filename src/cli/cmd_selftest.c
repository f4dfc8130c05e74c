/*
 * tandem selftest: does this build compute rightly on this machine?
 */
#include "command.h"
#include "tandem/log.h"
#include "tandem/selftest.h"

struct values {
    const char *device;
};

static void defaults(void *values)
{
    ((struct values *)values)->device = "cpu";
}

static void on_result(void *self, const char *group, const char *name, bool has_passed,
                      const char *detail)
{
    struct tdmi_call *call = self;
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

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_selftest_result result;
    if (call->json)
        tdm_json_array_begin(call->json, "failures");
    tdm_status status =
        tdm_selftest(values->device, (tdm_selftest_sink){call, on_result}, &result, err);
    if (status != TDM_OK)
        return status;
    if (call->json) {
        tdm_json_array_end(call->json);
        tdm_json_string(call->json, "device", values->device);
        tdm_json_integer(call->json, "passed", result.passed);
        tdm_json_integer(call->json, "failed", result.failed);
    } else {
        tdmi_print(call->out, "%d passed, %d failed on %s\n", result.passed, result.failed,
                   values->device);
    }
    call->exit_status = result.failed > 0;
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {{.name = NULL}};

static const struct tdmi_option options[] = {
    TDMI_ROW_DEVICE(offsetof(struct values, device),
                    "what to check: cpu, or the name of one backend such as ref"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem selftest",
    "exit 0: every case passed; 1: some failed; 4: no such device",
    NULL,
};

const struct tdmi_command tdmi_command_selftest = {
    .name = "selftest",
    .summary = "check that this build computes rightly on this machine",
    .description = "Every operation against the plain C law and against central differences, equal "
                   "bits at any thread count, and a small golden training run.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .values_bytes = sizeof(struct values),
    .defaults = defaults,
    .run = run,
};
