/*
 * The audit: a finding for every file, copies among them, sums over all.
 *
 *     files ──sweep──► findings ──► copies ──► verdicts ──► counts, classes, sizes, quarantine
 */
#include "tandem/prepare.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/sized.h"
#include "data/audit/copies.h"
#include "data/audit/finding.h"
#include "data/audit/quarantine.h"
#include "data/audit/sweep.h"
#include "data/source/lost_rows.h"

struct auditing {
    const struct tdm_audit_options *options;
    tdmi_source *source;
    struct tdm_audit *audit;
    struct tdmi_finding *findings;          /* by item */
    struct tdmi_finding_scratch *scratches; /* by worker */
    uint64_t *fingerprints;                 /* by item; NULL: not wanted */
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
    struct auditing *it = self;
    return tdmi_finding_of(it->source, index, it->fingerprints != NULL, &it->scratches[worker],
                           &it->findings[index], err);
}

static tdm_status find_all(struct auditing *it, tdm_sink sink, tdm_error *err)
{
    tdmi_pool *pool = NULL;
    tdm_status status = tdmi_pool_new(it->options->threads, false, &pool, err);
    if (status != TDM_OK)
        return status;
    const int threads = tdmi_pool_threads(pool);
    it->scratches = tdmi_alloc((size_t)threads, sizeof *it->scratches);
    if (!it->scratches)
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d threads", threads);
    else
        status = tdmi_sweep_run(&(struct tdmi_sweep){.n_items = tdmi_source_items(it->source),
                                                     .what = "looking at every picture",
                                                     .item = find_one,
                                                     .self = it,
                                                     .sink = sink},
                                pool, err);
    for (int i = 0; it->scratches && i < threads; i++)
        tdmi_finding_scratch_release(&it->scratches[i]);
    tdmi_free(it->scratches);
    tdmi_pool_free(pool);
    return status;
}

/* ---- the report --------------------------------------------------------------------------------
 */

static tdm_status reserve(struct auditing *it, tdm_error *err)
{
    struct tdm_audit *audit = it->audit;
    const size_t n = (size_t)tdmi_source_items(it->source);
    const size_t n_classes = (size_t)tdmi_source_classes(it->source);
    audit->files = tdmi_alloc(n, sizeof *audit->files);
    it->findings = tdmi_alloc(n, sizeof *it->findings);
    it->fingerprints = it->options->find_near ? tdmi_alloc(n, sizeof *it->fingerprints) : NULL;
    audit->classes = tdmi_arena_alloc(it->arena, n_classes + 1, sizeof *audit->classes);
    if (!audit->files || !it->findings || (it->options->find_near && !it->fingerprints) ||
        !audit->classes)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to audit %zu pictures", n);
    return TDM_OK;
}

static tdm_status fill_files(struct auditing *it, tdm_error *err)
{
    struct tdm_audit *audit = it->audit;
    audit->images = tdmi_source_items(it->source);
    for (int64_t i = 0; i < audit->images; i++) {
        const struct tdmi_item item = tdmi_source_item(it->source, i);
        const struct tdmi_finding *finding = &it->findings[i];
        const char *path = tdmi_arena_copy(it->arena, item.path);
        const char *reason = finding->reason[0] ? tdmi_arena_copy(it->arena, finding->reason) : "";
        if (!path || !reason)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory to report on %lld pictures",
                            (long long)audit->images);
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
        if (it->fingerprints)
            it->fingerprints[i] = finding->fingerprint;
        audit->with_icc += finding->has_icc;
    }
    return TDM_OK;
}

static tdm_status fill_classes(struct auditing *it, tdm_error *err)
{
    struct tdm_audit *audit = it->audit;
    audit->n_classes = tdmi_source_classes(it->source);
    for (int i = 0; i < audit->n_classes; i++) {
        const char *name = tdmi_arena_copy(it->arena, tdmi_source_class(it->source, i));
        if (!name)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory to report on %d classes",
                            audit->n_classes);
        audit->classes[i] = (struct tdm_audit_class){.name = name};
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

static tdm_status check_files(struct auditing *it, tdm_error *err)
{
    struct tdm_audit *audit = it->audit;
    tdmi_lost_rows lost = {0};
    tdm_error refusal = {0};
    tdm_status status = TDM_OK;
    for (int64_t i = 0; status == TDM_OK && i < audit->images; i++)
        if (tdm_verdict_is_bad(audit->files[i].verdict))
            status = tdmi_lost_rows_add(&lost, it->source, i, audit->files[i].reason, &refusal);
    tdmi_lost_rows_release(&lost);
    if (status == TDM_OK)
        return TDM_OK;
    if (status == TDM_E_INPUT)
        audit->refusal = tdmi_arena_copy(it->arena, tdm_error_sentence(&refusal, 0));
    return audit->refusal != NULL
               ? TDM_OK
               : TDM_FAIL(err, TDM_E_MEMORY, "no memory to report on %lld pictures",
                          (long long)audit->images);
}

static tdm_status report(struct auditing *it, tdm_error *err)
{
    struct tdm_audit *audit = it->audit;
    struct tdmi_copies copies = {0};
    tdm_status status = fill_classes(it, err);
    if (status == TDM_OK)
        status = fill_files(it, err);
    if (status == TDM_OK)
        status = tdmi_copies_find(audit->files, it->fingerprints, audit->images, &copies, err);
    if (status != TDM_OK) {
        tdmi_copies_release(&copies);
        return status;
    }
    audit->pairs = copies.pairs;
    audit->n_pairs = copies.n_pairs;
    audit->is_near_cut = copies.is_near_cut;
    audit->others = tdmi_source_ignored(it->source);
    audit->kind = tdmi_source_kind(it->source);
    sum_up(audit);
    return check_files(it, err);
}

/* ---- together ----------------------------------------------------------------------------------
 */

static tdm_status run(struct auditing *it, tdm_sink sink, tdm_error *err)
{
    it->arena = tdmi_alloc(1, sizeof *it->arena);
    if (!it->arena)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a report");
    tdmi_arena_init(it->arena, 0);
    it->audit->memory = it->arena;
    TDM_TRY(tdmi_source_open(it->options->source, &it->options->how, &it->source, err), err,
            "opening the pictures to audit");
    if (it->options->quarantine)
        TDM_TRY(tdmi_quarantine_check_target(it->options->quarantine, it->options->source, err),
                err, "keeping the list of bad files");
    TDM_TRY(reserve(it, err), err, "preparing the audit");
    TDM_TRY(find_all(it, sink, err), err, "looking at the pictures");
    TDM_TRY(report(it, err), err, "summing up");
    if (!it->options->quarantine)
        return TDM_OK;
    return TDM_WRAP(
        err, tdmi_quarantine_write(it->options->quarantine, it->audit, it->options->strict, err),
        "keeping the list of bad files");
}

tdm_status tdm_audit(const struct tdm_audit_options *options, tdm_sink sink,
                     struct tdm_audit *audit, tdm_error *err)
{
    TDMI_OPTIONS(tdm_audit_options, options, tdm_audit_options_default(), err);
    TDMI_RESULT(tdm_audit, audit, err);
    struct auditing it = {.options = options, .audit = audit};
    const int64_t begin_ns = tdmi_clock_ns();
    tdm_status status = run(&it, sink, err);
    audit->seconds = tdmi_clock_seconds_since(begin_ns);
    tdmi_source_close(it.source);
    tdmi_free(it.findings);
    tdmi_free(it.fingerprints);
    if (status == TDM_OK)
        return TDM_OK;
    tdm_audit_release(audit);
    return TDM_WRAP(err, status, "cannot audit %s", options->source);
}
