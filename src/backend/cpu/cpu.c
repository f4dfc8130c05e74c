/*
 * The backend of this CPU: oneDNN where the build has it, kernels of our own for the instruction
 * set found at run time, and those of ref for the other ops. Memory is ordinary memory; a stream
 * runs at once, on the calling thread.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "backend/host.h"
#include "base/memory.h"

#include <stdio.h>

static void device_describe(const tdmi_device *device, char *text, size_t text_bytes)
{
    char libraries[80];
    (void)device;
    tdmi_cpu_write_libraries(libraries, sizeof libraries);
    snprintf(text, text_bytes, "CPU, %s%s", tdmi_isa_name(tdmi_isa_best()), libraries);
}

static void *memory_alloc(tdmi_device *device, size_t bytes)
{
    (void)device;
    return tdmi_alloc_large(bytes);
}

static void memory_free(tdmi_device *device, void *memory)
{
    (void)device;
    tdmi_free_large(memory);
}

const struct tdmi_backend tdmi_backend_cpu = {
    .name = "cpu",
    .summary = "this processor: oneDNN and kernels of our own",
    .device = {tdmi_host_count, tdmi_host_open, tdmi_host_close, device_describe, true, NULL},
    .memory = {.alloc = memory_alloc,
               .free = memory_free,
               .upload = tdmi_host_copy,
               .download = tdmi_host_copy,
               .clear = tdmi_host_clear},
    .stream = {.open = tdmi_host_stream_open,
               .close = tdmi_host_stream_close,
               .wait = tdmi_host_stream_wait},
    .kernels = tdmi_cpu_kernels,
    .update = &tdmi_cpu_update,
};
