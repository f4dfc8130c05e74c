/* Everything is decided by sorting hashes, so the order in which a source lists does not matter. */
#include "data/prepare_plan.h"

#include "base/hash.h"
#include "base/memory.h"
#include "data/split.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PURPOSE_ROWS = 3, LARGEST_PART_ROWS = 1 << 17 };
#define PART_BYTES ((int64_t)128 << 20)

/* Goes into every id: another rule is another plan. */
static const char rule[] = "tandem prepare 1";

const char *tdmi_prepare_split_name(enum tdmi_prepare_split split)
{
    static const char *const names[TDMI_PREPARE_SPLITS] = {"train", "val", "test", ""};
    return names[split];
}

void tdmi_prepare_plan_release(tdmi_prepare_plan *plan)
{
    tdmi_free(plan->rows);
    tdmi_free(plan->parts);
    *plan = (tdmi_prepare_plan){0};
}

static tdm_status out_of_memory(int64_t n, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory to plan %lld pictures", (long long)n);
}

/* ---- sides -------------------------------------------------------------------------------- */

enum { OUTSIDE = TDMI_PREPARE_SPLITS };

/* Contents that the source gave as test, in order. */
static tdm_status find_test(const tdmi_source *source, const tdmi_contents *contents,
                            uint64_t **hashes, int64_t *n, tdm_error *err)
{
    *n = 0;
    *hashes = tdmi_alloc((size_t)contents->n_items, sizeof **hashes);
    if (*hashes == NULL)
        return out_of_memory(contents->n_items, err);
    for (int64_t i = 0; i < contents->n_items; i++)
        if (contents->hashes[i] != 0 && tdmi_source_item(source, i).part == TDMI_PART_TEST)
            (*hashes)[(*n)++] = contents->hashes[i];
    tdmi_hashes_sort(*hashes, *n);
    return TDM_OK;
}

/* A copy of a picture that was given as test would make training see it, or count it twice. */
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
                             const struct tdmi_prepare_form *form, uint8_t *sides, tdm_error *err)
{
    const struct tdmi_split_options options = {.train_fraction = form->options->train_fraction,
                                               .val_fraction = form->options->val_fraction,
                                               .fraction = 1,
                                               .seed = form->options->seed};
    tdmi_split split = {0};
    uint64_t *test = NULL;
    int64_t n_test = 0;
    tdm_status status =
        tdmi_split_make(source, contents, options, (struct tdmi_split_stored){0}, &split, err);
    if (status == TDM_OK)
        status = find_test(source, contents, &test, &n_test, err);
    if (status != TDM_OK)
        goto out;
    for (int64_t i = 0; i < contents->n_items; i++)
        sides[i] = contents->hashes[i] == 0 ? OUTSIDE
                                            : side_of_rest(tdmi_source_item(source, i),
                                                           contents->hashes[i], test, n_test);
    for (int64_t i = 0; i < split.n_train; i++)
        sides[split.train[i]] = TDMI_PREPARE_TRAIN;
    for (int64_t i = 0; i < split.n_val; i++)
        sides[split.val[i]] = TDMI_PREPARE_VAL;
out:
    tdmi_free(test);
    tdmi_split_release(&split);
    return status;
}

/* ---- rows --------------------------------------------------------------------------------- */

static uint64_t key_of(uint64_t hash, uint64_t seed)
{
    uint8_t bytes[9];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(hash >> 8 * i);
    bytes[8] = PURPOSE_ROWS;
    return tdmi_xxh64_of(bytes, sizeof bytes, seed);
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_rows(const void *a_, const void *b_)
{
    const struct tdmi_prepare_row *a = a_, *b = b_;
    int order = COMPARE(a->split, b->split);
    if (order == 0)
        order = COMPARE(a->key, b->key);
    if (order == 0)
        order = COMPARE(a->hash, b->hash);
    if (order == 0)
        order = strcmp(a->path, b->path);
    return order != 0 ? order : COMPARE(a->item, b->item);
}

static void list_rows(const tdmi_source *source, const tdmi_contents *contents, uint64_t seed,
                      const uint8_t *sides, tdmi_prepare_plan *plan)
{
    for (int64_t i = 0; i < contents->n_items; i++) {
        const uint64_t hash = contents->hashes[i];
        if (sides[i] == OUTSIDE) {
            plan->n_left_out += hash != 0;
            continue;
        }
        plan->rows[plan->n_rows++] =
            (struct tdmi_prepare_row){.hash = hash,
                                      .key = key_of(hash, seed),
                                      .path = tdmi_source_item(source, i).path,
                                      .item = i,
                                      .split = (enum tdmi_prepare_split)sides[i]};
        plan->n_in[sides[i]]++;
    }
    if (plan->n_rows > 0)
        qsort(plan->rows, (size_t)plan->n_rows, sizeof *plan->rows, compare_rows);
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
    int64_t n_parts = 0;
    for (int s = 0; s < TDMI_PREPARE_SPLITS; s++)
        n_parts += (plan->n_in[s] + rows_a_part - 1) / rows_a_part;
    if (n_parts > INT_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "%lld files are more than a table can have",
                        (long long)n_parts);
    plan->parts = tdmi_alloc((size_t)n_parts, sizeof *plan->parts);
    if (plan->parts == NULL)
        return out_of_memory(plan->n_rows, err);
    int64_t first = 0;
    for (int s = 0; s < TDMI_PREPARE_SPLITS; s++)
        for (int64_t left = plan->n_in[s]; left > 0;) {
            const int64_t n = left < rows_a_part ? left : rows_a_part;
            plan->parts[plan->n_parts++] =
                (struct tdmi_prepare_part){first, n, (enum tdmi_prepare_split)s};
            first += n;
            left -= n;
        }
    return TDM_OK;
}

static tdm_status identify(const tdmi_source *source, const struct tdmi_prepare_form *form,
                           tdmi_prepare_plan *plan, tdm_error *err)
{
    tdm_json_writer *json = tdm_json_writer_new(0);
    const char *words = NULL;
    size_t n_words = 0;
    tdmi_xxh64 state;
    tdmi_xxh64_init(&state, 0);
    tdmi_prepare_form_to_json(form, json, NULL);
    tdm_status status = tdm_json_finish(json, &words, &n_words, err);
    if (status == TDM_OK) {
        tdmi_xxh64_add(&state, rule, sizeof rule);
        tdmi_xxh64_add(&state, words, n_words);
        for (int c = 0; c < tdmi_source_classes(source); c++) {
            const char *name = tdmi_source_class(source, c);
            tdmi_xxh64_add(&state, name, strlen(name) + 1);
        }
        for (int64_t i = 0; i < plan->n_rows; i++) {
            const struct tdmi_prepare_row *row = &plan->rows[i];
            const int label = tdmi_source_item(source, row->item).label;
            uint8_t numbers[13];
            for (int b = 0; b < 8; b++)
                numbers[b] = (uint8_t)(row->hash >> 8 * b);
            for (int b = 0; b < 4; b++)
                numbers[8 + b] = (uint8_t)((uint32_t)label >> 8 * b);
            numbers[12] = (uint8_t)row->split;
            tdmi_xxh64_add(&state, numbers, sizeof numbers);
            tdmi_xxh64_add(&state, row->path, strlen(row->path) + 1);
        }
        for (int p = 0; p < plan->n_parts; p++) {
            uint8_t numbers[8];
            for (int b = 0; b < 8; b++)
                numbers[b] = (uint8_t)((uint64_t)plan->parts[p].n >> 8 * b);
            tdmi_xxh64_add(&state, numbers, sizeof numbers);
        }
        plan->id = tdmi_xxh64_result(&state);
    }
    tdm_json_writer_free(json);
    return status;
}

tdm_status tdmi_prepare_plan_make(const tdmi_source *source, const tdmi_prepare_look *look,
                                  const struct tdmi_prepare_form *form, tdmi_prepare_plan *plan,
                                  tdm_error *err)
{
    const tdmi_contents *contents = &look->contents;
    tdmi_prepare_plan_release(plan);
    uint8_t *sides = tdmi_alloc((size_t)contents->n_items, 1);
    plan->rows = tdmi_alloc((size_t)contents->n_items, sizeof *plan->rows);
    tdm_status status =
        sides == NULL || plan->rows == NULL ? out_of_memory(contents->n_items, err) : TDM_OK;
    if (status == TDM_OK)
        status = find_sides(source, contents, form, sides, err);
    if (status == TDM_OK) {
        list_rows(source, contents, form->options->seed, sides, plan);
        const int64_t n_sound = contents->n_items - look->n_bad;
        status = cut(form, look->n_bytes / (n_sound > 0 ? n_sound : 1), plan, err);
    }
    if (status == TDM_OK)
        status = identify(source, form, plan, err);
    tdmi_free(sides);
    if (status != TDM_OK)
        tdmi_prepare_plan_release(plan);
    return status;
}
