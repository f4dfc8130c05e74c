/*
 * Rows of Parquet files without a usable image. A few are skipped and counted like any bad image. A
 * file that lost more than half of its rows is damaged as a whole: reading it fails.
 */
#ifndef TANDEM_DATA_SOURCE_LOST_ROWS_H
#define TANDEM_DATA_SOURCE_LOST_ROWS_H

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

/* Count an unusable item, once however often it is reported. why: the reason, or NULL where it was
 * reported already. TDM_E_INPUT: more than half of the rows of its file are lost. Items of sources
 * other than Parquet and Delta are not counted. */
tdm_status tdmi_lost_rows_add(tdmi_lost_rows *lost, const tdmi_source *source, int64_t item,
                              const char *why, tdm_error *err) TDM_MUST_USE;

#endif
