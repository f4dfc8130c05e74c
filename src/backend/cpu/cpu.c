/*
 * The backend of this CPU: oneDNN where the build has it, kernels of our own for the instruction
 * set found at run time, and those of ref for the other ops. Memory is ordinary memory; a stream
 * runs at once, on the calling thread.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "backend/host.h"

#include <stdio.h>

static void device_describe(const tdmi_device *device, char *text, size_t text_bytes)
{
    char libraries[80];
    (void)device;
    tdmi_cpu_write_libraries(libraries, sizeof libraries);
    snprintf(text, text_bytes, "CPU, %s%s", tdmi_isa_name(tdmi_isa_best()), libraries);
}

const struct tdmi_backend tdmi_backend_cpu = {
    .name = "cpu",
    .summary = "this CPU: oneDNN and kernels of our own",
    .device = {tdmi_host_count, tdmi_host_open, tdmi_host_close, device_describe, true, NULL},
    .memory = TDMI_HOST_MEMORY,
    .stream = TDMI_HOST_STREAM,
    .kernels = tdmi_cpu_kernels,
    .update = &tdmi_cpu_update,
};
