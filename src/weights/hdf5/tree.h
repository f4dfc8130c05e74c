/*
 * The contents of a new HDF5 file, and its structure as bytes. Seen by the writer only.
 */
#pragma once

#include "base/text/text.h"
#include "weights/hdf5/internal.h"

/* An attribute's message body is kept below this, as Keras does: headers hold 64 KiB. */
enum { TDMI_HDF5_LIST_BYTES_MAX = 64512 };

struct tdmi_hdf5_note {
    const char *key;
    const char *text;  /* one text; NULL: a list */
    const char *items; /* n_items of item_bytes each, padded with zeros */
    size_t item_bytes, n_items;
    struct tdmi_hdf5_note *next;
};

struct tdmi_hdf5_node {
    const char *name;
    bool is_array;
    enum tdmi_dtype dtype;
    int rank;
    int64_t shape[TDMI_HDF5_RANK];
    size_t n_bytes;
    const void *data;
    struct tdmi_hdf5_note *notes;
    struct tdmi_hdf5_node **members;
    size_t n_members, capacity;
    uint64_t address;     /* of its header, once written */
    uint64_t tree, names; /* addresses of a group's parts */
    size_t address_at;    /* of an array: where in the structure the address of its values stands */
};

/* Everything but the values: superblock, texts, headers, members. Sorts members. The addresses of
 * values and the end of the file are filled in by the caller. */
void tdmi_hdf5_write_structure(struct tdmi_hdf5_node *root, tdmi_text *bytes);
enum { TDMI_HDF5_END_AT = 40 }; /* where in the superblock the end stands */
