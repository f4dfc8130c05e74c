/* Opens libtandem_arrow.so; a build without Arrow has arrow/absent.c in place of this file. */
#include "base/system/plugin.h"
#include "io/arrow/table.h"

/* Arrow has allocators of its own, which reserve 10 MiB while it is loaded. Where they get
 * nothing, they do not say so, but crash when the program ends. It is 65 MiB with them. */
static const size_t room_bytes = (size_t)80 << 20;

tdm_status tdmi_arrow_load(const struct tdmi_arrow_table **table, tdm_error *err)
{
    const void *found = NULL;
    tdm_status status =
        tdmi_plugin_open("arrow", "the part of tandem that reads Parquet and object stores",
                         sizeof **table, room_bytes, &found, err);
    *table = found;
    return status;
}
