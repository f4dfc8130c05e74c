/* The optimizer's step over all tensors: its pieces, cut into one part for each block of threads,
 * and its lists on the GPU, in one allocation. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/loss/loss.h"
#include "backend/cuda/kernels/update.h"
#include "base/scope.h"

#include <limits.h>

struct tdmi_update_list {
    tdmi_device *device;
    void *memory; /* of the GPU */
    struct tdmi_cuda_update it;
};

/* Offsets of the parts of that memory. */
struct layout {
    size_t blocks, tensors, squares, adapted, verdict, bytes;
};

static size_t place(size_t *end, size_t bytes)
{
    const size_t at = (*end + 63) / 64 * 64;
    *end = at + bytes;
    return at;
}

static struct layout layout_of(const struct tdmi_cuda_update *it)
{
    struct layout to = {0};
    to.blocks = place(&to.bytes, (size_t)it->n_blocks * sizeof *it->blocks);
    to.tensors = place(&to.bytes, (size_t)it->n_tensors * sizeof *it->tensors);
    to.squares = place(&to.bytes, (size_t)it->n_param_blocks * 2 * sizeof *it->squares);
    to.adapted = place(&to.bytes, (size_t)it->n_tensors * sizeof *it->adapted);
    to.verdict = place(&to.bytes, sizeof *it->verdict);
    return to;
}

static int64_t blocks_of(const struct tdmi_update_piece *piece)
{
    return (piece->n + TDMI_CUDA_UPDATE_VALUES - 1) / TDMI_CUDA_UPDATE_VALUES;
}

static tdm_status count(struct tdmi_cuda_update *it, const struct tdmi_update_piece *pieces, int n,
                        tdm_error *err)
{
    int64_t blocks[2] = {0, 0}; /* of parameters, of states */
    for (int i = 0; i < n; i++) {
        blocks[pieces[i].is_state] += blocks_of(&pieces[i]);
        if (!pieces[i].is_state && pieces[i].tensor >= it->n_tensors)
            it->n_tensors = pieces[i].tensor + 1;
    }
    if (blocks[0] + blocks[1] > INT_MAX)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a step of %lld blocks of %d values: a launch has no more than %d",
                        (long long)(blocks[0] + blocks[1]), TDMI_CUDA_UPDATE_VALUES, INT_MAX);
    it->n_param_blocks = (int)blocks[0];
    it->n_blocks = (int)(blocks[0] + blocks[1]);
    return TDM_OK;
}

static void cut(const struct tdmi_update_piece *pieces, int n,
                struct tdmi_cuda_update_block *blocks, struct tdmi_cuda_update_tensor *tensors)
{
    int32_t at = 0;
    for (int i = 0; i < n; i++) {
        const struct tdmi_update_piece *piece = &pieces[i];
        if (!piece->is_state) {
            struct tdmi_cuda_update_tensor *tensor = &tensors[piece->tensor];
            if (tensor->end == 0)
                *tensor = (struct tdmi_cuda_update_tensor){at, at, piece->part, piece->has_decay};
            tensor->end += (int32_t)blocks_of(piece);
        }
        for (int64_t begin = 0; begin < piece->n; begin += TDMI_CUDA_UPDATE_VALUES) {
            const int64_t rest = piece->n - begin;
            blocks[at++] = (struct tdmi_cuda_update_block){
                .offset = piece->offset + begin,
                .n = (int32_t)(rest < TDMI_CUDA_UPDATE_VALUES ? rest : TDMI_CUDA_UPDATE_VALUES),
                .tensor = piece->tensor,
                .part = piece->part,
                .momentum = piece->momentum,
                .has_decay = piece->has_decay,
                .is_state = piece->is_state,
            };
        }
    }
}

/* Upload the parts of the memory that the GPU only reads. */
static tdm_status upload(tdmi_stream *stream, void *memory, const struct layout *to,
                         const struct tdmi_update_piece *pieces, int n, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) char *host = NULL;
    TDMI_TRY(TDMI_NEW(host, to->squares, err));
    cut(pieces, n, (struct tdmi_cuda_update_block *)(host + to->blocks),
        (struct tdmi_cuda_update_tensor *)(host + to->tensors));
    TDMI_TRY(tdmi_cuda_upload(stream, memory, host, to->squares, err));
    return tdmi_cuda_stream_wait(stream, err);
}

static void close_list(tdmi_update_list *list)
{
    if (list && list->memory)
        tdmi_cuda_free(list->device, list->memory);
    tdmi_free(list);
}
TDMI_POINTER_RELEASE(tdmi_update_list, close_list)

static tdm_status open_list(tdmi_stream *stream, const struct tdmi_update_arrays *arrays,
                            const struct tdmi_update_piece *pieces, int n, tdmi_update_list **list,
                            tdm_error *err)
{
    TDMI_AT_END(close_list_at) tdmi_update_list *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    struct tdmi_cuda_update *it = &made->it;
    it->arrays = *arrays;
    TDM_TRY(count(it, pieces, n, err), err, "listing parameters for a GPU");
    const struct layout to = layout_of(it);
    char *memory = tdmi_cuda_alloc(stream->device, to.bytes);
    if (!memory)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "listing %d pieces of parameters: %zu bytes on the GPU are not free", n,
                        to.bytes);
    made->device = stream->device;
    made->memory = memory;
    it->blocks = (const struct tdmi_cuda_update_block *)(memory + to.blocks);
    it->tensors = (const struct tdmi_cuda_update_tensor *)(memory + to.tensors);
    it->squares = (double *)(memory + to.squares);
    it->adapted = (struct tdmi_cuda_update_adapted *)(memory + to.adapted);
    it->verdict = (struct tdmi_cuda_update_verdict *)(memory + to.verdict);
    TDMI_TRY(upload(stream, memory, &to, pieces, n, err));
    *list = tdmi_take(&made);
    return TDM_OK;
}

static void run_list(tdmi_stream *stream, tdmi_update_list *list, struct tdmi_update_method method,
                     const float *sums, const struct tdmi_step_facts *facts)
{
    struct tdmi_cuda_update it = list->it;
    it.sums = sums;
    it.facts = facts;
    TDMI_CUDA_LAUNCH(stream, "the step of the parameters", tdmi_cuda_update_run, &it, method);
}

static void accumulate(tdmi_stream *stream, enum tdmi_dtype type, void *to, const void *from,
                       int64_t n)
{
    TDMI_CUDA_LAUNCH(stream, "adding gradients", tdmi_cuda_sum, type, to, from, to, n);
}

static void tail_of(tdmi_stream *stream, const struct tdmi_judgement *judgements,
                    const int32_t *labels, const struct tdmi_mixed_label *mixed, int n, float *tail)
{
    TDMI_CUDA_LAUNCH(stream, "loss and counts of a group", tdmi_cuda_tail, judgements, labels,
                     mixed, n, tail);
}

const struct tdmi_update_table tdmi_cuda_update_table = {
    .accumulate = accumulate,
    .tail = tail_of,
    .open = open_list,
    .close = close_list,
    .run = run_list,
};
