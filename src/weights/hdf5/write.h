/*
 * Writing HDF5 files: groups, attributes of text, and arrays of floats, as Keras keeps weights.
 *
 * The oldest form, which every reader knows: superblock 0, symbol tables, headers of version 1, and
 * arrays in one piece. The same calls make the same bytes.
 */
#pragma once

#include "base/scope.h"
#include "tensor/dtype.h"
#include <stddef.h>
#include <stdint.h>

typedef struct tdmi_hdf5_writer tdmi_hdf5_writer;

/* NULL when out of memory; every call below accepts NULL, and the first failure of all calls is
 * reported by finish: check once. */
tdmi_hdf5_writer *tdmi_hdf5_writer_new(void);
void tdmi_hdf5_writer_free(tdmi_hdf5_writer *writer);
TDMI_POINTER_RELEASE(tdmi_hdf5_writer, tdmi_hdf5_writer_free)

/* Paths are "a/b/c"; groups on the way are made. "" is the root. What is given but data is copied.
 */
void tdmi_hdf5_writer_group(tdmi_hdf5_writer *writer, const char *path);
/* F32, F16 or F64, at most TDMI_HDF5_RANK axes; data is lent until the last finish. */
void tdmi_hdf5_writer_add(tdmi_hdf5_writer *writer, const char *path, enum tdmi_dtype dtype,
                          int rank, const int64_t *shape, const void *data);
/* An attribute: one text of any length, of variable length in the file. */
void tdmi_hdf5_writer_note(tdmi_hdf5_writer *writer, const char *path, const char *key,
                           const char *text);
/* An attribute of many texts, of the longest one's length each. What does not fit in a header (64
 * KiB) is written in parts KEY0, KEY1, …, as Keras does. */
void tdmi_hdf5_writer_note_list(tdmi_hdf5_writer *writer, const char *path, const char *key,
                                const char *const *texts, size_t n_texts);

/* Write the file atomically: TDM_E_SYSTEM when the disk refuses, and what was at path stays. May be
 * called again. TDM_E_USAGE: two things of one name, or a member of an array. */
tdm_status tdmi_hdf5_writer_finish(tdmi_hdf5_writer *writer, const char *path,
                                   tdm_error *err) TDM_MUST_USE;
