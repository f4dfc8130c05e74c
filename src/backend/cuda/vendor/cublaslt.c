/*
 * cuBLASLt stores matrices by columns, and a matrix by rows is its transposed one by columns. So it
 * computes dᵀ = bᵀ · aᵀ: its first factor is b, its second a, and the bias of a column of d is one
 * a row.
 */
#include "backend/cuda/vendor/cublaslt.h"
#include "backend/cuda/vendor/cublaslt_api.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

enum { most_timed = 6 };

struct tdmi_cublaslt {
    void *library, *handle;
    struct tdmi_cublaslt_calls calls;
    int version;
};

/* ---- opening -------------------------------------------------------------------------------- */

static int version_of(const void *calls)
{
    return (int)((const struct tdmi_cublaslt_calls *)calls)->version();
}

static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
static const char *const folders[] = {"nvidia/cu13/lib", "nvidia/cublas/lib", NULL};
#define X(field, symbol, result, parameters) #symbol,
static const char *const symbols[] = {TDMI_CUBLASLT_CALLS(X) NULL};
#undef X
const struct tdmi_cuda_library tdmi_cublaslt_library = {
    "cuBLASLt", "dense layers are computed by kernels of tandem's own",
    names,      folders,
    symbols,    version_of,
    120000};

tdm_status tdmi_cublaslt_open(const char *file, tdmi_cublaslt **cublaslt, tdm_error *err)
{
    TDMI_AT_END(tdmi_cublaslt_close_at) tdmi_cublaslt *made = NULL;
    *cublaslt = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDMI_TRY(tdmi_cuda_library_open(&tdmi_cublaslt_library, file, &made->calls, &made->library,
                                    &made->version, err));
    const int code = made->calls.create_handle(&made->handle);
    if (code != 0)
        return TDM_FAIL(err, TDM_E_ABSENT, "opening cuBLASLt on the GPU: it says %d", code);
    *cublaslt = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_cublaslt_close(tdmi_cublaslt *cublaslt)
{
    if (!cublaslt)
        return;
    if (cublaslt->handle)
        (void)cublaslt->calls.destroy_handle(cublaslt->handle);
    tdmi_cuda_library_close(cublaslt->library);
    tdmi_free(cublaslt);
}

int tdmi_cublaslt_version(const tdmi_cublaslt *cublaslt)
{
    return cublaslt->version;
}

/* ---- describing ----------------------------------------------------------------------------- */

static int type_of(enum tdmi_dtype type)
{
    return type == TDMI_DTYPE_BF16  ? TDMI_CUBLASLT_N_BF16
           : type == TDMI_DTYPE_F16 ? TDMI_CUBLASLT_N_F16
                                    : TDMI_CUBLASLT_N_F32;
}

/* A matrix that lies by rows, as one by columns. */
static int layout_of(const struct tdmi_cublaslt_calls *calls, enum tdmi_dtype type, int64_t rows,
                     int64_t columns, void **layout)
{
    return calls->create_layout(layout, type_of(type), (uint64_t)columns, (uint64_t)rows, columns);
}

void tdmi_cublaslt_plan_release(tdmi_cublaslt *cublaslt, struct tdmi_cublaslt_plan *plan)
{
    const struct tdmi_cublaslt_calls *calls = &cublaslt->calls;
    void *const layouts[] = {plan->first, plan->second, plan->result};
    if (plan->operation)
        (void)calls->destroy_operation(plan->operation);
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            (void)calls->destroy_layout(layouts[i]);
    *plan = (struct tdmi_cublaslt_plan){0};
}

/* An attribute of a descriptor; value NULL: it keeps its default. */
struct setting {
    enum tdmi_cublaslt_number name;
    const void *value;
    size_t bytes;
};

static int set_all(int (*set)(void *to, int name, const void *value, size_t bytes), void *to,
                   const struct setting *settings, int n)
{
    int code = 0;
    for (int i = 0; i < n && code == 0; i++)
        if (settings[i].value)
            code = set(to, (int)settings[i].name, settings[i].value, settings[i].bytes);
    return code;
}

/* 0: the product alone. */
static uint32_t epilogue_of(const struct tdmi_cublaslt_product *it)
{
    if (it->act == TDMI_ACT_RELU)
        return it->has_bias ? TDMI_CUBLASLT_N_ADDS_BIAS_IS_RELU : TDMI_CUBLASLT_N_IS_RELU;
    return it->has_bias ? TDMI_CUBLASLT_N_ADDS_BIAS : 0;
}

/* bias NULL: not known yet. cuBLASLt's code. */
static int operation_of(const struct tdmi_cublaslt_calls *calls,
                        const struct tdmi_cublaslt_product *it, const void *bias, void **operation)
{
    const bool rounds = it->type == TDMI_DTYPE_F32 && it->allows_tf32;
    const int32_t transposed = TDMI_CUBLASLT_N_TRANSPOSED;
    const uint32_t epilogue = epilogue_of(it);
    const struct setting settings[] = {
        {TDMI_CUBLASLT_N_TRANSPOSE_FIRST, it->is_b_transposed ? &transposed : NULL,
         sizeof(int32_t)},
        {TDMI_CUBLASLT_N_TRANSPOSE_SECOND, it->is_a_transposed ? &transposed : NULL,
         sizeof(int32_t)},
        {TDMI_CUBLASLT_N_EPILOGUE, epilogue ? &epilogue : NULL, sizeof epilogue},
        {TDMI_CUBLASLT_N_BIAS_POINTER, bias ? &bias : NULL, sizeof bias},
    };
    const int code = calls->create_operation(
        operation, rounds ? TDMI_CUBLASLT_N_IN_TF32 : TDMI_CUBLASLT_N_IN_F32, TDMI_CUBLASLT_N_F32);
    return code ? code : set_all(calls->set_operation, *operation, settings, 4);
}

/* Make a plan without its algorithm; returns cuBLASLt's code. */
static int describe(const struct tdmi_cublaslt_calls *calls, const struct tdmi_cublaslt_product *it,
                    struct tdmi_cublaslt_plan *plan)
{
    *plan = (struct tdmi_cublaslt_plan){.product = *it};
    int code = operation_of(calls, it, NULL, &plan->operation);
    if (code == 0)
        code = layout_of(calls, it->type, it->is_b_transposed ? it->columns : it->depth,
                         it->is_b_transposed ? it->depth : it->columns, &plan->first);
    if (code == 0)
        code = layout_of(calls, it->type, it->is_a_transposed ? it->depth : it->rows,
                         it->is_a_transposed ? it->rows : it->depth, &plan->second);
    if (code == 0)
        code = layout_of(calls, it->result, it->rows, it->columns, &plan->result);
    return code;
}

/* ---- choosing ------------------------------------------------------------------------------- */

static size_t most_workspace(const struct tdmi_cublaslt_product *it)
{
    const size_t most = TDMI_CUBLASLT_MOST_WORKSPACE;
    return it->most_workspace && it->most_workspace < most ? it->most_workspace : most;
}

/* Sums over parts of the depth are added in a step of their own: no atomics, and in f32. Where bits
 * may vary, also as they come, if what they are added to is f32. */
static int preference_for(const struct tdmi_cublaslt_calls *calls,
                          const struct tdmi_cublaslt_product *it, void **preference)
{
    const uint64_t workspace = most_workspace(it);
    const uint32_t of_factors = 16, of_result = (uint32_t)it->alignment;
    const uint32_t in_place =
        it->may_vary && it->result == TDMI_DTYPE_F32 ? TDMI_CUBLASLT_N_IN_PLACE : 0;
    const uint32_t reductions = TDMI_CUBLASLT_N_IN_A_STEP_OF_ITS_OWN | in_place;
    const struct setting settings[] = {
        {TDMI_CUBLASLT_N_WORKSPACE, &workspace, sizeof workspace},
        {TDMI_CUBLASLT_N_REDUCTIONS, &reductions, sizeof reductions},
        {TDMI_CUBLASLT_N_ALIGNMENT_FIRST, &of_factors, sizeof of_factors},
        {TDMI_CUBLASLT_N_ALIGNMENT_SECOND, &of_factors, sizeof of_factors},
        {TDMI_CUBLASLT_N_ALIGNMENT_ADDED, &of_result, sizeof of_result},
        {TDMI_CUBLASLT_N_ALIGNMENT_RESULT, &of_result, sizeof of_result},
    };
    const int code = calls->create_preference(preference);
    return code ? code : set_all(calls->set_preference, *preference, settings, 6);
}

static bool choose(const struct tdmi_cublaslt_guess *guesses, int n, tdmi_cublaslt_timer *timer,
                   void *self, struct tdmi_cublaslt_plan *plan)
{
    struct tdmi_cublaslt_plan tried = *plan;
    double best = 0.0;
    bool is_found = false;
    for (int i = 0; i < n; i++) {
        if (guesses[i].state != 0 || guesses[i].workspace_bytes > most_workspace(&plan->product))
            continue;
        memcpy(tried.algorithm, guesses[i].algorithm.words, sizeof tried.algorithm);
        tried.workspace_bytes = guesses[i].workspace_bytes;
        const double seconds = timer ? timer(self, &tried) : 0.0;
        if (seconds < 0.0 || (is_found && seconds >= best))
            continue;
        is_found = true;
        *plan = tried;
        best = seconds;
    }
    return is_found;
}

tdm_status tdmi_cublaslt_plan_find(tdmi_cublaslt *cublaslt, const struct tdmi_cublaslt_product *it,
                                   tdmi_cublaslt_timer *timer, void *self,
                                   struct tdmi_cublaslt_plan *plan, tdm_error *err)
{
    const struct tdmi_cublaslt_calls *calls = &cublaslt->calls;
    struct tdmi_cublaslt_guess guesses[most_timed];
    void *preference = NULL;
    int n = 0;
    int code = describe(calls, it, plan);
    if (code == 0)
        code = preference_for(calls, it, &preference);
    if (code == 0)
        code = calls->guess(cublaslt->handle, plan->operation, plan->first, plan->second,
                            plan->result, plan->result, preference, most_timed, guesses, &n);
    const bool is_found = code == 0 && choose(guesses, n, timer, self, plan);
    if (preference)
        (void)calls->destroy_preference(preference);
    if (is_found)
        return TDM_OK;
    tdmi_cublaslt_plan_release(cublaslt, plan);
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "planning a product: cuBLASLt names no algorithm that can be run (it says %d)",
                    code);
}

tdm_status tdmi_cublaslt_plan_take(tdmi_cublaslt *cublaslt, const struct tdmi_cublaslt_product *it,
                                   const uint64_t algorithm[TDMI_CUBLASLT_ALGORITHM_WORDS],
                                   struct tdmi_cublaslt_plan *plan, tdm_error *err)
{
    const struct tdmi_cublaslt_calls *calls = &cublaslt->calls;
    struct tdmi_cublaslt_algorithm given;
    struct tdmi_cublaslt_guess found = {.state = -1};
    memcpy(given.words, algorithm, sizeof given.words);
    int code = describe(calls, it, plan);
    if (code == 0)
        code = calls->check(cublaslt->handle, plan->operation, plan->first, plan->second,
                            plan->result, plan->result, &given, &found);
    if (code == 0 && found.workspace_bytes <= TDMI_CUBLASLT_MOST_WORKSPACE) {
        memcpy(plan->algorithm, given.words, sizeof plan->algorithm);
        plan->workspace_bytes = found.workspace_bytes;
        return TDM_OK;
    }
    tdmi_cublaslt_plan_release(cublaslt, plan);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "reading an algorithm of cuBLASLt from a file: it is damaged, or of another "
                    "cuBLASLt or GPU (cuBLASLt says %d)",
                    code);
}

/* ---- naming --------------------------------------------------------------------------------- */

/* -1: it does not say. */
static int config_of(const tdmi_cublaslt *cublaslt, const struct tdmi_cublaslt_plan *plan,
                     enum tdmi_cublaslt_number name)
{
    struct tdmi_cublaslt_algorithm algorithm;
    int32_t value = 0;
    size_t bytes = 0;
    memcpy(algorithm.words, plan->algorithm, sizeof algorithm.words);
    const int code =
        cublaslt->calls.get_config(&algorithm, (int)name, &value, sizeof value, &bytes);
    return code == 0 && bytes == sizeof value ? value : -1;
}

void tdmi_cublaslt_plan_name(const tdmi_cublaslt *cublaslt, const struct tdmi_cublaslt_plan *plan,
                             char *text, size_t text_bytes)
{
    const int number = config_of(cublaslt, plan, TDMI_CUBLASLT_N_CONFIG_NUMBER);
    const int tile = config_of(cublaslt, plan, TDMI_CUBLASLT_N_CONFIG_TILE);
    const int parts = config_of(cublaslt, plan, TDMI_CUBLASLT_N_CONFIG_PARTS);
    char in_parts[24] = "";
    if (parts > 1)
        snprintf(in_parts, sizeof in_parts, ", %d parts", parts);
    if (number >= 0)
        snprintf(text, text_bytes, "cuBLASLt algorithm %d, tile %d%s", number, tile, in_parts);
    else
        snprintf(text, text_bytes, "cuBLASLt");
}

/* ---- running -------------------------------------------------------------------------------- */

int tdmi_cublaslt_plan_run(const tdmi_cublaslt *cublaslt, const struct tdmi_cublaslt_plan *plan,
                           struct CUstream_st *queue, const struct tdmi_cublaslt_call *call)
{
    const struct tdmi_cublaslt_calls *calls = &cublaslt->calls;
    const float one = 1.0F, times_added = call->added ? 1.0F : 0.0F;
    const void *added = call->added ? call->added : call->d;
    struct tdmi_cublaslt_algorithm algorithm;
    memcpy(algorithm.words, plan->algorithm, sizeof algorithm.words);
    void *operation = plan->operation; /* which others read meanwhile */
    int code = call->bias ? operation_of(calls, &plan->product, call->bias, &operation) : 0;
    if (code == 0)
        code =
            calls->multiply(cublaslt->handle, operation, &one, call->b, plan->first, call->a,
                            plan->second, &times_added, added, plan->result, call->d, plan->result,
                            &algorithm, call->workspace, plan->workspace_bytes, queue);
    if (operation != plan->operation)
        (void)calls->destroy_operation(operation);
    return code;
}
