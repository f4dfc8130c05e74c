/* Opening cuDNN; choosing, keeping and running its plans. */
#include "backend/cuda/vendor/cudnn_plan.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Configs that the heuristics may name; those that are timed; and those that are timed where cuDNN
 * compiles each first, which takes a second. */
enum { most_configs = 64, most_timed = 8, most_compiled = 3 };

struct tdmi_cudnn {
    void *library;
    struct tdmi_cudnn_calls calls;
    tdmi_cudnn_handle handle; /* NULL: of a GPU that is only described */
    tdmi_cudnn_descriptor gpu;
    int version;
    pthread_mutex_t lock; /* of the handle: one call at a time */
};

/* ---- opening -------------------------------------------------------------------------------- */

static int version_of(const void *calls)
{
    const int version = (int)((const struct tdmi_cudnn_calls *)calls)->version();
    return version < 10000 ? version / 1000 * 10000 + version % 1000 : version; /* before 9 */
}

/* The oldest plans for a described GPU. */
static const char *const names[] = {"libcudnn.so.9", NULL};
static const char *const folders[] = {"nvidia/cudnn/lib", NULL};
#define X(field, symbol, result, parameters) #symbol,
static const char *const symbols[] = {TDMI_CUDNN_CALLS(X) NULL};
#undef X
const struct tdmi_cuda_library tdmi_cudnn_library = {
    "cuDNN", "convolutions are computed by kernels of tandem's own",
    names,   folders,
    symbols, version_of,
    90800};

static tdm_status refuse(const tdmi_cudnn *cudnn, int code, const char *what, tdm_error *err)
{
    char why[256] = "";
    cudnn->calls.last_error(why, sizeof why);
    why[sizeof why - 1] = '\0';
    return TDM_FAIL(err, TDM_E_ABSENT, "%s: cuDNN %d.%d says %d, %s", what, cudnn->version / 10000,
                    cudnn->version / 100 % 100, code, why);
}

static tdm_status describe_gpu(tdmi_cudnn *cudnn, const char *gpu, tdm_error *err)
{
    int code = gpu ? 0 : cudnn->calls.create_handle(&cudnn->handle);
    if (code != 0)
        return refuse(cudnn, code, "opening cuDNN on the GPU", err);
    code = cudnn->calls.create(TDMI_CUDNN_DEVICE, &cudnn->gpu);
    if (code == 0)
        code = gpu ? cudnn->calls.set(cudnn->gpu, TDMI_CUDNN_A_DEVICE_JSON, TDMI_CUDNN_T_CHAR,
                                      (int64_t)strlen(gpu), gpu)
                   : cudnn->calls.set(cudnn->gpu, TDMI_CUDNN_A_DEVICE_HANDLE, TDMI_CUDNN_T_HANDLE,
                                      1, &cudnn->handle);
    if (code == 0)
        code = cudnn->calls.finalize(cudnn->gpu);
    return code == 0 ? TDM_OK : refuse(cudnn, code, "describing the GPU to cuDNN", err);
}

tdm_status tdmi_cudnn_open(const char *file, const char *gpu, tdmi_cudnn **cudnn, tdm_error *err)
{
    tdmi_cudnn *new = NULL;
    *cudnn = NULL;
    TDMI_TRY(TDMI_NEW(new, 1, err));
    if (pthread_mutex_init(&new->lock, NULL) != 0) {
        tdmi_free(new);
        return TDM_FAIL(err, TDM_E_SYSTEM, "opening cuDNN: no lock to be had");
    }
    TDMI_AT_END(tdmi_cudnn_close_at) tdmi_cudnn *made = new;
    TDMI_TRY(tdmi_cuda_library_open(&tdmi_cudnn_library, file, &made->calls, &made->library,
                                    &made->version, err));
    TDMI_TRY(describe_gpu(made, gpu, err));
    *cudnn = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_cudnn_close(tdmi_cudnn *cudnn)
{
    if (!cudnn)
        return;
    if (cudnn->gpu)
        (void)cudnn->calls.destroy(cudnn->gpu);
    if (cudnn->handle)
        (void)cudnn->calls.destroy_handle(cudnn->handle);
    tdmi_cuda_library_close(cudnn->library);
    pthread_mutex_destroy(&cudnn->lock);
    tdmi_free(cudnn);
}

const struct tdmi_cudnn_calls *tdmi_cudnn_calls_of(const tdmi_cudnn *cudnn)
{
    return &cudnn->calls;
}

int tdmi_cudnn_version(const tdmi_cudnn *cudnn)
{
    return cudnn->version;
}

/* ---- engines -------------------------------------------------------------------------------- */

/* An engine must not add in an order that changes, unless bits may vary; round sums or inputs to
 * less than the tensors' type; or compute products by another method than one by one. */
static bool is_accepted(int note, const struct tdmi_cudnn_conv *it)
{
    switch (note) {
    case TDMI_CUDNN_V_TENSOR_CORE: /* of f32: 10 bits of a factor's 23 */
    case TDMI_CUDNN_V_DOWN_CONVERTS:
        return it->type == TDMI_DTYPE_F32 ? it->allows_tf32 : note == TDMI_CUDNN_V_TENSOR_CORE;
    case TDMI_CUDNN_V_STRICT_NAN:
        return true;
    case TDMI_CUDNN_V_NOT_DETERMINISTIC:
        return it->may_vary;
    default:
        return false;
    }
}

static bool is_engine_accepted(const struct tdmi_cudnn_calls *calls, tdmi_cudnn_descriptor config,
                               const struct tdmi_cudnn_conv *it)
{
    tdmi_cudnn_descriptor engine = NULL;
    int notes[TDMI_CUDNN_V_NOTES];
    int64_t n = 0, n_notes = 0;
    if (calls->create(TDMI_CUDNN_ENGINE, &engine) != 0)
        return false;
    bool is = calls->get(config, TDMI_CUDNN_A_CONFIG_ENGINE, TDMI_CUDNN_T_DESCRIPTOR, 1, &n,
                         &engine) == 0 &&
              calls->get(engine, TDMI_CUDNN_A_ENGINE_NOTES, TDMI_CUDNN_T_NOTE, TDMI_CUDNN_V_NOTES,
                         &n_notes, notes) == 0;
    for (int64_t i = 0; is && i < n_notes; i++)
        is = is_accepted(notes[i], it);
    (void)calls->destroy(engine);
    return is;
}

static bool read_workspace(const struct tdmi_cudnn_calls *calls, size_t most,
                           struct tdmi_cudnn_plan *plan)
{
    int64_t n = 0, bytes = -1;
    if (calls->get(plan->plan, TDMI_CUDNN_A_PLAN_WORKSPACE, TDMI_CUDNN_T_INT64, 1, &n, &bytes) !=
            0 ||
        bytes < 0 || (uint64_t)bytes > most)
        return false;
    plan->workspace_bytes = (size_t)bytes;
    return true;
}

void tdmi_cudnn_plan_release(tdmi_cudnn *cudnn, struct tdmi_cudnn_plan *plan)
{
    if (plan->plan)
        (void)cudnn->calls.destroy(plan->plan);
    *plan = (struct tdmi_cudnn_plan){0};
}

static size_t most_workspace(const struct tdmi_cudnn_conv *it)
{
    const size_t most = TDMI_CUDNN_MOST_WORKSPACE;
    return it->most_workspace && it->most_workspace < most ? it->most_workspace : most;
}

/* False: this engine does not take the graph, or not on this GPU, or wants too much. */
static bool plan_of_config(tdmi_cudnn *cudnn, tdmi_cudnn_descriptor config, size_t most,
                           struct tdmi_cudnn_plan *plan)
{
    const struct tdmi_cudnn_calls *calls = &cudnn->calls;
    *plan = (struct tdmi_cudnn_plan){0};
    if (calls->create(TDMI_CUDNN_PLAN, &plan->plan) == 0 &&
        calls->set(plan->plan, TDMI_CUDNN_A_PLAN_CONFIG, TDMI_CUDNN_T_DESCRIPTOR, 1, &config) ==
            0 &&
        calls->set(plan->plan, TDMI_CUDNN_A_PLAN_DEVICE, TDMI_CUDNN_T_DESCRIPTOR, 1, &cudnn->gpu) ==
            0 &&
        calls->finalize(plan->plan) == 0 && read_workspace(calls, most, plan))
        return true;
    tdmi_cudnn_plan_release(cudnn, plan);
    return false;
}

/* ---- choosing ------------------------------------------------------------------------------- */

struct choice {
    tdmi_cudnn *cudnn;
    const struct tdmi_cudnn_conv *it;
    tdmi_cudnn_timer *timer;
    void *self;
    int n_tried;
    double seconds;
    struct tdmi_cudnn_plan best;
};

/* With an activation, a residual or a bias behind a product, cuDNN may compile a kernel. */
static bool is_compiled(const struct tdmi_cudnn_conv *it)
{
    return it->has_bias || it->adds || it->act != TDMI_ACT_NONE;
}

static bool is_enough(const struct choice *choice)
{
    const int most = !choice->timer ? 1 : is_compiled(choice->it) ? most_compiled : most_timed;
    return choice->n_tried >= most;
}

static void try_config(struct choice *choice, tdmi_cudnn_descriptor config)
{
    struct tdmi_cudnn_plan plan;
    if (is_enough(choice) ||
        !is_engine_accepted(tdmi_cudnn_calls_of(choice->cudnn), config, choice->it) ||
        !plan_of_config(choice->cudnn, config, most_workspace(choice->it), &plan))
        return;
    const double seconds = choice->timer ? choice->timer(choice->self, &plan) : 0.0;
    if (seconds >= 0.0)
        choice->n_tried++;
    if (seconds < 0.0 || (choice->best.plan && seconds >= choice->seconds)) {
        tdmi_cudnn_plan_release(choice->cudnn, &plan);
        return;
    }
    tdmi_cudnn_plan_release(choice->cudnn, &choice->best);
    choice->best = plan;
    choice->seconds = seconds;
}

static void try_heuristics(struct choice *choice, struct tdmi_cudnn_builder *builder,
                           tdmi_cudnn_descriptor graph, int mode)
{
    const struct tdmi_cudnn_calls *calls = builder->calls;
    tdmi_cudnn_descriptor configs[most_configs];
    int64_t n = 0, n_configs = 0;
    const tdmi_cudnn_descriptor heuristics = tdmi_cudnn_make(builder, TDMI_CUDNN_HEURISTICS);
    tdmi_cudnn_set(builder, heuristics, TDMI_CUDNN_A_HEUR_GRAPH, TDMI_CUDNN_T_DESCRIPTOR, 1,
                   &graph);
    tdmi_cudnn_set(builder, heuristics, TDMI_CUDNN_A_HEUR_MODE, TDMI_CUDNN_T_HEUR_MODE, 1, &mode);
    tdmi_cudnn_set(builder, heuristics, TDMI_CUDNN_A_HEUR_DEVICE, TDMI_CUDNN_T_DESCRIPTOR, 1,
                   &choice->cudnn->gpu);
    tdmi_cudnn_finish(builder, heuristics);
    if (builder->failure != 0)
        return;
    while (n_configs < most_configs && calls->create(TDMI_CUDNN_CONFIG, &configs[n_configs]) == 0)
        n_configs++;
    if (calls->get(heuristics, TDMI_CUDNN_A_HEUR_RESULTS, TDMI_CUDNN_T_DESCRIPTOR, n_configs, &n,
                   configs) != 0)
        n = 0;
    for (int64_t i = 0; i < n && i < n_configs; i++)
        try_config(choice, configs[i]);
    while (n_configs > 0)
        (void)calls->destroy(configs[--n_configs]);
}

tdm_status tdmi_cudnn_plan_find(tdmi_cudnn *cudnn, const struct tdmi_cudnn_conv *it,
                                tdmi_cudnn_timer *timer, void *self, struct tdmi_cudnn_plan *plan,
                                tdm_error *err)
{
    TDMI_AT_END(tdmi_cudnn_builder_release)
    struct tdmi_cudnn_builder builder = {.calls = &cudnn->calls};
    struct choice choice = {.cudnn = cudnn, .it = it, .timer = timer, .self = self};
    tdmi_cudnn_descriptor graph;
    *plan = choice.best;
    TDMI_TRY(tdmi_cudnn_graph_of(&builder, it, &graph, err));
    try_heuristics(&choice, &builder, graph, TDMI_CUDNN_V_BEST_GUESS);
    if (!choice.best.plan) {
        builder.failure = 0;
        try_heuristics(&choice, &builder, graph, TDMI_CUDNN_V_FALLBACK);
    }
    *plan = choice.best;
    if (plan->plan)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "planning a convolution: cuDNN has no engine that sums in f32%s with %zu MiB "
                    "of workspace%s%s",
                    it->may_vary ? "" : ", gives the same bits on every run",
                    most_workspace(it) >> 20, builder.failure ? ": " : "", builder.why);
}

/* ---- keeping -------------------------------------------------------------------------------- */

tdm_status tdmi_cudnn_plan_read(tdmi_cudnn *cudnn, const char *json, struct tdmi_cudnn_plan *plan,
                                tdm_error *err)
{
    const struct tdmi_cudnn_calls *calls = &cudnn->calls;
    *plan = (struct tdmi_cudnn_plan){0};
    if (calls->create(TDMI_CUDNN_PLAN, &plan->plan) == 0 &&
        calls->set(plan->plan, TDMI_CUDNN_A_PLAN_DEVICE, TDMI_CUDNN_T_DESCRIPTOR, 1, &cudnn->gpu) ==
            0 &&
        calls->set(plan->plan, TDMI_CUDNN_A_PLAN_JSON, TDMI_CUDNN_T_CHAR, (int64_t)strlen(json),
                   json) == 0 &&
        calls->finalize(plan->plan) == 0 && read_workspace(calls, TDMI_CUDNN_MOST_WORKSPACE, plan))
        return TDM_OK;
    tdmi_cudnn_plan_release(cudnn, plan);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "reading a plan of cuDNN from a file: it is damaged, or of another cuDNN or "
                    "GPU");
}

tdm_status tdmi_cudnn_plan_write(tdmi_cudnn *cudnn, const struct tdmi_cudnn_plan *plan, char **json,
                                 tdm_error *err)
{
    const struct tdmi_cudnn_calls *calls = &cudnn->calls;
    int64_t n = 0;
    int code = calls->get(plan->plan, TDMI_CUDNN_A_PLAN_JSON, TDMI_CUDNN_T_CHAR, 0, &n, NULL);
    *json = code == 0 && n > 0 ? tdmi_alloc((size_t)n + 1, 1) : NULL;
    if (*json)
        code = calls->get(plan->plan, TDMI_CUDNN_A_PLAN_JSON, TDMI_CUDNN_T_CHAR, n, &n, *json);
    if (*json && code == 0)
        return TDM_OK;
    tdmi_free(*json);
    *json = NULL;
    return TDM_FAIL(err, TDM_E_SYSTEM, "writing a plan of cuDNN: it says %d", code);
}

/* ---- naming --------------------------------------------------------------------------------- */

/* A plan's config and that one's engine, filled by cuDNN. False: it does not say. */
static bool engine_of(const struct tdmi_cudnn_calls *calls, const struct tdmi_cudnn_plan *plan,
                      tdmi_cudnn_descriptor config, tdmi_cudnn_descriptor engine, int64_t *number)
{
    int64_t n = 0;
    return calls->get(plan->plan, TDMI_CUDNN_A_PLAN_CONFIG, TDMI_CUDNN_T_DESCRIPTOR, 1, &n,
                      &config) == 0 &&
           calls->get(config, TDMI_CUDNN_A_CONFIG_ENGINE, TDMI_CUDNN_T_DESCRIPTOR, 1, &n,
                      &engine) == 0 &&
           calls->get(engine, TDMI_CUDNN_A_ENGINE_NUMBER, TDMI_CUDNN_T_INT64, 1, &n, number) == 0;
}

void tdmi_cudnn_plan_name(tdmi_cudnn *cudnn, const struct tdmi_cudnn_plan *plan, char *text,
                          size_t text_bytes)
{
    const struct tdmi_cudnn_calls *calls = &cudnn->calls;
    tdmi_cudnn_descriptor config = NULL, engine = NULL;
    int64_t number = 0;
    if (calls->create(TDMI_CUDNN_CONFIG, &config) == 0 &&
        calls->create(TDMI_CUDNN_ENGINE, &engine) == 0 &&
        engine_of(calls, plan, config, engine, &number))
        snprintf(text, text_bytes, "cuDNN engine %lld", (long long)number);
    else
        snprintf(text, text_bytes, "cuDNN");
    if (engine)
        (void)calls->destroy(engine);
    if (config)
        (void)calls->destroy(config);
}

/* ---- running -------------------------------------------------------------------------------- */

static int execute(tdmi_cudnn *cudnn, struct CUstream_st *queue, tdmi_cudnn_descriptor plan,
                   tdmi_cudnn_descriptor pack)
{
    pthread_mutex_lock(&cudnn->lock);
    int code = cudnn->calls.set_stream(cudnn->handle, queue);
    if (code == 0)
        code = cudnn->calls.execute(cudnn->handle, plan, pack);
    pthread_mutex_unlock(&cudnn->lock);
    return code;
}

int tdmi_cudnn_plan_run(tdmi_cudnn *cudnn, const struct tdmi_cudnn_plan *plan,
                        struct CUstream_st *queue, void *const tensors[TDMI_CUDNN_TENSORS],
                        void *workspace)
{
    TDMI_AT_END(tdmi_cudnn_builder_release)
    struct tdmi_cudnn_builder builder = {.calls = &cudnn->calls};
    int64_t numbers[TDMI_CUDNN_TENSORS];
    void *pointers[TDMI_CUDNN_TENSORS];
    int n = 0;
    for (int64_t i = 0; i < TDMI_CUDNN_TENSORS; i++)
        if (tensors[i]) {
            numbers[n] = i;
            pointers[n++] = tensors[i];
        }
    const tdmi_cudnn_descriptor pack = tdmi_cudnn_make(&builder, TDMI_CUDNN_PACK);
    tdmi_cudnn_set(&builder, pack, TDMI_CUDNN_A_PACK_NUMBERS, TDMI_CUDNN_T_INT64, n, numbers);
    tdmi_cudnn_set(&builder, pack, TDMI_CUDNN_A_PACK_POINTERS, TDMI_CUDNN_T_POINTER, n, pointers);
    tdmi_cudnn_set(&builder, pack, TDMI_CUDNN_A_PACK_WORKSPACE, TDMI_CUDNN_T_POINTER, 1,
                   &workspace);
    tdmi_cudnn_finish(&builder, pack);
    return builder.failure ? builder.failure : execute(cudnn, queue, plan->plan, pack);
}
