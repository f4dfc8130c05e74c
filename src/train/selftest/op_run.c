/* Running one op alone. */
#include "train/selftest/op_run.h"
#include "base/hash/rng.h"
#include "base/scope.h"
#include "graph/op.h"
#include "tensor/floats.h"

#include <math.h>
#include <string.h>

enum { seed = 20 };

const char *tdmi_op_tensor_name(enum tdmi_op_tensor tensor)
{
    static const char *const names[] = {
#define ITEM(tensor, name) name,
        TDMI_T_LIST(ITEM)
#undef ITEM
    };
    return names[tensor];
}

/* ---- cases ------------------------------------------------------------------------------- */

/* The same padding on both axes. */
#define PADS(before, after) \
    .pad_top = before, .pad_bottom = after, .pad_left = before, .pad_right = after
#define GROUPED(out, k, s, d, g, before, after)                                                    \
    {                                                                                              \
        .channels = out, .kernel = k, .stride = s, PADS(before, after), .dilation = d, .groups = g \
    }
#define CONV(out, k, s, before, after, bias)                                              \
    {                                                                                     \
        .channels = out, .kernel = k, .stride = s, PADS(before, after), .has_bias = bias, \
        .dilation = 1, .groups = 1                                                        \
    }
#define POOL(k, s, before, after)                     \
    {                                                 \
        .kernel = k, .stride = s, PADS(before, after) \
    }
#define LRN(channels)                                                 \
    {                                                                 \
        .kernel = channels, .alpha = 0.5, .beta = 0.75, .offset = 2.0 \
    }

static const struct tdmi_case cases[] = {
#define X(op, name, height, width, channels, n, max_images, ...) \
    {name, TDMI_OP_##op, __VA_ARGS__, {height, width, channels}, n, max_images},
#include "train/selftest/cases.def"
#undef X
};

const struct tdmi_case *tdmi_case_at(int index)
{
    return index >= 0 && index < (int)(sizeof cases / sizeof cases[0]) ? &cases[index] : NULL;
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
    float *const all[] = {values->of[TDMI_T_X], values->of[TDMI_T_SECOND_X], values->dy};
    const int64_t n[] = {values->n[TDMI_T_X], values->n[TDMI_T_SECOND_X], values->n_dy};
    for (int k = 0; k < 3; k++) {
        void *stored = tdmi_arena_alloc(arena, (size_t)n[k] + 1, sizeof(float));
        TDMI_CHECK_MEMORY(stored, err);
        if (!all[k])
            continue;
        tdmi_floats_store(storage, stored, all[k], n[k]);
        tdmi_floats_load(storage, all[k], stored, n[k]);
    }
    return TDM_OK;
}

/* ---- running ---------------------------------------------------------------------------- */

/* Arrays of a call beside its tensors. */
enum {
    DY,
    SAVED,
    WORKSPACE,
    NORM,
    PACKED,
    LABELS,
    MIXED,
    JUDGEMENTS,
    CLASS_WEIGHTS,
    SAMPLES,
    DRAWS,
    PICTURES,
    PIXELS,
    ARRAYS
};

/* Key of the random draws. */
static const struct tdmi_draw_key key = {.seed = seed, .epoch = 3};

struct device_run {
    const struct tdmi_backend *backend;
    const struct tdmi_case *it;
    struct tdmi_op_desc desc;
    const struct tdmi_kernel *kernel;
    tdmi_stream *stream;
    void *of[TDMI_T_TENSORS], *arrays[ARRAYS]; /* on the device */
    tdmi_arena arena;                          /* of the host's copies */
};

static void release(struct device_run *run)
{
    for (int t = 0; t < TDMI_T_TENSORS; t++)
        run->backend->memory.free(run->desc.device, run->of[t]);
    for (int k = 0; k < ARRAYS; k++)
        run->backend->memory.free(run->desc.device, run->arrays[k]);
    run->backend->stream.close(run->stream);
    if (run->desc.prepared)
        run->kernel->release(run->desc.prepared);
    tdmi_arena_release(&run->arena);
}

static bool is_input(int tensor)
{
    return tensor <= TDMI_T_STATE1;
}

/* Type in which a tensor of the run is stored: see tdmi_op_desc.storage in op.h. */
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
    *to = run->backend->memory.alloc(run->desc.device, bytes + 1);
    if (!*to)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %zu bytes on the device", bytes);
    return run->backend->memory.upload(run->stream, *to, from, bytes, err);
}

/* Memory that no kernel may read before writing it. */
static tdm_status place_poison(struct device_run *run, void **to, size_t bytes, tdm_error *err)
{
    uint8_t *poison = tdmi_arena_alloc(&run->arena, bytes + 1, 1);
    TDMI_CHECK_MEMORY(poison, err);
    memset(poison, 0xff, bytes); /* a NaN in every float */
    return place(run, to, poison, bytes, err);
}

/* Images, labels and the like, which a call finds on its device, too. */
static tdm_status place_samples(struct device_run *run, const struct tdmi_op_values *values,
                                tdm_error *err)
{
    const size_t n = (size_t)run->it->n, picture = (size_t)tdmi_shape_values(run->desc.out);
    const uint8_t **pixels = tdmi_arena_alloc(&run->arena, n, sizeof *pixels);
    const struct {
        const void *from;
        size_t bytes;
    } what[ARRAYS] = {
        [LABELS] = {values->labels, n * sizeof *values->labels},
        [MIXED] = {values->mixed, n * sizeof *values->mixed},
        [CLASS_WEIGHTS] = {values->class_weights, (size_t)run->desc.out.c * sizeof(float)},
        [SAMPLES] = {values->samples, n * sizeof *values->samples},
        [DRAWS] = {&key, sizeof key},
        [PICTURES] = {values->pixels, n * picture},
    };
    TDMI_CHECK_MEMORY(pixels, err);
    for (int k = 0; k < ARRAYS; k++)
        if (what[k].from)
            TDM_TRY(place(run, &run->arrays[k], what[k].from, what[k].bytes, err), err, "samples");
    TDM_TRY(place_poison(run, &run->arrays[JUDGEMENTS], n * sizeof(struct tdmi_judgement), err),
            err, "judgements");
    for (size_t i = 0; i < n; i++)
        pixels[i] = (const uint8_t *)run->arrays[PICTURES] + i * picture;
    return place(run, &run->arrays[PIXELS], pixels, n * sizeof *pixels, err);
}

/* n values with room for those of max_images, as in a plan, filled with NaN except for the values
 * of `from`, which may be NULL. */
static tdm_status place_for_most(struct device_run *run, void **to, const float *from, int64_t n,
                                 enum tdmi_dtype storage, tdm_error *err)
{
    const size_t bytes = tdmi_dtype_bytes(storage) * (size_t)n;
    const size_t most = bytes / (size_t)run->it->n * (size_t)run->it->max_images;
    void *stored = tdmi_arena_alloc(&run->arena, (size_t)n + 1, sizeof(float));
    TDMI_CHECK_MEMORY(stored, err);
    TDMI_TRY(place_poison(run, to, most > bytes ? most : bytes, err));
    if (!from)
        return TDM_OK;
    tdmi_floats_store(storage, stored, from, n);
    return run->backend->memory.upload(run->stream, *to, stored, bytes, err);
}

static tdm_status place_all(struct device_run *run, const struct tdmi_op_values *values,
                            tdm_error *err)
{
    const struct tdmi_op_desc *desc = &run->desc;
    const struct tdmi_kernel_needs needs = tdmi_kernel_needs_of(run->kernel, desc);
    const struct {
        int array;
        size_t bytes;
    } poisoned[] = {{SAVED, needs.saved_bytes},
                    {NORM, tdmi_norm_bytes(desc->out.c)},
                    {PACKED, needs.packed_bytes},
                    {WORKSPACE, needs.workspace_bytes}};
    for (int t = 0; t < TDMI_T_TENSORS; t++)
        if (values->of[t] && t != TDMI_T_LOSS)
            TDM_TRY(place_for_most(run, &run->of[t], is_input(t) ? values->of[t] : NULL,
                                   values->n[t], storage_of(desc, t), err),
                    err, "%s", tdmi_op_tensor_name((enum tdmi_op_tensor)t));
    TDM_TRY(place_for_most(run, &run->arrays[DY], values->dy, values->n_dy, desc->storage, err),
            err, "output gradient");
    for (size_t k = 0; k < sizeof poisoned / sizeof *poisoned; k++)
        TDMI_TRY(place_poison(run, &run->arrays[poisoned[k].array], poisoned[k].bytes, err));
    return place_samples(run, values, err);
}

/* Download stored values into the end of their floats, then widen them in place. */
static tdm_status fetch_floats(struct device_run *run, float *to, const void *from, int64_t n,
                               enum tdmi_dtype storage, tdm_error *err)
{
    const size_t bytes = tdmi_dtype_bytes(storage) * (size_t)n;
    char *stored = (char *)to + sizeof *to * (size_t)n - bytes;
    TDMI_TRY(run->backend->memory.download(run->stream, stored, from, bytes, err));
    TDMI_TRY(run->backend->stream.wait(run->stream, err));
    tdmi_floats_load(storage, to, stored, n);
    return TDM_OK;
}

static tdm_status fetch(struct device_run *run, struct tdmi_op_values *values, tdm_error *err)
{
    const int n = run->it->n;
    struct tdmi_judgement *judgements =
        tdmi_arena_alloc(&run->arena, (size_t)n, sizeof *judgements);
    TDMI_CHECK_MEMORY(judgements, err);
    TDM_TRY(run->backend->stream.wait(run->stream, err), err, "running");
    for (int t = TDMI_T_Y; t < TDMI_T_TENSORS; t++)
        if (run->of[t])
            TDM_TRY(fetch_floats(run, values->of[t], run->of[t], values->n[t],
                                 storage_of(&run->desc, t), err),
                    err, "fetching");
    TDM_TRY(run->backend->memory.download(run->stream, judgements, run->arrays[JUDGEMENTS],
                                          (size_t)n * sizeof *judgements, err),
            err, "fetching");
    TDM_TRY(run->backend->stream.wait(run->stream, err), err, "fetching");
    for (int i = 0; tdmi_op_of(run->it->kind)->is_output && i < n; i++) {
        values->of[TDMI_T_LOSS][i] = judgements[i].loss;
        values->predicted[i] = judgements[i].predicted;
    }
    return TDM_OK;
}

static tdm_status run_kernel(struct device_run *run, struct tdmi_op_values *values, tdm_error *err)
{
    const struct tdmi_kernel *kernel = run->kernel;
    const struct tdmi_op_desc *desc = &run->desc;
    struct tdmi_op_call call = {
        .n = run->it->n,
        .x = {run->of[TDMI_T_X], run->of[TDMI_T_SECOND_X]},
        .y = run->of[TDMI_T_Y],
        .dy = run->arrays[DY],
        .dx = {run->of[TDMI_T_DX], run->of[TDMI_T_SECOND_DX]},
        .params = {run->of[TDMI_T_PARAM0], run->of[TDMI_T_PARAM1]},
        .dparams = {run->of[TDMI_T_DPARAM0], run->of[TDMI_T_DPARAM1]},
        .states = {run->of[TDMI_T_STATE0], run->of[TDMI_T_STATE1]},
        .state_sums = {run->of[TDMI_T_STATE_SUM0], run->of[TDMI_T_STATE_SUM1]},
        .saved = run->arrays[SAVED],
        .workspace = run->arrays[WORKSPACE],
        .pixels = run->arrays[PIXELS],
        .labels = run->arrays[LABELS],
        .mixed = run->arrays[MIXED],
        .judgements = run->arrays[JUDGEMENTS],
        .class_weights = run->arrays[CLASS_WEIGHTS],
        .draws = {.key = run->arrays[DRAWS], .samples = run->arrays[SAMPLES]},
    };
    if (kernel->pack)
        kernel->pack(run->stream, desc,
                     &(struct tdmi_pack_call){.params = {call.params[0], call.params[1]},
                                              .packed = run->arrays[PACKED]});
    call.packed = run->arrays[PACKED];
    if (kernel->reduce_forward && desc->is_training) {
        call.norm = tdmi_norm_at(run->arrays[NORM], desc->out.c);
        call.norm.centre = run->of[TDMI_T_STATE0];
        call.norm.total = call.norm.sums;
        call.norm.total_images = run->it->n;
        kernel->reduce_forward(run->stream, desc, &call);
    }
    kernel->forward(run->stream, desc, &call);
    if (values->of[TDMI_T_DX]) {
        if (kernel->reduce_backward)
            kernel->reduce_backward(run->stream, desc, &call);
        kernel->backward(run->stream, desc, &call);
    }
    return fetch(run, values, err);
}

/* The kernel of a case, prepared. */
static tdm_status prepare(struct device_run *run, tdmi_device *device, bool is_training,
                          bool wants_dx, enum tdmi_dtype storage, tdm_error *err)
{
    const struct tdmi_case *it = run->it;
    run->desc = (struct tdmi_op_desc){
        .kind = it->kind,
        .attrs = it->attrs,
        .in = {it->in, it->in},
        .max_images = it->max_images,
        .is_training = is_training,
        .wants_dx = wants_dx,
        .storage = storage,
        .device = device,
    };
    run->kernel = run->backend->kernels[it->kind];
    TDM_TRY(tdmi_op_shape(it->kind, &it->attrs, run->desc.in, &run->desc.out, err), err,
            "case '%s'", it->name);
    if (!run->kernel || (run->kernel->can_run && !run->kernel->can_run(&run->desc)))
        return TDM_FAIL(err, TDM_E_ABSENT, "the backend %s lacks the op %s", run->backend->name,
                        tdmi_op_name(it->kind));
    return run->kernel->prepare ? run->kernel->prepare(&run->desc, &run->desc.prepared, err)
                                : TDM_OK;
}

static tdm_status run_prepared(struct device_run *run, struct tdmi_op_values *values,
                               tdm_error *err)
{
    TDMI_TRY(run->backend->stream.open(run->desc.device, &run->stream, err));
    TDMI_TRY(place_all(run, values, err));
    return run_kernel(run, values, err);
}

tdm_status tdmi_op_run(const struct tdmi_backend *backend, tdmi_device *device,
                       const struct tdmi_case *it, bool is_training, struct tdmi_op_values *values,
                       tdm_error *err)
{
    TDMI_AT_END(release) struct device_run run = {.backend = backend, .it = it};
    tdm_status status =
        prepare(&run, device, is_training, values->of[TDMI_T_DX] != NULL, values->storage, err);
    if (status == TDM_E_ABSENT) /* one sentence that says it all */
        return status;
    if (status == TDM_OK)
        status = run_prepared(&run, values, err);
    return TDM_WRAP(err, status, "running the op %s, case '%s'", tdmi_op_name(it->kind), it->name);
}

tdm_status tdmi_op_describe(const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_case *it, enum tdmi_dtype storage,
                            struct tdmi_kernel_algorithms *algorithms, tdm_error *err)
{
    TDMI_AT_END(release) struct device_run run = {.backend = backend, .it = it};
    memset(algorithms, 0, sizeof *algorithms);
    if (!backend->kernels[it->kind]->describe)
        return TDM_OK;
    TDM_TRY(prepare(&run, device, true, true, storage, err), err, "preparing the op %s, case '%s'",
            tdmi_op_name(it->kind), it->name);
    run.kernel->describe(&run.desc, algorithms);
    return TDM_OK;
}
