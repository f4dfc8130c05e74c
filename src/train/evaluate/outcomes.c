/*
 * Gathering outcomes, and their file. Every value of a file is checked: metrics use labels as
 * indices.
 */
#include "train/evaluate/outcomes.h"
#include "base/hash/hash.h"
#include "base/scope.h"
#include "base/text/json.h"
#include "weights/safetensors/safetensors.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The arrays of outcomes, by the names of their tensors. */
static const struct column {
    const char *name;
    enum tdmi_dtype dtype;
    size_t at; /* of the pointer in the object */
} columns[] = {
    {"content", TDMI_DTYPE_U64, offsetof(tdmi_outcomes, contents)},
    {"label", TDMI_DTYPE_I32, offsetof(tdmi_outcomes, labels)},
    {"predicted", TDMI_DTYPE_I32, offsetof(tdmi_outcomes, predicted)},
    {"rank", TDMI_DTYPE_I32, offsetof(tdmi_outcomes, ranks)},
    {"probability", TDMI_DTYPE_F32, offsetof(tdmi_outcomes, probabilities)},
    {"confidence", TDMI_DTYPE_F32, offsetof(tdmi_outcomes, confidences)},
    {"loss", TDMI_DTYPE_F32, offsetof(tdmi_outcomes, losses)},
};

enum { n_columns = sizeof columns / sizeof columns[0] };

static void *array_of(const tdmi_outcomes *outcomes, int column)
{
    void *array;
    memcpy(&array, (const char *)outcomes + columns[column].at, sizeof array);
    return array;
}

tdm_status tdmi_outcomes_open(tdmi_outcomes *outcomes, int n_classes, int64_t capacity,
                              tdm_error *err)
{
    *outcomes = (tdmi_outcomes){.n_classes = n_classes, .capacity = capacity};
    for (int c = 0; c < n_columns; c++) {
        void *array = tdmi_arena_alloc(&outcomes->arena, (size_t)capacity + 1,
                                       tdmi_dtype_bytes(columns[c].dtype));
        if (!array) {
            tdmi_outcomes_release(outcomes);
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the outcomes of %lld images",
                            (long long)capacity);
        }
        memcpy((char *)outcomes + columns[c].at, &array, sizeof array);
    }
    return TDM_OK;
}

void tdmi_outcomes_release(tdmi_outcomes *outcomes)
{
    tdmi_arena_release(&outcomes->arena);
    *outcomes = (tdmi_outcomes){0};
}

tdm_status tdmi_outcomes_copy(const tdmi_outcomes *from, tdmi_outcomes *to, tdm_error *err)
{
    if (to->capacity < from->n) {
        tdmi_outcomes_release(to);
        TDM_TRY(tdmi_outcomes_open(to, from->n_classes, from->capacity, err), err,
                "keeping the outcomes");
    }
    to->classes = from->classes;
    to->network = from->network;
    to->epoch = from->epoch;
    to->step = from->step;
    to->n = from->n;
    for (int c = 0; c < n_columns && from->n > 0; c++)
        memcpy(array_of(to, c), array_of(from, c),
               (size_t)from->n * tdmi_dtype_bytes(columns[c].dtype));
    return TDM_OK;
}

/* ---- gathering -------------------------------------------------------------------------- */

/* Equal probabilities rank in the order of the classes, as in the choice of the prediction. Only a
 * right prediction has rank 0, also where large logits make equal probabilities. */
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

/* ---- choosing --------------------------------------------------------------------------- */

struct entry {
    uint64_t content;
    bool is_right;
    int64_t index;
};

/* Equal contents stand together, wrong ones first. */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    if (left->content != right->content)
        return left->content < right->content ? -1 : 1;
    if (left->is_right != right->is_right)
        return (int)left->is_right - (int)right->is_right;
    return left->index < right->index ? -1 : 1;
}

static tdm_status have_copies(const tdmi_outcomes *outcomes, bool *found, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) uint64_t *sorted = NULL;
    TDMI_TRY(TDMI_NEW(sorted, outcomes->n, err));
    *found = false;
    if (outcomes->n > 0)
        memcpy(sorted, outcomes->contents, (size_t)outcomes->n * sizeof *sorted);
    tdmi_hashes_sort(sorted, outcomes->n);
    for (int64_t i = 1; i < outcomes->n; i++)
        *found |= sorted[i] == sorted[i - 1] && sorted[i] != 0;
    return TDM_OK;
}

tdm_status tdmi_outcomes_distinct(const tdmi_outcomes *outcomes, bool *counts, tdm_error *err)
{
    const int64_t n = outcomes->n;
    bool has_copies;
    TDMI_AT_END(tdmi_free_at) struct entry *entries = NULL;
    TDMI_TRY(have_copies(outcomes, &has_copies, err));
    for (int64_t i = 0; i < n; i++)
        counts[i] = true;
    if (!has_copies) /* the usual case, after every epoch */
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(entries, n, err));
    for (int64_t i = 0; i < n; i++)
        entries[i] =
            (struct entry){outcomes->contents[i], outcomes->labels[i] == outcomes->predicted[i], i};
    qsort(entries, (size_t)n, sizeof *entries, compare_entries);
    for (int64_t i = 1; i < n; i++)
        if (entries[i].content == entries[i - 1].content && entries[i].content != 0)
            counts[entries[i].index] = false;
    return TDM_OK;
}

tdm_status tdmi_outcomes_filter(const tdmi_outcomes *from, const bool *keep, tdmi_outcomes *to,
                                tdm_error *err)
{
    TDM_TRY(tdmi_outcomes_open(to, from->n_classes, from->n, err), err, "choosing outcomes");
    to->classes = from->classes;
    to->network = from->network;
    to->epoch = from->epoch;
    to->step = from->step;
    for (int64_t i = 0; i < from->n; i++) {
        if (!keep[i])
            continue;
        for (int c = 0; c < n_columns; c++) {
            const size_t bytes = tdmi_dtype_bytes(columns[c].dtype);
            memcpy((char *)array_of(to, c) + (size_t)to->n * bytes,
                   (const char *)array_of(from, c) + (size_t)i * bytes, bytes);
        }
        to->n++;
    }
    return TDM_OK;
}

/* ---- the file --------------------------------------------------------------------------- */

static void describe(const tdmi_outcomes *outcomes, tdm_json_writer *writer)
{
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
}

tdm_status tdmi_outcomes_save(const tdmi_outcomes *outcomes, const char *path, tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *description = tdm_json_writer_new(0);
    TDMI_AT_END(tdmi_safetensors_writer_free_at)
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    const char *text;
    describe(outcomes, description);
    TDM_TRY(tdm_json_finish(description, &text, NULL, err), err, "writing the outcomes to %s",
            path);
    tdmi_safetensors_note(writer, "format", "tandem.outcomes");
    tdmi_safetensors_note(writer, "tandem", text);
    for (int c = 0; c < n_columns; c++)
        tdmi_safetensors_add(writer, columns[c].name, columns[c].dtype, 1, &outcomes->n,
                             array_of(outcomes, c));
    return TDM_WRAP(err, tdmi_safetensors_finish_in_folder(writer, path, err),
                    "writing the outcomes to %s", path);
}

static tdm_status read_description(const tdm_json_value *root, tdmi_outcomes *made, tdm_error *err)
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
    bool is_complete = names && made->network;
    for (size_t c = 0; c < n && is_complete; c++) {
        names[c] = tdmi_arena_copy(&made->arena, tdm_json_as_string(tdm_json_at(classes, c), ""));
        is_complete = names[c] != NULL;
    }
    if (!is_complete)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the names of %zu classes", n);
    made->classes = names;
    made->epoch = (int)tdm_json_as_integer(tdm_json_member(root, "epoch"), 0);
    made->step = tdm_json_as_integer(tdm_json_member(root, "step"), 0);
    made->n_classes = (int)n;
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
                            "image %lld of %lld: label %d, predicted %d, rank %d do not fit "
                            "together or to %d classes and probabilities",
                            (long long)i, (long long)made->n, label, said, rank, made->n_classes);
    }
    return TDM_OK;
}

static tdm_status read_tensors(const tdmi_safetensors *file, tdmi_outcomes *made, tdm_error *err)
{
    const int64_t n = made->capacity;
    for (int c = 0; c < n_columns; c++) {
        const enum tdmi_dtype dtype = columns[c].dtype;
        const void *data;
        TDM_TRY(tdmi_safetensors_need(file, columns[c].name, dtype, 1, &n, &data, err), err,
                "%lld images were evaluated", (long long)n);
        if (n > 0)
            memcpy(array_of(made, c), data, (size_t)n * tdmi_dtype_bytes(dtype));
    }
    made->n = n;
    return check(made, err);
}

static tdm_status fill(const tdmi_safetensors *file, tdmi_outcomes *outcomes, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const char *text = tdmi_safetensors_metadata(file, "tandem");
    const char *format = tdmi_safetensors_metadata(file, "format");
    const struct tdmi_safetensors_tensor *content = tdmi_safetensors_find(file, "content");
    if (!text || !format || strcmp(format, "tandem.outcomes") != 0 || !content)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it holds no outcomes; a file that tandem train wrote is needed");
    TDM_TRY(tdmi_outcomes_open(outcomes, 1, content->n_values, err), err, "reading outcomes");
    TDMI_TRY(tdm_json_read(text, strlen(text), "metadata entry 'tandem'", &document, err));
    TDMI_TRY(read_description(tdm_json_root(document), outcomes, err));
    return read_tensors(file, outcomes, err);
}

tdm_status tdmi_outcomes_read(const void *bytes, size_t length_bytes, const char *name,
                              tdmi_outcomes *outcomes, tdm_error *err)
{
    TDMI_AT_END(tdmi_safetensors_close_at) tdmi_safetensors *file = NULL;
    *outcomes = (tdmi_outcomes){0};
    TDM_TRY(bytes ? tdmi_safetensors_open_bytes(bytes, length_bytes, name, &file, err)
                  : tdmi_safetensors_open(name, &file, err),
            err, "reading outcomes");
    const tdm_status status = fill(file, outcomes, err);
    if (status != TDM_OK)
        tdmi_outcomes_release(outcomes);
    return TDM_WRAP(err, status, "reading %s", name);
}

tdm_status tdmi_outcomes_load(const char *path, tdmi_outcomes *outcomes, tdm_error *err)
{
    return tdmi_outcomes_read(NULL, 0, path, outcomes, err);
}
