/*
 * The arena: a chain of blocks, cut from the front. The newest block is the one being cut; a
 * request that is large beside a block gets one of its own, filed second so that cutting continues.
 */
#include "base/arena.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { alignment = 16, default_block_bytes = 64 * 1024 };

struct tdmi_arena_block {
    struct tdmi_arena_block *next;
    size_t used, capacity;
    _Alignas(alignment) unsigned char bytes[];
};

void tdmi_arena_init(tdmi_arena *arena, size_t block_bytes)
{
    arena->blocks = NULL;
    arena->block_bytes = block_bytes;
}

void tdmi_arena_release(tdmi_arena *arena)
{
    if (!arena)
        return;
    while (arena->blocks) {
        struct tdmi_arena_block *next = arena->blocks->next;
        tdmi_free(arena->blocks);
        arena->blocks = next;
    }
}

static struct tdmi_arena_block *new_block(size_t capacity)
{
    struct tdmi_arena_block *block = NULL;
    if (capacity <= SIZE_MAX - sizeof *block)
        block = tdmi_alloc(1, sizeof *block + capacity);
    if (block)
        block->capacity = capacity;
    return block;
}

void *tdmi_arena_alloc(tdmi_arena *arena, size_t count, size_t item_bytes)
{
    if (item_bytes && count > (SIZE_MAX - alignment) / item_bytes)
        return NULL;
    size_t bytes = (count * item_bytes + alignment - 1) / alignment * alignment;
    size_t block_bytes = arena->block_bytes ? arena->block_bytes : default_block_bytes;
    struct tdmi_arena_block *block = arena->blocks;
    if (!block || block->capacity - block->used < bytes) {
        bool is_large = bytes > block_bytes / 4;
        block = new_block(is_large ? bytes : block_bytes);
        if (!block)
            return NULL;
        if (is_large && arena->blocks) {
            block->next = arena->blocks->next;
            arena->blocks->next = block;
        } else {
            block->next = arena->blocks;
            arena->blocks = block;
        }
    }
    void *item = block->bytes + block->used;
    block->used += bytes;
    return item;
}

char *tdmi_arena_copy(tdmi_arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = tdmi_arena_alloc(arena, bytes, 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *tdmi_arena_printf(tdmi_arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : tdmi_arena_alloc(arena, (size_t)length + 1, 1);
    if (text) {
        va_start(arguments, format);
        vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}
