/*
 * The reference backend: plain C on ordinary memory, one thread a call, in an order that no
 * compiler or vector width changes. It is always built; tests compare the others with it.
 */
#include "backend/ref/ref.h"
#include "backend/host.h"

#include <stdio.h>

static void device_describe(const tdmi_device *device, char *text, size_t text_bytes)
{
    (void)device;
    snprintf(text, text_bytes, "CPU, plain C");
}

static const struct tdmi_kernel *const kernels[TDMI_OP_KINDS] = {
#define X(name, NAME, inputs) [TDMI_OP_##NAME] = &tdmi_ref_##name,
#include "backend/ops.def"
#undef X
};

const struct tdmi_backend tdmi_backend_ref = {
    .name = "ref",
    .summary = "plain C on the CPU, the reference for the other backends",
    .device = {tdmi_host_count, tdmi_host_open, tdmi_host_close, device_describe, true, NULL},
    .memory = TDMI_HOST_MEMORY,
    .stream = TDMI_HOST_STREAM,
    .kernels = kernels,
    .update = &tdmi_ref_update,
};
