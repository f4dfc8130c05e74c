/* One file: read, described, decoded; and the words for what was found. */
#include "data/audit/finding.h"

#include "base/hash/hash.h"
#include "image/facts.h"
#include "image/fingerprint.h"
#include <stdio.h>

/* Below NEAR_SIDE a fingerprint separates shirts from coats, not one shirt from another. */
enum { TINY_SIDE = 16, NEAR_SIDE = 32 };

void tdmi_finding_scratch_release(struct tdmi_finding_scratch *scratch)
{
    tdmi_text_release(&scratch->bytes);
    tdmi_image_release(&scratch->decoded);
    tdmi_image_release(&scratch->small);
}

/* The innermost sentence has the finding, the outer ones only the callers. */
static void keep_reason(struct tdmi_finding *finding, enum tdm_verdict verdict,
                        const tdm_error *problem)
{
    finding->remarks |= tdmi_verdict_bit(verdict);
    snprintf(finding->reason, sizeof finding->reason, "%s",
             problem->n_frames > 0 ? tdm_error_sentence(problem, 0)
                                   : tdm_status_text(problem->code));
}

static void take_facts(struct tdmi_finding *finding, const struct tdmi_image_facts *facts,
                       enum tdmi_image_format promised)
{
    const bool is_rotated = facts->orientation >= 5;
    const int64_t side = facts->width < facts->height ? facts->width : facts->height;
    const struct {
        enum tdm_verdict verdict;
        bool applies;
    } checks[] = {
        {TDM_VERDICT_WRONG_EXTENSION, promised != TDMI_IMAGE_UNKNOWN && promised != facts->format},
        {TDM_VERDICT_ROTATED, facts->orientation > 1},
        {TDM_VERDICT_CMYK,
         facts->colours == TDMI_COLOURS_CMYK || facts->colours == TDMI_COLOURS_YCCK},
        {TDM_VERDICT_DEEP, facts->bits > 8},
        {TDM_VERDICT_ALPHA, facts->has_alpha},
        {TDM_VERDICT_ANIMATED, facts->n_frames > 1},
        {TDM_VERDICT_TINY, side < TINY_SIDE},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i].applies)
            finding->remarks |= tdmi_verdict_bit(checks[i].verdict);
    finding->width = (int)(is_rotated ? facts->height : facts->width);
    finding->height = (int)(is_rotated ? facts->width : facts->height);
    finding->has_icc = facts->has_icc;
}

/* The decoder's sentence goes first, so that verdict and reason never disagree: a file may also
 * lack its end and fail for something else before. */
static bool is_cut_short(const struct tdmi_image_facts *facts, bool is_described,
                         const tdm_error *problem)
{
    const char *reason = problem->n_frames > 0 ? tdm_error_sentence(problem, 0) : "";
    if (strstr(reason, "truncated"))
        return true;
    return facts->is_cut && is_described && !strstr(reason, "header") && !strstr(reason, "pixels");
}

static tdm_status look_inside(const tdmi_source *source, const char *path, bool has_fingerprint,
                              struct tdmi_finding_scratch *scratch, struct tdmi_finding *finding,
                              tdm_error *err)
{
    const void *bytes = tdmi_text_string(&scratch->bytes);
    const size_t length_bytes = scratch->bytes.length_bytes;
    struct tdmi_image_facts facts = {0};
    const bool is_described =
        tdmi_image_describe(bytes, length_bytes, path, &facts, NULL) == TDM_OK;
    /* The name of a table's row is that of its original file. */
    if (is_described)
        take_facts(finding, &facts,
                   tdmi_source_is_table(source) ? TDMI_IMAGE_UNKNOWN
                                                : tdmi_image_format_of_name(path));

    tdm_error problem = {0};
    struct tdmi_image_limits limits = {.is_strict = true};
    tdm_status status =
        tdmi_image_decode(bytes, length_bytes, path, limits, &scratch->decoded, &problem);
    if (status == TDM_E_INPUT) {
        const tdm_error damage = problem;
        limits.is_strict = false;
        status = tdmi_image_decode(bytes, length_bytes, path, limits, &scratch->decoded, &problem);
        if (status == TDM_OK)
            keep_reason(finding, TDM_VERDICT_DAMAGED, &damage);
    }
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to decode '%s' (%lld x %lld)", path,
                        (long long)facts.width, (long long)facts.height);
    if (status != TDM_OK) {
        keep_reason(finding,
                    status == TDM_E_ABSENT                         ? TDM_VERDICT_UNREADABLE
                    : is_cut_short(&facts, is_described, &problem) ? TDM_VERDICT_TRUNCATED
                                                                   : TDM_VERDICT_CORRUPT,
                    &problem);
        return TDM_OK;
    }
    finding->width = scratch->decoded.width;
    finding->height = scratch->decoded.height;
    if (!has_fingerprint || finding->width < NEAR_SIDE || finding->height < NEAR_SIDE)
        return TDM_OK;
    return TDM_WRAP(
        err, tdmi_image_fingerprint(&scratch->decoded, &scratch->small, &finding->fingerprint, err),
        "cannot take the fingerprint of '%s'", path);
}

tdm_status tdmi_finding_of(const tdmi_source *source, int64_t index, bool has_fingerprint,
                           struct tdmi_finding_scratch *scratch, struct tdmi_finding *finding,
                           tdm_error *err)
{
    const char *path = tdmi_source_item(source, index).path;
    tdm_error problem = {0};
    *finding = (struct tdmi_finding){0};
    TDMI_TRY(tdmi_source_try(source, index, &scratch->bytes, &problem, err));
    if (problem.code != TDM_OK) {
        keep_reason(finding, TDM_VERDICT_UNREADABLE, &problem);
        return TDM_OK;
    }
    finding->bytes = (int64_t)scratch->bytes.length_bytes;
    finding->hash =
        tdmi_xxh64_of(tdmi_text_string(&scratch->bytes), scratch->bytes.length_bytes, 0);
    return look_inside(source, path, has_fingerprint, scratch, finding, err);
}

/* ---- verdicts: include/tandem/verdict.def ---- */

static const struct {
    const char *word, *meaning;
    bool is_bad;
} verdicts[] = {
#define X(name, word, is_bad, meaning) {word, meaning, is_bad},
#include "tandem/verdict.def"
#undef X
    {"ok", "nothing to report", false},
};

const char *tdm_verdict_word(enum tdm_verdict verdict)
{
    return verdicts[verdict].word;
}

const char *tdm_verdict_meaning(enum tdm_verdict verdict)
{
    return verdicts[verdict].meaning;
}

bool tdm_verdict_is_bad(enum tdm_verdict verdict)
{
    return verdicts[verdict].is_bad;
}

enum tdm_verdict tdmi_verdict_among(uint32_t remarks)
{
    enum tdm_verdict verdict = 0;
    while (verdict < TDM_VERDICT_OK && (remarks & tdmi_verdict_bit(verdict)) == 0)
        verdict++;
    return verdict;
}
