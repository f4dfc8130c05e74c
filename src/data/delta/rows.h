/*
 * Rows of Arrow arrays as JSON text, so that the actions of a checkpoint are read by the same code
 * as those of a commit.
 */
#ifndef TANDEM_DATA_DELTA_ROWS_H
#define TANDEM_DATA_DELTA_ROWS_H

#include "io/arrow/abi.h"
#include "tandem/error.h"
#include "tandem/json.h"

/* Row number row of rows, an array of structs of the form schema, as one JSON object. Null members
 * are left out. TDM_E_INPUT: a type that no action has. */
tdm_status tdmi_delta_row_write(tdm_json_writer *writer, const struct ArrowSchema *schema,
                                const struct ArrowArray *rows, int64_t row,
                                tdm_error *err) TDM_MUST_USE;

/* Is there a member of that dotted name ("add.path")? */
bool tdmi_delta_rows_have(const struct ArrowSchema *schema, const char *name);

#endif
