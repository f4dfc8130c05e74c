/* Opcodes that push one value of their own: None, booleans, numbers, text and bytes. */
#include "weights/torch/pickle_machine.h"

#include <string.h>
#include "base/banned.h"
#include "base/bytes.h"

/* Opcode, what it pushes, and how many bytes tell its number or its length; 0: see below. */
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

bool tdmi_pickle_is_scalar(uint8_t opcode)
{
    return find(opcode) != NULL;
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

/* Big-endian, unlike all else. */
static double real_of(const uint8_t *bytes)
{
    uint64_t bits = 0;
    double real;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&real, &bits, sizeof real);
    return real;
}

tdm_status tdmi_pickle_run_scalar(struct tdmi_pickle_machine *machine, uint8_t opcode)
{
    const struct scalar *scalar = find(opcode);
    tdmi_pickle_value *value = NULL;
    uint64_t number = 0;
    tdm_status status = tdmi_pickle_new(machine, scalar->kind, &value);
    const uint8_t *bytes = NULL;
    if (status == TDM_OK && scalar->kind == TDMI_PICKLE_REAL)
        status = tdmi_pickle_take(machine, 8, &bytes);
    else if (status == TDM_OK)
        status = tdmi_pickle_take_number(machine, scalar->n_bytes, &number);
    if (status == TDM_OK && scalar->kind >= TDMI_PICKLE_TEXT)
        status = tdmi_pickle_take(machine, number, &bytes);
    else if (status == TDM_OK && scalar->kind == TDMI_PICKLE_LONG)
        status = tdmi_pickle_take(machine, number, &bytes);
    if (status != TDM_OK)
        return status;
    switch (scalar->kind) {
    case TDMI_PICKLE_NONE:
        break;
    case TDMI_PICKLE_BOOL:
        value->integer = opcode == 0x88;
        break;
    case TDMI_PICKLE_INTEGER: /* only the widest has a sign */
        value->integer = opcode == 'J' ? (int32_t)(uint32_t)number : (int64_t)number;
        break;
    case TDMI_PICKLE_REAL:
        value->real = real_of(bytes);
        break;
    default:
        value->bytes = bytes;
        value->count = (size_t)number;
        if (scalar->kind == TDMI_PICKLE_LONG)
            shorten(value);
        break;
    }
    return tdmi_pickle_push(machine, value);
}
