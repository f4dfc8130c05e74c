/*
 * The machine of pickles: a stack of values, places marked on it, and a memo. Opcodes are bytes;
 * those that need another protocol than 2 to 5, another file, or code are refused with their place.
 */
#include "weights/torch/pickle_machine.h"
#include "base/bytes.h"
#include "base/text/quote.h"

#include <stdarg.h>
#include <string.h>

tdm_status tdmi_pickle_bad(struct tdmi_pickle_machine *machine, const char *file, int line,
                           const char *format, ...)
{
    char text[TDM_ERROR_TEXT_BYTES / 2]; /* so that a path fits beside it */
    va_list arguments;
    va_start(arguments, format);
    tdmi_quote(text, sizeof text, format, arguments);
    va_end(arguments);
    return tdm_error_start(machine->err, TDM_E_INPUT, file, line, "%s: byte %zu of its pickle: %s",
                           machine->name, machine->offset + machine->opcode_at, text);
}

/* ---- values, stack, marks, memo ---------------------------------------------------------- */

tdm_status tdmi_pickle_new(struct tdmi_pickle_machine *machine, enum tdmi_pickle_kind kind,
                           tdmi_pickle_value **value)
{
    TDMI_ARENA_NEW(machine->arena, *value, 1, machine->err);
    (*value)->kind = kind;
    machine->n_values++;
    return TDM_OK;
}

tdm_status tdmi_pickle_push(struct tdmi_pickle_machine *machine, tdmi_pickle_value *value)
{
    TDMI_TRY(
        TDMI_MAKE_ROOM(machine->stack, machine->stack_capacity, machine->n_stack, machine->err));
    machine->stack[machine->n_stack++] = value;
    return TDM_OK;
}

/* Number of values above the last mark. */
static int64_t above_mark(const struct tdmi_pickle_machine *machine)
{
    int64_t floor = machine->n_marks == 0 ? 0 : machine->marks[machine->n_marks - 1];
    return machine->n_stack - floor;
}

tdm_status tdmi_pickle_pop(struct tdmi_pickle_machine *machine, tdmi_pickle_value **value)
{
    if (above_mark(machine) == 0)
        return TDMI_PICKLE_BAD(machine, "it takes a value where none is left: the file is damaged");
    *value = machine->stack[--machine->n_stack];
    return TDM_OK;
}

tdm_status tdmi_pickle_top(struct tdmi_pickle_machine *machine, tdmi_pickle_value **value)
{
    tdm_status status = tdmi_pickle_pop(machine, value);
    machine->n_stack += status == TDM_OK;
    return status;
}

static tdm_status push_mark(struct tdmi_pickle_machine *machine)
{
    TDMI_TRY(
        TDMI_MAKE_ROOM(machine->marks, machine->mark_capacity, machine->n_marks, machine->err));
    machine->marks[machine->n_marks++] = machine->n_stack;
    return TDM_OK;
}

tdm_status tdmi_pickle_pop_mark(struct tdmi_pickle_machine *machine, tdmi_pickle_value ***items,
                                size_t *n)
{
    if (machine->n_marks == 0)
        return TDMI_PICKLE_BAD(machine,
                               "it goes back to a mark that was not set: the file is damaged");
    int64_t floor = machine->marks[--machine->n_marks];
    *items = machine->stack == NULL ? NULL : machine->stack + floor;
    *n = (size_t)(machine->n_stack - floor);
    machine->n_stack = floor;
    return TDM_OK;
}

static tdm_status put(struct tdmi_pickle_machine *machine, size_t index)
{
    tdmi_pickle_value *value = NULL;
    TDMI_TRY(tdmi_pickle_top(machine, &value));
    if (index > machine->n_bytes) /* writers count up from 0 */
        return TDMI_PICKLE_BAD(machine, "it remembers a value under %zu, more than it can have",
                               index);
    for (; machine->n_memo <= index; machine->n_memo++) {
        TDMI_TRY(
            TDMI_MAKE_ROOM(machine->memo, machine->memo_capacity, machine->n_memo, machine->err));
        machine->memo[machine->n_memo] = NULL;
    }
    machine->memo[index] = value;
    return TDM_OK;
}

static tdm_status recall(struct tdmi_pickle_machine *machine, size_t index)
{
    if (index >= machine->n_memo || machine->memo[index] == NULL)
        return TDMI_PICKLE_BAD(machine, "it recalls value %zu, which was not remembered", index);
    return tdmi_pickle_push(machine, machine->memo[index]);
}

/* ---- bytes ------------------------------------------------------------------------------- */

tdm_status tdmi_pickle_take(struct tdmi_pickle_machine *machine, uint64_t n, const uint8_t **bytes)
{
    size_t left = machine->n_bytes - machine->at;
    if (n > left)
        return TDMI_PICKLE_BAD(machine,
                               "%zu bytes should follow and %zu do: it is cut short, or a pickle "
                               "of more than %zu bytes",
                               (size_t)n, left, TDMI_PICKLE_MOST_BYTES);
    *bytes = machine->bytes + machine->at;
    machine->at += (size_t)n;
    return TDM_OK;
}

tdm_status tdmi_pickle_take_number(struct tdmi_pickle_machine *machine, int n_bytes,
                                   uint64_t *number)
{
    const uint8_t *bytes = NULL;
    TDMI_TRY(tdmi_pickle_take(machine, (uint64_t)n_bytes, &bytes));
    *number = tdmi_read_little(bytes, (size_t)n_bytes);
    return TDM_OK;
}

/* ---- the loop ---------------------------------------------------------------------------- */

/* Bytes of the number that follows an opcode of the memo. */
static int index_bytes(uint8_t opcode)
{
    return opcode == 'q' || opcode == 'h' ? 1 : 4;
}

static tdm_status run_memo(struct tdmi_pickle_machine *machine, uint8_t opcode)
{
    uint64_t index = 0;
    if (opcode == 0x94)
        return put(machine, machine->n_memo);
    TDMI_TRY(tdmi_pickle_take_number(machine, index_bytes(opcode), &index));
    return opcode == 'q' || opcode == 'r' ? put(machine, (size_t)index)
                                          : recall(machine, (size_t)index);
}

/* Opcodes of the stack and the stream alone. */
static tdm_status run_bare(struct tdmi_pickle_machine *machine, uint8_t opcode)
{
    tdmi_pickle_value *value = NULL, **items = NULL;
    uint64_t number = 0;
    size_t n = 0;
    switch (opcode) {
    case 0x80: /* PROTO */
        TDMI_TRY(tdmi_pickle_take_number(machine, 1, &number));
        return number > 5
                   ? TDMI_PICKLE_BAD(machine, "its protocol is %d; 2 to 5 are read", (int)number)
                   : TDM_OK;
    case 0x95: /* FRAME: a hint for readers of streams */
        return tdmi_pickle_take_number(machine, 8, &number);
    case '(':
        return push_mark(machine);
    case '0': /* POP; where nothing stands above the mark, the mark */
        return above_mark(machine) == 0 && machine->n_marks > 0
                   ? tdmi_pickle_pop_mark(machine, &items, &n)
                   : tdmi_pickle_pop(machine, &value);
    case '1':
        return tdmi_pickle_pop_mark(machine, &items, &n);
    default: /* '2' DUP */
        TDMI_TRY(tdmi_pickle_top(machine, &value));
        return tdmi_pickle_push(machine, value);
    }
}

static tdm_status run_one(struct tdmi_pickle_machine *machine, uint8_t opcode)
{
    static const struct {
        const char *opcodes;
        tdm_status (*run)(struct tdmi_pickle_machine *machine, uint8_t opcode);
    } groups[] = {
        {"\x80\x95(012", run_bare},
        {"qrhj\x94", run_memo},
        {"NJKMGXUTCB\x88\x89\x8a\x8b\x8c\x8d\x8e\x96", tdmi_pickle_run_scalar},
        {"]aelt)}sud\x85\x86\x87\x8f\x90\x91", tdmi_pickle_run_container},
        {"cRbQ\x81\x93", tdmi_pickle_run_call},
    };
    for (size_t i = 0; opcode != 0 && i < sizeof groups / sizeof groups[0]; i++)
        if (strchr(groups[i].opcodes, opcode) != NULL)
            return groups[i].run(machine, opcode);
    char shown[8];
    tdmi_quote_text(shown, sizeof shown, opcode >= ' ' && opcode <= '~' ? "'%c'" : "%02x", opcode);
    return TDMI_PICKLE_BAD(machine,
                           "opcode %s is not one that tensors and plain containers need (protocols "
                           "2 to 5), and is not run",
                           shown);
}

static tdm_status run_all(struct tdmi_pickle_machine *machine)
{
    for (;;) {
        const uint8_t *opcode = NULL;
        machine->opcode_at = machine->at;
        TDMI_TRY(tdmi_pickle_take(machine, 1, &opcode));
        if (*opcode == '.')
            return TDM_OK;
        TDMI_TRY(run_one(machine, *opcode));
    }
}

static void release(struct tdmi_pickle_machine *machine)
{
    tdmi_free(machine->stack);
    tdmi_free(machine->marks);
    tdmi_free(machine->memo);
}

tdm_status tdmi_pickle_read(const uint8_t *bytes, size_t n_bytes, const char *name, size_t offset,
                            tdmi_arena *arena, struct tdmi_pickle *pickle, tdm_error *err)
{
    TDMI_AT_END(release)
    struct tdmi_pickle_machine machine = {
        .bytes = bytes,
        .n_bytes = n_bytes < TDMI_PICKLE_MOST_BYTES ? n_bytes : TDMI_PICKLE_MOST_BYTES,
        .name = name,
        .offset = offset,
        .arena = arena,
        .err = err};
    TDMI_TRY(run_all(&machine));
    TDMI_TRY(tdmi_pickle_pop(&machine, &pickle->value));
    pickle->used_bytes = machine.at;
    pickle->n_values = machine.n_values;
    pickle->persistent = machine.persistent;
    return TDM_OK;
}
