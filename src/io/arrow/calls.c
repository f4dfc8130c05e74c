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

#define OPENS(result, name, parameters)
#define CALL(result, name, parameters, arguments) \
    result tdmi_arrow_##name parameters           \
    {                                             \
        return arrow()->name arguments;           \
    }
#define CLOSES(name, type)               \
    void tdmi_arrow_##name(type *object) \
    {                                    \
        if (object)                      \
            arrow()->name(object);       \
    }
#include "io/arrow/calls.def"

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

tdm_status tdmi_arrow_file_open(const char *path, tdmi_arrow_file **file, tdm_error *err)
{
    *file = NULL;
    LOAD(table, "cannot read '%s'", path);
    return table->file_open(path, file, err);
}

tdm_status tdmi_arrow_decompress(int codec, const void *bytes, size_t n_bytes, void *target,
                                 size_t target_bytes, tdm_error *err)
{
    LOAD(table, "cannot decompress %zu bytes", n_bytes);
    return table->decompress(codec, bytes, n_bytes, target, target_bytes, err);
}

tdm_status tdmi_arrow_writer_open(const struct tdmi_byte_sink *sink,
                                  const struct tdmi_arrow_write_options *options,
                                  tdmi_arrow_writer **writer, tdm_error *err)
{
    *writer = NULL;
    LOAD(table, "cannot write Parquet");
    return table->writer_open(sink, options, writer, err);
}

tdm_status tdmi_arrow_uri_stat(const char *uri, enum tdmi_file_kind *kind, int64_t *size_bytes,
                               tdm_error *err)
{
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
