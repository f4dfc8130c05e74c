/* Shared by the two archive readers and archive.c: a growing list of entries over records. */
#pragma once

#include "io/archive/archive.h"
#include "io/storage/records.h"

struct tdmi_archive {
    struct tdmi_records records;
    const char *path; /* in the arena */
    enum tdmi_archive_form form;
    tdmi_arena arena;
    struct tdmi_archive_entry *entries;
    int64_t n_entries, capacity;
    int64_t *by_name; /* indices of files, sorted by name, then place */
    int64_t n_files;
    int64_t shift; /* zip: bytes before the archive proper (a program that unpacks itself) */
};

/* No entry is larger: it guards against what a small archive may promise. */
#define TDMI_ARCHIVE_LARGEST_ENTRY ((int64_t)1 << 32)

/* Copies the name, without its last slash, which makes a folder of it. */
tdm_status tdmi_archive_add(struct tdmi_archive *archive, const char *name,
                            const struct tdmi_archive_entry *entry, tdm_error *err) TDM_MUST_USE;

tdm_status tdmi_zip_list(struct tdmi_archive *archive, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_zip_read(const struct tdmi_archive *archive, const struct tdmi_archive_entry *entry,
                         tdmi_text *bytes, tdm_error *err) TDM_MUST_USE;
/* Where the stored entry lies in lent bytes; its checksum is compared. */
tdm_status tdmi_zip_view(const struct tdmi_archive *archive, const struct tdmi_archive_entry *entry,
                         const void **at, tdm_error *err) TDM_MUST_USE;
/* How an entry lies there. */
enum { TDMI_ZIP_STORED = 0, TDMI_ZIP_DEFLATED = 8 };
/* Stops after n_most entries. */
tdm_status tdmi_tar_list(struct tdmi_archive *archive, int64_t n_most, tdm_error *err) TDM_MUST_USE;
/* Is this block the head of an entry? */
bool tdmi_tar_is_head(const uint8_t block[512]);
