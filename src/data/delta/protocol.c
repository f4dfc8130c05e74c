/* A short list of what is met; everything else is refused by the name that the table gives it. */
#include "data/delta/state.h"

#include "base/text/text.h"
#include <stdbool.h>
#include <string.h>

enum { LAST_VERSION = 3, VERSION_WITH_MAPPING = 2, VERSION_WITH_FEATURES = 3 };

/* timestampNtz is a type of columns that no label has; vacuumProtocolCheck binds only those who
 * delete files. */
static const char *const met[] = {"deletionVectors", "timestampNtz", "v2Checkpoint",
                                  "vacuumProtocolCheck"};
enum { N_MET = sizeof met / sizeof met[0] };

static bool is_met(const char *feature)
{
    for (int i = 0; i < N_MET; i++)
        if (strcmp(feature, met[i]) == 0)
            return true;
    return false;
}

static tdm_status refuse(const char *table, const tdmi_text *unmet, tdm_error *err)
{
    tdmi_text known = {0};
    for (int i = 0; i < N_MET; i++)
        tdmi_text_printf(&known, "%s%s", i == 0 ? "" : ", ", met[i]);
    tdm_status status = TDM_FAIL(
        err, TDM_E_INPUT,
        "the Delta table '%s' asks its readers for %s, which is not read here (%s are): write its "
        "rows to a table without that, or to plain Parquet files",
        table, tdmi_text_string(unmet), tdmi_text_string(&known));
    tdmi_text_release(&known);
    return status;
}

tdm_status tdmi_delta_protocol_check(const struct tdmi_delta_protocol *protocol, const char *table,
                                     tdm_error *err)
{
    int64_t version = protocol->reader_version;
    if (version < 1 || version > LAST_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the Delta table '%s' asks for readers of protocol version %lld; versions "
                        "1 to %d are read here",
                        table, (long long)version, LAST_VERSION);
    tdmi_text unmet = {0};
    if (version >= VERSION_WITH_FEATURES)
        for (size_t i = 0; i < protocol->n_features; i++)
            if (!is_met(protocol->features[i]))
                tdmi_text_printf(&unmet, "%s%.60s", unmet.length_bytes == 0 ? "" : " and ",
                                 protocol->features[i]);
    /* Version 2 allows column mapping without naming it; only its use matters then. */
    bool is_mapped = protocol->mapping != NULL && strcmp(protocol->mapping, "none") != 0;
    if (version == VERSION_WITH_MAPPING && is_mapped)
        tdmi_text_printf(&unmet, "columnMapping");
    tdm_status status = unmet.length_bytes == 0 ? TDM_OK : refuse(table, &unmet, err);
    if (unmet.is_broken)
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory to look at the features of '%s'", table);
    tdmi_text_release(&unmet);
    return status;
}
