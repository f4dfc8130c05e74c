/* Counts are those of the plan less the dropped images in the records. The table of an update is
 * the kept parts and then the plan's. */
#include "prepare/part.h"

#include "base/file/file.h"
#include "data/delta/write.h"
#include "data/parquet/write.h"
#include <inttypes.h>
#include <stdio.h>

struct merging {
    const struct tdmi_prepare_job *job;
    const tdmi_prepare_look *look;
    struct tdmi_prepare_record *records; /* by part */
    int64_t (*per_class)[TDMI_PREPARE_SPLITS];
    int64_t n_in[TDMI_PREPARE_SPLITS];
    int64_t n_dropped, n_bytes; /* of all that the table has, n_dropped of this plan */
    int n_parts;                /* of the table */
    int64_t version;            /* of the Delta table */
    struct tdmi_prepare_change change;
};

/* ---- parts -------------------------------------------------------------------------------- */

static tdm_status collect(struct merging *merging, const bool *made, tdm_error *err)
{
    const struct tdmi_prepare_job *job = merging->job;
    char missing[128] = "";
    size_t used = 0;
    int n_missing = 0;
    for (int p = 0; p < job->plan->n_parts; p++) {
        bool is_there = false;
        TDM_TRY(tdmi_prepare_part_find(job, p, made == NULL || !made[p], &merging->records[p],
                                       &is_there, err),
                err, "cannot join the parts of '%s'", job->folder);
        if (is_there)
            continue;
        if (n_missing++ < 8)
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%d",
                                     n_missing == 1 ? "" : ", ", p);
    }
    if (n_missing > 0)
        return TDM_FAIL(err, TDM_E_FAILED,
                        "%d of %d parts of '%s' are not there or not whole (%s%s): make the "
                        "slices they are in, or run prepare without --merge",
                        n_missing, job->plan->n_parts, job->folder, missing,
                        n_missing > 8 ? ", …" : "");
    return TDM_OK;
}

static void count_row(struct merging *merging, int label, enum tdmi_prepare_split split, int n)
{
    merging->n_in[split] += n;
    if (label >= 0)
        merging->per_class[label][split] += n;
}

static void count_kept(struct merging *merging)
{
    const tdmi_prepare_stored *stored = merging->job->stored;
    const bool *is_kept = merging->job->plan->is_kept;
    for (int p = 0; p < stored->n_parts; p++) {
        merging->n_parts += is_kept[p];
        merging->n_bytes += is_kept[p] ? stored->parts[p].n_bytes : 0;
    }
    for (int64_t r = 0; r < stored->n_rows; r++)
        if (is_kept[stored->rows[r].part])
            count_row(merging, stored->rows[r].label, stored->rows[r].split, 1);
}

static void count(struct merging *merging)
{
    const tdmi_prepare_plan *plan = merging->job->plan;
    count_kept(merging);
    for (int64_t r = 0; r < plan->n_rows; r++)
        count_row(merging, plan->rows[r].label, plan->rows[r].split, 1);
    merging->n_parts += plan->n_parts;
    for (int p = 0; p < plan->n_parts; p++) {
        const struct tdmi_prepare_record *record = &merging->records[p];
        const tdm_json_value *dropped = tdmi_prepare_record_dropped(record);
        merging->n_bytes += record->n_bytes;
        tdmi_prepare_change_add(&merging->change, &record->change);
        for (size_t d = 0; d < tdm_json_count(dropped); d++) {
            const int64_t row =
                tdm_json_as_integer(tdm_json_member(tdm_json_at(dropped, d), "row"), -1);
            if (row < 0 || row >= plan->parts[p].n)
                continue;
            const struct tdmi_prepare_row *gone = &plan->rows[plan->parts[p].first + row];
            merging->n_dropped++;
            count_row(merging, gone->label, gone->split, -1);
        }
    }
}

/* Is an image dropped earlier still in the source? */
static bool is_known_drop(const struct merging *merging,
                          const struct tdmi_prepare_stored_drop *drop)
{
    const tdmi_contents *contents = &merging->look->contents;
    for (int64_t i = 0; i < contents->n_items; i++)
        if (contents->hashes[i] == drop->hash)
            return true;
    return false;
}

/* The result has the plan's counts. */
static void fill_result(const struct merging *merging, struct tdm_prepare_result *result)
{
    const tdmi_prepare_stored *stored = merging->job->stored;
    const struct tdmi_prepare_change *change = &merging->change;
    const int64_t before = result->sampled; /* by the parts that were there; of equal sizes */
    for (int64_t d = 0; d < stored->n_drops; d++)
        result->quarantined += is_known_drop(merging, &stored->drops[d]);
    result->quarantined += merging->n_dropped;
    result->train = merging->n_in[TDMI_PREPARE_TRAIN];
    result->val = merging->n_in[TDMI_PREPARE_VAL];
    result->test = merging->n_in[TDMI_PREPARE_TEST];
    result->images = result->train + result->val + result->test + merging->n_in[TDMI_PREPARE_NONE];
    result->bytes = merging->n_bytes;
    result->parts = merging->n_parts;
    result->is_complete = true;
    result->sampled += change->n_pictures;
    result->change_max = change->max > result->change_max ? change->max : result->change_max;
    if (change->n_values > 0)
        result->change_mean =
            ((double)before * result->change_mean +
             (double)change->n_pictures * (double)change->sum / (double)change->n_values) /
            (double)result->sampled;
}

/* ---- the log ------------------------------------------------------------------------------ */

/* Required in the files. The log calls them nullable, or readers would look for a constraint. */
static const struct tdmi_delta_column columns[] = {
    {"image", "binary", true},   {"label", "integer", true}, {"class", "string", true},
    {"path", "string", true},    {"split", "string", true},  {"width", "integer", true},
    {"height", "integer", true}, {"hash", "string", true}};

static tdm_status write_log(struct merging *merging, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_delta_part *parts = NULL;
    const tdmi_prepare_stored *stored = merging->job->stored;
    int n = 0;
    TDMI_TRY(TDMI_NEW(parts, merging->n_parts, err));
    for (int p = 0; p < stored->n_parts; p++)
        if (merging->job->plan->is_kept[p])
            parts[n++] = (struct tdmi_delta_part){stored->parts[p].name, stored->parts[p].n_bytes,
                                                  stored->parts[p].n_rows};
    for (int p = 0; p < merging->job->plan->n_parts; p++)
        parts[n++] = (struct tdmi_delta_part){merging->records[p].name, merging->records[p].n_bytes,
                                              merging->records[p].n_rows};
    const struct tdmi_delta_commit commit = {.columns = columns,
                                             .n_columns = (int)(sizeof columns / sizeof columns[0]),
                                             .parts = parts,
                                             .n_parts = n,
                                             .time_ms = merging->look->time_ms,
                                             .engine = "tandem"};
    return tdmi_delta_write_next(merging->job->folder, &commit, tdmi_parquet_is_part_name,
                                 &merging->version, err);
}

/* ---- _dataset.json ------------------------------------------------------------------------ */

static const struct {
    const char *key;
    size_t offset; /* of an int64_t in the result */
} counts[] = {
    {"images", offsetof(struct tdm_prepare_result, images)},
    {"train", offsetof(struct tdm_prepare_result, train)},
    {"val", offsetof(struct tdm_prepare_result, val)},
    {"test", offsetof(struct tdm_prepare_result, test)},
    {"quarantined", offsetof(struct tdm_prepare_result, quarantined)},
    {"left_out", offsetof(struct tdm_prepare_result, left_out)},
    {"bytes", offsetof(struct tdm_prepare_result, bytes)},
};
enum { N_COUNTS = sizeof counts / sizeof counts[0] };

static int64_t *count_of(struct tdm_prepare_result *result, int index)
{
    return (int64_t *)(void *)((char *)result + counts[index].offset);
}

static void write_classes(tdm_json_writer *json, const struct merging *merging)
{
    const tdmi_prepare_plan *plan = merging->job->plan;
    tdm_json_array_begin(json, "classes");
    for (int c = 0; c < plan->n_classes; c++)
        tdm_json_string(json, NULL, plan->classes[c]);
    tdm_json_array_end(json);
    tdm_json_array_begin(json, "per_class");
    for (int c = 0; c < plan->n_classes; c++) {
        tdm_json_object_begin(json, NULL);
        tdm_json_integer(json, "label", c);
        tdm_json_string(json, "class", plan->classes[c]);
        for (enum tdmi_prepare_split s = 0; s < TDMI_PREPARE_NONE; s++)
            tdm_json_integer(json, tdmi_prepare_split_name(s), merging->per_class[c][s]);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
}

static void write_split(tdm_json_writer *json, const struct tdm_prepare_options *options)
{
    tdm_json_object_begin(json, "split");
    tdm_json_string(json, "rule",
                    "in each class, distinct contents in the order of a keyed hash: the lowest "
                    "round(val * n), at least 1 of 2, are val; copies stay together; given parts "
                    "are kept, and so is where a content stood in the version before");
    tdm_json_number(json, "train", options->train_fraction);
    tdm_json_number(json, "val", options->val_fraction);
    tdm_json_object_end(json);
}

/* hash: "", or the hash of an image dropped while its part was made, by which an update recognizes
 * it. */
static void write_quarantined(tdm_json_writer *json, const char *path, const char *hash,
                              const char *verdict, const char *reason)
{
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "path", path);
    if (*hash != '\0')
        tdm_json_string(json, "hash", hash);
    tdm_json_string(json, "verdict", verdict);
    tdm_json_string(json, "reason", reason);
    tdm_json_object_end(json);
}

static void write_audit(tdm_json_writer *json, const struct merging *merging)
{
    const tdmi_source *source = merging->job->source;
    tdm_json_object_begin(json, "audit");
    tdm_json_array_begin(json, "quarantined");
    for (int64_t i = 0; i < merging->look->n_bad; i++) {
        const struct tdmi_prepare_bad *bad = &merging->look->bad[i];
        write_quarantined(json, tdmi_source_item(source, bad->item).path, "",
                          tdm_verdict_word(bad->verdict), bad->reason);
    }
    for (int64_t d = 0; d < merging->job->stored->n_drops; d++) {
        const struct tdmi_prepare_stored_drop *drop = &merging->job->stored->drops[d];
        char hash[17];
        snprintf(hash, sizeof hash, "%016" PRIx64, drop->hash);
        if (is_known_drop(merging, drop))
            write_quarantined(json, drop->path, hash, drop->verdict, drop->reason);
    }
    for (int p = 0; p < merging->job->plan->n_parts; p++) {
        const tdm_json_value *dropped = tdmi_prepare_record_dropped(&merging->records[p]);
        for (size_t d = 0; d < tdm_json_count(dropped); d++) {
            const tdm_json_value *one = tdm_json_at(dropped, d);
            write_quarantined(json, tdm_json_as_string(tdm_json_member(one, "path"), ""),
                              tdm_json_as_string(tdm_json_member(one, "hash"), ""),
                              tdm_json_as_string(tdm_json_member(one, "verdict"), ""),
                              tdm_json_as_string(tdm_json_member(one, "reason"), ""));
        }
    }
    tdm_json_array_end(json);
    tdm_json_integer(json, "named_by_list", tdmi_source_quarantined(source));
    tdm_json_integer(json, "other_files", tdmi_source_ignored(source));
    tdm_json_object_end(json);
}

static void write_part(tdm_json_writer *json, const struct tdmi_prepare_stored_part *part)
{
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "path", part->name);
    tdm_json_string(json, "split", tdmi_prepare_split_name(part->split));
    tdm_json_integer(json, "rows", part->n_rows);
    tdm_json_integer(json, "bytes", part->n_bytes);
    tdm_json_object_end(json);
}

static void write_parts(tdm_json_writer *json, const struct merging *merging)
{
    const tdmi_prepare_plan *plan = merging->job->plan;
    const tdmi_prepare_stored *stored = merging->job->stored;
    tdm_json_array_begin(json, "parts");
    for (int p = 0; p < stored->n_parts; p++)
        if (merging->job->plan->is_kept[p])
            write_part(json, &stored->parts[p]);
    for (int p = 0; p < plan->n_parts; p++)
        write_part(json, &(struct tdmi_prepare_stored_part){
                             merging->records[p].name, merging->records[p].n_rows,
                             merging->records[p].n_bytes, plan->parts[p].split});
    tdm_json_array_end(json);
}

static tdm_json_writer *describe(const struct merging *merging, struct tdm_prepare_result *result)
{
    const struct tdmi_prepare_form *form = merging->job->form;
    tdm_json_writer *json = tdm_json_writer_new(1);
    char plan[17];
    snprintf(plan, sizeof plan, "%016" PRIx64, merging->job->plan->id);
    tdm_json_object_begin(json, NULL);
    tdm_json_integer(json, "format_version", TDMI_PREPARE_FORMAT_VERSION);
    tdm_json_integer(json, "version", merging->version);
    tdm_json_string(json, "plan", plan);
    tdmi_prepare_form_to_json(form, json, "options");
    tdm_json_object_begin(json, "counts");
    for (int i = 0; i < N_COUNTS; i++)
        tdm_json_integer(json, counts[i].key, *count_of(result, i));
    tdm_json_object_end(json);
    write_classes(json, merging);
    tdmi_preprocess_to_json(&form->preprocess, json, "preprocessing");
    /* With "keep" the images still have to go through it. */
    tdm_json_bool(json, "is_preprocessed", form->codec != TDMI_PREPARE_KEEP);
    write_split(json, form->options);
    tdm_json_object_begin(json, "change");
    tdm_json_integer(json, "sampled", result->sampled);
    tdm_json_number(json, "mean", result->change_mean);
    tdm_json_integer(json, "max", result->change_max);
    tdm_json_object_end(json);
    write_audit(json, merging);
    write_parts(json, merging);
    tdm_json_object_end(json);
    return json;
}

void tdmi_prepare_merge_recall(const tdm_json_value *dataset, struct tdm_prepare_result *result)
{
    const tdm_json_value *object = tdm_json_member(dataset, "counts");
    const tdm_json_value *change = tdm_json_member(dataset, "change");
    for (int i = 0; i < N_COUNTS; i++)
        *count_of(result, i) = tdm_json_as_integer(tdm_json_member(object, counts[i].key), 0);
    result->classes = (int)tdm_json_count(tdm_json_member(dataset, "classes"));
    result->parts = (int)tdm_json_count(tdm_json_member(dataset, "parts"));
    result->sampled = tdm_json_as_integer(tdm_json_member(change, "sampled"), 0);
    result->change_mean = tdm_json_as_number(tdm_json_member(change, "mean"), 0);
    result->change_max = (int)tdm_json_as_integer(tdm_json_member(change, "max"), 0);
    result->version = tdm_json_as_integer(tdm_json_member(dataset, "version"), 0);
    result->is_complete = true;
}

/* ---- together ----------------------------------------------------------------------------- */

/* Once the log names what counts: files that no version of it names were made by a plan that
 * changed. A log whose old versions cannot be read any more says nothing about them. */
static tdm_status forget_others(const struct merging *merging, const tdmi_prepare_folder *folder,
                                tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const char **names = NULL;
    int64_t n = 0;
    bool is_whole = false;
    TDMI_TRY(tdmi_delta_names(merging->job->folder, merging->version, &arena, &names, &n, &is_whole,
                              err));
    return is_whole ? tdmi_prepare_folder_keep_parts(folder, names, (int)n, err) : TDM_OK;
}

static tdm_status complete(struct merging *merging, tdmi_prepare_folder *folder,
                           struct tdm_prepare_result *result, tdm_error *err)
{
    const char *text = NULL;
    size_t n_bytes = 0;
    TDM_TRY(write_log(merging, err), err, "cannot complete '%s'", merging->job->folder);
    TDM_TRY(forget_others(merging, folder, err), err, "cannot tidy '%s'", merging->job->folder);
    result->version = merging->version;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = describe(merging, result);
    TDMI_TRY(tdm_json_finish(json, &text, &n_bytes, err));
    TDM_TRY(tdmi_file_write(folder->dataset, text, n_bytes, err), err, "cannot complete '%s'",
            folder->path);
    return tdmi_prepare_folder_clean(folder, err);
}

static void release(struct merging *merging)
{
    for (int p = 0; merging->records != NULL && p < merging->job->plan->n_parts; p++)
        tdmi_prepare_record_release(&merging->records[p]);
    tdmi_free(merging->records);
    tdmi_free(merging->per_class);
}

tdm_status tdmi_prepare_merge(const struct tdmi_prepare_job *job, const tdmi_prepare_look *look,
                              tdmi_prepare_folder *folder, const bool *made,
                              struct tdm_prepare_result *result, tdm_error *err)
{
    TDMI_AT_END(release) struct merging merging = {.job = job, .look = look};
    TDMI_TRY(TDMI_NEW(merging.records, job->plan->n_parts, err));
    TDMI_TRY(TDMI_NEW(merging.per_class, job->plan->n_classes, err));
    TDMI_TRY(collect(&merging, made, err));
    count(&merging);
    fill_result(&merging, result);
    return complete(&merging, folder, result, err);
}
