/*
 * One value of a column in Arrow's C data interface: which schema, which array, which row. Every
 * question answers false for a type it does not fit.
 */
#pragma once

#include "base/scope.h"
#include "io/arrow/bridge.h"

TDMI_POINTER_RELEASE(tdmi_arrow_file, tdmi_arrow_file_close)

struct tdmi_arrow_cell {
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    int64_t row; /* from the array's beginning, its offset included */
};

/* Row of an array as a stream gives it. */
struct tdmi_arrow_cell tdmi_arrow_cell_at(const struct ArrowSchema *schema,
                                          const struct ArrowArray *array, int64_t row);
/* The child number i of a struct (rows of a stream are structs of columns). */
struct tdmi_arrow_cell tdmi_arrow_cell_child(struct tdmi_arrow_cell cell, int64_t i);
/* The field of a struct by its name. */
bool tdmi_arrow_cell_field(struct tdmi_arrow_cell cell, const char *name,
                           struct tdmi_arrow_cell *field);
/* The rows of a list or map in its only child: n from first on. */
void tdmi_arrow_cell_list(struct tdmi_arrow_cell cell, int64_t *first, int64_t *n);

bool tdmi_arrow_cell_is_null(struct tdmi_arrow_cell cell);
/* Binary, text, fixed binary, lists of bytes; of dictionaries too. Valid as long as the array. A
 * list with a null within is refused. */
bool tdmi_arrow_cell_bytes(struct tdmi_arrow_cell cell, const uint8_t **bytes, int64_t *n_bytes);
/* Integers of every width, and booleans as 0 and 1. Unsigned ones above INT64_MAX are refused. */
bool tdmi_arrow_cell_integer(struct tdmi_arrow_cell cell, int64_t *value);
bool tdmi_arrow_cell_number(struct tdmi_arrow_cell cell, double *value); /* float, double */

/* Visit every row of a file in order, with the columns named (as in tdmi_arrow_file_stream). path
 * is its name in messages. Any status but TDM_OK ends the reading. */
typedef tdm_status (*tdmi_arrow_visit_row)(void *self, struct tdmi_arrow_cell row, tdm_error *err);
tdm_status tdmi_arrow_each_row(const tdmi_arrow_file *file, const char *path,
                               const char *const *columns, int n_columns,
                               tdmi_arrow_visit_row visit, void *self, tdm_error *err) TDM_MUST_USE;

/* ---- from a schema alone ----------------------------------------------------------------- */

const struct ArrowSchema *tdmi_arrow_schema_field(const struct ArrowSchema *schema,
                                                  const char *name);
bool tdmi_arrow_is_text(const struct ArrowSchema *schema);   /* of dictionaries too */
bool tdmi_arrow_is_binary(const struct ArrowSchema *schema); /* fixed binary too, no text */
bool tdmi_arrow_is_byte_list(const struct ArrowSchema *schema);
bool tdmi_arrow_is_integer(const struct ArrowSchema *schema);
bool tdmi_arrow_is_number(const struct ArrowSchema *schema);
/* "text", "integer", "list", …: for people. */
const char *tdmi_arrow_type_word(const struct ArrowSchema *schema);
