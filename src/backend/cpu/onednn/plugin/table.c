/* The table of libtandem_onednn.so. */
#include "backend/cpu/onednn/plugin/primitive.h"

#include <stdio.h>

/* base/system/plugin_inside.c calls it. */
const void *tdmi_plugin_table(size_t *table_bytes);

static void write_version(char *text, size_t text_bytes)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, text_bytes, "%d.%d.%d (%.8s)", version->major, version->minor, version->patch,
             version->hash);
}

const void *tdmi_plugin_table(size_t *table_bytes)
{
    static const struct tdmi_onednn_table table = {
        .write_version = write_version,
        .conv = &tdmi_onednn_convs,
        .multiply = tdmi_onednn_multiply,
        .matmul = &tdmi_onednn_matmul,
    };
    *table_bytes = sizeof table;
    return &table;
}
