/*
 * Equal bytes stand together once the files are sorted by hash.
 *
 * Near copies differ in at most NEAR bits of 64. Cut into NEAR + 1 bands, two such fingerprints
 * agree in at least one whole band: sorting by one band after the other puts every near pair
 * together at least once, and only neighbours have to be compared. A pair is taken in the first
 * band that it agrees in, so it is found once.
 */
#include "data/audit/finding.h"

#include "image/fingerprint.h"
#include <stdlib.h>

enum { BANDS = TDMI_FINGERPRINT_NEAR + 1, PAIRS_MOST = 1000000 };
static const int64_t comparisons_most = 4000000000; /* seconds, not hours, on a set of blanks */

struct entry {
    uint64_t key;
    int64_t file;
};

static int compare_entries(const void *a_, const void *b_)
{
    const struct entry *a = a_, *b = b_;
    int order = (a->key > b->key) - (a->key < b->key);
    return order != 0 ? order : (a->file > b->file) - (a->file < b->file);
}

static int compare_pairs(const void *a_, const void *b_)
{
    const struct tdm_audit_pair *a = a_, *b = b_;
    int order = (a->first > b->first) - (a->first < b->first);
    return order != 0 ? order : (a->second > b->second) - (a->second < b->second);
}

struct search {
    struct tdm_audit *audit;
    const uint64_t *fingerprints;
    struct entry *entries; /* room for all files */
    int64_t pair_capacity, n_compared;
};

static tdm_status add_pair(struct search *search, int64_t a, int64_t b, int distance,
                           tdm_error *err)
{
    struct tdm_audit *audit = search->audit;
    TDMI_TRY(TDMI_MAKE_ROOM(audit->pairs, search->pair_capacity, audit->n_pairs, err));
    audit->pairs[audit->n_pairs++] = (struct tdm_audit_pair){
        .first = a < b ? a : b, .second = a < b ? b : a, .distance = distance};
    return TDM_OK;
}

/* ---- equal bytes ---------------------------------------------------------------------------- */

/* Files [0, n) of entries have the same bytes and stand in the order of the source. */
static tdm_status evaluate_group(struct search *search, const struct entry *entries, int64_t n,
                                 tdm_error *err)
{
    struct tdm_audit_file *files = search->audit->files;
    bool is_conflict = false, is_leak = false;
    for (int64_t i = 1; i < n; i++) {
        is_conflict |= files[entries[i].file].label != files[entries[0].file].label;
        is_leak |= files[entries[i].file].part != files[entries[0].file].part;
    }
    for (int64_t i = 0; i < n; i++) {
        struct tdm_audit_file *file = &files[entries[i].file];
        if (is_conflict)
            file->remarks |= tdmi_verdict_bit(TDM_VERDICT_CONFLICT);
        if (is_leak)
            file->remarks |= tdmi_verdict_bit(TDM_VERDICT_LEAK);
        for (int64_t k = 0; k < i && (file->remarks & tdmi_verdict_bit(TDM_VERDICT_COPY)) == 0; k++)
            if (files[entries[k].file].label == file->label &&
                files[entries[k].file].part == file->part)
                file->remarks |= tdmi_verdict_bit(TDM_VERDICT_COPY);
        if (i > 0)
            TDMI_TRY(add_pair(search, entries[0].file, entries[i].file, -1, err));
    }
    return TDM_OK;
}

/* Leaves in entries the first file of each content that has a fingerprint; *n_distinct of them. */
static tdm_status find_equal(struct search *search, int64_t *n_distinct, tdm_error *err)
{
    const struct tdm_audit_file *files = search->audit->files;
    struct entry *entries = search->entries;
    int64_t n_entries = 0;
    for (int64_t i = 0; i < search->audit->images; i++)
        if (files[i].hash != 0)
            entries[n_entries++] = (struct entry){files[i].hash, i};
    if (n_entries > 0)
        qsort(entries, (size_t)n_entries, sizeof *entries, compare_entries);
    for (int64_t i = 0; i < n_entries;) {
        int64_t end = i + 1;
        while (end < n_entries && entries[end].key == entries[i].key)
            end++;
        const struct entry first = entries[i];
        TDMI_TRY(evaluate_group(search, entries + i, end - i, err));
        if (search->fingerprints && search->fingerprints[first.file] != 0)
            entries[(*n_distinct)++] = first;
        i = end;
    }
    return TDM_OK;
}

/* ---- near copies ---------------------------------------------------------------------------- */

static uint64_t band_of(uint64_t fingerprint, int band)
{
    const int low = 64 * band / BANDS, high = 64 * (band + 1) / BANDS;
    return (fingerprint >> low) & ((UINT64_C(1) << (high - low)) - 1);
}

static bool agree_before(uint64_t a, uint64_t b, int band)
{
    for (int earlier = 0; earlier < band; earlier++)
        if (band_of(a, earlier) == band_of(b, earlier))
            return true;
    return false;
}

static void remark_near(struct tdm_audit_file *first, struct tdm_audit_file *second)
{
    uint32_t both = 0;
    if (first->label != second->label)
        both |= tdmi_verdict_bit(TDM_VERDICT_NEAR_CONFLICT);
    if (first->part != second->part)
        both |= tdmi_verdict_bit(TDM_VERDICT_NEAR_LEAK);
    first->remarks |= both;
    second->remarks |= both != 0 ? both : tdmi_verdict_bit(TDM_VERDICT_NEAR_COPY);
}

static tdm_status find_near_in_band(struct search *search, int64_t n, int band, tdm_error *err)
{
    struct tdm_audit *audit = search->audit;
    const struct entry *entries = search->entries;
    const uint64_t *fingerprints = search->fingerprints;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t own = fingerprints[entries[i].file];
        for (int64_t k = i + 1; k < n && entries[k].key == entries[i].key; k++) {
            const uint64_t other = fingerprints[entries[k].file];
            const int distance = tdmi_fingerprint_distance(own, other);
            audit->is_near_cut =
                ++search->n_compared > comparisons_most || audit->n_pairs >= PAIRS_MOST;
            if (audit->is_near_cut)
                return TDM_OK;
            if (distance > TDMI_FINGERPRINT_NEAR || agree_before(own, other, band))
                continue;
            /* Entries of one band stand in the order of the source. */
            remark_near(&audit->files[entries[i].file], &audit->files[entries[k].file]);
            TDMI_TRY(add_pair(search, entries[i].file, entries[k].file, distance, err));
        }
    }
    return TDM_OK;
}

static tdm_status find_near(struct search *search, int64_t n, tdm_error *err)
{
    struct entry *entries = search->entries;
    for (int band = 0; band < BANDS && n > 0 && !search->audit->is_near_cut; band++) {
        for (int64_t i = 0; i < n; i++)
            entries[i].key = band_of(search->fingerprints[entries[i].file], band);
        qsort(entries, (size_t)n, sizeof *entries, compare_entries);
        TDMI_TRY(find_near_in_band(search, n, band, err));
    }
    return TDM_OK;
}

/* ---- together ------------------------------------------------------------------------------- */

tdm_status tdmi_copies_find(struct tdm_audit *audit, const uint64_t *fingerprints, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct entry *entries = NULL;
    TDMI_TRY(TDMI_NEW(entries, audit->images, err));
    struct search search = {.audit = audit, .fingerprints = fingerprints, .entries = entries};
    int64_t n_distinct = 0;
    TDMI_TRY(find_equal(&search, &n_distinct, err));
    if (fingerprints)
        TDMI_TRY(find_near(&search, n_distinct, err));
    if (audit->n_pairs > 1)
        qsort(audit->pairs, (size_t)audit->n_pairs, sizeof *audit->pairs, compare_pairs);
    return TDM_OK;
}
