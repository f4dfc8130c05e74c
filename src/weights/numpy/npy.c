/* The head of a .npy, and values in another order of bytes or axes. */
#include "weights/numpy/npy.h"
#include "base/bytes.h"
#include "base/memory.h"

#include <string.h>
#include "base/banned.h"

static const char mark[] = "\x93NUMPY";
enum { MARK_BYTES = sizeof mark - 1 };

bool tdmi_npy_is(const uint8_t *bytes, size_t n_bytes)
{
    return n_bytes >= MARK_BYTES && memcmp(bytes, mark, MARK_BYTES) == 0;
}

/* ---- the head ---------------------------------------------------------------------------- */

struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *head)
{
    while (head->at < head->end && (*head->at == ' ' || *head->at == '\n' || *head->at == '\t'))
        head->at++;
}

/* The text, after blanks. */
static bool take(struct cursor *head, const char *text)
{
    size_t n = strlen(text);
    skip_blanks(head);
    if ((size_t)(head->end - head->at) < n || memcmp(head->at, text, n) != 0)
        return false;
    head->at += n;
    return true;
}

/* 'text' or "text" without escapes, of less than room_bytes bytes. */
static bool take_quoted(struct cursor *head, char *text, size_t room_bytes)
{
    char quote = take(head, "'") ? '\'' : take(head, "\"") ? '"' : '\0';
    const char *end =
        quote == '\0' ? NULL : memchr(head->at, quote, (size_t)(head->end - head->at));
    if (end == NULL || (size_t)(end - head->at) >= room_bytes ||
        memchr(head->at, '\\', (size_t)(end - head->at)) != NULL)
        return false;
    memcpy(text, head->at, (size_t)(end - head->at));
    text[end - head->at] = '\0';
    head->at = end + 1;
    return true;
}

static bool take_size(struct cursor *head, int64_t *size)
{
    const char *first = head->at;
    *size = 0;
    for (; head->at < head->end && *head->at >= '0' && *head->at <= '9'; head->at++)
        if (__builtin_mul_overflow(*size, 10, size) ||
            __builtin_add_overflow(*size, *head->at - '0', size))
            return false;
    bool is_size = head->at > first;
    (void)take(head, "L"); /* Python 2's long */
    return is_size;
}

/* (), (3,), (3, 4) */
static bool take_shape(struct cursor *head, struct tdmi_npy *npy)
{
    if (!take(head, "("))
        return false;
    for (npy->rank = 0; !take(head, ")"); npy->rank++) {
        if (npy->rank > 0 && !take(head, ","))
            return false;
        if (npy->rank > 0 && take(head, ")"))
            return true;
        skip_blanks(head);
        if (npy->rank == TDMI_WEIGHTS_RANK || !take_size(head, &npy->shape[npy->rank]))
            return false;
    }
    return true;
}

/* The three entries, in any order. */
static bool take_dict(struct cursor *head, struct tdmi_npy *npy)
{
    bool has_type = false, has_order = false, has_shape = false;
    char key[16];
    if (!take(head, "{"))
        return false;
    while (!take(head, "}")) {
        if (!take_quoted(head, key, sizeof key) || !take(head, ":"))
            return false;
        if (strcmp(key, "descr") == 0) {
            has_type = take_quoted(head, npy->type, sizeof npy->type);
            if (!has_type)
                return false;
        } else if (strcmp(key, "fortran_order") == 0) {
            npy->is_fortran = take(head, "True");
            has_order = npy->is_fortran || take(head, "False");
            if (!has_order)
                return false;
        } else if (strcmp(key, "shape") == 0) {
            has_shape = take_shape(head, npy);
            if (!has_shape)
                return false;
        } else {
            return false;
        }
        if (!take(head, ",") && (head->at == head->end || *head->at != '}'))
            return false;
    }
    return has_type && has_order && has_shape;
}

static void set_type(struct tdmi_npy *npy)
{
    static const struct {
        const char *type;
        enum tdmi_dtype dtype;
    } types[] = {{"f2", TDMI_DTYPE_F16}, {"f4", TDMI_DTYPE_F32}, {"f8", TDMI_DTYPE_F64},
                 {"i1", TDMI_DTYPE_I8},  {"i2", TDMI_DTYPE_I16}, {"i4", TDMI_DTYPE_I32},
                 {"i8", TDMI_DTYPE_I64}, {"u1", TDMI_DTYPE_U8},  {"u2", TDMI_DTYPE_U16},
                 {"u4", TDMI_DTYPE_U32}, {"u8", TDMI_DTYPE_U64}, {"b1", TDMI_DTYPE_BOOL}};
    npy->is_big_endian = npy->type[0] == '>';
    if (npy->type[0] == '\0' || strchr("<>=|", npy->type[0]) == NULL)
        return;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].type, npy->type + 1) == 0) {
            npy->dtype = types[i].dtype;
            npy->has_numbers = true;
        }
}

tdm_status tdmi_npy_read(const tdmi_weights *weights, const char *what, const uint8_t *bytes,
                         size_t n_bytes, struct tdmi_npy *npy, tdm_error *err)
{
    *npy = (struct tdmi_npy){0};
    if (!tdmi_npy_is(bytes, n_bytes) || n_bytes < MARK_BYTES + 4)
        return TDMI_WEIGHTS_BAD(err, weights, "'%.200s' does not begin as an array of NumPy's",
                                what);
    int version = bytes[MARK_BYTES];
    size_t head_at = version == 1 ? MARK_BYTES + 4 : MARK_BYTES + 6;
    if (version < 1 || version > 3 || n_bytes < head_at)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "'%.200s' is of version %d of its form, or cut short; 1 to 3 are "
                                "read",
                                what, version);
    const size_t head_bytes = tdmi_read_little(bytes + MARK_BYTES + 2, head_at - MARK_BYTES - 2);
    if (head_bytes > n_bytes - head_at)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "'%.200s' announces a head of %zu bytes and has %zu: it is cut "
                                "short or damaged",
                                what, head_bytes, n_bytes - head_at);
    struct cursor head = {(const char *)bytes + head_at,
                          (const char *)bytes + head_at + head_bytes};
    if (!take_dict(&head, npy))
        return TDMI_WEIGHTS_BAD(err, weights,
                                "'%.200s': its head is not a type, an order and a shape of at most "
                                "%d axes (byte %zu)",
                                what, TDMI_WEIGHTS_RANK, (size_t)(head.at - (const char *)bytes));
    if (strchr(npy->type, 'O') != NULL)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "'%.200s' is an array of Python objects, a pickle, which is not "
                                "run; arrays of numbers are read",
                                what);
    npy->values_at = head_at + head_bytes;
    set_type(npy);
    return TDM_OK;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Values in our order, from the file's: of bytes in a value and of axes. */
static void reorder(const struct tdmi_npy *npy, size_t width, int64_t n, const uint8_t *from,
                    uint8_t *to)
{
    int64_t at[TDMI_WEIGHTS_RANK] = {0}, steps[TDMI_WEIGHTS_RANK], place = 0, step = 1;
    for (int i = 0; i < npy->rank; i++) {
        int axis = npy->is_fortran ? i : npy->rank - 1 - i;
        steps[axis] = step;
        step *= npy->shape[axis];
    }
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *value = from + (size_t)place * width;
        for (size_t k = 0; k < width; k++)
            to[(size_t)i * width + k] = value[npy->is_big_endian ? width - 1 - k : k];
        for (int axis = npy->rank - 1; axis >= 0; axis--) {
            place += steps[axis];
            if (++at[axis] < npy->shape[axis])
                break;
            place -= at[axis] * steps[axis];
            at[axis] = 0;
        }
    }
}

tdm_status tdmi_npy_add(tdmi_weights *weights, const char *name, const struct tdmi_npy *npy,
                        const uint8_t *bytes, size_t n_bytes, tdm_error *err)
{
    struct tdmi_weights_tensor tensor = {
        .name = name, .dtype = npy->dtype, .rank = npy->rank, .data = bytes + npy->values_at};
    const size_t width = tdmi_dtype_bytes(npy->dtype), available = n_bytes - npy->values_at;
    bool is_transposed = npy->is_fortran && npy->rank > 1;
    memcpy(tensor.shape, npy->shape, sizeof tensor.shape);
    if (!is_transposed && (!npy->is_big_endian || width == 1))
        return tdmi_weights_add(weights, &tensor, available, err);
    uint64_t n = 1;
    for (int i = 0; i < npy->rank; i++)
        if (__builtin_mul_overflow(n, (uint64_t)npy->shape[i], &n))
            n = UINT64_MAX / width; /* add says that it is too much */
    if (n > available / width || n == 0)
        return tdmi_weights_add(weights, &tensor, available, err);
    uint8_t *copy = tdmi_alloc((size_t)n, width);
    if (copy == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the %llu values of '%.200s'",
                        (unsigned long long)n, name);
    reorder(npy, width, (int64_t)n, bytes + npy->values_at, copy);
    tensor.data = copy;
    tdm_status status = tdmi_weights_keep(weights, copy, tdmi_free, err);
    return status == TDM_OK ? tdmi_weights_add(weights, &tensor, available, err) : status;
}
