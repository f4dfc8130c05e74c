/*
 * HDF5 files, read from memory: groups, attributes and arrays of numbers or text.
 *
 * The part of HDF5 that Keras and h5py write. Files come from strangers: every place is checked
 * against the file, the work of reading is bounded by its size, and what is not read is refused by
 * its name. Nothing is read before it is requested.
 */
#pragma once

#include "base/scope.h"
#include "tandem/error.h"
#include "tensor/dtype.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TDMI_HDF5_RANK = 8 };

typedef struct tdmi_hdf5 tdmi_hdf5;               /* a file */
typedef struct tdmi_hdf5_object tdmi_hdf5_object; /* a group or a dataset in it */

/* Bytes of the file, not terminated. */
struct tdmi_hdf5_text {
    const char *bytes;
    size_t length_bytes;
};

struct tdmi_hdf5_link {
    struct tdmi_hdf5_text name;
    uint64_t address;
    bool is_hard; /* else it leads to a name, here or in another file, and is not followed */
};

enum tdmi_hdf5_kind {
    TDMI_HDF5_NUMBERS,       /* of dtype */
    TDMI_HDF5_OPAQUE,        /* item_bytes without a meaning each */
    TDMI_HDF5_FIXED_TEXT,    /* item_bytes each, padded */
    TDMI_HDF5_VARIABLE_TEXT, /* elsewhere in the file: tdmi_hdf5_text_at */
    TDMI_HDF5_OTHER          /* a type that is not read; type_name says which */
};

/* Values of an attribute or a dataset: little-endian, the last axis fastest, unaligned. */
struct tdmi_hdf5_values {
    enum tdmi_hdf5_kind kind;
    enum tdmi_dtype dtype;
    const char *type_name; /* "compound" */
    char padding;          /* of fixed text: 0 or ' ' */
    bool is_big_endian;    /* as stored; what the calls below give out never is */
    size_t item_bytes;
    int rank;
    int64_t shape[TDMI_HDF5_RANK];
    uint64_t n_values;
    const uint8_t *data; /* n_values * item_bytes */
};

/* By the signature, which may stand behind a user block of 512, 1024, 2048, … bytes. */
bool tdmi_hdf5_is(const uint8_t *bytes, size_t n_bytes);

/* bytes are lent until close; name is what messages call the file. Without checks, damaged
 * checksums are passed over: for fuzzing what lies behind them. Everything that calls return
 * lives until close. Not for two threads at once. */
tdm_status tdmi_hdf5_open(const uint8_t *bytes, size_t n_bytes, const char *name, bool has_checks,
                          tdmi_hdf5 **file, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_hdf5_close(tdmi_hdf5 *file);
TDMI_POINTER_RELEASE(tdmi_hdf5, tdmi_hdf5_close)

tdmi_hdf5_object *tdmi_hdf5_root(const tdmi_hdf5 *file);
bool tdmi_hdf5_is_group(const tdmi_hdf5_object *object);
bool tdmi_hdf5_is_dataset(const tdmi_hdf5_object *object);
/* A mark of the caller's for walks: true when it was set before. */
bool tdmi_hdf5_mark(tdmi_hdf5_object *object);

/* Members of a group, sorted by name with runs of digits as numbers: "9" before "10". */
tdm_status tdmi_hdf5_links(tdmi_hdf5 *file, tdmi_hdf5_object *group,
                           const struct tdmi_hdf5_link **links, size_t *n_links,
                           tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_hdf5_follow(tdmi_hdf5 *file, const struct tdmi_hdf5_link *link,
                            tdmi_hdf5_object **object, tdm_error *err) TDM_MUST_USE;
/* Along "a/b/c" from a group; *object is NULL when there is no such member. */
tdm_status tdmi_hdf5_find(tdmi_hdf5 *file, tdmi_hdf5_object *group, struct tdmi_hdf5_text path,
                          tdmi_hdf5_object **object, tdm_error *err) TDM_MUST_USE;

/* *is_there says whether the object has an attribute of that name. */
tdm_status tdmi_hdf5_attribute(tdmi_hdf5 *file, const tdmi_hdf5_object *object, const char *name,
                               struct tdmi_hdf5_values *values, bool *is_there,
                               tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_hdf5_dataset(tdmi_hdf5 *file, const tdmi_hdf5_object *object,
                             struct tdmi_hdf5_values *values, tdm_error *err) TDM_MUST_USE;
/* The text at index < n_values, without its padding; TDM_E_INPUT when values are no text. */
tdm_status tdmi_hdf5_text_at(tdmi_hdf5 *file, const struct tdmi_hdf5_values *values, uint64_t index,
                             struct tdmi_hdf5_text *text, tdm_error *err) TDM_MUST_USE;
