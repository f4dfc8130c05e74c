/*
 * An arena: many small allocations with one lifetime, freed together.
 */
#pragma once

#include "tandem/api.h"
#include <stddef.h>

struct tdmi_arena_block;

typedef struct tdmi_arena {
    struct tdmi_arena_block *blocks; /* newest first */
    size_t block_bytes;
} tdmi_arena;

/* block_bytes 0 takes 64 KiB; larger single requests get a block of their own. */
void tdmi_arena_init(tdmi_arena *arena, size_t block_bytes);
void tdmi_arena_release(tdmi_arena *arena);

/* Zeroed, aligned to 16 bytes; NULL when out of memory. */
void *tdmi_arena_alloc(tdmi_arena *arena, size_t count, size_t item_bytes);
char *tdmi_arena_copy(tdmi_arena *arena, const char *text);
char *tdmi_arena_printf(tdmi_arena *arena, const char *format, ...) TDM_PRINTF(2, 3);
