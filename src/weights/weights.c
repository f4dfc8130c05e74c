/*
 * The list of a weights file's tensors, and which form reads it. The file is mapped, not read: what
 * becomes of the values is one copy, into the arrays of a network. Large tensors are read into
 * them, because then their pages need not be mapped one by one first.
 */
#include "weights/form.h"
#include "base/text/text.h"
#include "image/image.h"
#include "tensor/half.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define X(table) extern const struct tdmi_weights_form table;
#include "weights/forms.def"
#undef X

static const struct tdmi_weights_form *const forms[] = {
#define X(table) &(table),
#include "weights/forms.def"
#undef X
};

enum { N_FORMS = sizeof forms / sizeof forms[0] };

struct held {
    void *what;
    void (*release)(void *what);
    struct held *next;
};

struct fact {
    const char *key, *value;
    size_t place; /* in the order in which they were noted */
};

struct tdmi_weights {
    const char *path;
    const struct tdmi_weights_form *form;
    struct tdmi_weights_input input;
    void *mapping; /* NULL: the bytes are somebody else's */
    int file;      /* of the mapping, else -1 */
    struct tdmi_weights_tensor *tensors;
    const struct tdmi_weights_tensor **by_name;
    size_t n_tensors;
    int64_t tensor_capacity;
    struct fact *facts; /* by key, once the list is read */
    const struct fact **in_order;
    size_t n_facts;
    int64_t fact_capacity;
    struct held *held; /* newest first */
    tdmi_arena arena;
};

/* ---- functions for readers ------------------------------------------------------------------- */

tdmi_arena *tdmi_weights_arena(tdmi_weights *weights)
{
    return &weights->arena;
}

tdm_status tdmi_weights_keep(tdmi_weights *weights, void *held, void (*release)(void *held),
                             tdm_error *err)
{
    struct held *note = tdmi_arena_alloc(&weights->arena, 1, sizeof *note);
    if (note == NULL)
        release(held);
    TDMI_CHECK_MEMORY(note, err);
    *note = (struct held){.what = held, .release = release, .next = weights->held};
    weights->held = note;
    return TDM_OK;
}

static bool is_utf8(const char *text)
{
    size_t n = strlen(text), step = 1;
    for (size_t i = 0; i < n && step > 0; i += step)
        step = tdmi_utf8_length(text + i, n - i);
    return step > 0;
}

/* False when the shape does not fit in memory. */
static bool measure(struct tdmi_weights_tensor *tensor)
{
    uint64_t n = 1;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] < 0 || __builtin_mul_overflow(n, (uint64_t)tensor->shape[i], &n))
            return false;
    for (int i = tensor->rank; i < TDMI_WEIGHTS_RANK; i++)
        tensor->shape[i] = 0;
    uint64_t bytes;
    if (__builtin_mul_overflow(n, (uint64_t)tdmi_dtype_bytes(tensor->dtype), &bytes) ||
        bytes > (uint64_t)INT64_MAX || bytes > SIZE_MAX)
        return false;
    tensor->n_values = (int64_t)n;
    tensor->bytes = (size_t)bytes;
    return true;
}

tdm_status tdmi_weights_add(tdmi_weights *weights, const struct tdmi_weights_tensor *tensor,
                            uint64_t available_bytes, tdm_error *err)
{
    struct tdmi_weights_tensor added = *tensor;
    if (!is_utf8(tensor->name))
        return TDMI_WEIGHTS_BAD(err, weights, "the name of tensor %zu is not UTF-8",
                                weights->n_tensors);
    if (!measure(&added))
        return TDMI_WEIGHTS_BAD(err, weights, "tensor '%s': its shape has too many values",
                                tensor->name);
    if (added.bytes > available_bytes)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "tensor '%s' needs %zu bytes by its shape and type; there are %zu",
                                tensor->name, added.bytes, (size_t)available_bytes);
    TDMI_ARENA_COPY(&weights->arena, added.name, tensor->name, err);
    TDMI_TRY(TDMI_MAKE_ROOM(weights->tensors, weights->tensor_capacity, weights->n_tensors, err));
    weights->tensors[weights->n_tensors++] = added;
    return TDM_OK;
}

tdm_status tdmi_weights_note(tdmi_weights *weights, const char *key, const char *value,
                             size_t length_bytes, tdm_error *err)
{
    char *text;
    struct fact fact = {.place = weights->n_facts};
    TDMI_ARENA_NEW(&weights->arena, text, length_bytes + 1, err);
    TDMI_ARENA_COPY(&weights->arena, fact.key, key, err);
    TDMI_TRY(TDMI_MAKE_ROOM(weights->facts, weights->fact_capacity, weights->n_facts, err));
    if (length_bytes > 0)
        memcpy(text, value, length_bytes);
    fact.value = text;
    weights->facts[weights->n_facts++] = fact;
    return TDM_OK;
}

void tdmi_weights_gather(const struct tdmi_weights_tensor *tensor, const uint64_t *steps,
                         bool is_swapped, const uint8_t *from, uint8_t *to)
{
    const size_t width = tdmi_dtype_bytes(tensor->dtype);
    uint64_t at[TDMI_WEIGHTS_RANK] = {0}, place = 0;
    int axis = 0;
    while (axis >= 0) {
        for (size_t k = 0; k < width; k++)
            *to++ = from[place * width + (is_swapped ? width - 1 - k : k)];
        for (axis = tensor->rank - 1; axis >= 0; axis--) {
            place += steps[axis];
            if (++at[axis] < (uint64_t)tensor->shape[axis])
                break;
            place -= at[axis] * steps[axis];
            at[axis] = 0;
        }
    }
}

/* ---- open -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct tdmi_weights_tensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static tdm_status index_names(tdmi_weights *weights, tdm_error *err)
{
    size_t n = weights->n_tensors;
    TDMI_TRY(TDMI_NEW(weights->by_name, n + 1, err));
    for (size_t i = 0; i < n; i++)
        weights->by_name[i] = &weights->tensors[i];
    qsort(weights->by_name, n, sizeof *weights->by_name, by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(weights->by_name[i - 1]->name, weights->by_name[i]->name) == 0)
            return TDMI_WEIGHTS_BAD(err, weights, "tensor '%s' is there twice",
                                    weights->by_name[i]->name);
    return TDM_OK;
}

static int fact_by_key(const void *a, const void *b)
{
    return strcmp(((const struct fact *)a)->key, ((const struct fact *)b)->key);
}

static int fact_by_key_and_place(const void *a, const void *b)
{
    const size_t x = ((const struct fact *)a)->place, y = ((const struct fact *)b)->place;
    const int order = fact_by_key(a, b);
    return order != 0 ? order : (x > y) - (x < y);
}

static int fact_by_place(const void *a, const void *b)
{
    const struct fact *const *left = a, *const *right = b;
    return ((*left)->place > (*right)->place) - ((*left)->place < (*right)->place);
}

/* The last value of a repeated key counts, at the place of the first. */
static tdm_status index_facts(tdmi_weights *weights, tdm_error *err)
{
    struct fact *facts = weights->facts;
    size_t n = 0;
    TDMI_TRY(TDMI_NEW(weights->in_order, weights->n_facts + 1, err));
    if (weights->n_facts > 0)
        qsort(facts, weights->n_facts, sizeof *facts, fact_by_key_and_place);
    for (size_t i = 0; i < weights->n_facts; i++)
        if (n > 0 && strcmp(facts[n - 1].key, facts[i].key) == 0)
            facts[n - 1].value = facts[i].value;
        else
            facts[n++] = facts[i];
    weights->n_facts = n;
    for (size_t i = 0; i < n; i++)
        weights->in_order[i] = &facts[i];
    qsort(weights->in_order, n, sizeof *weights->in_order, fact_by_place);
    return TDM_OK;
}

static tdm_status read_list(tdmi_weights *weights, tdm_error *err)
{
    char known[300] = "";
    size_t n = 0;
    for (size_t i = 0; i < N_FORMS && weights->form == NULL; i++)
        if (forms[i]->is_form(&weights->input))
            weights->form = forms[i];
    const enum tdmi_image_format image =
        tdmi_image_sniff(weights->input.bytes, weights->input.n_bytes);
    if (weights->form == NULL && image != TDMI_IMAGE_UNKNOWN)
        return TDMI_WEIGHTS_BAD(err, weights, "it is an image (%s), not weights",
                                tdmi_image_format_name(image));
    for (size_t i = 0; i < N_FORMS && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", forms[i]->what);
    if (weights->form == NULL)
        return TDMI_WEIGHTS_BAD(
            err, weights, "its content is of no form of weights that is read here: %s", known);
    TDMI_TRY(weights->form->read(weights, &weights->input, err));
    TDMI_TRY(index_names(weights, err));
    return index_facts(weights, err);
}

static tdm_status map_file(tdmi_weights *weights, tdm_error *err)
{
    struct stat facts;
    struct tdmi_weights_input *input = &weights->input;
    weights->file = open(weights->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (weights->file < 0 || fstat(weights->file, &facts) != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "opening the weights %s: %s", weights->path,
                        strerror(errno));
    if (!S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "opening the weights %s: it is a device or pipe; a file is read",
                        weights->path);
    input->is_folder = S_ISDIR(facts.st_mode);
    if (input->is_folder || facts.st_size == 0)
        return TDM_OK;
    void *mapping = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, weights->file, 0);
    if (mapping == MAP_FAILED)
        return TDM_FAIL(err, TDM_E_SYSTEM, "opening the weights %s: %s", weights->path,
                        strerror(errno));
    input->bytes = weights->mapping = mapping;
    input->n_bytes = (size_t)facts.st_size;
    return TDM_OK;
}

static tdm_status open_with(const void *bytes, size_t n_bytes, const char *name,
                            tdmi_weights **opened, tdm_error *err)
{
    TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = NULL;
    TDMI_TRY(TDMI_NEW(weights, 1, err));
    weights->file = -1;
    TDMI_ARENA_COPY(&weights->arena, weights->path, name, err);
    weights->input = (struct tdmi_weights_input){weights->path, false, bytes, n_bytes};
    if (bytes == NULL)
        TDMI_TRY(map_file(weights, err));
    TDMI_TRY(read_list(weights, err));
    *opened = tdmi_take(&weights);
    return TDM_OK;
}

tdm_status tdmi_weights_open(const char *path, tdmi_weights **weights, tdm_error *err)
{
    return open_with(NULL, 0, path, weights, err);
}

tdm_status tdmi_weights_open_bytes(const void *bytes, size_t length_bytes, const char *name,
                                   tdmi_weights **weights, tdm_error *err)
{
    return open_with(bytes ? bytes : "", length_bytes, name, weights, err);
}

void tdmi_weights_close(tdmi_weights *weights)
{
    if (weights == NULL)
        return;
    for (struct held *held = weights->held; held != NULL; held = held->next)
        held->release(held->what);
    if (weights->mapping)
        (void)munmap(weights->mapping, weights->input.n_bytes);
    if (weights->file >= 0)
        (void)close(weights->file);
    tdmi_free(weights->by_name);
    tdmi_free(weights->tensors);
    tdmi_free(weights->in_order);
    tdmi_free(weights->facts);
    tdmi_arena_release(&weights->arena);
    tdmi_free(weights);
}

/* ---- bytes ------------------------------------------------------------------------------- */

tdm_status tdmi_weights_read_at(int file, const char *path, uint64_t offset, void *to,
                                size_t n_bytes, tdm_error *err)
{
    for (size_t got = 0; got < n_bytes;) {
        ssize_t n = pread(file, (char *)to + got, n_bytes - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return TDM_FAIL(err, TDM_E_INPUT, "%s: reading stopped at byte %zu: %s", path,
                            (size_t)offset + got,
                            n < 0 ? strerror(errno) : "the file became shorter meanwhile");
        got += (size_t)n;
    }
    return TDM_OK;
}

/* Copy the tensor's bytes. TDM_E_INPUT: the file became shorter meanwhile. */
static tdm_status copy_bytes(const tdmi_weights *weights, const struct tdmi_weights_tensor *tensor,
                             void *out, tdm_error *err)
{
    /* So many bytes around it are mapped with the first page that is touched. */
    const size_t read_from = (size_t)64 << 10;
    uintptr_t first = (uintptr_t)weights->mapping, at = (uintptr_t)tensor->data;
    if (tensor->bytes < read_from || !weights->mapping || at < first ||
        at - first >= weights->input.n_bytes) {
        if (tensor->bytes > 0)
            memcpy(out, tensor->data, tensor->bytes);
        return TDM_OK;
    }
    return tdmi_weights_read_at(weights->file, weights->path, at - first, out, tensor->bytes, err);
}

/* Wider and narrower floats are converted; whole numbers are not weights, so they are refused by
 * name. */
tdm_status tdmi_weights_floats(const tdmi_weights *weights,
                               const struct tdmi_weights_tensor *tensor, float *out, tdm_error *err)
{
    const uint8_t *from = tensor->data;
    if (tensor->n_values == 0)
        return TDM_OK;
    switch (tensor->dtype) {
    case TDMI_DTYPE_F32:
        return TDM_WRAP(err, copy_bytes(weights, tensor, out, err), "reading tensor '%s'",
                        tensor->name);
    case TDMI_DTYPE_F64:
        for (int64_t i = 0; i < tensor->n_values; i++) {
            double value;
            memcpy(&value, from + 8 * i, sizeof value);
            out[i] = (float)value;
        }
        return TDM_OK;
    case TDMI_DTYPE_F16:
    case TDMI_DTYPE_BF16:
        for (int64_t i = 0; i < tensor->n_values; i++) {
            uint16_t bits;
            memcpy(&bits, from + 2 * i, sizeof bits);
            out[i] = tensor->dtype == TDMI_DTYPE_F16 ? tdmi_float_of_f16(bits)
                                                     : tdmi_float_of_bf16(bits);
        }
        return TDM_OK;
    default:
        return TDMI_WEIGHTS_BAD(err, weights,
                                "tensor '%s' is of type %s; weights are F32, F16, BF16 or F64",
                                tensor->name, tdmi_dtype_name(tensor->dtype));
    }
}

/* ---- queries ----------------------------------------------------------------------------- */

const char *tdmi_weights_path(const tdmi_weights *weights)
{
    return weights->path;
}

bool tdmi_weights_is_folder(const tdmi_weights *weights)
{
    return weights->input.is_folder;
}

size_t tdmi_weights_file_bytes(const tdmi_weights *weights)
{
    return weights->input.n_bytes;
}

/* A file is read once more rather than mapped page by page. */
tdm_status tdmi_weights_digest(const tdmi_weights *weights, struct tdmi_digest *digest,
                               tdm_error *err)
{
    if (weights->mapping)
        return tdmi_digest_file(weights->path, digest, err);
    tdmi_digest_bytes(weights->input.bytes, weights->input.n_bytes, digest);
    return TDM_OK;
}

const char *tdmi_weights_form_name(const tdmi_weights *weights)
{
    return weights->form->name;
}

size_t tdmi_weights_count(const tdmi_weights *weights)
{
    return weights->n_tensors;
}

const struct tdmi_weights_tensor *tdmi_weights_at(const tdmi_weights *weights, size_t index)
{
    return &weights->tensors[index];
}

const struct tdmi_weights_tensor *tdmi_weights_find(const tdmi_weights *weights, const char *name)
{
    const struct tdmi_weights_tensor sample = {.name = name}, *key = &sample;
    const struct tdmi_weights_tensor **found =
        bsearch(&key, weights->by_name, weights->n_tensors, sizeof *weights->by_name, by_name);
    return found == NULL ? NULL : *found;
}

const char *tdmi_weights_fact(const tdmi_weights *weights, const char *key)
{
    const struct fact sample = {.key = key};
    const struct fact *found =
        weights->n_facts == 0
            ? NULL
            : bsearch(&sample, weights->facts, weights->n_facts, sizeof sample, fact_by_key);
    return found == NULL ? NULL : found->value;
}

size_t tdmi_weights_facts(const tdmi_weights *weights)
{
    return weights->n_facts;
}

const char *tdmi_weights_fact_key(const tdmi_weights *weights, size_t index)
{
    return weights->in_order[index]->key;
}
