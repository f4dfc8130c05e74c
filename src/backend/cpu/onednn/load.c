/* Opens libtandem_onednn.so; a build without oneDNN has no file of this folder. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/onednn/library.h"
#include "backend/host.h"
#include "base/scope.h"
#include "base/system/plugin.h"

#include <stdio.h>

/* The loader maps 50 MB, and oneDNN's constructors abort without memory. */
enum { room_to_load_bytes = 64 << 20 };

tdm_status tdmi_onednn_load(const struct tdmi_onednn_table **table, tdm_error *err)
{
    const void *found = NULL;
    tdm_status status = tdmi_plugin_open("onednn", "the part of tandem that computes by oneDNN",
                                         sizeof **table, room_to_load_bytes, &found, err);
    *table = found;
    if (status != TDM_E_ABSENT)
        return status;
    if (err)
        err->code = TDM_E_SYSTEM;
    return TDM_E_SYSTEM;
}

void tdmi_onednn_note(tdmi_stream *stream, bool has_run)
{
    if (!has_run)
        tdmi_host_note(stream, TDM_E_MEMORY, "computing a layer by oneDNN: out of memory");
}

void tdmi_onednn_write_version(char *text, size_t text_bytes)
{
    const struct tdmi_onednn_table *onednn;
    char version[64];
    *text = '\0';
    if (tdmi_onednn_load(&onednn, NULL) != TDM_OK)
        return;
    onednn->write_version(version, sizeof version);
    snprintf(text, text_bytes, ", oneDNN %s", version);
}

tdm_status tdmi_matmul_onednn(const struct tdmi_matmul_method **method, tdm_error *err)
{
    const struct tdmi_onednn_table *onednn;
    TDMI_TRY(tdmi_onednn_load(&onednn, err));
    *method = onednn->matmul;
    return TDM_OK;
}
