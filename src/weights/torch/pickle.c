/*
 * The machine of pickles: a stack of values, places marked on it, and a memo. Opcodes are bytes;
 * those that need another protocol than 2 to 5, another file, or code are refused with their place.
 */
#include "weights/torch/pickle.h"
#include "base/bytes.h"
#include "weights/errors.h"
#include "weights/torch/pickle_machine.h"
#include "base/memory.h"
#include "base/text/quote.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/banned.h"

tdm_status tdmi_pickle_bad(struct tdmi_pickle_machine *machine, const char *file, int line,
                           const char *format, ...)
{
    char text[TDM_ERROR_TEXT_BYTES];
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

/* Room for a block's item number n. */
static bool grow(void **block, size_t *capacity, size_t n, size_t item_bytes)
{
    if (n < *capacity)
        return true;
    size_t wanted = *capacity == 0 ? 64 : 2 * *capacity;
    while (wanted <= n)
        wanted *= 2;
    void *more = tdmi_realloc(*block, wanted, item_bytes);
    if (more == NULL)
        return false;
    memset((char *)more + *capacity * item_bytes, 0, (wanted - *capacity) * item_bytes);
    *block = more;
    *capacity = wanted;
    return true;
}

tdm_status tdmi_pickle_push(struct tdmi_pickle_machine *machine, tdmi_pickle_value *value)
{
    void *block = machine->stack;
    TDMI_NEED_MEMORY(
        grow(&block, &machine->stack_capacity, machine->n_stack, sizeof *machine->stack),
        machine->err);
    machine->stack = block;
    machine->stack[machine->n_stack++] = value;
    return TDM_OK;
}

/* What stands above the last mark. */
static size_t above_mark(const struct tdmi_pickle_machine *machine)
{
    size_t floor = machine->n_marks == 0 ? 0 : machine->marks[machine->n_marks - 1];
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
    void *block = machine->marks;
    TDMI_NEED_MEMORY(
        grow(&block, &machine->mark_capacity, machine->n_marks, sizeof *machine->marks),
        machine->err);
    machine->marks = block;
    machine->marks[machine->n_marks++] = machine->n_stack;
    return TDM_OK;
}

tdm_status tdmi_pickle_pop_mark(struct tdmi_pickle_machine *machine, tdmi_pickle_value ***items,
                                size_t *n)
{
    if (machine->n_marks == 0)
        return TDMI_PICKLE_BAD(machine, "it goes back to a mark that was not set: the file is "
                                        "damaged");
    size_t floor = machine->marks[--machine->n_marks];
    *items = machine->stack == NULL ? NULL : machine->stack + floor;
    *n = machine->n_stack - floor;
    machine->n_stack = floor;
    return TDM_OK;
}

static tdm_status put(struct tdmi_pickle_machine *machine, size_t index)
{
    tdmi_pickle_value *value = NULL;
    void *block = machine->memo;
    TDMI_TRY(tdmi_pickle_top(machine, &value));
    if (index > machine->n_bytes) /* writers count up from 0 */
        return TDMI_PICKLE_BAD(machine, "it remembers a value under %zu, more than it can have",
                               index);
    TDMI_NEED_MEMORY(grow(&block, &machine->memo_capacity, index, sizeof *machine->memo),
                     machine->err);
    machine->memo = block;
    machine->memo[index] = value;
    if (index >= machine->n_memo)
        machine->n_memo = index + 1;
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
                               "%llu bytes should follow and %zu do: it is cut short, or a pickle "
                               "of more than %zu bytes",
                               (unsigned long long)n, left, TDMI_PICKLE_MOST_BYTES);
    *bytes = machine->bytes + machine->at;
    machine->at += (size_t)n;
    return TDM_OK;
}

tdm_status tdmi_pickle_take_number(struct tdmi_pickle_machine *machine, int n_bytes,
                                   uint64_t *number)
{
    const uint8_t *bytes = NULL;
    tdm_status status = tdmi_pickle_take(machine, (uint64_t)n_bytes, &bytes);
    *number = status == TDM_OK ? tdmi_read_little(bytes, (size_t)n_bytes) : 0;
    return status;
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

/* What is about the stack and the stream alone. */
static tdm_status run_bare(struct tdmi_pickle_machine *machine, uint8_t opcode)
{
    tdmi_pickle_value *value = NULL, **items = NULL;
    uint64_t number = 0;
    size_t n = 0;
    tdm_status status = TDM_OK;
    switch (opcode) {
    case 0x80: /* PROTO */
        status = tdmi_pickle_take_number(machine, 1, &number);
        if (status == TDM_OK && number > 5)
            status = TDMI_PICKLE_BAD(machine, "its protocol is %d; 2 to 5 are read", (int)number);
        return status;
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
        status = tdmi_pickle_top(machine, &value);
        return status == TDM_OK ? tdmi_pickle_push(machine, value) : status;
    }
}

static tdm_status run_one(struct tdmi_pickle_machine *machine, uint8_t opcode)
{
    if (memchr("\x80\x95(012", opcode, 6) != NULL)
        return run_bare(machine, opcode);
    if (memchr("qrhj\x94", opcode, 5) != NULL)
        return run_memo(machine, opcode);
    if (tdmi_pickle_is_scalar(opcode))
        return tdmi_pickle_run_scalar(machine, opcode);
    if (tdmi_pickle_is_container(opcode))
        return tdmi_pickle_run_container(machine, opcode);
    if (tdmi_pickle_is_call(opcode))
        return tdmi_pickle_run_call(machine, opcode);
    bool is_shown = opcode >= ' ' && opcode <= '~';
    return TDMI_PICKLE_BAD(machine,
                           is_shown ? "opcode '%c' is not one that tensors and plain containers "
                                      "need (protocols 2 to 5), and is not run"
                                    : "opcode %02x is not one that tensors and plain containers "
                                      "need (protocols 2 to 5), and is not run",
                           opcode);
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

tdm_status tdmi_pickle_read(const uint8_t *bytes, size_t n_bytes, const char *name, size_t offset,
                            tdmi_arena *arena, struct tdmi_pickle *pickle, tdm_error *err)
{
    struct tdmi_pickle_machine machine = {
        .bytes = bytes,
        .n_bytes = n_bytes < TDMI_PICKLE_MOST_BYTES ? n_bytes : TDMI_PICKLE_MOST_BYTES,
        .name = name,
        .offset = offset,
        .arena = arena,
        .err = err};
    tdm_status status = run_all(&machine);
    if (status == TDM_OK)
        status = tdmi_pickle_pop(&machine, &pickle->value);
    pickle->used_bytes = machine.at;
    pickle->n_values = machine.n_values;
    pickle->persistent = machine.persistent;
    tdmi_free(machine.stack);
    tdmi_free(machine.marks);
    tdmi_free(machine.memo);
    return status;
}
