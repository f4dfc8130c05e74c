/* GPUs, errors and test hooks of the fake CUDA runtime. */
#include "backend/cuda/fakes/fake_runtime_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A macro, because a static object is initialised with it. */
#define FIRST_GPUS .n = 1, .driver = 13000, .major = 9, .bytes = (size_t)80 << 30

struct fake_runtime fake_runtime = {.lock = PTHREAD_MUTEX_INITIALIZER, .gpus = {FIRST_GPUS}};

static _Thread_local int the_device;
static _Thread_local cudaError_t the_error; /* the last, until it is asked for */

int fake_device(void)
{
    return the_device;
}

cudaError_t fake_begin(void)
{
    pthread_mutex_lock(&fake_runtime.lock);
    return fake_runtime.of[the_device].lost;
}

cudaError_t fake_end(cudaError_t code)
{
    if (code != cudaSuccess)
        the_error = code;
    pthread_mutex_unlock(&fake_runtime.lock);
    return code;
}

static void report(const char *format, va_list arguments)
{
    char text[fake_message_room];
    vsnprintf(text, sizeof text, format, arguments);
    if (fake_runtime.message)
        memcpy(fake_runtime.message, text, sizeof text);
    else
        fprintf(stderr, "# fake CUDA runtime: %s\n", text);
}

void fake_complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    va_end(arguments);
    if (!fake_runtime.message)
        abort();
}

cudaError_t fake_refuse(cudaError_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    va_end(arguments);
    return code;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t code = the_error;
    the_error = fake_runtime.of[the_device].lost;
    return code;
}

const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
#define X(name, number, words) \
    case name:                 \
        return words;
        FAKE_CUDA_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* Without a driver, or without GPUs, n stays as it was. */
cudaError_t cudaGetDeviceCount(int *n)
{
    cudaError_t code = fake_begin();
    if (code == cudaSuccess)
        code = (cudaError_t)fake_runtime.gpus.count_code;
    if (code == cudaSuccess)
        *n = fake_runtime.gpus.n;
    return fake_end(code);
}

static cudaError_t check_device(cudaError_t code, int planted, int device)
{
    if (code == cudaSuccess && (device < 0 || device >= fake_runtime.gpus.n))
        return fake_refuse(cudaErrorInvalidDevice, "there is no GPU %d", device);
    return code == cudaSuccess ? (cudaError_t)planted : code;
}

cudaError_t cudaSetDevice(int device)
{
    const cudaError_t code = check_device(fake_begin(), fake_runtime.gpus.use_code, device);
    if (code == cudaSuccess)
        the_device = device;
    return fake_end(code);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *facts, int device)
{
    const cudaError_t code = check_device(fake_begin(), fake_runtime.gpus.facts_code, device);
    if (code == cudaSuccess) {
        memset(facts, 0, sizeof *facts);
        snprintf(facts->name, sizeof facts->name, "a fake GPU");
        for (int i = 0; i < 16; i++)
            facts->uuid.bytes[i] = (char)(0xa0 + 16 * device + i); /* of either sign */
        facts->multiProcessorCount = 132;
        facts->major = fake_runtime.gpus.major;
    }
    return fake_end(code);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    cudaError_t code = fake_begin();
    if (code == cudaSuccess)
        code = (cudaError_t)fake_runtime.gpus.memory_code;
    if (code == cudaSuccess) {
        *total_bytes = fake_runtime.gpus.bytes;
        *free_bytes = *total_bytes - fake_runtime.of[the_device].used_bytes;
    }
    return fake_end(code);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = fake_runtime.gpus.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

/* ---- for tests ------------------------------------------------------------------------------- */

void fake_runtime_pace(enum fake_pace pace)
{
    pthread_mutex_lock(&fake_runtime.lock);
    fake_catch_up_all(-1);
    fake_runtime.pace = pace;
    fake_runtime.chance = 1;
    pthread_mutex_unlock(&fake_runtime.lock);
}

void fake_runtime_guard(bool is_on)
{
    fake_runtime.is_guarding = is_on;
}

void fake_runtime_limit(size_t bytes)
{
    fake_runtime.limit_bytes = bytes;
}

struct fake_gpus fake_runtime_first_gpus(void)
{
    return (struct fake_gpus){FIRST_GPUS};
}

void fake_runtime_gpus(struct fake_gpus gpus)
{
    fake_runtime.gpus = gpus;
    for (int i = 0; i < fake_most_gpus; i++)
        fake_runtime.of[i].lost = cudaSuccess;
    the_error = cudaSuccess;
}

struct fake_copied fake_runtime_copied(void)
{
    pthread_mutex_lock(&fake_runtime.lock);
    const struct fake_copied copied = fake_runtime.copied;
    fake_runtime.copied = (struct fake_copied){0};
    pthread_mutex_unlock(&fake_runtime.lock);
    return copied;
}

struct fake_left fake_runtime_left(void)
{
    struct fake_left left = {0};
    pthread_mutex_lock(&fake_runtime.lock);
    for (const struct CUstream_st *at = fake_runtime.streams; at; at = at->next) {
        left.streams++;
        left.captures += at->capture != NULL;
    }
    for (const struct CUevent_st *at = fake_runtime.events; at; at = at->next)
        left.events++;
    for (const struct CUgraph_st *at = fake_runtime.graphs; at; at = at->next)
        left.graphs++;
    for (const struct CUgraphExec_st *at = fake_runtime.execs; at; at = at->next)
        left.execs++;
    for (const struct fake_block *at = fake_runtime.blocks; at; at = at->next)
        *(at->device < 0 ? &left.pinned : &left.memory) += 1;
    pthread_mutex_unlock(&fake_runtime.lock);
    return left;
}

void fake_runtime_hear(char *message)
{
    if (message)
        message[0] = '\0';
    fake_runtime.message = message;
}
