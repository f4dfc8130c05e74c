/*
 * prepare in one function after the other:
 *
 *     options ─► form          what the bytes depend on                     prepare/form.h
 *     source  ─► look          every picture read once, bad ones named      prepare/look.h
 *     OUT     ─► stored        what a finished table has already            prepare/stored.h
 *             ─► plan          split, order, parts                          prepare/plan.h
 *             ─► parts         encoded side by side, written in order       prepare/part.h
 *             ─► log, dataset  from the parts' records                      prepare/merge.h
 */
#include "tandem/prepare.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/sized.h"
#include "prepare/merge.h"
#include <math.h>

struct preparing {
    struct tdmi_prepare_form form;
    tdmi_prepare_folder *folder;
    tdmi_source *source;
    tdmi_pool *pool;
    tdmi_prepare_look look;
    tdmi_prepare_stored stored; /* empty but for an update */
    tdmi_prepare_plan plan;
    bool *made; /* by part */
    tdm_sink sink;
};

void tdm_prepare_options_init(struct tdm_prepare_options *options, size_t struct_bytes)
{
    static const struct tdm_prepare_options usual = {.size = 299,
                                                     .fit = "pad",
                                                     .crop_fraction = 1,
                                                     .resample = "lanczos",
                                                     .train_fraction = 0.9,
                                                     .val_fraction = 0.1,
                                                     .seed = 42,
                                                     .codec = "jpeg"};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

/* ---- plan --------------------------------------------------------------------------------- */

static tdm_status open_all(struct preparing *work, const struct tdm_prepare_options *options,
                           tdm_error *err)
{
    tdm_status status = tdmi_prepare_form_of(options, &work->form, err);
    if (status == TDM_OK)
        status = TDM_WRAP(err, tdmi_arrow_require(err), "cannot write Parquet");
    if (status == TDM_OK)
        status = tdmi_source_open(options->source, &options->how, &work->source, err);
    if (status == TDM_OK)
        status = tdmi_prepare_folder_check_beside(options->folder, options->source, err);
    if (status == TDM_OK)
        status = tdmi_prepare_folder_open(options->folder, &work->form, &work->folder, err);
    if (status == TDM_OK)
        status = tdmi_pool_new(options->threads, false, &work->pool, err);
    return status;
}

/* A finished folder has nothing left to read from, so every picture is read again then: that its
 * source is still the same is what the caller is told. An update that was killed left its look. */
static tdm_status look(struct preparing *work, bool *is_known, tdm_error *err)
{
    tdm_status status = TDM_OK;
    *is_known = false;
    tdmi_prepare_look_list(work->source, &work->look);
    if (tdmi_prepare_folder_state(work->folder) != TDMI_PREPARE_NEW)
        status = tdmi_prepare_folder_read_look(work->folder, tdmi_source_items(work->source),
                                               &work->look, is_known, err);
    if (status == TDM_OK && !*is_known)
        status = tdmi_prepare_look_read(work->source, work->pool, work->sink, &work->look, err);
    return status;
}

/* ---- parts -------------------------------------------------------------------------------- */

static bool is_mine(const struct tdm_prepare_options *options, int part)
{
    if (options->merge)
        return false;
    return options->slices == 0 || part % options->slices == options->slice % options->slices;
}

static void tell(const struct preparing *work, const struct tdmi_prepare_job *job,
                 enum tdm_event_kind kind)
{
    if (work->sink.event)
        work->sink.event(work->sink.self, &(tdm_event){.kind = kind,
                                                       .done = job->n_done,
                                                       .total = job->n_todo,
                                                       .text = "preparing"});
}

static void report_of_split(const struct preparing *work)
{
    const struct tdm_prepare_options usual = tdm_prepare_options_default();
    const struct tdm_prepare_options *options = work->form.options;
    const bool is_asked = fabs(options->train_fraction - usual.train_fraction) > 0.0 ||
                          fabs(options->val_fraction - usual.val_fraction) > 0.0;
    if (work->sink.event && work->plan.is_split_given && is_asked)
        work->sink.event(work->sink.self,
                         &(tdm_event){.kind = TDM_EVENT_NOTE,
                                      .text =
                                          "the source says which pictures train and which judge: "
                                          "--split decides nothing"});
}

/* made becomes true for parts that need not be read again: it is false for others' parts. */
static tdm_status find_work(struct preparing *work, struct tdmi_prepare_job *job, bool *is_todo,
                            struct tdm_prepare_result *result, tdm_error *err)
{
    for (int p = 0; p < work->plan.n_parts; p++) {
        struct tdmi_prepare_record record;
        if (!is_mine(work->form.options, p))
            continue;
        TDM_TRY(tdmi_prepare_part_find(job, p, true, &record, &work->made[p], err), err,
                "looking for parts that are done");
        is_todo[p] = !work->made[p];
        result->bytes += record.n_bytes;
        tdmi_prepare_record_release(&record);
        job->n_todo += is_todo[p] ? work->plan.parts[p].n : 0;
    }
    return TDM_OK;
}

static tdm_status make_parts(struct preparing *work, struct tdmi_prepare_job *job,
                             struct tdm_prepare_result *result, tdm_error *err)
{
    bool *is_todo = tdmi_alloc((size_t)work->plan.n_parts, sizeof *is_todo);
    work->made = tdmi_alloc((size_t)work->plan.n_parts, sizeof *work->made);
    tdm_status status =
        is_todo == NULL || work->made == NULL
            ? TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d parts", work->plan.n_parts)
            : find_work(work, job, is_todo, result, err);
    tell(work, job, TDM_EVENT_PHASE_BEGIN);
    for (int p = 0; p < work->plan.n_parts && status == TDM_OK; p++) {
        struct tdmi_prepare_record record = {0};
        if (!is_todo[p])
            continue;
        status = tdmi_prepare_part_make(job, p, err);
        if (status == TDM_OK)
            status = tdmi_prepare_part_find(job, p, false, &record, &work->made[p], err);
        result->bytes += record.n_bytes;
        result->made += work->made[p];
        tdmi_prepare_record_release(&record);
    }
    tell(work, job, TDM_EVENT_PHASE_END);
    tdmi_free(is_todo);
    return status;
}

/* After a slice: the plan's counts, of which damage that shows later may still be dropped. */
static void fill_result(const struct preparing *work, struct tdm_prepare_result *result)
{
    result->images = work->plan.n_kept_rows + work->plan.n_rows;
    result->train = work->plan.n_in[TDMI_PREPARE_TRAIN];
    result->val = work->plan.n_in[TDMI_PREPARE_VAL];
    result->test = work->plan.n_in[TDMI_PREPARE_TEST];
    result->classes = work->plan.n_classes;
    result->quarantined = work->look.n_bad + tdmi_source_quarantined(work->source);
    result->left_out = work->plan.n_left_out;
    result->parts = work->plan.n_parts;
    result->added = work->plan.n_added;
    result->removed = work->plan.n_removed;
}

/* ---- together ----------------------------------------------------------------------------- */

/* A table is updated by what its last version says, never by what an update that was killed had
 * written already: that is how the next attempt plans the same. */
static tdm_status recall(struct preparing *work, struct tdm_prepare_result *result, tdm_error *err)
{
    if (tdmi_prepare_folder_state(work->folder) != TDMI_PREPARE_FINISHED)
        return TDM_OK;
    const tdm_json_value *dataset = tdmi_prepare_folder_dataset(work->folder);
    tdmi_prepare_merge_recall(dataset, result);
    return tdmi_prepare_stored_read(work->form.options->folder, dataset, &work->stored, err);
}

static tdm_status begin(struct preparing *work, bool is_known, tdm_error *err)
{
    tdm_status status = tdmi_prepare_folder_begin(work->folder, &work->form, err);
    if (status == TDM_OK && !is_known)
        status = tdmi_prepare_folder_write_look(work->folder, &work->look, err);
    return status;
}

static tdm_status make(struct preparing *work, struct tdm_prepare_result *result, tdm_error *err)
{
    const struct tdm_prepare_options *options = work->form.options;
    const int64_t n_sound = work->look.contents.n_items - work->look.n_bad;
    struct tdmi_prepare_job job = {.source = work->source,
                                   .form = &work->form,
                                   .plan = &work->plan,
                                   .stored = &work->stored,
                                   .folder = options->folder,
                                   .pool = work->pool,
                                   .sink = work->sink,
                                   .picture_bytes = tdmi_prepare_form_picture_bytes(
                                       &work->form, work->look.n_bytes / n_sound)};
    result->bytes = 0;
    result->is_complete = false;
    tdm_status status = make_parts(work, &job, result, err);
    fill_result(work, result);
    if (status != TDM_OK || options->slices > 0)
        return status;
    return tdmi_prepare_merge(&job, &work->look, work->folder, work->made, result, err);
}

static tdm_status prepare(struct preparing *work, const struct tdm_prepare_options *options,
                          struct tdm_prepare_result *result, tdm_error *err)
{
    bool is_known = false;
    tdm_status status = open_all(work, options, err);
    if (status == TDM_OK)
        status = look(work, &is_known, err);
    if (status == TDM_OK)
        status = recall(work, result, err);
    if (status == TDM_OK)
        status = tdmi_prepare_plan_make(work->source, &work->look, &work->form, &work->stored,
                                        &work->plan, err);
    if (status == TDM_OK)
        report_of_split(work);
    if (status == TDM_OK && tdmi_prepare_plan_is_done(&work->plan, &work->stored))
        return tdmi_prepare_folder_clean(work->folder, err);
    if (status == TDM_OK)
        status = begin(work, is_known, err);
    return status == TDM_OK ? make(work, result, err) : status;
}

tdm_status tdm_prepare(const struct tdm_prepare_options *options, tdm_sink sink,
                       struct tdm_prepare_result *result, tdm_error *err)
{
    TDMI_OPTIONS(tdm_prepare_options, options, tdm_prepare_options_default(), err);
    TDMI_RESULT(tdm_prepare_result, result, err);
    struct preparing work = {.sink = sink};
    const int64_t begin_ns = tdmi_clock_ns();
    tdm_status status = prepare(&work, options, result, err);
    result->seconds = tdmi_clock_seconds_since(begin_ns);
    tdmi_free(work.made);
    tdmi_prepare_plan_release(&work.plan);
    tdmi_prepare_stored_release(&work.stored);
    tdmi_prepare_look_release(&work.look);
    tdmi_pool_free(work.pool);
    tdmi_prepare_folder_close(work.folder);
    tdmi_source_close(work.source);
    return TDM_WRAP(err, status, "cannot prepare '%s' into '%s'", options->source, options->folder);
}
