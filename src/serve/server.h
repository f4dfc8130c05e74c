/*
 * A server, its requests, and what a route is. Reading order: http.h, this, request.c.
 *
 *   connections ─► http (one thread) ─► request.c: guard, route, body
 *                                           │ route_predict.c
 *                                           ▼
 *                                       predictor (one thread, owns the model)
 *                                           │ what waits, in batches (share.h)
 *                                           ▼
 *                                       answers, each to its connection
 */
#pragma once

#include "base/scope.h"
#include "base/text/text.h"
#include "serve/address.h"
#include "serve/guard.h"
#include "serve/http.h"
#include "serve/slots.h"
#include "tandem/json.h"
#include "tandem/model.h"
#include <stdatomic.h>

typedef struct tdmi_predictor tdmi_predictor;
struct tdmi_request;

/* ---- routes -------------------------------------------------------------------------------- */

struct tdmi_route {
    const char *path;
    const char *method; /* "GET" (HEAD, too) or "POST" */
    bool is_open;       /* answered without a token: says nothing about the model */
    /* Check the head; NULL: no check. Refuses through tdmi_request_refuse. */
    void (*look)(struct tdmi_request *request, const struct tdmi_http_head *head);
    /* ?name=value; NULL: the route takes none. */
    void (*argument)(void *request, const char *name, const char *value);
    /* The whole request is there: answers, or hands the request to the predictor. */
    void (*answer)(struct tdmi_request *request);
};

#define X(name) extern const struct tdmi_route tdmi_route_##name;
#include "serve/routes.def"
#undef X

/* ---- a request ------------------------------------------------------------------------------ */

struct tdmi_request {
    tdm_server *server;
    tdmi_http_connection *connection;
    const struct tdmi_route *route; /* NULL: there is none */
    int64_t begun_ns, deadline_ns;
    bool is_answered; /* answer stands; a body that still comes is thrown away */
    bool is_finished;
    struct tdmi_request_slot slot;     /* held from the whole body to its answer */
    struct tdmi_request *next_arrival; /* in tdm_server.arriving */
    int64_t body_bytes;
    tdmi_text body;
    struct tdmi_http_answer answer;
    tdmi_text text; /* the answer's body, where it is made for this request */

    /* of route_predict.c and predictor.c */
    bool is_multipart;
    char content_type[256];
    int top;
    bool has_logits;
    bool has_top, has_logits_argument; /* ?top, ?logits: once each */
    struct tdm_picture *pictures;
    int64_t *pixels; /* of each, as its header says; 0: it does not, or more than is accepted */
    int n_pictures, n_predicted, n_seen;
    int n_in_batch; /* of its pictures, from n_seen on, are being worked on */
    tdm_json_writer *json;
    char problem[TDM_ERROR_TEXT_BYTES]; /* of the first picture that is none */
    tdm_status problem_status;
    bool is_waiting;           /* between two batches, or before the first */
    atomic_int hurry;          /* why it is to end soon: enum tdmi_hurry */
    struct tdmi_request *next; /* that waits, or in the same batch */
};

enum tdmi_hurry {
    TDMI_HURRY_NOT,
    TDMI_HURRY_LATE,
    TDMI_HURRY_GONE,
    TDMI_HURRY_CROWDED, /* another address has its slot */
};

/* {"error": {"status": 404, "message": "…"}}: one sentence. Only the first answer counts. */
void tdmi_request_refuse(struct tdmi_request *request, int status, const char *format, ...)
    TDM_PRINTF(3, 4);
/* text is the request's own or lives as long as the server. */
void tdmi_request_answer(struct tdmi_request *request, int status, const char *type,
                         const char *text, size_t length_bytes);
/* 200 and the request's own text as JSON, or a refusal where there was no memory for it. */
void tdmi_request_answer_text(struct tdmi_request *request);
void tdmi_request_header(struct tdmi_request *request, const char *name, const char *value);
/* 503: every slot is taken. */
void tdmi_request_refuse_crowded(struct tdmi_request *request);

/* The layer's view of all that. */
struct tdmi_http_handler tdmi_request_handler(tdm_server *server);

/* ---- the server ------------------------------------------------------------------------------ */

struct tdm_server {
    tdm_model *model;
    struct tdm_serve_options options; /* without its strings */
    const struct tdmi_http_table *layer;
    tdmi_http *http;
    int listener;
    char url[80];
    struct tdmi_guard guard;
    tdmi_predictor *predictor;
    tdmi_text about; /* the model, as JSON */
    int64_t started_ns;
    /* Used by the HTTP layer's thread: */
    struct tdmi_slots slots;
    struct tdmi_request *arriving; /* whose bodies are not there yet; the oldest first */
    int64_t held_bytes;            /* of bodies, arriving or whole */
    atomic_bool is_draining;
    atomic_int n_open; /* requests begun and not ended */
    atomic_llong n_requests, n_pictures;
};

/* ---- the predictor ----------------------------------------------------------------------------
 */

tdm_status tdmi_predictor_start(tdm_server *server, tdmi_predictor **predictor,
                                tdm_error *err) TDM_MUST_USE;
/* Finish the current batch, refuse waiting requests, and accept no more. Both accept NULL. */
void tdmi_predictor_stop(tdmi_predictor *predictor);
void tdmi_predictor_free(tdmi_predictor *predictor);
/* Suspends the request's connection until its pictures are answered. False: it is over. */
bool tdmi_predictor_push(tdmi_predictor *predictor, struct tdmi_request *request);
/* Refuses the request now where it waits, else when its batch is over; images of it that are not
 * decoded by then are left out. Nothing happens to one that is answered already. */
void tdmi_predictor_hurry(tdmi_predictor *predictor, struct tdmi_request *request,
                          enum tdmi_hurry why);
