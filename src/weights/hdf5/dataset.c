/*
 * The values of HDF5 datasets: in place where they lie in one piece, which is what Keras writes.
 */
#include "weights/hdf5/internal.h"

enum layout_class { LAYOUT_COMPACT, LAYOUT_CONTIGUOUS, LAYOUT_CHUNKED, LAYOUT_VIRTUAL };

static tdm_status describe(const tdmi_hdf5 *file, const tdmi_hdf5_object *object,
                           struct tdmi_hdf5_values *values, tdm_error *err)
{
    const struct tdmi_hdf5_message *type = tdmi_hdf5_message(object, TDMI_HDF5_DATATYPE);
    const struct tdmi_hdf5_message *shape = tdmi_hdf5_message(object, TDMI_HDF5_DATASPACE);
    if (type == NULL || shape == NULL)
        return TDMI_HDF5_BAD(err, file, "the dataset at byte %zu has no %s",
                             (size_t)object->address, type ? "shape" : "type");
    if (type->is_shared || shape->is_shared)
        return TDMI_HDF5_BAD(
            err, file,
            "the dataset at byte %zu has a named type or a shared shape, which is not read",
            (size_t)object->address);
    TDMI_TRY(tdmi_hdf5_read_type(file, type->body, type->n_bytes, values, err));
    return tdmi_hdf5_read_shape(file, shape->body, shape->n_bytes, values, err);
}

/* Values are not structure: they need not be paid for, since nothing is done with them here. */
static tdm_status read_contiguous(const tdmi_hdf5 *file, struct tdmi_hdf5_cursor layout,
                                  struct tdmi_hdf5_values *values, size_t n_bytes, tdm_error *err)
{
    uint64_t address = tdmi_hdf5_next(&layout, 8), stored = tdmi_hdf5_next(&layout, 8);
    if (layout.is_short)
        return TDMI_HDF5_BAD(err, file, "a dataset's layout is cut short");
    if (address == TDMI_HDF5_NOWHERE)
        return TDMI_HDF5_BAD(err, file, "the values of a dataset were never written");
    if (stored < n_bytes)
        return TDMI_HDF5_BAD(err, file, "a dataset needs %zu bytes by its shape, and has %zu",
                             n_bytes, (size_t)stored);
    if (address > file->n_bytes || n_bytes > file->n_bytes - address)
        return TDMI_HDF5_BAD(
            err, file,
            "the values at byte %zu take %zu bytes and reach past the end of the file (%zu bytes)",
            (size_t)address, n_bytes, file->n_bytes);
    values->data = file->bytes + address;
    return TDM_OK;
}

static tdm_status read_compact(const tdmi_hdf5 *file, struct tdmi_hdf5_cursor layout,
                               struct tdmi_hdf5_values *values, size_t n_bytes, tdm_error *err)
{
    uint64_t stored = tdmi_hdf5_next(&layout, 2);
    values->data = tdmi_hdf5_skip(&layout, stored);
    if (layout.is_short || stored < n_bytes)
        return TDMI_HDF5_BAD(err, file,
                             "a dataset needs %zu bytes by its shape, and its header has %zu",
                             n_bytes, (size_t)stored);
    return TDM_OK;
}

static tdm_status read_layout(tdmi_hdf5 *file, const tdmi_hdf5_object *object,
                              struct tdmi_hdf5_values *values, tdm_error *err)
{
    size_t n_bytes;
    const struct tdmi_hdf5_message *message = tdmi_hdf5_message(object, TDMI_HDF5_LAYOUT);
    struct tdmi_hdf5_cursor layout = {.at = message->body, .left = message->n_bytes};
    int version = (int)tdmi_hdf5_next(&layout, 1), class = (int)tdmi_hdf5_next(&layout, 1);
    if (layout.is_short || message->is_shared)
        return TDMI_HDF5_BAD(err, file, "a dataset's layout is cut short or shared");
    if (version != 3 && version != 4)
        return TDMI_HDF5_BAD(err, file, "a dataset's layout is of version %d; 3 and 4 are read",
                             version);
    if (class >= LAYOUT_VIRTUAL || tdmi_hdf5_message(object, TDMI_HDF5_EXTERNAL) != NULL)
        return TDMI_HDF5_BAD(err, file, "a dataset lies in other files, which is not read");
    if (!tdmi_hdf5_size(values, &n_bytes))
        return TDMI_HDF5_BAD(err, file, "the shape of an array has too many values");
    if (n_bytes == 0) {
        values->data = file->bytes;
        return TDM_OK;
    }
    if (class == LAYOUT_COMPACT)
        return read_compact(file, layout, values, n_bytes, err);
    if (class == LAYOUT_CONTIGUOUS)
        return read_contiguous(file, layout, values, n_bytes, err);
    return tdmi_hdf5_read_chunked(file, object, layout, version, values, err);
}

tdm_status tdmi_hdf5_dataset(tdmi_hdf5 *file, const tdmi_hdf5_object *object,
                             struct tdmi_hdf5_values *values, tdm_error *err)
{
    *values = (struct tdmi_hdf5_values){0};
    if (!tdmi_hdf5_is_dataset(object))
        return TDMI_HDF5_BAD(err, file, "the object at byte %zu is no dataset",
                             (size_t)object->address);
    TDMI_TRY(describe(file, object, values, err));
    TDMI_TRY(read_layout(file, object, values, err));
    if (values->kind != TDMI_HDF5_NUMBERS || !values->is_big_endian)
        return TDM_OK;
    uint64_t n_bytes = values->n_values * values->item_bytes;
    if (n_bytes > file->stored_bytes)
        return TDMI_HDF5_BAD(err, file, "datasets share their bytes with each other");
    file->stored_bytes -= n_bytes;
    return tdmi_hdf5_swap_bytes(file, values, err);
}
