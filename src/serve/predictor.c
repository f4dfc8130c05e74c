/*
 * The one thread that asks the model, in turns: whatever waits when it is free, up to some pictures
 * for each thread. Nobody waits for company, and a busy server predicts in batches all the same.
 * Pictures do not see each other, so a picture's answer has the same bits in any turn. Between two
 * turns a request waits again: nothing but the turn under way stands between it and its end, and
 * that has no more pixels than one request may have.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "serve/server.h"
#include "serve/turn.h"
#include "tandem/train.h"
#include "train/model/model_internal.h"
#include "train/evaluate/predict.h"

#include <pthread.h>
#include <stdio.h>

struct turn {
    struct tdmi_request *first; /* a list by next */
    struct tdmi_request *at;    /* whose pictures are being answered */
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
    struct tdmi_turn_room room;
    struct tdmi_turn_request *waiting; /* what those that wait have left, … */
    int *shares;                       /* … and how many of them come into the turn */
    struct turn turn;
};

/* ---- a turn ------------------------------------------------------------------------------------
 */

/* What is left of its request's time is the picture's. */
static bool allow(void *self, size_t index, struct tdmi_image_limits *limits)
{
    const tdmi_predictor *it = self;
    struct tdmi_request *request = it->turn.owners[index];
    const struct tdm_serve_options *options = &it->server->options;
    *limits = (struct tdmi_image_limits){
        .max_pixels = options->pixels,
        .max_bytes = options->body_bytes,
        .max_ns = request->deadline_ns - tdmi_clock_ns(),
    };
    return limits->max_ns > 0 && atomic_load(&request->hurry) == TDMI_HURRY_NOT;
}

static tdm_status on_prediction(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct turn *turn = self;
    while (turn->n_at == turn->at->n_turn) {
        turn->at = turn->at->next;
        turn->n_at = 0;
    }
    struct tdmi_request *request = turn->at;
    struct tdm_prediction own = *prediction;
    (void)err;
    if (own.n_guesses > request->top) /* the likeliest of more are the likeliest of fewer */
        own.n_guesses = request->top;
    tdm_prediction_to_json(&own, request->has_logits, request->json);
    if (own.problem && request->problem[0] == '\0') {
        snprintf(request->problem, sizeof request->problem, "%s", own.problem);
        request->problem_status = own.problem_status;
    }
    turn->n_at++;
    request->n_seen++;
    request->n_told += !own.problem;
    return TDM_OK;
}

static tdm_status predict(tdmi_predictor *it, tdm_error *err)
{
    struct turn *turn = &it->turn;
    const struct tdmi_predicting how = {.self = it, .allow = allow, .is_finished = true};
    size_t n = 0;
    for (struct tdmi_request *request = turn->first; request; request = request->next) {
        for (int i = 0; i < request->n_turn; i++) {
            turn->pictures[n] = request->pictures[request->n_seen + i];
            turn->owners[n++] = request;
        }
        if (request->json)
            continue;
        request->json = tdm_json_writer_new(2);
        tdm_json_object_begin(request->json, NULL);
        tdm_json_array_begin(request->json, "predictions");
    }
    turn->at = turn->first;
    turn->n_at = 0;
    return tdmi_model_predict_pictures(it->server->model, turn->pictures, n, turn->top, &how,
                                       (tdm_prediction_sink){turn, on_prediction}, err);
}

/* ---- answers -----------------------------------------------------------------------------------
 */

/* From here on the request is the layer's again. */
static void give_back(tdmi_predictor *it, struct tdmi_request *request)
{
    atomic_fetch_add(&it->server->n_pictures, request->n_told);
    it->server->layer->resume(it->server->http, request->connection);
}

/* What `tandem predict --json` prints. */
static void answer(struct tdmi_request *request)
{
    const char *text;
    size_t length;
    tdm_json_array_end(request->json);
    tdm_json_object_end(request->json);
    if (request->n_told == 0) {
        tdmi_request_refuse(request, request->problem_status == TDM_E_MEMORY ? 503 : 422, "%s",
                            request->problem);
        return;
    }
    if (tdm_json_finish(request->json, &text, &length, NULL) == TDM_OK) {
        tdmi_text_add(&request->text, text, length);
        tdmi_text_add(&request->text, "\n", 1);
    }
    if (request->text.length_bytes == 0 || request->text.is_broken)
        tdmi_request_refuse(request, 500, "there is no memory for the answer");
    tdmi_request_answer(request, 200, "application/json", tdmi_text_string(&request->text),
                        request->text.length_bytes);
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
                        "%d of %d pictures were predicted in the %g s that a request has; send "
                        "fewer or smaller ones, or come again when less is asked",
                        request->n_told, request->n_pictures, request->server->options.seconds);
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
    else if (is_done && request->n_told == request->n_pictures)
        answer(request);
    else if (why != TDMI_HURRY_NOT)
        refuse_hurried(request, why);
    else if (tdmi_clock_ns() >= request->deadline_ns)
        refuse_hurried(request, TDMI_HURRY_LATE);
    else if (is_done)
        answer(request);
    return request->is_answered;
}

/* What is not answered waits again in its old place, before those that came meanwhile. */
static void wait_again(tdmi_predictor *it, struct tdmi_request *first)
{
    struct tdmi_request *hurried = NULL;
    pthread_mutex_lock(&it->mutex);
    struct tdmi_request *others = it->first, **at = &it->first;
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
    pthread_mutex_unlock(&it->mutex);
    for (struct tdmi_request *request = hurried, *next; request; request = next) {
        next = request->next;
        refuse_hurried(request, (enum tdmi_hurry)atomic_load(&request->hurry));
        give_back(it, request);
    }
}

static void work(tdmi_predictor *it)
{
    tdm_error err = {0};
    struct tdmi_request *unanswered = NULL, **end = &unanswered;
    const tdm_status status = predict(it, &err);
    for (struct tdmi_request *request = it->turn.first, *next; request; request = next) {
        next = request->next;
        if (is_answered(request, status, &err)) {
            give_back(it, request);
        } else {
            *end = request;
            end = &request->next;
        }
    }
    *end = NULL;
    wait_again(it, unanswered);
}

/* ---- the thread ---------------------------------------------------------------------------------
 */

/* Shares of those that wait, of which there are options.requests at most. */
static void fill(tdmi_predictor *it)
{
    struct turn *turn = &it->turn;
    struct tdmi_request **at = &it->first, **end = &turn->first;
    int n = 0;
    for (struct tdmi_request *request = it->first; request; request = request->next)
        it->waiting[n++] =
            (struct tdmi_turn_request){.n_pictures = request->n_pictures - request->n_seen,
                                       .pixels = request->pixels + request->n_seen};
    tdmi_turn_share(it->waiting, n, it->room, it->shares);
    turn->top = 0;
    for (int i = 0; i < n; i++) {
        struct tdmi_request *request = *at;
        if (it->shares[i] == 0) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        request->n_turn = it->shares[i];
        request->is_waiting = false;
        turn->top = request->top > turn->top ? request->top : turn->top;
        *end = request;
        end = &request->next;
    }
    *end = NULL;
}

static bool take(tdmi_predictor *it)
{
    pthread_mutex_lock(&it->mutex);
    while (!it->first && !it->is_over)
        pthread_cond_wait(&it->changed, &it->mutex);
    const bool is_over = it->is_over;
    if (!is_over)
        fill(it);
    pthread_mutex_unlock(&it->mutex);
    return !is_over;
}

static void *run(void *self)
{
    tdmi_predictor *it = self;
    while (take(it))
        work(it);
    pthread_mutex_lock(&it->mutex);
    struct tdmi_request *rest = it->first;
    it->first = NULL;
    for (struct tdmi_request *request = rest; request; request = request->next)
        request->is_waiting = false;
    pthread_mutex_unlock(&it->mutex);
    for (struct tdmi_request *request = rest, *next; request; request = next) {
        next = request->next;
        tdmi_request_refuse(request, 503, "the server is ending");
        give_back(it, request);
    }
    return NULL;
}

bool tdmi_predictor_push(tdmi_predictor *it, struct tdmi_request *request)
{
    struct tdmi_request **end = &it->first;
    pthread_mutex_lock(&it->mutex);
    const bool is_taken = !it->is_over;
    if (is_taken) {
        it->server->layer->suspend(it->server->http, request->connection);
        while (*end)
            end = &(*end)->next;
        *end = request;
        request->next = NULL;
        request->is_waiting = true;
        pthread_cond_signal(&it->changed);
    }
    pthread_mutex_unlock(&it->mutex);
    return is_taken;
}

void tdmi_predictor_hurry(tdmi_predictor *it, struct tdmi_request *request, enum tdmi_hurry why)
{
    struct tdmi_request **at = &it->first;
    pthread_mutex_lock(&it->mutex);
    const bool is_waiting = request->is_waiting;
    atomic_store(&request->hurry, (int)why);
    if (is_waiting) {
        while (*at != request)
            at = &(*at)->next;
        *at = request->next;
        request->is_waiting = false;
    }
    pthread_mutex_unlock(&it->mutex);
    if (is_waiting) {
        refuse_hurried(request, why);
        give_back(it, request);
    }
}

/* ---- start, stop -------------------------------------------------------------------------------
 */

static tdm_status prepare(tdmi_predictor *it, tdm_server *server, tdm_error *err)
{
    const size_t most = (size_t)server->options.requests;
    const int room = TDMI_MODEL_PIECE * tdmi_pool_threads(server->model->pool);
    it->server = server;
    it->room =
        (struct tdmi_turn_room){.pictures = room < TDMI_MODEL_BATCH ? room : TDMI_MODEL_BATCH,
                                .pixels = server->options.request_pixels};
    it->waiting = tdmi_alloc(most, sizeof *it->waiting);
    it->shares = tdmi_alloc(most, sizeof *it->shares);
    if (!it->waiting || !it->shares)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing %zu requests: out of memory", most);
    return TDM_OK;
}

static void release(tdmi_predictor *it)
{
    tdmi_free(it->shares);
    tdmi_free(it->waiting);
    tdmi_free(it);
}

tdm_status tdmi_predictor_start(tdm_server *server, tdmi_predictor **predictor, tdm_error *err)
{
    tdmi_predictor *made = tdmi_alloc(1, sizeof *made);
    tdm_status status =
        made ? prepare(made, server, err)
             : TDM_FAIL(err, TDM_E_MEMORY, "starting the thread that predicts: out of memory");
    if (status != TDM_OK) {
        if (made)
            release(made);
        return status;
    }
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    if (pthread_create(&made->thread, NULL, run, made) != 0) {
        pthread_mutex_destroy(&made->mutex);
        pthread_cond_destroy(&made->changed);
        release(made);
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
    release(it);
}
