/* The words of an abort; linked into every plugin that is a transport too. */
#include "dist/transport.h"

#include <stdio.h>

void tdmi_transport_abort_words(tdm_status status, const tdm_error *why,
                                char words[TDMI_ABORT_BYTES])
{
    words[0] = (char)('A' + (int)status);
    snprintf(words + 1, TDMI_ABORT_BYTES - 1, "without a reason");
    if (why && why->n_frames > 0)
        tdm_error_line(why, words + 1, TDMI_ABORT_BYTES - 1);
}

tdm_status tdmi_transport_ended(int rank, const char *host, const char *words, tdm_error *err)
{
    const int said = words[0] - 'A';
    const tdm_status status = said > 0 && said <= TDM_E_BUG ? (tdm_status)said : TDM_E_PEER;
    if (err)
        *err = (tdm_error){0};
    (void)TDM_FAIL(err, status, "rank %d on %s: %s", rank, host, words[0] ? words + 1 : "");
    if (err)
        err->rank = rank;
    return status;
}
