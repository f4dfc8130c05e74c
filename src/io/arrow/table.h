/*
 * The table of libtandem_arrow.so (arrow/bridge.h, arrow/write.h, arrow/storage.h). Arrow's
 * libraries take longer to load than most commands run, so the C++ files and Arrow are a library of
 * their own (base/system/plugin.h), opened on the first Parquet file or object store. arrow/calls.c
 * calls through this table.
 *
 * In the plugin the functions of the table are those of the same headers, so the C++ files do not
 * know whether they are linked or loaded.
 */
#ifndef TANDEM_IO_ARROW_TABLE_H
#define TANDEM_IO_ARROW_TABLE_H

#include "io/arrow/bridge.h"
#include "io/arrow/storage.h"
#include "io/arrow/write.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tdmi_arrow_table {
    const char *(*version)(void);

    tdm_status (*file_open)(const char *path, tdmi_arrow_file **file, tdm_error *err);
    void (*file_close)(tdmi_arrow_file *file);
    tdm_status (*file_schema)(const tdmi_arrow_file *file, struct ArrowSchema *schema,
                              tdm_error *err);
    const char *(*file_value)(const tdmi_arrow_file *file, const char *key);
    int64_t (*file_bytes)(const tdmi_arrow_file *file);
    int64_t (*file_rows)(const tdmi_arrow_file *file);
    int (*file_groups)(const tdmi_arrow_file *file);
    int64_t (*group_rows)(const tdmi_arrow_file *file, int group);
    tdm_status (*file_stream)(const tdmi_arrow_file *file, const char *const *columns,
                              int n_columns, int first_group, int n_groups,
                              struct ArrowArrayStream *stream, tdm_error *err);
    tdm_status (*chunk_facts)(const tdmi_arrow_file *file, const char *column, int group,
                              struct tdmi_arrow_chunk *chunk, tdm_error *err);
    tdm_status (*chunk_pages)(const tdmi_arrow_file *file, const char *column, int group,
                              struct tdmi_arrow_page **pages, int64_t *n_pages, tdm_error *err);
    tdm_status (*decompress)(int codec, const void *bytes, size_t n_bytes, void *target,
                             size_t target_bytes, tdm_error *err);

    tdm_status (*writer_open)(const struct tdmi_byte_sink *sink,
                              const struct tdmi_arrow_write_options *options,
                              tdmi_arrow_writer **writer, tdm_error *err);
    tdm_status (*writer_picture)(tdmi_arrow_writer *writer, const void *bytes, size_t n_bytes,
                                 tdm_error *err);
    tdm_status (*writer_end_group)(tdmi_arrow_writer *writer,
                                   const struct tdmi_arrow_values *values, tdm_error *err);
    tdm_status (*writer_finish)(tdmi_arrow_writer *writer, tdm_error *err);
    void (*writer_free)(tdmi_arrow_writer *writer);

    tdm_status (*uri_stat)(const char *uri, enum tdmi_arrow_uri_kind *kind, int64_t *size_bytes,
                           tdm_error *err);
    tdm_status (*uri_list)(const char *uri, tdmi_arrow_visit visit, void *self, tdm_error *err);
    tdm_status (*remote_open)(const char *uri, int64_t listed_bytes, tdmi_arrow_remote **file,
                              tdm_error *err);
    void (*remote_close)(tdmi_arrow_remote *file);
    int64_t (*remote_size)(const tdmi_arrow_remote *file);
    tdm_status (*remote_read)(const tdmi_arrow_remote *file, int64_t offset_bytes, void *bytes,
                              size_t n_bytes, size_t *done, tdm_error *err);
};

/* Opens the library where no call has yet; any thread may call. TDM_E_ABSENT: the build has no
 * Arrow, or the library cannot be opened here. */
tdm_status tdmi_arrow_load(const struct tdmi_arrow_table **table, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
