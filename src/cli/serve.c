/*
 * Serving from the command line. The one line on standard output is the address, so that a script
 * that asked for any free port reads it there.
 */
#include "cli/serve.h"
#include "base/scope.h"
#include "tandem/log.h"

#include <stdlib.h>
#include <string.h>

TDMI_POINTER_RELEASE(tdm_model, tdm_model_close)

bool tdmi_is_address(const char *text)
{
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    return *port != '\0' && port[strspn(port, "0123456789")] == '\0';
}

static tdm_status answer(struct tdmi_call *call, tdm_model *model,
                         const struct tdm_serve_options *options, tdm_error *err)
{
    tdm_server *server = NULL;
    TDMI_TRY(tdm_server_start(model, options, &server, err));
    tdm_log(TDM_LOG_INFO, "%s with %d classes answers at %s until Ctrl-C", tdm_model_name(model),
            tdm_model_classes(model), tdm_server_url(server));
    tdmi_print(call->out, "%s\n", tdm_server_url(server));
    const tdm_status status = tdmi_output_check(call->out, err);
    if (status == TDM_OK)
        tdm_server_wait(server);
    tdm_json_string(call->json, "url", tdm_server_url(server));
    const struct tdm_serve_counts counts = tdm_server_stop(server);
    tdm_json_integer(call->json, "requests", counts.requests);
    tdm_json_integer(call->json, "pictures", counts.pictures);
    tdm_log(TDM_LOG_INFO, "%lld %s answered, %lld %s predicted", (long long)counts.requests,
            counts.requests == 1 ? "request was" : "requests were", (long long)counts.pictures,
            counts.pictures == 1 ? "image" : "images");
    return status;
}

tdm_status tdmi_serve(struct tdmi_call *call, const struct tdm_model_options *model,
                      const struct tdm_serve_options *options, tdm_error *err)
{
    struct tdm_serve_options own = *options;
    TDMI_AT_END(tdm_model_close_at) tdm_model *opened = NULL;
    const char *token = getenv("TANDEM_TOKEN"); /* never an option: others see those of a process */
    if (!own.token_file && token)
        own.token = token;
    if (own.token && !*token)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "TANDEM_TOKEN is empty, which is no token; unset it to serve without one");
    const tdm_status status = tdm_serve_check(&own, err);
    if (status != TDM_OK && own.token)
        return TDM_WRAP(err, status, "serving with the token in TANDEM_TOKEN");
    TDMI_TRY(status);
    TDMI_TRY(tdm_model_open(call->arguments[0], model, &opened, err));
    return answer(call, opened, &own, err);
}
