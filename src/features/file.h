/*
 * One file of feature rows: written once from front to back, then only read.
 * docs/reference/files.md has its format. Reading uses pread, so a file that is truncated meanwhile
 * is an error, not a signal.
 */
#pragma once

#include "base/hash/hash.h"
#include "features/store.h"

#define TDMI_STORE_ENDING ".rows"

/* As on disk: one entry for each row, in their order. */
struct tdmi_store_entry {
    uint64_t content;
    uint32_t view;
    uint32_t check; /* of the row's bytes and its content and view */
};

/* Common to all files of a key. */
struct tdmi_store_form {
    uint8_t key[32]; /* SHA-256 of its text */
    int width;
};

struct tdmi_store_file {
    char *path;
    int descriptor;
    enum tdmi_dtype precision; /* F32 or F16 */
    int width;
    int64_t n_rows, size_bytes;
    struct tdmi_store_entry *entries;
};

/* Verifies head, index and size; rows are verified when they are read. */
tdm_status tdmi_store_file_open(const char *path, const struct tdmi_store_form *form,
                                struct tdmi_store_file **file, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_store_file_close(struct tdmi_store_file *file);
TDMI_POINTER_RELEASE(struct tdmi_store_file, tdmi_store_file_close)
/* width floats, whatever the precision. */
tdm_status tdmi_store_file_read(const struct tdmi_store_file *file, int64_t row, float *values,
                                tdm_error *err) TDM_MUST_USE;
/* Read the stored bytes, tdmi_store_row_bytes of them. */
tdm_status tdmi_store_file_read_stored(const struct tdmi_store_file *file, int64_t row,
                                       void *stored, tdm_error *err) TDM_MUST_USE;

size_t tdmi_store_row_bytes(int width, enum tdmi_dtype precision);
/* Size of a file with so many rows. */
int64_t tdmi_store_file_bytes(int width, enum tdmi_dtype precision, int64_t n_rows);
bool tdmi_store_is_rows_name(const char *name);

/* ---- layout ---------------------------------------------------------------------------------- */

/* A head of HEAD_BYTES, the rows without gaps, one entry for each row. All numbers are
 * little-endian; big-endian machines are refused, so that rows and index need no conversion. */
enum {
    TDMI_STORE_FORMAT_VERSION = 1,
    TDMI_STORE_HEAD_BYTES = 128,
    TDMI_STORE_MAX_WIDTH = 1 << 24,
    TDMI_STORE_CODE_F32 = 1,
    TDMI_STORE_CODE_F16 = 2
};

struct tdmi_store_head {
    char magic[8];
    uint32_t format_version, width, precision, zero;
    uint64_t n_rows;
    uint8_t key[32];
    uint64_t checksum; /* XXH64 of this head, with 0 here, and the entries */
    uint8_t zeros[56];
};
_Static_assert(sizeof(struct tdmi_store_head) == TDMI_STORE_HEAD_BYTES, "a head has no padding");
_Static_assert(sizeof(struct tdmi_store_entry) == 16, "an entry has no padding");

static const char tdmi_store_magic[8] = {'T', 'D', 'M', 'R', 'O', 'W', 'S', '\n'};

static inline uint64_t tdmi_store_checksum(struct tdmi_store_head head,
                                           const struct tdmi_store_entry *entries)
{
    tdmi_xxh64 state;
    head.checksum = 0;
    tdmi_xxh64_init(&state, 0);
    tdmi_xxh64_add(&state, &head, sizeof head);
    tdmi_xxh64_add(&state, entries, (size_t)head.n_rows * sizeof *entries);
    return tdmi_xxh64_result(&state);
}

/* Seeded with the row's key, so that a row stored in place of another is detected too. */
static inline uint32_t tdmi_store_check(uint64_t content, uint32_t view, const void *stored,
                                        size_t stored_bytes)
{
    const uint64_t seed = content ^ (uint64_t)view << 32 ^ view;
    return (uint32_t)tdmi_xxh64_of(stored, stored_bytes, seed);
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct tdmi_store_writer tdmi_store_writer;

/* A new file in folder, under a temporary name. */
tdm_status tdmi_store_writer_new(const char *folder, const struct tdmi_store_form *form,
                                 enum tdmi_dtype precision, tdmi_store_writer **writer,
                                 tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_store_writer_add(tdmi_store_writer *writer, struct tdmi_store_row row,
                                 const float *values, tdm_error *err) TDM_MUST_USE;
/* Add a row as stored in another file of the same form and precision. */
tdm_status tdmi_store_writer_add_stored(tdmi_store_writer *writer, struct tdmi_store_entry entry,
                                        const void *stored, tdm_error *err) TDM_MUST_USE;
int64_t tdmi_store_writer_rows(const tdmi_store_writer *writer);
/* Make the file durable under a name derived from its content. At least one row. Frees the writer
 * even on failure. *path is of tdmi_alloc. */
tdm_status tdmi_store_writer_commit(tdmi_store_writer *writer, char **path,
                                    tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_store_writer_abort(tdmi_store_writer *writer);
TDMI_POINTER_RELEASE(tdmi_store_writer, tdmi_store_writer_abort)
