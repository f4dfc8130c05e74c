/* Opcodes of lists, tuples, dicts and sets: made empty and filled, or made of what stands above a
 * mark. */
#include "weights/errors.h"
#include "weights/torch/pickle_machine.h"

#include <string.h>
#include "base/banned.h"

bool tdmi_pickle_is_container(uint8_t opcode)
{
    return memchr("]aelt)\x85\x86\x87}sud\x8f\x90\x91", opcode, 16) != NULL;
}

/* Room for n more items; what was there is left in the arena. */
static tdm_status reserve(struct tdmi_pickle_machine *machine, tdmi_pickle_value *value,
                          size_t n_items, size_t n_more)
{
    size_t wanted = value->capacity == 0 ? n_more : 2 * value->capacity;
    if (n_items + n_more <= value->capacity)
        return TDM_OK;
    if (wanted < n_items + n_more)
        wanted = n_items + n_more;
    tdmi_pickle_value **items = tdmi_arena_alloc(machine->arena, wanted, sizeof *items);
    TDMI_NEED_MEMORY(items, machine->err);
    if (n_items > 0)
        memcpy(items, value->items, n_items * sizeof(tdmi_pickle_value *));
    value->items = items;
    value->capacity = wanted;
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
    tdm_status status = tdmi_pickle_new(machine, kind, &value);
    if (status == TDM_OK && kind == TDMI_PICKLE_DICT)
        status = add_pairs(machine, value, items, n);
    else if (status == TDM_OK && n > 0)
        status = reserve(machine, value, 0, n);
    if (status != TDM_OK)
        return status;
    if (kind != TDMI_PICKLE_DICT && n > 0) {
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
