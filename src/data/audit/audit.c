/*
 * The audit: a finding for every file, copies among them, sums over all.
 *
 *     files ──sweep──► findings ──► copies ──► verdicts ──► counts, classes, sizes, quarantine
 */
#include "tandem/prepare.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/sized.h"
#include "data/audit/contents.h"
#include "data/audit/finding.h"
#include "data/audit/quarantine.h"

struct auditing {
    const struct tdm_audit_options *options;
    tdmi_source *source;
    struct tdm_audit *audit;
    struct tdmi_finding *findings;          /* by item */
    struct tdmi_finding_scratch *scratches; /* by worker */
    uint64_t *fingerprints;                 /* by item; NULL: not requested */
    tdmi_arena *arena;                      /* of the audit: its strings */
};

void tdm_audit_options_init(struct tdm_audit_options *options, size_t struct_bytes)
{
    static const struct tdm_audit_options usual = {.find_near = true};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

void tdm_audit_release(struct tdm_audit *audit)
{
    tdmi_arena *arena = audit->memory;
    tdmi_free(audit->files);
    tdmi_free(audit->pairs);
    if (arena)
        tdmi_arena_release(arena);
    tdmi_free(arena);
    tdmi_result_clear(audit);
}

/* ---- file by file -----------------------------------------------------------------------------
 */

static tdm_status find_one(void *self, int64_t index, int worker, tdm_error *err)
{
    struct auditing *job = self;
    return tdmi_finding_of(job->source, index, job->fingerprints != NULL, &job->scratches[worker],
                           &job->findings[index], err);
}

static tdm_status find_all(struct auditing *job, tdm_sink sink, tdm_error *err)
{
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    TDMI_AT_END(tdmi_free_at) struct tdmi_finding_scratch *scratches = NULL;
    TDMI_TRY(tdmi_pool_new(job->options->threads, NULL, &pool, err));
    const int threads = tdmi_pool_threads(pool);
    TDMI_TRY(TDMI_NEW(scratches, threads, err));
    job->scratches = scratches;
    const struct tdmi_sweep sweep = {job->source, "checking every image", find_one, job, sink};
    tdm_status status = tdmi_sweep_run(&sweep, pool, err);
    for (int i = 0; i < threads; i++)
        tdmi_finding_scratch_release(&scratches[i]);
    return status;
}

/* ---- the report --------------------------------------------------------------------------------
 */

static tdm_status reserve(struct auditing *job, tdm_error *err)
{
    struct tdm_audit *audit = job->audit;
    const size_t n = (size_t)tdmi_source_items(job->source);
    const size_t n_classes = (size_t)tdmi_source_classes(job->source);
    TDMI_TRY(TDMI_NEW(audit->files, n, err));
    TDMI_TRY(TDMI_NEW(job->findings, n, err));
    if (job->options->find_near)
        TDMI_TRY(TDMI_NEW(job->fingerprints, n, err));
    audit->classes = tdmi_arena_alloc(job->arena, n_classes + 1, sizeof *audit->classes);
    TDMI_CHECK_MEMORY(audit->classes, err);
    return TDM_OK;
}

static tdm_status fill_files(struct auditing *job, tdm_error *err)
{
    struct tdm_audit *audit = job->audit;
    audit->images = tdmi_source_items(job->source);
    for (int64_t i = 0; i < audit->images; i++) {
        const struct tdmi_item item = tdmi_source_item(job->source, i);
        const struct tdmi_finding *finding = &job->findings[i];
        const char *path = tdmi_arena_copy(job->arena, item.path);
        const char *reason = finding->reason[0] ? tdmi_arena_copy(job->arena, finding->reason) : "";
        TDMI_CHECK_MEMORY(path && reason, err);
        audit->files[i] = (struct tdm_audit_file){
            .path = path,
            .label = item.label,
            .part = (int)item.part,
            .width = finding->width,
            .height = finding->height,
            .remarks = finding->remarks,
            .hash = finding->hash,
            .bytes = finding->bytes,
            .reason = reason,
        };
        if (job->fingerprints)
            job->fingerprints[i] = finding->fingerprint;
        audit->with_icc += finding->has_icc;
    }
    return TDM_OK;
}

static tdm_status fill_classes(struct auditing *job, tdm_error *err)
{
    struct tdm_audit *audit = job->audit;
    audit->n_classes = tdmi_source_classes(job->source);
    for (int i = 0; i < audit->n_classes; i++) {
        audit->classes[i].name = tdmi_arena_copy(job->arena, tdmi_source_class(job->source, i));
        TDMI_CHECK_MEMORY(audit->classes[i].name, err);
    }
    return TDM_OK;
}

static void count_size(struct tdm_audit *audit, const struct tdm_audit_file *file)
{
    const int side = file->width < file->height ? file->width : file->height;
    int bin = 0;
    if (side <= 0)
        return;
    while (bin < TDM_AUDIT_SIZES - 1 && side >= 16 << bin)
        bin++;
    audit->sizes[bin]++;
    if (audit->min_width == 0 || file->width < audit->min_width)
        audit->min_width = file->width;
    if (audit->min_height == 0 || file->height < audit->min_height)
        audit->min_height = file->height;
    if (file->width > audit->max_width)
        audit->max_width = file->width;
    if (file->height > audit->max_height)
        audit->max_height = file->height;
}

static void sum_up(struct tdm_audit *audit)
{
    for (int64_t i = 0; i < audit->images; i++) {
        struct tdm_audit_file *file = &audit->files[i];
        file->verdict = tdmi_verdict_among(file->remarks);
        const bool is_bad = tdm_verdict_is_bad(file->verdict);
        audit->counts[file->verdict]++;
        for (enum tdm_verdict v = 0; v < TDM_VERDICT_OK; v++)
            audit->remarks[v] += (file->remarks & tdmi_verdict_bit(v)) != 0;
        audit->bad += is_bad;
        audit->ok += file->verdict == TDM_VERDICT_OK;
        audit->bytes += file->bytes;
        if (file->label >= 0) {
            audit->classes[file->label].n++;
            audit->classes[file->label].bad += is_bad;
        }
        count_size(audit, file);
    }
    audit->remarks[TDM_VERDICT_OK] = audit->ok;
}

static tdm_status check_files(struct auditing *job, tdm_error *err)
{
    TDMI_AT_END(tdmi_lost_rows_release) tdmi_lost_rows lost = {0};
    struct tdm_audit *audit = job->audit;
    tdm_error refusal = {0};
    tdm_status status = TDM_OK;
    for (int64_t i = 0; status == TDM_OK && i < audit->images; i++)
        if (tdm_verdict_is_bad(audit->files[i].verdict))
            status = tdmi_lost_rows_add(&lost, job->source, i, audit->files[i].reason, &refusal);
    if (status == TDM_OK)
        return TDM_OK;
    if (status == TDM_E_INPUT)
        audit->refusal = tdmi_arena_copy(job->arena, tdm_error_sentence(&refusal, 0));
    TDMI_CHECK_MEMORY(audit->refusal, err);
    return TDM_OK;
}

static tdm_status report(struct auditing *job, tdm_error *err)
{
    struct tdm_audit *audit = job->audit;
    TDMI_TRY(fill_classes(job, err));
    TDMI_TRY(fill_files(job, err));
    TDMI_TRY(tdmi_copies_find(audit, job->fingerprints, err));
    audit->others = tdmi_source_ignored(job->source);
    audit->kind = tdmi_source_kind(job->source);
    tdmi_source_unread(job->source, &audit->unread);
    sum_up(audit);
    return check_files(job, err);
}

/* ---- together ----------------------------------------------------------------------------------
 */

static tdm_status run(struct auditing *job, tdm_sink sink, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(job->arena, 1, err));
    job->audit->memory = job->arena;
    TDM_TRY(tdmi_source_open(job->options->source, &job->options->how, &job->source, err), err,
            "opening the images to audit");
    if (job->options->quarantine)
        TDM_TRY(tdmi_quarantine_check_target(job->options->quarantine, job->options->source, err),
                err, "keeping the list of bad files");
    TDM_TRY(reserve(job, err), err, "preparing the audit");
    TDM_TRY(find_all(job, sink, err), err, "checking the images");
    TDM_TRY(report(job, err), err, "summing up");
    if (!job->options->quarantine)
        return TDM_OK;
    return TDM_WRAP(
        err, tdmi_quarantine_write(job->options->quarantine, job->audit, job->options->strict, err),
        "keeping the list of bad files");
}

tdm_status tdm_audit(const struct tdm_audit_options *options, tdm_sink sink,
                     struct tdm_audit *audit, tdm_error *err)
{
    TDMI_OPTIONS(tdm_audit_options, options, tdm_audit_options_default(), err);
    TDMI_RESULT(tdm_audit, audit, err);
    struct auditing job = {.options = options, .audit = audit};
    const int64_t begin_ns = tdmi_clock_ns();
    tdm_status status = run(&job, sink, err);
    audit->seconds = tdmi_clock_seconds_since(begin_ns);
    tdmi_source_close(job.source);
    tdmi_free(job.findings);
    tdmi_free(job.fingerprints);
    if (status == TDM_OK)
        return TDM_OK;
    tdm_audit_release(audit);
    return TDM_WRAP(err, status, "cannot audit %s", options->source);
}
