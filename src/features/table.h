/*
 * A hash table of the rows of all files of one key, by content and view, that only grows. One
 * thread adds while any number of threads search: a row is visible once its file is complete, and
 * its place stays valid.
 */
#ifndef TANDEM_FEATURES_TABLE_H
#define TANDEM_FEATURES_TABLE_H

#include "features/file.h"
#include <stdatomic.h>

enum { TDMI_STORE_CHUNK_FILES = 256, TDMI_STORE_CHUNKS = 256 };

struct tdmi_store_table { /* start from a zeroed object */
    struct tdmi_store_file **chunks[TDMI_STORE_CHUNKS];
    int n_files;
    _Atomic uint64_t *slots; /* place + 1; 0: free */
    uint64_t n_slots;        /* a power of two, or 0 */
    _Atomic int64_t n_rows, size_bytes;
};

void tdmi_store_table_release(struct tdmi_store_table *table);
/* Make room for n_rows in total. No other thread may search meanwhile. */
tdm_status tdmi_store_table_reserve(struct tdmi_store_table *table, int64_t n_rows,
                                    tdm_error *err) TDM_MUST_USE;
/* Takes ownership of the file, even on failure. Of equal rows the first stays. */
tdm_status tdmi_store_table_add(struct tdmi_store_table *table, struct tdmi_store_file *file,
                                tdm_error *err) TDM_MUST_USE;

/* A place, or -1. */
int64_t tdmi_store_table_find(const struct tdmi_store_table *table, struct tdmi_store_row row);
/* The file of a place, and which row of it; NULL: no place of this table. */
const struct tdmi_store_file *tdmi_store_table_at(const struct tdmi_store_table *table,
                                                  int64_t place, int64_t *row);

#endif
