/* Archives: whatever bytes stand in the file, opening ends with a list or a sentence, and reading
 * any entry with bytes of the promised size or a sentence. The sources over them must hold too. */
#pragma once

#include "io/archive/archive.h"
#include "fuzz_files.h"

/* As fuzz_source, but pictures in archives may be damaged one by one. */
static inline void fuzz_packed_source(const char *path)
{
    tdmi_source *source = NULL;
    tdm_error err = {0};
    tdmi_text bytes = {0};
    if (tdmi_source_open(path, NULL, &source, &err) != TDM_OK) {
        if (err.n_frames == 0)
            abort();
        return;
    }
    for (int64_t i = 0; i < tdmi_source_items(source) && i < 100; i++) {
        struct tdmi_item item = tdmi_source_item(source, i);
        tdm_error_clear(&err);
        if (item.label < -1 || item.label >= tdmi_source_classes(source) ||
            (tdmi_source_read(source, i, &bytes, &err) != TDM_OK && err.n_frames == 0))
            abort();
    }
    tdmi_text_release(&bytes);
    tdmi_source_close(source);
}

/* Borrowed bytes: the same entries as of a file; entries read in place lie inside. */
static inline void fuzz_lent(const uint8_t *bytes, size_t length_bytes)
{
    tdmi_archive *archive = NULL;
    tdm_error err = {0};
    tdmi_text text = {0};
    if (tdmi_archive_open_bytes(bytes, length_bytes, "x.zip", &archive, &err) != TDM_OK &&
        err.n_frames == 0)
        abort();
    for (int64_t i = 0; archive != NULL && i < tdmi_archive_entries(archive) && i < 100; i++) {
        const void *at = NULL;
        tdm_error_clear(&err);
        tdm_status status = tdmi_archive_view(archive, i, 1 << 24, &text, &at, &err);
        if (status != TDM_OK
                ? err.n_frames == 0
                : at != (const void *)tdmi_text_string(&text) &&
                      ((const uint8_t *)at < bytes ||
                       (const uint8_t *)at + tdmi_archive_entry(archive, i)->size_bytes >
                           bytes + length_bytes))
            abort();
    }
    tdmi_text_release(&text);
    tdmi_archive_close(archive);
}

static inline void fuzz_archive(const char *name, const uint8_t *bytes, size_t length_bytes)
{
    char folder[64], path[256];
    tdmi_archive *archive = NULL;
    tdm_error err = {0};
    tdmi_text text = {0};
    fuzz_folder(folder);
    fuzz_file(folder, name, bytes, length_bytes);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (tdmi_archive_open(path, &archive, &err) != TDM_OK && err.n_frames == 0)
        abort();
    for (int64_t i = 0; archive != NULL && i < tdmi_archive_entries(archive) && i < 100; i++) {
        const struct tdmi_archive_entry *entry = tdmi_archive_entry(archive, i);
        tdm_error_clear(&err);
        if (tdmi_archive_read(archive, i, 1 << 24, &text, &err) == TDM_OK
                ? (int64_t)text.length_bytes != entry->size_bytes
                : err.n_frames == 0)
            abort();
        int64_t found = tdmi_archive_find(archive, entry->name);
        if (!entry->is_folder && found < i)
            abort();
    }
    tdmi_text_release(&text);
    tdmi_archive_close(archive);
    fuzz_lent(bytes, length_bytes);
    fuzz_packed_source(path);
    fuzz_remove(folder, name);
    fuzz_remove_folder(folder);
}
