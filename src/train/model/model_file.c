/*
 * Writing and reading model files. The metadata entry "tandem" is one JSON text that describes the
 * model; tensors keep the names of their nodes.
 */
#include "train/model/model_file.h"
#include "base/text/json.h"
#include "weights/safetensors/safetensors.h"
#include "train/evaluate/score.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- writing ---------------------------------------------------------------------------- */

/* Without copies the same bytes as before there were distinct counts. */
static void score_to_json(const tdm_score *score, tdm_json_writer *writer, const char *key)
{
    tdm_json_object_begin(writer, key);
    tdm_json_integer(writer, "n", score->n);
    tdm_json_integer(writer, "correct", score->correct);
    if (score->n_distinct < score->n) {
        tdm_json_integer(writer, "n_distinct", score->n_distinct);
        tdm_json_integer(writer, "correct_distinct", score->correct_distinct);
    }
    tdm_json_number(writer, "loss", score->loss);
    tdm_json_object_end(writer);
}

static void plateau_to_json(const struct tdmi_plateau *plateau, tdm_json_writer *writer)
{
    tdm_json_object_begin(writer, "plateau");
    tdm_json_number(writer, "best_loss", plateau->best_loss);
    tdm_json_integer(writer, "judged", plateau->n_evaluated);
    tdm_json_integer(writer, "waited", plateau->n_waited);
    tdm_json_integer(writer, "resting", plateau->n_resting);
    tdm_json_integer(writer, "reductions", plateau->n_reductions);
    tdm_json_object_end(writer);
}

static void loss_scale_to_json(const struct tdmi_loss_scale *it, tdm_json_writer *writer)
{
    tdm_json_object_begin(writer, "loss_scale");
    tdm_json_number(writer, "scale", (double)it->scale);
    tdm_json_integer(writer, "good", it->n_good);
    tdm_json_integer(writer, "left_out", it->n_left_out);
    tdm_json_object_end(writer);
}

static void progress_to_json(const struct tdmi_progress *progress, tdm_json_writer *writer)
{
    tdm_json_object_begin(writer, "progress");
#define X(kind, key, member, type) tdm_json_##kind(writer, key, progress->member);
#include "train/model/progress.def"
#undef X
    if (progress->plateau.n_evaluated > 0)
        plateau_to_json(&progress->plateau, writer);
    if (progress->loss_scale.scale > 0.0f)
        loss_scale_to_json(&progress->loss_scale, writer);
    score_to_json(&progress->best_train, writer, "best_train");
    score_to_json(&progress->best_val, writer, "best_val");
    tdm_json_object_end(writer);
}

static void describe(const struct tdmi_model_file *model, tdm_json_writer *writer)
{
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "format_version", TDMI_MODEL_FORMAT_VERSION);
    tdm_json_string(writer, "tandem", tdm_version());
    tdm_json_string(writer, "network", model->network);
    tdm_json_integer(writer, "shard", model->shard);
    tdm_json_string(writer, "bn",
                    model->shares_statistics  ? "batch"
                    : model->keeps_statistics ? "frozen"
                                              : "shard");
    tdm_json_array_begin(writer, "classes");
    for (int i = 0; i < model->n_classes; i++)
        tdm_json_string(writer, NULL, model->classes[i]);
    tdm_json_array_end(writer);
    tdmi_graph_to_json(model->graph, writer, "nodes");
    tdmi_lineage_to_json(&model->lineage, writer, "lineage");
    progress_to_json(&model->progress, writer);
    if (model->n_slots > 0)
        tdm_json_string(writer, "optimizer", model->optimizer);
    if (model->n_slots > 0 && model->raw_params)
        tdm_json_bool(writer, "averaged", true);
    tdm_json_object_end(writer);
}

/* Name of a tensor in the file; returns its rank and sets its shape. */
static int name_tensor(const char *prefix, const struct tdmi_tensor *tensor, char name[512],
                       int64_t shape[4])
{
    snprintf(name, 512, "%s%s", prefix, tensor->name);
    for (int d = 0; d < tensor->spec.n_dims; d++)
        shape[d] = tensor->spec.dims[d];
    return tensor->spec.n_dims;
}

static void add_values(tdmi_safetensors_writer *writer, const char *prefix,
                       const struct tdmi_tensor *tensors, int n, const float *values)
{
    for (int i = 0; i < n; i++) {
        char name[512];
        int64_t shape[4];
        const int rank = name_tensor(prefix, &tensors[i], name, shape);
        tdmi_safetensors_add(writer, name, TDMI_DTYPE_F32, rank, shape, values + tensors[i].offset);
    }
}

/* The trained values, where the names of weights are those of averages. */
static const char raw_prefix[] = "optimizer.trained.";

static void slot_prefix(char *prefix, size_t bytes, const char *optimizer, const char *slot)
{
    snprintf(prefix, bytes, "optimizer.%s.%s.", optimizer, slot);
}

static tdm_status save(const struct tdmi_model_file *model, const char *path, tdm_error *err)
{
    const tdmi_graph *graph = model->graph;
    const struct tdmi_shape input = graph->nodes[0].out;
    const int64_t pixels_shape[] = {input.h, input.w, input.c};
    const int64_t logits_shape[] = {model->n_classes};
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *description = tdm_json_writer_new(0);
    TDMI_AT_END(tdmi_safetensors_writer_free_at)
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    const char *text;
    describe(model, description);
    TDMI_TRY(tdm_json_finish(description, &text, NULL, err));
    tdmi_safetensors_note(writer, "format", "tandem");
    tdmi_safetensors_note(writer, "tandem", text);
    add_values(writer, "", graph->params, graph->n_params, model->params);
    add_values(writer, "", graph->states, graph->n_states, model->states);
    if (model->n_slots > 0 && model->raw_params) {
        add_values(writer, raw_prefix, graph->params, graph->n_params, model->raw_params);
        add_values(writer, raw_prefix, graph->states, graph->n_states, model->raw_states);
    }
    for (int i = 0; i < model->n_slots; i++) {
        char prefix[128];
        slot_prefix(prefix, sizeof prefix, model->optimizer, model->slot_names[i]);
        add_values(writer, prefix, graph->params, graph->n_params, model->slots[i]);
    }
    tdmi_safetensors_add(writer, "split.train", TDMI_DTYPE_U64, 1, &model->n_train_hashes,
                         model->train_hashes);
    tdmi_safetensors_add(writer, "split.val", TDMI_DTYPE_U64, 1, &model->n_val_hashes,
                         model->val_hashes);
    if (model->n_test_hashes > 0)
        tdmi_safetensors_add(writer, "split.test", TDMI_DTYPE_U64, 1, &model->n_test_hashes,
                             model->test_hashes);
    tdmi_safetensors_add(writer, "selftest.pixels", TDMI_DTYPE_U8, 3, pixels_shape,
                         model->test_pixels);
    tdmi_safetensors_add(writer, "selftest.logits", TDMI_DTYPE_F32, 1, logits_shape,
                         model->test_logits);
    return tdmi_safetensors_finish_in_folder(writer, path, err);
}

tdm_status tdmi_model_file_save(const struct tdmi_model_file *model, const char *path,
                                tdm_error *err)
{
    return TDM_WRAP(err, save(model, path, err), "writing the model %s", path);
}

/* ---- reading ---------------------------------------------------------------------------- */

static int64_t integer_of(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_integer(tdm_json_member(object, key), 0);
}

static double number_of(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_number(tdm_json_member(object, key), 0.0);
}

/* All 0 where there is none: another schedule, or an older version. */
static struct tdmi_plateau plateau_from_json(const tdm_json_value *object)
{
    return (struct tdmi_plateau){
        .best_loss = number_of(object, "best_loss"),
        .n_evaluated = (int)integer_of(object, "judged"),
        .n_waited = (int)integer_of(object, "waited"),
        .n_resting = (int)integer_of(object, "resting"),
        .n_reductions = (int)integer_of(object, "reductions"),
    };
}

static struct tdmi_loss_scale loss_scale_from_json(const tdm_json_value *object)
{
    return (struct tdmi_loss_scale){
        .scale = (float)number_of(object, "scale"),
        .n_good = (int32_t)integer_of(object, "good"),
        .n_left_out = integer_of(object, "left_out"),
    };
}

static void progress_from_json(const tdm_json_value *object, struct tdmi_progress *progress)
{
    *progress = (struct tdmi_progress)
    {
#define X(kind, key, member, type) .member = (type)kind##_of(object, key),
#include "train/model/progress.def"
#undef X
        .best_train = tdmi_score_from_json(tdm_json_member(object, "best_train")),
        .best_val = tdmi_score_from_json(tdm_json_member(object, "best_val")),
        .plateau = plateau_from_json(tdm_json_member(object, "plateau")),
        .loss_scale = loss_scale_from_json(tdm_json_member(object, "loss_scale")),
    };
    if (!tdm_json_member(object, "mark_correct") || progress->mark_correct < 0) {
        /* an older version measured from its best */
        progress->mark_correct = progress->best_val.correct;
        progress->mark_loss = progress->best_val.loss;
    }
}

static tdm_status read_description(const tdm_json_value *root, const char *path,
                                   struct tdmi_model_file *model, tdm_error *err)
{
    const int64_t version = integer_of(root, "format_version");
    if (version < 1 || version > TDMI_MODEL_FORMAT_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT, "model format %lld; this version of tandem reads 1 to %d",
                        (long long)version, TDMI_MODEL_FORMAT_VERSION);
    const tdm_json_value *classes = tdm_json_member(root, "classes");
    const size_t n = tdm_json_count(classes);
    TDM_TRY(tdmi_graph_from_json(tdm_json_member(root, "nodes"), path, &model->graph, err), err,
            "its network does not build");
    if (n < 1 || n != (size_t)tdmi_graph_classes(model->graph))
        return TDM_FAIL(err, TDM_E_INPUT, "%zu class names for a network of %d outputs", n,
                        tdmi_graph_classes(model->graph));
    tdmi_arena *arena = &model->arena;
    const char *bn = tdm_json_as_string(tdm_json_member(root, "bn"), "shard");
    const int64_t shard = tdm_json_as_integer(tdm_json_member(root, "shard"), 8);
    if (shard < 1 || shard > INT_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "groups (shard) of %lld images; 1 or more are accepted",
                        (long long)shard);
    model->shard = (int)shard;
    model->shares_statistics = strcmp(bn, "batch") == 0;
    model->keeps_statistics = strcmp(bn, "frozen") == 0;
    model->is_averaged = tdm_json_as_bool(tdm_json_member(root, "averaged"), false);
    model->n_classes = (int)n;
    model->network =
        tdmi_arena_copy(arena, tdm_json_as_string(tdm_json_member(root, "network"), "unnamed"));
    model->optimizer =
        tdmi_arena_copy(arena, tdm_json_as_string(tdm_json_member(root, "optimizer"), ""));
    model->classes = tdmi_arena_alloc(arena, n, sizeof *model->classes);
    bool is_complete = model->network && model->optimizer && model->classes;
    for (size_t i = 0; i < n && is_complete; i++) {
        model->classes[i] = tdmi_arena_copy(arena, tdm_json_as_string(tdm_json_at(classes, i), ""));
        is_complete = model->classes[i] != NULL;
    }
    if (!is_complete)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the names of %zu classes", n);
    progress_from_json(tdm_json_member(root, "progress"), &model->progress);
    return tdmi_lineage_from_json(tdm_json_member(root, "lineage"), arena, &model->lineage, err);
}

enum part { PARAMS, STATES };

/* The values of all parameters or states, in the arena. */
static tdm_status read_values(const tdmi_safetensors *file, const char *prefix, enum part part,
                              struct tdmi_model_file *model, float **values, tdm_error *err)
{
    const tdmi_graph *graph = model->graph;
    const struct tdmi_tensor *tensors = part == PARAMS ? graph->params : graph->states;
    const int n = part == PARAMS ? graph->n_params : graph->n_states;
    const int64_t n_values = part == PARAMS ? graph->param_values : graph->state_values;
    *values = tdmi_arena_alloc(&model->arena, (size_t)n_values + 1, sizeof **values);
    if (!*values)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %lld values", (long long)n_values);
    for (int i = 0; i < n; i++) {
        char name[512];
        int64_t shape[4];
        const void *data;
        const int rank = name_tensor(prefix, &tensors[i], name, shape);
        TDM_TRY(tdmi_safetensors_need(file, name, TDMI_DTYPE_F32, rank, shape, &data, err), err,
                "its weights do not fit its network");
        memcpy(*values + tensors[i].offset, data, sizeof(float) * (size_t)tensors[i].n);
    }
    return TDM_OK;
}

/* A tensor of one dimension and any length, copied. */
static tdm_status read_hashes(const tdmi_safetensors *file, const char *name, tdmi_arena *arena,
                              uint64_t **hashes, int64_t *n, tdm_error *err)
{
    const struct tdmi_safetensors_tensor *tensor = tdmi_safetensors_find(file, name);
    if (!tensor || tensor->dtype != TDMI_DTYPE_U64 || tensor->rank != 1)
        return TDM_FAIL(err, TDM_E_INPUT, "tensor %s (U64, one dimension) is missing", name);
    *n = tensor->n_values;
    *hashes = tdmi_arena_alloc(arena, (size_t)*n + 1, sizeof **hashes);
    if (!*hashes)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %s", name);
    if (*n > 0)
        memcpy(*hashes, tensor->data, sizeof **hashes * (size_t)*n);
    return TDM_OK;
}

/* The tensors that only a checkpoint has. */
static tdm_status read_training(const tdmi_safetensors *file, struct tdmi_model_file *model,
                                tdm_error *err)
{
    const struct tdmi_optimizer *optimizer;
    TDM_TRY(tdmi_optimizer_find(model->optimizer, &optimizer, err), err,
            "the optimizer of this checkpoint");
    for (int i = 0; i < optimizer->n_slots; i++) {
        char prefix[128];
        slot_prefix(prefix, sizeof prefix, optimizer->name, optimizer->slot_names[i]);
        model->slot_names[i] = optimizer->slot_names[i];
        TDM_TRY(read_values(file, prefix, PARAMS, model, &model->slots[i], err), err,
                "reading the optimizer's state");
    }
    model->n_slots = optimizer->n_slots;
    if (!model->is_averaged)
        return TDM_OK;
    TDM_TRY(read_values(file, raw_prefix, PARAMS, model, &model->raw_params, err), err,
            "reading the weights beside their averages");
    return TDM_WRAP(err, read_values(file, raw_prefix, STATES, model, &model->raw_states, err),
                    "reading the running statistics beside their averages");
}

/* A tensor of this type and shape, copied into the arena. */
static tdm_status read_copy(const tdmi_safetensors *file, const char *name, enum tdmi_dtype dtype,
                            int rank, const int64_t *shape, tdmi_arena *arena, void **copy,
                            tdm_error *err)
{
    const void *data;
    TDM_TRY(tdmi_safetensors_need(file, name, dtype, rank, shape, &data, err), err,
            "its self-test");
    const size_t bytes = tdmi_safetensors_find(file, name)->bytes;
    *copy = tdmi_arena_alloc(arena, bytes, 1);
    if (!*copy)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %s", name);
    memcpy(*copy, data, bytes);
    return TDM_OK;
}

static tdm_status read_tensors(const tdmi_safetensors *file, struct tdmi_model_file *model,
                               tdm_error *err)
{
    tdmi_arena *arena = &model->arena;
    const struct tdmi_shape input = model->graph->nodes[0].out;
    const int64_t pixels_shape[] = {input.h, input.w, input.c};
    const int64_t logits_shape[] = {model->n_classes};
    void *pixels, *logits;
    TDM_TRY(read_values(file, "", PARAMS, model, &model->params, err), err, "reading weights");
    TDM_TRY(read_values(file, "", STATES, model, &model->states, err), err,
            "reading running statistics");
    TDM_TRY(
        read_hashes(file, "split.train", arena, &model->train_hashes, &model->n_train_hashes, err),
        err, "the images it was trained on");
    TDM_TRY(read_hashes(file, "split.val", arena, &model->val_hashes, &model->n_val_hashes, err),
            err, "the images it was evaluated on");
    if (tdmi_safetensors_find(file, "split.test"))
        TDM_TRY(
            read_hashes(file, "split.test", arena, &model->test_hashes, &model->n_test_hashes, err),
            err, "the images it was tested on");
    TDMI_TRY(
        read_copy(file, "selftest.pixels", TDMI_DTYPE_U8, 3, pixels_shape, arena, &pixels, err));
    TDMI_TRY(
        read_copy(file, "selftest.logits", TDMI_DTYPE_F32, 1, logits_shape, arena, &logits, err));
    model->test_pixels = pixels;
    model->test_logits = logits;
    return *model->optimizer ? read_training(file, model, err) : TDM_OK;
}

/* bytes: what the file holds; NULL: it is read. */
static tdm_status load(const char *path, const void *bytes, size_t n, struct tdmi_model_file *model,
                       tdm_error *err)
{
    TDMI_AT_END(tdmi_safetensors_close_at) tdmi_safetensors *file = NULL;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    TDMI_TRY(bytes ? tdmi_safetensors_open_bytes(bytes, n, path, &file, err)
                   : tdmi_safetensors_open(path, &file, err));
    const char *text = tdmi_safetensors_metadata(file, "tandem");
    if (!text)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it has no metadata entry 'tandem': weights of another program cannot be "
                        "used as a model; a file written by tandem train is needed");
    TDMI_TRY(tdm_json_read(text, strlen(text), "metadata entry 'tandem'", &document, err));
    TDMI_TRY(read_description(tdm_json_root(document), path, model, err));
    return read_tensors(file, model, err);
}

tdm_status tdmi_model_file_load_bytes(const char *path, const void *bytes, size_t n,
                                      struct tdmi_model_file *model, tdm_error *err)
{
    *model = (struct tdmi_model_file){0};
    const tdm_status status = load(path, bytes, n, model, err);
    if (status != TDM_OK)
        tdmi_model_file_release(model);
    return TDM_WRAP(err, status, "reading the model %s", path);
}

tdm_status tdmi_model_file_load(const char *path, struct tdmi_model_file *model, tdm_error *err)
{
    return tdmi_model_file_load_bytes(path, NULL, 0, model, err);
}

void tdmi_model_file_release(struct tdmi_model_file *model)
{
    tdmi_graph_free(model->graph);
    tdmi_arena_release(&model->arena);
    *model = (struct tdmi_model_file){0};
}
