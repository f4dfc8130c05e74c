/*
 * Files of named tensors, in the .safetensors form: 8 bytes length of the header (little-endian), a
 * JSON header, then the tensors without a gap.
 *
 * The writer makes the same bytes from the same calls, starts the tensors at a multiple of 64 bytes
 * (spaces end the header) and stores a checksum in the metadata: "tandem.checksum" is the XXH64, in
 * 16 hex digits, of the whole file with those digits taken as '0'. Files appear whole or not at
 * all.
 *
 * The reader takes files of any program and believes nothing: every offset, size and name is
 * checked before memory is allocated, and the checksum is verified where there is one. In memory
 * each tensor starts at a multiple of 64 bytes, whatever its place in the file, unless the memory
 * is lent.
 */
#pragma once

#include "base/scope.h"
#include "tensor/dtype.h"
#include <stddef.h>
#include <stdint.h>

enum { TDMI_SAFETENSORS_RANK = 8 };

/* ---- writing ---------------------------------------------------------------------------- */

typedef struct tdmi_safetensors_writer tdmi_safetensors_writer;

/* NULL when out of memory; every call below accepts NULL, and the first failure of new, add or note
 * is reported by finish: check once. */
tdmi_safetensors_writer *tdmi_safetensors_writer_new(void);
void tdmi_safetensors_writer_free(tdmi_safetensors_writer *writer);
TDMI_POINTER_RELEASE(tdmi_safetensors_writer, tdmi_safetensors_writer_free)

/* Add a tensor. name and shape are copied; data (rank 0 is one element, a 0 in shape is none) is
 * lent until the last finish. Names are unique UTF-8 other than "__metadata__". In the file wider
 * elements come first, so that all are aligned to their size; equals keep the order of the calls.
 */
void tdmi_safetensors_add(tdmi_safetensors_writer *writer, const char *name, enum tdmi_dtype dtype,
                          int rank, const int64_t *shape, const void *data);

/* Add a pair to the metadata; both are copied, written in the order of the calls. Keys are unique
 * and are not "tandem.checksum". */
void tdmi_safetensors_note(tdmi_safetensors_writer *writer, const char *key, const char *value);

/* Write the file atomically: TDM_E_SYSTEM when the disk refuses, and what was at path stays. May be
 * called again (the same tensors under a second path, or after their data changed). */
tdm_status tdmi_safetensors_finish(tdmi_safetensors_writer *writer, const char *path,
                                   tdm_error *err) TDM_MUST_USE;
/* The same in a folder that must be there (base/file/file.h). */
tdm_status tdmi_safetensors_finish_in_folder(tdmi_safetensors_writer *writer, const char *path,
                                             tdm_error *err) TDM_MUST_USE;
/* The same bytes into memory of tdmi_alloc, which is the caller's to free. */
tdm_status tdmi_safetensors_finish_bytes(tdmi_safetensors_writer *writer, void **bytes,
                                         size_t *length_bytes, tdm_error *err) TDM_MUST_USE;

/* ---- reading ---------------------------------------------------------------------------- */

typedef struct tdmi_safetensors tdmi_safetensors;

struct tdmi_safetensors_tensor { /* everything lives as long as its file is open */
    const char *name;
    enum tdmi_dtype dtype;
    int rank;
    int64_t shape[TDMI_SAFETENSORS_RANK]; /* 0 past rank */
    int64_t n_values;                     /* product of shape */
    size_t bytes;
    const void *data; /* aligned to 64 bytes, if not lent; valid, but not to be read, when bytes
                         is 0 */
};

/* Reads the whole file. TDM_E_INPUT says the path, what is wrong, and at which byte or tensor. */
tdm_status tdmi_safetensors_open(const char *path, tdmi_safetensors **file,
                                 tdm_error *err) TDM_MUST_USE;
/* The same from memory, which is copied; name is what messages call it. */
tdm_status tdmi_safetensors_open_bytes(const void *bytes, size_t length_bytes, const char *name,
                                       tdmi_safetensors **file, tdm_error *err) TDM_MUST_USE;
/* The same without a copy: the bytes are lent until close, and the tensors' data are where they are
 * in them, aligned to nothing. */
tdm_status tdmi_safetensors_lend(const void *bytes, size_t length_bytes, const char *name,
                                 tdmi_safetensors **file, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_safetensors_close(tdmi_safetensors *file);
TDMI_POINTER_RELEASE(tdmi_safetensors, tdmi_safetensors_close)

/* In the order of the file's bytes. */
size_t tdmi_safetensors_count(const tdmi_safetensors *file);
const struct tdmi_safetensors_tensor *tdmi_safetensors_at(const tdmi_safetensors *file,
                                                          size_t index);
/* NULL when there is none of that name. O(log n). */
const struct tdmi_safetensors_tensor *tdmi_safetensors_find(const tdmi_safetensors *file,
                                                            const char *name);
/* The data of a tensor that must be there with this type and shape; TDM_E_INPUT otherwise, saying
 * what the file has and what is needed. */
tdm_status tdmi_safetensors_need(const tdmi_safetensors *file, const char *name,
                                 enum tdmi_dtype dtype, int rank, const int64_t *shape,
                                 const void **data, tdm_error *err) TDM_MUST_USE;

/* NULL when the metadata lack the key. */
const char *tdmi_safetensors_metadata(const tdmi_safetensors *file, const char *key);
size_t tdmi_safetensors_metadata_count(const tdmi_safetensors *file);
const char *tdmi_safetensors_metadata_key(const tdmi_safetensors *file, size_t index);
