/*
 * Rows of Parquet files that hold no picture that can be used. A few are skipped and counted like
 * any bad picture. A file that lost more than half of its rows is damaged as a whole: whoever reads
 * it fails instead of going on with what is left.
 */
#ifndef TANDEM_DATA_LOST_ROWS_H
#define TANDEM_DATA_LOST_ROWS_H

#include "data/source/source.h"

struct tdmi_lost_file {
    int64_t first; /* item of its first row */
    int64_t n_lost;
};

typedef struct tdmi_lost_rows { /* start from a zeroed object */
    uint8_t *is_lost;           /* a bit per item of the source */
    struct tdmi_lost_file *files;
    int64_t n_files, capacity;
} tdmi_lost_rows;

void tdmi_lost_rows_release(tdmi_lost_rows *lost);

/* Counts an item that cannot be used; again, it changes nothing. why: what is wrong with it, or
 * NULL where that was said. TDM_E_INPUT: more than half of the rows of its file are lost. Items of
 * sources other than Parquet and Delta are not counted. */
tdm_status tdmi_lost_rows_add(tdmi_lost_rows *lost, const tdmi_source *source, int64_t item,
                              const char *why, tdm_error *err) TDM_MUST_USE;

#endif
