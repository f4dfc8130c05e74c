/*
 * Types and shapes of HDF5: numbers as h5py and NumPy write them, opaque items, and text.
 */
#include "weights/hdf5/internal.h"
#include "base/bytes.h"

#include <string.h>

enum type_class {
    CLASS_INTEGER,
    CLASS_FLOAT,
    CLASS_TIME,
    CLASS_TEXT,
    CLASS_BITS,
    CLASS_OPAQUE,
    CLASS_COMPOUND,
    CLASS_REFERENCE,
    CLASS_ENUM,
    CLASS_VARIABLE,
    CLASS_ARRAY,
    N_CLASSES
};

static const char *const class_names[N_CLASSES] = {
    "whole numbers", "floats",          "time",     "text",
    "bit fields",    "opaque",          "compound", "references",
    "enumeration",   "variable length", "arrays"};

/* Offset and precision: do the values fill their bytes? */
static bool read_is_whole(struct tdmi_hdf5_cursor *cursor, uint32_t n_bytes)
{
    const uint64_t offset_bits = tdmi_hdf5_next(cursor, 2);
    return tdmi_hdf5_next(cursor, 2) == 8 * n_bytes && offset_bits == 0;
}

static void read_integer(struct tdmi_hdf5_cursor *cursor, uint32_t flags, uint32_t n_bytes,
                         struct tdmi_hdf5_values *values)
{
    static const enum tdmi_dtype with_sign[] = {TDMI_DTYPE_I8, TDMI_DTYPE_I16, TDMI_DTYPE_I32,
                                                TDMI_DTYPE_I64};
    static const enum tdmi_dtype without[] = {TDMI_DTYPE_U8, TDMI_DTYPE_U16, TDMI_DTYPE_U32,
                                              TDMI_DTYPE_U64};
    const bool is_whole = read_is_whole(cursor, n_bytes);
    for (unsigned i = 0; i < 4; i++)
        if (n_bytes == 1u << i && is_whole) {
            values->kind = TDMI_HDF5_NUMBERS;
            values->dtype = flags & 8u ? with_sign[i] : without[i];
            values->is_big_endian = flags & 1u && n_bytes > 1;
        }
}

/* Offset, precision, place and width of exponent and mantissa, bias: those of IEEE 754, and of
 * bfloat16. */
static void read_float(struct tdmi_hdf5_cursor *cursor, uint32_t flags, uint32_t n_bytes,
                       struct tdmi_hdf5_values *values)
{
    static const struct {
        uint8_t n_bytes, fields[4];
        uint16_t bias;
        enum tdmi_dtype dtype;
    } known[] = {{2, {10, 5, 0, 10}, 15, TDMI_DTYPE_F16},
                 {2, {7, 8, 0, 7}, 127, TDMI_DTYPE_BF16},
                 {4, {23, 8, 0, 23}, 127, TDMI_DTYPE_F32},
                 {8, {52, 11, 0, 52}, 1023, TDMI_DTYPE_F64}};
    const bool is_whole = read_is_whole(cursor, n_bytes);
    const uint8_t *fields = tdmi_hdf5_skip(cursor, 4);
    uint64_t bias = tdmi_hdf5_next(cursor, 4);
    bool is_vax = flags & 0x40u, is_implied = (flags >> 4 & 3u) == 2;
    if (cursor->is_short || is_vax || !is_implied || (flags >> 8 & 0xffu) != 8 * n_bytes - 1)
        return;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].n_bytes == n_bytes && is_whole && memcmp(known[i].fields, fields, 4) == 0 &&
            known[i].bias == bias) {
            values->kind = TDMI_HDF5_NUMBERS;
            values->dtype = known[i].dtype;
            values->is_big_endian = flags & 1u;
        }
}

/* h5py's truth values: whole bytes named FALSE and TRUE. */
static bool is_truth(struct tdmi_hdf5_cursor cursor, uint32_t flags, uint32_t n_bytes)
{
    struct tdmi_hdf5_values base = {0};
    const uint8_t *head = tdmi_hdf5_skip(&cursor, 8);
    if (head == NULL || (head[0] & 15) != CLASS_INTEGER || n_bytes != 1 || (flags & 0xffffu) != 2 ||
        tdmi_read_little(head + 4, 4) != 1)
        return false;
    read_integer(&cursor, (uint32_t)tdmi_read_little(head + 1, 3), 1, &base);
    const uint8_t *name = tdmi_hdf5_skip(&cursor, 6);
    return base.kind == TDMI_HDF5_NUMBERS && name != NULL && memcmp(name, "FALSE", 6) == 0;
}

tdm_status tdmi_hdf5_read_type(const tdmi_hdf5 *file, const uint8_t *body, size_t n_bytes,
                               struct tdmi_hdf5_values *values, tdm_error *err)
{
    struct tdmi_hdf5_cursor cursor = {.at = body, .left = n_bytes};
    unsigned class = (unsigned)tdmi_hdf5_next(&cursor, 1) & 15u;
    uint32_t flags = (uint32_t)tdmi_hdf5_next(&cursor, 3);
    uint32_t item_bytes = (uint32_t)tdmi_hdf5_next(&cursor, 4);
    if (cursor.is_short || class >= N_CLASSES || item_bytes == 0)
        return TDMI_HDF5_BAD(err, file, "a type is damaged, or of a kind that is not read");
    values->kind = TDMI_HDF5_OTHER;
    values->type_name = class_names[class];
    values->item_bytes = item_bytes;
    if (class == CLASS_INTEGER) {
        read_integer(&cursor, flags, item_bytes, values);
    } else if (class == CLASS_FLOAT) {
        read_float(&cursor, flags, item_bytes, values);
    } else if (class == CLASS_TEXT) {
        values->kind = TDMI_HDF5_FIXED_TEXT;
        values->padding = (flags & 15u) == 2 ? ' ' : 0;
    } else if (class == CLASS_OPAQUE) {
        values->kind = TDMI_HDF5_OPAQUE;
    } else if (class == CLASS_VARIABLE && (flags & 15u) == 1 && item_bytes == 16) {
        values->kind = TDMI_HDF5_VARIABLE_TEXT;
    } else if (class == CLASS_ENUM && is_truth(cursor, flags, item_bytes)) {
        values->kind = TDMI_HDF5_NUMBERS;
        values->dtype = TDMI_DTYPE_BOOL;
    }
    return TDM_OK;
}

/* Version 1: version, rank, flags, 5 bytes, axes; version 2: version, rank, flags, kind, axes. */
tdm_status tdmi_hdf5_read_shape(const tdmi_hdf5 *file, const uint8_t *body, size_t n_bytes,
                                struct tdmi_hdf5_values *values, tdm_error *err)
{
    struct tdmi_hdf5_cursor cursor = {.at = body, .left = n_bytes};
    unsigned version = (unsigned)tdmi_hdf5_next(&cursor, 1);
    unsigned rank = (unsigned)tdmi_hdf5_next(&cursor, 1);
    tdmi_hdf5_skip(&cursor, 1);
    bool is_null = tdmi_hdf5_next(&cursor, version == 1 ? 5 : 1) == 2 && version == 2;
    if (!cursor.is_short && (version < 1 || version > 2))
        return TDMI_HDF5_BAD(err, file, "a shape is of version %u; 1 and 2 are read", version);
    if (!cursor.is_short && rank > TDMI_HDF5_RANK)
        return TDMI_HDF5_BAD(err, file, "an array has %u axes; up to %d are read", rank,
                             TDMI_HDF5_RANK);
    values->rank = (int)rank;
    values->n_values = is_null ? 0 : 1;
    bool is_too_large = false;
    for (unsigned i = 0; i < rank && !cursor.is_short; i++) {
        uint64_t extent = tdmi_hdf5_next(&cursor, 8);
        is_too_large |= extent > (uint64_t)INT64_MAX ||
                        __builtin_mul_overflow(values->n_values, extent, &values->n_values);
        values->shape[i] = (int64_t)extent;
    }
    if (cursor.is_short)
        return TDMI_HDF5_BAD(err, file, "a shape is cut short");
    if (is_too_large)
        return TDMI_HDF5_BAD(err, file, "the shape of an array has too many values");
    return TDM_OK;
}

bool tdmi_hdf5_size(const struct tdmi_hdf5_values *values, size_t *n_bytes)
{
    uint64_t size;
    if (__builtin_mul_overflow(values->n_values, (uint64_t)values->item_bytes, &size) ||
        size > (uint64_t)PTRDIFF_MAX)
        return false;
    *n_bytes = (size_t)size;
    return true;
}

tdm_status tdmi_hdf5_swap_bytes(tdmi_hdf5 *file, struct tdmi_hdf5_values *values, tdm_error *err)
{
    size_t n_bytes = (size_t)values->n_values * values->item_bytes, item = values->item_bytes;
    if (!values->is_big_endian || n_bytes == 0)
        return TDM_OK;
    uint8_t *swapped;
    TDMI_ARENA_NEW(&file->arena, swapped, n_bytes, err);
    for (size_t at = 0; at < n_bytes; at += item)
        for (size_t i = 0; i < item; i++)
            swapped[at + i] = values->data[at + item - 1 - i];
    values->data = swapped;
    return TDM_OK;
}
