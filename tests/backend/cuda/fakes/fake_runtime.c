/* Cards, errors, and what tests ask of the fake runtime. */
#include "backend/cuda/fakes/fake_runtime_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As macro: a static object begins with it. */
#define FIRST_CARDS 1, 0, 13000, 9, (size_t)80 << 30

struct fake_runtime fake_runtime = {.lock = PTHREAD_MUTEX_INITIALIZER, .cards = {FIRST_CARDS}};

static _Thread_local int the_device;
static _Thread_local cudaError_t the_error; /* the last, until it is asked for */

int fake_device(void)
{
    return the_device;
}

/* ---- every call ------------------------------------------------------------------------------ */

static bool is_failing(const char *function)
{
    struct fake_runtime *all = &fake_runtime;
    if (all->failing[0] != '\0' && strcmp(all->failing, function) != 0)
        return false;
    return ++all->n_calls == all->fail_at;
}

cudaError_t fake_begin(const char *function)
{
    pthread_mutex_lock(&fake_runtime.lock);
    if (is_failing(function))
        return fake_runtime.fail_code;
    return fake_runtime.of[the_device].lost;
}

cudaError_t fake_end(cudaError_t code)
{
    if (code != cudaSuccess)
        the_error = code;
    pthread_mutex_unlock(&fake_runtime.lock);
    return code;
}

static void say(const char *format, va_list arguments)
{
    char text[fake_said_room];
    vsnprintf(text, sizeof text, format, arguments);
    if (fake_runtime.said)
        memcpy(fake_runtime.said, text, sizeof text);
    else
        fprintf(stderr, "# CUDA's runtime would say: %s\n", text);
}

void fake_complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    if (!fake_runtime.said)
        abort();
}

cudaError_t fake_refuse(cudaError_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
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

/* ---- cards ----------------------------------------------------------------------------------- */

/* Without a driver, or without cards, n stays what it was. */
cudaError_t cudaGetDeviceCount(int *n)
{
    cudaError_t code = fake_begin(__func__);
    if (code == cudaSuccess)
        code = (cudaError_t)fake_runtime.cards.count_code;
    if (code == cudaSuccess)
        *n = fake_runtime.cards.n;
    return fake_end(code);
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t code = fake_begin(__func__);
    if (code == cudaSuccess && (device < 0 || device >= fake_runtime.cards.n))
        code = fake_refuse(cudaErrorInvalidDevice, "there is no card %d", device);
    if (code == cudaSuccess)
        the_device = device;
    return fake_end(code);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *facts, int device)
{
    cudaError_t code = fake_begin(__func__);
    if (code == cudaSuccess && (device < 0 || device >= fake_runtime.cards.n))
        code = fake_refuse(cudaErrorInvalidDevice, "there is no card %d", device);
    if (code == cudaSuccess) {
        memset(facts, 0, sizeof *facts);
        snprintf(facts->name, sizeof facts->name, "a card of the shim");
        for (int i = 0; i < 16; i++)
            facts->uuid.bytes[i] = (char)(0xa0 + 16 * device + i); /* of either sign */
        facts->multiProcessorCount = 132;
        facts->major = fake_runtime.cards.major;
    }
    return fake_end(code);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    cudaError_t code = fake_begin(__func__);
    if (code == cudaSuccess) {
        *total_bytes = fake_runtime.cards.bytes;
        *free_bytes = *total_bytes - fake_runtime.of[the_device].used_bytes;
    }
    return fake_end(code);
}

/* Asks no card. */
cudaError_t cudaDriverGetVersion(int *version)
{
    *version = fake_runtime.cards.driver;
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

void fake_runtime_guard(bool wanted)
{
    fake_runtime.is_guarding = wanted;
}

void fake_runtime_limit(size_t bytes)
{
    fake_runtime.limit_bytes = bytes;
}

struct fake_cards fake_runtime_first_cards(void)
{
    return (struct fake_cards){FIRST_CARDS};
}

void fake_runtime_cards(struct fake_cards cards)
{
    fake_runtime.cards = cards;
    for (int i = 0; i < fake_most_cards; i++)
        fake_runtime.of[i].lost = cudaSuccess;
    the_error = cudaSuccess;
}

void fake_runtime_fail(const char *function, int at, int code)
{
    pthread_mutex_lock(&fake_runtime.lock);
    snprintf(fake_runtime.failing, sizeof fake_runtime.failing, "%s", function ? function : "");
    fake_runtime.fail_at = at;
    fake_runtime.fail_code = (cudaError_t)code;
    fake_runtime.n_calls = 0;
    pthread_mutex_unlock(&fake_runtime.lock);
}

int fake_runtime_calls(void)
{
    return fake_runtime.n_calls;
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
    for (const struct CUstream_st *at = fake_runtime.streams; at; at = at->next)
        left.streams++;
    for (const struct CUevent_st *at = fake_runtime.events; at; at = at->next)
        left.events++;
    for (const struct CUgraph_st *at = fake_runtime.graphs; at; at = at->next)
        left.graphs++;
    for (const struct CUgraphExec_st *at = fake_runtime.execs; at; at = at->next)
        left.execs++;
    for (const struct fake_capture *at = fake_runtime.captures; at; at = at->next)
        left.captures++;
    for (const struct fake_block *at = fake_runtime.blocks; at; at = at->next)
        *(at->device < 0 ? &left.pinned : &left.memory) += 1;
    pthread_mutex_unlock(&fake_runtime.lock);
    return left;
}

void fake_runtime_hear(char *said)
{
    if (said)
        said[0] = '\0';
    fake_runtime.said = said;
}
