/* Starting and ending a server: address, guard, model, then the threads; backwards at the end. */
#include "serve/server.h"
#include "base/clock.h"
#include "base/sized.h"
#include "base/text/json.h"
#include "graph/graph.h"
#include "tandem/event.h"
#include "train/model/model_internal.h"

#include <time.h>
#include <unistd.h>

static const double idle_seconds = 10, last_words_seconds = 1;
enum { nap_ms = 20 };

void tdm_serve_options_init(struct tdm_serve_options *options, size_t struct_bytes)
{
    static const struct tdm_serve_options usual = {
        .address = "127.0.0.1:8080",
        .top = 5,
        .body_bytes = 32 << 20,
        .pixels = 100000000, /* and four times that of a request */
        .seconds = 30,
        .connections = 64,
        .requests = 16,
    };
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

/* ---- options ------------------------------------------------------------------------------ */

static tdm_status check_numbers(const struct tdm_serve_options *o, tdm_error *err)
{
    if (o->top < 1 || o->top > 1000)
        return TDM_FAIL(err, TDM_E_USAGE, "serving the %d likeliest classes; 1 to 1000 is accepted",
                        o->top);
    if (o->body_bytes < 1024 || o->body_bytes > 1 << 30)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "serving bodies up to %lld bytes; 1024 to 1073741824 is accepted",
                        (long long)o->body_bytes);
    if (o->pixels < 1)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "serving images up to %lld pixels; at least 1 is accepted",
                        (long long)o->pixels);
    if (o->request_pixels < 0 || (o->request_pixels > 0 && o->request_pixels < o->pixels))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "serving requests up to %lld pixels with images up to %lld pixels; a "
                        "request must have room for one image",
                        (long long)o->request_pixels, (long long)o->pixels);
    if (!(o->seconds >= 0.1 && o->seconds <= 3600))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "serving with %g seconds for a request; 0.1 to 3600 is accepted",
                        o->seconds);
    if (o->connections < 1 || o->connections > 10000 || o->requests < 1 || o->requests > 10000)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "serving %d connections and %d requests at a time; 1 to 10000 is accepted",
                        o->connections, o->requests);
    return TDM_OK;
}

static tdm_status check(const struct tdm_serve_options *options, struct tdmi_address *address,
                        struct tdmi_guard *guard, const struct tdmi_http_table **layer,
                        tdm_error *err)
{
    TDMI_TRY(check_numbers(options, err));
    TDMI_TRY(tdmi_address_read(options->address ? options->address : "8080", address, err));
    if (options->token && options->token_file)
        return TDM_FAIL(err, TDM_E_USAGE, "a token and a file with a token exclude each other");
    if (options->token)
        TDMI_TRY(tdmi_guard_set(guard, options->token, "the options", err));
    if (options->token_file)
        TDMI_TRY(tdmi_guard_read(guard, options->token_file, err));
    if (!address->is_loopback && !guard->has_token)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "listening at %s, which others reach, requires a token; without one only "
                        "127.0.0.1 and [::1] are accepted",
                        options->address);
    return tdmi_http_load(layer, err);
}

tdm_status tdm_serve_check(const struct tdm_serve_options *options, tdm_error *err)
{
    const struct tdmi_http_table *layer;
    struct tdmi_address address;
    TDMI_OPTIONS(tdm_serve_options, options, tdm_serve_options_default(), err);
    struct tdmi_guard guard = {0};
    return check(options, &address, &guard, &layer, err);
}

/* ---- description of the model ------------------------------------------------------------- */

static tdm_status describe(tdm_server *server, tdm_error *err)
{
    const struct tdmi_model_file *file = &server->model->file;
    const char *text;
    size_t length;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(2);
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "name", file->network);
    tdm_json_integer(json, "parameters", file->graph->parameters);
    tdm_json_array_begin(json, "classes");
    for (int i = 0; i < file->n_classes; i++)
        tdm_json_string(json, NULL, file->classes[i]);
    tdm_json_array_end(json);
    tdmi_preprocess_to_json(tdmi_graph_preprocess(file->graph), json, "preprocess");
    tdmi_lineage_to_json(&file->lineage, json, "lineage");
    tdm_json_string(json, "tandem", tdm_version());
    tdm_json_object_end(json);
    TDMI_TRY(tdm_json_finish(json, &text, &length, err));
    tdmi_text_add(&server->about, text, length);
    tdmi_text_add(&server->about, "\n", 1);
    TDM_TRY(tdmi_text_status(&server->about, err), err, "describing the model");
    return TDM_OK;
}

/* ---- start, stop -------------------------------------------------------------------------- */

static tdm_status start(tdm_server *server, const struct tdm_serve_options *options, tdm_error *err)
{
    struct tdmi_address address;
    TDMI_TRY(check(options, &address, &server->guard, &server->layer, err));
    if (options->token_file)
        tdmi_guard_warn(options->token_file);
    TDMI_TRY(describe(server, err));
    TDMI_TRY(tdmi_address_listen(&address, &server->listener, err));
    TDMI_TRY(tdmi_predictor_start(server, &server->predictor, err));
    tdmi_address_url(&address, server->url, sizeof server->url);
    const struct tdmi_http_options http = {
        .listener = server->listener,
        .most_connections = options->connections,
        .request_seconds = options->seconds,
        .idle_seconds = options->seconds < idle_seconds ? options->seconds : idle_seconds,
        .handler = tdmi_request_handler(server),
    };
    return server->layer->start(&http, &server->http, err);
}

static void stop_server(tdm_server **server)
{
    (void)tdm_server_stop(*server);
}

tdm_status tdm_server_start(tdm_model *model, const struct tdm_serve_options *options,
                            tdm_server **server, tdm_error *err)
{
    TDMI_OPTIONS(tdm_serve_options, options, tdm_serve_options_default(), err);
    TDMI_AT_END(stop_server) tdm_server *made = NULL;
    TDM_TRY(TDMI_NEW(made, 1, err), err, "starting the server");
    made->model = model;
    made->options = *options;
    made->options.address = made->options.token = made->options.token_file = NULL;
    if (made->options.request_pixels == 0)
        made->options.request_pixels =
            options->pixels > INT64_MAX / 4 ? INT64_MAX : 4 * options->pixels;
    made->slots.most = options->requests;
    made->listener = -1;
    made->started_ns = tdmi_clock_ns();
    TDM_TRY(start(made, options, err), err, "starting the server");
    *server = tdmi_take(&made);
    return TDM_OK;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = nap_ms * 1000000L}, NULL);
}

/* Every request has its end within its time limit, so that is as long as there is something to wait
 * for; what the predictor refuses then has a moment to be sent. */
static void wait_for_requests(tdm_server *server, double seconds)
{
    const int64_t began_ns = tdmi_clock_ns();
    while (atomic_load(&server->n_open) > 0 && tdmi_clock_seconds_since(began_ns) < seconds)
        nap();
}

struct tdm_serve_counts tdm_server_stop(tdm_server *server)
{
    if (!server)
        return (struct tdm_serve_counts){0};
    atomic_store(&server->is_draining, true);
    if (server->http) {
        server->layer->quiesce(server->http);
        wait_for_requests(server, server->options.seconds);
    }
    tdmi_predictor_stop(server->predictor);
    if (server->http)
        wait_for_requests(server, last_words_seconds);
    if (server->layer)
        server->layer->stop(server->http);
    tdmi_predictor_free(server->predictor);
    if (server->listener >= 0)
        close(server->listener);
    const struct tdm_serve_counts counts = tdm_server_counts(server);
    tdmi_text_release(&server->about);
    tdmi_free(server);
    return counts;
}

void tdm_server_wait(const tdm_server *server)
{
    (void)server;
    while (!tdm_stop_is_requested())
        nap();
}

const char *tdm_server_url(const tdm_server *server)
{
    return server->url;
}

struct tdm_serve_counts tdm_server_counts(const tdm_server *server)
{
    return (struct tdm_serve_counts){atomic_load(&server->n_requests),
                                     atomic_load(&server->n_pictures)};
}
