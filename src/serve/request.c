/*
 * The life of a request: who asks, for what, how long is the body, the answer. All of it runs in
 * the layer's thread; only while a request waits for its pictures does the predictor hold it.
 *
 * A request that is refused for its head alone is answered at once where its body is too long,
 * where nobody can tell how long it is, or where the client waits for permission to send it. Any
 * other body is read and thrown away first: a client that is still sending would not see an answer
 * before its connection breaks.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/quote.h"
#include "serve/server.h"
#include "tandem/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ignored_times = 4 }; /* bodies of unsaid length are read to so many times the limit */

static const struct tdmi_route *const routes[] = {
#define X(name) &tdmi_route_##name,
#include "serve/routes.def"
#undef X
};

/* The most that bodies may take, arriving and whole: as much as the whole ones of every slot. */
static int64_t body_room(const tdm_server *server)
{
    return server->options.requests * server->options.body_bytes;
}

enum { n_routes = sizeof routes / sizeof *routes };

/* ---- answers --------------------------------------------------------------------------------- */

void tdmi_request_header(struct tdmi_request *request, const char *name, const char *value)
{
    for (int i = 0; i < TDMI_HTTP_HEADERS; i++) {
        if (request->answer.headers[i].name)
            continue;
        request->answer.headers[i] = (struct tdmi_http_header){name, value};
        return;
    }
}

void tdmi_request_answer(struct tdmi_request *request, int status, const char *type,
                         const char *text, size_t length_bytes)
{
    if (request->is_answered)
        return;
    request->answer.status = status;
    request->answer.body = text;
    request->answer.length_bytes = length_bytes;
    tdmi_request_header(request, "Content-Type", type);
    tdmi_request_header(request, "Cache-Control", "no-store");
    tdmi_request_header(request, "X-Content-Type-Options", "nosniff");
    if (atomic_load(&request->server->is_draining))
        tdmi_request_header(request, "Connection", "close");
    request->is_answered = true;
}

void tdmi_request_answer_text(struct tdmi_request *request)
{
    if (request->text.length_bytes == 0 || request->text.is_broken)
        tdmi_request_refuse(request, 500, "there is no memory for the answer");
    tdmi_request_answer(request, 200, "application/json", tdmi_text_string(&request->text),
                        request->text.length_bytes);
}

void tdmi_request_refuse(struct tdmi_request *request, int status, const char *format, ...)
{
    static const char nothing[] =
        "{\"error\": {\"status\": 500, \"message\": \"out of memory\"}}\n";
    char message[2 * TDM_ERROR_TEXT_BYTES];
    const char *text = NULL;
    size_t length = 0;
    va_list arguments;
    if (request->is_answered)
        return;
    va_start(arguments, format);
    tdmi_quote(message, sizeof message, format, arguments);
    va_end(arguments);
    tdm_json_writer *json = tdm_json_writer_new(0);
    tdm_json_object_begin(json, NULL);
    tdm_json_object_begin(json, "error");
    tdm_json_integer(json, "status", status);
    tdm_json_string(json, "message", message);
    tdm_json_object_end(json);
    tdm_json_object_end(json);
    if (tdm_json_finish(json, &text, &length, NULL) == TDM_OK) {
        tdmi_text_clear(&request->text);
        tdmi_text_add(&request->text, text, length);
        tdmi_text_add(&request->text, "\n", 1);
    }
    tdm_json_writer_free(json);
    if (!text || request->text.is_broken)
        tdmi_request_answer(request, 500, "application/json", nothing, sizeof nothing - 1);
    else
        tdmi_request_answer(request, status, "application/json", tdmi_text_string(&request->text),
                            request->text.length_bytes);
}

void tdmi_request_refuse_crowded(struct tdmi_request *request)
{
    tdmi_request_header(request, "Retry-After", "1");
    tdmi_request_refuse(request, 503,
                        "%d requests with images are being answered, which is the most at a "
                        "time; come again",
                        request->server->options.requests);
}

/* ---- bodies ----------------------------------------------------------------------------------
 */

static void join_arrivals(struct tdmi_request *request)
{
    struct tdmi_request **at = &request->server->arriving;
    while (*at)
        at = &(*at)->next_arrival;
    *at = request;
}

/* Nothing happens to one that is not there. */
static void leave_arrivals(struct tdmi_request *request)
{
    struct tdmi_request **at = &request->server->arriving;
    while (*at && *at != request)
        at = &(*at)->next_arrival;
    if (*at)
        *at = request->next_arrival;
    request->next_arrival = NULL;
}

static void release_body(struct tdmi_request *request)
{
    leave_arrivals(request);
    request->server->held_bytes -= (int64_t)request->body.length_bytes;
    tdmi_text_release(&request->body);
}

/* The oldest bodies that still arrive are the slowest; the rest of them is thrown away. */
static void make_room(tdm_server *server)
{
    while (server->held_bytes > body_room(server) && server->arriving) {
        struct tdmi_request *oldest = server->arriving;
        tdmi_request_header(oldest, "Retry-After", "1");
        tdmi_request_refuse(oldest, 503,
                            "the bodies of all requests have more than %lld bytes, and this one "
                            "has been arriving for the longest; come again",
                            (long long)body_room(server));
        release_body(oldest);
    }
}

/* ---- the head -------------------------------------------------------------------------------- */

static bool answers_to(const struct tdmi_route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

static void find_route(struct tdmi_request *request, const struct tdmi_http_head *head)
{
    for (int i = 0; i < n_routes; i++) {
        if (strcmp(routes[i]->path, head->path) != 0)
            continue;
        request->route = routes[i];
        if (answers_to(routes[i], head->method))
            return;
        tdmi_request_header(request, "Allow",
                            strcmp(routes[i]->method, "GET") == 0 ? "GET, HEAD" : "POST");
        tdmi_request_refuse(request, 405, "%s is answered to %s only", routes[i]->path,
                            routes[i]->method);
        return;
    }
    tdmi_request_refuse(request, 404,
                        "there is nothing here; /, /healthz, /model and /predict are answered");
}

static void no_argument(void *self, const char *name, const char *value)
{
    struct tdmi_request *request = self;
    (void)value;
    tdmi_request_refuse(request, 400, "%s takes no argument; found '%.40s'", request->route->path,
                        name);
}

/* In this order, so that no client learns more than it may. */
static void look(struct tdmi_request *request, const struct tdmi_http_head *head)
{
    tdm_server *server = request->server;
    const char *why = tdmi_guard_refuses(&server->guard, head->host, head->origin);
    if (head->problem)
        tdmi_request_refuse(request, head->problem_status, "%s", head->problem);
    if (atomic_load(&server->is_draining))
        tdmi_request_refuse(request, 503, "the server is ending");
    if (why)
        tdmi_request_refuse(request, 403, "%s", why);
    find_route(request, head);
    if (request->is_answered)
        return;
    if (!request->route->is_open && !tdmi_guard_lets_in(&server->guard, head->authorization)) {
        tdmi_request_header(request, "WWW-Authenticate", "Bearer");
        tdmi_request_refuse(request, 401,
                            "the token is missing or is another one; it is sent as "
                            "'Authorization: Bearer TOKEN'");
    }
    if (!request->is_answered)
        server->layer->each_argument(
            request->connection, request->route->argument ? request->route->argument : no_argument,
            request);
    if (head->length_bytes > server->options.body_bytes)
        tdmi_request_refuse(request, 413, "the body has %lld bytes; %lld are accepted",
                            (long long)head->length_bytes, (long long)server->options.body_bytes);
    if (request->route->look && !request->is_answered)
        request->route->look(request, head);
}

/* This answer is the connection's last. */
static void close_behind(struct tdmi_request *request)
{
    for (int i = 0; i < TDMI_HTTP_HEADERS && request->answer.headers[i].name; i++) {
        if (strcmp(request->answer.headers[i].name, "Connection") == 0)
            return;
    }
    tdmi_request_header(request, "Connection", "close");
}

static void *begin(void *self, tdmi_http_connection *connection, const struct tdmi_http_head *head,
                   enum tdmi_http_body *body)
{
    tdm_server *server = self;
    struct tdmi_request *request = tdmi_alloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->server = server;
    request->connection = connection;
    request->begun_ns = tdmi_clock_ns();
    request->deadline_ns = head->deadline_ns;
    request->top = server->options.top;
    request->slot.address = head->address;
    atomic_fetch_add(&server->n_open, 1);
    look(request, head);
    *body =
        !request->is_answered ? TDMI_HTTP_TAKE
        : head->problem || head->wants_permission || head->length_bytes > server->options.body_bytes
            ? TDMI_HTTP_REFUSE
            : TDMI_HTTP_DISCARD;
    if (*body == TDMI_HTTP_REFUSE)
        close_behind(request);
    if (*body == TDMI_HTTP_TAKE)
        join_arrivals(request);
    return request;
}

/* ---- the body, the answer, the end ------------------------------------------------------------
 */

static bool take(void *self, const void *bytes, size_t length_bytes)
{
    struct tdmi_request *request = self;
    const int64_t most = request->server->options.body_bytes;
    request->body_bytes += (int64_t)length_bytes;
    if (request->body_bytes > ignored_times * most)
        return false;
    if (request->body_bytes > most)
        tdmi_request_refuse(request, 413, "the body has more than the %lld bytes that are accepted",
                            (long long)most);
    if (!request->is_answered) {
        const size_t before = request->body.length_bytes;
        tdmi_text_add(&request->body, bytes, length_bytes);
        request->server->held_bytes += (int64_t)(request->body.length_bytes - before);
        make_room(request->server);
    }
    if (request->body.is_broken)
        tdmi_request_refuse(request, 503, "there is no memory for the body");
    if (request->is_answered)
        release_body(request);
    return true;
}

static const struct tdmi_http_answer *finish(void *self)
{
    struct tdmi_request *request = self;
    leave_arrivals(request);
    if (!request->is_finished && !request->is_answered) {
        request->is_finished = true;
        request->route->answer(request);
        /* The predictor may have answered already: its connection is to be resumed first. */
        if (request->pictures)
            return NULL;
    }
    /* A client that reads its response slowly holds no resource that others wait for. */
    tdmi_slots_leave(&request->server->slots, &request->slot);
    release_body(request);
    return &request->answer;
}

/* One that was refused before has its answer at last. */
static const struct tdmi_http_answer *late(void *self, bool is_crowded)
{
    struct tdmi_request *request = self;
    if (is_crowded && !request->is_answered) {
        tdmi_request_header(request, "Retry-After", "1");
        tdmi_request_refuse(request, 503,
                            "all %d connections are taken, and the body comes slowly; come again",
                            request->server->options.connections);
    }
    tdmi_request_refuse(request, 408,
                        "%lld bytes of the body arrived in the %g s that a request has",
                        (long long)request->body_bytes, request->server->options.seconds);
    close_behind(request);
    return &request->answer;
}

static void hurry(void *self, bool is_gone)
{
    struct tdmi_request *request = self;
    tdmi_predictor_hurry(request->server->predictor, request,
                         is_gone ? TDMI_HURRY_GONE : TDMI_HURRY_LATE);
}

static void end(void *self)
{
    struct tdmi_request *request = self;
    tdm_server *server = request->server;
    tdm_log(TDM_LOG_DEBUG, "%s: %d after %.1f ms, %d of %d images",
            request->route ? request->route->path : "a path that is none", request->answer.status,
            tdmi_clock_seconds_since(request->begun_ns) * 1e3, request->n_predicted,
            request->n_pictures);
    if (request->is_answered)
        atomic_fetch_add(&server->n_requests, 1);
    tdmi_slots_leave(&server->slots, &request->slot);
    release_body(request);
    tdm_json_writer_free(request->json);
    tdmi_free(request->pictures);
    tdmi_free(request->pixels);
    tdmi_text_release(&request->text);
    tdmi_free(request);
    atomic_fetch_sub(&server->n_open, 1);
}

struct tdmi_http_handler tdmi_request_handler(tdm_server *server)
{
    return (struct tdmi_http_handler){server, begin, take, finish, late, hurry, end};
}
