/*
 * One file of feature rows: written once from front to back, then only read.
 * docs/reference/files.md has its format. Reading uses pread, so a file that is truncated meanwhile
 * is an error, not a signal.
 */
#ifndef TANDEM_FEATURES_FILE_H
#define TANDEM_FEATURES_FILE_H

#include "features/store.h"
#include <stdbool.h>

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

#endif
