/*
 * The one thread that asks the model. Whatever waits when it is free becomes one batch: nobody
 * waits for company, and a busy server predicts in batches all the same. Pictures do not see each
 * other, so a picture's answer has the same bits in any batch.
 */
#include "base/memory.h"
#include "serve/server.h"
#include "tandem/text.h"
#include "train/predict.h"

#include <pthread.h>
#include <stdio.h>

enum { batch_pictures = 64 }; /* more than that wait for the next one; one request may have more */

struct tdmi_predictor {
    tdm_server *server;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tdmi_request *first, *last; /* that wait, in the order they came */
    bool is_over;
};

/* ---- a batch -----------------------------------------------------------------------------------
 */

struct batch {
    struct tdmi_request *first; /* a list by next */
    size_t n_pictures;
    int top;
    struct tdmi_request *at; /* whose pictures are being answered */
};

static tdm_status on_prediction(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct batch *batch = self;
    while (batch->at->n_seen == batch->at->n_pictures)
        batch->at = batch->at->next;
    struct tdmi_request *request = batch->at;
    struct tdm_prediction own = *prediction;
    (void)err;
    if (own.n_guesses > request->top) /* the likeliest of more are the likeliest of fewer */
        own.n_guesses = request->top;
    tdm_prediction_to_json(&own, request->has_logits, request->json);
    if (own.problem && request->problem[0] == '\0')
        snprintf(request->problem, sizeof request->problem, "%s", own.problem);
    request->n_seen++;
    request->n_told += !own.problem;
    return TDM_OK;
}

static tdm_status predict(tdm_server *server, struct batch *batch, tdm_error *err)
{
    const struct tdm_serve_options *options = &server->options;
    const struct tdmi_predicting how = {
        .limits = {.max_pixels = options->pixels,
                   .max_bytes = options->body_bytes,
                   .max_ns = (int64_t)(options->seconds * 1e9)},
        .is_finished_when_stopped = true,
    };
    struct tdm_picture *pictures = tdmi_alloc(batch->n_pictures, sizeof *pictures);
    size_t n = 0;
    if (!pictures)
        return TDM_FAIL(err, TDM_E_MEMORY, "listing %zu pictures: out of memory",
                        batch->n_pictures);
    for (struct tdmi_request *request = batch->first; request; request = request->next) {
        for (int i = 0; i < request->n_pictures; i++)
            pictures[n++] = request->pictures[i];
        request->json = tdm_json_writer_new(2);
        tdm_json_object_begin(request->json, NULL);
        tdm_json_array_begin(request->json, "predictions");
    }
    batch->at = batch->first;
    tdm_status status =
        tdmi_model_predict_pictures(server->model, pictures, n, batch->top, &how,
                                    (tdm_prediction_sink){batch, on_prediction}, err);
    tdmi_free(pictures);
    return status;
}

/* What `tandem predict --json` prints. */
static void answer(struct tdmi_request *request, tdm_status status, const tdm_error *err)
{
    const char *text;
    size_t length;
    tdm_json_array_end(request->json);
    tdm_json_object_end(request->json);
    if (status != TDM_OK) {
        tdmi_request_refuse(request, 500, "%s", err->frames[0].text);
    } else if (request->n_told == 0) {
        tdmi_request_refuse(request, 422, "%s", request->problem);
    } else if (tdm_json_finish(request->json, &text, &length, NULL) != TDM_OK) {
        tdmi_request_refuse(request, 500, "there is no memory for the answer");
    } else {
        tdmi_text_add(&request->text, text, length);
        tdmi_text_add(&request->text, "\n", 1);
        if (request->text.is_broken)
            tdmi_request_refuse(request, 500, "there is no memory for the answer");
        tdmi_request_answer(request, 200, "application/json", tdmi_text_string(&request->text),
                            request->text.length_bytes);
    }
}

static void work(tdm_server *server, struct batch *batch)
{
    tdm_error err = {0};
    const tdm_status status = predict(server, batch, &err);
    for (struct tdmi_request *request = batch->first, *next; request; request = next) {
        next = request->next;
        answer(request, status, &err);
        atomic_fetch_add(&server->n_pictures, request->n_told);
        server->layer->resume(server->http,
                              request->connection); /* the request is no longer ours */
    }
}

/* ---- the thread ---------------------------------------------------------------------------------
 */

/* What waits, up to a batch, or false: it is over. */
static bool take(tdmi_predictor *it, struct batch *batch)
{
    struct tdmi_request *last = NULL;
    pthread_mutex_lock(&it->mutex);
    while (!it->first && !it->is_over)
        pthread_cond_wait(&it->changed, &it->mutex);
    *batch = (struct batch){.first = it->first};
    for (struct tdmi_request *request = it->first; request; request = request->next) {
        if (last && batch->n_pictures + (size_t)request->n_pictures > batch_pictures)
            break;
        batch->n_pictures += (size_t)request->n_pictures;
        if (request->top > batch->top)
            batch->top = request->top;
        last = request;
    }
    if (last) {
        it->first = last->next;
        last->next = NULL;
    }
    pthread_mutex_unlock(&it->mutex);
    return last != NULL;
}

static void *run(void *self)
{
    tdmi_predictor *it = self;
    struct batch batch;
    while (take(it, &batch))
        work(it->server, &batch);
    return NULL;
}

bool tdmi_predictor_push(tdmi_predictor *it, struct tdmi_request *request)
{
    pthread_mutex_lock(&it->mutex);
    const bool is_taken = !it->is_over;
    if (is_taken) {
        it->server->layer->suspend(it->server->http, request->connection);
        if (it->first)
            it->last->next = request;
        else
            it->first = request;
        it->last = request;
        pthread_cond_signal(&it->changed);
    }
    pthread_mutex_unlock(&it->mutex);
    return is_taken;
}

tdm_status tdmi_predictor_start(tdm_server *server, tdmi_predictor **predictor, tdm_error *err)
{
    tdmi_predictor *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "starting the thread that predicts: out of memory");
    made->server = server;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    if (pthread_create(&made->thread, NULL, run, made) != 0) {
        pthread_mutex_destroy(&made->mutex);
        pthread_cond_destroy(&made->changed);
        tdmi_free(made);
        return TDM_FAIL(err, TDM_E_SYSTEM, "the thread that predicts could not be started");
    }
    *predictor = made;
    return TDM_OK;
}

void tdmi_predictor_stop(tdmi_predictor *it)
{
    if (!it)
        return;
    pthread_mutex_lock(&it->mutex);
    it->is_over = true;
    pthread_cond_signal(&it->changed);
    pthread_mutex_unlock(&it->mutex);
    pthread_join(it->thread, NULL);
}

void tdmi_predictor_free(tdmi_predictor *it)
{
    if (!it)
        return;
    pthread_mutex_destroy(&it->mutex);
    pthread_cond_destroy(&it->changed);
    tdmi_free(it);
}
