/*
 * Answers: from memory, from the run's file, from the GPU's file, or made.
 *
 * A limit on workspace is no part of a problem's name in a run's folder: a run that was planned
 * where memory was short resumes with what it had, and knows nothing of limits. What is kept there
 * and wants more than the limit at hand is made again. Who plans asks with several limits, one
 * after another, and takes the last: so what a run resumes with is what was answered last, be it
 * from memory. Of what was timed without a limit, all that stays below one is as good an answer
 * with it, but not the other way round: so in the GPU's folder a limit is part of the name. Which
 * of both libraries is faster was found out for two plans, and with a limit those may be others.
 */
#include "backend/cuda/vendor/algorithm_cache.h"
#include "backend/cuda/vendor/choices.h"
#include "backend/cuda/runtime/timing.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { text_room = TDMI_CUDA_PROBLEM_ROOM };

/* In a run's folder: the library was asked and had nothing. */
static const char nothing[] = "null";
static const char by_cudnn[] = "\"cuDNN\"", by_cublaslt[] = "\"cuBLASLt\"";

/* A question with its answers around it. */
struct asking {
    struct tdmi_cuda_algorithm_cache *of;
    const struct tdmi_cuda_problem *question;
    bool is_of_both, lacked_room;
};

static void release(struct tdmi_cuda_algorithm_cache *it, struct tdmi_cuda_cached_algorithm *answer)
{
    if (it->cudnn)
        tdmi_cudnn_plan_release(it->cudnn, &answer->conv);
    if (it->cublaslt)
        tdmi_cublaslt_plan_release(it->cublaslt, &answer->product);
    answer->is_there = false;
    tdmi_free(answer->text);
    answer->text = NULL;
}

void tdmi_cuda_algorithm_cache_release(struct tdmi_cuda_algorithm_cache *it)
{
    while (it->first) {
        struct tdmi_cuda_cached_algorithm *answer = it->first;
        it->first = answer->next;
        release(it, answer);
        tdmi_free(answer);
    }
}

/* ---- names ---------------------------------------------------------------------------------- */

static const char *const acts[] = {"", " relu", " relu6"};

static int describe_conv(const struct tdmi_cudnn_conv *conv, char text[text_room])
{
    static const char *const directions[] = {"forward", "input", "weights"};
    return snprintf(
        text, text_room,
        "conv %s %s %dx%dx%dx%d to %dx%dx%d kernel %d stride %d dilation %d groups %d pad %d %d %d "
        "%d%s%s%s%s%s",
        directions[conv->direction], tdmi_dtype_name(conv->type), conv->n, conv->in.h, conv->in.w,
        conv->in.c, conv->out.h, conv->out.w, conv->out.c, conv->kernel, conv->stride,
        conv->dilation, conv->groups, conv->top, conv->bottom, conv->left, conv->right,
        conv->has_bias ? " bias" : "", conv->adds ? " add" : "", acts[conv->act],
        conv->allows_tf32 ? " tf32" : "", conv->may_vary ? " any order" : "");
}

static void describe_product(const struct tdmi_cublaslt_product *product, char text[text_room])
{
    snprintf(text, text_room, "product %s %lldx%lldx%lld to %s on %d%s%s%s%s%s%s",
             tdmi_dtype_name(product->type), (long long)product->rows, (long long)product->columns,
             (long long)product->depth, tdmi_dtype_name(product->result), product->alignment,
             product->is_a_transposed ? " first turned" : "",
             product->is_b_transposed ? " second turned" : "", product->has_bias ? " bias" : "",
             acts[product->act], product->allows_tf32 ? " tf32" : "",
             product->may_vary ? " any order" : "");
}

static void describe_problem(const struct asking *it, char text[text_room])
{
    const struct tdmi_cuda_problem *question = it->question;
    if (!question->conv) {
        describe_product(question->product, text);
        return;
    }
    const int n = describe_conv(question->conv, text);
    if (it->is_of_both && n < text_room)
        snprintf(text + n, (size_t)(text_room - n), " or a product");
}

static size_t limit_of(const struct asking *it)
{
    const struct tdmi_cuda_problem *question = it->question;
    return question->conv ? question->conv->most_workspace : question->product->most_workspace;
}

/* ---- files ---------------------------------------------------------------------------------- */

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

static bool is_inside(const struct tdmi_cuda_cached_algorithm *answer)
{
    const size_t most = answer->most_workspace;
    return most == 0 ||
           (answer->conv.workspace_bytes <= most && answer->product.workspace_bytes <= most);
}

/* What a file says, if it can be used. */
static bool take_text(const struct asking *it, const char *text,
                      struct tdmi_cuda_cached_algorithm *answer)
{
    const struct tdmi_cuda_problem *question = it->question;
    uint64_t words[TDMI_CUBLASLT_ALGORITHM_WORDS];
    tdm_error err = {0};
    if (it->is_of_both) {
        answer->is_product = strcmp(text, by_cublaslt) == 0;
        return answer->is_product || strcmp(text, by_cudnn) == 0;
    }
    if (question->conv)
        return tdmi_cudnn_plan_read(it->of->cudnn, text, &answer->conv, &err) == TDM_OK;
    return words_of(text, words) &&
           tdmi_cublaslt_plan_take(it->of->cublaslt, question->product, words, &answer->product,
                                   &err) == TDM_OK;
}

/* False: the file is of no use. */
static bool take(const struct asking *it, const char *folder, const char *problem,
                 struct tdmi_cuda_cached_algorithm *answer)
{
    tdm_error err = {0};
    if (!folder[0] || tdmi_cuda_choice_read(folder, problem, &answer->text, &err) != TDM_OK)
        return false;
    if (strcmp(answer->text, nothing) == 0)
        return true;
    answer->is_there = take_text(it, answer->text, answer);
    if (answer->is_there && is_inside(answer))
        return true;
    release(it->of, answer);
    return false;
}

/* A file that cannot be written costs the next run a timing, and this one nothing. */
static void keep(const char *folder, const char *problem, const char *text)
{
    tdm_error err = {0};
    if (folder[0] && text)
        (void)!tdmi_cuda_choice_write(folder, problem, text, &err);
}

static char *copy_of(const char *text)
{
    char *copy = tdmi_alloc(strlen(text) + 1, 1);
    if (copy)
        memcpy(copy, text, strlen(text));
    return copy;
}

/* What a file is to say of what was made. */
static char *text_of(const struct asking *it, const struct tdmi_cuda_cached_algorithm *answer)
{
    char *text = NULL;
    tdm_error err = {0};
    if (!answer->is_there)
        return copy_of(nothing);
    if (it->is_of_both)
        return copy_of(answer->is_product ? by_cublaslt : by_cudnn);
    if (!it->question->conv)
        return hex_of(answer->product.algorithm);
    (void)!tdmi_cudnn_plan_write(it->of->cudnn, &answer->conv, &text, &err);
    return text;
}

/* ---- making --------------------------------------------------------------------------------- */

static void make(struct asking *it, struct tdmi_cuda_cached_algorithm *answer)
{
    const struct tdmi_cuda_problem *question = it->question;
    const struct tdmi_cuda_algorithm_cache *of = it->of;
    struct tdmi_cuda_timing timing;
    tdm_error err = {0};
    tdmi_cuda_timing_open(&timing, of->device, question->conv, question->product);
    if (it->is_of_both) {
        const double conv =
            timing.is_ready ? tdmi_cuda_time_conv(&timing, question->conv_plan) : -1.0;
        const double product =
            timing.is_ready ? tdmi_cuda_time_product(&timing, question->product_plan) : -1.0;
        answer->is_product = product >= 0.0 && (conv < 0.0 || product < conv);
        answer->is_there = true;
    } else if (question->conv)
        answer->is_there = tdmi_cudnn_plan_find(of->cudnn, question->conv,
                                                timing.is_ready ? tdmi_cuda_time_conv : NULL,
                                                &timing, &answer->conv, &err) == TDM_OK;
    else
        answer->is_there = tdmi_cublaslt_plan_find(of->cublaslt, question->product,
                                                   timing.is_ready ? tdmi_cuda_time_product : NULL,
                                                   &timing, &answer->product, &err) == TDM_OK;
    it->lacked_room = timing.lacked_room;
    tdmi_cuda_timing_close(&timing);
}

/* The GPU's folder knows nothing of what a GPU that was full would have taken. */
static void find(struct asking *it, struct tdmi_cuda_cached_algorithm *answer)
{
    const struct tdmi_cuda_algorithm_cache *of = it->of;
    const bool is_limited = answer->most_workspace > 0;
    const bool is_apart = is_limited && it->is_of_both; /* from what was found without the limit */
    char limited[text_room + 32];
    snprintf(limited, sizeof limited, "%s within %zu", answer->problem, answer->most_workspace);
    const char *name = is_limited ? limited : answer->problem;
    answer->is_kept = !is_apart && take(it, of->kept, answer->problem, answer);
    if (answer->is_kept || (!is_apart && take(it, of->folder, answer->problem, answer)) ||
        (is_limited && take(it, of->folder, name, answer)))
        return;
    make(it, answer);
    answer->text = text_of(it, answer);
    if (answer->is_there && !it->lacked_room)
        keep(of->folder, name, answer->text);
}

/* The run resumes with this one. */
static void keep_for_run(struct tdmi_cuda_algorithm_cache *it,
                         struct tdmi_cuda_cached_algorithm *answer)
{
    if (answer->is_kept)
        return;
    for (struct tdmi_cuda_cached_algorithm *other = it->first; other; other = other->next)
        if (strcmp(other->problem, answer->problem) == 0)
            other->is_kept = false;
    answer->is_kept = true;
    keep(it->kept, answer->problem, answer->text);
}

const struct tdmi_cuda_cached_algorithm *
tdmi_cuda_algorithm_cache_find(struct tdmi_cuda_algorithm_cache *it,
                               const struct tdmi_cuda_problem *question)
{
    struct asking asking = {
        .of = it, .question = question, .is_of_both = question->conv && question->product};
    char problem[text_room];
    if ((question->conv && !it->cudnn) || (question->product && !it->cublaslt))
        return NULL;
    describe_problem(&asking, problem);
    const size_t most = limit_of(&asking);
    struct tdmi_cuda_cached_algorithm *answer = it->first;
    while (answer && (strcmp(answer->problem, problem) != 0 || answer->most_workspace != most))
        answer = answer->next;
    if (!answer && (answer = tdmi_alloc(1, sizeof *answer)) != NULL) {
        memcpy(answer->problem, problem, sizeof problem);
        answer->most_workspace = most;
        answer->next = it->first;
        it->first = answer;
        find(&asking, answer);
    }
    if (answer)
        keep_for_run(it, answer);
    return answer;
}
