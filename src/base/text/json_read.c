/*
 * The JSON reader: recursive descent over a text that need not be terminated.
 *
 * Values of containers that are still open wait on one growing stack. When a container closes, its
 * children are the top of that stack: they are copied side by side into the document's arena and
 * the container takes their place. So a child is found by its index at once, and every byte and
 * value is touched a fixed number of times. Members of an object are also sorted by key, which
 * finds duplicates and later serves the look-up.
 */
#include "base/text/json.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { depth_limit = 128 };

typedef struct reader {
    const char *text, *name;
    size_t length, at;
    int depth;
    tdm_json_document *document;
    tdm_json_value *stack;
    size_t n_stack;
    int64_t stack_capacity;
    tdmi_text digits; /* a terminated copy of the number being read */
} reader;

/* "expected X, found Y" at a byte. */
static tdm_status unexpected(const reader *in, const char *expected, tdm_error *err)
{
    char found[32] = "the end of the text";
    if (in->at < in->length) {
        unsigned char byte = (unsigned char)in->text[in->at];
        if (byte > 0x20 && byte < 0x7f)
            snprintf(found, sizeof found, "'%c'", byte);
        else
            snprintf(found, sizeof found, "byte 0x%02x", byte);
    }
    return TDM_FAIL(err, TDM_E_INPUT, "cannot read %s as JSON: at byte %zu: expected %s, found %s",
                    in->name, in->at, expected, found);
}

static tdm_status refused(const reader *in, size_t at, const char *what, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, "cannot read %s as JSON: at byte %zu: %s", in->name, at,
                    what);
}

static void skip_space(reader *in)
{
    while (in->at < in->length && strchr(" \t\n\r", in->text[in->at]) && in->text[in->at] != '\0')
        in->at++;
}

static bool is_next(const reader *in, char expected)
{
    return in->at < in->length && in->text[in->at] == expected;
}

static bool accept(reader *in, char expected)
{
    if (!is_next(in, expected))
        return false;
    in->at++;
    return true;
}

/* ---- strings ------------------------------------------------------------------------------ */

/* Four hex digits at in->at. */
static bool read_hex(reader *in, uint32_t *code)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    *code = 0;
    if (in->length - in->at < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        const char *at = memchr(digits, in->text[in->at + i], sizeof digits - 1);
        if (!at)
            return false;
        *code = *code << 4 | (uint32_t)(at - digits) % 16;
    }
    in->at += 4;
    return true;
}

/* After "\u": one code, or two that make a surrogate pair. */
static tdm_status read_code(reader *in, uint32_t *code, tdm_error *err)
{
    size_t start = in->at - 2;
    uint32_t second;
    if (!read_hex(in, code))
        return refused(in, start, "\\u must be followed by four hex digits", err);
    if (*code == 0)
        return refused(in, start, "\\u0000 is not accepted: strings here end at a zero", err);
    if (*code < 0xd800 || *code > 0xdfff)
        return TDM_OK;
    if (*code >= 0xdc00 || !accept(in, '\\') || !accept(in, 'u') || !read_hex(in, &second) ||
        second < 0xdc00 || second > 0xdfff)
        return refused(in, start, "half of a surrogate pair without the other half", err);
    *code = 0x10000 + ((*code - 0xd800) << 10) + (second - 0xdc00);
    return TDM_OK;
}

/* After a backslash; the character goes to *out, which moves on. */
static tdm_status read_escape(reader *in, char **out, tdm_error *err)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (accept(in, 'u')) {
        uint32_t code;
        TDMI_TRY(read_code(in, &code, err));
        *out += tdmi_utf8_write(code, *out);
        return TDM_OK;
    }
    char name = in->at < in->length ? in->text[in->at] : '\0';
    const char *known = name ? strchr(names, name) : NULL;
    if (!known)
        return unexpected(in, "one of \" \\ / b f n r t u after a backslash", err);
    in->at++;
    *(*out)++ = values[known - names];
    return TDM_OK;
}

/* After the opening quote, into the arena. */
static tdm_status read_string(reader *in, const char **string, tdm_error *err)
{
    /* No escape is shorter than what it stands for, so the raw length is room enough. */
    size_t raw = in->at;
    while (raw < in->length && in->text[raw] != '"')
        raw += in->text[raw] == '\\' ? 2 : 1;
    if (raw >= in->length) {
        in->at = in->length;
        return unexpected(in, "\" at the end of a string", err);
    }
    char *made = tdmi_arena_alloc(&in->document->arena, raw - in->at + 1, 1), *out = made;
    TDMI_CHECK_MEMORY(made, err);
    while (!accept(in, '"')) {
        if (accept(in, '\\')) {
            TDMI_TRY(read_escape(in, &out, err));
            continue;
        }
        if ((unsigned char)in->text[in->at] < 0x20)
            return unexpected(in, "an escape such as \\n instead of a control character", err);
        size_t length = tdmi_utf8_length(in->text + in->at, in->length - in->at);
        if (length == 0)
            return unexpected(in, "UTF-8", err);
        memcpy(out, in->text + in->at, length);
        out += length;
        in->at += length;
    }
    *out = '\0';
    *string = made;
    return TDM_OK;
}

/* ---- numbers ------------------------------------------------------------------------------ */

static bool skip_digits(reader *in)
{
    size_t start = in->at;
    while (in->at < in->length && in->text[in->at] >= '0' && in->text[in->at] <= '9')
        in->at++;
    return in->at > start;
}

static tdm_status read_number(reader *in, tdm_json_value *value, tdm_error *err)
{
    size_t start = in->at;
    bool has_point = false, has_exponent = false;
    accept(in, '-');
    if (!accept(in, '0') && !skip_digits(in))
        return unexpected(in, "a digit", err);
    if (accept(in, '.')) {
        has_point = true;
        if (!skip_digits(in))
            return unexpected(in, "a digit after the point", err);
    }
    if (accept(in, 'e') || accept(in, 'E')) {
        has_exponent = true;
        if (!accept(in, '+'))
            accept(in, '-');
        if (!skip_digits(in))
            return unexpected(in, "a digit in the exponent", err);
    }
    tdmi_text_clear(&in->digits);
    tdmi_text_add(&in->digits, in->text + start, in->at - start);
    TDMI_TRY(tdmi_text_status(&in->digits, err));

    value->kind = TDM_JSON_NUMBER;
    tdmi_number_read(tdmi_text_string(&in->digits), &value->number);
    if (!isfinite(value->number))
        return refused(in, start, "the number is too large for a double", err);
    if (!has_point && !has_exponent) {
        /* Read apart: a double holds only 53 bits of it. */
        errno = 0;
        value->integer = strtoll(tdmi_text_string(&in->digits), NULL, 10);
        value->is_integer = errno == 0;
    } else if (value->number == trunc(value->number) && fabs(value->number) < 0x1p63) {
        value->integer = (int64_t)value->number;
        value->is_integer = true;
    }
    return TDM_OK;
}

/* ---- containers --------------------------------------------------------------------------- */

static tdm_status read_value(reader *in, tdm_json_value *value, tdm_error *err);

static tdm_status push(reader *in, const tdm_json_value *value, tdm_error *err)
{
    TDMI_TRY(TDMI_MAKE_ROOM(in->stack, in->stack_capacity, in->n_stack, err));
    in->stack[in->n_stack++] = *value;
    return TDM_OK;
}

/* Everything on the stack from first on becomes the children of value. */
static tdm_status take_children(reader *in, size_t first, tdm_json_value *value, tdm_error *err)
{
    value->count = in->n_stack - first;
    if (value->count == 0)
        return TDM_OK;
    tdm_json_value *children =
        tdmi_arena_alloc(&in->document->arena, value->count, sizeof *children);
    TDMI_CHECK_MEMORY(children, err);
    memcpy(children, in->stack + first, value->count * sizeof *children);
    value->children = children;
    in->n_stack = first;
    return TDM_OK;
}

/* Equal keys in the order they were read, so that the later one can be named. */
static int by_key(const void *left, const void *right)
{
    const tdm_json_value *const *a = left, *const *b = right;
    int order = strcmp((*a)->key, (*b)->key);
    return order ? order : (*a > *b) - (*a < *b);
}

static tdm_status sort_members(reader *in, tdm_json_value *value, size_t start, tdm_error *err)
{
    if (value->count == 0)
        return TDM_OK;
    const tdm_json_value **sorted =
        tdmi_arena_alloc(&in->document->arena, value->count, sizeof(const tdm_json_value *));
    TDMI_CHECK_MEMORY(sorted, err);
    for (size_t i = 0; i < value->count; i++)
        sorted[i] = &value->children[i];
    qsort(sorted, value->count, sizeof(const tdm_json_value *), by_key);
    for (size_t i = 1; i < value->count; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "cannot read %s as JSON: in the object at byte %zu: the key \"%.100s\" "
                            "is there twice",
                            in->name, start, sorted[i]->key);
    value->sorted = sorted;
    return TDM_OK;
}

static tdm_status read_member(reader *in, tdm_error *err)
{
    tdm_json_value member = {0};
    const char *key = NULL;
    skip_space(in);
    if (!accept(in, '"'))
        return unexpected(in, "\" at the start of a key", err);
    TDMI_TRY(read_string(in, &key, err));
    skip_space(in);
    if (!accept(in, ':'))
        return unexpected(in, "':' after a key", err);
    TDMI_TRY(read_value(in, &member, err));
    member.key = key;
    return push(in, &member, err);
}

static tdm_status read_element(reader *in, tdm_error *err)
{
    tdm_json_value element = {0};
    TDMI_TRY(read_value(in, &element, err));
    return push(in, &element, err);
}

/* After the opening bracket. */
static tdm_status read_container(reader *in, bool is_object, tdm_json_value *value, tdm_error *err)
{
    const char closing = is_object ? '}' : ']';
    size_t first = in->n_stack, start = in->at - 1;
    value->kind = is_object ? TDM_JSON_OBJECT : TDM_JSON_ARRAY;
    if (in->depth == depth_limit)
        return refused(in, start, "more than 128 containers within each other", err);
    in->depth++;
    skip_space(in);
    if (!accept(in, closing)) {
        for (;;) {
            TDMI_TRY(is_object ? read_member(in, err) : read_element(in, err));
            skip_space(in);
            if (accept(in, closing))
                break;
            if (!accept(in, ','))
                return unexpected(in, is_object ? "',' or '}'" : "',' or ']'", err);
        }
    }
    in->depth--;
    TDMI_TRY(take_children(in, first, value, err));
    return is_object ? sort_members(in, value, start, err) : TDM_OK;
}

/* ---- values ------------------------------------------------------------------------------- */

static bool accept_word(reader *in, const char *word)
{
    size_t length = strlen(word);
    if (in->length - in->at < length || memcmp(in->text + in->at, word, length) != 0)
        return false;
    in->at += length;
    return true;
}

static tdm_status read_value(reader *in, tdm_json_value *value, tdm_error *err)
{
    skip_space(in);
    if (accept(in, '{'))
        return read_container(in, true, value, err);
    if (accept(in, '['))
        return read_container(in, false, value, err);
    if (accept(in, '"')) {
        value->kind = TDM_JSON_STRING;
        return read_string(in, &value->string, err);
    }
    value->kind = TDM_JSON_NULL;
    if (accept_word(in, "null"))
        return TDM_OK;
    value->is_true = accept_word(in, "true");
    if (value->is_true || accept_word(in, "false")) {
        value->kind = TDM_JSON_BOOL;
        return TDM_OK;
    }
    char next = in->at < in->length ? in->text[in->at] : '\0';
    if (next == '-' || (next >= '0' && next <= '9'))
        return read_number(in, value, err);
    return unexpected(in, "a value", err);
}

static void release(reader *in)
{
    tdmi_text_release(&in->digits);
    tdmi_free(in->stack);
}

tdm_status tdm_json_read(const char *text, size_t length_bytes, const char *name,
                         tdm_json_document **document, tdm_error *err)
{
    TDMI_AT_END(release) reader in = {.text = text, .length = length_bytes, .name = name};
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *made = NULL;
    *document = NULL;
    TDM_TRY(TDMI_NEW(made, 1, err), err, "cannot read %s", name);
    /* A block about as large as the text serves small documents without waste. */
    tdmi_arena_init(&made->arena, length_bytes < 16384 ? 2048 + 2 * length_bytes : 65536);
    in.document = made;
    TDMI_TRY(read_value(&in, &made->root, err));
    skip_space(&in);
    if (in.at < in.length)
        return unexpected(&in, "the end of the text", err);
    *document = tdmi_take(&made);
    return TDM_OK;
}

void tdm_json_document_free(tdm_json_document *document)
{
    if (!document)
        return;
    tdmi_arena_release(&document->arena);
    tdmi_free(document);
}
