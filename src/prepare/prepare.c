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

static tdm_status open_all(struct preparing *it, const struct tdm_prepare_options *options,
                           tdm_error *err)
{
    tdm_status status = tdmi_prepare_form_of(options, &it->form, err);
    if (status == TDM_OK)
        status = TDM_WRAP(err, tdmi_arrow_require(err), "cannot write Parquet");
    if (status == TDM_OK)
        status = tdmi_source_open(options->source, &options->how, &it->source, err);
    if (status == TDM_OK)
        status = tdmi_prepare_folder_check_beside(options->folder, options->source, err);
    if (status == TDM_OK)
        status = tdmi_prepare_folder_open(options->folder, &it->form, &it->folder, err);
    if (status == TDM_OK)
        status = tdmi_pool_new(options->threads, false, &it->pool, err);
    return status;
}

/* A finished folder has nothing left to read from, so every picture is read again then: that its
 * source is still the same is what the caller is told. An update that was killed left its look. */
static tdm_status look(struct preparing *it, bool *is_known, tdm_error *err)
{
    tdm_status status = TDM_OK;
    *is_known = false;
    tdmi_prepare_look_list(it->source, &it->look);
    if (tdmi_prepare_folder_state(it->folder) != TDMI_PREPARE_NEW)
        status = tdmi_prepare_folder_read_look(it->folder, tdmi_source_items(it->source), &it->look,
                                               is_known, err);
    if (status == TDM_OK && !*is_known)
        status = tdmi_prepare_look_read(it->source, it->pool, it->sink, &it->look, err);
    return status;
}

/* ---- parts -------------------------------------------------------------------------------- */

static bool is_mine(const struct tdm_prepare_options *options, int part)
{
    if (options->merge)
        return false;
    return options->slices == 0 || part % options->slices == options->slice % options->slices;
}

static void tell(const struct preparing *it, const struct tdmi_prepare_job *job,
                 enum tdm_event_kind kind)
{
    if (it->sink.event)
        it->sink.event(it->sink.self, &(tdm_event){.kind = kind,
                                                   .done = job->n_done,
                                                   .total = job->n_todo,
                                                   .text = "preparing"});
}

static void report_of_split(const struct preparing *it)
{
    const struct tdm_prepare_options usual = tdm_prepare_options_default();
    const struct tdm_prepare_options *options = it->form.options;
    const bool is_asked = fabs(options->train_fraction - usual.train_fraction) > 0.0 ||
                          fabs(options->val_fraction - usual.val_fraction) > 0.0;
    if (it->sink.event && it->plan.is_split_given && is_asked)
        it->sink.event(it->sink.self,
                       &(tdm_event){.kind = TDM_EVENT_NOTE,
                                    .text = "the source says which pictures train and which judge: "
                                            "--split decides nothing"});
}

/* made becomes true for parts that need not be read again: it is false for others' parts. */
static tdm_status find_work(struct preparing *it, struct tdmi_prepare_job *job, bool *wanted,
                            struct tdm_prepare_result *result, tdm_error *err)
{
    for (int p = 0; p < it->plan.n_parts; p++) {
        struct tdmi_prepare_record record;
        if (!is_mine(it->form.options, p))
            continue;
        TDM_TRY(tdmi_prepare_part_find(job, p, true, &record, &it->made[p], err), err,
                "looking for parts that are done");
        wanted[p] = !it->made[p];
        result->bytes += record.n_bytes;
        tdmi_prepare_record_release(&record);
        job->n_todo += wanted[p] ? it->plan.parts[p].n : 0;
    }
    return TDM_OK;
}

static tdm_status make_parts(struct preparing *it, struct tdmi_prepare_job *job,
                             struct tdm_prepare_result *result, tdm_error *err)
{
    bool *wanted = tdmi_alloc((size_t)it->plan.n_parts, sizeof *wanted);
    it->made = tdmi_alloc((size_t)it->plan.n_parts, sizeof *it->made);
    tdm_status status =
        wanted == NULL || it->made == NULL
            ? TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d parts", it->plan.n_parts)
            : find_work(it, job, wanted, result, err);
    tell(it, job, TDM_EVENT_PHASE_BEGIN);
    for (int p = 0; p < it->plan.n_parts && status == TDM_OK; p++) {
        struct tdmi_prepare_record record = {0};
        if (!wanted[p])
            continue;
        status = tdmi_prepare_part_make(job, p, err);
        if (status == TDM_OK)
            status = tdmi_prepare_part_find(job, p, false, &record, &it->made[p], err);
        result->bytes += record.n_bytes;
        result->made += it->made[p];
        tdmi_prepare_record_release(&record);
    }
    tell(it, job, TDM_EVENT_PHASE_END);
    tdmi_free(wanted);
    return status;
}

/* After a slice: the plan's counts, of which damage that shows later may still be dropped. */
static void fill_result(const struct preparing *it, struct tdm_prepare_result *result)
{
    result->images = it->plan.n_kept_rows + it->plan.n_rows;
    result->train = it->plan.n_in[TDMI_PREPARE_TRAIN];
    result->val = it->plan.n_in[TDMI_PREPARE_VAL];
    result->test = it->plan.n_in[TDMI_PREPARE_TEST];
    result->classes = it->plan.n_classes;
    result->quarantined = it->look.n_bad + tdmi_source_quarantined(it->source);
    result->left_out = it->plan.n_left_out;
    result->parts = it->plan.n_parts;
    result->added = it->plan.n_added;
    result->removed = it->plan.n_removed;
}

/* ---- together ----------------------------------------------------------------------------- */

/* A table is updated by what its last version says, never by what an update that was killed had
 * written already: that is how the next attempt plans the same. */
static tdm_status recall(struct preparing *it, struct tdm_prepare_result *result, tdm_error *err)
{
    if (tdmi_prepare_folder_state(it->folder) != TDMI_PREPARE_FINISHED)
        return TDM_OK;
    const tdm_json_value *dataset = tdmi_prepare_folder_dataset(it->folder);
    tdmi_prepare_merge_recall(dataset, result);
    return tdmi_prepare_stored_read(it->form.options->folder, dataset, &it->stored, err);
}

static tdm_status begin(struct preparing *it, bool is_known, tdm_error *err)
{
    tdm_status status = tdmi_prepare_folder_begin(it->folder, &it->form, err);
    if (status == TDM_OK && !is_known)
        status = tdmi_prepare_folder_write_look(it->folder, &it->look, err);
    return status;
}

static tdm_status make(struct preparing *it, struct tdm_prepare_result *result, tdm_error *err)
{
    const struct tdm_prepare_options *options = it->form.options;
    const int64_t n_sound = it->look.contents.n_items - it->look.n_bad;
    struct tdmi_prepare_job job = {
        .source = it->source,
        .form = &it->form,
        .plan = &it->plan,
        .stored = &it->stored,
        .folder = options->folder,
        .pool = it->pool,
        .sink = it->sink,
        .picture_bytes = tdmi_prepare_form_picture_bytes(&it->form, it->look.n_bytes / n_sound)};
    result->bytes = 0;
    result->is_complete = false;
    tdm_status status = make_parts(it, &job, result, err);
    fill_result(it, result);
    if (status != TDM_OK || options->slices > 0)
        return status;
    return tdmi_prepare_merge(&job, &it->look, it->folder, it->made, result, err);
}

static tdm_status prepare(struct preparing *it, const struct tdm_prepare_options *options,
                          struct tdm_prepare_result *result, tdm_error *err)
{
    bool is_known = false;
    tdm_status status = open_all(it, options, err);
    if (status == TDM_OK)
        status = look(it, &is_known, err);
    if (status == TDM_OK)
        status = recall(it, result, err);
    if (status == TDM_OK)
        status =
            tdmi_prepare_plan_make(it->source, &it->look, &it->form, &it->stored, &it->plan, err);
    if (status == TDM_OK)
        report_of_split(it);
    if (status == TDM_OK && tdmi_prepare_plan_is_done(&it->plan, &it->stored))
        return tdmi_prepare_folder_clean(it->folder, err);
    if (status == TDM_OK)
        status = begin(it, is_known, err);
    return status == TDM_OK ? make(it, result, err) : status;
}

tdm_status tdm_prepare(const struct tdm_prepare_options *options, tdm_sink sink,
                       struct tdm_prepare_result *result, tdm_error *err)
{
    TDMI_OPTIONS(tdm_prepare_options, options, tdm_prepare_options_default(), err);
    TDMI_RESULT(tdm_prepare_result, result, err);
    struct preparing it = {.sink = sink};
    const int64_t begin_ns = tdmi_clock_ns();
    tdm_status status = prepare(&it, options, result, err);
    result->seconds = tdmi_clock_seconds_since(begin_ns);
    tdmi_free(it.made);
    tdmi_prepare_plan_release(&it.plan);
    tdmi_prepare_stored_release(&it.stored);
    tdmi_prepare_look_release(&it.look);
    tdmi_pool_free(it.pool);
    tdmi_prepare_folder_close(it.folder);
    tdmi_source_close(it.source);
    return TDM_WRAP(err, status, "cannot prepare '%s' into '%s'", options->source, options->folder);
}
