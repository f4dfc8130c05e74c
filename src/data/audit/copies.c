/*
 * Equal bytes stand together once the files are sorted by hash.
 *
 * Near copies differ in at most NEAR bits of 64. Cut into NEAR + 1 bands, two such fingerprints
 * agree in at least one whole band: sorting by one band after the other brings every near pair
 * together at least once, and only neighbours have to be compared. A pair is taken in the first
 * band that it agrees in, so it is found once.
 */
#include "data/audit/copies.h"

#include "base/memory.h"
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

static tdm_status add_pair(struct tdmi_copies *copies, struct tdm_audit_pair pair, tdm_error *err)
{
    if (!TDMI_GROW(copies->pairs, copies->capacity, copies->n_pairs))
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for more than %lld pairs of copies",
                        (long long)copies->n_pairs);
    if (pair.first > pair.second) {
        int64_t first = pair.first;
        pair.first = pair.second;
        pair.second = first;
    }
    copies->pairs[copies->n_pairs++] = pair;
    return TDM_OK;
}

/* ---- equal bytes ---------------------------------------------------------------------------- */

/* Files [0, n) of entries have the same bytes and stand in the order of the source. */
static tdm_status evaluate_group(struct tdm_audit_file *files, const struct entry *entries,
                                 int64_t n, struct tdmi_copies *copies, tdm_error *err)
{
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
        if (i == 0)
            continue;
        tdm_status status =
            add_pair(copies, (struct tdm_audit_pair){entries[0].file, entries[i].file, -1}, err);
        if (status != TDM_OK)
            return status;
    }
    return TDM_OK;
}

/* Leaves in entries the first file of each content that has a fingerprint; *n_distinct of them. */
static tdm_status find_equal(struct tdm_audit_file *files, const uint64_t *fingerprints, int64_t n,
                             struct entry *entries, int64_t *n_distinct, struct tdmi_copies *copies,
                             tdm_error *err)
{
    int64_t n_entries = 0;
    for (int64_t i = 0; i < n; i++)
        if (files[i].hash != 0)
            entries[n_entries++] = (struct entry){files[i].hash, i};
    if (n_entries > 0)
        qsort(entries, (size_t)n_entries, sizeof *entries, compare_entries);
    *n_distinct = 0;
    for (int64_t i = 0; i < n_entries;) {
        int64_t end = i + 1;
        while (end < n_entries && entries[end].key == entries[i].key)
            end++;
        const struct entry first = entries[i];
        tdm_status status = evaluate_group(files, entries + i, end - i, copies, err);
        if (status != TDM_OK)
            return status;
        if (fingerprints && fingerprints[first.file] != 0)
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
    if (first->label != second->label) {
        first->remarks |= tdmi_verdict_bit(TDM_VERDICT_NEAR_CONFLICT);
        second->remarks |= tdmi_verdict_bit(TDM_VERDICT_NEAR_CONFLICT);
    }
    if (first->part != second->part) {
        first->remarks |= tdmi_verdict_bit(TDM_VERDICT_NEAR_LEAK);
        second->remarks |= tdmi_verdict_bit(TDM_VERDICT_NEAR_LEAK);
    }
    if (first->label == second->label && first->part == second->part)
        second->remarks |= tdmi_verdict_bit(TDM_VERDICT_NEAR_COPY);
}

static tdm_status find_near_in_band(struct tdm_audit_file *files, const uint64_t *fingerprints,
                                    const struct entry *entries, int64_t n, int band,
                                    int64_t *n_compared, struct tdmi_copies *copies, tdm_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t own = fingerprints[entries[i].file];
        for (int64_t k = i + 1; k < n && entries[k].key == entries[i].key; k++) {
            const uint64_t other = fingerprints[entries[k].file];
            const int distance = tdmi_fingerprint_distance(own, other);
            if (++*n_compared > comparisons_most || copies->n_pairs >= PAIRS_MOST) {
                copies->is_near_cut = true;
                return TDM_OK;
            }
            if (distance > TDMI_FINGERPRINT_NEAR || agree_before(own, other, band))
                continue;
            /* Entries of one band stand in the order of the source. */
            remark_near(&files[entries[i].file], &files[entries[k].file]);
            tdm_status status = add_pair(
                copies, (struct tdm_audit_pair){entries[i].file, entries[k].file, distance}, err);
            if (status != TDM_OK)
                return status;
        }
    }
    return TDM_OK;
}

static tdm_status find_near(struct tdm_audit_file *files, const uint64_t *fingerprints,
                            struct entry *entries, int64_t n, struct tdmi_copies *copies,
                            tdm_error *err)
{
    int64_t n_compared = 0;
    for (int band = 0; band < BANDS && n > 0 && !copies->is_near_cut; band++) {
        for (int64_t i = 0; i < n; i++)
            entries[i].key = band_of(fingerprints[entries[i].file], band);
        qsort(entries, (size_t)n, sizeof *entries, compare_entries);
        tdm_status status =
            find_near_in_band(files, fingerprints, entries, n, band, &n_compared, copies, err);
        if (status != TDM_OK)
            return status;
    }
    return TDM_OK;
}

/* ---- together ------------------------------------------------------------------------------- */

tdm_status tdmi_copies_find(struct tdm_audit_file *files, const uint64_t *fingerprints, int64_t n,
                            struct tdmi_copies *copies, tdm_error *err)
{
    int64_t n_distinct = 0;
    struct entry *entries = tdmi_alloc((size_t)n, sizeof *entries);
    if (!entries)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to look for copies among %lld pictures",
                        (long long)n);
    tdm_status status = find_equal(files, fingerprints, n, entries, &n_distinct, copies, err);
    if (status == TDM_OK && fingerprints)
        status = find_near(files, fingerprints, entries, n_distinct, copies, err);
    if (copies->n_pairs > 1)
        qsort(copies->pairs, (size_t)copies->n_pairs, sizeof *copies->pairs, compare_pairs);
    tdmi_free(entries);
    return status;
}

void tdmi_copies_release(struct tdmi_copies *copies)
{
    tdmi_free(copies->pairs);
    *copies = (struct tdmi_copies){0};
}
