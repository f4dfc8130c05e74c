/* For tests of HDF5: a writer's file as bytes, and bytes opened. */
#pragma once

#include "base/file/file.h"
#include "base/memory.h"
#include "weights/hdf5/hdf5.h"
#include "weights/hdf5/write.h"
#include "unit.h"

static inline tdmi_hdf5 *opened(const void *bytes, size_t n_bytes)
{
    tdm_error err = {0};
    tdmi_hdf5 *file = NULL;
    if (tdmi_hdf5_open(bytes, n_bytes, "x.h5", true, &file, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    return file;
}

/* Frees the writer; the caller frees *bytes. */
static inline tdmi_hdf5 *written(tdmi_hdf5_writer *writer, void **bytes, size_t *n_bytes)
{
    tdm_error err = {0};
    if (tdmi_hdf5_writer_finish(writer, "written.h5", &err) != TDM_OK ||
        tdmi_file_read("written.h5", 1 << 24, bytes, n_bytes, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    tdmi_hdf5_writer_free(writer);
    return opened(*bytes, *n_bytes);
}
