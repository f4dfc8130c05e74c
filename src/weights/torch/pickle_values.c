/*
 * Opcodes of plain values: None, booleans, numbers, text and bytes; lists, tuples, dicts and sets,
 * which are made empty and filled, or made of the values above a mark.
 */
#include "weights/torch/pickle_machine.h"
#include "base/bytes.h"

#include <string.h>
#include "base/banned.h"

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

tdm_status tdmi_pickle_add_pair(struct tdmi_pickle_machine *machine, tdmi_pickle_value *dict,
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
        TDMI_TRY(tdmi_pickle_add_pair(machine, dict, items[i], items[i + 1]));
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
    return is_pair ? tdmi_pickle_add_pair(machine, container, key, value)
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
