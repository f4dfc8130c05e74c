/*
 * From a call of a rebuild function to a tensor of the list: every number is checked against the
 * storage before a byte is looked at. A tensor that is transposed or spread in its storage is
 * copied so that it lies without gaps, as the list needs it.
 */
#include "weights/torch/torch_tensor.h"
#include "base/text/text.h"

#include <string.h>

/* ---- types ------------------------------------------------------------------------------- */

/* The type of a storage's name ("FloatStorage") or of a constant ("float32"). */
static bool type_of(const tdmi_pickle_value *name, bool is_storage, enum tdmi_dtype *dtype)
{
    const char *text = tdmi_pickle_name_of(name);
    if (*text == '\0' || !name->call.name->is_type || tdmi_ends_with(text, "Storage") != is_storage)
        return false;
    *dtype = name->call.name->dtype;
    return true;
}

/* ---- calls ------------------------------------------------------------------------------- */

/* Unpack parameters and subclasses: the arguments of the call of _rebuild_tensor…, or NULL; the
 * function may stand in the arguments. */
static const tdmi_pickle_value *unwrap(const tdmi_pickle_value *value, const char **function)
{
    enum { DEEPEST = 8 };
    const tdmi_pickle_value *arguments = NULL;
    for (int i = 0; i < DEEPEST && value != NULL && value->kind == TDMI_PICKLE_CALL; i++) {
        *function = tdmi_pickle_name_of(value);
        arguments = value->call.arguments;
        if (strcmp(*function, "_rebuild_from_type_v2") == 0) {
            *function = tdmi_pickle_name_of(tdmi_pickle_item(arguments, 0));
            arguments = tdmi_pickle_item(arguments, 2);
        }
        if (strncmp(*function, "_rebuild_tensor", strlen("_rebuild_tensor")) == 0)
            return arguments;
        if (strncmp(*function, "_rebuild_", strlen("_rebuild_")) != 0)
            return NULL;
        value = tdmi_pickle_item(arguments, 0);
    }
    return NULL;
}

bool tdmi_torch_is_tensor(const tdmi_pickle_value *value)
{
    const char *function = "";
    return unwrap(value, &function) != NULL;
}

/* ---- storages ---------------------------------------------------------------------------- */

/* Not negative, or UINT64_MAX, which no size is. */
static uint64_t size_of(const tdmi_pickle_value *value)
{
    bool is_size = value != NULL && value->kind == TDMI_PICKLE_INTEGER && value->integer >= 0;
    return is_size ? (uint64_t)value->integer : UINT64_MAX;
}

/* ("storage", type, key, place, n values[, None or (key, first value, n values)]) */
tdm_status tdmi_torch_storage_of(const tdmi_weights *weights, const char *what,
                                 const tdmi_pickle_value *id, enum tdmi_dtype *dtype,
                                 struct tdmi_torch_storage *storage, tdm_error *err)
{
    const tdmi_pickle_value *tuple =
        id != NULL && id->kind == TDMI_PICKLE_PERSISTENT ? id->id : NULL;
    const tdmi_pickle_value *key = tdmi_pickle_item(tuple, 2), *view = tdmi_pickle_item(tuple, 5);
    uint64_t n_values = size_of(tdmi_pickle_item(tuple, 4)), first = 0;
    bool is_untyped =
        strcmp(tdmi_pickle_name_of(tdmi_pickle_item(tuple, 1)), "UntypedStorage") == 0;
    if (tdmi_pickle_is_text(tdmi_pickle_item(tuple, 0), "module"))
        return TDMI_WEIGHTS_BAD(err, weights,
                                "a whole model with its program was saved, which is not run: save "
                                "model.state_dict() instead");
    if (!tdmi_pickle_is_text(tdmi_pickle_item(tuple, 0), "storage") || key == NULL ||
        key->kind != TDMI_PICKLE_TEXT || !type_of(tdmi_pickle_item(tuple, 1), true, dtype))
        return TDMI_WEIGHTS_BAD(err, weights, "'%s' is not on a storage of a type known here",
                                what);
    *storage = (struct tdmi_torch_storage){.key = key->bytes,
                                           .key_bytes = key->count,
                                           .value_bytes = tdmi_dtype_bytes(*dtype),
                                           .is_untyped = is_untyped};
    uint64_t width = storage->value_bytes, n_viewed = n_values;
    if (view != NULL && view->kind != TDMI_PICKLE_NONE) {
        first = size_of(tdmi_pickle_item(view, 1));
        n_viewed = size_of(tdmi_pickle_item(view, 2));
    }
    if (n_values > INT64_MAX / width || first > n_values || n_viewed > n_values - first)
        return TDMI_WEIGHTS_BAD(
            err, weights,
            "'%s' is on a storage whose size is none, or which goes past the one it is part of",
            what);
    storage->n_bytes = n_values * width;
    storage->first = first * width;
    storage->view_bytes = n_viewed * width;
    return TDM_OK;
}

/* ---- tensors ----------------------------------------------------------------------------- */

struct layout {
    struct tdmi_weights_tensor tensor;
    uint64_t first; /* value in the storage */
    uint64_t strides[TDMI_WEIGHTS_RANK];
    uint64_t n_values, span; /* in the storage, from first to the last one's end */
};

static tdm_status read_shape(const tdmi_weights *weights, const tdmi_pickle_value *arguments,
                             struct layout *layout, tdm_error *err)
{
    const tdmi_pickle_value *sizes = tdmi_pickle_item(arguments, 2);
    const tdmi_pickle_value *strides = tdmi_pickle_item(arguments, 3);
    const char *name = layout->tensor.name;
    layout->first = size_of(tdmi_pickle_item(arguments, 1));
    if (sizes == NULL || strides == NULL || sizes->kind != TDMI_PICKLE_TUPLE ||
        strides->kind != TDMI_PICKLE_TUPLE || sizes->count != strides->count ||
        sizes->count > TDMI_WEIGHTS_RANK || layout->first == UINT64_MAX)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "tensor '%s' has no place and shape of at most %d axes", name,
                                TDMI_WEIGHTS_RANK);
    layout->tensor.rank = (int)sizes->count;
    layout->n_values = 1;
    uint64_t last = layout->first, step;
    bool fits = true;
    for (size_t i = 0; i < sizes->count; i++) {
        uint64_t size = size_of(sizes->items[i]), stride = size_of(strides->items[i]);
        if (size == UINT64_MAX || stride == UINT64_MAX)
            return TDMI_WEIGHTS_BAD(err, weights, "tensor '%s': axis %zu has no size or step", name,
                                    i);
        layout->tensor.shape[i] = (int64_t)size;
        layout->strides[i] = stride;
        fits = fits && !__builtin_mul_overflow(layout->n_values, size, &layout->n_values);
        fits = fits && (size == 0 || (!__builtin_mul_overflow(size - 1, stride, &step) &&
                                      !__builtin_add_overflow(last, step, &last)));
    }
    if (!fits || last == UINT64_MAX)
        return TDMI_WEIGHTS_BAD(err, weights, "tensor '%s': its shape has too many values", name);
    layout->span = last + 1;
    return TDM_OK;
}

/* Does every value stand right after the one before it? */
static bool is_without_gaps(const struct layout *layout)
{
    uint64_t step = 1;
    for (int i = layout->tensor.rank - 1; i >= 0; i--) {
        uint64_t size = (uint64_t)layout->tensor.shape[i];
        if (size != 1 && layout->strides[i] != step)
            return false;
        step *= size;
    }
    return true;
}

/* *data: of the first value; then of a copy in the order of the shape. */
static tdm_status copy_values(struct tdmi_torch_files *files, const struct layout *layout,
                              const uint8_t **data, tdm_error *err)
{
    uint64_t bytes, left = files->most_copied_bytes - files->copied_bytes;
    if (__builtin_mul_overflow(layout->n_values, tdmi_dtype_bytes(layout->tensor.dtype), &bytes) ||
        bytes > left)
        return TDMI_WEIGHTS_BAD(err, files->weights,
                                "tensor '%s' does not lie without gaps, and laid out it takes more "
                                "memory than all tensors of such a file are given (%zu bytes)",
                                layout->tensor.name, (size_t)files->most_copied_bytes);
    uint8_t *copy;
    TDMI_ARENA_NEW(tdmi_weights_arena(files->weights), copy, bytes, err);
    files->copied_bytes += bytes;
    tdmi_weights_gather(&layout->tensor, layout->strides, false, *data, copy);
    *data = copy;
    return TDM_OK;
}

tdm_status tdmi_torch_add(struct tdmi_torch_files *files, const tdmi_pickle_value *value,
                          const char *name, tdm_error *err)
{
    const char *function = "";
    const tdmi_pickle_value *arguments = unwrap(value, &function);
    struct layout layout = {.tensor.name = name};
    struct tdmi_torch_storage storage = {0};
    const uint8_t *bytes = NULL;
    TDMI_TRY(tdmi_torch_storage_of(files->weights, name, tdmi_pickle_item(arguments, 0),
                                   &layout.tensor.dtype, &storage, err));
    if (strcmp(function, "_rebuild_tensor_v3") == 0 &&
        !type_of(tdmi_pickle_item(arguments, 6), false, &layout.tensor.dtype))
        return TDMI_WEIGHTS_BAD(err, files->weights,
                                "tensor '%s' is of a type that is not known here", name);
    TDMI_TRY(read_shape(files->weights, arguments, &layout, err));
    const size_t width = tdmi_dtype_bytes(layout.tensor.dtype);
    if (layout.n_values > 0 && layout.span > storage.view_bytes / width)
        return TDMI_WEIGHTS_BAD(
            err, files->weights,
            "tensor '%s' ends at value %zu of a storage of %zu: the file is damaged", name,
            (size_t)layout.span, (size_t)(storage.view_bytes / width));
    if (layout.n_values == 0)
        return tdmi_weights_add(files->weights, &layout.tensor, 0, err);
    TDM_TRY(files->find(files->self, &storage, &bytes, err), err, "cannot read tensor '%s'", name);
    bytes += storage.first + layout.first * width;
    if (!is_without_gaps(&layout))
        TDMI_TRY(copy_values(files, &layout, &bytes, err));
    layout.tensor.data = bytes;
    return tdmi_weights_add(files->weights, &layout.tensor, layout.n_values * width, err);
}
