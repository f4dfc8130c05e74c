/*
 * cuBLASLt as a test wants it: products by columns, in double, by the layouts, turns and pointers
 * it was given and nothing else.
 */
#include "backend/cuda/fakes/fake_cublaslt.h"
#include "backend/cuda/vendor/cublaslt_api.h"
#include "tensor/half.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* NVIDIA's headers, which declare these functions, are not needed here. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct fake_cublaslt fake_cublaslt = {.version = 130100};

enum { invalid = 7, not_supported = 15, failed = 13, mark = 0x7a };

struct operation {
    int32_t transposes_first, transposes_second;
    uint32_t epilogue;
    const void *bias;
};
struct layout {
    int type;
    int64_t rows, columns, leading;
};
struct request {
    uint64_t workspace;
    uint32_t reductions, alignment[4];
};

static void *fresh(size_t bytes)
{
    fake_cublaslt.alive++;
    return calloc(1, bytes);
}

static int drop(void *block)
{
    fake_cublaslt.alive--;
    free(block);
    return 0;
}

size_t cublasLtGetVersion(void)
{
    return fake_cublaslt.version;
}

int cublasLtCreate(void **handle)
{
    *handle = fake_cublaslt.handle_code == 0 ? fresh(1) : NULL;
    return fake_cublaslt.handle_code;
}

int cublasLtDestroy(void *handle)
{
    return drop(handle);
}

int cublasLtMatmulDescCreate(void **operation, int compute, int scale)
{
    struct operation *made = fresh(sizeof *made);
    made->epilogue = 1;
    *operation = made;
    return (compute == TDMI_CUBLASLT_N_IN_F32 || compute == TDMI_CUBLASLT_N_IN_TF32) &&
                   scale == TDMI_CUBLASLT_N_F32
               ? 0
               : invalid;
}

int cublasLtMatmulDescDestroy(void *operation)
{
    return drop(operation);
}

static int take(void *to, size_t to_bytes, const void *from, size_t bytes)
{
    if (bytes != to_bytes)
        return invalid;
    memcpy(to, from, bytes);
    return 0;
}

int cublasLtMatmulDescSetAttribute(void *operation, int name, const void *value, size_t bytes)
{
    struct operation *it = operation;
    switch (name) {
    case TDMI_CUBLASLT_N_TRANSPOSE_FIRST:
        return take(&it->transposes_first, sizeof it->transposes_first, value, bytes);
    case TDMI_CUBLASLT_N_TRANSPOSE_SECOND:
        return take(&it->transposes_second, sizeof it->transposes_second, value, bytes);
    case TDMI_CUBLASLT_N_EPILOGUE:
        return take(&it->epilogue, sizeof it->epilogue, value, bytes);
    case TDMI_CUBLASLT_N_BIAS_POINTER:
        return take(&it->bias, sizeof it->bias, value, bytes);
    default:
        return invalid;
    }
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                               int64_t leading)
{
    struct layout *made = fresh(sizeof *made);
    *made = (struct layout){type, (int64_t)rows, (int64_t)columns, leading};
    *layout = made;
    return leading >= made->rows ? 0 : invalid;
}

int cublasLtMatrixLayoutDestroy(void *layout)
{
    return drop(layout);
}

int cublasLtMatmulPreferenceCreate(void **request)
{
    *request = fresh(sizeof(struct request));
    return 0;
}

int cublasLtMatmulPreferenceDestroy(void *request)
{
    return drop(request);
}

int cublasLtMatmulPreferenceSetAttribute(void *request, int name, const void *value, size_t bytes)
{
    struct request *it = request;
    if (name == TDMI_CUBLASLT_N_WORKSPACE)
        return take(&it->workspace, sizeof it->workspace, value, bytes);
    if (name == TDMI_CUBLASLT_N_REDUCTIONS)
        return take(&it->reductions, sizeof it->reductions, value, bytes);
    if (name < TDMI_CUBLASLT_N_ALIGNMENT_FIRST || name > TDMI_CUBLASLT_N_ALIGNMENT_RESULT)
        return invalid;
    return take(&it->alignment[name - TDMI_CUBLASLT_N_ALIGNMENT_FIRST], sizeof(uint32_t), value,
                bytes);
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* A factor as it is multiplied. */
static int64_t rows_of(const struct layout *it, bool is_transposed)
{
    return is_transposed ? it->columns : it->rows;
}

static int64_t columns_of(const struct layout *it, bool is_transposed)
{
    return is_transposed ? it->rows : it->columns;
}

static bool fits(const struct operation *it, const struct layout *first,
                 const struct layout *second, const struct layout *added,
                 const struct layout *result)
{
    return first->type == second->type && /* as the reference has it */
           (result->type == first->type || result->type == TDMI_CUBLASLT_N_F32) &&
           columns_of(first, it->transposes_first) == rows_of(second, it->transposes_second) &&
           rows_of(first, it->transposes_first) == result->rows &&
           columns_of(second, it->transposes_second) == result->columns &&
           added->rows == result->rows && added->columns == result->columns;
}

static bool adds_bias(const struct operation *it)
{
    return it->epilogue == TDMI_CUBLASLT_N_ADDS_BIAS ||
           it->epilogue == TDMI_CUBLASLT_N_ADDS_BIAS_IS_RELU;
}

static bool is_relu(const struct operation *it)
{
    return it->epilogue == TDMI_CUBLASLT_N_IS_RELU ||
           it->epilogue == TDMI_CUBLASLT_N_ADDS_BIAS_IS_RELU;
}

static size_t workspace_of(uint64_t algorithm)
{
    return algorithm == FAKE_WIDE ? (size_t)1 << 30 : 512 * (size_t)algorithm;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *first, void *second,
                                   void *added, void *result, void *request, int asked,
                                   struct tdmi_cublaslt_guess *guesses, int *n)
{
    const struct request *it = request;
    *n = 0;
    if (!handle || it->workspace == 0 || (it->reductions != 2 && it->reductions != 3) ||
        it->alignment[0] != 16 || it->alignment[1] != 16 || it->alignment[2] != it->alignment[3] ||
        it->alignment[3] < 2)
        return invalid;
    if (!fits(operation, first, second, added, result) ||
        (fake_cublaslt.takes_no_relu && is_relu(operation)))
        return not_supported;
    fake_cublaslt.guesses++;
    fake_cublaslt.reductions = it->reductions;
    for (; *n < asked && *n < FAKE_ALGORITHMS && !fake_cublaslt.guesses_nothing; ++*n)
        guesses[*n] = (struct tdmi_cublaslt_guess){
            .algorithm.words = {(uint64_t)*n, mark, it->alignment[3]},
            .workspace_bytes = workspace_of((uint64_t)*n),
            .state = *n == FAKE_CANNOT ? not_supported : 0,
        };
    return 0;
}

int cublasLtMatmulAlgoCheck(void *handle, void *operation, void *first, void *second, void *added,
                            void *result, const struct tdmi_cublaslt_algorithm *algorithm,
                            struct tdmi_cublaslt_guess *found)
{
    if (!handle || algorithm->words[0] >= FAKE_ALGORITHMS || algorithm->words[1] != mark ||
        !fits(operation, first, second, added, result))
        return not_supported;
    found->workspace_bytes = workspace_of(algorithm->words[0]);
    found->state = 0;
    return 0;
}

int cublasLtMatmulAlgoConfigGetAttribute(const struct tdmi_cublaslt_algorithm *algorithm, int name,
                                         void *value, size_t bytes, size_t *written)
{
    const int32_t values[] = {(int32_t)algorithm->words[0], 20, 1}; /* number, tile, parts */
    if (algorithm->words[1] != mark || name < TDMI_CUBLASLT_N_CONFIG_NUMBER ||
        name > TDMI_CUBLASLT_N_CONFIG_PARTS || bytes != sizeof *values)
        return invalid;
    *written = sizeof *values;
    return take(value, bytes, &values[name], sizeof *values);
}

/* ---- computing ------------------------------------------------------------------------------ */

static double get(const void *memory, int type, int64_t i)
{
    if (type == TDMI_CUBLASLT_N_F32)
        return (double)((const float *)memory)[i];
    const uint16_t bits = ((const uint16_t *)memory)[i];
    return (double)(type == TDMI_CUBLASLT_N_BF16 ? tdmi_float_of_bf16(bits)
                                                 : tdmi_float_of_f16(bits));
}

static void put(void *memory, int type, int64_t i, float value)
{
    const uint32_t bits = tdmi_bits_of_float(value);
    if (type == TDMI_CUBLASLT_N_F32)
        ((float *)memory)[i] = value;
    else if (type == TDMI_CUBLASLT_N_BF16)
        ((uint16_t *)memory)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    else
        ((uint16_t *)memory)[i] = tdmi_f16_of_float(value);
}

static double factor_at(const void *memory, const struct layout *it, bool is_transposed,
                        int64_t row, int64_t column)
{
    return get(memory, it->type,
               is_transposed ? row * it->leading + column : column * it->leading + row);
}

/* Arguments of a queued product, by value. */
struct queued {
    struct operation operation;
    struct layout first, second, result;
    const void *a, *b, *added; /* added NULL: nothing is */
    void *d, *workspace;
    size_t workspace_bytes;
};

static void run_queued(void *self)
{
    const struct queued *it = self;
    const struct layout *to = &it->result;
    const int32_t transposes_first = it->operation.transposes_first,
                  transposes_second = it->operation.transposes_second;
    memset(it->workspace, 0xff, it->workspace_bytes);
    for (int64_t column = 0; column < to->columns; column++)
        for (int64_t row = 0; row < to->rows; row++) {
            const int64_t at = column * to->leading + row;
            double sum = it->operation.bias ? get(it->operation.bias, to->type, row) : 0.0;
            for (int64_t k = 0; k < columns_of(&it->first, transposes_first); k++)
                sum += factor_at(it->a, &it->first, transposes_first, row, k) *
                       factor_at(it->b, &it->second, transposes_second, k, column);
            sum += it->added ? get(it->added, to->type, at) : 0.0;
            put(it->d, to->type, at, is_relu(&it->operation) && sum < 0.0 ? 0.0f : (float)sum);
        }
}

int cublasLtMatmul(void *handle, void *operation, const void *alpha, const void *a, void *first,
                   const void *b, void *second, const void *beta, const void *c, void *added,
                   void *d, void *result, const struct tdmi_cublaslt_algorithm *algorithm,
                   void *workspace, size_t workspace_bytes, struct CUstream_st *stream)
{
    const struct operation *it = operation;
    const struct layout *to = result;
    const bool adds = adds_bias(it), is_known = adds || is_relu(it) || it->epilogue == 1;
    const float times_added = *(const float *)beta;
    if (!handle || !a || !b || !c || !d || *(const float *)alpha != 1.0f ||
        (times_added != 0.0f && times_added != 1.0f) || algorithm->words[1] != mark ||
        algorithm->words[0] >= FAKE_ALGORITHMS || !is_known || adds != (it->bias != NULL) ||
        workspace_bytes < workspace_of(algorithm->words[0]) || (uintptr_t)workspace % 256 != 0 ||
        ((uintptr_t)a | (uintptr_t)b | (uintptr_t)it->bias) % 16 != 0 || algorithm->words[2] == 0 ||
        ((uintptr_t)c | (uintptr_t)d) % algorithm->words[2] != 0 ||
        !fits(it, first, second, added, to))
        return invalid;
    fake_cublaslt.runs[algorithm->words[0]]++;
    fake_cublaslt.last[0] = b; /* counted by columns, factors change places */
    fake_cublaslt.last[1] = a;
    fake_cublaslt.last[2] = d;
    if (algorithm->words[0] == FAKE_BREAKS)
        return failed;
    struct queued queued = {.operation = *it,
                            .first = *(const struct layout *)first,
                            .second = *(const struct layout *)second,
                            .result = *to,
                            .a = a,
                            .b = b,
                            .added = times_added == 0.0f ? NULL : c,
                            .d = d,
                            .workspace = workspace,
                            .workspace_bytes = workspace_bytes};
    const long ns =
        fake_cublaslt.every_ns + (algorithm->words[0] == FAKE_SLOWLY ? fake_slow_ns : 0);
    if (fake_cublaslt.launch)
        return fake_cublaslt.launch(stream, run_queued, &queued, sizeof queued, ns);
    run_queued(&queued);
    return 0;
}
