/*
 * Making rows of a frozen base: in sittings over pictures that lie in one list. The first sitting
 * is before training begins, and makes a few of the rows that were found again, which must be the
 * same to the bit. Views are made by the epoch that first wants them: who stops early has not paid
 * for those of later ones.
 */
#include "base/memory.h"
#include "base/rng.h"
#include "tandem/stop.h"
#include "tensor/half.h"
#include "train/session_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { most_checked = 32, batch_pictures = 64, first_entries = 1024 };

/* A row that is to be made, or made again. */
struct entry {
    int64_t item;
    uint32_t view;
    bool is_val, is_found;
};

struct maker {
    struct tdmi_session *session;
    tdmi_plan *plan;
    tdmi_judge *judge;
    float *rows; /* of one batch, and one to spare */
    struct entry *entries;
    int64_t n_entries, capacity;
    /* What the loader is lent of a sitting. */
    int64_t *items;
    uint32_t *views;
    int64_t n_made, n_checked;
    double seconds;
};

static tdmi_store *store_of(const struct maker *it, bool is_val)
{
    const struct tdmi_features *features = &it->session->features;
    return is_val ? features->val : features->train;
}

/* ---- what is to be made ---------------------------------------------------------------------- */

static tdm_status list(struct maker *it, struct entry entry, tdm_error *err)
{
    if (it->n_entries == it->capacity) {
        const int64_t capacity = it->capacity == 0 ? first_entries : 2 * it->capacity;
        struct entry *grown = tdmi_realloc(it->entries, (size_t)capacity, sizeof *grown);
        if (!grown)
            return TDM_FAIL(err, TDM_E_MEMORY, "listing %lld rows: out of memory",
                            (long long)capacity);
        it->entries = grown;
        it->capacity = capacity;
    }
    it->entries[it->n_entries++] = entry;
    return TDM_OK;
}

static bool is_there(const struct maker *it, struct entry entry)
{
    return tdmi_store_find(store_of(it, entry.is_val),
                           tdmi_features_row(it->session, entry.item, entry.view)) >= 0;
}

static tdm_status list_missing(struct maker *it, struct entry entry, tdm_error *err)
{
    if (it->session->features.is_broken[entry.item] || is_there(it, entry))
        return TDM_OK;
    return list(it, entry, err);
}

static tdm_status list_val(struct maker *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < session->n_judged && status == TDM_OK; i++)
        status = list_missing(it, (struct entry){.item = session->judged[i], .is_val = true}, err);
    return status;
}

/* What the epoch that is begun wants. */
static tdm_status list_epoch(struct maker *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const uint32_t epoch = (uint32_t)session->progress.epoch, n_views = (uint32_t)session->views;
    tdm_status status = TDM_OK;
    for (int64_t p = 0; p < session->order.n && status == TDM_OK; p++) {
        const int64_t nth = tdmi_order_at(&session->order, epoch, p);
        const struct entry entry = {
            .item = session->split.train[nth],
            .view = n_views ? tdmi_order_view(&session->order, epoch, p, n_views) : 0};
        status = list_missing(it, entry, err);
    }
    return status;
}

static bool is_made_again(const struct tdmi_session *session, struct entry entry)
{
    const int64_t reused = session->features.count.reused;
    tdmi_rng rng =
        tdmi_rng_at(session->options.seed, TDMI_RNG_RECHECK, entry.view, (uint64_t)entry.item);
    return reused <= most_checked ||
           (double)tdmi_rng_unit(&rng) * (double)reused < (double)most_checked;
}

static tdm_status list_again(struct maker *it, struct entry entry, tdm_error *err)
{
    if (!is_made_again(it->session, entry) || !is_there(it, entry))
        return TDM_OK;
    it->session->features.count.checked++;
    entry.is_found = true;
    return list(it, entry, err);
}

static tdm_status list_checks(struct maker *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const tdmi_split *split = &session->split;
    const uint32_t n_views = tdmi_features_views(session);
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < session->n_judged && status == TDM_OK; i++)
        status = list_again(it, (struct entry){.item = session->judged[i], .is_val = true}, err);
    for (int64_t i = 0; i < split->n_train; i++)
        for (uint32_t view = 0; view < n_views && status == TDM_OK; view++)
            status = list_again(it, (struct entry){.item = split->train[i], .view = view}, err);
    return status;
}

/* So that pictures that lie together are read together. */
static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return (x->view > y->view) - (x->view < y->view);
}

/* Pictures as they are first: a loader changes all that it reads or none. */
static int by_part_and_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->is_val == y->is_val ? by_place(a, b) : x->is_val ? -1 : 1;
}

/* An order may want a row twice. */
static void arrange(struct maker *it)
{
    const bool has_views = it->session->views > 0;
    int64_t n = 0;
    if (it->n_entries > 0)
        qsort(it->entries, (size_t)it->n_entries, sizeof *it->entries,
              has_views ? by_part_and_place : by_place);
    for (int64_t i = 0; i < it->n_entries; i++)
        if (n == 0 || by_part_and_place(&it->entries[n - 1], &it->entries[i]) != 0)
            it->entries[n++] = it->entries[i];
    it->n_entries = n;
}

/* ---- making them ----------------------------------------------------------------------------- */

/* What is stored of a picture must be what is made of it now. */
static tdm_status compare(const struct maker *it, struct entry entry, const float *row,
                          tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const int width = session->features.width;
    const tdmi_store *store = store_of(it, entry.is_val);
    const bool is_half = !entry.is_val && strcmp(session->options.features, "f16") == 0;
    float *stored = it->rows + (size_t)batch_pictures * (size_t)width;
    double worst = 0.0;
    bool is_same = true;
    TDM_TRY(tdmi_store_read(
                store, tdmi_store_find(store, tdmi_features_row(session, entry.item, entry.view)),
                stored, err),
            err, "looking at stored features again");
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

static tdm_status keep_batch(struct maker *it, const struct entry *entries,
                             const struct tdmi_batch *batch, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const size_t width = (size_t)session->features.width;
    for (int p = 0; p < batch->n; p++) {
        const struct entry entry = entries[batch->first + p];
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
                : tdmi_store_fill_add(store_of(it, entry.is_val),
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
                    (long long)it->n_made, (long long)it->n_entries);
}

static tdm_status make_rows(struct maker *it, tdmi_loader *loader, const struct entry *entries,
                            tdm_error *err)
{
    struct tdmi_session *session = it->session;
    TDM_TRY(tdmi_loader_seek(loader, 0, 0, err), err, "reading pictures");
    for (;;) {
        const struct tdmi_batch *batch;
        tdm_status status = tdmi_loader_next(loader, &batch, err);
        if (status == TDM_E_STOPPED || (status == TDM_OK && tdm_stop_is_requested()))
            return stop(it, err);
        TDM_TRY(status, err, "reading pictures");
        if (!batch)
            return commit(it, err);
        TDM_TRY(tdmi_judge_batch(it->judge, batch, NULL, it->rows, NULL, err), err,
                "running the frozen part");
        status = keep_batch(it, entries, batch, err);
        if (status != TDM_OK)
            return status;
        tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PROGRESS,
                                                      .done = it->n_made + it->n_checked,
                                                      .total = it->n_entries,
                                                      .seconds = tdmi_session_seconds(session)});
    }
}

/* Those of the entries that one loader can read: n of them from `first` on. */
static tdm_status sit(struct maker *it, int64_t first, int64_t n, bool is_changed, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    char text[TDMI_PROBLEM_BYTES];
    tdmi_loader *loader;
    struct tdmi_loader_options options = {
        .source = session->source,
        .preprocess = *tdmi_graph_preprocess(session->graph),
        .items = it->items + first,
        .n_items = n,
        .batch = batch_pictures,
        .threads = tdmi_pool_threads(session->pool),
        .is_tuned = true,
        .memory_bytes = (session->options.memory + 1) / 2,
        .contents = session->contents.hashes,
        .cache = {.kind = TDMI_CACHE_NONE, .hashes = session->contents.hashes},
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
    const tdm_status status = make_rows(it, loader, it->entries + first, err);
    for (int64_t i = 0; tdmi_loader_skip_at(loader, i, text, sizeof text); i++)
        tdmi_session_note(session, "skipped: %s", text);
    tdmi_loader_close(loader);
    return status;
}

static tdm_status open_maker(struct maker *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const struct tdmi_features *features = &session->features;
    TDM_TRY(tdmi_plan_new(features->base, session->backend, session->shard, false, &it->plan, err),
            err, "planning the frozen part");
    TDM_TRY(
        tdmi_judge_open(it->plan, session->device, session->pool, batch_pictures, &it->judge, err),
        err, "preparing the frozen part");
    /* Of what is frozen an average is the value itself, up to its rounding. */
    TDM_TRY(tdmi_judge_take(it->judge, tdmi_session_trained(session), err), err,
            "preparing the frozen part");
    it->rows = tdmi_alloc((size_t)batch_pictures + 1, (size_t)features->width * sizeof *it->rows);
    it->items = tdmi_alloc((size_t)it->n_entries + 1, sizeof *it->items);
    it->views = tdmi_alloc((size_t)it->n_entries + 1, sizeof *it->views);
    if (!it->rows || !it->items || !it->views)
        return TDM_FAIL(err, TDM_E_MEMORY, "computing %lld features: out of memory",
                        (long long)it->n_entries);
    for (int64_t i = 0; i < it->n_entries; i++) {
        it->items[i] = it->entries[i].item;
        it->views[i] = it->entries[i].view;
    }
    return TDM_OK;
}

static void close_maker(struct maker *it)
{
    tdmi_free(it->entries);
    tdmi_free(it->views);
    tdmi_free(it->items);
    tdmi_free(it->rows);
    tdmi_judge_close(it->judge);
    tdmi_plan_free(it->plan);
}

/* All entries: pictures as they are, then those that are changed. */
static tdm_status make_all(struct maker *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    int64_t n_plain = it->n_entries;
    if (it->n_entries == 0)
        return TDM_OK;
    for (n_plain = 0; n_plain < it->n_entries; n_plain++)
        if (session->views > 0 && !it->entries[n_plain].is_val)
            break;
    const double before = tdmi_session_seconds(session);
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN,
                                                  .total = it->n_entries,
                                                  .text = "computing features"});
    tdm_status status = sit(it, 0, n_plain, false, err);
    if (status == TDM_OK)
        status = sit(it, n_plain, it->n_entries - n_plain, true, err);
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
    return tdmi_judge_batch(it->judge, &picture, NULL, session->features.test_row, NULL, err);
}

tdm_status tdmi_session_make_features(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_features *features = &session->features;
    struct maker it = {.session = session};
    tdm_status status = list_val(&it, err);
    if (status == TDM_OK)
        status = list_epoch(&it, err);
    if (status == TDM_OK)
        status = list_checks(&it, err);
    if (status == TDM_OK) {
        arrange(&it);
        status = open_maker(&it, err);
    }
    if (status == TDM_OK)
        status = make_test_row(&it, err);
    if (status == TDM_OK)
        status = make_all(&it, err);
    if (status == TDM_OK && it.n_entries > 0)
        tdmi_session_note(session,
                          "features: %lld computed in %.1f s, %lld found (%lld of them computed "
                          "again, and equal); %d numbers a picture, in %s",
                          (long long)it.n_made, it.seconds, (long long)features->count.reused,
                          (long long)features->count.checked, features->width,
                          tdmi_store_folder(features->train));
    close_maker(&it);
    return status;
}

tdm_status tdmi_session_make_views(struct tdmi_session *session, tdm_error *err)
{
    struct maker it = {.session = session};
    if (!session->features.is_used || session->views == 0)
        return TDM_OK;
    tdm_status status = list_epoch(&it, err);
    if (status == TDM_OK && it.n_entries > 0) {
        arrange(&it);
        status = open_maker(&it, err);
        if (status == TDM_OK)
            status = make_all(&it, err);
        if (status == TDM_OK)
            tdmi_session_note(session, "features: %lld of other views computed in %.1f s",
                              (long long)it.n_made, it.seconds);
    }
    close_maker(&it);
    return status;
}
