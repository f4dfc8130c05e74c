/*
 * The HTTP layer behind one table: only http_mhd.c uses libmicrohttpd, and that file is a plugin,
 * libtandem_http.so (base/system/plugin.h), opened when a server starts.
 *
 * One thread of the layer reads and writes all connections and calls the handler. A request passes
 *
 *     begin ─► take … take ─► finish ─► (suspend … resume ─► finish) ─► answer sent ─► end
 *
 * and end comes for every begin, also when the client has disconnected. The layer handles timeouts:
 * it ends connections that take too long to send a head or to read a response, whose client has
 * disconnected, or which are slow while others wait for a connection; it calls late when a request
 * is not answered at its deadline, and hurry when its client has disconnected.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdmi_http tdmi_http;
typedef struct MHD_Connection tdmi_http_connection;

struct tdmi_http_head {        /* strings are lent for the call; NULL: not there */
    const char *method, *path; /* the path without its query, %-escapes read */
    const char *host, *origin, *authorization, *content_type;
    uint64_t address;      /* of the client: its IPv4 address, or its IPv6 network of 64 bits */
    int64_t length_bytes;  /* of the body; 0: none, -1: not given */
    bool wants_permission; /* the client sends its body only when it may: Expect: 100-continue */
    int64_t deadline_ns;   /* of tdmi_clock_ns(): when the answer is to be there */
    /* 0 and NULL, or the status and the sentence to refuse the request with, unread: other programs
     * on the way may see another one in the same bytes. */
    int problem_status;
    const char *problem;
};

enum tdmi_http_body {
    TDMI_HTTP_TAKE,
    TDMI_HTTP_DISCARD, /* the request is answered already: its body is read for a short time only */
    TDMI_HTTP_REFUSE,  /* it is answered (finish) without reading a body, and closed */
};

enum { TDMI_HTTP_HEADERS = 8 };

struct tdmi_http_answer {
    int status;
    const void *body; /* stays until end */
    size_t length_bytes;
    struct tdmi_http_header {
        const char *name, *value;
    } headers[TDMI_HTTP_HEADERS]; /* name NULL: past the last */
};

struct tdmi_http_handler { /* called by one thread */
    void *self;
    /* NULL: out of memory, the connection is closed. */
    void *(*begin)(void *self, tdmi_http_connection *connection, const struct tdmi_http_head *head,
                   enum tdmi_http_body *body);
    /* The next bytes of the body; false closes the connection. */
    bool (*take)(void *request, const void *bytes, size_t length_bytes);
    /* The whole request is there. NULL: it was suspended, and is asked again when resumed. */
    const struct tdmi_http_answer *(*finish)(void *request);
    /* The body is not there, and the deadline has passed or (is_crowded) it comes slowly while
     * others wait for a connection: what is said before this one is closed. */
    const struct tdmi_http_answer *(*late)(void *request, bool is_crowded);
    /* For a suspended request: the client has disconnected, or the deadline has passed. Each is
     * called at most once; resume the request soon, if that has not happened already. */
    void (*hurry)(void *request, bool is_gone);
    void (*end)(void *request);
};

struct tdmi_http_options {
    int listener; /* a socket that listens; stays the caller's */
    int most_connections;
    double request_seconds; /* from a request's first line to its answer; for that to be taken */
    double idle_seconds;    /* between two requests of a connection, and for a head to arrive */
    struct tdmi_http_handler handler;
};

struct tdmi_http_table {
    /* The handler is called as soon as *http is set, before start returns. */
    tdm_status (*start)(const struct tdmi_http_options *options, tdmi_http **http, tdm_error *err);
    /* Accept no new connections; open ones continue. */
    void (*quiesce)(tdmi_http *http);
    /* Closes what is open. Nothing may be suspended. Accepts NULL. */
    void (*stop)(tdmi_http *http);
    /* Inside begin. */
    void (*each_argument)(tdmi_http_connection *connection,
                          void (*visit)(void *self, const char *name, const char *value),
                          void *self);
    /* Inside finish; resume from any thread, once for each. */
    void (*suspend)(tdmi_http *http, tdmi_http_connection *connection);
    void (*resume)(tdmi_http *http, tdmi_http_connection *connection);
};

/* TDM_E_ABSENT: this build has no libmicrohttpd, or the library cannot be opened here. */
tdm_status tdmi_http_load(const struct tdmi_http_table **table, tdm_error *err) TDM_MUST_USE;
