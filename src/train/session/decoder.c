/*
 * Who decodes the pictures: --decode. A run goes on with the decoder that it was begun with, for
 * another one may make other pixels.
 */
#include "train/session/session.h"

#include <string.h>

static bool is_on_card(const struct tdmi_session *session)
{
    return strcmp(session->options.decode, "card") == 0;
}

tdm_status tdmi_session_open_decoder(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_picture_table *pictures = session->backend->pictures;
    if (!is_on_card(session))
        return TDM_OK;
    if (!pictures)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --decode card: --device %s decodes no pictures; --device cuda with "
                        "it, or --decode cpu, is accepted",
                        session->options.device);
    return TDM_WRAP(err, pictures->open(session->backend, session->device, &session->decoder, err),
                    "option --decode card: --device %s cannot decode pictures here; --decode cpu "
                    "is accepted",
                    session->options.device);
}

void tdmi_session_close_decoder(struct tdmi_session *session)
{
    if (session->decoder)
        session->backend->pictures->close(session->decoder);
    session->decoder = NULL;
}

void tdmi_session_report_decoder(struct tdmi_session *session)
{
    if (session->decoder && tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tdmi_session_note(session,
                          "decode card: JPEG files that %s takes are decoded on %s, to pixels that "
                          "are near the processor's; evaluate and predict decode on the processor",
                          session->decoder->name, session->options.device);
}

const char *tdmi_session_decoder_name(const struct tdmi_session *session)
{
    return session->decoder ? session->decoder->name : "cpu";
}

tdm_status tdmi_session_match_decoder(const struct tdmi_session *session, tdm_error *err)
{
    const tdm_json_value *data = tdmi_run_recorded(session->run, "data");
    const char *name = tdmi_session_decoder_name(session);
    const char *before = tdm_json_as_string(tdm_json_member(data, "decoder"), "");
    if (*before == '\0' || strcmp(before, name) == 0)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "the run's pictures were decoded by %s, and here is %s, which may make other "
                    "pixels of them; that one, or another -o, is wanted",
                    before, name);
}
