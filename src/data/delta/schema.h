/*
 * The columns of a Delta table, from the JSON text in its metaData, and whether the text of a
 * partition value is one of its column's type.
 */
#ifndef TANDEM_DATA_DELTA_SCHEMA_H
#define TANDEM_DATA_DELTA_SCHEMA_H

#include "data/delta/replay.h"

/* Into the arena of the table: fields and n_fields. TDM_E_INPUT with a sentence about the schema.
 */
tdm_status tdmi_delta_schema_read(struct tdmi_delta_table *table, const char *text,
                                  tdm_error *err) TDM_MUST_USE;
/* -1: no such column. */
int tdmi_delta_schema_find(const struct tdmi_delta_table *table, const char *name);

/* Can a column of this type be one of partitions? */
bool tdmi_delta_type_divides(const char *type);
/* text is never "" (that is null) and the type is one that divides. */
bool tdmi_delta_value_fits(const char *type, const char *text);

#endif
