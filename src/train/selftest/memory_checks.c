/*
 * Too much memory is an answer: a training of a whole year's pictures in one shard is refused, and
 * what is asked for afterwards is there.
 */
#include "models/network.h"
#include "train/selftest/checks.h"
#include "train/step/step.h"

#include <stdio.h>

/* MobileNetV2 keeps more than 8 MB a picture, so this is beyond the 2^47 bytes that any address
 * space here has: no system promises it and thinks of it later. */
enum { too_many = 1 << 27, image = 224, classes = 10 };

/* The status that the whole way to a first step ends with. */
static tdm_status ask_for_too_much(const struct tdmi_backend *backend, tdmi_device *device,
                                   tdm_error *err)
{
    struct tdmi_network network;
    tdmi_graph *graph = NULL;
    tdmi_plan *plan = NULL;
    tdmi_pool *pool = NULL;
    tdmi_step *step = NULL;
    const struct tdmi_plan_options request = {.max_images = too_many, .is_training = true};
    TDM_TRY(tdmi_network_find("mobilenetv2", &network, err), err, "asking for too much memory");
    struct tdmi_preprocess preprocess = network.preprocess;
    preprocess.width = preprocess.height = image;
    tdm_status status = tdmi_network_build(&network, &preprocess, classes, &graph, err);
    if (status == TDM_OK)
        status = tdmi_pool_new(1, false, &pool, err);
    if (status == TDM_OK)
        status = tdmi_plan_make(graph, backend, &request, &plan, err);
    if (status == TDM_OK)
        status = tdmi_step_open(plan, device, pool,
                                &(struct tdmi_step_options){.max_batch = too_many}, &step, err);
    tdmi_step_close(step);
    tdmi_plan_free(plan);
    tdmi_pool_free(pool);
    tdmi_graph_free(graph);
    return status;
}

tdm_status tdmi_check_memory(const struct tdmi_backend *backend, tdmi_device *device,
                             struct tdmi_check *check, tdm_error *err)
{
    tdm_error told = {0};
    const tdm_status status = ask_for_too_much(backend, device, &told);
    *check = (struct tdmi_check){.has_passed = status == TDM_E_MEMORY};
    tdm_error_clear(&told);
    if (status == TDM_E_ABSENT) /* an op is missing: nothing is known of memory */
        return TDM_FAIL(err, status, "the backend %s lacks an op of MobileNetV2", backend->name);
    if (!check->has_passed) {
        snprintf(check->detail, sizeof check->detail,
                 "a training of %d pictures at once ends with '%s', and should lack memory",
                 too_many, tdm_status_text(status));
        return TDM_OK;
    }
    return tdmi_check_match(backend, device, tdmi_case_at(0), check, err);
}
