/*
 * Open addressing with steps of one. A place is the number of a file in the upper half and of a row
 * in the lower, so a slot is 8 bytes and the row's key is read from the file's index.
 */
#include "features/inside.h"

static struct tdmi_store_file *file_at(const struct tdmi_store_table *table, int64_t place)
{
    const uint64_t number = (uint64_t)place >> 32;
    return table->chunks[number / TDMI_STORE_CHUNK_FILES][number % TDMI_STORE_CHUNK_FILES];
}

static const struct tdmi_store_entry *entry_at(const struct tdmi_store_table *table, int64_t place)
{
    return &file_at(table, place)->entries[place & 0xffffffff];
}

/* Use the upper bits, which are the well mixed ones of a product. */
static uint64_t first_slot(uint64_t content, uint32_t view, uint64_t n_slots)
{
    const uint64_t mixed = (content ^ (uint64_t)view * 0xc2b2ae3d27d4eb4fu) * 0x9e3779b185ebca87u;
    return (mixed ^ mixed >> 32) & (n_slots - 1);
}

/* The slot of the row, or the free slot where it belongs. At least one slot is always free. */
static uint64_t slot_of(const struct tdmi_store_table *table, uint64_t content, uint32_t view,
                        int64_t *place)
{
    uint64_t slot = first_slot(content, view, table->n_slots);
    for (;; slot = (slot + 1) & (table->n_slots - 1)) {
        *place = (int64_t)atomic_load_explicit(&table->slots[slot], memory_order_acquire) - 1;
        if (*place < 0)
            return slot;
        const struct tdmi_store_entry *entry = entry_at(table, *place);
        if (entry->content == content && entry->view == view)
            return slot;
    }
}

void tdmi_store_table_release(struct tdmi_store_table *table)
{
    for (int i = 0; i < table->n_files; i++)
        tdmi_store_file_close(file_at(table, (int64_t)((uint64_t)i << 32)));
    for (int i = 0; i < TDMI_STORE_CHUNKS; i++)
        tdmi_free(table->chunks[i]);
    tdmi_free_large((void *)table->slots);
    *table = (struct tdmi_store_table){.n_files = 0};
}

tdm_status tdmi_store_table_reserve(struct tdmi_store_table *table, int64_t n_rows, tdm_error *err)
{
    uint64_t n_slots = 64;
    while (n_slots < (uint64_t)n_rows + (uint64_t)n_rows / 2)
        n_slots *= 2;
    if (n_slots <= table->n_slots)
        return TDM_OK;
    _Atomic uint64_t *slots = tdmi_alloc_large((size_t)n_slots * sizeof *slots);
    if (slots == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a table of %lld rows", (long long)n_rows);
    _Atomic uint64_t *before = table->slots;
    const uint64_t n_before = table->n_slots;
    table->slots = slots;
    table->n_slots = n_slots;
    for (uint64_t i = 0; i < n_before; i++) {
        const uint64_t kept = atomic_load_explicit(&before[i], memory_order_relaxed);
        int64_t place = -1;
        if (kept == 0)
            continue;
        const struct tdmi_store_entry *entry = entry_at(table, (int64_t)kept - 1);
        const uint64_t slot = slot_of(table, entry->content, entry->view, &place);
        atomic_store_explicit(&slots[slot], kept, memory_order_relaxed);
    }
    tdmi_free_large((void *)before);
    return TDM_OK;
}

static tdm_status keep_file(struct tdmi_store_table *table, struct tdmi_store_file *file,
                            tdm_error *err)
{
    if ((uint64_t)(table->n_rows + file->n_rows) >= table->n_slots)
        return TDM_FAIL(err, TDM_E_BUG, "%s has %lld rows, and room was reserved for fewer",
                        file->path, (long long)file->n_rows);
    const int chunk = table->n_files / TDMI_STORE_CHUNK_FILES;
    if (chunk == TDMI_STORE_CHUNKS)
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "%s is one file of rows too many: at most %d are read at once", file->path,
                        TDMI_STORE_CHUNKS * TDMI_STORE_CHUNK_FILES);
    if (table->chunks[chunk] == NULL)
        TDMI_TRY(TDMI_NEW(table->chunks[chunk], TDMI_STORE_CHUNK_FILES, err));
    table->chunks[chunk][table->n_files++ % TDMI_STORE_CHUNK_FILES] = file;
    return TDM_OK;
}

tdm_status tdmi_store_table_add(struct tdmi_store_table *table, struct tdmi_store_file *file,
                                tdm_error *err)
{
    const int64_t first = (int64_t)table->n_files << 32;
    const tdm_status status = keep_file(table, file, err);
    if (status != TDM_OK) {
        tdmi_store_file_close(file);
        return status;
    }
    int64_t n_new = 0;
    for (int64_t i = 0; i < file->n_rows; i++) {
        int64_t place = -1;
        const struct tdmi_store_entry *entry = &file->entries[i];
        const uint64_t slot = slot_of(table, entry->content, entry->view, &place);
        if (place >= 0)
            continue;
        atomic_store_explicit(&table->slots[slot], (uint64_t)(first + i) + 1, memory_order_release);
        n_new++;
    }
    atomic_fetch_add(&table->n_rows, n_new);
    atomic_fetch_add(&table->size_bytes, file->size_bytes);
    return TDM_OK;
}

int64_t tdmi_store_table_find(const struct tdmi_store_table *table, struct tdmi_store_row row)
{
    int64_t place = -1;
    if (table->n_slots > 0)
        (void)slot_of(table, row.content, row.view, &place);
    return place;
}

const struct tdmi_store_file *tdmi_store_table_at(const struct tdmi_store_table *table,
                                                  int64_t place, int64_t *row)
{
    const uint64_t number = (uint64_t)place >> 32;
    if (place < 0 || number >= TDMI_STORE_CHUNKS * TDMI_STORE_CHUNK_FILES ||
        table->chunks[number / TDMI_STORE_CHUNK_FILES] == NULL)
        return NULL;
    const struct tdmi_store_file *file = file_at(table, place);
    *row = place & 0xffffffff;
    return file != NULL && *row < file->n_rows ? file : NULL;
}
