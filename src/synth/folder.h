/*
 * The folder a synthetic data set is written to: it holds the whole data set or nothing of it.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stdint.h>

struct tdmi_synth_folder { /* start from a zeroed object */
    const char *path;      /* the caller's */
    int n_classes, n_moved;
    int fd, staging_fd; /* valid while is_open, is_staging */
    bool is_open, is_made, is_staging;
};

/* Makes the folder where it is missing, refuses one that holds anything, and lays out the staging
 * area with a folder for each of the first n_classes classes. After a failure only close is due. */
tdm_status tdmi_synth_folder_open(struct tdmi_synth_folder *folder, const char *path, int n_classes,
                                  tdm_error *err) TDM_MUST_USE;
/* Any thread. ending: ".jpg". */
tdm_status tdmi_synth_folder_write(const struct tdmi_synth_folder *folder, int class_index,
                                   int64_t number, const char *ending, const void *bytes,
                                   size_t length_bytes, tdm_error *err) TDM_MUST_USE;
/* All images are written: put them on the disk and give the classes their final names. */
tdm_status tdmi_synth_folder_commit(struct tdmi_synth_folder *folder, tdm_error *err) TDM_MUST_USE;
/* Without a commit that succeeded, takes away everything that open and write made. */
void tdmi_synth_folder_close(struct tdmi_synth_folder *folder);
