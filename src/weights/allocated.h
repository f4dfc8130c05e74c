/*
 * Allocations from arenas that fail with an error, like TDMI_NEW of base/scope.h.
 */
#ifndef TANDEM_WEIGHTS_ALLOCATED_H
#define TANDEM_WEIGHTS_ALLOCATED_H

#include "base/arena.h"
#include "base/scope.h"

/* Return TDM_E_MEMORY from the calling function unless everything was allocated. */
#define TDMI_NEED_MEMORY(is_allocated, err) \
    TDMI_TRY((is_allocated) ? TDM_OK : TDM_FAIL((err), TDM_E_MEMORY, "out of memory"))

/* Return the same, or let the lvalue `pointer` point to `count` zeroed items in the arena. */
#define TDMI_ARENA_NEW(arena, pointer, count, err) \
    TDMI_NEED_MEMORY((pointer) = tdmi_arena_alloc((arena), (size_t)(count), sizeof *(pointer)), err)

#endif
