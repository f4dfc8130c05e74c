/*
 * A part: rows of the plan as one Parquet file, and the record that marks it as done.
 *
 *     OUT/_prepare/.part-00003.parquet.<pid>.tmp     being written
 *     OUT/part-00003-<XXH64 of the file>.parquet     complete
 *     OUT/_prepare/part-00003.json                   its record: rows, bytes, dropped images
 *
 * The record comes last, so a part with a record is whole; one without is made again, to the same
 * bytes and so the same name.
 */
#ifndef TANDEM_PREPARE_PART_H
#define TANDEM_PREPARE_PART_H

#include "base/thread.h"
#include "prepare/picture.h"

enum { TDMI_PREPARE_NAME_BYTES = 64 };

struct tdmi_prepare_record {
    char name[TDMI_PREPARE_NAME_BYTES]; /* of the file */
    int64_t n_rows, n_bytes;
    uint64_t hash; /* of the file */
    struct tdmi_prepare_change change;
    tdm_json_document *document; /* the record as it was read, with what was dropped */
};
void tdmi_prepare_record_release(struct tdmi_prepare_record *record);
/* "dropped" of the record: [{"row": of the part, "path", "hash", "verdict", "reason"}]. */
const tdm_json_value *tdmi_prepare_record_dropped(const struct tdmi_prepare_record *record);

/* Inputs of parts, for one call of tdm_prepare. */
struct tdmi_prepare_job {
    const tdmi_source *source;
    const struct tdmi_prepare_form *form;
    const tdmi_prepare_plan *plan;
    const tdmi_prepare_stored *stored; /* the finished table that the plan extends */
    const char *folder;                /* OUT */
    tdmi_pool *pool;
    tdm_sink sink;
    int64_t picture_bytes;  /* about */
    int64_t n_done, n_todo; /* images of all parts to be made, for progress */
};

/* The record of part `number`, when there is one of this plan; with is_thorough its file is read
 * and compared, else only looked at. *is_there false: the part must be made (again). */
tdm_status tdmi_prepare_part_find(const struct tdmi_prepare_job *job, int number, bool is_thorough,
                                  struct tdmi_prepare_record *record, bool *is_there,
                                  tdm_error *err) TDM_MUST_USE;
/* TDM_E_STOPPED on request; nothing is left behind then. */
tdm_status tdmi_prepare_part_make(struct tdmi_prepare_job *job, int number,
                                  tdm_error *err) TDM_MUST_USE;

#endif
