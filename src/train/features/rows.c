/*
 * Making rows of a frozen base: in sittings over pictures that lie in one list. The first sitting
 * is before training begins, and makes a few of the rows that were found again, which must be the
 * same to the bit. Views are made by the epoch that first wants them: who stops early has not paid
 * for those of later ones.
 */
#include "base/file/file.h"
#include "base/memory.h"
#include "tandem/log.h"
#include "tandem/event.h"
#include "tensor/half.h"
#include "train/features/features.h"

#include <math.h>
#include <string.h>

struct maker {
    struct tdmi_session *session;
    tdmi_plan *plan;
    tdmi_evaluator *evaluator;
    float *rows; /* of one batch, and one to spare */
    struct tdmi_needed wanted;
    /* What the loader is lent of a sitting. */
    int64_t *items;
    uint32_t *views;
    int64_t n_made, n_checked;
    double seconds;
};

/* ---- making them ----------------------------------------------------------------------------- */

/* A row that is on disk and wrong is to be made once more. One that the system does not hand out
 * now may be right: it stays where it is, and what the system says is the failure. */
static void note_damage(struct tdmi_session *session, const tdmi_store *store, int64_t place,
                        tdm_status status)
{
    session->features.damaged = status == TDM_E_INPUT ? store : NULL;
    session->features.damaged_at = place;
}

/* What is stored of a picture must be what is made of it now. */
static tdm_status compare(const struct maker *it, struct tdmi_needed_row entry, const float *row,
                          tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const int width = session->features.width;
    const tdmi_store *store = tdmi_features_store(session, entry.is_val);
    const bool is_half = !entry.is_val && strcmp(session->options.features, "f16") == 0;
    float *stored = it->rows + (size_t)TDMI_FEATURES_BATCH * (size_t)width;
    double worst = 0.0;
    bool is_same = true;
    const int64_t at = tdmi_store_find(store, tdmi_features_row(session, entry.item, entry.view));
    const tdm_status status = tdmi_store_read(store, at, stored, err);
    note_damage(session, store, at, status);
    TDM_TRY(status, err, "looking at stored features again");
    for (int i = 0; i < width; i++) {
        const float now = is_half ? tdmi_float_of_f16(tdmi_f16_of_float(row[i])) : row[i];
        const double difference = fabs((double)now - (double)stored[i]);
        is_same = is_same && memcmp(&now, &stored[i], sizeof now) == 0;
        worst = difference > worst ? difference : worst;
    }
    if (is_same)
        return TDM_OK;
    return TDM_FAIL(
        err, TDM_E_FAILED,
        "the features stored of %s are not what is computed of it now: values differ by up to %g. "
        "Weights, preprocessing, program, libraries and instruction set are the same, so they were "
        "stored by a machine or a build that errs, or this one does; remove %s, and all are "
        "computed again",
        tdmi_source_item(session->source, entry.item).path, worst, tdmi_store_folder(store));
}

static tdm_status keep_batch(struct maker *it, const struct tdmi_needed_row *entries,
                             const struct tdmi_batch *batch, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const size_t width = (size_t)session->features.width;
    for (int p = 0; p < batch->n; p++) {
        const struct tdmi_needed_row entry = entries[batch->first + p];
        const float *row = it->rows + (size_t)p * width;
        if (batch->labels[p] < 0 && session->options.strict)
            return TDM_FAIL(err, TDM_E_INPUT, "a picture cannot be used, and --strict is on: %s",
                            batch->problems[p]);
        if (batch->labels[p] < 0) {
            session->features.is_broken[entry.item] = true;
            continue;
        }
        const tdm_status status =
            entry.is_found
                ? compare(it, entry, row, err)
                : tdmi_store_fill_add(tdmi_features_store(session, entry.is_val),
                                      tdmi_features_row(session, entry.item, entry.view), row, err);
        if (status != TDM_OK)
            return status;
        it->n_checked += entry.is_found;
        it->n_made += !entry.is_found;
    }
    return TDM_OK;
}

static tdm_status commit(struct maker *it, tdm_error *err)
{
    const struct tdmi_features *features = &it->session->features;
    TDM_TRY(tdmi_store_fill_commit(features->val, err), err, "keeping features");
    if (features->train != features->val)
        TDM_TRY(tdmi_store_fill_commit(features->train, err), err, "keeping features");
    return TDM_OK;
}

static tdm_status stop(struct maker *it, tdm_error *err)
{
    TDM_TRY(commit(it, err), err, "stopping on request");
    return TDM_FAIL(err, TDM_E_STOPPED,
                    "training was stopped on request while features were computed: %lld of %lld "
                    "are kept, and --resume goes on from there",
                    (long long)it->n_made, (long long)it->wanted.n);
}

static tdm_status make_rows(struct maker *it, tdmi_feed *feed,
                            const struct tdmi_needed_row *entries, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    TDM_TRY(tdmi_feed_seek(feed, 0, 0, err), err, "reading pictures");
    for (;;) {
        const struct tdmi_batch *batch;
        tdm_status status = tdmi_feed_next(feed, &batch, err);
        if (status == TDM_E_STOPPED || (status == TDM_OK && tdm_stop_is_requested()))
            return stop(it, err);
        TDM_TRY(status, err, "reading pictures");
        if (!batch)
            return commit(it, err);
        TDM_TRY(tdmi_evaluator_feed(it->evaluator, feed, batch, NULL, it->rows, err), err,
                "running the frozen part");
        status = keep_batch(it, entries, batch, err);
        if (status != TDM_OK)
            return status;
        tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PROGRESS,
                                                      .done = it->n_made + it->n_checked,
                                                      .total = it->wanted.n,
                                                      .seconds = tdmi_session_seconds(session)});
    }
}

/* Those of the entries that one loader can read: n of them from `first` on. */
static tdm_status sit(struct maker *it, int64_t first, int64_t n, bool is_changed, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    char text[TDMI_PROBLEM_BYTES];
    tdmi_loader *loader;
    tdmi_feed *feed;
    struct tdmi_loader_options options = {
        .source = session->source,
        .preprocess = *tdmi_graph_preprocess(session->graph),
        .is_strict = session->options.strict,
        .items = it->items + first,
        .n_items = n,
        .batch = TDMI_FEATURES_BATCH,
        .threads = tdmi_pool_threads(session->pool),
        .is_tuned = true,
        .memory_bytes = (session->options.memory + 1) / 2,
        .contents = session->contents.hashes,
        .cache = {.kind = TDMI_CACHE_NONE, .hashes = session->contents.hashes},
        .allocator = tdmi_session_allocator(session),
        .decoder = session->decoder,
    };
    if (is_changed) {
        options.augment = session->augment;
        options.augment_seed = session->options.seed;
        options.views.n = (uint32_t)session->views;
        options.views.given = it->views + first;
    }
    if (n == 0)
        return TDM_OK;
    TDM_TRY(tdmi_loader_open(&options, &loader, err), err, "reading pictures");
    TDM_TRY(tdmi_feed_open_pictures(loader, &feed, err), err, "reading pictures");
    tdm_status status = make_rows(it, feed, it->wanted.entries + first, err);
    const tdm_status settled = tdmi_evaluator_settle(it->evaluator, status == TDM_OK ? err : NULL);
    for (int64_t i = 0; tdmi_feed_skip_at(feed, i, text, sizeof text); i++)
        tdmi_session_note(session, "skipped: %s", text);
    tdmi_feed_close(feed);
    return status == TDM_OK ? settled : status;
}

static tdm_status open_maker(struct maker *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    struct tdmi_features *features = &session->features;
    const struct tdmi_plan_options request = {.max_images = tdmi_features_images(session->shard),
                                              .storage = session->storage,
                                              .device = session->device,
                                              .most_workspace = session->most_workspace};
    TDM_TRY(tdmi_plan_make(features->base, session->backend, &request, &it->plan, err), err,
            "planning the frozen part");
    features->maker_bytes = tdmi_evaluator_needs(it->plan, TDMI_FEATURES_BATCH, 1);
    TDM_TRY(tdmi_evaluator_open(it->plan, session->device, session->pool, TDMI_FEATURES_BATCH,
                                &it->evaluator, err),
            err, "preparing the frozen part");
    /* Of what is frozen an average is the value itself, up to its rounding. */
    TDM_TRY(tdmi_evaluator_take(it->evaluator, tdmi_session_trained(session), err), err,
            "preparing the frozen part");
    it->rows =
        tdmi_alloc((size_t)TDMI_FEATURES_BATCH + 1, (size_t)features->width * sizeof *it->rows);
    it->items = tdmi_alloc((size_t)it->wanted.n + 1, sizeof *it->items);
    it->views = tdmi_alloc((size_t)it->wanted.n + 1, sizeof *it->views);
    if (!it->rows || !it->items || !it->views)
        return TDM_FAIL(err, TDM_E_MEMORY, "computing %lld features: out of memory",
                        (long long)it->wanted.n);
    for (int64_t i = 0; i < it->wanted.n; i++) {
        it->items[i] = it->wanted.entries[i].item;
        it->views[i] = it->wanted.entries[i].view;
    }
    return TDM_OK;
}

static void close_maker(struct maker *it)
{
    tdmi_needed_release(&it->wanted);
    tdmi_free(it->views);
    tdmi_free(it->items);
    tdmi_free(it->rows);
    tdmi_evaluator_close(it->evaluator);
    tdmi_plan_free(it->plan);
}

/* All entries: pictures as they are, then those that are changed. */
static tdm_status make_all(struct maker *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    int64_t n_plain = it->wanted.n;
    if (it->wanted.n == 0)
        return TDM_OK;
    for (n_plain = 0; n_plain < it->wanted.n; n_plain++)
        if (session->views > 0 && !it->wanted.entries[n_plain].is_val)
            break;
    const double before = tdmi_session_seconds(session);
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN,
                                                  .total = it->wanted.n,
                                                  .text = "computing features"});
    tdm_status status = sit(it, 0, n_plain, false, err);
    if (status == TDM_OK)
        status = sit(it, n_plain, it->wanted.n - n_plain, true, err);
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    it->seconds = tdmi_session_seconds(session) - before;
    session->training_seconds += it->seconds;
    session->features.count.rows += it->n_made;
    return status;
}

/* ---- when ------------------------------------------------------------------------------------ */

static tdm_status make_test_row(struct maker *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const int32_t label = 0;
    const int64_t item = 0;
    const struct tdmi_batch picture = {
        .n = 1, .pixels = session->snapshot.test_pixels, .labels = &label, .items = &item};
    return tdmi_evaluator_batch(it->evaluator, &picture, NULL, session->features.test_row, NULL,
                                err);
}

/* Those that judge, unless training is over those of the epoch, and if asked for some again. */
static tdm_status list_wanted(struct maker *it, bool has_checks, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    tdm_status status = tdmi_needed_val(&it->wanted, err);
    if (status == TDM_OK && !tdmi_session_is_over(session))
        status = tdmi_needed_epoch(&it->wanted, err);
    session->features.count.checked = has_checks ? 0 : session->features.count.checked;
    if (status == TDM_OK && has_checks)
        status = tdmi_needed_checks(&it->wanted, err);
    if (status == TDM_OK)
        tdmi_needed_arrange(&it->wanted);
    return status;
}

static tdm_status make_first(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_features *features = &session->features;
    struct maker it = {.session = session, .wanted = {.session = session}};
    tdm_status status = list_wanted(&it, true, err);
    if (status == TDM_OK)
        status = open_maker(&it, err);
    if (status == TDM_OK)
        status = make_test_row(&it, err);
    if (status == TDM_OK)
        status = make_all(&it, err);
    if (status == TDM_OK && it.wanted.n > 0)
        tdmi_session_note(session,
                          "features: %lld computed in %.1f s, %lld found (%lld of them computed "
                          "again, and equal); %d numbers a picture, in %s",
                          (long long)it.n_made, it.seconds, (long long)features->count.reused,
                          (long long)features->count.checked, features->width,
                          tdmi_store_folder(features->train));
    close_maker(&it);
    return status;
}

/* Of an epoch's views, or of whatever is missing since stores were opened again. */
static tdm_status make_missing(struct tdmi_session *session, tdm_error *err)
{
    struct maker it = {.session = session, .wanted = {.session = session}};
    tdm_status status = list_wanted(&it, false, err);
    if (status == TDM_OK && it.wanted.n > 0) {
        status = open_maker(&it, err);
        if (status == TDM_OK)
            status = make_all(&it, err);
        if (status == TDM_OK)
            tdmi_session_note(session, "features: %lld more computed in %.1f s",
                              (long long)it.n_made, it.seconds);
    }
    close_maker(&it);
    return status;
}

/* ---- what is damaged or goes away ---------------------------------------------------------------
 */

enum { most_mended = 20 };

/* A row that is damaged, or a folder that somebody removed while it was filled; everything else
 * is a failure like any other. */
static bool can_mend(const struct tdmi_session *session, tdm_status status)
{
    const struct tdmi_features *features = &session->features;
    if (status == TDM_OK || features->n_mended >= most_mended)
        return false;
    return features->damaged ||
           (status == TDM_E_SYSTEM &&
            (tdmi_file_kind_of(tdmi_store_folder(features->val)) == TDMI_FILE_MISSING ||
             tdmi_file_kind_of(tdmi_store_folder(features->train)) == TDMI_FILE_MISSING));
}

static tdm_status mend(struct tdmi_session *session, const tdm_error *why, tdm_error *err)
{
    struct tdmi_features *features = &session->features;
    char text[TDM_ERROR_TEXT_BYTES];
    tdm_error_line(why, text, sizeof text);
    tdmi_store_drop_remedy(text);
    if (features->n_mended++ == 0)
        tdm_log(TDM_LOG_WARNING, "features are computed once more where they are missing now: %s",
                text);
    if (features->damaged)
        TDM_TRY(tdmi_store_discard(features->damaged, features->damaged_at, err), err,
                "mending features (%s)", text);
    features->damaged = NULL;
    return TDM_WRAP(err, tdmi_features_reopen(session, err), "mending features (%s)", text);
}

/* Until it succeeds, or fails for another reason. */
static tdm_status make_and_mend(struct tdmi_session *session,
                                tdm_status (*make)(struct tdmi_session *session, tdm_error *err),
                                tdm_error *err)
{
    for (;;) {
        tdm_error why = {0};
        const tdm_status status = make(session, &why);
        if (!can_mend(session, status)) {
            if (status != TDM_OK && err)
                *err = why;
            return status;
        }
        TDM_TRY(mend(session, &why, err), err, "computing features");
    }
}

tdm_status tdmi_session_mend_row(void *self, const tdmi_store *store, int64_t place,
                                 const tdm_error *why, tdm_error *err)
{
    struct tdmi_session *session = self;
    note_damage(session, store, place, why->code);
    if (!can_mend(session, why->code)) {
        if (err)
            *err = *why;
        return why->code;
    }
    TDM_TRY(mend(session, why, err), err, "reading features");
    return make_and_mend(session, make_missing, err);
}

tdm_status tdmi_session_make_features(struct tdmi_session *session, tdm_error *err)
{
    return make_and_mend(session, make_first, err);
}

tdm_status tdmi_session_make_views(struct tdmi_session *session, tdm_error *err)
{
    if (!session->features.is_used || session->views == 0)
        return TDM_OK;
    return make_and_mend(session, make_missing, err);
}
