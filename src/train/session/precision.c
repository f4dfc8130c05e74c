/*
 * In how many bits a training stores activations. Parameters, sums of gradients and the optimiser's
 * state are f32, whatever is chosen here; f16 has so small a range that gradients are scaled.
 */
#include "train/session/session.h"

#include <string.h>

/* The step itself finds a better one within the first few dozen. */
static const struct tdmi_loss_scale first_scale = {.scale = 65536.0f};

tdm_status tdmi_session_choose_precision(struct tdmi_session *session, tdm_error *err)
{
    static const struct {
        const char *word;
        enum tdmi_dtype storage;
    } words[] = {{"auto", TDMI_DTYPE_F32},
                 {"f32", TDMI_DTYPE_F32},
                 {"bf16", TDMI_DTYPE_BF16},
                 {"f16", TDMI_DTYPE_F16}};
    const char *asked = session->options.precision;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].word, asked) == 0)
            session->storage = words[i].storage;
    session->allows_tf32 = strcmp(asked, "auto") == 0;
    if (!tdmi_backend_stores(session->backend, session->storage))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --precision %s: on --device %s everything is computed and stored "
                        "as f32; auto or f32 is wanted",
                        asked, session->options.device);
    if (session->options.fast && session->backend->device.is_host)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --fast lets the libraries of a card add in any order; on --device "
                        "%s there is one order, which any number of threads keeps at full speed, "
                        "and it would change nothing; leave it out",
                        session->options.device);
    return TDM_OK;
}

tdm_status tdmi_session_open_scale(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &session->backend->memory;
    struct tdmi_loss_scale *scale = &session->progress.loss_scale;
    if (session->storage != TDMI_DTYPE_F16)
        return TDM_OK;
    if (!(scale->scale > 0.0f))
        *scale = first_scale;
    if (!session->loss_scale)
        session->loss_scale = memory->alloc(session->device, sizeof *scale);
    if (!session->loss_scale)
        return TDM_FAIL(err, TDM_E_MEMORY, "the scale of gradients: out of the device's memory");
    TDM_TRY(memory->upload(session->stream, session->loss_scale, scale, sizeof *scale, err), err,
            "placing the scale of gradients");
    return session->backend->stream.wait(session->stream, err);
}

tdm_status tdmi_session_fetch_scale(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_loss_scale *scale = &session->progress.loss_scale;
    if (!session->loss_scale)
        return TDM_OK;
    return TDM_WRAP(err,
                    session->backend->memory.download(session->stream, scale, session->loss_scale,
                                                      sizeof *scale, err),
                    "fetching the scale of gradients");
}

void tdmi_session_report_left_out(struct tdmi_session *session)
{
    const struct tdmi_loss_scale *scale = &session->progress.loss_scale;
    if (session->loss_scale && scale->n_left_out > 0)
        tdmi_session_note(session,
                          "--precision f16: %lld of %lld steps were left out, their gradients were "
                          "not finite (the last scale is %g)",
                          (long long)scale->n_left_out, (long long)session->progress.step,
                          (double)scale->scale);
}

bool tdmi_session_queues(const struct tdmi_session *session)
{
    return !session->backend->device.is_host && session->backend->update->run &&
           session->transport->world(session->comm) == 1;
}
