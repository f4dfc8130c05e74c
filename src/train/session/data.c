/* The source of a training and its split into training, validation and test images. */
#include "base/bytes.h"
#include "base/hash/hash.h"
#include "base/scope.h"
#include "base/text/text.h"
#include "train/config/options.h"
#include "tandem/log.h"
#include "train/session/session.h"

#include <stdio.h>
#include <string.h>

static uint64_t *sorted_hashes(tdmi_arena *arena, const uint64_t *hashes, const int64_t *items,
                               int64_t n)
{
    uint64_t *sorted = tdmi_arena_alloc(arena, (size_t)n + 1, sizeof *sorted);
    if (sorted) {
        for (int64_t i = 0; i < n; i++)
            sorted[i] = hashes[items[i]];
        tdmi_hashes_sort(sorted, n);
    }
    return sorted;
}

/* Lists validation and test images together, and sorts the hashes of the parts. A test part, of
 * --split or of the source, is evaluated at the end. A run that an older version started without
 * the source's test resumes without it. */
static tdm_status list_evaluated(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_train_data *data = &session->data;
    tdmi_arena *arena = &session->arena;
    const tdmi_split *split = &data->split;
    const uint64_t *hashes = data->contents.hashes;
    data->has_test =
        split->n_test > 0 && (!session->resumed || session->resumed->n_test_hashes > 0);
    const int64_t n_test = data->has_test ? split->n_test : 0;
    data->evaluated =
        tdmi_arena_alloc(arena, (size_t)(split->n_val + n_test), sizeof *data->evaluated);
    data->train_hashes = sorted_hashes(arena, hashes, split->train, split->n_train);
    data->val_hashes = sorted_hashes(arena, hashes, split->val, split->n_val);
    data->test_hashes = sorted_hashes(arena, hashes, split->test, n_test);
    TDMI_CHECK_MEMORY(
        data->evaluated && data->train_hashes && data->val_hashes && data->test_hashes, err);
    data->n_train_distinct = 0;
    for (int64_t i = 0; i < split->n_train; i++)
        data->n_train_distinct += i == 0 || data->train_hashes[i] != data->train_hashes[i - 1];
    for (int64_t v = 0, t = 0; v < split->n_val || t < n_test;) {
        const bool is_val = t == n_test || (v < split->n_val && split->val[v] < split->test[t]);
        data->evaluated[data->n_evaluated++] = is_val ? split->val[v++] : split->test[t++];
    }
    return TDM_OK;
}

/* A model file is JSON, which can hold only names in UTF-8. */
static bool is_utf8(const char *text)
{
    size_t rest = strlen(text);
    while (rest > 0) {
        size_t n = tdmi_utf8_length(text, rest);
        if (n == 0)
            return false;
        text += n;
        rest -= n;
    }
    return true;
}

/* "class 'a' (and 2 more classes)": those without; NULL: every class has one. */
static const char *name_lacking(const tdmi_source *source, const _Atomic bool *has_one, char *text,
                                size_t text_bytes, int *first)
{
    int n_lacking = 0;
    char more[40] = "";
    for (int c = tdmi_source_classes(source) - 1; c >= 0; c--) {
        if (has_one[c])
            continue;
        n_lacking++;
        *first = c;
    }
    if (n_lacking == 0)
        return NULL;
    if (n_lacking > 1)
        snprintf(more, sizeof more, " (and %d more %s)", n_lacking - 1,
                 n_lacking == 2 ? "class" : "classes");
    snprintf(text, text_bytes, "class '%.300s'%s", tdmi_source_class(source, *first), more);
    return text;
}

/* Before anything is downloaded, or read for long. */
static tdm_status refuse_empty_classes(const tdmi_source *source, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) _Atomic bool *has_image = NULL;
    char text[400];
    int first;
    TDMI_TRY(TDMI_NEW(has_image, tdmi_source_classes(source), err));
    for (int64_t i = 0; i < tdmi_source_items(source); i++)
        if (tdmi_source_item(source, i).label >= 0)
            has_image[tdmi_source_item(source, i).label] = true;
    const char *lacking = name_lacking(source, has_image, text, sizeof text, &first);
    return lacking ? TDM_FAIL(err, TDM_E_INPUT, "%s has no image: add some or remove the class",
                              lacking)
                   : TDM_OK;
}

tdm_status tdmi_data_open_source(const struct tdm_train_options *options, tdmi_source **source,
                                 tdm_error *err)
{
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *made = NULL;
    struct tdm_source_options how = options->how;
    if (how.cache_bytes == 0)
        how.cache_bytes = options->memory / 4;
    TDM_TRY(tdmi_source_open(options->source, &how, &made, err), err,
            "opening the training images");
    if (tdmi_source_classes(made) < 2)
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "%s has %s class of images; at least two are required: a folder for each, or a "
            "list or table with a column of labels",
            options->source, tdmi_source_classes(made) ? "one" : "no");
    for (int c = 0; c < tdmi_source_classes(made); c++)
        if (!is_utf8(tdmi_source_class(made, c)))
            return TDM_FAIL(err, TDM_E_INPUT,
                            "the name of class %d, '%s', is not UTF-8; rename the folder in UTF-8",
                            c, tdmi_source_class(made, c));
    TDMI_TRY(refuse_empty_classes(made, err));
    *source = tdmi_take(&made);
    return TDM_OK;
}

tdm_status tdmi_data_open(struct tdmi_session *session, tdm_error *err)
{
    return tdmi_data_open_source(&session->config.options, &session->data.source, err);
}

static void report_copies(const struct tdmi_session *session)
{
    const tdmi_split *split = &session->data.split;
    if (split->n_torn > 0)
        tdmi_record_note(&session->record,
                         "%lld %s in more than one class (tandem audit names them)",
                         (long long)split->n_torn, split->n_torn == 1 ? "image is" : "images are");
    if (split->n_copies > 0)
        tdmi_record_note(&session->record,
                         "%lld %s of another of the same class; copies stay on one side of the "
                         "split",
                         (long long)split->n_copies,
                         split->n_copies == 1 ? "image is a copy" : "images are copies");
}

static tdm_status report_unvalidated(struct tdmi_session *session, tdm_error *err)
{
    const int n_classes = tdmi_source_classes(session->data.source);
    const tdmi_split *split = &session->data.split;
    int n_without = n_classes;
    bool *is_evaluated = tdmi_arena_alloc(&session->arena, (size_t)n_classes, sizeof *is_evaluated);
    TDMI_CHECK_MEMORY(is_evaluated, err);
    for (int64_t i = 0; i < split->n_val; i++) {
        bool *has_image =
            &is_evaluated[tdmi_source_item(session->data.source, split->val[i]).label];
        n_without -= !*has_image;
        *has_image = true;
    }
    if (n_without > 0)
        tdmi_record_note(
            &session->record,
            "%d of %d classes %s no validation image: whether %s learned is not measured",
            n_without, n_classes, n_without == 1 ? "has" : "have",
            n_without == 1 ? "it is" : "they are");
    return TDM_OK;
}

static tdm_status report_split(struct tdmi_session *session,
                               const struct tdm_train_options *options, tdm_error *err)
{
    const struct tdmi_train_data *data = &session->data;
    const tdmi_split *split = &data->split;
    char test[60] = "";
    if (data->has_test)
        snprintf(test, sizeof test, ", %lld for the test", (long long)split->n_test);
    tdmi_record_note(
        &session->record, "%lld images of %d classes: %lld for training, %lld for validation%s%s%s",
        (long long)(split->n_train + data->n_evaluated), tdmi_source_classes(data->source),
        (long long)split->n_train, (long long)split->n_val, test,
        split->is_given ? ", as the source says" : "",
        split->is_given && tdmi_options_ask_for_split(options) ? ": --split has no effect" : "");
    report_copies(session);
    return report_unvalidated(session, err);
}

/* Names the first itself: --quiet hides the warnings, and the object of --json has none. */
static tdm_status refuse_unreadable(const struct tdm_train_options *options, int64_t n,
                                    const tdmi_text *unreadable, tdm_error *err)
{
    const char *first = tdmi_text_string(unreadable);
    char more[40] = "";
    if (n == 0 || !options->strict)
        return TDM_OK;
    if (n > 1 && *first)
        snprintf(more, sizeof more, "; and %lld more", (long long)n - 1);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "%lld image%s of %s cannot be read, and --strict is on%s%.*s%s", (long long)n,
                    n == 1 ? "" : "s", options->source, *first ? ": " : "",
                    (int)strcspn(first, "\n"), first, more);
}

/* ---- classes whose images are all damaged ---------------------------------------------------- */

/* The training images of a source, in tasks; a class is left alone once one of its images decodes.
 */
struct decoding {
    const tdmi_source *source;
    const tdmi_split *split;
    _Atomic bool *has_image; /* by class */
};

enum { IMAGES_A_TASK = 64 };

/* problem: why the image cannot be read; code TDM_OK where it can, or only memory is short. A small
 * copy is enough, which takes little memory and time. */
static tdm_status try_to_decode(const tdmi_source *source, int64_t item, tdm_error *problem,
                                tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    TDMI_AT_END(tdmi_preprocess_scratch_release) struct tdmi_preprocess_scratch scratch = {0};
    enum { side = 32 };
    const struct tdmi_preprocess small = {
        .width = side, .height = side, .channels = 3, .fit = TDMI_FIT_PAD, .uses_draft = true};
    uint8_t pixels[3 * side * side];
    if (tdm_stop_is_requested())
        return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request");
    TDMI_TRY(tdmi_source_try(source, item, &bytes, problem, err));
    if (problem->code == TDM_OK &&
        tdmi_preprocess_file(&small, tdmi_text_string(&bytes), bytes.length_bytes,
                             tdmi_source_item(source, item).path, &scratch, pixels,
                             problem) == TDM_E_MEMORY)
        tdm_error_clear(problem);
    return TDM_OK;
}

static tdm_status decode_task(void *self, int index, int worker, tdm_error *err)
{
    const struct decoding *it = self;
    const int64_t first = (int64_t)index * IMAGES_A_TASK, end = first + IMAGES_A_TASK;
    (void)worker;
    for (int64_t i = first; i < end && i < it->split->n_train; i++) {
        const int label = tdmi_source_item(it->source, it->split->train[i]).label;
        tdm_error problem = {0};
        if (it->has_image[label])
            continue;
        TDMI_TRY(try_to_decode(it->source, it->split->train[i], &problem, err));
        if (problem.code == TDM_OK)
            it->has_image[label] = true;
    }
    return TDM_OK;
}

/* The reason is that of the class's first training image. */
static tdm_status refuse_class(const struct decoding *it, int label, const char *lacking,
                               tdm_error *err)
{
    int64_t first = -1, n = 0;
    tdm_error problem = {0};
    for (int64_t i = it->split->n_train - 1; i >= 0; i--) {
        if (tdmi_source_item(it->source, it->split->train[i]).label != label)
            continue;
        first = it->split->train[i];
        n++;
    }
    TDMI_TRY(try_to_decode(it->source, first, &problem, err));
    return TDM_FAIL(err, TDM_E_INPUT,
                    "%s has no training image that can be read, of %lld: replace them or remove "
                    "the class; the first is '%s': %s",
                    lacking, (long long)n, tdmi_source_item(it->source, first).path,
                    tdm_error_sentence(&problem, 0));
}

/* Damage shows when an image is decoded, which is at the first step or later: too late to refuse
 * a class that has nothing to learn from. One image of each class is enough to know. Where no class
 * has any, what fails next says why of all: a wrong option of a table, for instance. */
static tdm_status check_classes_decode(const struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_train_data *data = &session->data;
    TDMI_AT_END(tdmi_free_at) _Atomic bool *has_image = NULL;
    char text[400];
    int first, n_found = 0;
    TDMI_TRY(TDMI_NEW(has_image, tdmi_source_classes(data->source), err));
    struct decoding decoding = {data->source, &data->split, has_image};
    const int64_t n_tasks = (data->split.n_train + IMAGES_A_TASK - 1) / IMAGES_A_TASK;
    TDMI_TRY(tdmi_pool_run(session->compute.pool, (int)n_tasks, decode_task, &decoding, err));
    for (int c = 0; c < tdmi_source_classes(data->source); c++)
        n_found += has_image[c];
    const char *lacking = name_lacking(data->source, has_image, text, sizeof text, &first);
    return lacking && n_found > 0 ? refuse_class(&decoding, first, lacking, err) : TDM_OK;
}

/* ---- the split ------------------------------------------------------------------------------- */

tdm_status tdmi_session_split(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->config.options;
    const struct tdmi_run_record *record = &session->record;
    struct tdmi_train_data *data = &session->data;
    const struct tdmi_model_file *stored = &session->stored;
    TDMI_AT_END(tdmi_text_release) tdmi_text unreadable = {0};
    TDMI_TRY(tdmi_ranks_read_contents(session, &unreadable, err));
    const int64_t n_unreadable = data->contents.n_unreadable;
    TDMI_TRY(refuse_unreadable(options, n_unreadable, &unreadable, err));
    TDMI_TRY(tdmi_split_make(data->source, &data->contents,
                             (struct tdmi_split_options){
                                 .train_fraction = options->train_fraction,
                                 .val_fraction = options->val_fraction,
                                 .test_fraction = options->test_fraction,
                                 .fraction = options->fraction,
                                 .per_class = options->per_class,
                                 .seed = options->seed,
                             },
                             (struct tdmi_split_stored){.train = stored->train_hashes,
                                                        .n_train = stored->n_train_hashes,
                                                        .val = stored->val_hashes,
                                                        .n_val = stored->n_val_hashes,
                                                        .test = stored->test_hashes,
                                                        .n_test = stored->n_test_hashes},
                             &data->split, err));
    TDMI_TRY(list_evaluated(session, err));
    tdmi_batch_begin(session);
    if (tdmi_record_is_new(record)) {
        if (!tdmi_ranks_is_follower(session))
            TDMI_TRY(check_classes_decode(session, err));
        TDMI_TRY(tdmi_unfreeze_check_steps(options, data->steps_per_epoch, err));
        TDMI_TRY(report_split(session, options, err));
    }
    if (n_unreadable > 0)
        tdmi_record_note(record, "%lld %s could not be read and %s left out",
                         (long long)n_unreadable, n_unreadable == 1 ? "image" : "images",
                         n_unreadable == 1 ? "is" : "are");
    return TDM_OK;
}

void tdmi_data_clock_feed(struct tdmi_session *session)
{
    if (!session->data.train_feed)
        return;
    struct tdmi_loader_rates rates;
    tdmi_feed_rates(session->data.train_feed, &rates);
    session->record.fed_seconds += rates.seconds;
    session->record.waited_seconds += rates.consumer_waits;
}

tdm_status tdmi_data_check_batch(const struct tdmi_train_config *config,
                                 const struct tdmi_batch *batch, tdm_error *err)
{
    for (int p = 0; config->options.strict && p < batch->n; p++)
        if (batch->problems && batch->problems[p][0])
            return TDM_FAIL(err, TDM_E_INPUT, "an image cannot be used, and --strict is on: %s",
                            batch->problems[p]);
    return TDM_OK;
}

const char *tdmi_data_labels(const struct tdmi_train_data *data, char text[17])
{
    const tdmi_split *split = &data->split;
    const int64_t *const items[] = {split->train, split->val, split->test};
    const int64_t n[] = {split->n_train, split->n_val, split->n_test};
    uint64_t sum = 0;
    for (int part = 0; part < 3; part++)
        for (int64_t i = 0; i < n[part]; i++) {
            uint8_t bytes[12];
            tdmi_write_little(bytes, data->contents.hashes[items[part][i]], 8);
            tdmi_write_little(bytes + 8,
                              (uint64_t)tdmi_source_item(data->source, items[part][i]).label, 4);
            sum += tdmi_xxh64_of(bytes, sizeof bytes, 0);
        }
    snprintf(text, 17, "%016llx", (unsigned long long)sum);
    return text;
}

struct tdmi_loader_cache tdmi_data_cache(const struct tdmi_session *session)
{
    const char *folder = session->config.options.cache_dir;
    return (struct tdmi_loader_cache){.kind = session->config.cache,
                                      .hashes = session->data.contents.hashes,
                                      .folder = folder,
                                      .disk_bytes = folder ? INT64_MAX : 0};
}

tdm_status tdmi_data_report_skipped(struct tdmi_session *session, const tdmi_feed *feed,
                                    int64_t first, bool is_shared, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_skip *skips = NULL;
    int64_t n = 0;
    TDMI_TRY(TDMI_NEW(skips, TDMI_KEPT_SKIPS, err));
    for (; feed && n < TDMI_KEPT_SKIPS && tdmi_feed_skip_at(feed, n, &skips[n]); n++)
        skips[n].position += first;
    if (is_shared)
        TDMI_TRY(tdmi_ranks_gather_skips(session, &skips, &n, err));
    for (int64_t i = 0; i < n && i < TDMI_KEPT_SKIPS; i++)
        tdmi_record_note(&session->record, "skipped: %s", skips[i].text);
    return TDM_OK;
}

tdm_status tdmi_data_report_all_skipped(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_train_data *data = &session->data;
    const bool is_shared = tdmi_ranks_share_steps(session);
    int64_t first = 0, end;
    if (is_shared)
        tdmi_ranks_part_of(session, data->split.n_val, &first, &end);
    TDMI_TRY(tdmi_data_report_skipped(session, data->train_feed, 0, is_shared, err));
    return tdmi_data_report_skipped(session, data->val_feed, first, is_shared, err);
}

void tdmi_data_close_feeds(struct tdmi_train_data *data)
{
    tdmi_feed_close(data->val_feed);
    tdmi_feed_close(data->train_feed);
    tdmi_order_release(&data->order);
    data->val_feed = data->train_feed = NULL;
}

void tdmi_data_close(struct tdmi_train_data *data)
{
    tdmi_split_release(&data->split);
    tdmi_contents_release(&data->contents);
    tdmi_source_close(data->source);
}
