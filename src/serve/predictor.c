/*
 * The one thread that runs the model, in batches: whatever waits when it is free, up to some images
 * for each thread. No request waits for others, and a busy server predicts in full batches all the
 * same. An image's answer has the same bits in any batch. Between two batches a request waits
 * again: only the current batch delays its end, and that has no more pixels than one request may
 * have.
 */
#include "base/clock.h"
#include "serve/server.h"
#include "serve/share.h"
#include "tandem/train.h"
#include "train/model/model_internal.h"
#include "train/evaluate/predict.h"

#include <pthread.h>
#include <stdio.h>

struct batch {
    struct tdmi_request *first; /* a list by next */
    struct tdmi_request *at;    /* whose images are being answered */
    int n_at;                   /* of them */
    int top;
    size_t n_pictures;
    struct tdm_picture pictures[TDMI_MODEL_BATCH];
    struct tdmi_request *owners[TDMI_MODEL_BATCH];
};

struct tdmi_predictor {
    tdm_server *server;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tdmi_request *first; /* that wait, in the order they came */
    bool is_over;
    struct tdmi_share_room room;
    struct tdmi_share_request *waiting; /* images that each waiting request has left, … */
    int *shares;                        /* … and how many of them enter the batch */
    struct batch batch;
};

/* ---- a batch ------------------------------------------------------------------------------ */

/* Each image has the time that remains to its request. */
static bool allow(void *self, size_t index, struct tdmi_image_limits *limits)
{
    const tdmi_predictor *predictor = self;
    struct tdmi_request *request = predictor->batch.owners[index];
    const struct tdm_serve_options *options = &predictor->server->options;
    *limits = (struct tdmi_image_limits){
        .max_pixels = options->pixels,
        .max_bytes = options->body_bytes,
        .max_ns = request->deadline_ns - tdmi_clock_ns(),
    };
    return limits->max_ns > 0 && atomic_load(&request->hurry) == TDMI_HURRY_NOT;
}

static tdm_status on_prediction(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct batch *batch = self;
    while (batch->n_at == batch->at->n_in_batch) {
        batch->at = batch->at->next;
        batch->n_at = 0;
    }
    struct tdmi_request *request = batch->at;
    struct tdm_prediction own = *prediction;
    (void)err;
    if (own.n_guesses > request->top) /* the likeliest of more are the likeliest of fewer */
        own.n_guesses = request->top;
    tdm_prediction_to_json(&own, request->has_logits, request->json);
    if (own.problem && request->problem[0] == '\0') {
        snprintf(request->problem, sizeof request->problem, "%s", own.problem);
        request->problem_status = own.problem_status;
    }
    batch->n_at++;
    request->n_seen++;
    request->n_predicted += !own.problem;
    return TDM_OK;
}

static tdm_status predict(tdmi_predictor *predictor, tdm_error *err)
{
    struct batch *batch = &predictor->batch;
    const struct tdmi_predicting how = {.self = predictor, .allow = allow, .is_finished = true};
    size_t n = 0;
    for (struct tdmi_request *request = batch->first; request; request = request->next) {
        for (int i = 0; i < request->n_in_batch; i++) {
            batch->pictures[n] = request->pictures[request->n_seen + i];
            batch->owners[n++] = request;
        }
        if (request->json)
            continue;
        request->json = tdm_json_writer_new(2);
        tdm_json_object_begin(request->json, NULL);
        tdm_json_array_begin(request->json, "predictions");
    }
    batch->at = batch->first;
    batch->n_at = 0;
    return tdmi_model_predict_pictures(predictor->server->model, batch->pictures, n, batch->top,
                                       &how, (tdm_prediction_sink){batch, on_prediction}, err);
}

/* ---- answers ------------------------------------------------------------------------------ */

/* From here on the request is the layer's again. */
static void give_back(tdmi_predictor *predictor, struct tdmi_request *request)
{
    atomic_fetch_add(&predictor->server->n_pictures, request->n_predicted);
    predictor->server->layer->resume(predictor->server->http, request->connection);
}

/* The output of `tandem predict --json`. */
static void answer(struct tdmi_request *request)
{
    const char *text;
    size_t length;
    tdm_json_array_end(request->json);
    tdm_json_object_end(request->json);
    if (request->n_predicted == 0) {
        tdmi_request_refuse(request, request->problem_status == TDM_E_MEMORY ? 503 : 422, "%s",
                            request->problem);
        return;
    }
    if (tdm_json_finish(request->json, &text, &length, NULL) == TDM_OK) {
        tdmi_text_add(&request->text, text, length);
        tdmi_text_add(&request->text, "\n", 1);
    }
    tdmi_request_answer_text(request);
}

static void refuse_hurried(struct tdmi_request *request, enum tdmi_hurry why)
{
    if (why == TDMI_HURRY_GONE) {
        tdmi_request_refuse(request, 400, "the client closed its side before it was answered");
        return;
    }
    if (why == TDMI_HURRY_CROWDED) {
        tdmi_request_refuse_crowded(request);
        return;
    }
    tdmi_request_header(request, "Retry-After", "1");
    tdmi_request_refuse(request, 503,
                        "%d of %d images were predicted in the %g s that a request has; send "
                        "fewer or smaller ones, or come again when less is asked",
                        request->n_predicted, request->n_pictures,
                        request->server->options.seconds);
}

/* Is there an answer? A request whose time is over, or whose slot another one has, has its answer
 * all the same, if it is whole. */
static bool is_answered(struct tdmi_request *request, tdm_status status, const tdm_error *err)
{
    const enum tdmi_hurry why = (enum tdmi_hurry)atomic_load(&request->hurry);
    const bool is_done = request->n_seen == request->n_pictures;
    if (status != TDM_OK)
        tdmi_request_refuse(request, 500, "%s", tdm_error_sentence(err, 0));
    else if (why == TDMI_HURRY_GONE)
        refuse_hurried(request, why);
    else if (is_done && request->n_predicted == request->n_pictures)
        answer(request);
    else if (why != TDMI_HURRY_NOT)
        refuse_hurried(request, why);
    else if (tdmi_clock_ns() >= request->deadline_ns)
        refuse_hurried(request, TDMI_HURRY_LATE);
    else if (is_done)
        answer(request);
    return request->is_answered;
}

/* Requests without an answer return to their old position, before those that came meanwhile. */
static void wait_again(tdmi_predictor *predictor, struct tdmi_request *first)
{
    struct tdmi_request *hurried = NULL;
    pthread_mutex_lock(&predictor->mutex);
    struct tdmi_request *others = predictor->first, **at = &predictor->first;
    for (struct tdmi_request *request = first, *next; request; request = next) {
        next = request->next;
        request->is_waiting = atomic_load(&request->hurry) == TDMI_HURRY_NOT;
        if (request->is_waiting) {
            *at = request;
            at = &request->next;
        } else {
            request->next = hurried;
            hurried = request;
        }
    }
    *at = others;
    pthread_mutex_unlock(&predictor->mutex);
    for (struct tdmi_request *request = hurried, *next; request; request = next) {
        next = request->next;
        refuse_hurried(request, (enum tdmi_hurry)atomic_load(&request->hurry));
        give_back(predictor, request);
    }
}

static void work(tdmi_predictor *predictor)
{
    tdm_error err = {0};
    struct tdmi_request *unanswered = NULL, **end = &unanswered;
    const tdm_status status = predict(predictor, &err);
    for (struct tdmi_request *request = predictor->batch.first, *next; request; request = next) {
        next = request->next;
        if (is_answered(request, status, &err)) {
            give_back(predictor, request);
        } else {
            *end = request;
            end = &request->next;
        }
    }
    *end = NULL;
    wait_again(predictor, unanswered);
}

/* ---- the thread --------------------------------------------------------------------------- */

/* Shares of those that wait, of which there are options.requests at most. */
static void fill(tdmi_predictor *predictor)
{
    struct batch *batch = &predictor->batch;
    struct tdmi_request **at = &predictor->first, **end = &batch->first;
    int n = 0;
    for (struct tdmi_request *request = predictor->first; request; request = request->next)
        predictor->waiting[n++] =
            (struct tdmi_share_request){.n_pictures = request->n_pictures - request->n_seen,
                                        .pixels = request->pixels + request->n_seen};
    tdmi_share_images(predictor->waiting, n, predictor->room, predictor->shares);
    batch->top = 0;
    for (int i = 0; i < n; i++) {
        struct tdmi_request *request = *at;
        if (predictor->shares[i] == 0) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        request->n_in_batch = predictor->shares[i];
        request->is_waiting = false;
        batch->top = request->top > batch->top ? request->top : batch->top;
        *end = request;
        end = &request->next;
    }
    *end = NULL;
}

static bool take(tdmi_predictor *predictor)
{
    pthread_mutex_lock(&predictor->mutex);
    while (!predictor->first && !predictor->is_over)
        pthread_cond_wait(&predictor->changed, &predictor->mutex);
    const bool is_over = predictor->is_over;
    if (!is_over)
        fill(predictor);
    pthread_mutex_unlock(&predictor->mutex);
    return !is_over;
}

static void *run(void *self)
{
    tdmi_predictor *predictor = self;
    while (take(predictor))
        work(predictor);
    pthread_mutex_lock(&predictor->mutex);
    struct tdmi_request *rest = predictor->first;
    predictor->first = NULL;
    for (struct tdmi_request *request = rest; request; request = request->next)
        request->is_waiting = false;
    pthread_mutex_unlock(&predictor->mutex);
    for (struct tdmi_request *request = rest, *next; request; request = next) {
        next = request->next;
        tdmi_request_refuse(request, 503, "the server is ending");
        give_back(predictor, request);
    }
    return NULL;
}

bool tdmi_predictor_push(tdmi_predictor *predictor, struct tdmi_request *request)
{
    struct tdmi_request **end = &predictor->first;
    pthread_mutex_lock(&predictor->mutex);
    const bool is_taken = !predictor->is_over;
    if (is_taken) {
        predictor->server->layer->suspend(predictor->server->http, request->connection);
        while (*end)
            end = &(*end)->next;
        *end = request;
        request->next = NULL;
        request->is_waiting = true;
        pthread_cond_signal(&predictor->changed);
    }
    pthread_mutex_unlock(&predictor->mutex);
    return is_taken;
}

void tdmi_predictor_hurry(tdmi_predictor *predictor, struct tdmi_request *request,
                          enum tdmi_hurry why)
{
    struct tdmi_request **at = &predictor->first;
    pthread_mutex_lock(&predictor->mutex);
    const bool is_waiting = request->is_waiting;
    atomic_store(&request->hurry, (int)why);
    if (is_waiting) {
        while (*at != request)
            at = &(*at)->next;
        *at = request->next;
        request->is_waiting = false;
    }
    pthread_mutex_unlock(&predictor->mutex);
    if (is_waiting) {
        refuse_hurried(request, why);
        give_back(predictor, request);
    }
}

/* ---- start, stop -------------------------------------------------------------------------- */

TDMI_POINTER_RELEASE(tdmi_predictor, tdmi_predictor_free)

tdm_status tdmi_predictor_start(tdm_server *server, tdmi_predictor **predictor, tdm_error *err)
{
    TDMI_AT_END(tdmi_predictor_free_at) tdmi_predictor *made = NULL;
    const int room = TDMI_MODEL_PIECE * tdmi_pool_threads(server->model->pool);
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->server = server;
    made->room =
        (struct tdmi_share_room){.pictures = room < TDMI_MODEL_BATCH ? room : TDMI_MODEL_BATCH,
                                 .pixels = server->options.request_pixels};
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    TDMI_TRY(TDMI_NEW(made->waiting, server->options.requests, err));
    TDMI_TRY(TDMI_NEW(made->shares, server->options.requests, err));
    if (pthread_create(&made->thread, NULL, run, made) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "the thread that predicts could not be started");
    *predictor = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_predictor_stop(tdmi_predictor *predictor)
{
    if (!predictor)
        return;
    pthread_mutex_lock(&predictor->mutex);
    predictor->is_over = true;
    pthread_cond_signal(&predictor->changed);
    pthread_mutex_unlock(&predictor->mutex);
    pthread_join(predictor->thread, NULL);
}

void tdmi_predictor_free(tdmi_predictor *predictor)
{
    if (!predictor)
        return;
    pthread_mutex_destroy(&predictor->mutex);
    pthread_cond_destroy(&predictor->changed);
    tdmi_free(predictor->shares);
    tdmi_free(predictor->waiting);
    tdmi_free(predictor);
}
