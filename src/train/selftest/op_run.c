/* Running one op alone. */
#include "train/selftest/op_run.h"
#include "base/hash/rng.h"
#include "graph/op.h"
#include "tensor/floats.h"

#include <math.h>
#include <string.h>

enum { seed = 20 };

const char *tdmi_op_tensor_name(enum tdmi_op_tensor tensor)
{
    static const char *const names[TDMI_T_TENSORS] = {
        "input",
        "second input",
        "parameter 0",
        "parameter 1",
        "state 0",
        "state 1",
        "output",
        "input gradient",
        "second input gradient",
        "parameter 0 gradient",
        "parameter 1 gradient",
        "state sum 0",
        "state sum 1",
        "loss",
    };
    return names[tensor];
}

/* ---- values ----------------------------------------------------------------------------- */

static float *room(tdmi_arena *arena, struct tdmi_op_values *values, enum tdmi_op_tensor tensor,
                   int64_t n)
{
    values->of[tensor] = tdmi_arena_alloc(arena, (size_t)n, sizeof(float));
    values->n[tensor] = n;
    return values->of[tensor];
}

/* ±(0.1 … 1): never within 0.1 of the kink of a ReLU. */
static void fill(float *to, int64_t n, uint64_t stream)
{
    tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_TEST, 0, stream);
    for (int64_t i = 0; to && i < n; i++) {
        float size = tdmi_rng_uniform(&rng, 0.1f, 1.0f);
        to[i] = tdmi_rng_below(&rng, 2) ? size : -size;
    }
}

static void fill_positive(float *to, int64_t n, uint64_t stream)
{
    fill(to, n, stream);
    for (int64_t i = 0; to && i < n; i++)
        to[i] = fabsf(to[i]);
}

/* ±(0.8 … 8), and never within 0.2 of where ReLU6 and hswish bend. */
static void fill_wide(float *to, int64_t n, uint64_t stream)
{
    fill(to, n, stream);
    for (int64_t i = 0; to && i < n; i++) {
        to[i] *= 8.0f;
        float size = fabsf(to[i]);
        if (fabsf(size - 3.0f) < 0.2f || fabsf(size - 6.0f) < 0.2f)
            to[i] += to[i] > 0.0f ? 0.5f : -0.5f;
    }
}

/* Distinct values 1/16 apart within any 512 neighbours: no maximum changes hands. */
static void fill_distinct(float *to, int64_t n)
{
    for (int64_t i = 0; to && i < n; i++)
        to[i] = (float)(i * 197 % 512) / 16.0f - 16.0f;
}

static int64_t spec_values(const struct tdmi_tensor_spec *spec)
{
    int64_t n = 1;
    for (int d = 0; d < spec->n_dims; d++)
        n *= spec->dims[d];
    return n;
}

tdm_status tdmi_op_values_make(const struct tdmi_case *it, bool is_training, tdmi_arena *arena,
                               struct tdmi_op_values *values, tdm_error *err)
{
    const struct tdmi_op *op = tdmi_op_of(it->kind);
    struct tdmi_shape out;
    struct tdmi_tensor_spec specs[2];
    memset(values, 0, sizeof *values);
    TDM_TRY(tdmi_op_shape(it->kind, &it->attrs, (struct tdmi_shape[]){it->in, it->in}, &out, err),
            err, "case '%s'", it->name);
    int64_t n_in = it->n * tdmi_shape_values(it->in), n_out = it->n * tdmi_shape_values(out);
    bool has_backward = is_training && it->kind != TDMI_OP_INPUT;
    float *x = room(arena, values, TDMI_T_X, n_in + 1);
    values->n[TDMI_T_X] = n_in;
    bool is_complete = x && room(arena, values, TDMI_T_Y, n_out);
    if (tdmi_op_inputs(it->kind) == 2) {
        is_complete = is_complete && room(arena, values, TDMI_T_SECOND_X, n_in) &&
                      (!has_backward || room(arena, values, TDMI_T_SECOND_DX, n_in));
        fill(values->of[TDMI_T_SECOND_X], n_in, 3);
    }
    int n_params = op->params ? op->params(&it->attrs, &it->in, specs) : 0;
    for (int i = 0; i < n_params; i++) {
        int64_t n = spec_values(&specs[i]);
        is_complete = is_complete && room(arena, values, TDMI_T_PARAM0 + (unsigned)i, n) &&
                      (!has_backward || room(arena, values, TDMI_T_DPARAM0 + (unsigned)i, n));
        fill(values->of[TDMI_T_PARAM0 + i], n, 10 + (uint64_t)i);
    }
    int n_states = op->states ? op->states(&it->attrs, &it->in, specs) : 0;
    for (int i = 0; i < n_states; i++) {
        int64_t n = spec_values(&specs[i]);
        is_complete = is_complete && room(arena, values, TDMI_T_STATE0 + (unsigned)i, n) &&
                      (!is_training || room(arena, values, TDMI_T_STATE_SUM0 + (unsigned)i, n));
        fill(values->of[TDMI_T_STATE0 + i], n, 20 + (uint64_t)i);
        for (int64_t k = 0; i == 1 && is_complete && k < n; k++) /* a variance is positive */
            values->of[TDMI_T_STATE1][k] = fabsf(values->of[TDMI_T_STATE1][k]);
    }
    if (has_backward)
        is_complete = is_complete && room(arena, values, TDMI_T_DX, n_in);
    if (tdmi_op_of(it->kind)->is_output)
        is_complete = is_complete && room(arena, values, TDMI_T_LOSS, it->n);
    values->n_dy = n_out;
    values->dy = tdmi_arena_alloc(arena, (size_t)n_out, sizeof(float));
    values->pixels = tdmi_arena_alloc(arena, (size_t)n_out, 1);
    values->labels = tdmi_arena_alloc(arena, (size_t)it->n, sizeof *values->labels);
    values->mixed = tdmi_arena_alloc(arena, (size_t)it->n, sizeof *values->mixed);
    values->predicted = tdmi_arena_alloc(arena, (size_t)it->n, sizeof *values->predicted);
    values->samples = tdmi_arena_alloc(arena, (size_t)it->n, sizeof *values->samples);
    values->class_weights = tdmi_arena_alloc(arena, (size_t)out.c, sizeof(float));
    if (!is_complete || !values->dy || !values->pixels || !values->labels || !values->predicted ||
        !values->mixed || !values->samples || !values->class_weights)
        return TDM_FAIL(err, TDM_E_MEMORY, "case '%s': out of memory", it->name);
    if (it->kind == TDMI_OP_MAX_POOL)
        fill_distinct(x, n_in);
    else if (it->kind == TDMI_OP_RELU6 || it->kind == TDMI_OP_HSWISH)
        fill_wide(x, n_in, 1);
    else
        fill(x, n_in, 1);
    fill(values->dy, n_out, 2);
    for (int64_t i = 0; i < n_out; i++)
        values->pixels[i] = (uint8_t)(i * 37 + 11);
    for (int i = 0; i < it->n; i++)
        values->labels[i] = (i * 5 + 1) % (out.c > 1 ? out.c : 1);
    for (int i = 0; i < it->n; i++)
        values->samples[i] = 1000 - 7 * i;
    if (it->n % 2 == 1) /* so that a case chooses by its number of images */
        fill_positive(values->class_weights, out.c, 3);
    else
        values->class_weights = NULL;
    /* Every other sample is mixed, one of them with nothing of its own left. */
    for (int i = 0; i < it->n; i++)
        values->mixed[i] = (struct tdmi_mixed_label){(values->labels[i] + 1 + i / 2) % out.c,
                                                     i % 2 == 0 ? 1.0f : 0.375f * (float)(i / 2)};
    return TDM_OK;
}

tdm_status tdmi_op_values_round(struct tdmi_op_values *values, enum tdmi_dtype storage,
                                tdmi_arena *arena, tdm_error *err)
{
    const struct {
        float *of;
        int64_t n;
    } all[] = {{values->of[TDMI_T_X], values->n[TDMI_T_X]},
               {values->of[TDMI_T_SECOND_X], values->n[TDMI_T_SECOND_X]},
               {values->dy, values->n_dy}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        void *stored = tdmi_arena_alloc(arena, (size_t)all[k].n + 1, sizeof(float));
        if (!stored)
            return TDM_FAIL(err, TDM_E_MEMORY, "out of memory");
        if (!all[k].of)
            continue;
        tdmi_floats_store(storage, stored, all[k].of, all[k].n);
        tdmi_floats_load(storage, all[k].of, stored, all[k].n);
    }
    return TDM_OK;
}

/* ---- running ---------------------------------------------------------------------------- */

enum staged { LABELS, MIXED, JUDGEMENTS, CLASS_WEIGHTS, SAMPLES, DRAWS, PICTURES, PIXELS, STAGED };

/* Of the draws. */
static const struct tdmi_draw_key key = {.seed = seed, .epoch = 3};

struct device_run {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_stream *stream;
    void *of[TDMI_T_TENSORS];
    void *dy, *saved, *workspace, *norm, *packed;
    void *staged[STAGED]; /* what else a call points to */
};

static void release(struct device_run *run)
{
    for (int t = 0; t < TDMI_T_TENSORS; t++)
        if (run->of[t])
            run->backend->memory.free(run->device, run->of[t]);
    for (int k = 0; k < STAGED; k++)
        if (run->staged[k])
            run->backend->memory.free(run->device, run->staged[k]);
    if (run->dy)
        run->backend->memory.free(run->device, run->dy);
    if (run->saved)
        run->backend->memory.free(run->device, run->saved);
    if (run->workspace)
        run->backend->memory.free(run->device, run->workspace);
    if (run->norm)
        run->backend->memory.free(run->device, run->norm);
    if (run->packed)
        run->backend->memory.free(run->device, run->packed);
    if (run->stream)
        run->backend->stream.close(run->stream);
}

static bool is_input(int tensor)
{
    return tensor <= TDMI_T_STATE1;
}

/* Of a run's tensors: op.h, tdmi_op_desc.storage. */
static enum tdmi_dtype storage_of(const struct tdmi_op_desc *desc, int tensor)
{
    const bool is_stored = tensor == TDMI_T_X || tensor == TDMI_T_SECOND_X || tensor == TDMI_T_DX ||
                           tensor == TDMI_T_SECOND_DX ||
                           (tensor == TDMI_T_Y && !tdmi_op_of(desc->kind)->is_output);
    return is_stored ? desc->storage : TDMI_DTYPE_F32;
}

static tdm_status place(struct device_run *run, void **to, const void *from, size_t bytes,
                        tdm_error *err)
{
    *to = run->backend->memory.alloc(run->device, bytes + 1);
    if (!*to)
        return TDM_FAIL(err, TDM_E_MEMORY, "placing %zu bytes: out of memory", bytes);
    return run->backend->memory.upload(run->stream, *to, from, bytes, err);
}

/* Memory that no kernel may read before writing it. */
static tdm_status place_poison(struct device_run *run, void **to, size_t bytes, tdmi_arena *arena,
                               tdm_error *err)
{
    uint8_t *poison = tdmi_arena_alloc(arena, bytes + 1, 1);
    if (!poison)
        return TDM_FAIL(err, TDM_E_MEMORY, "placing %zu bytes: out of memory", bytes);
    memset(poison, 0xff, bytes); /* a NaN in every float */
    return place(run, to, poison, bytes, err);
}

/* Pictures, labels and their like: a call finds them on its device, too. */
static tdm_status stage(struct device_run *run, const struct tdmi_case *it,
                        const struct tdmi_op_desc *desc, const struct tdmi_op_values *values,
                        tdmi_arena *arena, tdm_error *err)
{
    const size_t n = (size_t)it->n, picture = (size_t)tdmi_shape_values(desc->out);
    const uint8_t **pixels = tdmi_arena_alloc(arena, n, sizeof *pixels);
    const struct {
        const void *from;
        size_t bytes;
    } what[STAGED] = {
        [LABELS] = {values->labels, n * sizeof *values->labels},
        [MIXED] = {values->mixed, n * sizeof *values->mixed},
        [CLASS_WEIGHTS] = {values->class_weights, (size_t)desc->out.c * sizeof(float)},
        [SAMPLES] = {values->samples, n * sizeof *values->samples},
        [DRAWS] = {&key, sizeof key},
        [PICTURES] = {values->pixels, n * picture},
    };
    if (!pixels)
        return TDM_FAIL(err, TDM_E_MEMORY, "out of memory");
    for (int k = 0; k < STAGED; k++)
        if (what[k].from)
            TDM_TRY(place(run, &run->staged[k], what[k].from, what[k].bytes, err), err, "samples");
    TDM_TRY(
        place_poison(run, &run->staged[JUDGEMENTS], n * sizeof(struct tdmi_judgement), arena, err),
        err, "judgements");
    for (size_t i = 0; i < n; i++)
        pixels[i] = (const uint8_t *)run->staged[PICTURES] + i * picture;
    return place(run, &run->staged[PIXELS], pixels, n * sizeof *pixels, err);
}

/* n values with room for those of max_images, as a plan has it, whatever that holds; from NULL: all
 * of it. */
static tdm_status place_for_most(struct device_run *run, void **to, const float *from, int64_t n,
                                 enum tdmi_dtype storage, const struct tdmi_case *it,
                                 tdmi_arena *arena, tdm_error *err)
{
    const size_t bytes = tdmi_dtype_bytes(storage) * (size_t)n;
    const size_t most = bytes / (size_t)it->n * (size_t)it->max_images;
    void *stored = tdmi_arena_alloc(arena, (size_t)n + 1, sizeof(float));
    if (!stored)
        return TDM_FAIL(err, TDM_E_MEMORY, "placing %lld values: out of memory", (long long)n);
    TDM_TRY(place_poison(run, to, most > bytes ? most : bytes, arena, err), err, "room");
    if (!from)
        return TDM_OK;
    tdmi_floats_store(storage, stored, from, n);
    return run->backend->memory.upload(run->stream, *to, stored, bytes, err);
}

static tdm_status place_all(struct device_run *run, const struct tdmi_case *it,
                            const struct tdmi_op_desc *desc, const struct tdmi_op_values *values,
                            tdmi_arena *arena, tdm_error *err)
{
    const struct tdmi_kernel_needs needs =
        tdmi_kernel_needs_of(run->backend->kernels[desc->kind], desc);
    for (int t = 0; t < TDMI_T_TENSORS; t++) {
        const enum tdmi_dtype type = storage_of(desc, t);
        if (!values->of[t] || t == TDMI_T_LOSS)
            continue;
        TDM_TRY(place_for_most(run, &run->of[t], is_input(t) ? values->of[t] : NULL, values->n[t],
                               type, it, arena, err),
                err, "%s", tdmi_op_tensor_name((enum tdmi_op_tensor)t));
    }
    TDM_TRY(place_for_most(run, &run->dy, values->dy, values->n_dy, desc->storage, it, arena, err),
            err, "output gradient");
    TDM_TRY(place_poison(run, &run->saved, needs.saved_bytes, arena, err), err, "saved");
    TDM_TRY(place_poison(run, &run->norm, tdmi_norm_bytes(desc->out.c), arena, err), err, "norm");
    TDM_TRY(place_poison(run, &run->packed, needs.packed_bytes, arena, err), err, "packed weights");
    return place_poison(run, &run->workspace, needs.workspace_bytes, arena, err);
}

/* As floats, which the stored ones stand at the end of first. */
static tdm_status fetch_floats(struct device_run *run, float *to, const void *from, int64_t n,
                               enum tdmi_dtype storage, tdm_error *err)
{
    const size_t bytes = tdmi_dtype_bytes(storage) * (size_t)n;
    char *stored = (char *)to + sizeof *to * (size_t)n - bytes;
    TDM_TRY(run->backend->memory.download(run->stream, stored, from, bytes, err), err, "fetching");
    TDM_TRY(run->backend->stream.wait(run->stream, err), err, "fetching");
    tdmi_floats_load(storage, to, stored, n);
    return TDM_OK;
}

static tdm_status fetch(struct device_run *run, const struct tdmi_op_desc *desc,
                        const struct tdmi_case *it, struct tdmi_op_values *values,
                        tdmi_arena *arena, tdm_error *err)
{
    struct tdmi_judgement *judgements = tdmi_arena_alloc(arena, (size_t)it->n, sizeof *judgements);
    if (!judgements)
        return TDM_FAIL(err, TDM_E_MEMORY, "out of memory");
    TDM_TRY(run->backend->stream.wait(run->stream, err), err, "running");
    for (int t = TDMI_T_Y; t < TDMI_T_TENSORS; t++)
        if (run->of[t])
            TDM_TRY(fetch_floats(run, values->of[t], run->of[t], values->n[t], storage_of(desc, t),
                                 err),
                    err, "fetching");
    TDM_TRY(run->backend->memory.download(run->stream, judgements, run->staged[JUDGEMENTS],
                                          (size_t)it->n * sizeof *judgements, err),
            err, "fetching");
    TDM_TRY(run->backend->stream.wait(run->stream, err), err, "fetching");
    for (int i = 0; tdmi_op_of(it->kind)->is_output && i < it->n; i++) {
        values->of[TDMI_T_LOSS][i] = judgements[i].loss;
        values->predicted[i] = judgements[i].predicted;
    }
    return TDM_OK;
}

static tdm_status run_kernel(struct device_run *run, const struct tdmi_kernel *kernel,
                             const struct tdmi_case *it, const struct tdmi_op_desc *desc,
                             struct tdmi_op_values *values, tdmi_arena *arena, tdm_error *err)
{
    struct tdmi_op_call call = {
        .n = it->n,
        .x = {run->of[TDMI_T_X], run->of[TDMI_T_SECOND_X]},
        .y = run->of[TDMI_T_Y],
        .dy = run->dy,
        .dx = {run->of[TDMI_T_DX], run->of[TDMI_T_SECOND_DX]},
        .params = {run->of[TDMI_T_PARAM0], run->of[TDMI_T_PARAM1]},
        .dparams = {run->of[TDMI_T_DPARAM0], run->of[TDMI_T_DPARAM1]},
        .states = {run->of[TDMI_T_STATE0], run->of[TDMI_T_STATE1]},
        .state_sums = {run->of[TDMI_T_STATE_SUM0], run->of[TDMI_T_STATE_SUM1]},
        .saved = run->saved,
        .workspace = run->workspace,
        .pixels = run->staged[PIXELS],
        .labels = run->staged[LABELS],
        .mixed = run->staged[MIXED],
        .judgements = run->staged[JUDGEMENTS],
        .class_weights = run->staged[CLASS_WEIGHTS],
        .draws = {.key = run->staged[DRAWS], .samples = run->staged[SAMPLES]},
    };
    if (kernel->pack)
        kernel->pack(run->stream, desc,
                     &(struct tdmi_pack_call){.params = {call.params[0], call.params[1]},
                                              .packed = run->packed});
    call.packed = run->packed;
    if (kernel->reduce_forward && desc->is_training) {
        call.norm = tdmi_norm_at(run->norm, desc->out.c);
        call.norm.centre = run->of[TDMI_T_STATE0];
        call.norm.total = call.norm.sums;
        call.norm.total_images = it->n;
        kernel->reduce_forward(run->stream, desc, &call);
    }
    kernel->forward(run->stream, desc, &call);
    if (values->of[TDMI_T_DX]) {
        if (kernel->reduce_backward)
            kernel->reduce_backward(run->stream, desc, &call);
        kernel->backward(run->stream, desc, &call);
    }
    return fetch(run, desc, it, values, arena, err);
}

tdm_status tdmi_op_run(const struct tdmi_backend *backend, tdmi_device *device,
                       const struct tdmi_case *it, bool is_training, struct tdmi_op_values *values,
                       tdm_error *err)
{
    struct tdmi_op_desc desc = {
        .kind = it->kind,
        .attrs = it->attrs,
        .in = {it->in, it->in},
        .max_images = it->max_images,
        .is_training = is_training,
        .wants_dx = values->of[TDMI_T_DX] != NULL,
        .storage = values->storage,
        .device = device,
    };
    const struct tdmi_kernel *kernel = backend->kernels[it->kind];
    struct device_run run = {.backend = backend, .device = device};
    tdmi_arena arena;
    TDM_TRY(tdmi_op_shape(it->kind, &it->attrs, desc.in, &desc.out, err), err, "case '%s'",
            it->name);
    if (!kernel || (kernel->can_run && !kernel->can_run(&desc)))
        return TDM_FAIL(err, TDM_E_ABSENT, "the backend %s lacks the op %s", backend->name,
                        tdmi_op_name(it->kind));
    if (kernel->prepare)
        TDM_TRY(kernel->prepare(&desc, &desc.prepared, err), err, "running the op %s, case '%s'",
                tdmi_op_name(it->kind), it->name);
    tdmi_arena_init(&arena, 0);
    tdm_status status = backend->stream.open(device, &run.stream, err);
    if (status == TDM_OK)
        status = place_all(&run, it, &desc, values, &arena, err);
    if (status == TDM_OK)
        status = stage(&run, it, &desc, values, &arena, err);
    if (status == TDM_OK)
        status = run_kernel(&run, kernel, it, &desc, values, &arena, err);
    release(&run);
    if (desc.prepared)
        kernel->release(desc.prepared);
    tdmi_arena_release(&arena);
    return TDM_WRAP(err, status, "running the op %s, case '%s'", tdmi_op_name(it->kind), it->name);
}

tdm_status tdmi_op_describe(const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_case *it, enum tdmi_dtype storage,
                            struct tdmi_kernel_algorithms *ways, tdm_error *err)
{
    struct tdmi_op_desc desc = {
        .kind = it->kind,
        .attrs = it->attrs,
        .in = {it->in, it->in},
        .max_images = it->max_images,
        .is_training = true,
        .wants_dx = true,
        .storage = storage,
        .device = device,
    };
    const struct tdmi_kernel *kernel = backend->kernels[it->kind];
    memset(ways, 0, sizeof *ways);
    if (!kernel->describe)
        return TDM_OK;
    TDM_TRY(tdmi_op_shape(it->kind, &it->attrs, desc.in, &desc.out, err), err, "case '%s'",
            it->name);
    if (kernel->prepare)
        TDM_TRY(kernel->prepare(&desc, &desc.prepared, err), err, "preparing the op %s, case '%s'",
                tdmi_op_name(it->kind), it->name);
    kernel->describe(&desc, ways);
    if (desc.prepared)
        kernel->release(desc.prepared);
    return TDM_OK;
}
