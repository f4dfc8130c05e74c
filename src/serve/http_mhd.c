/*
 * HTTP by libmicrohttpd, the only file that sees it. One thread of ours runs its loop, so that all
 * callbacks, and the sweep that closes connections which take too long, are in one thread and need
 * no lock. The loop sleeps on libmicrohttpd's descriptor and on one of its own, the bell, which
 * rings when a connection is resumed: libmicrohttpd itself would notice with the next packet only.
 * Its own timeout starts anew with every byte and knows no answer, so it is off: each connection
 * has a deadline that no byte moves, which the sweep looks at. libmicrohttpd also does not see the
 * end of a connection that came with its last bytes: it waits for an edge of epoll, and there is
 * none behind them. So the sweep looks for clients that are gone, too.
 */
#include "serve/http.h"
#include "base/clock.h"
#include "base/scope.h"
#include "serve/headers.h"

#include <errno.h>
#include <linux/tcp.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { sweep_ms = 200, connection_memory_bytes = 64 << 10 };
/* While all connections are in use, a client has one second to send a head, … */
static const int64_t crowded_ns = 1000000000;
/* … and as long as so many bytes of a body arrive in each, or of an answer are taken. */
static const double crowded_bytes = 16 << 10;

enum phase {
    FREE,
    HEAD,    /* nothing, or a part of a head, is there */
    BODY,    /* a request has begun and is not there as a whole */
    DISCARD, /* the same, of one that is refused: only because the client would not see it else */
    WORK,    /* it is suspended */
    HURRIED, /* and the handler knows that its time is over */
    ANSWER,  /* to be taken by the client */
    ENDED,   /* it is shut down; libmicrohttpd finds its end and closes it */
};

struct place { /* of an open connection */
    enum phase phase;
    int descriptor;
    int64_t since_ns, deadline_ns;
    int64_t moved_bytes;  /* that had been moved by since_ns, in BODY and ANSWER */
    int64_t line_ns;      /* when the request's first line was there; 0: it is not */
    const char *line_end; /* of the path and its query, while the head is read */
    bool has_odd_target;
    bool is_notified; /* the handler knows that the client has gone */
    void *request;    /* the handler's; NULL: none has begun */
};

struct tdmi_http {
    struct MHD_Daemon *daemon;
    struct tdmi_http_handler handler;
    int64_t request_ns, idle_ns;
    struct place *places;
    struct pollfd *polled;  /* room for as many */
    struct place **watched; /* those that are polled */
    int n_places, n_taken;
    int64_t swept_ns;
    pthread_t thread;
    int bell;
    atomic_bool is_quiet, is_over;
    bool has_thread;
};

/* ---- time ---------------------------------------------------------------------------------- */

static struct place *place_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* Bytes received, and bytes that the client has acknowledged. */
static int64_t moved_bytes(const struct place *place)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(place->descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return 0;
    return (int64_t)(info.tcpi_bytes_received + info.tcpi_bytes_acked);
}

static void enter(struct place *place, enum phase phase, int64_t deadline_ns)
{
    if (!place)
        return;
    place->phase = phase;
    place->deadline_ns = deadline_ns;
    place->since_ns = tdmi_clock_ns();
    if (phase == BODY || phase == ANSWER)
        place->moved_bytes = moved_bytes(place);
}

static void on_connection(void *self, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tdmi_http *http = self;
    struct place *place = *context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (place) {
            *place = (struct place){0};
            http->n_taken--;
        }
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (int i = 0; i < http->n_places && info; i++) {
        if (http->places[i].phase != FREE)
            continue;
        http->places[i].descriptor = info->connect_fd;
        enter(&http->places[i], HEAD, tdmi_clock_ns() + http->idle_ns);
        *context = &http->places[i];
        http->n_taken++;
        return;
    }
}

/* A request's time begins with its first line. What is returned would be its handler's object. */
static void *on_line(void *self, const char *line, struct MHD_Connection *connection)
{
    struct tdmi_http *http = self;
    struct place *place = place_of(connection);
    if (place) {
        place->has_odd_target = line && tdmi_headers_is_odd_target(line);
        place->line_end = line ? line + strlen(line) : NULL;
        place->line_ns = tdmi_clock_ns();
        enter(place, HEAD, place->line_ns + http->idle_ns);
    }
    return NULL;
}

/* Nothing of an answer was sent yet: libmicrohttpd, which takes none before it has the whole
 * request, does not notice. The loop then finds the connection at its end and closes it. */
static void say_last(const struct place *place, const struct tdmi_http_answer *answer)
{
    char head[512];
    int length =
        snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n", answer->status,
                 MHD_get_reason_phrase_for((unsigned)answer->status), answer->length_bytes);
    for (int i = 0; i < TDMI_HTTP_HEADERS && answer->headers[i].name; i++) {
        if (length < (int)sizeof head)
            length += snprintf(head + length, sizeof head - (size_t)length, "%s: %s\r\n",
                               answer->headers[i].name, answer->headers[i].value);
    }
    if (length + 2 >= (int)sizeof head)
        return;
    memcpy(head + length, "\r\n", 2);
    struct iovec pieces[] = {{head, (size_t)length + 2},
                             {(void *)(uintptr_t)answer->body, answer->length_bytes}};
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    /* A client that does not read gets no last words. */
    if (sendmsg(place->descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return;
}

static void shut_down(struct place *place)
{
    shutdown(place->descriptor, SHUT_RDWR);
    enter(place, ENDED, 0);
}

static void end_place(struct tdmi_http *http, struct place *place, bool is_crowded)
{
    if (place->phase == WORK) {
        place->phase = HURRIED;
        http->handler.hurry(place->request, false);
        return;
    }
    if (place->phase == BODY || place->phase == DISCARD)
        say_last(place, http->handler.late(place->request, is_crowded));
    shut_down(place);
}

/* The client has closed its side, and all that it sent before was read. */
static bool is_at_end(const struct place *place)
{
    char byte;
    return recv(place->descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

/* A request that is incomplete by then is ended. A client that waits for its response sends nothing
 * more, so only its disconnecting can be seen. */
static void find_gone(struct tdmi_http *http)
{
    nfds_t n = 0;
    for (int i = 0; i < http->n_places; i++) {
        struct place *place = &http->places[i];
        if (place->phase == FREE || place->phase == ANSWER || place->phase == ENDED ||
            place->is_notified)
            continue;
        http->polled[n] = (struct pollfd){.fd = place->descriptor, .events = POLLRDHUP};
        http->watched[n++] = place;
    }
    if (n == 0 || poll(http->polled, n, 0) <= 0)
        return;
    for (nfds_t i = 0; i < n; i++) {
        struct place *place = http->watched[i];
        if (http->polled[i].revents == 0)
            continue;
        if (place->phase == WORK || place->phase == HURRIED) {
            place->is_notified = true;
            http->handler.hurry(place->request, true);
        } else if (is_at_end(place)) {
            shut_down(place);
        }
    }
}

/* While all connections are in use, idle and slow ones are closed in favour of waiting clients. */
static bool can_go(const struct place *place, int64_t now_ns)
{
    const int64_t spent_ns = now_ns - place->since_ns;
    if (spent_ns <= crowded_ns)
        return false;
    if (place->phase == BODY || place->phase == ANSWER)
        return (double)(moved_bytes(place) - place->moved_bytes) <
               crowded_bytes * 1e-9 * (double)spent_ns;
    return place->phase == HEAD || place->phase == DISCARD;
}

static void sweep(struct tdmi_http *http)
{
    const int64_t now_ns = tdmi_clock_ns();
    const bool is_crowded = http->n_taken == http->n_places;
    if (now_ns - http->swept_ns < sweep_ms * INT64_C(1000000))
        return;
    http->swept_ns = now_ns;
    for (int i = 0; i < http->n_places; i++) {
        struct place *place = &http->places[i];
        if (place->phase == FREE || place->phase == HURRIED || place->phase == ENDED)
            continue;
        if (place->deadline_ns < now_ns)
            end_place(http, place, false);
        else if (is_crowded && can_go(place, now_ns))
            end_place(http, place, true);
    }
    find_gone(http);
}

/* ---- requests ------------------------------------------------------------------------------ */

static enum MHD_Result on_header(void *self, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    (void)kind;
    tdmi_headers_add(self, name, value ? value : "");
    return MHD_YES;
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
    enter(place_of(connection), ANSWER, tdmi_clock_ns() + http->request_ns);
    return is_fine;
}

static uint64_t address_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    union {
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } client;
    uint64_t network;
    if (!info || !info->client_addr)
        return 0;
    if (info->client_addr->sa_family == AF_INET) {
        memcpy(&client.v4, info->client_addr, sizeof client.v4);
        return client.v4.sin_addr.s_addr;
    }
    memcpy(&client.v6, info->client_addr, sizeof client.v6);
    memcpy(&network, &client.v6.sin6_addr, sizeof network);
    return network;
}

/* Is there a NUL in the first line? Then its end is not where its string ends. */
static bool is_cut(const struct place *place, const char *version)
{
    const uintptr_t at = (uintptr_t)version, end = (uintptr_t)place->line_end;
    return at > end + 1 && at < end + connection_memory_bytes;
}

static enum MHD_Result begin(struct tdmi_http *http, struct MHD_Connection *connection,
                             const char *path, const char *method, const char *version,
                             void **request)
{
    struct tdmi_headers headers = {0};
    struct place *place = place_of(connection);
    if (!place || place->line_ns == 0) /* without a deadline nothing is begun */
        return MHD_NO;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &headers);
    headers.has_odd_target = place->has_odd_target || is_cut(place, version);
    struct tdmi_http_head head = {.method = method,
                                  .path = path,
                                  .address = address_of(connection),
                                  .deadline_ns = place->line_ns + http->request_ns};
    tdmi_headers_check(&headers, strcmp(version, MHD_HTTP_VERSION_1_0) == 0, &head);
    enum tdmi_http_body body = TDMI_HTTP_TAKE;
    *request = http->handler.begin(http->handler.self, connection, &head, &body);
    if (!*request)
        return MHD_NO;
    if (body == TDMI_HTTP_REFUSE)
        return send_answer(http, connection, http->handler.finish(*request));
    if (body == TDMI_HTTP_DISCARD)
        enter(place, DISCARD, tdmi_clock_ns() + http->idle_ns);
    else
        enter(place, BODY, head.deadline_ns);
    place->request = *request;
    return MHD_YES;
}

static enum MHD_Result on_request(void *self, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *length_bytes, void **request)
{
    struct tdmi_http *http = self;
    if (!*request)
        return begin(http, connection, path, method, version, request);
    if (*length_bytes > 0) {
        const bool is_taken = http->handler.take(*request, bytes, *length_bytes);
        *length_bytes = 0;
        return is_taken ? MHD_YES : MHD_NO;
    }
    struct place *place = place_of(connection);
    const struct tdmi_http_answer *answer = http->handler.finish(*request);
    if (answer)
        return send_answer(http, connection, answer);
    enter(place, WORK, place ? place->deadline_ns : 0);
    return MHD_YES;
}

static void on_end(void *self, struct MHD_Connection *connection, void **request,
                   enum MHD_RequestTerminationCode code)
{
    struct tdmi_http *http = self;
    struct place *place = place_of(connection);
    (void)code;
    enter(place, HEAD, tdmi_clock_ns() + http->idle_ns);
    if (place) {
        place->request = NULL;
        place->line_ns = 0;
        place->is_notified = false;
    }
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

/* Wait until a connection has something, the bell rings, or it is time to sweep. */
static void wait_for_work(struct tdmi_http *http, int descriptor)
{
    const int64_t swept_ms = (tdmi_clock_ns() - http->swept_ns) / 1000000;
    const unsigned left_ms = swept_ms < sweep_ms ? (unsigned)(sweep_ms - swept_ms) : 0;
    struct pollfd ready[] = {{.fd = descriptor, .events = POLLIN},
                             {.fd = http->bell, .events = POLLIN}};
    MHD_UNSIGNED_LONG_LONG most_ms = left_ms;
    uint64_t rings;
    if (MHD_get_timeout(http->daemon, &most_ms) != MHD_YES || most_ms > left_ms)
        most_ms = left_ms;
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
        wait_for_work(http, descriptor);
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
    tdmi_free(http->watched);
    tdmi_free(http->polled);
    tdmi_free(http->places);
    tdmi_free(http);
}

static tdm_status open_daemon(struct tdmi_http *http, const struct tdmi_http_options *options,
                              tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(http->places, options->most_connections, err));
    TDMI_TRY(TDMI_NEW(http->polled, options->most_connections, err));
    TDMI_TRY(TDMI_NEW(http->watched, options->most_connections, err));
    http->n_places = options->most_connections;
    http->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (http->bell < 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "preparing to answer: %s", strerror(errno));
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, http,
        MHD_OPTION_LISTEN_SOCKET, options->listener, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)options->most_connections, MHD_OPTION_CONNECTION_TIMEOUT, 0U,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)connection_memory_bytes,
        MHD_OPTION_URI_LOG_CALLBACK, on_line, http, MHD_OPTION_NOTIFY_COMPLETED, on_end, http,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
    if (!http->daemon)
        return TDM_FAIL(err, TDM_E_SYSTEM, "libmicrohttpd %s does not start with %d connections",
                        MHD_get_version(), options->most_connections);
    if (pthread_create(&http->thread, NULL, loop, http) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "the thread that answers could not be started");
    http->has_thread = true;
    return TDM_OK;
}

static tdm_status start(const struct tdmi_http_options *options, tdmi_http **http, tdm_error *err)
{
    struct tdmi_http *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->bell = -1;
    made->handler = options->handler;
    made->request_ns = (int64_t)(options->request_seconds * 1e9);
    made->idle_ns = (int64_t)(options->idle_seconds * 1e9);
    *http = made; /* the handler may need it before this returns */
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
        start, quiesce, stop, each_argument, suspend_connection, resume_connection,
    };
    *table_bytes = sizeof table;
    return &table;
}
