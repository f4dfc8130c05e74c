/*
 * An entry comes from memory, from the run's file, from another rank, from the GPU's file, or is
 * timed now.
 *
 * In a run's folder a limit on workspace is no part of the problem's name: a run that was planned
 * with little memory resumes with the same algorithms, whatever memory is free then. An entry that
 * needs more than the present limit is chosen again. The planner tries several limits and uses the
 * last, so the run keeps the entry that was used last.
 *
 * In the GPU's folder the limit is part of the name: an algorithm that was chosen without a limit
 * is right within one that it stays below, but not the reverse. Which library is faster was timed
 * for two plans, and within a limit those may be others.
 */
#include "backend/cuda/vendor/algorithm_cache.h"
#include "backend/cuda/runtime/timing.h"
#include "base/arena.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/scope.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { text_room = TDMI_CUDA_PROBLEM_ROOM };

/* In a run's folder: the library has no algorithm. */
static const char nothing[] = "null";
static const char by_cudnn[] = "\"cuDNN\"", by_cublaslt[] = "\"cuBLASLt\"";

/* A search of the cache. */
struct search {
    struct tdmi_cuda_algorithm_cache *of;
    const struct tdmi_cuda_problem *problem;
    bool is_of_both, lacked_room;
};

static char *copy_of(const char *text)
{
    char *copy = tdmi_alloc(strlen(text) + 1, 1);
    if (copy)
        memcpy(copy, text, strlen(text));
    return copy;
}

static void release(struct tdmi_cuda_algorithm_cache *it, struct tdmi_cuda_cached_algorithm *entry)
{
    if (it->cudnn)
        tdmi_cudnn_plan_release(it->cudnn, &entry->conv);
    if (it->cublaslt)
        tdmi_cublaslt_plan_release(it->cublaslt, &entry->product);
    entry->is_there = false;
    tdmi_free(entry->text);
    entry->text = NULL;
}

void tdmi_cuda_algorithm_cache_release(struct tdmi_cuda_algorithm_cache *it)
{
    while (it->first) {
        struct tdmi_cuda_cached_algorithm *entry = it->first;
        it->first = entry->next;
        release(it, entry);
        tdmi_free(entry);
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

static void describe_problem(const struct search *it, char text[text_room])
{
    const struct tdmi_cuda_problem *problem = it->problem;
    if (!problem->conv) {
        describe_product(problem->product, text);
        return;
    }
    const int n = describe_conv(problem->conv, text);
    if (it->is_of_both && n < text_room)
        snprintf(text + n, (size_t)(text_room - n), " or a product");
}

static size_t limit_of(const struct search *it)
{
    const struct tdmi_cuda_problem *problem = it->problem;
    return problem->conv ? problem->conv->most_workspace : problem->product->most_workspace;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* A file {"problem":"…","choice":…} for each problem, named after its hash. Nothing is parsed: the
 * bytes around the choice are known. */
static const char before_problem[] = "{\"problem\":\"", before_choice[] = "\",\"choice\":";
static const char at_end[] = "}\n";

enum { path_room = TDMI_CUDA_FOLDER_ROOM + 32, most_file_bytes = 4 << 20 };

static bool find_path(const char *folder, const char *problem, char path[path_room])
{
    return folder[0] && snprintf(path, path_room, "%s/%016" PRIx64 ".json", folder,
                                 tdmi_xxh64_of(problem, strlen(problem), 0)) < path_room;
}

/* Text begins with start, which is skipped. */
static bool skip(const char **text, const char *start)
{
    const size_t n = strlen(start);
    const bool is_there = strncmp(*text, start, n) == 0;
    *text += is_there ? n : 0;
    return is_there;
}

/* The choice in the text of a file, freed by the caller. NULL: it is damaged or belongs to another
 * problem. */
static char *choice_in(const char *text, size_t length, const char *problem)
{
    const size_t end = strlen(at_end);
    const char *at = text;
    if (length < end || memcmp(text + length - end, at_end, end) != 0 ||
        !skip(&at, before_problem) || !skip(&at, problem) || !skip(&at, before_choice) ||
        at + end > text + length)
        return NULL;
    const size_t n = (size_t)(text + length - at) - end;
    char *choice = tdmi_alloc(n + 1, 1);
    if (choice)
        memcpy(choice, at, n);
    return choice;
}

/* The choice in the file of this problem; NULL also where there is none. */
static char *read_choice(const char *folder, const char *problem)
{
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    char path[path_room];
    size_t length = 0;
    if (!find_path(folder, problem, path) ||
        tdmi_file_read(path, most_file_bytes, &bytes, &length, NULL) != TDM_OK ||
        strlen(bytes) != length)
        return NULL;
    return choice_in(bytes, length, problem);
}

typedef tdm_status writer(const char *path, const void *bytes, size_t length_bytes, tdm_error *err);

/* A file that cannot be written costs the next run a timing, and this one nothing. */
static void write_choice(const char *folder, const char *problem, const char *choice, writer *write)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena;
    char path[path_room];
    tdmi_arena_init(&arena, 0);
    if (!choice || !find_path(folder, problem, path))
        return;
    const char *text = tdmi_arena_printf(&arena, "%s%s%s%s%s", before_problem, problem,
                                         before_choice, choice, at_end);
    if (text)
        (void)!write(path, text, strlen(text), NULL);
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

static bool is_inside(const struct tdmi_cuda_cached_algorithm *entry)
{
    const size_t most = entry->most_workspace;
    return most == 0 ||
           (entry->conv.workspace_bytes <= most && entry->product.workspace_bytes <= most);
}

/* Use the text of a file, if it is valid. */
static bool take_text(const struct search *it, const char *text,
                      struct tdmi_cuda_cached_algorithm *entry)
{
    const struct tdmi_cuda_problem *problem = it->problem;
    uint64_t words[TDMI_CUBLASLT_ALGORITHM_WORDS];
    tdm_error err = {0};
    if (it->is_of_both) {
        entry->is_product = strcmp(text, by_cublaslt) == 0;
        return entry->is_product || strcmp(text, by_cudnn) == 0;
    }
    if (problem->conv)
        return tdmi_cudnn_plan_read(it->of->cudnn, text, &entry->conv, &err) == TDM_OK;
    return words_of(text, words) && tdmi_cublaslt_plan_take(it->of->cublaslt, problem->product,
                                                            words, &entry->product, &err) == TDM_OK;
}

/* Take a choice, which becomes the entry's; NULL: there is none. False: it is not usable. */
static bool take(const struct search *it, char *choice, struct tdmi_cuda_cached_algorithm *entry)
{
    entry->text = choice;
    if (!entry->text)
        return false;
    if (strcmp(entry->text, nothing) == 0)
        return true;
    entry->is_there = take_text(it, entry->text, entry);
    if (entry->is_there && is_inside(entry))
        return true;
    release(it->of, entry);
    return false;
}

/* The text of an entry for a file. */
static char *text_of(const struct search *it, const struct tdmi_cuda_cached_algorithm *entry)
{
    char *text = NULL;
    tdm_error err = {0};
    if (!entry->is_there)
        return copy_of(nothing);
    if (it->is_of_both)
        return copy_of(entry->is_product ? by_cublaslt : by_cudnn);
    if (!it->problem->conv)
        return hex_of(entry->product.algorithm);
    (void)!tdmi_cudnn_plan_write(it->of->cudnn, &entry->conv, &text, &err);
    return text;
}

/* ---- from one GPU to another ----------------------------------------------------------------- */

/* The texts of files, each with this control character behind it, which no text of JSON holds. */
enum { record_separator = '\x1e' };

static char *find_given(const char *given, const char *problem)
{
    char *choice = NULL;
    const char *end = NULL;
    for (; !choice && given && (end = strchr(given, record_separator)) != NULL; given = end + 1)
        choice = choice_in(given, (size_t)(end - given), problem);
    return choice;
}

char *tdmi_cuda_algorithm_cache_write(const struct tdmi_cuda_algorithm_cache *it)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    for (const struct tdmi_cuda_cached_algorithm *entry = it->first; entry; entry = entry->next)
        if (entry->is_kept && entry->text)
            tdmi_text_printf(&text, "%s%s%s%s%s%c", before_problem, entry->problem, before_choice,
                             entry->text, at_end, record_separator);
    return tdmi_text_status(&text, NULL) == TDM_OK ? copy_of(tdmi_text_string(&text)) : NULL;
}

/* ---- making --------------------------------------------------------------------------------- */

static void make(struct search *it, struct tdmi_cuda_cached_algorithm *entry)
{
    const struct tdmi_cuda_problem *problem = it->problem;
    const struct tdmi_cuda_algorithm_cache *of = it->of;
    struct tdmi_cuda_timing timing;
    tdm_error err = {0};
    tdmi_cuda_timing_open(&timing, of->device, problem->conv, problem->product);
    if (it->is_of_both) {
        const double conv =
            timing.is_ready ? tdmi_cuda_time_conv(&timing, problem->conv_plan) : -1.0;
        const double product =
            timing.is_ready ? tdmi_cuda_time_product(&timing, problem->product_plan) : -1.0;
        entry->is_product = product >= 0.0 && (conv < 0.0 || product < conv);
        entry->is_there = true;
    } else if (problem->conv)
        entry->is_there = tdmi_cudnn_plan_find(of->cudnn, problem->conv,
                                               timing.is_ready ? tdmi_cuda_time_conv : NULL,
                                               &timing, &entry->conv, &err) == TDM_OK;
    else
        entry->is_there = tdmi_cublaslt_plan_find(of->cublaslt, problem->product,
                                                  timing.is_ready ? tdmi_cuda_time_product : NULL,
                                                  &timing, &entry->product, &err) == TDM_OK;
    it->lacked_room = timing.lacked_room;
    tdmi_cuda_timing_close(&timing);
}

/* The GPU's folder has no choices that were made while its memory was full. */
static void find(struct search *it, struct tdmi_cuda_cached_algorithm *entry)
{
    const struct tdmi_cuda_algorithm_cache *of = it->of;
    const bool is_limited = entry->most_workspace > 0;
    const bool is_apart = is_limited && it->is_of_both; /* from what was found without the limit */
    char limited[text_room + 32];
    snprintf(limited, sizeof limited, "%s within %zu", entry->problem, entry->most_workspace);
    const char *name = is_limited ? limited : entry->problem;
    entry->is_kept = !is_apart && take(it, read_choice(of->kept, entry->problem), entry);
    if (entry->is_kept || take(it, find_given(of->given, entry->problem), entry) ||
        (!is_apart && take(it, read_choice(of->folder, entry->problem), entry)) ||
        (is_limited && take(it, read_choice(of->folder, name), entry)))
        return;
    make(it, entry);
    entry->text = text_of(it, entry);
    if (entry->is_there && !it->lacked_room)
        write_choice(of->folder, name, entry->text, tdmi_file_write);
}

/* Make this the run's entry. */
static void keep_for_run(struct tdmi_cuda_algorithm_cache *it,
                         struct tdmi_cuda_cached_algorithm *entry)
{
    if (entry->is_kept)
        return;
    for (struct tdmi_cuda_cached_algorithm *other = it->first; other; other = other->next)
        if (strcmp(other->problem, entry->problem) == 0)
            other->is_kept = false;
    entry->is_kept = true;
    if (it->kept[0])
        (void)mkdir(it->kept, 0777); /* not the run folder, which may have been moved away */
    write_choice(it->kept, entry->problem, entry->text, tdmi_file_write_in_folder);
}

const struct tdmi_cuda_cached_algorithm *
tdmi_cuda_algorithm_cache_find(struct tdmi_cuda_algorithm_cache *it,
                               const struct tdmi_cuda_problem *problem)
{
    struct search search = {
        .of = it, .problem = problem, .is_of_both = problem->conv && problem->product};
    char name[text_room];
    if ((problem->conv && !it->cudnn) || (problem->product && !it->cublaslt))
        return NULL;
    describe_problem(&search, name);
    const size_t most = limit_of(&search);
    struct tdmi_cuda_cached_algorithm *entry = it->first;
    while (entry && (strcmp(entry->problem, name) != 0 || entry->most_workspace != most))
        entry = entry->next;
    if (!entry && (entry = tdmi_alloc(1, sizeof *entry)) != NULL) {
        memcpy(entry->problem, name, sizeof name);
        entry->most_workspace = most;
        entry->next = it->first;
        it->first = entry;
        find(&search, entry);
    }
    if (entry)
        keep_for_run(it, entry);
    return entry;
}
