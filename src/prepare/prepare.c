/*
 * prepare in one function after the other:
 *
 *     options ─► form          what the bytes depend on                     prepare/form.h
 *     source  ─► look          every image read once, bad ones named        prepare/look.h
 *     OUT     ─► stored        what a finished table has already            prepare/stored.c
 *             ─► plan          split, order, parts                          prepare/plan.h
 *             ─► parts         encoded side by side, written in order       prepare/part.h
 *             ─► log, dataset  from the parts' records                      prepare/merge.c
 */
#include "base/clock.h"
#include "base/sized.h"
#include "prepare/part.h"
#include <math.h>

struct preparing {
    struct tdmi_prepare_form form;
    tdmi_prepare_folder folder;
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
    TDMI_TRY(tdmi_prepare_form_of(options, &work->form, err));
    TDM_TRY(tdmi_arrow_require(err), err, "cannot write Parquet");
    TDMI_TRY(tdmi_source_open(options->source, &options->how, &work->source, err));
    TDMI_TRY(tdmi_prepare_folder_check_beside(options->folder, options->source, err));
    TDMI_TRY(tdmi_prepare_folder_open(&work->folder, options->folder, &work->form, err));
    return tdmi_pool_new(options->threads, NULL, &work->pool, err);
}

/* A finished folder keeps no look, so every image is read again then: the result reports whether
 * the source is still the same. An update that was killed left its look. */
static tdm_status look(struct preparing *work, bool *is_known, tdm_error *err)
{
    *is_known = false;
    tdmi_prepare_look_list(work->source, &work->look);
    if (work->folder.state != TDMI_PREPARE_NEW)
        TDMI_TRY(tdmi_prepare_folder_read_look(&work->folder, tdmi_source_items(work->source),
                                               &work->look, is_known, err));
    return *is_known
               ? TDM_OK
               : tdmi_prepare_look_read(work->source, work->pool, work->sink, &work->look, err);
}

/* ---- parts -------------------------------------------------------------------------------- */

static bool is_mine(const struct tdm_prepare_options *options, int part)
{
    if (options->merge)
        return false;
    return options->slices == 0 || part % options->slices == options->slice % options->slices;
}

static void report_given_split(const struct preparing *work)
{
    const struct tdm_prepare_options usual = tdm_prepare_options_default();
    const struct tdm_prepare_options *options = work->form.options;
    const bool has_option = fabs(options->train_fraction - usual.train_fraction) > 0.0 ||
                            fabs(options->val_fraction - usual.val_fraction) > 0.0;
    static const tdm_event note = {
        .kind = TDM_EVENT_NOTE,
        .text = "the source gives the training and validation images: --split has no effect"};
    if (work->sink.event && work->plan.is_split_given && has_option)
        work->sink.event(work->sink.self, &note);
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
    TDMI_AT_END(tdmi_free_at) bool *is_todo = NULL;
    TDMI_TRY(TDMI_NEW(is_todo, work->plan.n_parts, err));
    TDMI_TRY(TDMI_NEW(work->made, work->plan.n_parts, err));
    tdm_status status = find_work(work, job, is_todo, result, err);
    tdmi_prepare_job_report(job, TDM_EVENT_PHASE_BEGIN);
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
    tdmi_prepare_job_report(job, TDM_EVENT_PHASE_END);
    return status;
}

/* After a slice: the plan's counts; images whose damage shows later may still be dropped. */
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

/* A table is updated from its last version, never from what an update that was killed had written
 * already: so the next attempt makes the same plan. */
static tdm_status recall(struct preparing *work, struct tdm_prepare_result *result, tdm_error *err)
{
    if (work->folder.state != TDMI_PREPARE_FINISHED)
        return TDM_OK;
    const tdm_json_value *dataset = tdm_json_root(work->folder.document);
    tdmi_prepare_merge_recall(dataset, result);
    return tdmi_prepare_stored_read(work->form.options->folder, dataset, &work->stored, err);
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
    return tdmi_prepare_merge(&job, &work->look, &work->folder, work->made, result, err);
}

static tdm_status prepare(struct preparing *work, const struct tdm_prepare_options *options,
                          struct tdm_prepare_result *result, tdm_error *err)
{
    bool is_known = false;
    TDMI_TRY(open_all(work, options, err));
    tdmi_source_unread(work->source, &result->unread);
    TDMI_TRY(look(work, &is_known, err));
    TDMI_TRY(recall(work, result, err));
    TDMI_TRY(tdmi_prepare_plan_make(work->source, &work->look, &work->form, &work->stored,
                                    &work->plan, err));
    report_given_split(work);
    if (tdmi_prepare_plan_is_done(&work->plan, &work->stored))
        return tdmi_prepare_folder_clean(&work->folder, err);
    TDMI_TRY(tdmi_prepare_folder_begin(&work->folder, &work->form, err));
    if (!is_known)
        TDMI_TRY(tdmi_prepare_folder_write_look(&work->folder, &work->look, err));
    return make(work, result, err);
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
    tdmi_prepare_folder_close(&work.folder);
    tdmi_source_close(work.source);
    return TDM_WRAP(err, status, "cannot prepare '%s' into '%s'", options->source, options->folder);
}
