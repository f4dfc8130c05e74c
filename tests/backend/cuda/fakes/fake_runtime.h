/*
 * What looks like CUDA's runtime, to tests: how many cards there are and what they have, when
 * queued work is done, what fails, what is left open. Behind device.c, memory.c, stream.c and
 * capture.c as they are, with kernels that the shim runs.
 *
 * It does what is queued at once, or as late as a card may. Where CUDA gives an error for what is
 * asked, it gives that error; where a card would be free to do something wrong, it says which rule
 * is broken, and ends the program.
 */
#ifndef TANDEM_TESTS_BACKEND_CUDA_FAKE_RUNTIME_H
#define TANDEM_TESTS_BACKEND_CUDA_FAKE_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_pace {
    FAKE_AT_ONCE,
    /* Nothing before the host waits for its stream, or for a stream that waits for it. */
    FAKE_LATE,
    /* Kernels and replays, and what stands behind them, as late as that; all else at once. */
    FAKE_SLOW_KERNELS,
    /* Some of what may be done of any stream, whenever something is queued. */
    FAKE_BY_CHANCE,
    FAKE_PACES
};

/* Of all streams, from now on; what is queued by then is done. */
void fake_runtime_pace(enum fake_pace pace);

/* Memory of cards is kept from all but kernels and copies of its own card, from now on; that costs
 * two calls of the system a launch, so tests ask for it. */
void fake_runtime_guard(bool wanted);

/* From now on nobody gets so many bytes of a card in one piece; 0: as many as there are. */
void fake_runtime_limit(size_t bytes);

enum { fake_most_cards = 4 };

struct fake_cards {
    int n;          /* at first 1 */
    int count_code; /* cudaGetDeviceCount's: 0 */
    int driver;     /* version, 13000; 0: there is none */
    int major;      /* of the compute capability, 9 */
    size_t bytes;   /* that each has, 80 GiB */
};
struct fake_cards fake_runtime_first_cards(void); /* with what is said above */
/* Those that were lost by a failed kernel are well again. */
void fake_runtime_cards(struct fake_cards cards);

/* Call number at, counted from 1, of this function of the runtime, or of any (NULL), does nothing
 * but give this code. */
void fake_runtime_fail(const char *function, int at, int code);
/* Calls since fake_runtime_fail, of what it named. */
int fake_runtime_calls(void);

/* Bytes that were copied to cards, from pinned memory and from any other, since it was asked. */
struct fake_copied {
    int64_t pinned_bytes, other_bytes;
};
struct fake_copied fake_runtime_copied(void);

/* What was opened or reserved and not given back. */
struct fake_left {
    int streams, events, graphs, execs, captures, memory, pinned;
};
struct fake_left fake_runtime_left(void);

/* A broken rule is told here, and does not end the program; NULL: it does. At first: "". */
enum { fake_said_room = 300 };
void fake_runtime_hear(char *said);

#endif
