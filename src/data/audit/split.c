/*
 * The split works on units: all copies of one content that the source gave the same part (or none).
 *
 *     1. take the content hash of every image (data/audit/contents.h)
 *     2. sort the items by (hash, part): each run is a unit, at home in its lowest class
 *     3. free units that also occur in a given part follow it; stored ones follow the store
 *     4. per class and part, in the order of one keyed hash: keep what fraction and per_class allow
 *     5. per class, in the order of another: the lowest go to validation, the highest to train, and
 *        of what lies between the lowest to test
 *
 * Every step orders by hashes of content, so names, folders' order and thread count do not matter.
 */
#include "data/audit/split.h"

#include "base/bytes.h"
#include "base/hash/hash.h"
#include "tandem/log.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* OPEN to TEST are the parts that a source gives. */
enum side { SIDE_OPEN, SIDE_TRAIN, SIDE_VAL, SIDE_TEST, SIDE_NEITHER, SIDES };

struct entry { /* a readable, labelled image */
    uint64_t hash;
    int64_t item;
    enum tdmi_part part;
    int label;
};

struct unit {
    uint64_t hash, key;
    int64_t first, n; /* its entries */
    enum tdmi_part part;
    int label; /* the lowest of its copies: its home */
    enum side side;
    bool is_forced; /* follows a copy in a given part: outside all counting */
    bool is_stored;
};

struct work {
    const tdmi_source *source;
    struct tdmi_split_options options;
    struct tdmi_split_stored stored;
    struct entry *entries;
    int64_t n_entries;
    struct unit *units;
    int64_t n_units, n_torn;
};

/* ---- units --------------------------------------------------------------------------------- */

uint64_t tdmi_split_key(uint64_t hash, enum tdmi_split_purpose purpose, uint64_t seed)
{
    uint8_t bytes[9] = {[8] = (uint8_t)purpose};
    tdmi_write_little(bytes, hash, 8);
    return tdmi_xxh64_of(bytes, sizeof bytes, seed);
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_entries(const void *a_, const void *b_)
{
    const struct entry *a = a_, *b = b_;
    int order = COMPARE(a->hash, b->hash);
    if (order == 0)
        order = COMPARE(a->part, b->part);
    return order != 0 ? order : COMPARE(a->item, b->item);
}

static int compare_units(const void *a_, const void *b_)
{
    const struct unit *a = a_, *b = b_;
    int order = COMPARE(a->label, b->label);
    if (order == 0)
        order = COMPARE(a->part, b->part);
    if (order == 0)
        order = COMPARE(a->key, b->key);
    return order != 0 ? order : COMPARE(a->hash, b->hash);
}

/* Units of one content stand together, free ones first. A free one follows its given copy: out of
 * all use beside a test image, else to validation, else to train. */
static void follow_given(struct unit *units, int64_t n)
{
    static const enum side by_strength[] = {SIDE_TEST, SIDE_VAL, SIDE_TRAIN};
    if (n < 2 || units[0].part != TDMI_PART_NONE)
        return;
    for (size_t s = 0; s < 3 && !units[0].is_forced; s++)
        for (int64_t i = 1; i < n; i++)
            if (units[i].side == by_strength[s]) {
                units[0].side = by_strength[s] == SIDE_TEST ? SIDE_NEITHER : by_strength[s];
                units[0].is_forced = true;
            }
}

static void find_units(struct work *work)
{
    const struct entry *entries = work->entries;
    for (int64_t i = 0; i < work->n_entries;) {
        const int64_t first = i, first_unit = work->n_units;
        uint64_t hash = entries[i].hash;
        const int label = entries[i].label;
        bool is_torn = false;
        while (i < work->n_entries && entries[i].hash == hash) {
            struct unit *unit = &work->units[work->n_units++];
            *unit = (struct unit){.hash = hash,
                                  .first = i,
                                  .part = entries[i].part,
                                  .label = entries[i].label,
                                  .side = (enum side)entries[i].part};
            for (; i < work->n_entries && entries[i].hash == hash && entries[i].part == unit->part;
                 i++) {
                unit->n++;
                is_torn = is_torn || entries[i].label != label;
                if (entries[i].label < unit->label)
                    unit->label = entries[i].label;
            }
        }
        work->n_torn += is_torn ? i - first : 0;
        follow_given(&work->units[first_unit], work->n_units - first_unit);
    }
    for (int64_t i = 0; i < work->n_units; i++) {
        struct unit *unit = &work->units[i];
        unit->key = tdmi_split_key(unit->hash, TDMI_SPLIT_SELECT, work->options.seed);
        if (unit->side != SIDE_OPEN)
            continue;
        const struct tdmi_split_stored *stored = &work->stored;
        unit->side = tdmi_hashes_have(stored->val, stored->n_val, unit->hash)       ? SIDE_VAL
                     : tdmi_hashes_have(stored->train, stored->n_train, unit->hash) ? SIDE_TRAIN
                     : tdmi_hashes_have(stored->test, stored->n_test, unit->hash)   ? SIDE_TEST
                     : tdmi_hashes_have(stored->rest, stored->n_rest, unit->hash)   ? SIDE_NEITHER
                                                                                    : SIDE_OPEN;
        unit->is_stored = unit->side != SIDE_OPEN;
    }
    if (work->n_units > 0)
        qsort(work->units, (size_t)work->n_units, sizeof *work->units, compare_units);
}

/* ---- choosing ------------------------------------------------------------------------------ */

static int64_t rounded(double fraction, int64_t n)
{
    return (int64_t)floor(fraction * (double)n + 0.5);
}

/* Leave out the units of one class and part, in the order of the selecting key, that exceed
 * fraction and per_class. Stored units stay and count. */
static void select_units(const struct tdmi_split_options *options, struct unit *units, int64_t n)
{
    int64_t n_counted = 0, n_stored = 0;
    for (int64_t i = 0; i < n; i++) {
        n_counted += !units[i].is_forced;
        n_stored += units[i].is_stored;
    }
    int64_t n_allowed = rounded(options->fraction, n_counted);
    if (n_allowed < 1)
        n_allowed = 1;
    if (options->per_class > 0 && n_allowed > options->per_class)
        n_allowed = options->per_class;
    int64_t n_new = n_allowed - n_stored;
    for (int64_t i = 0; i < n; i++) {
        if (units[i].is_forced || units[i].is_stored)
            continue;
        if (n_new > 0)
            n_new--;
        else
            units[i].side = SIDE_NEITHER;
    }
}

/* Numbers of n_used units for each side, together at most n_used. */
static void find_shares(const struct tdmi_split_options *options, int64_t n_used,
                        int64_t shares[SIDES])
{
    const double sum = options->train_fraction + options->val_fraction + options->test_fraction;
    int64_t val = rounded(options->val_fraction, n_used);
    if (val < 1 && options->val_fraction > 0)
        val = 1;
    if (val > n_used - 1)
        val = n_used > 0 ? n_used - 1 : 0;
    int64_t train = rounded(options->train_fraction, n_used);
    if (train < 1)
        train = 1;
    const bool has_test = options->test_fraction > 0.0, is_all = sum > 1 - 1e-9;
    /* The numbers add up to n_used where the fractions add up to 1, however they are rounded. */
    if ((is_all && !has_test) || train > n_used - val)
        train = n_used - val;
    const int64_t left = n_used - val - train;
    const int64_t test = is_all ? left : rounded(options->test_fraction, n_used);
    shares[SIDE_VAL] = val;
    shares[SIDE_TRAIN] = train;
    shares[SIDE_TEST] = !has_test ? 0 : test < left ? test : left;
}

/* Images of the smallest class whose share for the test is not rounded to none. */
static int64_t least_with_test(const struct tdmi_split_options *options)
{
    int64_t shares[SIDES] = {0}, n = 1;
    for (; shares[SIDE_TEST] == 0 && n < INT32_MAX; n++)
        find_shares(options, n, shares);
    return n - 1;
}

/* Units that the sides still need. */
static int64_t missing(int64_t want, int64_t have, int64_t most)
{
    const int64_t more = want > have ? want - have : 0;
    return more < most ? more : most;
}

/* Divide the free units of one class in the order of the dividing key: the lowest go to validation,
 * the highest to train, the lowest of those between to test. */
static void divide_units(const struct tdmi_split_options *options, struct unit *units, int64_t n)
{
    int64_t n_used = 0, seen = 0, have[SIDES] = {0}, shares[SIDES] = {0};
    for (int64_t i = 0; i < n; i++) {
        if (units[i].is_forced || (units[i].side == SIDE_NEITHER && !units[i].is_stored))
            continue;
        n_used++;
        have[units[i].side]++;
    }
    find_shares(options, n_used, shares);
    const int64_t n_open = have[SIDE_OPEN];
    const int64_t new_val = missing(shares[SIDE_VAL], have[SIDE_VAL], n_open);
    const int64_t new_train = missing(shares[SIDE_TRAIN], have[SIDE_TRAIN], n_open - new_val);
    const int64_t new_test =
        missing(shares[SIDE_TEST], have[SIDE_TEST], n_open - new_val - new_train);
    for (int64_t i = 0; i < n; i++) {
        if (units[i].side != SIDE_OPEN)
            continue;
        units[i].side = seen < new_val               ? SIDE_VAL
                        : seen >= n_open - new_train ? SIDE_TRAIN
                        : seen < new_val + new_test  ? SIDE_TEST
                                                     : SIDE_NEITHER;
        seen++;
    }
}

static void choose(struct work *work)
{
    for (int64_t first = 0, end; first < work->n_units; first = end) {
        struct unit *units = &work->units[first];
        for (end = first + 1; end < work->n_units && work->units[end].label == units->label &&
                              work->units[end].part == units->part;
             end++)
            ;
        if (units->part == TDMI_PART_TEST)
            continue;
        select_units(&work->options, units, end - first);
        if (units->part != TDMI_PART_NONE)
            continue;
        for (int64_t i = 0; i < end - first; i++)
            units[i].key = tdmi_split_key(units[i].hash, TDMI_SPLIT_SIDE, work->options.seed);
        qsort(units, (size_t)(end - first), sizeof *units, compare_units);
        divide_units(&work->options, units, end - first);
    }
}

/* ---- the result ---------------------------------------------------------------------------- */

static tdm_status check_classes(const struct work *work, const int64_t *n_items,
                                const int64_t *n_train, tdm_error *err)
{
    int n_classes = tdmi_source_classes(work->source), n_bad = 0, first_bad = -1;
    for (int c = 0; c < n_classes; c++)
        if (n_train[c] == 0) {
            n_bad++;
            first_bad = first_bad < 0 ? c : first_bad;
        }
    if (n_bad == 0)
        return TDM_OK;
    char more[64] = "";
    if (n_bad > 1)
        snprintf(more, sizeof more, " (and %d more %s)", n_bad - 1,
                 n_bad == 2 ? "class" : "classes");
    const char *name = tdmi_source_class(work->source, first_bad);
    if (n_items[first_bad] == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "class '%s'%s has no image that can be read: add some or remove the class",
                        name, more);
    return TDM_FAIL(
        err, TDM_E_INPUT,
        "class '%s'%s has %lld image%s but none to train on: its contents are copies of "
        "other classes' or parts', or given to validation or test",
        name, more, (long long)n_items[first_bad], n_items[first_bad] == 1 ? "" : "s");
}

static int compare_items(const void *a, const void *b)
{
    return COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

static bool are_all_empty(const struct work *work)
{
    const uint64_t empty = tdmi_contents_hash("", 0);
    for (int64_t e = 0; e < work->n_entries; e++)
        if (work->entries[e].hash != empty)
            return false;
    return true;
}

/* The first images in use, for a sentence: "a/1.jpg, b/2.jpg and 3 more". */
static const char *name_entries(const struct work *work, char *text, size_t text_bytes)
{
    int64_t n = 0;
    *text = '\0';
    for (; n < work->n_entries && n < 3; n++) {
        const size_t used = strlen(text);
        snprintf(text + used, text_bytes - used, "%s%.80s", n > 0 ? ", " : "",
                 tdmi_source_item(work->source, work->entries[n].item).path);
    }
    const size_t used = strlen(text);
    if (n < work->n_entries)
        snprintf(text + used, text_bytes - used, " and %lld more",
                 (long long)(work->n_entries - n));
    return text;
}

static tdm_status refuse_no_val(const struct work *work, tdm_error *err)
{
    const char *path = tdmi_source_path(work->source);
    const struct tdmi_split_options *options = &work->options;
    char names[300];
    if (are_all_empty(work))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "none of the %lld images of '%s' has bytes in it: all files are empty (%s)",
                        (long long)work->n_entries, path, name_entries(work, names, sizeof names));
    if (options->fraction < 1.0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "no image of '%s' is left for validation: --fraction %g leaves every class "
                        "only one distinct image; use a larger one",
                        path, options->fraction);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "no image of '%s' is left for validation: every class has only one distinct "
                    "image in use (%s); add images; tandem audit tells whether these can be read",
                    path, name_entries(work, names, sizeof names));
}

static tdm_status collect(const struct work *work, tdmi_split *split, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) int64_t *n_items = NULL;
    TDMI_AT_END(tdmi_free_at) int64_t *n_train = NULL;
    struct {
        int64_t **items, *n;
    } const sides[] = {{&split->train, &split->n_train},
                       {&split->val, &split->n_val},
                       {&split->test, &split->n_test}};
    TDMI_TRY(TDMI_NEW(n_items, tdmi_source_classes(work->source), err));
    TDMI_TRY(TDMI_NEW(n_train, tdmi_source_classes(work->source), err));
    for (enum side side = SIDE_TRAIN; side <= SIDE_TEST; side++)
        TDMI_TRY(TDMI_NEW(*sides[side - SIDE_TRAIN].items, work->n_entries, err));
    for (int64_t u = 0; u < work->n_units; u++) {
        const struct unit *unit = &work->units[u];
        for (int64_t e = unit->first; e < unit->first + unit->n; e++) {
            const struct entry *entry = &work->entries[e];
            n_items[entry->label]++;
            n_train[entry->label] += unit->side == SIDE_TRAIN;
            if (unit->side < SIDE_NEITHER)
                (*sides[unit->side - 1].items)[(*sides[unit->side - 1].n)++] = entry->item;
        }
    }
    for (int s = 0; s < 3; s++)
        qsort(*sides[s].items, (size_t)*sides[s].n, sizeof(int64_t), compare_items);
    TDMI_TRY(check_classes(work, n_items, n_train, err));
    if (split->n_val == 0 && work->options.val_fraction > 0)
        return refuse_no_val(work, err);
    if (split->n_test == 0 && work->options.test_fraction > 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "no image of '%s' is left for the test: a class of %lld distinct ones has "
                        "one; add images, or make the third part larger",
                        tdmi_source_path(work->source), (long long)least_with_test(&work->options));
    return TDM_OK;
}

/* Copies that the source itself put on several sides are kept, but not silently. */
static void warn_of_leaks(const struct work *work)
{
    int64_t n_leaks = 0, n_left_out = 0;
    for (int64_t i = 1; i < work->n_entries; i++) {
        const struct entry *a = &work->entries[i - 1], *b = &work->entries[i];
        n_leaks += a->hash == b->hash && a->part != b->part && a->part != TDMI_PART_NONE;
    }
    for (int64_t u = 0; u < work->n_units; u++)
        if (work->units[u].is_forced && work->units[u].side == SIDE_NEITHER)
            n_left_out += work->units[u].n;
    if (n_leaks > 0)
        tdm_log(TDM_LOG_WARNING, "%lld %s of '%s' %s a copy in another given part",
                (long long)n_leaks, n_leaks == 1 ? "image" : "images",
                tdmi_source_path(work->source), n_leaks == 1 ? "has" : "have");
    if (n_left_out > 0)
        tdm_log(TDM_LOG_WARNING, "left out of '%s': %lld %s of images of its test part",
                tdmi_source_path(work->source), (long long)n_left_out,
                n_left_out == 1 ? "copy" : "copies");
}

/* Images of a content that stood in their class before: entries of one content stand together. */
static int64_t count_copies(const struct work *work)
{
    const struct entry *entries = work->entries;
    int64_t n_copies = 0;
    for (int64_t i = 1; i < work->n_entries; i++) {
        int64_t before = i;
        while (before > 0 && entries[before - 1].hash == entries[i].hash &&
               entries[before - 1].label != entries[i].label)
            before--;
        n_copies += before > 0 && entries[before - 1].hash == entries[i].hash;
    }
    return n_copies;
}

static tdm_status check_options(const struct tdmi_split_options *o, tdm_error *err)
{
    double sum = o->train_fraction + o->val_fraction + o->test_fraction;
    if (!(o->train_fraction > 0) || !(o->val_fraction >= 0) || !(o->test_fraction >= 0) ||
        !(sum <= 1 + 1e-9))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a split of %g,%g,%g is not possible: train must be above 0, validation "
                        "and test at least 0, and all together at most 1",
                        o->train_fraction, o->val_fraction, o->test_fraction);
    if (!(o->fraction > 0 && o->fraction <= 1))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a fraction of %g of every class cannot be used: above 0 and at most 1 can",
                        o->fraction);
    if (o->per_class < 0)
        return TDM_FAIL(err, TDM_E_USAGE, "%d images per class cannot be used: 0 means all",
                        o->per_class);
    return TDM_OK;
}

/* Sets is_given too. Where the source gives no validation, its train images are free; where it
 * gives a test, none is taken. */
static void find_entries(struct work *work, const tdmi_contents *contents, tdmi_split *split)
{
    bool has[TDMI_PART_TEST + 1] = {false};
    for (int64_t i = 0; i < contents->n_items; i++)
        has[tdmi_source_item(work->source, i).part] = true;
    if (has[TDMI_PART_TEST]) {
        work->options.train_fraction += work->options.test_fraction;
        work->options.test_fraction = 0.0;
    }
    split->is_given = true;
    for (int64_t i = 0; i < contents->n_items; i++) {
        const struct tdmi_item item = tdmi_source_item(work->source, i);
        const bool is_free = item.part == TDMI_PART_TRAIN && !has[TDMI_PART_VAL];
        if (contents->hashes[i] == 0 || item.label < 0)
            continue;
        struct entry *entry = &work->entries[work->n_entries++];
        *entry = (struct entry){contents->hashes[i], i, is_free ? TDMI_PART_NONE : item.part,
                                item.label};
        split->is_given &= entry->part != TDMI_PART_NONE;
    }
    split->is_given &= work->n_entries > 0;
    if (work->n_entries > 0)
        qsort(work->entries, (size_t)work->n_entries, sizeof *work->entries, compare_entries);
}

static void release_work(struct work *work)
{
    tdmi_free(work->units);
    tdmi_free(work->entries);
}

static tdm_status make(const tdmi_source *source, const tdmi_contents *contents,
                       struct tdmi_split_options options, struct tdmi_split_stored stored,
                       tdmi_split *split, tdm_error *err)
{
    TDMI_AT_END(release_work)
    struct work work = {.source = source, .options = options, .stored = stored};
    TDMI_TRY(check_options(&options, err));
    if (tdmi_source_classes(source) == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "its images have no classes: put them into one folder per class");
    TDMI_TRY(TDMI_NEW(work.entries, contents->n_items, err));
    TDMI_TRY(TDMI_NEW(work.units, contents->n_items, err));
    find_entries(&work, contents, split);
    split->n_copies = count_copies(&work);
    find_units(&work);
    split->n_torn = work.n_torn;
    choose(&work);
    warn_of_leaks(&work);
    return collect(&work, split, err);
}

tdm_status tdmi_split_make(const tdmi_source *source, const tdmi_contents *contents,
                           struct tdmi_split_options options, struct tdmi_split_stored stored,
                           tdmi_split *split, tdm_error *err)
{
    tdmi_split_release(split);
    const tdm_status status = make(source, contents, options, stored, split, err);
    if (status != TDM_OK)
        tdmi_split_release(split);
    return TDM_WRAP(err, status, "cannot split '%s'", tdmi_source_path(source));
}

void tdmi_split_release(tdmi_split *split)
{
    tdmi_free(split->train);
    tdmi_free(split->val);
    tdmi_free(split->test);
    *split = (tdmi_split){0};
}
