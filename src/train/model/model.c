/*
 * An opened model: its file (ours, or weights of another program), its network on a device, and its
 * self-test.
 */
#include "train/model/model_internal.h"
#include "base/file/file.h"
#include "base/scope.h"
#include "base/sized.h"
#include "tandem/log.h"
#include "train/model/model_import.h"
#include "train/needs.h"

#include <math.h>
#include <string.h>

static tdm_status find_in_folder(const char *path, tdmi_arena *arena, const char **file,
                                 tdm_error *err)
{
    static const char *const names[] = {"best.safetensors", "last.safetensors"};
    for (int i = 0; i < 2; i++) {
        *file = tdmi_path_join(arena, path, names[i]);
        if (!*file)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the path of the model %s", path);
        if (tdmi_file_kind_of(*file) != TDMI_FILE_REGULAR)
            continue;
        if (i > 0)
            tdm_log(TDM_LOG_WARNING,
                    "%s has no best.safetensors, the weights of its best epoch: it was "
                    "removed, or training ended before the first validation; "
                    "last.safetensors, those of its last step, is used",
                    path);
        return TDM_OK;
    }
    return TDM_FAIL(err, TDM_E_INPUT,
                    "opening the model %s: the folder has neither best.safetensors nor "
                    "last.safetensors; a run folder, a model file or weights of another "
                    "program are needed",
                    path);
}

static tdm_status find_file(const char *path, tdmi_arena *arena, const char **file, tdm_error *err)
{
    const enum tdmi_file_kind kind = tdmi_file_kind_of(path);
    *file = path;
    if (kind == TDMI_FILE_REGULAR ||
        (kind == TDMI_FILE_FOLDER && tdmi_model_is_foreign_folder(path)))
        return TDM_OK;
    if (kind == TDMI_FILE_FOLDER)
        return find_in_folder(path, arena, file, err);
    return TDM_FAIL(err, TDM_E_INPUT, "opening the model %s: %s", path,
                    kind == TDMI_FILE_MISSING
                        ? "there is no such file or folder; a run folder or a model file is needed"
                    : kind == TDMI_FILE_FORBIDDEN
                        ? "permission denied: it, or a folder above it, is closed to this user"
                        : "it is neither a file nor a folder; a run folder or a model file is "
                          "needed");
}

static tdm_status place(tdm_model *model, const float *from, int64_t n, float **to, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &model->backend->memory;
    const size_t bytes = sizeof(float) * (size_t)n;
    *to = memory->alloc(model->device, bytes + sizeof(float));
    return *to ? memory->upload(model->stream, *to, from, bytes, err)
               : TDM_FAIL(err, TDM_E_MEMORY, "no memory for %zu bytes on the device", bytes);
}

static tdm_status place_values(tdm_model *model, tdm_error *err)
{
    const struct tdmi_model_file *file = &model->file;
    TDM_TRY(place(model, file->params, file->graph->param_values, &model->params, err), err,
            "placing weights");
    TDM_TRY(place(model, file->states, file->graph->state_values, &model->states, err), err,
            "placing running statistics");
    return model->backend->stream.wait(model->stream, err);
}

/* The stored image must give the stored logits, or no result of this model can be trusted. */
static tdm_status run_selftest(tdm_model *model, const char *path, tdm_error *err)
{
    const int32_t label = 0;
    const int64_t item = 0;
    const struct tdmi_batch picture = {
        .n = 1, .pixels = model->file.test_pixels, .labels = &label, .items = &item};
    TDMI_AT_END(tdmi_free_at) float *logits = NULL;
    TDM_TRY(TDMI_NEW(logits, model->file.n_classes, err), err, "its self-test");
    TDM_TRY(tdmi_evaluator_batch(model->evaluator, &picture, NULL, NULL, logits, err), err,
            "its self-test");
    for (int c = 0; c < model->file.n_classes; c++) {
        double stored = (double)model->file.test_logits[c], got = (double)logits[c];
        if (!(fabs(got - stored) <= 1e-3 * (1.0 + fabs(stored))))
            return TDM_FAIL(err, TDM_E_INPUT,
                            "the model %s fails its own self-test: class %d of the stored picture "
                            "gives %g, and %g is stored; the file was changed, or this build "
                            "computes wrongly (see tandem selftest)",
                            path, c, got, stored);
    }
    return TDM_OK;
}

/* Refuse a model that cannot fit: the kernel kills a process that writes beyond its limit, without
 * a sentence. The bound is the least that works, one image for the self-test on one thread, so that
 * nothing is refused that might run. */
static tdm_status check_memory(const tdm_model *model, const char *path, tdm_error *err)
{
    const tdmi_graph *graph = model->file.graph;
    const struct tdmi_memory_limit limit = tdmi_memory_limit("", model->placement.local.size);
    const int threads = tdmi_pool_threads(model->pool);
    struct tdmi_needs needs = {
        .weights = (int64_t)sizeof(float) * (graph->param_values + graph->state_values),
        .evaluating = tdmi_evaluator_needs(model->plan, TDMI_MODEL_BATCH, threads),
        .others = tdmi_memory_resident(),
    };
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *plan = NULL;
    if (!model->backend->device.is_host || limit.bytes == 0 ||
        tdmi_needs_total(&needs) <= limit.bytes)
        return TDM_OK;
    TDM_TRY(tdmi_plan_new(graph, model->backend, 1, false, &plan, err), err, "counting memory");
    needs.evaluating = tdmi_evaluator_needs(plan, 1, 1);
    needs.others = tdmi_memory_own();
    if (tdmi_needs_total(&needs) <= limit.bytes)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_MEMORY,
                    "one picture in %s takes %lld MiB of memory at least (weights %lld, the "
                    "network at work %lld, the process itself %lld), and %s %lld MiB",
                    path, (long long)(tdmi_needs_total(&needs) >> 20) + 1,
                    (long long)(needs.weights >> 20), (long long)(needs.evaluating >> 20),
                    (long long)(needs.others >> 20), limit.what, (long long)(limit.bytes >> 20));
}

static tdm_status load(tdm_model *model, const char *file, bool is_ours,
                       const struct tdm_model_options *options, tdm_error *err)
{
    if (!is_ours)
        return tdmi_model_import(file, options, &model->file, err);
    TDMI_TRY(tdmi_model_check_ours(options, err));
    return tdmi_model_file_load(file, &model->file, err);
}

static tdm_status place_on_device(tdm_model *model, const char *path,
                                  const struct tdm_model_options *options, tdm_error *err)
{
    const char *device = options->device && *options->device ? options->device : "cpu";
    int gpu;
    TDMI_TRY(tdmi_backend_find(device, &model->backend, &gpu, err));
    TDMI_TRY(model->backend->device.open(gpu, &model->device, err));
    TDMI_TRY(model->backend->stream.open(model->device, &model->stream, err));
    TDMI_TRY(tdmi_placement_here(options->threads, &model->placement, err));
    TDMI_TRY(tdmi_pool_new(model->placement.threads, &model->placement, &model->pool, err));
    const struct tdmi_plan_options request = {
        .max_images = TDMI_MODEL_PIECE,
        .team =
            tdmi_evaluator_team(model->file.graph, model->backend, tdmi_pool_threads(model->pool)),
        .device = model->device};
    TDMI_TRY(tdmi_plan_make(model->file.graph, model->backend, &request, &model->plan, err));
    TDMI_TRY(check_memory(model, path, err));
    TDMI_TRY(tdmi_evaluator_open(model->plan, model->device, model->pool, TDMI_MODEL_BATCH,
                                 &model->evaluator, err));
    TDMI_TRY(place_values(model, err));
    return tdmi_evaluator_take(model->evaluator, (struct tdmi_values){model->params, model->states},
                               err);
}

static tdm_status open_model(const char *path, const struct tdm_model_options *options,
                             tdm_model *model, tdm_error *err)
{
    const char *file = NULL;
    TDMI_TRY(find_file(path, &model->arena, &file, err));
    const bool is_ours = tdmi_model_is_ours(file);
    TDM_TRY(load(model, file, is_ours, options, err), err, "opening the model %s", path);
    TDM_TRY(place_on_device(model, path, options, err), err, "opening the model %s", path);
    return is_ours ? run_selftest(model, path, err) : TDM_OK;
}

tdm_status tdm_model_open(const char *path, const struct tdm_model_options *options,
                          tdm_model **model, tdm_error *err)
{
    TDMI_OPTIONS(tdm_model_options, options, {0}, err);
    tdm_model *made;
    TDM_TRY(TDMI_NEW(made, 1, err), err, "opening the model %s", path);
    const tdm_status status = open_model(path, options, made, err);
    if (status == TDM_OK)
        *model = made;
    else
        tdm_model_close(made);
    return status;
}

void tdmi_model_trim(tdm_model *model, size_t kept_bytes)
{
    for (int i = 0; model->scratches && i < tdmi_pool_threads(model->pool); i++) {
        struct tdmi_preprocess_scratch *scratch = &model->scratches[i];
        if (scratch->decoded.capacity_bytes + scratch->resized.capacity_bytes > kept_bytes) {
            tdmi_preprocess_scratch_release(scratch);
            *scratch = (struct tdmi_preprocess_scratch){0};
        }
    }
}

void tdm_model_close(tdm_model *model)
{
    if (!model)
        return;
    tdmi_model_trim(model, 0);
    tdmi_free(model->scratches);
    tdmi_evaluator_close(model->evaluator);
    tdmi_plan_free(model->plan);
    if (model->states)
        model->backend->memory.free(model->device, model->states);
    if (model->params)
        model->backend->memory.free(model->device, model->params);
    tdmi_pool_free(model->pool);
    tdmi_placement_release(&model->placement);
    if (model->stream)
        model->backend->stream.close(model->stream);
    if (model->device)
        model->backend->device.close(model->device);
    tdmi_model_file_release(&model->file);
    tdmi_arena_release(&model->arena);
    tdmi_free(model);
}

const char *tdm_model_name(const tdm_model *model)
{
    return model->file.network;
}

int tdm_model_classes(const tdm_model *model)
{
    return model->file.n_classes;
}

const char *tdm_model_class(const tdm_model *model, int index)
{
    return index >= 0 && index < model->file.n_classes ? model->file.classes[index] : NULL;
}

int64_t tdm_model_parameters(const tdm_model *model)
{
    return model->file.graph->parameters;
}
