/* GET /healthz: for monitoring; reveals nothing about the model. */
#include "base/clock.h"
#include "serve/server.h"

static void answer(struct tdmi_request *request)
{
    tdm_server *server = request->server;
    tdmi_text_printf(&request->text,
                     "{\"status\": \"ok\", \"requests\": %lld, \"pictures\": %lld, \"open\": %d, "
                     "\"seconds\": %lld}\n",
                     (long long)atomic_load(&server->n_requests),
                     (long long)atomic_load(&server->n_pictures), atomic_load(&server->n_open),
                     (long long)tdmi_clock_seconds_since(server->started_ns));
    tdmi_request_answer_text(request);
}

const struct tdmi_route tdmi_route_health = {
    .path = "/healthz", .method = "GET", .is_open = true, .answer = answer};
