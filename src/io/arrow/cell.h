/*
 * One value of a column in Arrow's C data interface: which schema, which array, which row. Every
 * question answers false for a type it does not fit.
 */
#ifndef TANDEM_IO_ARROW_CELL_H
#define TANDEM_IO_ARROW_CELL_H

#include "io/arrow/abi.h"
#include <stdbool.h>

struct tdmi_arrow_cell {
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    int64_t row; /* from the array's beginning, its offset included */
};

/* Row of an array as a stream gives it. */
struct tdmi_arrow_cell tdmi_arrow_cell_at(const struct ArrowSchema *schema,
                                          const struct ArrowArray *array, int64_t row);
/* The field of a struct (rows of a stream are structs of columns). */
bool tdmi_arrow_cell_field(struct tdmi_arrow_cell cell, const char *name,
                           struct tdmi_arrow_cell *field);

bool tdmi_arrow_cell_is_null(struct tdmi_arrow_cell cell);
/* Binary, text, fixed binary, lists of bytes; of dictionaries too. Valid as long as the array. A
 * list with a null within is refused. */
bool tdmi_arrow_cell_bytes(struct tdmi_arrow_cell cell, const uint8_t **bytes, int64_t *n_bytes);
/* Integers of every width, and booleans as 0 and 1. Unsigned ones above INT64_MAX are refused. */
bool tdmi_arrow_cell_integer(struct tdmi_arrow_cell cell, int64_t *value);
bool tdmi_arrow_cell_number(struct tdmi_arrow_cell cell, double *value); /* float, double */

/* ---- from a schema alone
 * ----------------------------------------------------------------------- */

const struct ArrowSchema *tdmi_arrow_schema_field(const struct ArrowSchema *schema,
                                                  const char *name);
bool tdmi_arrow_is_text(const struct ArrowSchema *schema);   /* of dictionaries too */
bool tdmi_arrow_is_binary(const struct ArrowSchema *schema); /* fixed binary too, no text */
bool tdmi_arrow_is_byte_list(const struct ArrowSchema *schema);
bool tdmi_arrow_is_integer(const struct ArrowSchema *schema);
bool tdmi_arrow_is_number(const struct ArrowSchema *schema);
/* "text", "integer", "list", …: for people. */
const char *tdmi_arrow_type_word(const struct ArrowSchema *schema);

#endif
