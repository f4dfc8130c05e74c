/* GET /model: what the model is, made once when the server starts. */
#include "serve/server.h"

static void answer(struct tdmi_request *request)
{
    const tdmi_text *about = &request->server->about;
    tdmi_request_answer(request, 200, "application/json", tdmi_text_string(about),
                        about->length_bytes);
}

const struct tdmi_route tdmi_route_model = {.path = "/model", .method = "GET", .answer = answer};
