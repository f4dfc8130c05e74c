/*
 * Host memory that behaves like a GPU's: only kernels and copies, which open it while they run, may
 * access it. Code that follows a pointer into it at another time dies by a signal.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { most_guarded = 256 };

static struct {
    pthread_mutex_t lock;
    int n_inside; /* that are using it */
    struct {
        void *memory;
        size_t bytes;
    } blocks[most_guarded];
} guarded = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void guard_all(int protection)
{
    for (int i = 0; i < most_guarded; i++)
        if (guarded.blocks[i].memory)
            (void)mprotect(guarded.blocks[i].memory, guarded.blocks[i].bytes, protection);
}

static inline void guarded_enter(void)
{
    pthread_mutex_lock(&guarded.lock);
    if (guarded.n_inside++ == 0)
        guard_all(PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&guarded.lock);
}

static inline void guarded_leave(void)
{
    pthread_mutex_lock(&guarded.lock);
    if (--guarded.n_inside == 0)
        guard_all(PROT_NONE);
    pthread_mutex_unlock(&guarded.lock);
}

/* Zeroed; NULL when there is not so much. */
static inline void *guarded_alloc(size_t bytes)
{
    void *memory = mmap(NULL, bytes + 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool has_place = false;
    if (memory == MAP_FAILED)
        return NULL;
    pthread_mutex_lock(&guarded.lock);
    if (guarded.n_inside > 0) /* others are at it, and open nothing more */
        (void)mprotect(memory, bytes + 1, PROT_READ | PROT_WRITE);
    for (int i = 0; i < most_guarded && !has_place; i++) {
        if (guarded.blocks[i].memory)
            continue;
        guarded.blocks[i].memory = memory;
        guarded.blocks[i].bytes = bytes + 1;
        has_place = true;
    }
    pthread_mutex_unlock(&guarded.lock);
    if (has_place)
        return memory;
    (void)munmap(memory, bytes + 1);
    return NULL;
}

/* false: it is no such memory. */
static inline bool guarded_free(void *memory)
{
    bool is_known = false;
    pthread_mutex_lock(&guarded.lock);
    for (int i = 0; i < most_guarded; i++)
        if (guarded.blocks[i].memory == memory) {
            (void)munmap(memory, guarded.blocks[i].bytes);
            guarded.blocks[i].memory = NULL;
            is_known = true;
        }
    pthread_mutex_unlock(&guarded.lock);
    return is_known;
}

static inline void guarded_copy(void *to, const void *from, size_t bytes)
{
    guarded_enter();
    memcpy(to, from, bytes);
    guarded_leave();
}

static inline void guarded_clear(void *memory, size_t bytes)
{
    guarded_enter();
    memset(memory, 0, bytes);
    guarded_leave();
}
