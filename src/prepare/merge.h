/*
 * The end of prepare: parts that are all there become a table. The Delta log names them, and
 * _dataset.json, which is written last, says what they hold. Both follow from the records of the
 * parts and the plan alone.
 */
#ifndef TANDEM_PREPARE_MERGE_H
#define TANDEM_PREPARE_MERGE_H

#include "prepare/folder.h"
#include "prepare/part.h"

/* made[n]: part n was made just now and need not be read again; NULL: none was. TDM_E_FAILED names
 * parts that are missing. */
tdm_status tdmi_prepare_merge(const struct tdmi_prepare_job *job, const tdmi_prepare_look *look,
                              tdmi_prepare_folder *folder, const bool *made,
                              struct tdm_prepare_result *result, tdm_error *err) TDM_MUST_USE;
/* Fill the result from the _dataset.json of a finished table. */
void tdmi_prepare_merge_recall(const tdm_json_value *dataset, struct tdm_prepare_result *result);

#endif
