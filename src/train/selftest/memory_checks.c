/*
 * Too much memory is an error, not a crash: a training of 2^27 images in one group is refused, and
 * the device works afterwards.
 */
#include "models/network.h"
#include "train/selftest/checks.h"
#include "train/step/step.h"

#include <stdio.h>

/* MobileNetV2 keeps more than 8 MB an image, so this is beyond the 2^47 bytes of any address space
 * here: no system can overcommit it. */
enum { too_many = 1 << 27, image = 224, classes = 10 };

TDMI_POINTER_RELEASE(tdmi_step, tdmi_step_close)

/* Prepare a first step that no memory holds. */
static tdm_status prepare_too_much(const struct tdmi_backend *backend, tdmi_device *device,
                                   tdm_error *err)
{
    struct tdmi_network network;
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = NULL;
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *plan = NULL;
    TDMI_AT_END(tdmi_step_close_at) tdmi_step *step = NULL;
    const struct tdmi_plan_options request = {.max_images = too_many, .is_training = true};
    TDM_TRY(tdmi_network_find("mobilenetv2", &network, err), err,
            "preparing a step that no memory holds");
    struct tdmi_preprocess preprocess = network.preprocess;
    preprocess.width = preprocess.height = image;
    TDMI_TRY(tdmi_network_build(&network, &preprocess, classes, &graph, err));
    TDMI_TRY(tdmi_pool_new(1, false, &pool, err));
    TDMI_TRY(tdmi_plan_make(graph, backend, &request, &plan, err));
    return tdmi_step_open(plan, device, pool, &(struct tdmi_step_options){.max_batch = too_many},
                          &step, err);
}

tdm_status tdmi_check_memory(const struct tdmi_backend *backend, tdmi_device *device,
                             struct tdmi_check *check, tdm_error *err)
{
    const tdm_status status = prepare_too_much(backend, device, NULL);
    *check = (struct tdmi_check){.has_passed = status == TDM_E_MEMORY};
    if (status == TDM_E_ABSENT) /* an op is missing: nothing is known of memory */
        return TDM_FAIL(err, status, "the backend %s lacks an op of MobileNetV2", backend->name);
    if (!check->has_passed) {
        snprintf(check->detail, sizeof check->detail,
                 "a training of %d images at once returned '%s'; expected too little memory",
                 too_many, tdm_status_text(status));
        return TDM_OK;
    }
    return tdmi_check_match(backend, device, tdmi_case_at(0), check, err);
}
