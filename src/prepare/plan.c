/* Everything is decided by sorting hashes, so the order in which a source lists does not matter. */
#include "prepare/plan.h"

#include "base/bytes.h"
#include "base/hash/hash.h"
#include "base/text/json.h"
#include <limits.h>
#include <stdlib.h>

enum { LARGEST_PART_ROWS = 1 << 17 };
#define PART_BYTES ((int64_t)128 << 20)

/* Part of every id: another rule makes another plan. */
static const char rule[] = "tandem prepare 1";

void tdmi_prepare_plan_release(tdmi_prepare_plan *plan)
{
    tdmi_free(plan->classes);
    tdmi_free(plan->rows);
    tdmi_free(plan->parts);
    tdmi_free(plan->is_kept);
    *plan = (tdmi_prepare_plan){0};
}

/* ---- sides -------------------------------------------------------------------------------- */

enum { OUTSIDE = TDMI_PREPARE_SPLITS };

/* A copy of a given test image would be trained on, or counted twice. */
static uint8_t side_of_rest(struct tdmi_item item, uint64_t hash, const uint64_t *test,
                            int64_t n_test)
{
    if (item.label < 0)
        return TDMI_PREPARE_NONE;
    if (item.part == TDMI_PART_TEST || !tdmi_hashes_have(test, n_test, hash))
        return TDMI_PREPARE_TEST;
    return OUTSIDE;
}

static tdm_status find_sides(const tdmi_source *source, const tdmi_contents *contents,
                             const struct tdmi_prepare_form *form,
                             const tdmi_prepare_stored *stored, uint8_t *sides, bool *is_given,
                             tdm_error *err)
{
    const struct tdmi_split_options options = {.train_fraction = form->options->train_fraction,
                                               .val_fraction = form->options->val_fraction,
                                               .fraction = 1,
                                               .seed = form->options->seed};
    TDMI_AT_END(tdmi_split_release) tdmi_split split = {0};
    TDMI_AT_END(tdmi_free_at) uint64_t *test = NULL; /* contents that the source gave as test */
    int64_t n_test = 0;
    TDMI_TRY(tdmi_split_make(source, contents, options, stored->sides, &split, err));
    TDMI_TRY(TDMI_NEW(test, contents->n_items, err));
    for (int64_t i = 0; i < contents->n_items; i++)
        if (contents->hashes[i] != 0 && tdmi_source_item(source, i).part == TDMI_PART_TEST)
            test[n_test++] = contents->hashes[i];
    tdmi_hashes_sort(test, n_test);
    for (int64_t i = 0; i < contents->n_items; i++)
        sides[i] = contents->hashes[i] == 0 ? OUTSIDE
                                            : side_of_rest(tdmi_source_item(source, i),
                                                           contents->hashes[i], test, n_test);
    for (int64_t i = 0; i < split.n_train; i++)
        sides[split.train[i]] = TDMI_PREPARE_TRAIN;
    for (int64_t i = 0; i < split.n_val; i++)
        sides[split.val[i]] = TDMI_PREPARE_VAL;
    *is_given = split.is_given;
    return TDM_OK;
}

/* ---- rows --------------------------------------------------------------------------------- */

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* 0: the same image under the same name and label, on the same side. */
static int compare_pictures(const struct tdmi_prepare_row *a, const struct tdmi_prepare_row *b)
{
    int order = COMPARE(a->split, b->split);
    if (order == 0)
        order = COMPARE(a->key, b->key);
    if (order == 0)
        order = COMPARE(a->hash, b->hash);
    if (order == 0)
        order = strcmp(a->path, b->path);
    return order != 0 ? order : COMPARE(a->label, b->label);
}

static int compare_rows(const void *a_, const void *b_)
{
    const struct tdmi_prepare_row *a = a_, *b = b_;
    const int order = compare_pictures(a, b);
    return order != 0 ? order : COMPARE(a->item, b->item);
}

static void sort_rows(struct tdmi_prepare_row *rows, int64_t n)
{
    if (n > 0)
        qsort(rows, (size_t)n, sizeof *rows, compare_rows);
}

static bool was_dropped(const tdmi_prepare_stored *stored, uint64_t hash)
{
    for (int64_t d = 0; d < stored->n_drops; d++)
        if (stored->drops[d].hash == hash)
            return true;
    return false;
}

static void list_rows(const tdmi_source *source, const tdmi_contents *contents, uint64_t seed,
                      const tdmi_prepare_stored *stored, const int *labels, const uint8_t *sides,
                      tdmi_prepare_plan *plan)
{
    for (int64_t i = 0; i < contents->n_items; i++) {
        const uint64_t hash = contents->hashes[i];
        const struct tdmi_item item = tdmi_source_item(source, i);
        if (sides[i] == OUTSIDE) {
            plan->n_left_out += hash != 0;
            continue;
        }
        if (was_dropped(stored, hash))
            continue;
        plan->rows[plan->n_rows++] =
            (struct tdmi_prepare_row){.hash = hash,
                                      .key = tdmi_split_key(hash, TDMI_SPLIT_ROWS, seed),
                                      .path = item.path,
                                      .item = i,
                                      .label = item.label < 0 ? -1 : labels[item.label],
                                      .split = (enum tdmi_prepare_split)sides[i]};
        plan->n_in[sides[i]]++;
    }
    sort_rows(plan->rows, plan->n_rows);
}

/* ---- classes ------------------------------------------------------------------------------ */

/* Stored labels keep their meaning, so that old and new parts agree. */
static tdm_status find_classes(const tdmi_source *source, const tdmi_prepare_stored *stored,
                               tdmi_prepare_plan *plan, int *labels, tdm_error *err)
{
    const int n = tdmi_source_classes(source);
    TDMI_TRY(TDMI_NEW(plan->classes, n + stored->n_classes, err));
    for (int c = 0; c < stored->n_classes; c++)
        plan->classes[plan->n_classes++] = stored->classes[c];
    for (int c = 0; c < n; c++) {
        const char *name = tdmi_source_class(source, c);
        labels[c] = 0;
        while (labels[c] < stored->n_classes && strcmp(stored->classes[labels[c]], name) != 0)
            labels[c]++;
        if (labels[c] < stored->n_classes)
            continue;
        labels[c] = plan->n_classes;
        plan->classes[plan->n_classes++] = name;
    }
    return TDM_OK;
}

/* ---- the finished table ---------------------------------------------------------------- */

/* Merge both sorted lists: which stored rows are still planned, and which planned rows are stored.
 */
static void match(const struct tdmi_prepare_row *planned, int64_t n_planned,
                  const struct tdmi_prepare_row *held, int64_t n_held, int64_t *held_by,
                  bool *is_planned)
{
    for (int64_t w = 0, h = 0; w < n_planned;) {
        const int order = h < n_held ? compare_pictures(&planned[w], &held[h]) : -1;
        if (order < 0) {
            held_by[w++] = -1;
        } else if (order > 0) {
            h++;
        } else {
            is_planned[held[h].item] = true;
            held_by[w++] = held[h++].item;
        }
    }
}

/* Remove rows of kept parts from the plan. */
static void keep_parts(const tdmi_prepare_stored *stored, const int64_t *held_by,
                       const bool *is_planned, tdmi_prepare_plan *plan)
{
    int64_t n = 0;
    for (int p = 0; p < stored->n_parts; p++)
        plan->is_kept[p] = true;
    for (int64_t r = 0; r < stored->n_rows; r++) {
        plan->is_kept[stored->rows[r].part] &= is_planned[r];
        plan->n_removed += !is_planned[r];
    }
    for (int64_t r = 0; r < stored->n_rows; r++)
        plan->n_kept_rows += plan->is_kept[stored->rows[r].part];
    for (int64_t w = 0; w < plan->n_rows; w++) {
        plan->n_added += held_by[w] < 0;
        if (held_by[w] < 0 || !plan->is_kept[stored->rows[held_by[w]].part])
            plan->rows[n++] = plan->rows[w];
    }
    plan->n_rows = n;
}

static tdm_status take_stored(const tdmi_prepare_stored *stored, uint64_t seed,
                              tdmi_prepare_plan *plan, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_prepare_row *held = NULL;
    TDMI_AT_END(tdmi_free_at) int64_t *held_by = NULL;
    TDMI_AT_END(tdmi_free_at) bool *is_planned = NULL;
    TDMI_TRY(TDMI_NEW(held, stored->n_rows, err));
    TDMI_TRY(TDMI_NEW(held_by, plan->n_rows, err));
    TDMI_TRY(TDMI_NEW(is_planned, stored->n_rows, err));
    TDMI_TRY(TDMI_NEW(plan->is_kept, stored->n_parts, err));
    for (int64_t r = 0; r < stored->n_rows; r++)
        held[r] = (struct tdmi_prepare_row){
            .hash = stored->rows[r].hash,
            .key = tdmi_split_key(stored->rows[r].hash, TDMI_SPLIT_ROWS, seed),
            .path = stored->rows[r].path,
            .item = r,
            .label = stored->rows[r].label,
            .split = stored->rows[r].split};
    sort_rows(held, stored->n_rows);
    match(plan->rows, plan->n_rows, held, stored->n_rows, held_by, is_planned);
    keep_parts(stored, held_by, is_planned, plan);
    plan->first_number = stored->next_number;
    return TDM_OK;
}

bool tdmi_prepare_plan_is_done(const tdmi_prepare_plan *plan, const tdmi_prepare_stored *stored)
{
    bool is_done = stored->is_there && plan->n_parts == 0;
    for (int p = 0; is_done && p < stored->n_parts; p++)
        is_done = plan->is_kept[p];
    return is_done;
}

/* ---- parts -------------------------------------------------------------------------------- */

static tdm_status cut(const struct tdmi_prepare_form *form, int64_t mean_bytes,
                      tdmi_prepare_plan *plan, tdm_error *err)
{
    int64_t rows_a_part = PART_BYTES / tdmi_prepare_form_picture_bytes(form, mean_bytes);
    if (rows_a_part > LARGEST_PART_ROWS)
        rows_a_part = LARGEST_PART_ROWS;
    if (rows_a_part < 1)
        rows_a_part = 1;
    int64_t n_parts = 0, n_in[TDMI_PREPARE_SPLITS] = {0};
    for (int64_t r = 0; r < plan->n_rows; r++)
        n_in[plan->rows[r].split]++;
    for (int s = 0; s < TDMI_PREPARE_SPLITS; s++)
        n_parts += (n_in[s] + rows_a_part - 1) / rows_a_part;
    if (n_parts > INT_MAX - plan->first_number)
        return TDM_FAIL(err, TDM_E_INPUT, "%lld files are more than a table can have",
                        (long long)n_parts);
    TDMI_TRY(TDMI_NEW(plan->parts, n_parts, err));
    int64_t first = 0;
    for (int s = 0; s < TDMI_PREPARE_SPLITS; s++)
        for (int64_t left = n_in[s]; left > 0;) {
            const int64_t n = left < rows_a_part ? left : rows_a_part;
            plan->parts[plan->n_parts++] =
                (struct tdmi_prepare_part){first, n, (enum tdmi_prepare_split)s};
            first += n;
            left -= n;
        }
    return TDM_OK;
}

static void add_text(tdmi_xxh64 *state, const char *text)
{
    tdmi_xxh64_add(state, text, strlen(text) + 1);
}

static tdm_status identify(const struct tdmi_prepare_form *form, const tdmi_prepare_stored *stored,
                           tdmi_prepare_plan *plan, tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(0);
    const char *words = NULL;
    size_t n_words = 0;
    tdmi_xxh64 state;
    tdmi_xxh64_init(&state, 0);
    tdmi_prepare_form_to_json(form, json, NULL);
    TDMI_TRY(tdm_json_finish(json, &words, &n_words, err));
    tdmi_xxh64_add(&state, rule, sizeof rule);
    tdmi_xxh64_add(&state, words, n_words);
    for (int c = 0; c < plan->n_classes; c++)
        add_text(&state, plan->classes[c]);
    for (int64_t i = 0; i < plan->n_rows; i++) {
        const struct tdmi_prepare_row *row = &plan->rows[i];
        uint8_t numbers[13] = {[12] = (uint8_t)row->split};
        tdmi_write_little(numbers, row->hash, 8);
        tdmi_write_little(numbers + 8, (uint32_t)row->label, 4);
        tdmi_xxh64_add(&state, numbers, sizeof numbers);
        add_text(&state, row->path);
    }
    for (int p = 0; p < plan->n_parts; p++) {
        uint8_t numbers[8];
        tdmi_write_little(numbers, (uint64_t)plan->parts[p].n, 8);
        tdmi_xxh64_add(&state, numbers, sizeof numbers);
    }
    for (int p = 0; p < stored->n_parts; p++)
        if (plan->is_kept[p])
            add_text(&state, stored->parts[p].name);
    plan->id = tdmi_xxh64_result(&state);
    return TDM_OK;
}

tdm_status tdmi_prepare_plan_make(const tdmi_source *source, const tdmi_prepare_look *look,
                                  const struct tdmi_prepare_form *form,
                                  const tdmi_prepare_stored *stored, tdmi_prepare_plan *plan,
                                  tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) uint8_t *sides = NULL;
    TDMI_AT_END(tdmi_free_at) int *labels = NULL;
    const tdmi_contents *contents = &look->contents;
    const int64_t n_sound = contents->n_items - look->n_bad;
    tdmi_prepare_plan_release(plan);
    TDMI_TRY(TDMI_NEW(sides, contents->n_items, err));
    TDMI_TRY(TDMI_NEW(labels, tdmi_source_classes(source), err));
    TDMI_TRY(TDMI_NEW(plan->rows, contents->n_items, err));
    TDM_TRY(find_classes(source, stored, plan, labels, err), err, "cannot find the classes");
    TDM_TRY(find_sides(source, contents, form, stored, sides, &plan->is_split_given, err), err,
            "cannot divide the images into train and val");
    list_rows(source, contents, form->options->seed, stored, labels, sides, plan);
    if (stored->is_there)
        TDM_TRY(take_stored(stored, form->options->seed, plan, err), err,
                "cannot compare with what is there");
    TDM_TRY(cut(form, look->n_bytes / (n_sound > 0 ? n_sound : 1), plan, err), err,
            "cannot cut them into parts");
    return identify(form, stored, plan, err);
}
