/*
 * A trained model that answers over HTTP what `tandem predict` answers. The pages and their answers
 * are in docs/reference/http.md.
 */
#ifndef TANDEM_SERVE_H
#define TANDEM_SERVE_H

#include "tandem/error.h"
#include "tandem/model.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_server tdm_server;

struct tdm_serve_options {  /* strings are lent for the call */
    const char *address;    /* "8080", "127.0.0.1:8080", "[::1]:0"; port 0: any that is free */
    const char *token;      /* NULL; without one only loopback is listened on */
    const char *token_file; /* its first line; at most one of the two */
    int top;                /* guesses of a picture, where a request does not say it */
    int64_t body_bytes;     /* the most of one request */
    int64_t pixels;         /* the most of one picture, … */
    int64_t request_pixels; /* … and of all pictures of a request; 0: four times as many */
    double seconds;  /* from a request's first line to its answer; and for that to be taken */
    int connections; /* open at a time; further ones wait */
    int requests;    /* with pictures at a time; further ones are told to come again */
};

TDM_API struct tdm_serve_options tdm_serve_options_default(void);

/* What can be said before there is a model: TDM_E_USAGE for options that make no sense,
 * TDM_E_ABSENT in a build without libmicrohttpd. */
TDM_API tdm_status tdm_serve_check(const struct tdm_serve_options *options,
                                   tdm_error *err) TDM_MUST_USE;

/* Listens and answers, in threads of its own, until it is stopped. The model is the server's until
 * then: nobody else may ask it. */
TDM_API tdm_status tdm_server_start(tdm_model *model, const struct tdm_serve_options *options,
                                    tdm_server **server, tdm_error *err) TDM_MUST_USE;
/* Sleeps until somebody requests to stop (tandem/stop.h). */
TDM_API void tdm_server_wait(const tdm_server *server);

/* "http://127.0.0.1:8080/": where it listens; lives as long as the server. */
TDM_API const char *tdm_server_url(const tdm_server *server);

struct tdm_serve_counts {
    int64_t requests; /* answered, whatever the answer */
    int64_t pictures; /* predicted */
};
TDM_API struct tdm_serve_counts tdm_server_counts(const tdm_server *server);

/* Takes nothing new, finishes what is there, for at most `seconds` and as long as the pictures take
 * that are in the network just then (eight for each thread), and closes; what was answered until
 * then. Accepts NULL. */
TDM_API struct tdm_serve_counts tdm_server_stop(tdm_server *server);

#ifdef __cplusplus
}
#endif
#endif
