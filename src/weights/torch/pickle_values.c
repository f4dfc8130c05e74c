/*
 * Opcodes of plain values: None, booleans, numbers, text and bytes; lists, tuples, dicts and sets,
 * which are made empty and filled, or made of the values above a mark.
 */
#include "weights/torch/pickle_machine.h"
#include "base/bytes.h"
#include "base/text/text.h"

#include <string.h>

/* ---- scalars ----------------------------------------------------------------------------- */

/* Opcode, the kind of its value, and the bytes of its number or its length; 0: it has none. */
static const struct scalar {
    uint8_t opcode;
    enum tdmi_pickle_kind kind;
    int n_bytes;
} scalars[] = {
    {'N', TDMI_PICKLE_NONE, 0},    {0x88, TDMI_PICKLE_BOOL, 0},   {0x89, TDMI_PICKLE_BOOL, 0},
    {'J', TDMI_PICKLE_INTEGER, 4}, {'K', TDMI_PICKLE_INTEGER, 1}, {'M', TDMI_PICKLE_INTEGER, 2},
    {0x8a, TDMI_PICKLE_LONG, 1},   {0x8b, TDMI_PICKLE_LONG, 4},   {'G', TDMI_PICKLE_REAL, 8},
    {0x8c, TDMI_PICKLE_TEXT, 1},   {'X', TDMI_PICKLE_TEXT, 4},    {0x8d, TDMI_PICKLE_TEXT, 8},
    {'U', TDMI_PICKLE_TEXT, 1},    {'T', TDMI_PICKLE_TEXT, 4},    {'C', TDMI_PICKLE_BYTES, 1},
    {'B', TDMI_PICKLE_BYTES, 4},   {0x8e, TDMI_PICKLE_BYTES, 8},  {0x96, TDMI_PICKLE_BYTES, 8},
};

static const struct scalar *find(uint8_t opcode)
{
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++)
        if (scalars[i].opcode == opcode)
            return &scalars[i];
    return NULL;
}

/* Two's complement of any length, sign and all. */
static void shorten(tdmi_pickle_value *value)
{
    if (value->count > 8)
        return;
    uint64_t number = tdmi_read_little(value->bytes, value->count);
    bool is_negative = value->count > 0 && value->bytes[value->count - 1] & 0x80;
    if (is_negative && value->count < 8)
        number |= ~(uint64_t)0 << 8 * value->count;
    value->kind = TDMI_PICKLE_INTEGER;
    value->count = 0;
    value->integer = (int64_t)number;
}

tdm_status tdmi_pickle_run_scalar(struct tdmi_pickle_machine *machine, uint8_t opcode)
{
    const struct scalar *scalar = find(opcode);
    tdmi_pickle_value *value = NULL;
    const uint8_t *bytes = NULL;
    uint64_t number = 0;
    TDMI_TRY(tdmi_pickle_new(machine, scalar->kind, &value));
    TDMI_TRY(tdmi_pickle_take_number(machine, scalar->n_bytes, &number));
    switch (scalar->kind) {
    case TDMI_PICKLE_NONE:
        break;
    case TDMI_PICKLE_BOOL:
        value->integer = opcode == 0x88;
        break;
    case TDMI_PICKLE_INTEGER: /* only the widest has a sign */
        value->integer = opcode == 'J' ? (int32_t)(uint32_t)number : (int64_t)number;
        break;
    case TDMI_PICKLE_REAL: /* big-endian, unlike all else */
        number = __builtin_bswap64(number);
        memcpy(&value->real, &number, sizeof value->real);
        break;
    default:
        TDMI_TRY(tdmi_pickle_take(machine, number, &bytes));
        value->bytes = bytes;
        value->count = (size_t)number;
        if (scalar->kind == TDMI_PICKLE_LONG)
            shorten(value);
        break;
    }
    return tdmi_pickle_push(machine, value);
}

/* ---- containers -------------------------------------------------------------------------- */

/* Room for n more items; what was there is left in the arena. */
static tdm_status reserve(struct tdmi_pickle_machine *machine, tdmi_pickle_value *value,
                          size_t n_items, size_t n_more)
{
    size_t needed = value->capacity == 0 ? n_more : 2 * value->capacity;
    if (n_items + n_more <= value->capacity)
        return TDM_OK;
    if (needed < n_items + n_more)
        needed = n_items + n_more;
    tdmi_pickle_value **items;
    TDMI_ARENA_NEW(machine->arena, items, needed, machine->err);
    if (n_items > 0)
        memcpy(items, value->items, n_items * sizeof(tdmi_pickle_value *));
    value->items = items;
    value->capacity = needed;
    return TDM_OK;
}

static tdm_status add_items(struct tdmi_pickle_machine *machine, tdmi_pickle_value *list,
                            tdmi_pickle_value *const *items, size_t n)
{
    if (list->kind != TDMI_PICKLE_LIST)
        return TDMI_PICKLE_BAD(machine, "it adds items to something that is no list or set");
    if (n == 0)
        return TDM_OK;
    TDMI_TRY(reserve(machine, list, list->count, n));
    memcpy(list->items + list->count, items, n * sizeof(tdmi_pickle_value *));
    list->count += n;
    return TDM_OK;
}

static tdm_status add_pair(struct tdmi_pickle_machine *machine, tdmi_pickle_value *dict,
                           tdmi_pickle_value *key, tdmi_pickle_value *value)
{
    if (dict->kind != TDMI_PICKLE_DICT)
        return TDMI_PICKLE_BAD(machine, "it sets items of something that is no dict");
    TDMI_TRY(reserve(machine, dict, 2 * dict->count, 2));
    dict->items[2 * dict->count] = key;
    dict->items[2 * dict->count + 1] = value;
    dict->count++;
    return TDM_OK;
}

static tdm_status add_pairs(struct tdmi_pickle_machine *machine, tdmi_pickle_value *dict,
                            tdmi_pickle_value *const *items, size_t n)
{
    if (n % 2 != 0)
        return TDMI_PICKLE_BAD(machine, "it sets a key without a value");
    for (size_t i = 0; i < n; i += 2)
        TDMI_TRY(add_pair(machine, dict, items[i], items[i + 1]));
    return TDM_OK;
}

/* A new container of n items, which stand above what it replaces. */
static tdm_status push_new(struct tdmi_pickle_machine *machine, enum tdmi_pickle_kind kind,
                           tdmi_pickle_value *const *items, size_t n)
{
    tdmi_pickle_value *value = NULL;
    TDMI_TRY(tdmi_pickle_new(machine, kind, &value));
    if (kind == TDMI_PICKLE_DICT) {
        TDMI_TRY(add_pairs(machine, value, items, n));
    } else if (n > 0) {
        TDMI_TRY(reserve(machine, value, 0, n));
        memcpy(value->items, items, n * sizeof(tdmi_pickle_value *));
        value->count = n;
    }
    return tdmi_pickle_push(machine, value);
}

static tdm_status push_short_tuple(struct tdmi_pickle_machine *machine, size_t n)
{
    tdmi_pickle_value *items[3];
    for (size_t i = n; i > 0; i--)
        TDMI_TRY(tdmi_pickle_pop(machine, &items[i - 1]));
    return push_new(machine, TDMI_PICKLE_TUPLE, items, n);
}

/* One item or pair for the container below it. */
static tdm_status add_one(struct tdmi_pickle_machine *machine, bool is_pair)
{
    tdmi_pickle_value *key = NULL, *value = NULL, *container = NULL;
    TDMI_TRY(tdmi_pickle_pop(machine, &value));
    if (is_pair)
        TDMI_TRY(tdmi_pickle_pop(machine, &key));
    TDMI_TRY(tdmi_pickle_top(machine, &container));
    return is_pair ? add_pair(machine, container, key, value)
                   : add_items(machine, container, &value, 1);
}

tdm_status tdmi_pickle_run_container(struct tdmi_pickle_machine *machine, uint8_t opcode)
{
    tdmi_pickle_value **items = NULL, *container = NULL;
    size_t n = 0;
    switch (opcode) {
    case ']':
    case 0x8f: /* EMPTY_SET */
        return push_new(machine, TDMI_PICKLE_LIST, NULL, 0);
    case '}':
        return push_new(machine, TDMI_PICKLE_DICT, NULL, 0);
    case ')':
        return push_new(machine, TDMI_PICKLE_TUPLE, NULL, 0);
    case 0x85:
    case 0x86:
    case 0x87:
        return push_short_tuple(machine, (size_t)(opcode - 0x84));
    case 'a':
        return add_one(machine, false);
    case 's':
        return add_one(machine, true);
    default:
        break;
    }
    TDMI_TRY(tdmi_pickle_pop_mark(machine, &items, &n));
    switch (opcode) {
    case 't':
        return push_new(machine, TDMI_PICKLE_TUPLE, items, n);
    case 'l':
    case 0x91: /* FROZENSET */
        return push_new(machine, TDMI_PICKLE_LIST, items, n);
    case 'd':
        return push_new(machine, TDMI_PICKLE_DICT, items, n);
    default:
        break;
    }
    TDMI_TRY(tdmi_pickle_top(machine, &container));
    return opcode == 'u' ? add_pairs(machine, container, items, n)
                         : add_items(machine, container, items, n);
}

/*
 * ---- Opcodes that in Python import and call. Here a name is looked up in a list, a call is
 * written down, and the state of an object is kept beside it.
 */

/* ---- names ------------------------------------------------------------------------------- */

static const struct tdmi_pickle_name names[] = {
#define X(module, name, makes) {module, name, TDMI_PICKLE_MAKES_##makes, false, TDMI_DTYPE_U8},
#define TYPE(module, name, dtype) \
    {module, name, TDMI_PICKLE_MAKES_NOTHING, true, TDMI_DTYPE_##dtype},
#include "weights/torch/pickle_names.def"
#undef X
#undef TYPE
};

/* Python 2 calls builtins __builtin__. */
static const struct tdmi_pickle_name *find_name(const uint8_t *module, size_t module_bytes,
                                                const uint8_t *name, size_t name_bytes)
{
    if (tdmi_text_is(module, module_bytes, "__builtin__")) {
        module = (const uint8_t *)"builtins";
        module_bytes = strlen("builtins");
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tdmi_text_is(name, name_bytes, names[i].name) &&
            tdmi_text_is(module, module_bytes, names[i].module))
            return &names[i];
    return NULL;
}

static tdm_status push_name(struct tdmi_pickle_machine *machine, const uint8_t *module,
                            size_t module_bytes, const uint8_t *name, size_t name_bytes)
{
    tdmi_pickle_value *value = NULL;
    const struct tdmi_pickle_name *row = find_name(module, module_bytes, name, name_bytes);
    if (row == NULL)
        return TDMI_PICKLE_BAD(
            machine,
            "it names '%.*s.%.*s', which is not run. Tensors, numbers, text, lists and dicts are "
            "read: if a whole model was saved, save model.state_dict() instead",
            tdmi_precision(module_bytes), (const char *)module, tdmi_precision(name_bytes),
            (const char *)name);
    TDMI_TRY(tdmi_pickle_new(machine, TDMI_PICKLE_NAME, &value));
    value->call.name = row;
    return tdmi_pickle_push(machine, value);
}

static tdm_status take_line(struct tdmi_pickle_machine *machine, const uint8_t **line, size_t *n)
{
    const uint8_t *end = memchr(machine->bytes + machine->at, '\n', machine->n_bytes - machine->at);
    if (end == NULL)
        return TDMI_PICKLE_BAD(machine, "a name does not end: the file is cut short");
    *line = machine->bytes + machine->at;
    *n = (size_t)(end - *line);
    machine->at += *n + 1;
    return TDM_OK;
}

static tdm_status run_global(struct tdmi_pickle_machine *machine)
{
    const uint8_t *module = NULL, *name = NULL;
    size_t module_bytes = 0, name_bytes = 0;
    TDMI_TRY(take_line(machine, &module, &module_bytes));
    TDMI_TRY(take_line(machine, &name, &name_bytes));
    return push_name(machine, module, module_bytes, name, name_bytes);
}

static tdm_status run_stack_global(struct tdmi_pickle_machine *machine)
{
    tdmi_pickle_value *module = NULL, *name = NULL;
    TDMI_TRY(tdmi_pickle_pop(machine, &name));
    TDMI_TRY(tdmi_pickle_pop(machine, &module));
    if (module->kind != TDMI_PICKLE_TEXT || name->kind != TDMI_PICKLE_TEXT)
        return TDMI_PICKLE_BAD(machine, "it names something by values that are no text");
    return push_name(machine, module->bytes, module->count, name->bytes, name->count);
}

/* ---- calls ------------------------------------------------------------------------------- */

/* Python 2 gives pairs as a list of lists, a Counter a dict; a defaultdict's factory says nothing
 * here. */
static tdm_status make_dict(struct tdmi_pickle_machine *machine, tdmi_pickle_value *arguments)
{
    tdmi_pickle_value *dict = NULL;
    const tdmi_pickle_value *from = tdmi_pickle_item(arguments, 0);
    TDMI_TRY(tdmi_pickle_new(machine, TDMI_PICKLE_DICT, &dict));
    bool is_dict = from != NULL && from->kind == TDMI_PICKLE_DICT;
    bool is_list = from != NULL && from->kind == TDMI_PICKLE_LIST;
    /* One dict may be given to many calls: what they copy is charged like bytes of the pickle. */
    if (is_dict || is_list)
        machine->n_values += from->count;
    if (machine->n_values > 4 * machine->n_bytes + 64)
        return TDMI_PICKLE_BAD(machine, "it copies its dicts again and again: a bomb");
    for (size_t i = 0; is_dict && i < from->count; i++)
        TDMI_TRY(add_pair(machine, dict, from->items[2 * i], from->items[2 * i + 1]));
    for (size_t i = 0; is_list && i < from->count; i++) {
        const tdmi_pickle_value *pair = from->items[i];
        if (tdmi_pickle_item(pair, 0) == NULL || pair->count != 2)
            return TDMI_PICKLE_BAD(machine, "it makes a dict of items that are no pairs");
        TDMI_TRY(add_pair(machine, dict, pair->items[0], pair->items[1]));
    }
    return tdmi_pickle_push(machine, dict);
}

static tdm_status make_sequence(struct tdmi_pickle_machine *machine, tdmi_pickle_value *arguments)
{
    if (arguments->count == 0)
        return tdmi_pickle_push(machine, arguments); /* an empty one */
    tdmi_pickle_value *first = arguments->items[0];
    if (first->kind != TDMI_PICKLE_LIST && first->kind != TDMI_PICKLE_TUPLE)
        return TDMI_PICKLE_BAD(machine, "it makes a sequence of something that is none");
    return tdmi_pickle_push(machine, first);
}

/* Protocol 2 has no bytes, so they are written as text of the characters U+0000 to U+00FF. */
static tdm_status make_bytes(struct tdmi_pickle_machine *machine, tdmi_pickle_value *arguments)
{
    const tdmi_pickle_value *text = tdmi_pickle_item(arguments, 0);
    tdmi_pickle_value *value = NULL;
    TDMI_TRY(tdmi_pickle_new(machine, TDMI_PICKLE_BYTES, &value));
    if (text == NULL)
        return tdmi_pickle_push(machine, value);
    if (text->kind != TDMI_PICKLE_TEXT)
        return TDMI_PICKLE_BAD(machine, "it makes bytes of something that is no text");
    machine->n_values += text->count / 16;
    if (machine->n_values > 4 * machine->n_bytes + 64)
        return TDMI_PICKLE_BAD(machine, "it copies its text again and again: a bomb");
    uint8_t *bytes;
    TDMI_ARENA_NEW(machine->arena, bytes, text->count + 1, machine->err);
    for (size_t i = 0; i < text->count; i++) {
        uint8_t byte = text->bytes[i];
        bool has_next = i + 1 < text->count;
        if ((byte & 0xfe) == 0xc2 && has_next)
            byte = (uint8_t)((byte & 3) << 6 | (text->bytes[++i] & 0x3f));
        else if (byte >= 0x80)
            return TDMI_PICKLE_BAD(machine, "it makes bytes of text that has other characters");
        bytes[value->count++] = byte;
    }
    value->bytes = bytes;
    return tdmi_pickle_push(machine, value);
}

static tdm_status run_call(struct tdmi_pickle_machine *machine)
{
    tdmi_pickle_value *arguments = NULL, *name = NULL, *value = NULL;
    TDMI_TRY(tdmi_pickle_pop(machine, &arguments));
    TDMI_TRY(tdmi_pickle_pop(machine, &name));
    if (name->kind != TDMI_PICKLE_NAME || arguments->kind != TDMI_PICKLE_TUPLE)
        return TDMI_PICKLE_BAD(machine, "it calls something that is no name, or without a tuple");
    switch (name->call.name->makes) {
    case TDMI_PICKLE_MAKES_DICT:
        return make_dict(machine, arguments);
    case TDMI_PICKLE_MAKES_SEQUENCE:
        return make_sequence(machine, arguments);
    case TDMI_PICKLE_MAKES_BYTES:
        return make_bytes(machine, arguments);
    case TDMI_PICKLE_MAKES_NOTHING:
        return TDMI_PICKLE_BAD(machine, "it calls '%s.%s', which is not run",
                               name->call.name->module, name->call.name->name);
    case TDMI_PICKLE_MAKES_CALL:
        break;
    }
    TDMI_TRY(tdmi_pickle_new(machine, TDMI_PICKLE_CALL, &value));
    value->call.name = name->call.name;
    value->call.arguments = arguments;
    return tdmi_pickle_push(machine, value);
}

/* The state of a dict is attributes (state_dict's _metadata), which say nothing of its tensors. */
static tdm_status run_build(struct tdmi_pickle_machine *machine)
{
    tdmi_pickle_value *state = NULL, *target = NULL;
    TDMI_TRY(tdmi_pickle_pop(machine, &state));
    TDMI_TRY(tdmi_pickle_top(machine, &target));
    if (target->kind == TDMI_PICKLE_CALL && target->call.state == NULL)
        target->call.state = state;
    else if (target->kind != TDMI_PICKLE_DICT)
        return TDMI_PICKLE_BAD(machine, "it gives a state to something that has none");
    return TDM_OK;
}

static tdm_status run_persistent(struct tdmi_pickle_machine *machine)
{
    tdmi_pickle_value *id = NULL, *value = NULL;
    TDMI_TRY(tdmi_pickle_pop(machine, &id));
    TDMI_TRY(tdmi_pickle_new(machine, TDMI_PICKLE_PERSISTENT, &value));
    value->id = id;
    value->next = machine->persistent;
    machine->persistent = value;
    return tdmi_pickle_push(machine, value);
}

tdm_status tdmi_pickle_run_call(struct tdmi_pickle_machine *machine, uint8_t opcode)
{
    switch (opcode) {
    case 'c':
        return run_global(machine);
    case 0x93:
        return run_stack_global(machine);
    case 'R':
    case 0x81: /* NEWOBJ */
        return run_call(machine);
    case 'b':
        return run_build(machine);
    default:
        return run_persistent(machine);
    }
}

/* ---- queries ----------------------------------------------------------------------------- */

bool tdmi_pickle_is_text(const tdmi_pickle_value *value, const char *text)
{
    return value != NULL && value->kind == TDMI_PICKLE_TEXT &&
           tdmi_text_is(value->bytes, value->count, text);
}

const char *tdmi_pickle_name_of(const tdmi_pickle_value *value)
{
    bool has_name =
        value != NULL && (value->kind == TDMI_PICKLE_NAME || value->kind == TDMI_PICKLE_CALL);
    return has_name ? value->call.name->name : "";
}

const tdmi_pickle_value *tdmi_pickle_item(const tdmi_pickle_value *value, size_t i)
{
    if (value == NULL || (value->kind != TDMI_PICKLE_LIST && value->kind != TDMI_PICKLE_TUPLE))
        return NULL;
    return i < value->count ? value->items[i] : NULL;
}

tdmi_pickle_value *tdmi_pickle_member(const tdmi_pickle_value *dict, const char *key)
{
    if (dict == NULL || dict->kind != TDMI_PICKLE_DICT)
        return NULL;
    for (size_t i = dict->count; i > 0; i--)
        if (tdmi_pickle_is_text(dict->items[2 * i - 2], key))
            return dict->items[2 * i - 1];
    return NULL;
}
