/*
 * The backend of this processor: oneDNN where the build has it, kernels of our own chosen for the
 * processor at run time, and ref's for what is left. Memory is ordinary memory; a stream runs at
 * once, on the thread that calls.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* There is nothing to hold: device and stream are this one object's address. */
static const char the_host = 0;

static int device_count(void)
{
    return 1;
}

static tdm_status device_open(int index, tdmi_device **device, tdm_error *err)
{
    (void)index;
    (void)err;
    *device = (tdmi_device *)(uintptr_t)&the_host;
    return TDM_OK;
}

static void device_close(tdmi_device *device)
{
    (void)device;
}

static void device_describe(const tdmi_device *device, char *text, size_t text_bytes)
{
    (void)device;
    snprintf(text, text_bytes, "CPU, %s", tdmi_isa_name(tdmi_isa_best()));
}

static void *memory_alloc(tdmi_device *device, size_t bytes)
{
    (void)device;
    return tdmi_alloc_large(bytes);
}

static void memory_free(tdmi_device *device, void *memory)
{
    (void)device;
    tdmi_free(memory);
}

static tdm_status memory_copy(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                              tdm_error *err)
{
    (void)stream;
    (void)err;
    memcpy(to, from, bytes);
    return TDM_OK;
}

static tdm_status stream_open(tdmi_device *device, tdmi_stream **stream, tdm_error *err)
{
    (void)device;
    (void)err;
    *stream = (tdmi_stream *)(uintptr_t)&the_host;
    return TDM_OK;
}

static void stream_close(tdmi_stream *stream)
{
    (void)stream;
}

static tdm_status stream_wait(tdmi_stream *stream, tdm_error *err)
{
    (void)stream;
    (void)err;
    return TDM_OK;
}

const struct tdmi_backend tdmi_backend_cpu = {
    .name = "cpu",
    .summary = "this processor: oneDNN and kernels of our own",
    .device = {device_count, device_open, device_close, device_describe, true},
    .memory = {memory_alloc, memory_free, memory_copy, memory_copy},
    .stream = {.open = stream_open, .close = stream_close, .wait = stream_wait},
    .kernels = tdmi_cpu_kernels,
    .update = {.sgd = tdmi_cpu_sgd, .blend = tdmi_cpu_blend, .accumulate = tdmi_cpu_accumulate},
};
