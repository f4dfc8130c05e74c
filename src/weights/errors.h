/*
 * Sentences about files that are refused, and allocations from arenas that fail with an error, like
 * TDMI_NEW of base/scope.h.
 */
#pragma once

#include "base/arena.h"
#include "base/scope.h"

/* "PATH: what is wrong" as TDM_E_INPUT. Long names in the sentence lose their middle to a "…". */
#define TDMI_BAD_FILE(err, path, ...) tdmi_bad_file((err), __FILE__, __LINE__, (path), __VA_ARGS__)
tdm_status tdmi_bad_file(tdm_error *err, const char *file, int line, const char *path,
                         const char *format, ...) TDM_PRINTF(5, 6);

/* Length of a name that no zero ends, as the precision of its %.*s. */
int tdmi_precision(size_t length_bytes);

/* Return TDM_E_MEMORY from the calling function, or let the lvalue `pointer` point to `count`
 * zeroed items in the arena. */
#define TDMI_ARENA_NEW(arena, pointer, count, err)                                               \
    TDMI_CHECK_MEMORY((pointer) = tdmi_arena_alloc((arena), (size_t)(count), sizeof *(pointer)), \
                      err)
/* Return the same, or let `pointer` point to a copy of the text in the arena. */
#define TDMI_ARENA_COPY(arena, pointer, text, err) \
    TDMI_CHECK_MEMORY((pointer) = tdmi_arena_copy((arena), (text)), err)
/* Return the same, or make room for item number n; what was there is left in the arena. */
#define TDMI_ARENA_ROOM(arena, items, capacity, n, err) \
    TDMI_TRY(tdmi_arena_room((arena), &(items), &(capacity), (n), sizeof *(items), (err)))
tdm_status tdmi_arena_room(tdmi_arena *arena, void *items, size_t *capacity, size_t n,
                           size_t item_bytes, tdm_error *err) TDM_MUST_USE;
