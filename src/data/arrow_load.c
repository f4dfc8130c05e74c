/* Opens libtandem_arrow.so; a build without Arrow has arrow_absent.c in place of this file. */
#include "base/plugin.h"
#include "data/arrow_table.h"

tdm_status tdmi_arrow_load(const struct tdmi_arrow_table **table, tdm_error *err)
{
    const void *found = NULL;
    tdm_status status =
        tdmi_plugin_open("arrow", "the part of tandem that reads Parquet and object stores",
                         sizeof **table, &found, err);
    *table = found;
    return status;
}
