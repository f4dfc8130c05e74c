/*
 * A fake CUDA runtime for tests, behind runtime/backend.c and stream.c as they are, with kernels
 * run by the shim. Tests choose how many GPUs there are and when queued work is done,
 * and ask what is left open.
 *
 * It does queued work at once, or as late as a GPU may. A call that CUDA refuses gets CUDA's error;
 * a use of CUDA that leaves a GPU free to do something wrong ends the program with the broken rule.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_pace {
    FAKE_AT_ONCE,
    FAKE_LATE,         /* nothing before the host, or a stream that it waits for, waits for it */
    FAKE_SLOW_KERNELS, /* kernels, replays and what follows them that late; all else at once */
    FAKE_BY_CHANCE,    /* some work of any stream, whenever something is queued */
    FAKE_PACES
};

/* Finish what is queued, and use this pace for all streams from now on. */
void fake_runtime_pace(enum fake_pace pace);

/* Keep the memory of GPUs from everything but kernels and copies of its own GPU. This costs two
 * system calls a launch, so tests ask for it. */
void fake_runtime_guard(bool is_on);

/* Refuse allocations of this many bytes and more; 0: none. */
void fake_runtime_limit(size_t bytes);

enum { fake_most_gpus = 4 };

struct fake_gpus {
    int n;           /* at first 1 */
    int count_code;  /* result of cudaGetDeviceCount, 0 */
    int facts_code;  /* result of cudaGetDeviceProperties, 0 */
    int use_code;    /* result of cudaSetDevice, 0 */
    int memory_code; /* result of cudaMemGetInfo, 0 */
    int driver;      /* version, 13000; 0: there is none */
    int major;       /* compute capability, 9 */
    size_t bytes;    /* memory of each, 80 GiB */
};
struct fake_gpus fake_runtime_first_gpus(void); /* with the values above */
/* GPUs that a failed kernel lost work again. */
void fake_runtime_gpus(struct fake_gpus gpus);

/* Bytes copied to GPUs since the last call, from pinned memory and from any other. */
struct fake_copied {
    int64_t pinned_bytes, other_bytes;
};
struct fake_copied fake_runtime_copied(void);

/* Number of objects that are open. */
struct fake_left {
    int streams, events, graphs, execs, captures, memory, pinned;
};
struct fake_left fake_runtime_left(void);

/* Write broken rules here instead of ending the program; NULL: end it. At first: "". */
enum { fake_message_room = 300 };
void fake_runtime_hear(char *message);
