/*
 * The functions of bridge.h, write.h and storage.h in libtandem: each calls through the table of
 * libtandem_arrow.so, which the first of them loads. Functions on an opened object return no error:
 * the object was opened, so the table is there.
 */
#include "io/arrow/table.h"

/* Load the table at the start of a function that may be the first one, or return the error. */
#define LOAD(table, ...)                         \
    const struct tdmi_arrow_table *table = NULL; \
    TDM_TRY(tdmi_arrow_load(&(table), err), err, __VA_ARGS__)

/* NULL without Arrow. */
static const struct tdmi_arrow_table *arrow(void)
{
    const struct tdmi_arrow_table *table = NULL;
    return tdmi_arrow_load(&table, NULL) == TDM_OK ? table : NULL;
}

tdm_status tdmi_arrow_require(tdm_error *err)
{
    const struct tdmi_arrow_table *table = NULL;
    return tdmi_arrow_load(&table, err);
}

const char *tdmi_arrow_version(void)
{
    const struct tdmi_arrow_table *table = arrow();
    return table ? table->version() : "";
}

/* ---- reading (arrow/bridge.h) -------------------------------------------------------------- */

tdm_status tdmi_arrow_file_open(const char *path, tdmi_arrow_file **file, tdm_error *err)
{
    *file = NULL;
    LOAD(table, "cannot read '%s'", path);
    return table->file_open(path, file, err);
}

void tdmi_arrow_file_close(tdmi_arrow_file *file)
{
    if (file)
        arrow()->file_close(file);
}

tdm_status tdmi_arrow_file_schema(const tdmi_arrow_file *file, struct ArrowSchema *schema,
                                  tdm_error *err)
{
    return arrow()->file_schema(file, schema, err);
}

const char *tdmi_arrow_file_value(const tdmi_arrow_file *file, const char *key)
{
    return arrow()->file_value(file, key);
}

int64_t tdmi_arrow_file_bytes(const tdmi_arrow_file *file)
{
    return arrow()->file_bytes(file);
}

int64_t tdmi_arrow_file_rows(const tdmi_arrow_file *file)
{
    return arrow()->file_rows(file);
}

int tdmi_arrow_file_groups(const tdmi_arrow_file *file)
{
    return arrow()->file_groups(file);
}

int64_t tdmi_arrow_group_rows(const tdmi_arrow_file *file, int group)
{
    return arrow()->group_rows(file, group);
}

tdm_status tdmi_arrow_file_stream(const tdmi_arrow_file *file, const char *const *columns,
                                  int n_columns, int first_group, int n_groups,
                                  struct ArrowArrayStream *stream, tdm_error *err)
{
    return arrow()->file_stream(file, columns, n_columns, first_group, n_groups, stream, err);
}

tdm_status tdmi_arrow_chunk_facts(const tdmi_arrow_file *file, const char *column, int group,
                                  struct tdmi_arrow_chunk *chunk, tdm_error *err)
{
    return arrow()->chunk_facts(file, column, group, chunk, err);
}

tdm_status tdmi_arrow_chunk_pages(const tdmi_arrow_file *file, const char *column, int group,
                                  struct tdmi_arrow_page **pages, int64_t *n_pages, tdm_error *err)
{
    return arrow()->chunk_pages(file, column, group, pages, n_pages, err);
}

tdm_status tdmi_arrow_decompress(int codec, const void *bytes, size_t n_bytes, void *target,
                                 size_t target_bytes, tdm_error *err)
{
    LOAD(table, "cannot decompress %zu bytes", n_bytes);
    return table->decompress(codec, bytes, n_bytes, target, target_bytes, err);
}

/* ---- writing (arrow/write.h) --------------------------------------------------------------- */

tdm_status tdmi_arrow_writer_open(const struct tdmi_byte_sink *sink,
                                  const struct tdmi_arrow_write_options *options,
                                  tdmi_arrow_writer **writer, tdm_error *err)
{
    *writer = NULL;
    LOAD(table, "cannot write Parquet");
    return table->writer_open(sink, options, writer, err);
}

tdm_status tdmi_arrow_writer_picture(tdmi_arrow_writer *writer, const void *bytes, size_t n_bytes,
                                     tdm_error *err)
{
    return arrow()->writer_picture(writer, bytes, n_bytes, err);
}

tdm_status tdmi_arrow_writer_end_group(tdmi_arrow_writer *writer,
                                       const struct tdmi_arrow_values *values, tdm_error *err)
{
    return arrow()->writer_end_group(writer, values, err);
}

tdm_status tdmi_arrow_writer_finish(tdmi_arrow_writer *writer, tdm_error *err)
{
    return arrow()->writer_finish(writer, err);
}

void tdmi_arrow_writer_free(tdmi_arrow_writer *writer)
{
    if (writer)
        arrow()->writer_free(writer);
}

/* ---- object stores (arrow/storage.h) ------------------------------------------------------- */

tdm_status tdmi_arrow_uri_stat(const char *uri, enum tdmi_arrow_uri_kind *kind, int64_t *size_bytes,
                               tdm_error *err)
{
    *kind = TDMI_ARROW_URI_MISSING;
    *size_bytes = -1;
    LOAD(table, "cannot look at '%s'", uri);
    return table->uri_stat(uri, kind, size_bytes, err);
}

tdm_status tdmi_arrow_uri_list(const char *uri, tdmi_arrow_visit visit, void *self, tdm_error *err)
{
    LOAD(table, "cannot list '%s'", uri);
    return table->uri_list(uri, visit, self, err);
}

tdm_status tdmi_arrow_remote_open(const char *uri, int64_t listed_bytes, tdmi_arrow_remote **file,
                                  tdm_error *err)
{
    *file = NULL;
    LOAD(table, "cannot read '%s'", uri);
    return table->remote_open(uri, listed_bytes, file, err);
}

void tdmi_arrow_remote_close(tdmi_arrow_remote *file)
{
    if (file)
        arrow()->remote_close(file);
}

int64_t tdmi_arrow_remote_size(const tdmi_arrow_remote *file)
{
    return arrow()->remote_size(file);
}

tdm_status tdmi_arrow_remote_read(const tdmi_arrow_remote *file, int64_t offset_bytes, void *bytes,
                                  size_t n_bytes, size_t *done, tdm_error *err)
{
    return arrow()->remote_read(file, offset_bytes, bytes, n_bytes, done, err);
}
