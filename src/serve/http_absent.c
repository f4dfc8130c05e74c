/* The HTTP layer of a build without libmicrohttpd: an error with the command that installs it. */
#include "serve/http.h"

tdm_status tdmi_http_load(const struct tdmi_http_table **table, tdm_error *err)
{
    *table = NULL;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "this build has no libmicrohttpd, which answering over HTTP needs; to get it: "
                    "sudo apt-get install libmicrohttpd-dev && make");
}
