/* Internals of the pickle reader: the machine, and the groups of opcodes. */
#pragma once

#include "weights/torch/pickle.h"

struct tdmi_pickle_machine {
    const uint8_t *bytes;
    size_t n_bytes, at, opcode_at;
    const char *name; /* for sentences, as offset is */
    size_t offset;
    tdmi_arena *arena;
    tdmi_pickle_value **stack;
    int64_t n_stack, stack_capacity;
    int64_t *marks; /* heights of the stack */
    int64_t n_marks, mark_capacity;
    tdmi_pickle_value **memo;
    size_t n_memo;
    int64_t memo_capacity;
    size_t n_values;
    tdmi_pickle_value *persistent;
    tdm_error *err;
};

/* "NAME: byte N of its pickle: what is wrong" as TDM_E_INPUT. */
#define TDMI_PICKLE_BAD(machine, ...) tdmi_pickle_bad((machine), __FILE__, __LINE__, __VA_ARGS__)
tdm_status tdmi_pickle_bad(struct tdmi_pickle_machine *machine, const char *file, int line,
                           const char *format, ...) TDM_PRINTF(4, 5);

tdm_status tdmi_pickle_new(struct tdmi_pickle_machine *machine, enum tdmi_pickle_kind kind,
                           tdmi_pickle_value **value) TDM_MUST_USE;
tdm_status tdmi_pickle_push(struct tdmi_pickle_machine *machine,
                            tdmi_pickle_value *value) TDM_MUST_USE;
/* Nothing below the last mark is reached. */
tdm_status tdmi_pickle_pop(struct tdmi_pickle_machine *machine,
                           tdmi_pickle_value **value) TDM_MUST_USE;
tdm_status tdmi_pickle_top(struct tdmi_pickle_machine *machine,
                           tdmi_pickle_value **value) TDM_MUST_USE;
/* Take the values above the last mark, valid until the next push, and the mark. */
tdm_status tdmi_pickle_pop_mark(struct tdmi_pickle_machine *machine, tdmi_pickle_value ***items,
                                size_t *n) TDM_MUST_USE;
/* The next bytes, or a little-endian number of up to eight. */
tdm_status tdmi_pickle_take(struct tdmi_pickle_machine *machine, uint64_t n,
                            const uint8_t **bytes) TDM_MUST_USE;
tdm_status tdmi_pickle_take_number(struct tdmi_pickle_machine *machine, int n_bytes,
                                   uint64_t *number) TDM_MUST_USE;

/* pickle_values.c: None, booleans, numbers, text, bytes; lists, tuples, dicts, sets. */
tdm_status tdmi_pickle_run_scalar(struct tdmi_pickle_machine *machine, uint8_t opcode) TDM_MUST_USE;
tdm_status tdmi_pickle_run_container(struct tdmi_pickle_machine *machine,
                                     uint8_t opcode) TDM_MUST_USE;
/* Names, calls, state, persistent ids. */
tdm_status tdmi_pickle_run_call(struct tdmi_pickle_machine *machine, uint8_t opcode) TDM_MUST_USE;
