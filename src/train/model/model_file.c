/*
 * Writing and reading model files. Everything but numbers stands in one JSON text in the metadata
 * entry "tandem"; tensors keep the names of their nodes.
 */
#include "train/model/model_file.h"
#include "weights/safetensors/safetensors.h"
#include "tandem/metrics.h"

#include <stdio.h>
#include <string.h>

tdm_score tdmi_score_of(int64_t n, int64_t correct, double loss_sum)
{
    tdm_interval interval = tdm_wilson(correct, n);
    double of = n > 0 ? (double)n : 1.0;
    return (tdm_score){
        n, correct, (double)correct / of, interval.low, interval.high, loss_sum / of};
}

/* ---- writing ---------------------------------------------------------------------------- */

static void score_to_json(const tdm_score *score, tdm_json_writer *writer, const char *key)
{
    tdm_json_object_begin(writer, key);
    tdm_json_integer(writer, "n", score->n);
    tdm_json_integer(writer, "correct", score->correct);
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
    tdm_json_integer(writer, "step", progress->step);
    tdm_json_integer(writer, "epoch", progress->epoch);
    tdm_json_integer(writer, "position", progress->position);
    tdm_json_integer(writer, "epoch_n", progress->epoch_n);
    tdm_json_integer(writer, "epoch_correct", progress->epoch_correct);
    tdm_json_number(writer, "epoch_loss", progress->epoch_loss);
    tdm_json_integer(writer, "epoch_skipped", progress->epoch_skipped);
    tdm_json_integer(writer, "images", progress->images);
    tdm_json_integer(writer, "best_epoch", progress->best_epoch);
    tdm_json_integer(writer, "best_step", progress->best_step);
    tdm_json_integer(writer, "epochs_since_best", progress->epochs_since_best);
    tdm_json_integer(writer, "mark_correct", progress->mark_correct);
    tdm_json_number(writer, "mark_loss", progress->mark_loss);
    tdm_json_integer(writer, "judged_step", progress->evaluated_step);
    tdm_json_integer(writer, "train_skipped", progress->train_skipped);
    tdm_json_integer(writer, "val_skipped", progress->val_skipped);
    if (progress->plateau.n_evaluated > 0)
        plateau_to_json(&progress->plateau, writer);
    if (progress->loss_scale.scale > 0.0f)
        loss_scale_to_json(&progress->loss_scale, writer);
    score_to_json(&progress->best_train, writer, "best_train");
    score_to_json(&progress->best_val, writer, "best_val");
    tdm_json_object_end(writer);
}

static tdm_json_writer *describe(const struct tdmi_model_file *model)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
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
    return writer;
}

static void add_values(tdmi_safetensors_writer *writer, const char *prefix,
                       const struct tdmi_tensor *tensors, int n, const float *values)
{
    for (int i = 0; i < n; i++) {
        char name[512];
        int64_t shape[4];
        snprintf(name, sizeof name, "%s%s", prefix, tensors[i].name);
        for (int d = 0; d < tensors[i].spec.n_dims; d++)
            shape[d] = tensors[i].spec.dims[d];
        tdmi_safetensors_add(writer, name, TDMI_DTYPE_F32, tensors[i].spec.n_dims, shape,
                             values + tensors[i].offset);
    }
}

/* What is trained, where the names of weights are those of averages. */
static const char raw_prefix[] = "optimizer.trained.";

static void slot_prefix(char *prefix, size_t bytes, const char *optimizer, const char *slot)
{
    snprintf(prefix, bytes, "optimizer.%s.%s.", optimizer, slot);
}

tdm_status tdmi_model_file_save(const struct tdmi_model_file *model, const char *path,
                                tdm_error *err)
{
    const tdmi_graph *graph = model->graph;
    struct tdmi_shape input = graph->nodes[0].out;
    int64_t pixels_shape[] = {input.h, input.w, input.c};
    int64_t logits_shape[] = {model->n_classes};
    tdm_json_writer *description = describe(model);
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    const char *text;
    tdm_status status = tdm_json_finish(description, &text, NULL, err);
    if (status != TDM_OK)
        goto out;
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
    status = tdmi_safetensors_finish(writer, path, err);

out:
    tdmi_safetensors_writer_free(writer);
    tdm_json_writer_free(description);
    return TDM_WRAP(err, status, "writing the model %s", path);
}

/* ---- reading ---------------------------------------------------------------------------- */

static tdm_score score_from_json(const tdm_json_value *object)
{
    int64_t n = tdm_json_as_integer(tdm_json_member(object, "n"), 0);
    tdm_score score =
        tdmi_score_of(n, tdm_json_as_integer(tdm_json_member(object, "correct"), 0), 0.0);
    score.loss = tdm_json_as_number(tdm_json_member(object, "loss"), 0.0);
    return score;
}

/* All 0 where there is none: of another schedule, or from an older version. */
static struct tdmi_plateau plateau_from_json(const tdm_json_value *object)
{
    return (struct tdmi_plateau){
        .best_loss = tdm_json_as_number(tdm_json_member(object, "best_loss"), 0.0),
        .n_evaluated = (int)tdm_json_as_integer(tdm_json_member(object, "judged"), 0),
        .n_waited = (int)tdm_json_as_integer(tdm_json_member(object, "waited"), 0),
        .n_resting = (int)tdm_json_as_integer(tdm_json_member(object, "resting"), 0),
        .n_reductions = (int)tdm_json_as_integer(tdm_json_member(object, "reductions"), 0),
    };
}

static struct tdmi_loss_scale loss_scale_from_json(const tdm_json_value *object)
{
    return (struct tdmi_loss_scale){
        .scale = (float)tdm_json_as_number(tdm_json_member(object, "scale"), 0.0),
        .n_good = (int32_t)tdm_json_as_integer(tdm_json_member(object, "good"), 0),
        .n_left_out = tdm_json_as_integer(tdm_json_member(object, "left_out"), 0),
    };
}

static void progress_from_json(const tdm_json_value *object, struct tdmi_progress *progress)
{
    *progress = (struct tdmi_progress){
        .step = tdm_json_as_integer(tdm_json_member(object, "step"), 0),
        .epoch = (int)tdm_json_as_integer(tdm_json_member(object, "epoch"), 0),
        .position = tdm_json_as_integer(tdm_json_member(object, "position"), 0),
        .epoch_n = tdm_json_as_integer(tdm_json_member(object, "epoch_n"), 0),
        .epoch_correct = tdm_json_as_integer(tdm_json_member(object, "epoch_correct"), 0),
        .epoch_loss = tdm_json_as_number(tdm_json_member(object, "epoch_loss"), 0.0),
        .epoch_skipped = tdm_json_as_integer(tdm_json_member(object, "epoch_skipped"), 0),
        .images = tdm_json_as_integer(tdm_json_member(object, "images"), 0),
        .best_epoch = (int)tdm_json_as_integer(tdm_json_member(object, "best_epoch"), 0),
        .best_step = tdm_json_as_integer(tdm_json_member(object, "best_step"), 0),
        .epochs_since_best =
            (int)tdm_json_as_integer(tdm_json_member(object, "epochs_since_best"), 0),
        .mark_correct = tdm_json_as_integer(tdm_json_member(object, "mark_correct"), -1),
        .mark_loss = tdm_json_as_number(tdm_json_member(object, "mark_loss"), 0.0),
        .evaluated_step = tdm_json_as_integer(tdm_json_member(object, "judged_step"), 0),
        .train_skipped = tdm_json_as_integer(tdm_json_member(object, "train_skipped"), 0),
        .val_skipped = tdm_json_as_integer(tdm_json_member(object, "val_skipped"), 0),
        .best_train = score_from_json(tdm_json_member(object, "best_train")),
        .best_val = score_from_json(tdm_json_member(object, "best_val")),
        .plateau = plateau_from_json(tdm_json_member(object, "plateau")),
        .loss_scale = loss_scale_from_json(tdm_json_member(object, "loss_scale")),
    };
    if (progress->mark_correct < 0) { /* of an older version: its best was the mark */
        progress->mark_correct = progress->best_val.correct;
        progress->mark_loss = progress->best_val.loss;
    }
}

static tdm_status read_description(const tdm_json_value *root, const char *path,
                                   struct tdmi_model_file *model, tdm_error *err)
{
    int64_t version = tdm_json_as_integer(tdm_json_member(root, "format_version"), 0);
    if (version < 1 || version > TDMI_MODEL_FORMAT_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT, "model format %lld; this version of tandem reads 1 to %d",
                        (long long)version, TDMI_MODEL_FORMAT_VERSION);
    const tdm_json_value *classes = tdm_json_member(root, "classes");
    size_t n = tdm_json_count(classes);
    TDM_TRY(tdmi_graph_from_json(tdm_json_member(root, "nodes"), path, &model->graph, err), err,
            "its network does not build");
    if (n < 1 || n != (size_t)tdmi_graph_classes(model->graph))
        return TDM_FAIL(err, TDM_E_INPUT, "%zu class names for a network of %d outputs", n,
                        tdmi_graph_classes(model->graph));
    model->shard = (int)tdm_json_as_integer(tdm_json_member(root, "shard"), 8);
    const char *bn = tdm_json_as_string(tdm_json_member(root, "bn"), "shard");
    model->shares_statistics = strcmp(bn, "batch") == 0;
    model->keeps_statistics = strcmp(bn, "frozen") == 0;
    model->n_classes = (int)n;
    model->network = tdmi_arena_copy(
        &model->arena, tdm_json_as_string(tdm_json_member(root, "network"), "unnamed"));
    model->optimizer =
        tdmi_arena_copy(&model->arena, tdm_json_as_string(tdm_json_member(root, "optimizer"), ""));
    model->classes = tdmi_arena_alloc(&model->arena, n, sizeof *model->classes);
    if (!model->network || !model->optimizer || !model->classes)
        return TDM_FAIL(err, TDM_E_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++) {
        model->classes[i] =
            tdmi_arena_copy(&model->arena, tdm_json_as_string(tdm_json_at(classes, i), ""));
        if (!model->classes[i])
            return TDM_FAIL(err, TDM_E_MEMORY, "out of memory");
    }
    model->is_averaged = tdm_json_as_bool(tdm_json_member(root, "averaged"), false);
    progress_from_json(tdm_json_member(root, "progress"), &model->progress);
    return tdmi_lineage_from_json(tdm_json_member(root, "lineage"), &model->arena, &model->lineage,
                                  err);
}

static tdm_status read_values(const tdmi_safetensors *file, const char *prefix,
                              const struct tdmi_tensor *tensors, int n, float *values,
                              tdm_error *err)
{
    for (int i = 0; i < n; i++) {
        char name[512];
        int64_t shape[4];
        const void *data;
        snprintf(name, sizeof name, "%s%s", prefix, tensors[i].name);
        for (int d = 0; d < tensors[i].spec.n_dims; d++)
            shape[d] = tensors[i].spec.dims[d];
        TDM_TRY(tdmi_safetensors_need(file, name, TDMI_DTYPE_F32, tensors[i].spec.n_dims, shape,
                                      &data, err),
                err, "its weights do not fit its network");
        memcpy(values + tensors[i].offset, data, sizeof(float) * (size_t)tensors[i].n);
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
        return TDM_FAIL(err, TDM_E_MEMORY, "%s: out of memory", name);
    if (*n > 0)
        memcpy(*hashes, tensor->data, sizeof **hashes * (size_t)*n);
    return TDM_OK;
}

/* What a checkpoint has beside a model. */
static tdm_status read_training(const tdmi_safetensors *file, struct tdmi_model_file *model,
                                tdm_error *err)
{
    const tdmi_graph *graph = model->graph;
    tdmi_arena *arena = &model->arena;
    const size_t param_values = (size_t)graph->param_values;
    const struct tdmi_optimizer *optimizer;
    TDM_TRY(tdmi_optimizer_find(model->optimizer, &optimizer, err), err,
            "the optimizer of this checkpoint");
    for (int i = 0; i < optimizer->n_slots; i++) {
        char prefix[128];
        slot_prefix(prefix, sizeof prefix, optimizer->name, optimizer->slot_names[i]);
        model->slot_names[i] = optimizer->slot_names[i];
        model->slots[i] = tdmi_arena_alloc(arena, param_values, sizeof(float));
        if (!model->slots[i])
            return TDM_FAIL(err, TDM_E_MEMORY, "optimizer state: out of memory");
        TDM_TRY(read_values(file, prefix, graph->params, graph->n_params, model->slots[i], err),
                err, "reading the optimizer's state");
    }
    model->n_slots = optimizer->n_slots;
    if (!model->is_averaged)
        return TDM_OK;
    model->raw_params = tdmi_arena_alloc(arena, param_values, sizeof(float));
    model->raw_states = tdmi_arena_alloc(arena, (size_t)graph->state_values + 1, sizeof(float));
    if (!model->raw_params || !model->raw_states)
        return TDM_FAIL(err, TDM_E_MEMORY, "weights beside their averages: out of memory");
    TDM_TRY(read_values(file, raw_prefix, graph->params, graph->n_params, model->raw_params, err),
            err, "reading the weights beside their averages");
    return TDM_WRAP(
        err, read_values(file, raw_prefix, graph->states, graph->n_states, model->raw_states, err),
        "reading the running statistics beside their averages");
}

static tdm_status read_tensors(const tdmi_safetensors *file, struct tdmi_model_file *model,
                               tdm_error *err)
{
    const tdmi_graph *graph = model->graph;
    tdmi_arena *arena = &model->arena;
    struct tdmi_shape input = graph->nodes[0].out;
    int64_t pixels_shape[] = {input.h, input.w, input.c};
    int64_t logits_shape[] = {model->n_classes};
    const void *pixels, *logits;
    size_t param_values = (size_t)graph->param_values, classes = (size_t)model->n_classes;
    size_t pixel_bytes = (size_t)tdmi_shape_values(input);
    model->params = tdmi_arena_alloc(arena, param_values, sizeof(float));
    model->states = tdmi_arena_alloc(arena, (size_t)graph->state_values + 1, sizeof(float));
    model->test_pixels = tdmi_arena_alloc(arena, pixel_bytes, 1);
    model->test_logits = tdmi_arena_alloc(arena, classes, sizeof(float));
    if (!model->params || !model->states || !model->test_pixels || !model->test_logits)
        return TDM_FAIL(err, TDM_E_MEMORY, "%lld weights: out of memory",
                        (long long)graph->parameters);
    TDM_TRY(read_values(file, "", graph->params, graph->n_params, model->params, err), err,
            "reading weights");
    TDM_TRY(read_values(file, "", graph->states, graph->n_states, model->states, err), err,
            "reading running statistics");
    TDM_TRY(
        read_hashes(file, "split.train", arena, &model->train_hashes, &model->n_train_hashes, err),
        err, "which pictures it was trained on");
    TDM_TRY(read_hashes(file, "split.val", arena, &model->val_hashes, &model->n_val_hashes, err),
            err, "which pictures it was judged on");
    if (tdmi_safetensors_find(file, "split.test"))
        TDM_TRY(
            read_hashes(file, "split.test", arena, &model->test_hashes, &model->n_test_hashes, err),
            err, "which pictures it was tested on");
    TDM_TRY(tdmi_safetensors_need(file, "selftest.pixels", TDMI_DTYPE_U8, 3, pixels_shape, &pixels,
                                  err),
            err, "its self-test");
    TDM_TRY(tdmi_safetensors_need(file, "selftest.logits", TDMI_DTYPE_F32, 1, logits_shape, &logits,
                                  err),
            err, "its self-test");
    memcpy(model->test_pixels, pixels, pixel_bytes);
    memcpy(model->test_logits, logits, sizeof(float) * classes);
    return *model->optimizer ? read_training(file, model, err) : TDM_OK;
}

tdm_status tdmi_model_file_load(const char *path, struct tdmi_model_file *model, tdm_error *err)
{
    tdmi_safetensors *file = NULL;
    tdm_json_document *document = NULL;
    *model = (struct tdmi_model_file){0};
    tdmi_arena_init(&model->arena, 0);
    tdm_status status = tdmi_safetensors_open(path, &file, err);
    if (status != TDM_OK)
        goto out;
    const char *text = tdmi_safetensors_metadata(file, "tandem");
    if (!text) {
        status = TDM_FAIL(err, TDM_E_INPUT,
                          "it has no metadata entry 'tandem': weights of another program cannot be "
                          "used as a model; a file written by tandem train is wanted");
        goto out;
    }
    status = tdm_json_read(text, strlen(text), "metadata entry 'tandem'", &document, err);
    if (status == TDM_OK)
        status = read_description(tdm_json_root(document), path, model, err);
    if (status == TDM_OK)
        status = read_tensors(file, model, err);

out:
    tdm_json_document_free(document);
    tdmi_safetensors_close(file);
    if (status != TDM_OK)
        tdmi_model_file_release(model);
    return TDM_WRAP(err, status, "reading the model %s", path);
}

void tdmi_model_file_release(struct tdmi_model_file *model)
{
    tdmi_graph_free(model->graph);
    tdmi_arena_release(&model->arena);
    *model = (struct tdmi_model_file){0};
}
