/*
 * Files of records at known offsets, read by any number of threads: each read names its place, so
 * nobody shares a file position.
 */
#ifndef TANDEM_DATA_RECORDS_H
#define TANDEM_DATA_RECORDS_H

#include "base/text.h"
#include "tandem/error.h"
#include <stddef.h>
#include <stdint.h>

struct tdmi_records { /* start from a zeroed object */
    int fd;           /* one more than the descriptor, so that zero is closed */
    const char *path; /* lent */
    int64_t size_bytes;
};

/* path must outlive the object. TDM_E_INPUT: no regular file, or not to be opened. */
tdm_status tdmi_records_open(struct tdmi_records *records, const char *path,
                             tdm_error *err) TDM_MUST_USE;
void tdmi_records_close(struct tdmi_records *records);

/* Exactly length_bytes from offset, or TDM_E_INPUT. Any thread. */
tdm_status tdmi_records_read(const struct tdmi_records *records, int64_t offset, void *bytes,
                             size_t length_bytes, tdm_error *err) TDM_MUST_USE;

/* Replaces what text held by the head of a binary PGM (1 channel) or PPM (3) file. Sources of bare
 * pixels put it before them, and every other room sees an ordinary picture. */
void tdmi_records_picture_head(tdmi_text *text, int channels, int64_t width, int64_t height);

#endif
