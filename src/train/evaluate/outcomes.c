/*
 * Gathering outcomes, and their file. A file is believed only as far as it was checked: whoever
 * counts afterwards uses labels as indices.
 */
#include "train/evaluate/outcomes.h"
#include "weights/safetensors/safetensors.h"
#include "tandem/json.h"

#include <math.h>
#include <string.h>

tdm_status tdmi_outcomes_open(tdmi_outcomes *outcomes, int n_classes, int64_t capacity,
                              tdm_error *err)
{
    const size_t room = (size_t)capacity + 1;
    *outcomes = (tdmi_outcomes){.n_classes = n_classes, .capacity = capacity};
    tdmi_arena *arena = &outcomes->arena;
    tdmi_arena_init(arena, 0);
    outcomes->contents = tdmi_arena_alloc(arena, room, sizeof *outcomes->contents);
    outcomes->labels = tdmi_arena_alloc(arena, room, sizeof *outcomes->labels);
    outcomes->predicted = tdmi_arena_alloc(arena, room, sizeof *outcomes->predicted);
    outcomes->ranks = tdmi_arena_alloc(arena, room, sizeof *outcomes->ranks);
    outcomes->probabilities = tdmi_arena_alloc(arena, room, sizeof *outcomes->probabilities);
    outcomes->confidences = tdmi_arena_alloc(arena, room, sizeof *outcomes->confidences);
    outcomes->losses = tdmi_arena_alloc(arena, room, sizeof *outcomes->losses);
    if (outcomes->contents && outcomes->labels && outcomes->predicted && outcomes->ranks &&
        outcomes->probabilities && outcomes->confidences && outcomes->losses)
        return TDM_OK;
    tdmi_outcomes_release(outcomes);
    return TDM_FAIL(err, TDM_E_MEMORY, "remembering what becomes of %lld pictures: out of memory",
                    (long long)capacity);
}

void tdmi_outcomes_release(tdmi_outcomes *outcomes)
{
    tdmi_arena_release(&outcomes->arena);
    *outcomes = (tdmi_outcomes){0};
}

tdm_status tdmi_outcomes_copy(const tdmi_outcomes *from, tdmi_outcomes *to, tdm_error *err)
{
    const size_t n = (size_t)from->n;
    if (to->capacity < from->n) {
        tdmi_outcomes_release(to);
        TDM_TRY(tdmi_outcomes_open(to, from->n_classes, from->capacity, err), err,
                "keeping what became of the pictures");
    }
    to->classes = from->classes;
    to->network = from->network;
    to->epoch = from->epoch;
    to->step = from->step;
    to->n = from->n;
    if (n == 0)
        return TDM_OK;
    memcpy(to->contents, from->contents, n * sizeof *to->contents);
    memcpy(to->labels, from->labels, n * sizeof *to->labels);
    memcpy(to->predicted, from->predicted, n * sizeof *to->predicted);
    memcpy(to->ranks, from->ranks, n * sizeof *to->ranks);
    memcpy(to->probabilities, from->probabilities, n * sizeof *to->probabilities);
    memcpy(to->confidences, from->confidences, n * sizeof *to->confidences);
    memcpy(to->losses, from->losses, n * sizeof *to->losses);
    return TDM_OK;
}

/* ---- gathering -------------------------------------------------------------------------- */

/* Equal ones stand in the order of the classes, as for whoever says what is predicted. Only what is
 * right has rank 0, also where large logits make equal probabilities. */
static int rank_of(const float *probabilities, int n, int label, int predicted)
{
    int rank = 0;
    if (label == predicted)
        return 0;
    for (int c = 0; c < n; c++)
        rank += probabilities[c] > probabilities[label] ||
                (probabilities[c] == probabilities[label] && c < label);
    return rank > 0 ? rank : 1;
}

void tdmi_outcomes_add(tdmi_outcomes *outcomes, uint64_t content, int label,
                       struct tdmi_judgement judgement, const float *probabilities)
{
    const int64_t i = outcomes->n++;
    outcomes->contents[i] = content;
    outcomes->labels[i] = label;
    outcomes->predicted[i] = judgement.predicted;
    outcomes->ranks[i] = rank_of(probabilities, outcomes->n_classes, label, judgement.predicted);
    outcomes->probabilities[i] = probabilities[label];
    outcomes->confidences[i] = probabilities[judgement.predicted];
    outcomes->losses[i] = judgement.loss;
}

void tdmi_outcomes_add_batch(tdmi_outcomes *outcomes, const struct tdmi_batch *batch,
                             const struct tdmi_judgement *judgements, const float *probabilities,
                             const uint64_t *hashes)
{
    for (int p = 0; p < batch->n; p++)
        if (batch->labels[p] >= 0)
            tdmi_outcomes_add(outcomes, hashes[batch->items[p]], batch->labels[p], judgements[p],
                              probabilities + (size_t)p * (size_t)outcomes->n_classes);
}

/* ---- the file --------------------------------------------------------------------------- */

static tdm_json_writer *describe(const tdmi_outcomes *outcomes)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "format_version", TDMI_OUTCOMES_FORMAT_VERSION);
    tdm_json_string(writer, "tandem", tdm_version());
    tdm_json_string(writer, "network", outcomes->network);
    tdm_json_integer(writer, "epoch", outcomes->epoch);
    tdm_json_integer(writer, "step", outcomes->step);
    tdm_json_array_begin(writer, "classes");
    for (int c = 0; c < outcomes->n_classes; c++)
        tdm_json_string(writer, NULL, outcomes->classes[c]);
    tdm_json_array_end(writer);
    tdm_json_object_end(writer);
    return writer;
}

tdm_status tdmi_outcomes_save(const tdmi_outcomes *outcomes, const char *path, tdm_error *err)
{
    tdm_json_writer *description = describe(outcomes);
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    const char *text;
    const int64_t *n = &outcomes->n;
    tdm_status status = tdm_json_finish(description, &text, NULL, err);
    if (status == TDM_OK) {
        tdmi_safetensors_note(writer, "format", "tandem.outcomes");
        tdmi_safetensors_note(writer, "tandem", text);
        tdmi_safetensors_add(writer, "content", TDMI_DTYPE_U64, 1, n, outcomes->contents);
        tdmi_safetensors_add(writer, "label", TDMI_DTYPE_I32, 1, n, outcomes->labels);
        tdmi_safetensors_add(writer, "predicted", TDMI_DTYPE_I32, 1, n, outcomes->predicted);
        tdmi_safetensors_add(writer, "rank", TDMI_DTYPE_I32, 1, n, outcomes->ranks);
        tdmi_safetensors_add(writer, "probability", TDMI_DTYPE_F32, 1, n, outcomes->probabilities);
        tdmi_safetensors_add(writer, "confidence", TDMI_DTYPE_F32, 1, n, outcomes->confidences);
        tdmi_safetensors_add(writer, "loss", TDMI_DTYPE_F32, 1, n, outcomes->losses);
        status = tdmi_safetensors_finish(writer, path, err);
    }
    tdmi_safetensors_writer_free(writer);
    tdm_json_writer_free(description);
    return TDM_WRAP(err, status, "writing what became of the pictures to %s", path);
}

static tdm_status read_description(const tdm_json_value *root, tdmi_outcomes *made, int *n_classes,
                                   tdm_error *err)
{
    const int64_t version = tdm_json_as_integer(tdm_json_member(root, "format_version"), 0);
    if (version < 1 || version > TDMI_OUTCOMES_FORMAT_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "format %lld of outcomes; this version of tandem reads 1 to %d",
                        (long long)version, TDMI_OUTCOMES_FORMAT_VERSION);
    const tdm_json_value *classes = tdm_json_member(root, "classes");
    const size_t n = tdm_json_count(classes);
    if (n < 1 || n > 1000000)
        return TDM_FAIL(err, TDM_E_INPUT, "%zu classes; 1 to 1,000,000 are accepted", n);
    const char **names = tdmi_arena_alloc(&made->arena, n, sizeof *names);
    made->network =
        tdmi_arena_copy(&made->arena, tdm_json_as_string(tdm_json_member(root, "network"), ""));
    if (!names || !made->network)
        return TDM_FAIL(err, TDM_E_MEMORY, "%zu classes: out of memory", n);
    for (size_t c = 0; c < n; c++) {
        names[c] = tdmi_arena_copy(&made->arena, tdm_json_as_string(tdm_json_at(classes, c), ""));
        if (!names[c])
            return TDM_FAIL(err, TDM_E_MEMORY, "%zu classes: out of memory", n);
    }
    made->classes = names;
    made->epoch = (int)tdm_json_as_integer(tdm_json_member(root, "epoch"), 0);
    made->step = tdm_json_as_integer(tdm_json_member(root, "step"), 0);
    *n_classes = (int)n;
    return TDM_OK;
}

static tdm_status copy_tensor(const tdmi_safetensors *file, const char *name, enum tdmi_dtype dtype,
                              int64_t n, void *to, tdm_error *err)
{
    const void *data;
    TDM_TRY(tdmi_safetensors_need(file, name, dtype, 1, &n, &data, err), err,
            "%lld pictures were judged", (long long)n);
    if (n > 0)
        memcpy(to, data, (size_t)n * (dtype == TDMI_DTYPE_U64 ? 8 : 4));
    return TDM_OK;
}

static bool is_probability(float value)
{
    return value >= 0.0f && value <= 1.0f;
}

static tdm_status check(const tdmi_outcomes *made, tdm_error *err)
{
    for (int64_t i = 0; i < made->n; i++) {
        const int label = made->labels[i], said = made->predicted[i], rank = made->ranks[i];
        if (label < 0 || label >= made->n_classes || said < 0 || said >= made->n_classes ||
            rank < 0 || rank >= made->n_classes || (rank == 0) != (label == said) ||
            !is_probability(made->probabilities[i]) || !is_probability(made->confidences[i]) ||
            !isfinite(made->losses[i]))
            return TDM_FAIL(err, TDM_E_INPUT,
                            "picture %lld of %lld: label %d, predicted %d, rank %d do not fit "
                            "together or to %d classes and probabilities",
                            (long long)i, (long long)made->n, label, said, rank, made->n_classes);
    }
    return TDM_OK;
}

static tdm_status read_tensors(const tdmi_safetensors *file, tdmi_outcomes *made, tdm_error *err)
{
    const int64_t n = made->capacity;
    tdm_status status = copy_tensor(file, "content", TDMI_DTYPE_U64, n, made->contents, err);
    if (status == TDM_OK)
        status = copy_tensor(file, "label", TDMI_DTYPE_I32, n, made->labels, err);
    if (status == TDM_OK)
        status = copy_tensor(file, "predicted", TDMI_DTYPE_I32, n, made->predicted, err);
    if (status == TDM_OK)
        status = copy_tensor(file, "rank", TDMI_DTYPE_I32, n, made->ranks, err);
    if (status == TDM_OK)
        status = copy_tensor(file, "probability", TDMI_DTYPE_F32, n, made->probabilities, err);
    if (status == TDM_OK)
        status = copy_tensor(file, "confidence", TDMI_DTYPE_F32, n, made->confidences, err);
    if (status == TDM_OK)
        status = copy_tensor(file, "loss", TDMI_DTYPE_F32, n, made->losses, err);
    made->n = n;
    return status == TDM_OK ? check(made, err) : status;
}

static tdm_status take(const tdmi_safetensors *file, tdmi_outcomes *outcomes, tdm_error *err)
{
    const char *text = tdmi_safetensors_metadata(file, "tandem");
    const char *format = tdmi_safetensors_metadata(file, "format");
    const struct tdmi_safetensors_tensor *content = tdmi_safetensors_find(file, "content");
    tdm_json_document *document = NULL;
    int n_classes = 0;
    if (!text || !format || strcmp(format, "tandem.outcomes") != 0 || !content)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it holds no outcomes; a file that tandem train wrote is wanted");
    TDM_TRY(tdmi_outcomes_open(outcomes, 1, content->n_values, err), err, "reading outcomes");
    tdm_status status =
        tdm_json_read(text, strlen(text), "metadata entry 'tandem'", &document, err);
    if (status == TDM_OK)
        status = read_description(tdm_json_root(document), outcomes, &n_classes, err);
    outcomes->n_classes = n_classes;
    if (status == TDM_OK)
        status = read_tensors(file, outcomes, err);
    tdm_json_document_free(document);
    if (status != TDM_OK)
        tdmi_outcomes_release(outcomes);
    return status;
}

tdm_status tdmi_outcomes_load(const char *path, tdmi_outcomes *outcomes, tdm_error *err)
{
    tdmi_safetensors *file = NULL;
    *outcomes = (tdmi_outcomes){0};
    TDM_TRY(tdmi_safetensors_open(path, &file, err), err, "reading outcomes");
    tdm_status status = take(file, outcomes, err);
    tdmi_safetensors_close(file);
    return TDM_WRAP(err, status, "reading %s", path);
}

tdm_status tdmi_outcomes_read(const void *bytes, size_t length_bytes, const char *name,
                              tdmi_outcomes *outcomes, tdm_error *err)
{
    tdmi_safetensors *file = NULL;
    *outcomes = (tdmi_outcomes){0};
    TDM_TRY(tdmi_safetensors_open_bytes(bytes, length_bytes, name, &file, err), err,
            "reading outcomes");
    tdm_status status = take(file, outcomes, err);
    tdmi_safetensors_close(file);
    return TDM_WRAP(err, status, "reading %s", name);
}
