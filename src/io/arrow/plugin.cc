/* The table that libtandem_arrow.so exports. */
#include "io/arrow/table.h"

static const tdmi_arrow_table table = {
#define OPENS(name, parameters, arguments) .name = tdmi_arrow_##name,
#define CALL(result, name, parameters, arguments) .name = tdmi_arrow_##name,
#define CLOSES(name, type) .name = tdmi_arrow_##name,
#include "io/arrow/calls.def"
};

extern "C" const void *tdmi_plugin_table(size_t *table_bytes); // for base/system/plugin_inside.c

const void *tdmi_plugin_table(size_t *table_bytes)
{
    *table_bytes = sizeof table;
    return &table;
}
