/*
 * A card's libraries and their answers. A timing is the best of a few rounds of runs in a row, on a
 * stream and on memory of its own, which is full of zeros.
 */
#include "backend/cuda/libraries.h"
#include "backend/cuda/choices.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/memory.h"

#include <float.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { text_room = 256, path_room = 1024 };

struct answer {
    struct answer *next;
    char problem[text_room];
    bool is_there; /* the one of both that was asked for */
    struct tdmi_cudnn_plan conv;
    struct tdmi_cublaslt_plan product;
};

struct tdmi_cuda_libraries {
    tdmi_device *device;
    struct tdmi_cuda_places places;
    pthread_mutex_t lock; /* of everything below */
    bool has_looked;
    tdmi_cudnn *cudnn;
    tdmi_cublaslt *cublaslt;
    char no_cudnn[text_room], no_cublaslt[text_room]; /* why it is NULL */
    char folder[path_room], kept[path_room];          /* "": none */
    struct answer *answers;
};

struct tdmi_cuda_libraries *tdmi_cuda_libraries_new(tdmi_device *device,
                                                    const struct tdmi_cuda_places *places)
{
    struct tdmi_cuda_libraries *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->device = device;
    if (places)
        made->places = *places;
    if (pthread_mutex_init(&made->lock, NULL) != 0) {
        tdmi_free(made);
        return NULL;
    }
    return made;
}

void tdmi_cuda_libraries_free(struct tdmi_cuda_libraries *libraries)
{
    if (!libraries)
        return;
    while (libraries->answers) {
        struct answer *answer = libraries->answers;
        libraries->answers = answer->next;
        if (libraries->cudnn)
            tdmi_cudnn_plan_release(libraries->cudnn, &answer->conv);
        if (libraries->cublaslt)
            tdmi_cublaslt_plan_release(libraries->cublaslt, &answer->product);
        tdmi_free(answer);
    }
    tdmi_cudnn_close(libraries->cudnn);
    tdmi_cublaslt_close(libraries->cublaslt);
    pthread_mutex_destroy(&libraries->lock);
    tdmi_free(libraries);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Of choices; another version of either library has a folder of its own. */
static void find_folder(struct tdmi_cuda_libraries *it)
{
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    const char *home = it->places.home ? it->places.home : tdmi_env_home(&arena);
    const int n = home ? snprintf(it->folder, path_room, "%s/cuda/%s-%d-%d-%d", home,
                                  it->device->uuid, it->cudnn ? tdmi_cudnn_version(it->cudnn) : 0,
                                  it->cublaslt ? tdmi_cublaslt_version(it->cublaslt) : 0,
                                  it->device->driver_version)
                       : 0;
    if (n < 0 || n >= path_room)
        it->folder[0] = '\0';
    tdmi_arena_release(&arena);
}

static void look(struct tdmi_cuda_libraries *it)
{
    tdm_error err = {0};
    if (it->has_looked)
        return;
    it->has_looked = true;
    tdmi_cuda_make_current(it->device);
    if (tdmi_cudnn_open(it->places.cudnn, NULL, &it->cudnn, &err) != TDM_OK)
        snprintf(it->no_cudnn, text_room, "%.200s", err.frames[0].text);
    if (tdmi_cublaslt_open(it->places.cublaslt, &it->cublaslt, &err) != TDM_OK)
        snprintf(it->no_cublaslt, text_room, "%.200s", err.frames[0].text);
    find_folder(it);
}

void tdmi_cuda_libraries_keep(struct tdmi_cuda_libraries *it, const char *folder)
{
    pthread_mutex_lock(&it->lock);
    if (snprintf(it->kept, path_room, "%s", folder) >= path_room)
        it->kept[0] = '\0';
    pthread_mutex_unlock(&it->lock);
}

void tdmi_cuda_libraries_describe(struct tdmi_cuda_libraries *it, char *text, size_t text_bytes)
{
    char of_cudnn[text_room + 16], of_cublaslt[text_room + 16];
    pthread_mutex_lock(&it->lock);
    look(it);
    const int cudnn = it->cudnn ? tdmi_cudnn_version(it->cudnn) : 0;
    const int cublaslt = it->cublaslt ? tdmi_cublaslt_version(it->cublaslt) : 0;
    if (cudnn)
        snprintf(of_cudnn, sizeof of_cudnn, "cuDNN %d.%d.%d", cudnn / 10000, cudnn / 100 % 100,
                 cudnn % 100);
    else
        snprintf(of_cudnn, sizeof of_cudnn, "no cuDNN (%s)", it->no_cudnn);
    if (cublaslt)
        snprintf(of_cublaslt, sizeof of_cublaslt, "cuBLASLt %d.%d.%d", cublaslt / 10000,
                 cublaslt / 100 % 100, cublaslt % 100);
    else
        snprintf(of_cublaslt, sizeof of_cublaslt, "no cuBLASLt (%s)", it->no_cublaslt);
    pthread_mutex_unlock(&it->lock);
    snprintf(text, text_bytes, "%s, %s", of_cudnn, of_cublaslt);
}

/* ---- timing --------------------------------------------------------------------------------- */

enum { most_tensors = TDMI_CUDNN_TENSORS };

/* A question; conv or product. */
struct question {
    struct tdmi_cuda_libraries *of;
    const struct tdmi_cudnn_conv *conv;
    const struct tdmi_cublaslt_product *product;
    tdmi_stream *stream; /* for timing, with memory */
    void *tensors[most_tensors];
    bool is_ready;
};

/* Of a product */
enum { of_a = 1, of_b, of_bias, of_d };

static void size_conv(const struct tdmi_cudnn_conv *conv, size_t bytes[most_tensors])
{
    const size_t value = tdmi_dtype_bytes(conv->type), n = (size_t)conv->n;
    const size_t weights = (size_t)conv->kernel * (size_t)conv->kernel *
                           (size_t)(conv->in.c / conv->groups) * (size_t)conv->out.c;
    const size_t of_x = n * (size_t)tdmi_shape_values(conv->in);
    const size_t of_y = n * (size_t)tdmi_shape_values(conv->out);
    bytes[TDMI_CUDNN_X] = of_x * value;
    bytes[TDMI_CUDNN_W] = weights * value;
    bytes[TDMI_CUDNN_Y] = of_y * value;
    if (conv->has_bias)
        bytes[TDMI_CUDNN_BIAS] = (size_t)conv->out.c * sizeof(float);
    if (conv->adds)
        bytes[TDMI_CUDNN_ADDED] = (conv->way == TDMI_CUDNN_FORWARD ? of_y : of_x) * value;
}

static void size_product(const struct tdmi_cublaslt_product *it, size_t bytes[most_tensors])
{
    const size_t value = tdmi_dtype_bytes(it->type), result = tdmi_dtype_bytes(it->result);
    bytes[of_a] = (size_t)it->rows * (size_t)it->depth * value;
    bytes[of_b] = (size_t)it->depth * (size_t)it->columns * value;
    if (it->has_bias)
        bytes[of_bias] = (size_t)it->columns * result;
    bytes[of_d] = (size_t)it->rows * (size_t)it->columns * result;
}

static void close_timing(struct question *it)
{
    for (int i = 0; i < most_tensors; i++)
        if (it->tensors[i])
            tdmi_cuda_free(it->of->device, it->tensors[i]);
    if (it->stream)
        tdmi_cuda_stream_close(it->stream);
}

/* Without room for it, nothing is timed. */
static void open_timing(struct question *it)
{
    size_t bytes[most_tensors] = {0};
    if (it->conv)
        size_conv(it->conv, bytes);
    else
        size_product(it->product, bytes);
    it->is_ready = tdmi_cuda_stream_open(it->of->device, &it->stream, NULL) == TDM_OK;
    for (int i = 0; i < most_tensors && it->is_ready; i++)
        if (bytes[i])
            it->is_ready = (it->tensors[i] = tdmi_cuda_alloc(it->of->device, bytes[i])) != NULL;
}

/* What is timed: one of both. */
struct candidate {
    const struct tdmi_cudnn_plan *conv;
    const struct tdmi_cublaslt_plan *product;
    void *workspace;
};

static bool run_some(struct question *it, const struct candidate *candidate, int n)
{
    const struct tdmi_cublaslt_call call = {it->tensors[of_a], it->tensors[of_b],
                                            it->tensors[of_bias], it->tensors[of_d],
                                            candidate->workspace};
    for (int i = 0; i < n; i++) {
        const int code =
            candidate->conv
                ? tdmi_cuda_conv_run(it->stream, candidate->conv, it->tensors, candidate->workspace)
                : tdmi_cuda_product_run(it->stream, candidate->product, &call);
        if (code != 0)
            return false;
    }
    return tdmi_cuda_stream_wait(it->stream, NULL) == TDM_OK;
}

static double seconds_of(struct question *it, struct candidate *candidate, size_t workspace_bytes)
{
    enum { rounds = 3, in_a_row = 4 };
    double best = DBL_MAX;
    candidate->workspace = tdmi_cuda_alloc(it->of->device, workspace_bytes);
    bool is_run = candidate->workspace && run_some(it, candidate, 1);
    for (int i = 0; i < rounds && is_run; i++) {
        const int64_t begin = tdmi_clock_ns();
        is_run = run_some(it, candidate, in_a_row);
        const double took = tdmi_clock_seconds_since(begin);
        if (took < best)
            best = took;
    }
    if (candidate->workspace)
        tdmi_cuda_free(it->of->device, candidate->workspace);
    return is_run ? best : -1.0;
}

static double time_conv(void *self, const struct tdmi_cudnn_plan *plan)
{
    return seconds_of(self, &(struct candidate){.conv = plan}, plan->workspace_bytes);
}

static double time_product(void *self, const struct tdmi_cublaslt_plan *plan)
{
    return seconds_of(self, &(struct candidate){.product = plan}, plan->workspace_bytes);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void describe_problem(const struct question *it, char text[text_room])
{
    static const char *const ways[] = {"forward", "input", "weights"};
    static const char *const acts[] = {"", " relu", " relu6"};
    const struct tdmi_cudnn_conv *conv = it->conv;
    const struct tdmi_cublaslt_product *product = it->product;
    if (conv)
        snprintf(text, text_room,
                 "conv %s %s %dx%dx%dx%d to %dx%dx%d kernel %d stride %d dilation %d groups %d "
                 "pad %d %d %d %d%s%s%s%s%s",
                 ways[conv->way], tdmi_dtype_name(conv->type), conv->n, conv->in.h, conv->in.w,
                 conv->in.c, conv->out.h, conv->out.w, conv->out.c, conv->kernel, conv->stride,
                 conv->dilation, conv->groups, conv->top, conv->bottom, conv->left, conv->right,
                 conv->has_bias ? " bias" : "", conv->adds ? " add" : "", acts[conv->act],
                 conv->allows_tf32 ? " tf32" : "", conv->may_vary ? " any order" : "");
    else
        snprintf(text, text_room, "product %s %lldx%lldx%lld to %s on %d%s%s%s%s%s",
                 tdmi_dtype_name(product->type), (long long)product->rows,
                 (long long)product->columns, (long long)product->depth,
                 tdmi_dtype_name(product->result), product->alignment,
                 product->is_a_turned ? " first turned" : "",
                 product->is_b_turned ? " second turned" : "", product->has_bias ? " bias" : "",
                 product->allows_tf32 ? " tf32" : "", product->may_vary ? " any order" : "");
}

/* "hex" of an algorithm */
enum { hex_length = 16 * TDMI_CUBLASLT_ALGORITHM_WORDS };

static char *hex_of(const uint64_t words[TDMI_CUBLASLT_ALGORITHM_WORDS])
{
    char *text = tdmi_alloc(hex_length + 3, 1);
    for (int i = 0; text && i < TDMI_CUBLASLT_ALGORITHM_WORDS; i++)
        snprintf(text + 1 + 16 * i, 17, "%016llx", (unsigned long long)words[i]);
    if (text)
        text[0] = text[hex_length + 1] = '"';
    return text;
}

static bool words_of(const char *text, uint64_t words[TDMI_CUBLASLT_ALGORITHM_WORDS])
{
    if (strlen(text) != hex_length + 2 || text[0] != '"' || text[hex_length + 1] != '"')
        return false;
    memset(words, 0, sizeof *words * TDMI_CUBLASLT_ALGORITHM_WORDS);
    for (int i = 0; i < hex_length; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = strchr(digits, text[1 + i]);
        if (!digit)
            return false;
        words[i / 16] = words[i / 16] << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

/* What a file says, if it can be used. */
static bool take_text(const struct question *it, const char *text, struct answer *answer)
{
    uint64_t words[TDMI_CUBLASLT_ALGORITHM_WORDS];
    tdm_error err = {0};
    if (it->conv)
        return tdmi_cudnn_plan_read(it->of->cudnn, text, &answer->conv, &err) == TDM_OK;
    return words_of(text, words) && tdmi_cublaslt_plan_take(it->of->cublaslt, it->product, words,
                                                            &answer->product, &err) == TDM_OK;
}

static bool take(const struct question *it, const char *folder, struct answer *answer, char **text)
{
    tdm_error err = {0};
    if (!folder[0] || tdmi_cuda_choice_read(folder, answer->problem, text, &err) != TDM_OK)
        return false;
    answer->is_there = take_text(it, *text, answer);
    if (answer->is_there)
        return true;
    tdmi_free(*text);
    *text = NULL;
    return false;
}

static void make(struct question *it, struct answer *answer, char **text)
{
    struct tdmi_cuda_libraries *of = it->of;
    tdm_error err = {0};
    open_timing(it);
    if (it->conv) {
        answer->is_there =
            tdmi_cudnn_plan_find(of->cudnn, it->conv, it->is_ready ? time_conv : NULL, it,
                                 &answer->conv, &err) == TDM_OK;
        if (answer->is_there)
            (void)!tdmi_cudnn_plan_write(of->cudnn, &answer->conv, text, &err);
    } else {
        answer->is_there =
            tdmi_cublaslt_plan_find(of->cublaslt, it->product, it->is_ready ? time_product : NULL,
                                    it, &answer->product, &err) == TDM_OK;
        if (answer->is_there)
            *text = hex_of(answer->product.algorithm);
    }
    close_timing(it);
}

/* A file that cannot be written costs the next run a timing, and this one nothing. */
static void keep(const char *folder, const struct answer *answer, const char *text)
{
    tdm_error err = {0};
    if (folder[0] && text)
        (void)!tdmi_cuda_choice_write(folder, answer->problem, text, &err);
}

static void find(struct question *it, struct answer *answer)
{
    const struct tdmi_cuda_libraries *of = it->of;
    char *text = NULL;
    if (take(it, of->kept, answer, &text)) {
        tdmi_free(text);
        return;
    }
    if (!take(it, of->folder, answer, &text)) {
        make(it, answer, &text);
        keep(of->folder, answer, text);
    }
    keep(of->kept, answer, text);
    tdmi_free(text);
}

/* NULL: there is none. */
static const struct answer *answer_to(struct question *it)
{
    struct tdmi_cuda_libraries *of = it->of;
    char problem[text_room];
    describe_problem(it, problem);
    pthread_mutex_lock(&of->lock);
    look(of);
    const bool can_ask = it->conv ? of->cudnn != NULL : of->cublaslt != NULL;
    struct answer *answer = can_ask ? of->answers : NULL;
    while (answer && strcmp(answer->problem, problem) != 0)
        answer = answer->next;
    if (!answer && can_ask && (answer = tdmi_alloc(1, sizeof *answer)) != NULL) {
        memcpy(answer->problem, problem, sizeof problem);
        answer->next = of->answers;
        of->answers = answer;
        find(it, answer);
    }
    pthread_mutex_unlock(&of->lock);
    return answer && answer->is_there ? answer : NULL;
}

const struct tdmi_cudnn_plan *tdmi_cuda_conv_plan(tdmi_device *device,
                                                  const struct tdmi_cudnn_conv *conv)
{
    struct question question = {.of = device ? device->libraries : NULL, .conv = conv};
    const struct answer *answer = question.of ? answer_to(&question) : NULL;
    return answer ? &answer->conv : NULL;
}

const struct tdmi_cublaslt_plan *tdmi_cuda_product_plan(tdmi_device *device,
                                                        const struct tdmi_cublaslt_product *it)
{
    struct question question = {.of = device ? device->libraries : NULL, .product = it};
    const struct answer *answer = question.of ? answer_to(&question) : NULL;
    return answer ? &answer->product : NULL;
}

/* ---- running -------------------------------------------------------------------------------- */

int tdmi_cuda_conv_run(tdmi_stream *stream, const struct tdmi_cudnn_plan *plan,
                       void *const tensors[TDMI_CUDNN_TENSORS], void *workspace)
{
    return tdmi_cudnn_plan_run(stream->device->libraries->cudnn, plan, tdmi_cuda_queue(stream),
                               tensors, workspace);
}

int tdmi_cuda_product_run(tdmi_stream *stream, const struct tdmi_cublaslt_plan *plan,
                          const struct tdmi_cublaslt_call *call)
{
    return tdmi_cublaslt_plan_run(stream->device->libraries->cublaslt, plan,
                                  tdmi_cuda_queue(stream), call);
}
