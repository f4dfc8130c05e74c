/*
 * The reference backend: plain C on ordinary memory, one thread a call, in an order that no
 * compiler or vector width changes. It is always built and is the law the others are judged by.
 */
#include "backend/ref/ref.h"
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
    snprintf(text, text_bytes, "CPU, plain C");
}

static void *memory_alloc(tdmi_device *device, size_t bytes)
{
    (void)device;
    return tdmi_alloc_aligned(bytes);
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

static const struct tdmi_kernel *const kernels[TDMI_OP_KINDS] = {
#define X(name, NAME, inputs) [TDMI_OP_##NAME] = &tdmi_ref_##name,
#include "backend/ops.def"
#undef X
};

const struct tdmi_backend tdmi_backend_ref = {
    .name = "ref",
    .summary = "plain C on the CPU, the law the others are judged by",
    .device = {device_count, device_open, device_close, device_describe, true},
    .memory = {memory_alloc, memory_free, memory_copy, memory_copy},
    .stream = {.open = stream_open, .close = stream_close, .wait = stream_wait},
    .kernels = kernels,
    .update = {.sgd = tdmi_ref_sgd, .blend = tdmi_ref_blend, .accumulate = tdmi_ref_accumulate},
};
