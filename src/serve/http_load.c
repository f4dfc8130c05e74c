/* Opens libtandem_http.so; a build without libmicrohttpd has http_absent.c in place of this file.
 */
#include "base/system/plugin.h"
#include "serve/http.h"

tdm_status tdmi_http_load(const struct tdmi_http_table **table, tdm_error *err)
{
    const void *found = NULL;
    tdm_status status = tdmi_plugin_open("http", "the part of tandem that answers over HTTP",
                                         sizeof **table, 0, &found, err);
    *table = found;
    return status;
}
