/* Stub of a build without Arrow: an error that names the missing package. */
#include "io/arrow/table.h"

tdm_status tdmi_arrow_load(const struct tdmi_arrow_table **table, tdm_error *err)
{
    *table = NULL;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "this build has no Apache Arrow, which Parquet and object stores need; plain "
                    "make (tools/deps) fetches it, with a C++ compiler at hand");
}
