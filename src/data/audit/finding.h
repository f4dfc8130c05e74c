/*
 * Findings about one file: the facts of its header, whether it decodes, and the verdicts that
 * follow. audit collects them and looks for copies among them; prepare checks every image in the
 * same checks before it stores it.
 */
#pragma once

#include "data/source/source.h"
#include "tandem/prepare.h"

enum { TDMI_REASON_BYTES = TDM_ERROR_TEXT_BYTES };

struct tdmi_finding {
    uint32_t remarks;  /* bit v: verdict v applies; of the file alone, copies are not known here */
    int width, height; /* as shown; 0: unknown */
    uint64_t hash;     /* XXH64 of the bytes; 0: not read */
    uint64_t fingerprint; /* 0: none, see image/fingerprint.h */
    int64_t bytes;
    bool has_icc;
    char reason[TDMI_REASON_BYTES]; /* why it is bad or damaged; else "" */
};

/* One a thread; start from a zeroed object. After a finding that is not bad, decoded holds the
 * image and bytes its file. */
struct tdmi_finding_scratch {
    tdmi_text bytes;
    tdmi_image decoded, small;
};
void tdmi_finding_scratch_release(struct tdmi_finding_scratch *scratch);

/* Fails only where no memory is left or the source fails: everything else is a finding. Any thread.
 */
tdm_status tdmi_finding_of(const tdmi_source *source, int64_t index, bool has_fingerprint,
                           struct tdmi_finding_scratch *scratch, struct tdmi_finding *finding,
                           tdm_error *err) TDM_MUST_USE;

/* Look for equal bytes, by hash, and for images that show the same, by fingerprints (by file; 0:
 * none) or, with NULL, for equal bytes only. Adds remarks to the files, and the pairs of the audit.
 */
tdm_status tdmi_copies_find(struct tdm_audit *audit, const uint64_t *fingerprints,
                            tdm_error *err) TDM_MUST_USE;

/* The weightiest of some remarks. */
enum tdm_verdict tdmi_verdict_among(uint32_t remarks);
static inline uint32_t tdmi_verdict_bit(enum tdm_verdict verdict)
{
    return 1u << verdict;
}
