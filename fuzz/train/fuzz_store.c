/*
 * Files of rows: whatever bytes stand in one, opening ends with an index that can be used or with a
 * sentence, and every row is read or refused. The first byte's lowest bit asks for a head that is
 * ours (magic, version, key, and the checksum of what is there), so that what lies behind the
 * checksum is reached too; the next bit for rows whose checks are right.
 */
#include "fuzz_files.h"

#include "features/inside.h"

enum { MOST_BYTES = 1 << 16 };

static const struct tdmi_store_form form = {.key = {1, 2, 3}, .width = 3};

static size_t stored_bytes(const struct tdmi_store_head *head)
{
    return head->precision == TDMI_STORE_CODE_F16 ? 2 : 4;
}

/* Only where sizes fit: the others are to be refused as they are. */
static void mend(uint8_t *bytes, size_t length_bytes, bool has_checks)
{
    struct tdmi_store_head head;
    if (length_bytes < sizeof head)
        return;
    memcpy(&head, bytes, sizeof head);
    memcpy(head.magic, tdmi_store_magic, sizeof head.magic);
    memcpy(head.key, form.key, sizeof head.key);
    head.format_version = TDMI_STORE_FORMAT_VERSION;
    head.width = (uint32_t)form.width;
    const size_t row_bytes = stored_bytes(&head) * (size_t)form.width;
    const size_t n = (length_bytes - sizeof head) / (row_bytes + sizeof(struct tdmi_store_entry));
    const size_t index_at = sizeof head + n * row_bytes;
    if (head.n_rows == n && n > 0 &&
        index_at + n * sizeof(struct tdmi_store_entry) == length_bytes) {
        struct tdmi_store_entry *entries = malloc(n * sizeof *entries);
        if (entries == NULL)
            abort();
        memcpy(entries, bytes + index_at, n * sizeof *entries);
        for (size_t i = 0; has_checks && i < n; i++)
            entries[i].check = tdmi_store_check(entries[i].content, entries[i].view,
                                                bytes + sizeof head + i * row_bytes, row_bytes);
        memcpy(bytes + index_at, entries, n * sizeof *entries);
        head.checksum = tdmi_store_checksum(head, entries);
        free(entries);
    }
    memcpy(bytes, &head, sizeof head);
}

static void use(struct tdmi_store_file *file, bool has_checks)
{
    struct tdmi_store_table table = {.n_files = 0};
    tdm_error err = {0};
    const int64_t n_rows = file->n_rows;
    if (file->width != form.width || n_rows < 1 || n_rows > MOST_BYTES)
        abort();
    for (int64_t row = 0; row < n_rows; row++) {
        float values[3];
        tdm_status status = tdmi_store_file_read(file, row, values, &err);
        if (status != TDM_OK && (status != TDM_E_INPUT || has_checks))
            abort();
    }
    if (tdmi_store_table_reserve(&table, n_rows, &err) != TDM_OK ||
        tdmi_store_table_add(&table, file, &err) != TDM_OK)
        abort();
    for (int64_t row = 0; row < n_rows; row++) {
        const struct tdmi_store_entry *entry = &file->entries[row];
        int64_t found = -1;
        const int64_t place =
            tdmi_store_table_find(&table, (struct tdmi_store_row){entry->content, entry->view});
        if (tdmi_store_table_at(&table, place, &found) != file || found > row ||
            file->entries[found].content != entry->content ||
            file->entries[found].view != entry->view)
            abort();
    }
    if (table.n_rows < 1 || table.n_rows > n_rows)
        abort();
    tdmi_store_table_release(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    if (length_bytes < 1 || length_bytes > MOST_BYTES)
        return 0;
    const bool is_mended = bytes[0] & 1, has_checks = is_mended && (bytes[0] & 2);
    char folder[64], path[80];
    uint8_t *content = malloc(length_bytes);
    if (content == NULL)
        abort();
    memcpy(content, bytes + 1, length_bytes - 1);
    if (is_mended)
        mend(content, length_bytes - 1, has_checks);
    fuzz_folder(folder);
    fuzz_file(folder, "x.rows", content, length_bytes - 1);
    free(content);

    struct tdmi_store_file *file = NULL;
    tdm_error err = {0};
    snprintf(path, sizeof path, "%s/x.rows", folder);
    tdm_status status = tdmi_store_file_open(path, &form, &file, &err);
    if (status == TDM_OK)
        use(file, has_checks);
    else if (status != TDM_E_INPUT || err.n_frames == 0 || file != NULL)
        abort();
    fuzz_remove(folder, "x.rows");
    fuzz_remove_folder(folder);
    return 0;
}
