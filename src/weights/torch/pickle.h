/*
 * Pickles without Python: values of our own instead of objects. Only the opcodes that plain
 * containers, numbers, text and calls of a few known names need are run, and a call is noted, never
 * made: nothing in a pickle is executed. A name that is not in pickle_names.def is refused by that
 * name.
 *
 * The reader is a loop over the bytes without recursion. Every opcode makes at most one value and a
 * pickle has a limit of length, so stack, memo and memory are bounded by it.
 */
#pragma once

#include "tensor/dtype.h"
#include "weights/errors.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No pickle that only names tensors is longer; a value takes about 60 bytes of memory. */
#define TDMI_PICKLE_MOST_BYTES ((size_t)16 << 20)

enum tdmi_pickle_kind {
    TDMI_PICKLE_NONE,
    TDMI_PICKLE_BOOL,
    TDMI_PICKLE_INTEGER,
    TDMI_PICKLE_LONG, /* more than 64 bits: little-endian bytes, two's complement */
    TDMI_PICKLE_REAL,
    TDMI_PICKLE_TEXT,
    TDMI_PICKLE_BYTES,
    TDMI_PICKLE_LIST, /* sets too */
    TDMI_PICKLE_TUPLE,
    TDMI_PICKLE_DICT,
    TDMI_PICKLE_NAME,      /* of a class or function */
    TDMI_PICKLE_CALL,      /* what that name would have made of its arguments */
    TDMI_PICKLE_PERSISTENT /* something outside the pickle, by its id */
};

/* Result of calling a name. */
enum tdmi_pickle_makes {
    TDMI_PICKLE_MAKES_CALL,
    TDMI_PICKLE_MAKES_DICT,
    TDMI_PICKLE_MAKES_SEQUENCE, /* its first argument */
    TDMI_PICKLE_MAKES_BYTES,    /* text whose characters are bytes */
    TDMI_PICKLE_MAKES_NOTHING   /* the name is a constant or type, and not to be called */
};

struct tdmi_pickle_name {
    const char *module, *name;
    enum tdmi_pickle_makes makes;
    bool is_type; /* of a storage's elements, or of a tensor's */
    enum tdmi_dtype dtype;
};

typedef struct tdmi_pickle_value tdmi_pickle_value;
struct tdmi_pickle_value {
    enum tdmi_pickle_kind kind;
    int64_t tally;          /* for who walks the values; 0 at first */
    size_t count, capacity; /* of bytes, items or pairs */
    union {
        int64_t integer; /* BOOL too */
        double real;
        const uint8_t *bytes;      /* TEXT (no zero ends it), BYTES, LONG */
        tdmi_pickle_value **items; /* DICT: a key, its value, the next key, … */
        struct {
            const struct tdmi_pickle_name *name; /* of a NAME, too */
            tdmi_pickle_value *arguments;        /* a TUPLE */
            tdmi_pickle_value *state;            /* NULL where none was set */
        } call;
        struct {
            tdmi_pickle_value *id;
            tdmi_pickle_value *next; /* PERSISTENT one that was made before it */
        };
    };
};

struct tdmi_pickle {
    tdmi_pickle_value *value;
    size_t used_bytes;                   /* where the next pickle of a file begins */
    size_t n_values;                     /* that were made */
    const tdmi_pickle_value *persistent; /* the last one, and so all */
};

/* The pickle that begins at bytes, which are lent as long as its values live: in the arena. name is
 * for sentences, and so is offset: the place of bytes in what they are from. */
tdm_status tdmi_pickle_read(const uint8_t *bytes, size_t n_bytes, const char *name, size_t offset,
                            tdmi_arena *arena, struct tdmi_pickle *pickle,
                            tdm_error *err) TDM_MUST_USE;

/* Is it this text? */
bool tdmi_pickle_is_text(const tdmi_pickle_value *value, const char *text);
/* The name of a CALL or NAME ("_rebuild_tensor_v2"), else "". */
const char *tdmi_pickle_name_of(const tdmi_pickle_value *value);
/* The i-th item of a LIST or TUPLE; NULL past its end and for anything else. */
const tdmi_pickle_value *tdmi_pickle_item(const tdmi_pickle_value *value, size_t i);
/* The value of a DICT's last pair with that key, or NULL. */
tdmi_pickle_value *tdmi_pickle_member(const tdmi_pickle_value *dict, const char *key);
