/* Open addressing over an array that keeps the order in which files were first named. */
#include "data/delta/state.h"

#include "base/hash/hash.h"
#include "base/memory.h"
#include <string.h>

void tdmi_delta_files_release(struct tdmi_delta_files *files)
{
    tdmi_free(files->entries);
    tdmi_free(files->slots);
    *files = (struct tdmi_delta_files){0};
}

static uint64_t hash_of(const struct tdmi_delta_file *file)
{
    const struct tdmi_delta_vector_place *vector = &file->deleted;
    tdmi_xxh64 state;
    tdmi_xxh64_init(&state, 0);
    tdmi_xxh64_add(&state, file->path, strlen(file->path));
    if (vector->kind != 0) {
        tdmi_xxh64_add(&state, &vector->kind, 1);
        tdmi_xxh64_add(&state, vector->text, strlen(vector->text));
        tdmi_xxh64_add(&state, &vector->offset_bytes, sizeof vector->offset_bytes);
    }
    return tdmi_xxh64_result(&state);
}

static bool is_same(const struct tdmi_delta_file *a, const struct tdmi_delta_file *b)
{
    return strcmp(a->path, b->path) == 0 && a->deleted.kind == b->deleted.kind &&
           (a->deleted.kind == 0 || (strcmp(a->deleted.text, b->deleted.text) == 0 &&
                                     a->deleted.offset_bytes == b->deleted.offset_bytes));
}

static bool grow(struct tdmi_delta_files *files)
{
    if (files->n_entries < files->capacity)
        return true;
    int64_t capacity = files->capacity == 0 ? 256 : 2 * files->capacity;
    void *entries = tdmi_realloc(files->entries, (size_t)capacity, sizeof *files->entries);
    if (entries == NULL)
        return false;
    files->entries = entries;
    int64_t n_slots = 2 * capacity, *slots = tdmi_alloc((size_t)n_slots, sizeof *slots);
    if (slots == NULL)
        return false;
    for (int64_t i = 0; i < files->n_entries; i++) {
        uint64_t slot = files->entries[i].hash & (uint64_t)(n_slots - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (uint64_t)(n_slots - 1);
        slots[slot] = i + 1;
    }
    tdmi_free(files->slots);
    files->slots = slots;
    files->n_slots = n_slots;
    files->capacity = capacity;
    return true;
}

bool tdmi_delta_files_put(struct tdmi_delta_files *files, const struct tdmi_delta_entry *entry)
{
    if (!grow(files))
        return false;
    uint64_t hash = hash_of(&entry->file), mask = (uint64_t)(files->n_slots - 1);
    uint64_t slot = hash & mask;
    while (files->slots[slot] != 0) {
        struct tdmi_delta_entry *found = &files->entries[files->slots[slot] - 1];
        if (found->hash == hash && is_same(&found->file, &entry->file)) {
            *found = *entry;
            found->hash = hash;
            return true;
        }
        slot = (slot + 1) & mask;
    }
    files->entries[files->n_entries] = *entry;
    files->entries[files->n_entries].hash = hash;
    files->slots[slot] = ++files->n_entries;
    return true;
}
