/*
 * A part: rows of the plan as one Parquet file, and the record that marks it as done. part.c makes
 * one, picture.c one image of it, and merge.c turns the parts that are all there into a table.
 *
 *     OUT/_prepare/.part-00003.parquet.<pid>.tmp     being written
 *     OUT/part-00003-<XXH64 of the file>.parquet     complete
 *     OUT/_prepare/part-00003.json                   its record: rows, bytes, dropped images
 *
 * The record comes last, so a part with a record is whole; one without is made again, to the same
 * bytes and so the same name.
 */
#pragma once

#include "base/thread.h"
#include "data/audit/finding.h"
#include "prepare/folder.h"
#include "prepare/plan.h"

enum { TDMI_PREPARE_NAME_BYTES = 64 };

/* ---- one image ----------------------------------------------------------------------------- */

/* Change of the pixels by a lossy encoder, summed over the sample. Integers, so that the sum does
 * not depend on the order of addition. */
struct tdmi_prepare_change {
    int64_t n_pictures, n_values, sum;
    int max;
};
void tdmi_prepare_change_add(struct tdmi_prepare_change *total,
                             const struct tdmi_prepare_change *more);

struct tdmi_prepare_picture { /* start from a zeroed object; used again for the next one */
    tdmi_text bytes;          /* as stored */
    int width, height;
    struct tdmi_prepare_change change;
    enum tdm_verdict verdict; /* OK, or the damage for which it is dropped, unseen in its header */
    char reason[TDMI_REASON_BYTES];
};

struct tdmi_prepare_scratch { /* one a thread; start from a zeroed object */
    struct tdmi_finding_scratch finding;
    struct tdmi_preprocess_scratch preprocess;
    tdmi_image fitted, again;
};
void tdmi_prepare_scratch_release(struct tdmi_prepare_scratch *scratch);

/* One image of a row: read, checked against the plan, resized, encoded, and, for one in 16,
 * compared with the encoder's input. Any thread. TDM_E_INPUT: the file has changed since the first
 * pass. */
tdm_status
tdmi_prepare_picture_make(const tdmi_source *source, const struct tdmi_prepare_form *form,
                          const struct tdmi_prepare_row *row, struct tdmi_prepare_scratch *scratch,
                          struct tdmi_prepare_picture *picture, tdm_error *err) TDM_MUST_USE;

/* ---- one part ------------------------------------------------------------------------------ */

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
/* Sends an event of that kind to the sink, if there is one. */
void tdmi_prepare_job_report(const struct tdmi_prepare_job *job, enum tdm_event_kind kind);

/* The record of part `number`, when there is one of this plan; with is_thorough its file is read
 * and compared, else only looked at. *is_there false: the part must be made (again). */
tdm_status tdmi_prepare_part_find(const struct tdmi_prepare_job *job, int number, bool is_thorough,
                                  struct tdmi_prepare_record *record, bool *is_there,
                                  tdm_error *err) TDM_MUST_USE;
/* TDM_E_STOPPED on request; nothing is left behind then. */
tdm_status tdmi_prepare_part_make(struct tdmi_prepare_job *job, int number,
                                  tdm_error *err) TDM_MUST_USE;

/* ---- all parts ----------------------------------------------------------------------------- */

/* The Delta log names the parts, and _dataset.json, which is written last, describes their content.
 * Both follow from the records of the parts and the plan alone. made[n]: part n was made just now
 * and need not be read again; NULL: none was. The result has the plan's counts before. TDM_E_FAILED
 * names parts that are missing. */
tdm_status tdmi_prepare_merge(const struct tdmi_prepare_job *job, const tdmi_prepare_look *look,
                              tdmi_prepare_folder *folder, const bool *made,
                              struct tdm_prepare_result *result, tdm_error *err) TDM_MUST_USE;
/* Fill the result from the _dataset.json of a finished table. */
void tdmi_prepare_merge_recall(const tdm_json_value *dataset, struct tdm_prepare_result *result);
