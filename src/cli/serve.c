/*
 * Serving from the command line. The one line on standard output is the address, so that a script
 * that asked for any free port reads it there.
 */
#include "cli/serve.h"
#include "tandem/log.h"

#include <stdlib.h>
#include <string.h>

bool tdmi_is_address(const char *text)
{
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    return *port != '\0' && port[strspn(port, "0123456789")] == '\0';
}

tdm_status tdmi_serve_refuse(const struct tdm_serve_options *options, tdm_error *err)
{
    const struct tdm_serve_options usual = tdm_serve_options_default();
    const char *name = options->token_file                         ? "token-file"
                       : options->body_bytes != usual.body_bytes   ? "body-limit"
                       : options->pixels != usual.pixels           ? "pixel-limit"
                       : options->request_pixels != 0              ? "request-pixel-limit"
                       : options->seconds > usual.seconds          ? "time-limit"
                       : options->seconds < usual.seconds          ? "time-limit"
                       : options->connections != usual.connections ? "connections"
                       : options->requests != usual.requests       ? "requests"
                                                                   : NULL;
    return name ? TDM_FAIL(err, TDM_E_USAGE, "--%s is for a server: it wants --serve", name)
                : TDM_OK;
}

static tdm_status answer(struct tdmi_call *call, tdm_model *model,
                         const struct tdm_serve_options *options, tdm_error *err)
{
    tdm_server *server = NULL;
    tdm_status status = tdm_server_start(model, options, &server, err);
    if (status != TDM_OK)
        return status;
    tdm_log(TDM_LOG_INFO, "%s with %d classes answers at %s until Ctrl-C", tdm_model_name(model),
            tdm_model_classes(model), tdm_server_url(server));
    if (!call->json) {
        tdmi_print(call->out, "%s\n", tdm_server_url(server));
        status = tdmi_output_check(call->out, err);
    }
    if (status == TDM_OK)
        tdm_server_wait(server);
    if (call->json)
        tdm_json_string(call->json, "url", tdm_server_url(server));
    const struct tdm_serve_counts counts = tdm_server_stop(server);
    if (call->json) {
        tdm_json_integer(call->json, "requests", counts.requests);
        tdm_json_integer(call->json, "pictures", counts.pictures);
    }
    tdm_log(TDM_LOG_INFO, "%lld %s answered, %lld %s predicted", (long long)counts.requests,
            counts.requests == 1 ? "request was" : "requests were", (long long)counts.pictures,
            counts.pictures == 1 ? "picture" : "pictures");
    return status;
}

tdm_status tdmi_serve(struct tdmi_call *call, const struct tdm_model_options *model,
                      const struct tdm_serve_options *options, tdm_error *err)
{
    struct tdm_serve_options own = *options;
    tdm_model *opened = NULL;
    const char *token = getenv("TANDEM_TOKEN"); /* never an option: others see those of a process */
    if (!own.token_file && token)
        own.token = token;
    tdm_status status =
        own.token && !*token
            ? TDM_FAIL(err, TDM_E_USAGE,
                       "TANDEM_TOKEN is empty, which is no token; unset it to serve without one")
            : tdm_serve_check(&own, err);
    if (status != TDM_OK && own.token && *own.token)
        status = TDM_WRAP(err, status, "serving with the token in TANDEM_TOKEN");
    if (status == TDM_OK)
        status = tdm_model_open(call->arguments[0], model, &opened, err);
    if (status == TDM_OK)
        status = answer(call, opened, &own, err);
    tdm_model_close(opened);
    return status;
}
