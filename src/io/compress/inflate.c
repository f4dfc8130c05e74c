/* The calls of the table, or the error of a build without zlib. */
#include "io/compress/inflate.h"

static tdm_status fail_without(const char *name, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT,
                    "'%s' is compressed, and this build has no zlib: decompress it first, or "
                    "install zlib's headers (zlib1g-dev) and build again",
                    name);
}

tdm_status tdmi_inflate_raw(const void *bytes, size_t length_bytes, void *out, size_t out_bytes,
                            const char *name, tdm_error *err)
{
    const struct tdmi_inflate_table *table = tdmi_inflate_best();
    return table == NULL ? fail_without(name, err)
                         : table->raw(bytes, length_bytes, out, out_bytes, name, err);
}

tdm_status tdmi_gunzip(const tdmi_storage_file *file, int64_t limit_bytes, bool is_beginning,
                       tdmi_text *text, tdm_error *err)
{
    const struct tdmi_inflate_table *table = tdmi_inflate_best();
    return table == NULL ? fail_without(tdmi_storage_path(file), err)
                         : table->gunzip(file, limit_bytes, is_beginning, text, err);
}
