/*
 * NumPy's files: .npz, a zip of arrays, each called by its member's name less ".npy"; and a single
 * .npy, whose tensor is called "array". Arrays of text and dates are left out and named by the fact
 * "left_out".
 *
 * A .npy is "\x93NUMPY", a version, the length of a head, the head (a Python dict as text), then
 * the values. The head is read by a parser that knows this one dict.
 */
#include "base/bytes.h"
#include "weights/zip_members.h"

#include <string.h>

static const char mark[] = "\x93NUMPY";
enum { MARK_BYTES = sizeof mark - 1 };

struct npy {
    char type[16];    /* as the file has it: "<f4" */
    bool has_numbers; /* of a type of ours; then dtype, else text, dates, … */
    enum tdmi_dtype dtype;
    bool is_big_endian, is_fortran; /* the first axis runs fastest */
    int rank;
    int64_t shape[TDMI_WEIGHTS_RANK];
    size_t values_at;
};

static bool is_npy(const uint8_t *bytes, size_t n_bytes)
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
static bool take_shape(struct cursor *head, struct npy *npy)
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
static bool take_dict(struct cursor *head, struct npy *npy)
{
    bool has_type = false, has_order = false, has_shape = false;
    char key[16];
    if (!take(head, "{"))
        return false;
    while (!take(head, "}")) {
        bool is_read = false;
        if (!take_quoted(head, key, sizeof key) || !take(head, ":"))
            return false;
        if (strcmp(key, "descr") == 0) {
            is_read = has_type = take_quoted(head, npy->type, sizeof npy->type);
        } else if (strcmp(key, "fortran_order") == 0) {
            npy->is_fortran = take(head, "True");
            is_read = has_order = npy->is_fortran || take(head, "False");
        } else if (strcmp(key, "shape") == 0) {
            is_read = has_shape = take_shape(head, npy);
        }
        if (!is_read || (!take(head, ",") && (head->at == head->end || *head->at != '}')))
            return false;
    }
    return has_type && has_order && has_shape;
}

static void set_type(struct npy *npy)
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

/* what: the array or file, for messages. */
static tdm_status read_head(const tdmi_weights *weights, const char *what, const uint8_t *bytes,
                            size_t n_bytes, struct npy *npy, tdm_error *err)
{
    *npy = (struct npy){0};
    if (!is_npy(bytes, n_bytes) || n_bytes < MARK_BYTES + 4)
        return TDMI_WEIGHTS_BAD(err, weights, "'%s' does not begin as an array of NumPy's", what);
    int version = bytes[MARK_BYTES];
    size_t head_at = version == 1 ? MARK_BYTES + 4 : MARK_BYTES + 6;
    if (version < 1 || version > 3 || n_bytes < head_at)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "'%s' is of version %d of its form, or cut short; 1 to 3 are read",
                                what, version);
    const size_t head_bytes = tdmi_read_little(bytes + MARK_BYTES + 2, head_at - MARK_BYTES - 2);
    if (head_bytes > n_bytes - head_at)
        return TDMI_WEIGHTS_BAD(
            err, weights,
            "'%s' announces a head of %zu bytes and has %zu: it is cut short or damaged", what,
            head_bytes, n_bytes - head_at);
    struct cursor head = {(const char *)bytes + head_at,
                          (const char *)bytes + head_at + head_bytes};
    if (!take_dict(&head, npy))
        return TDMI_WEIGHTS_BAD(
            err, weights,
            "'%s': its head is not a type, an order and a shape of at most %d axes (byte %zu)",
            what, TDMI_WEIGHTS_RANK, (size_t)(head.at - (const char *)bytes));
    if (strchr(npy->type, 'O') != NULL)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "'%s' is an array of Python objects, a pickle, which is not run; "
                                "arrays of numbers are read",
                                what);
    npy->values_at = head_at + head_bytes;
    set_type(npy);
    return TDM_OK;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Add the array to the list: in place, or copied into our order of bytes and axes. */
static tdm_status add_values(tdmi_weights *weights, const char *name, const struct npy *npy,
                             const uint8_t *bytes, size_t n_bytes, tdm_error *err)
{
    struct tdmi_weights_tensor tensor = {
        .name = name, .dtype = npy->dtype, .rank = npy->rank, .data = bytes + npy->values_at};
    const size_t width = tdmi_dtype_bytes(npy->dtype), available = n_bytes - npy->values_at;
    bool is_transposed = npy->is_fortran && npy->rank > 1;
    memcpy(tensor.shape, npy->shape, sizeof tensor.shape);
    if (!is_transposed && (!npy->is_big_endian || width == 1))
        return tdmi_weights_add(weights, &tensor, available, err);
    uint64_t n = 1, steps[TDMI_WEIGHTS_RANK];
    for (int i = 0; i < npy->rank; i++) {
        const int axis = npy->is_fortran ? i : npy->rank - 1 - i;
        steps[axis] = n;
        if (__builtin_mul_overflow(n, (uint64_t)npy->shape[axis], &n))
            n = UINT64_MAX / width; /* add says that it is too much */
    }
    if (n > available / width || n == 0)
        return tdmi_weights_add(weights, &tensor, available, err);
    uint8_t *copy;
    TDMI_ARENA_NEW(tdmi_weights_arena(weights), copy, n * width, err);
    tdmi_weights_gather(&tensor, steps, npy->is_big_endian, tensor.data, copy);
    tensor.data = copy;
    return tdmi_weights_add(weights, &tensor, available, err);
}

/* ---- the file ---------------------------------------------------------------------------- */

static const char ending[] = ".npy";

static bool is_array(const char *name)
{
    return strlen(name) > strlen(ending) && tdmi_ends_with(name, ending);
}

static bool is_form(const struct tdmi_weights_input *input)
{
    return is_npy(input->bytes, input->n_bytes) || tdmi_zip_members_have(input, is_array);
}

/* name is cut where its ending begins. */
static tdm_status add_array(tdmi_weights *weights, char *name, const uint8_t *bytes, size_t n_bytes,
                            tdmi_text *left_out, tdm_error *err)
{
    enum { LONGEST_LIST = 4000 };
    struct npy npy;
    TDMI_TRY(read_head(weights, name, bytes, n_bytes, &npy, err));
    if (is_array(name))
        name[strlen(name) - strlen(ending)] = '\0';
    if (npy.has_numbers)
        return add_values(weights, name, &npy, bytes, n_bytes, err);
    if (left_out->length_bytes < LONGEST_LIST)
        tdmi_text_printf(left_out, "%s%s (%s)", left_out->length_bytes > 0 ? ", " : "", name,
                         npy.type);
    return TDM_OK;
}

static tdm_status add_member(struct tdmi_zip_members *members, int64_t index, tdmi_text *left_out,
                             tdm_error *err)
{
    const struct tdmi_archive_entry *entry = tdmi_archive_entry(members->archive, index);
    const uint8_t *bytes = NULL;
    char *name;
    if (entry->is_folder || !is_array(entry->name))
        return TDM_OK;
    TDMI_TRY(tdmi_zip_members_bytes(members, index, &bytes, err));
    TDMI_ARENA_COPY(tdmi_weights_arena(members->weights), name, entry->name, err);
    return add_array(members->weights, name, bytes, (size_t)entry->size_bytes, left_out, err);
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    struct tdmi_zip_members members;
    TDMI_AT_END(tdmi_text_release) tdmi_text left_out = {0};
    char single[] = "array";
    if (is_npy(input->bytes, input->n_bytes)) {
        TDMI_TRY(add_array(weights, single, input->bytes, input->n_bytes, &left_out, err));
    } else {
        TDMI_TRY(tdmi_zip_members_open(weights, input, &members, err));
        for (int64_t i = 0; i < tdmi_archive_entries(members.archive); i++)
            TDMI_TRY(add_member(&members, i, &left_out, err));
    }
    if (tdmi_weights_count(weights) == 0)
        return TDMI_WEIGHTS_BAD(err, weights, "there are no arrays of numbers in it%s%s",
                                left_out.length_bytes > 0 ? ", only " : "",
                                tdmi_text_string(&left_out));
    TDMI_TRY(tdmi_text_status(&left_out, err));
    return left_out.length_bytes == 0
               ? TDM_OK
               : tdmi_weights_note(weights, "left_out", left_out.bytes, left_out.length_bytes, err);
}

const struct tdmi_weights_form tdmi_weights_form_npz = {
    .name = "numpy",
    .what = "NumPy (.npz, .npy)",
    .is_form = is_form,
    .read = read,
};
