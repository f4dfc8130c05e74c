/*
 * HTTP by libmicrohttpd, the only file that sees it. One thread of ours runs its loop, so that all
 * callbacks, and the sweep that closes connections which take too long, are in one thread and need
 * no lock. The loop sleeps on libmicrohttpd's descriptor and on one of its own, the bell, which
 * rings when a connection is resumed: libmicrohttpd itself would notice with the next packet only.
 * Its own timeout starts anew with every byte: it ends idle connections, and the sweep those that
 * drip.
 */
#include "serve/http.h"
#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { sweep_ms = 200, connection_memory_bytes = 64 << 10 };

struct place { /* of an open connection */
    int descriptor;
    int64_t deadline_ns; /* 0: none, its request is being worked on */
    bool is_taken;
};

struct tdmi_http {
    struct MHD_Daemon *daemon;
    struct tdmi_http_handler handler;
    int64_t request_ns, idle_ns;
    struct place *places;
    int n_places;
    pthread_t thread;
    int bell;
    atomic_bool is_quiet, is_over;
    bool has_thread;
};

static const char *version(void)
{
    return MHD_get_version();
}

/* ---- time ---------------------------------------------------------------------------------- */

static struct place *place_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void allow(struct MHD_Connection *connection, int64_t ns)
{
    struct place *place = place_of(connection);
    if (place)
        place->deadline_ns = ns > 0 ? tdmi_clock_ns() + ns : 0;
}

static void on_connection(void *self, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tdmi_http *http = self;
    struct place *place = *context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (place)
            *place = (struct place){0};
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (int i = 0; i < http->n_places && info; i++) {
        if (http->places[i].is_taken)
            continue;
        http->places[i] =
            (struct place){.descriptor = info->connect_fd,
                           .deadline_ns = tdmi_clock_ns() + http->request_ns + http->idle_ns,
                           .is_taken = true};
        *context = &http->places[i];
        return;
    }
}

/* The loop then finds the connection at its end and closes it. */
static void sweep(struct tdmi_http *http)
{
    const int64_t now_ns = tdmi_clock_ns();
    for (int i = 0; i < http->n_places; i++) {
        struct place *place = &http->places[i];
        if (place->is_taken && place->deadline_ns != 0 && place->deadline_ns < now_ns) {
            shutdown(place->descriptor, SHUT_RDWR);
            place->deadline_ns = 0;
        }
    }
}

/* ---- requests ------------------------------------------------------------------------------ */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* libmicrohttpd has refused lengths that are no numbers. */
static int64_t length_of(struct MHD_Connection *connection)
{
    const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING))
        return -1;
    return length ? strtoll(length, NULL, 10) : 0;
}

static enum MHD_Result send_answer(struct tdmi_http *http, struct MHD_Connection *connection,
                                   const struct tdmi_http_answer *answer)
{
    union {
        const void *lent;
        void *taken; /* libmicrohttpd takes what it only reads without const */
    } body = {answer->body};
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer->length_bytes, body.taken, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    enum MHD_Result is_fine = MHD_YES;
    for (int i = 0; i < TDMI_HTTP_HEADERS && answer->headers[i].name && is_fine == MHD_YES; i++)
        is_fine =
            MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value);
    if (is_fine == MHD_YES)
        is_fine = MHD_queue_response(connection, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    allow(connection, http->request_ns);
    return is_fine;
}

static enum MHD_Result begin(struct tdmi_http *http, struct MHD_Connection *connection,
                             const char *path, const char *method, void **request)
{
    const char *expect = header(connection, MHD_HTTP_HEADER_EXPECT);
    const struct tdmi_http_head head = {
        .method = method,
        .path = path,
        .host = header(connection, MHD_HTTP_HEADER_HOST),
        .origin = header(connection, "Origin"),
        .authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .content_type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE),
        .length_bytes = length_of(connection),
        .wants_permission = expect && strcasecmp(expect, "100-continue") == 0,
    };
    bool is_refused = false;
    allow(connection, http->request_ns);
    *request = http->handler.begin(http->handler.self, connection, &head, &is_refused);
    if (!*request)
        return MHD_NO;
    return is_refused ? send_answer(http, connection, http->handler.finish(*request)) : MHD_YES;
}

static enum MHD_Result on_request(void *self, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *http_version, const char *bytes,
                                  size_t *length_bytes, void **request)
{
    struct tdmi_http *http = self;
    (void)http_version;
    if (!*request)
        return begin(http, connection, path, method, request);
    if (*length_bytes > 0) {
        const bool is_taken = http->handler.take(*request, bytes, *length_bytes);
        *length_bytes = 0;
        return is_taken ? MHD_YES : MHD_NO;
    }
    allow(connection, 0);
    const struct tdmi_http_answer *answer = http->handler.finish(*request);
    return answer ? send_answer(http, connection, answer) : MHD_YES;
}

static void on_end(void *self, struct MHD_Connection *connection, void **request,
                   enum MHD_RequestTerminationCode code)
{
    struct tdmi_http *http = self;
    (void)code;
    allow(connection, http->request_ns + http->idle_ns);
    if (*request)
        http->handler.end(*request);
    *request = NULL;
}

/* ---- for the handler ----------------------------------------------------------------------- */

struct visit {
    void (*visit)(void *self, const char *name, const char *value);
    void *self;
};

static enum MHD_Result on_argument(void *self, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    const struct visit *visit = self;
    (void)kind;
    visit->visit(visit->self, name, value ? value : "");
    return MHD_YES;
}

static void each_argument(tdmi_http_connection *connection,
                          void (*visit)(void *self, const char *name, const char *value),
                          void *self)
{
    struct visit it = {visit, self};
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, on_argument, &it);
}

static void ring(tdmi_http *http)
{
    const uint64_t once = 1;
    /* A bell that cannot count further rings anyway. */
    if (write(http->bell, &once, sizeof once) < 0)
        return;
}

static void suspend_connection(tdmi_http *http, tdmi_http_connection *connection)
{
    (void)http;
    MHD_suspend_connection(connection);
}

static void resume_connection(tdmi_http *http, tdmi_http_connection *connection)
{
    MHD_resume_connection(connection);
    ring(http);
}

/* ---- start, stop --------------------------------------------------------------------------- */

/* Until a connection has something, the bell rings, or it is time to sweep. */
static void sleep_well(struct tdmi_http *http, int descriptor)
{
    struct pollfd ready[] = {{.fd = descriptor, .events = POLLIN},
                             {.fd = http->bell, .events = POLLIN}};
    MHD_UNSIGNED_LONG_LONG most_ms = sweep_ms;
    uint64_t rings;
    if (MHD_get_timeout(http->daemon, &most_ms) != MHD_YES || most_ms > sweep_ms)
        most_ms = sweep_ms;
    if (poll(ready, 2, (int)most_ms) > 0 && (ready[1].revents & POLLIN) &&
        read(http->bell, &rings, sizeof rings) < 0)
        return;
}

static void *loop(void *self)
{
    struct tdmi_http *http = self;
    const int descriptor = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    bool is_quiet = false;
    while (!atomic_load(&http->is_over)) {
        if (!is_quiet && atomic_load(&http->is_quiet)) {
            MHD_quiesce_daemon(http->daemon);
            is_quiet = true;
        }
        sleep_well(http, descriptor);
        MHD_run(http->daemon);
        sweep(http);
    }
    return NULL;
}

static void stop(tdmi_http *http)
{
    if (!http)
        return;
    atomic_store(&http->is_over, true);
    if (http->has_thread) {
        ring(http);
        pthread_join(http->thread, NULL);
    }
    if (http->daemon) {
        MHD_quiesce_daemon(http->daemon); /* or the caller's socket would be closed */
        MHD_stop_daemon(http->daemon);
    }
    if (http->bell >= 0)
        close(http->bell);
    tdmi_free(http->places);
    tdmi_free(http);
}

static tdm_status open_daemon(struct tdmi_http *http, const struct tdmi_http_options *options,
                              tdm_error *err)
{
    const unsigned idle_s = (unsigned)(options->idle_seconds + 1);
    http->places = tdmi_alloc((size_t)options->most_connections, sizeof *http->places);
    if (!http->places)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing %d connections: out of memory",
                        options->most_connections);
    http->n_places = options->most_connections;
    http->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (http->bell < 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "preparing to answer: %s", strerror(errno));
    http->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, http,
                         MHD_OPTION_LISTEN_SOCKET, options->listener, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)options->most_connections, MHD_OPTION_CONNECTION_TIMEOUT, idle_s,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)connection_memory_bytes,
                         MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, on_end, http,
                         MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
    if (!http->daemon)
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "libmicrohttpd %s does not start (%d connections are asked for)",
                        MHD_get_version(), options->most_connections);
    if (pthread_create(&http->thread, NULL, loop, http) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "the thread that answers could not be started");
    http->has_thread = true;
    return TDM_OK;
}

static tdm_status start(const struct tdmi_http_options *options, tdmi_http **http, tdm_error *err)
{
    struct tdmi_http *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "starting the server: out of memory");
    made->bell = -1;
    made->handler = options->handler;
    made->request_ns = (int64_t)(options->request_seconds * 1e9);
    made->idle_ns = (int64_t)(options->idle_seconds * 1e9);
    *http = made; /* the handler may want it before this returns */
    tdm_status status = open_daemon(made, options, err);
    if (status != TDM_OK) {
        *http = NULL;
        stop(made);
    }
    return status;
}

static void quiesce(tdmi_http *http)
{
    atomic_store(&http->is_quiet, true);
    ring(http);
}

const void *tdmi_plugin_table(size_t *table_bytes);

const void *tdmi_plugin_table(size_t *table_bytes)
{
    static const struct tdmi_http_table table = {
        version, start, quiesce, stop, each_argument, suspend_connection, resume_connection,
    };
    *table_bytes = sizeof table;
    return &table;
}
