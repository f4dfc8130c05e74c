/* Facts beside the tensors of a checkpoint, as text: numbers as they read back, small lists and
 * dicts of them (names of classes, options) as JSON. */
#include "weights/torch/torch_state.h"
#include "base/bytes.h"
#include "base/text/json.h"
#include "tensor/half.h"

#include <string.h>

enum { MOST_VALUES = 20000, DEEPEST = 16, LONGEST_KEY = 1000, VALUE_BYTES = 16 };
/* A pickle can recall one text or list a million times: limits of what is kept, and of what is
 * tried. */
enum { MOST_FACTS = 1000, MOST_FACT_BYTES = 1 << 20 };
enum { MOST_VISITED = 4000000, MOST_WRITTEN_BYTES = 4 << 20 };

const tdmi_pickle_value *tdmi_torch_plain(const tdmi_pickle_value *value)
{
    bool is_options = value->kind == TDMI_PICKLE_CALL && value->call.state != NULL &&
                      value->call.state->kind == TDMI_PICKLE_DICT &&
                      strcmp(tdmi_pickle_name_of(value), "Namespace") == 0;
    return is_options ? value->call.state : value;
}

bool tdmi_torch_key(const tdmi_pickle_value *key, tdmi_text *text)
{
    if (key->kind == TDMI_PICKLE_INTEGER)
        tdmi_text_printf(text, "%lld", (long long)key->integer);
    else if (key->kind == TDMI_PICKLE_TEXT && key->count > 0 && key->count <= LONGEST_KEY &&
             memchr(key->bytes, 0, key->count) == NULL)
        tdmi_text_add(text, key->bytes, key->count);
    else
        return false;
    return true;
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* numpy.core.multiarray.scalar(numpy.dtype("f8"), b"…"): the type says kind and bytes, its state
 * the byte order. */
static bool numpy_number(const tdmi_pickle_value *value, double *number)
{
    const tdmi_pickle_value *type, *said, *order, *bytes;
    uint8_t raw[8] = {0};
    uint64_t bits;
    if (value->kind != TDMI_PICKLE_CALL || strcmp(tdmi_pickle_name_of(value), "scalar") != 0)
        return false;
    type = tdmi_pickle_item(value->call.arguments, 0);
    bytes = tdmi_pickle_item(value->call.arguments, 1);
    if (type == NULL || type->kind != TDMI_PICKLE_CALL || bytes == NULL ||
        bytes->kind != TDMI_PICKLE_BYTES)
        return false;
    said = tdmi_pickle_item(type->call.arguments, 0);
    order = tdmi_pickle_item(type->call.state, 1);
    size_t n = bytes->count;
    if (said == NULL || said->kind != TDMI_PICKLE_TEXT || said->count != 2 || n > 8 ||
        said->bytes[1] != '0' + n)
        return false;
    for (size_t i = 0; i < n; i++)
        raw[i] = bytes->bytes[tdmi_pickle_is_text(order, ">") ? n - 1 - i : i];
    float single;
    bits = tdmi_read_little(raw, sizeof raw);
    switch (said->bytes[0]) {
    case 'f':
        memcpy(&single, raw, sizeof single);
        if (n == 8)
            memcpy(number, raw, sizeof *number);
        else
            *number = n == 4 ? (double)single : (double)tdmi_float_of_f16((uint16_t)bits);
        return n == 8 || n == 4 || n == 2;
    case 'i':
        if (n > 0 && n < 8 && raw[n - 1] & 0x80)
            bits |= ~(uint64_t)0 << 8 * n;
        *number = (double)(int64_t)bits;
        return true;
    case 'u':
        *number = (double)bits;
        return true;
    default:
        return false;
    }
}

/* False: no number and no text. */
static bool add_scalar(const tdmi_pickle_value *value, tdmi_text *text)
{
    char digits[32];
    double number = 0;
    switch (value->kind) {
    case TDMI_PICKLE_BOOL:
        tdmi_text_printf(text, "%s", value->integer ? "true" : "false");
        return true;
    case TDMI_PICKLE_INTEGER:
        tdmi_text_printf(text, "%lld", (long long)value->integer);
        return true;
    case TDMI_PICKLE_TEXT:
        if (value->count > 0)
            tdmi_text_add(text, value->bytes, value->count);
        return true;
    case TDMI_PICKLE_REAL:
        number = value->real;
        break;
    default:
        if (!numpy_number(value, &number))
            return false;
        break;
    }
    tdmi_text_add(text, digits, tdmi_number_write(number, digits));
    return true;
}

/* ---- JSON -------------------------------------------------------------------------------- */

/* How many values; more than the limit for what is not to be written. Those that were looked at are
 * added to *visited. */
static int count_plain(const tdmi_pickle_value *value, int left, int depth, size_t *visited)
{
    double number;
    int n = 1;
    value = tdmi_torch_plain(value);
    ++*visited;
    if (left <= 0 || depth > DEEPEST)
        return MOST_VALUES;
    switch (value->kind) {
    case TDMI_PICKLE_LIST:
    case TDMI_PICKLE_TUPLE:
        for (size_t i = 0; i < value->count && n < left; i++)
            n += count_plain(value->items[i], left - n, depth + 1, visited);
        return n;
    case TDMI_PICKLE_DICT:
        for (size_t i = 0; i < value->count && n < left; i++) {
            const tdmi_pickle_value *key = value->items[2 * i];
            if (key->kind != TDMI_PICKLE_TEXT && key->kind != TDMI_PICKLE_INTEGER)
                return MOST_VALUES;
            n += (int)((key->count < LONGEST_KEY ? key->count : LONGEST_KEY) / VALUE_BYTES);
            n += count_plain(value->items[2 * i + 1], left - n, depth + 1, visited);
        }
        return n;
    case TDMI_PICKLE_CALL:
        return numpy_number(value, &number) ? 1 : MOST_VALUES;
    case TDMI_PICKLE_NONE:
    case TDMI_PICKLE_BOOL:
    case TDMI_PICKLE_INTEGER:
    case TDMI_PICKLE_REAL:
        return 1;
    case TDMI_PICKLE_TEXT:
        return value->count < MOST_VALUES ? 1 + (int)value->count / VALUE_BYTES : MOST_VALUES;
    default:
        return MOST_VALUES;
    }
}

/* text is room for keys and strings, which in a pickle no zero ends. */
static void write_json(tdm_json_writer *writer, const char *key, const tdmi_pickle_value *value,
                       tdmi_text *text)
{
    double number = 0;
    value = tdmi_torch_plain(value);
    switch (value->kind) {
    case TDMI_PICKLE_LIST:
    case TDMI_PICKLE_TUPLE:
        tdm_json_array_begin(writer, key);
        for (size_t i = 0; i < value->count; i++)
            write_json(writer, NULL, value->items[i], text);
        tdm_json_array_end(writer);
        break;
    case TDMI_PICKLE_DICT:
        tdm_json_object_begin(writer, key);
        for (size_t i = 0; i < value->count; i++) {
            TDMI_AT_END(tdmi_text_release) tdmi_text name = {0};
            if (tdmi_torch_key(value->items[2 * i], &name))
                write_json(writer, tdmi_text_string(&name), value->items[2 * i + 1], text);
        }
        tdm_json_object_end(writer);
        break;
    case TDMI_PICKLE_BOOL:
        tdm_json_bool(writer, key, value->integer != 0);
        break;
    case TDMI_PICKLE_INTEGER:
        tdm_json_integer(writer, key, value->integer);
        break;
    case TDMI_PICKLE_REAL:
        tdm_json_number(writer, key, value->real);
        break;
    case TDMI_PICKLE_TEXT:
        tdmi_text_clear(text);
        (void)add_scalar(value, text);
        tdm_json_string(writer, key, tdmi_text_string(text));
        break;
    default:
        if (numpy_number(value, &number))
            tdm_json_number(writer, key, number);
        else
            tdm_json_null(writer, key);
        break;
    }
}

static void add_json(struct tdmi_torch_files *files, const tdmi_pickle_value *value,
                     tdmi_text *text)
{
    const char *json = NULL;
    size_t length = 0;
    TDMI_AT_END(tdmi_text_release) tdmi_text room = {0};
    if (value->count == 0 ||
        count_plain(value, MOST_VALUES, 0, &files->visited_values) >= MOST_VALUES)
        return;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = tdm_json_writer_new(0);
    write_json(writer, NULL, value, &room);
    if (tdm_json_finish(writer, &json, &length, NULL) == TDM_OK)
        tdmi_text_add(text, json, length);
    else
        text->is_broken = true;
}

tdm_status tdmi_torch_note(struct tdmi_torch_files *files, const char *key,
                           const tdmi_pickle_value *value, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    const tdmi_pickle_value *plain = tdmi_torch_plain(value);
    bool is_container = plain->kind == TDMI_PICKLE_LIST || plain->kind == TDMI_PICKLE_TUPLE ||
                        plain->kind == TDMI_PICKLE_DICT;
    if (files->n_facts >= MOST_FACTS || plain->count > MOST_FACT_BYTES ||
        files->visited_values > MOST_VISITED || files->written_bytes > MOST_WRITTEN_BYTES)
        return TDM_OK;
    if (is_container)
        add_json(files, plain, &text);
    else
        (void)add_scalar(plain, &text);
    files->written_bytes += text.length_bytes;
    TDMI_TRY(tdmi_text_status(&text, err));
    if (text.length_bytes == 0 || files->fact_bytes + text.length_bytes > MOST_FACT_BYTES)
        return TDM_OK;
    files->n_facts++;
    files->fact_bytes += text.length_bytes;
    return tdmi_weights_note(files->weights, key, text.bytes, text.length_bytes, err);
}
