/* The table that libtandem_arrow.so exports. */
#include "io/arrow/table.h"

static const tdmi_arrow_table table = {
    .version = tdmi_arrow_version,
    .file_open = tdmi_arrow_file_open,
    .file_close = tdmi_arrow_file_close,
    .file_schema = tdmi_arrow_file_schema,
    .file_value = tdmi_arrow_file_value,
    .file_bytes = tdmi_arrow_file_bytes,
    .file_rows = tdmi_arrow_file_rows,
    .file_groups = tdmi_arrow_file_groups,
    .group_rows = tdmi_arrow_group_rows,
    .file_stream = tdmi_arrow_file_stream,
    .chunk_facts = tdmi_arrow_chunk_facts,
    .chunk_pages = tdmi_arrow_chunk_pages,
    .decompress = tdmi_arrow_decompress,
    .writer_open = tdmi_arrow_writer_open,
    .writer_picture = tdmi_arrow_writer_picture,
    .writer_end_group = tdmi_arrow_writer_end_group,
    .writer_finish = tdmi_arrow_writer_finish,
    .writer_free = tdmi_arrow_writer_free,
    .uri_stat = tdmi_arrow_uri_stat,
    .uri_list = tdmi_arrow_uri_list,
    .remote_open = tdmi_arrow_remote_open,
    .remote_close = tdmi_arrow_remote_close,
    .remote_size = tdmi_arrow_remote_size,
    .remote_read = tdmi_arrow_remote_read,
};

extern "C" const void *tdmi_plugin_table(size_t *table_bytes); // for base/system/plugin_inside.c

const void *tdmi_plugin_table(size_t *table_bytes)
{
    *table_bytes = sizeof table;
    return &table;
}
