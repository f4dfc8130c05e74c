/*
 * The table of libtandem_arrow.so (arrow/bridge.h, arrow/write.h, arrow/storage.h). Arrow's
 * libraries take longer to load than most commands run, so the C++ files and Arrow are a library of
 * own (base/system/plugin.h), opened on the first Parquet file or object store. arrow/calls.c
 * calls through this table, whose functions arrow/calls.def lists.
 *
 * In the plugin the functions of the table are those of the same headers, so the C++ files do not
 * know whether they are linked or loaded.
 */
#pragma once

#include "io/arrow/storage.h"
#include "io/arrow/write.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tdmi_arrow_table {
#define OPENS(name, parameters, arguments) tdm_status(*name) parameters;
#define CALL(result, name, parameters, arguments) result(*name) parameters;
#define CLOSES(name, type) void (*name)(type * object);
#include "io/arrow/calls.def"
};

/* Opens the library where no call has yet; any thread may call. TDM_E_ABSENT: the build has no
 * Arrow, or the library cannot be opened here. */
tdm_status tdmi_arrow_load(const struct tdmi_arrow_table **table, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
