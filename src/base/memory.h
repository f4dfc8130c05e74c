/*
 * The one place that calls malloc. Sizes are checked for overflow, memory comes back zeroed, and
 * the tests can make the n-th allocation fail.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* count * item_bytes zeroed bytes, or NULL. A count of 0 gives a valid pointer. */
void *tdmi_alloc(size_t count, size_t item_bytes);
/* The same, aligned to 64 bytes (a cache line, a vector); freed by tdmi_free too. */
void *tdmi_alloc_aligned(size_t bytes);
/* The same for memory that is read again and again: from a few MiB on it lies in huge pages, where
 * the system has them, and pages are only allocated when written. */
void *tdmi_alloc_large(size_t bytes);
void tdmi_free_large(void *block);
/* Grow a block of tdmi_alloc (bytes past the old size are not zeroed); on NULL the old block stays
 * valid. */
void *tdmi_realloc(void *block, size_t count, size_t item_bytes);
void tdmi_free(void *block);

/*
 * Make room for item number n of a growing array: when n has reached the capacity, double it (16 at
 * first; new items are not zeroed). False: no memory, and nothing changed. array is an lvalue, a
 * pointer to memory of tdmi_alloc or NULL; capacity is an int64_t lvalue.
 */
#define TDMI_GROW(array, capacity, n) \
    tdmi_grow(&(array), &(capacity), (int64_t)(n), sizeof *(array))
bool tdmi_grow(void *array, int64_t *capacity, int64_t n, size_t item_bytes);

/* Can that many bytes be allocated now? Call before a library function that ends the program, or
 * computes nonsense, without memory. Nothing is reserved, so use generous bounds. A microsecond;
 * below 64 KiB a twentieth of that. */
bool tdmi_memory_has_room(size_t bytes);

/* The next two are process-wide and may be called from any thread. */

/* For tests: let the call number n from now (1 is the next) and all after it fail; 0 ends that. */
void tdmi_memory_fail_from(int64_t n);
/* Allocations requested so far in this process: a training step must not add any. */
int64_t tdmi_memory_calls(void);
