/*
 * Files of records at known offsets, read by any number of threads: each read names its place, so
 * nobody shares a file position. A gzip-compressed file has no offsets, so it is decompressed once,
 * when opened, and kept in memory.
 */
#pragma once

#include "io/storage/storage.h"

/* The most that is decompressed in memory. */
#define TDMI_RECORDS_GZIP_LIMIT ((int64_t)1 << 30)

struct tdmi_records { /* start from a zeroed object */
    tdmi_storage_file *file;
    tdmi_text memory;    /* what a compressed file held */
    const uint8_t *lent; /* or bytes of the caller's */
    bool is_in_memory;
    bool is_cut;      /* only the beginning was requested, and there is more */
    const char *path; /* lent */
    int64_t size_bytes;
};

/* path must outlive the object. TDM_E_INPUT: no regular file, not to be opened, or compressed and
 * damaged or too large. */
tdm_status tdmi_records_open(struct tdmi_records *records, const char *path,
                             tdm_error *err) TDM_MUST_USE;
/* For probes: a compressed file is decompressed no further than limit_bytes. */
tdm_status tdmi_records_open_beginning(struct tdmi_records *records, const char *path,
                                       int64_t limit_bytes, tdm_error *err) TDM_MUST_USE;
/* The same over bytes in memory, which must outlive the object like path; nothing is decompressed.
 */
void tdmi_records_lend(struct tdmi_records *records, const void *bytes, size_t length_bytes,
                       const char *path);
void tdmi_records_close(struct tdmi_records *records);

/* Exactly length_bytes from offset, or TDM_E_INPUT. Any thread. */
tdm_status tdmi_records_read(const struct tdmi_records *records, int64_t offset, void *bytes,
                             size_t length_bytes, tdm_error *err) TDM_MUST_USE;

/* Replaces what text held by the head of a binary PGM (1 channel) or PPM (3) file. Sources of bare
 * pixels put it before them, and every other room sees an ordinary image. */
void tdmi_records_picture_head(tdmi_text *text, int channels, int64_t width, int64_t height);
