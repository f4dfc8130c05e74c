/*
 * Computing feature rows, and repairing stores. Before training, missing rows are computed and some
 * of those found are computed again, to check that they are bit-identical. The views of an epoch
 * are computed when it begins, so a training that stops early has not computed those of later
 * epochs.
 *
 * With several ranks, rank 0 has the stores and lists what is missing. Batches are divided among
 * all, and the rows of one travel to rank 0 while the next one is computed:
 *
 *     rank 0      list ► rows of its part 0 ► its part 1 ► keep 0 ► its part 2 ► keep 1 ► …
 *     followers          rows of theirs   0 ► theirs   1          ► theirs   2          ► …
 *     on the way                             └─ 0 ─┘               └─── 1 ───┘
 */
#include "base/file/file.h"
#include "base/scope.h"
#include "tandem/log.h"
#include "tandem/event.h"
#include "tensor/half.h"
#include "train/features/parcel.h"
#include "train/session/session.h"

#include <math.h>
#include <string.h>

struct extractor {
    struct tdmi_session *session;
    tdmi_plan *plan;
    tdmi_evaluator *evaluator;
    float *stored_row;
    struct tdmi_parcel parcels[2]; /* one is filled while the other is on its way */
    int filled;
    bool is_on_its_way;
    struct tdmi_agreed next; /* on rank 0: its decision after the batch that came last */
    tdm_error failure;       /* why rank 0 could not keep a batch */
    struct tdmi_missing_rows missing;
    /* Items and views of all entries, for loaders. */
    int64_t *items;
    uint32_t *views;
    int64_t n_computed, n_checked;
    double began;   /* when the first row was computed, in seconds of the run */
    double seconds; /* spent on computing rows */
};

/* ---- computing rows -------------------------------------------------------------------------- */

/* A damaged row is computed again. A row that the system cannot read now may be right: it stays,
 * and the system's error is the failure. */
static void note_damage(struct tdmi_feature_cache *cache, const tdmi_store *store, int64_t place,
                        tdm_status status)
{
    cache->damaged = status == TDM_E_INPUT ? store : NULL;
    cache->damaged_at = place;
}

/* A stored row must equal the row that is computed now. */
static tdm_status compare(const struct extractor *it, struct tdmi_missing_row entry,
                          const float *row, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const int width = session->cache.width;
    const tdmi_store *store = tdmi_features_store(&session->cache, entry.is_val);
    const bool is_half = !entry.is_val && session->config.features == TDMI_FEATURES_F16;
    float *stored = it->stored_row;
    double worst = 0.0;
    bool is_same = true;
    const int64_t at =
        tdmi_store_find(store, tdmi_features_row(&session->data, entry.item, entry.view));
    const tdm_status status = tdmi_store_read(store, at, stored, err);
    note_damage(&session->cache, store, at, status);
    TDM_TRY(status, err, "checking stored features");
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
        "the stored features of %s differ from those computed now by up to %g. Weights, "
        "preprocessing, program, libraries and instruction set are the same, so the machine or "
        "build that stored them is faulty, or this one is; remove %s, and all are computed again",
        tdmi_source_item(session->data.source, entry.item).path, worst, tdmi_store_folder(store));
}

static tdm_status keep_rows(struct extractor *it, const struct tdmi_parcel *parcel,
                            const struct tdmi_missing_row *entries, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const size_t width = (size_t)session->cache.width;
    for (int p = 0; p < parcel->n; p++) {
        const struct tdmi_missing_row entry = entries[parcel->first + p];
        const float *row = parcel->rows + (size_t)p * width;
        if (parcel->labels[p] < 0) {
            session->cache.is_broken[entry.item] = true;
            continue;
        }
        if (entry.is_found)
            TDMI_TRY(compare(it, entry, row, err));
        else
            TDMI_TRY(tdmi_store_fill_add(tdmi_features_store(&session->cache, entry.is_val),
                                         tdmi_features_row(&session->data, entry.item, entry.view),
                                         row, err));
        it->n_checked += entry.is_found;
        it->n_computed += !entry.is_found;
    }
    return TDM_OK;
}

static tdm_status commit(struct extractor *it, tdm_error *err)
{
    const struct tdmi_feature_cache *cache = &it->session->cache;
    if (tdmi_ranks_is_follower(it->session))
        return TDM_OK;
    TDM_TRY(tdmi_store_fill_commit(cache->val, err), err, "keeping features");
    if (cache->train != cache->val)
        TDM_TRY(tdmi_store_fill_commit(cache->train, err), err, "keeping features");
    return TDM_OK;
}

/* TDM_OK on followers. */
static tdm_status report_failure(const struct extractor *it, tdm_error *err)
{
    if (it->failure.code != TDM_OK && err)
        *err = it->failure;
    return it->failure.code;
}

static tdm_status stop(struct extractor *it, tdm_error *err)
{
    if (it->failure.code != TDM_OK && !it->session->cache.damaged) /* damage is found again */
        return report_failure(it, err);
    TDM_TRY(commit(it, err), err, "stopping on request");
    return TDM_FAIL(err, TDM_E_STOPPED,
                    "training was stopped on request while features were computed: %lld of %lld "
                    "are kept, and --resume continues from there",
                    (long long)it->n_computed, (long long)it->missing.n);
}

/* This rank's part of a batch. */
static tdm_status fill_parcel(struct extractor *it, tdmi_feed *feed, const struct tdmi_batch *batch,
                              tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    struct tdmi_parcel *parcel = &it->parcels[it->filled];
    const bool has_others = tdmi_ranks_world(session) > 1;
    parcel->first = has_others ? batch->first - batch->whole.first : batch->first;
    parcel->n = has_others ? batch->whole.n : batch->n;
    TDMI_TRY(tdmi_data_check_batch(&session->config, batch, err));
    if (batch->n > 0)
        TDM_TRY(tdmi_evaluator_feed(it->evaluator, feed, batch, NULL, parcel->rows, err), err,
                "running the frozen layers");
    if (has_others)
        TDM_TRY(tdmi_evaluator_settle(it->evaluator, err), err, "running the frozen layers");
    memcpy(parcel->labels, batch->labels, sizeof *parcel->labels * (size_t)batch->n);
    return TDM_OK;
}

static tdm_status send_parcel(struct extractor *it, tdm_error *err)
{
    struct tdmi_parcel *parcel = &it->parcels[it->filled];
    parcel->agreed = it->next;
    it->is_on_its_way = true;
    it->filled = 1 - it->filled;
    return tdmi_parcel_send(it->session, parcel, err);
}

/* Rows that rank 0 cannot keep become its failure when the others know it, one batch later. */
static tdm_status receive_parcel(struct extractor *it, const struct tdmi_missing_row *entries,
                                 tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const struct tdmi_parcel *parcel = &it->parcels[1 - it->filled];
    if (!it->is_on_its_way)
        return TDM_OK;
    it->is_on_its_way = false;
    TDMI_TRY(tdmi_comm_finish(session->compute.comm, err));
    session->agreed = parcel->agreed;
    if (tdmi_ranks_is_follower(session) || session->agreed.is_abandoned)
        return TDM_OK;
    const tdm_status kept = keep_rows(it, parcel, entries, &it->failure);
    it->next = session->agreed;
    it->next.is_abandoned = kept != TDM_OK;
    tdmi_ranks_decide(session, parcel->stops, &it->next);
    return TDM_OK;
}

static bool is_stopping(const struct tdmi_session *session)
{
    return tdmi_ranks_world(session) > 1 ? session->agreed.is_stopping : tdm_stop_is_requested();
}

/* The end of a range: followers are told whether rank 0 could keep all of it. */
static tdm_status end_range(struct extractor *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    if (it->failure.code == TDM_OK)
        it->next.is_abandoned = commit(it, &it->failure) != TDM_OK;
    session->agreed = it->next;
    TDMI_TRY(tdmi_ranks_share(session, &session->agreed, sizeof session->agreed, err));
    if (tdmi_ranks_world(session) > 1 && session->agreed.is_stopping)
        return stop(it, err); /* asked for while the last batch was on its way */
    return report_failure(it, err);
}

/* Rows of this list and of the views of later epochs. */
static int64_t count_later(const struct extractor *it)
{
    const struct tdmi_session *session = it->session;
    const int64_t views = (int64_t)tdmi_features_views(&session->config);
    return it->missing.n + session->data.split.n_train * (views - 1);
}

static tdm_status compute_rows(struct extractor *it, tdmi_feed *feed,
                               const struct tdmi_missing_row *entries, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const bool has_others = tdmi_ranks_world(session) > 1;
    it->next = session->agreed;
    TDM_TRY(tdmi_feed_seek(feed, 0, 0, err), err, "reading images");
    for (;;) {
        const struct tdmi_batch *batch;
        const tdm_status status = tdmi_feed_next(feed, &batch, err);
        if (status == TDM_E_STOPPED || (status == TDM_OK && is_stopping(session)))
            return stop(it, err);
        TDM_TRY(status, err, "reading images");
        if (batch)
            TDMI_TRY(fill_parcel(it, feed, batch, err));
        TDMI_TRY(receive_parcel(it, entries, err));
        if (session->agreed.is_abandoned)
            return report_failure(it, err);
        if (has_others && session->agreed.is_stopping)
            return stop(it, err);
        if (!batch)
            return end_range(it, err);
        TDMI_TRY(has_others ? send_parcel(it, err)
                            : keep_rows(it, &it->parcels[it->filled], entries, err));
        tdmi_track_event(session->record.track,
                         &(tdm_event){.kind = TDM_EVENT_PROGRESS,
                                      .done = it->n_computed + it->n_checked,
                                      .total = it->missing.n,
                                      .seconds = tdmi_record_seconds(&session->record)});
        tdmi_estimate_by_features(session, it->n_computed + it->n_checked, count_later(it),
                                  tdmi_record_seconds(&session->record) - it->began);
    }
}

static void find_part(const void *self, int n, int *first, int *end)
{
    const struct tdmi_session *session = self;
    tdmi_ranks_part_of_batch(n, tdmi_comm_rank(session->compute.comm), tdmi_ranks_world(session),
                             first, end);
}

/* Computes n entries from `first` on, with one loader: all changed or none. */
static tdm_status compute_range(struct extractor *it, int64_t first, int64_t n, bool is_changed,
                                tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const int world = tdmi_ranks_world(session);
    tdmi_loader *loader;
    tdmi_feed *feed;
    struct tdmi_loader_options options = {
        .source = session->data.source,
        .preprocess = *tdmi_graph_preprocess(session->network.graph),
        .is_strict = session->config.options.strict,
        .items = it->items + first,
        .n_items = n,
        .batch = TDMI_FEATURES_BATCH * world,
        .threads = session->compute.placement.loader_threads,
        .placement = &session->compute.placement,
        .is_tuned = true,
        .memory_bytes = (session->config.options.memory + 1) / 2,
        .contents = session->data.contents.hashes,
        .cache = {.kind = TDMI_CACHE_NONE, .hashes = session->data.contents.hashes},
        .allocator = tdmi_compute_allocator(&session->compute),
        .decoder = session->compute.decoder,
    };
    if (is_changed) {
        options.augment = session->config.augment;
        options.augment_seed = session->config.options.seed;
        options.views.n = (uint32_t)session->config.views;
        options.views.given = it->views + first;
    }
    if (world > 1) {
        options.waits_on = true;
        options.part = (struct tdmi_loader_part){find_part, session, TDMI_FEATURES_BATCH};
    }
    if (n == 0)
        return TDM_OK;
    TDM_TRY(tdmi_loader_open(&options, &loader, err), err, "reading images");
    TDM_TRY(tdmi_feed_open_pictures(loader, &feed, err), err, "reading images");
    tdm_status status = compute_rows(it, feed, it->missing.entries + first, err);
    const tdm_status settled = tdmi_evaluator_settle(it->evaluator, status == TDM_OK ? err : NULL);
    const bool is_done = status == TDM_OK && settled == TDM_OK;
    /* A parcel uses memory that is freed now; the failure of this rank is known. */
    if (it->is_on_its_way && tdmi_comm_finish(session->compute.comm, NULL) == TDM_OK)
        it->is_on_its_way = false;
    const bool is_shared = world > 1 && is_done && !session->agreed.is_abandoned;
    const tdm_status reported =
        tdmi_data_report_skipped(session, feed, 0, is_shared, is_done ? err : NULL);
    tdmi_feed_close(feed);
    return is_done ? reported : status == TDM_OK ? settled : status;
}

static tdm_status open_extractor(struct extractor *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    struct tdmi_feature_cache *features = &session->cache;
    const struct tdmi_plan_options request = tdmi_features_plan(
        session, session->config.shard, session->compute.device, session->compute.most_workspace);
    TDM_TRY(tdmi_plan_make(features->base, session->compute.backend, &request, &it->plan, err), err,
            "planning the frozen layers");
    features->extractor_bytes = tdmi_evaluator_needs(it->plan, TDMI_FEATURES_BATCH, 1);
    TDM_TRY(tdmi_evaluator_open(it->plan, session->compute.device, session->compute.pool,
                                TDMI_FEATURES_BATCH, &it->evaluator, err),
            err, "preparing the frozen layers");
    /* Averages of frozen values are the values themselves, but for rounding. */
    TDM_TRY(tdmi_evaluator_take(it->evaluator, tdmi_values_trained(&session->network), err), err,
            "preparing the frozen layers");
    for (int i = 0; i < (tdmi_ranks_world(session) > 1 ? 2 : 1); i++)
        TDMI_TRY(tdmi_parcel_open(session, &it->parcels[i], err));
    TDMI_TRY(TDMI_NEW(it->stored_row, features->width, err));
    TDMI_TRY(TDMI_NEW(it->items, it->missing.n + 1, err));
    TDMI_TRY(TDMI_NEW(it->views, it->missing.n + 1, err));
    for (int64_t i = 0; i < it->missing.n; i++) {
        it->items[i] = it->missing.entries[i].item;
        it->views[i] = it->missing.entries[i].view;
    }
    return TDM_OK;
}

static void close_extractor(struct extractor *it)
{
    tdmi_missing_rows_release(&it->missing);
    tdmi_free(it->views);
    tdmi_free(it->items);
    tdmi_free(it->stored_row);
    for (int i = 0; i < 2; i++)
        tdmi_parcel_release(&it->parcels[i]);
    tdmi_evaluator_close(it->evaluator);
    tdmi_plan_free(it->plan);
}

/* Command of rank 0 to its followers. */
struct wish {
    bool computes; /* rows, whose entries follow; else they are dismissed */
    bool has_trained;
    struct tdmi_agreed agreed;
    struct tdmi_progress progress;
};

static tdm_status share_wish(struct tdmi_session *session, struct wish *wish, tdm_error *err)
{
    return TDM_WRAP(err, tdmi_ranks_share(session, wish, sizeof *wish, err),
                    "telling all ranks what to do");
}

/* Followers compute the same list. */
static tdm_status share_list(struct extractor *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    size_t n_bytes = sizeof *it->missing.entries * (size_t)it->missing.n;
    void *entries = it->missing.entries;
    session->agreed.is_abandoned = false;
    if (tdmi_ranks_is_follower(session) || tdmi_ranks_world(session) == 1)
        return TDM_OK;
    TDMI_TRY(share_wish(session, &(struct wish){.computes = true}, err));
    return tdmi_comm_spread(session->compute.comm, &entries, &n_bytes, err);
}

/* Computes all entries: unchanged images, then changed ones. */
static tdm_status compute_all(struct extractor *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    int64_t n_plain = 0;
    if (it->missing.n == 0)
        return TDM_OK;
    TDMI_TRY(share_list(it, err));
    while (n_plain < it->missing.n &&
           (session->config.views == 0 || it->missing.entries[n_plain].is_val))
        n_plain++;
    it->began = tdmi_record_seconds(&session->record);
    tdmi_track_event(session->record.track, &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN,
                                                         .total = it->missing.n,
                                                         .text = "computing features"});
    tdm_status status = compute_range(it, 0, n_plain, false, err);
    if (status == TDM_OK && !session->agreed.is_abandoned)
        status = compute_range(it, n_plain, it->missing.n - n_plain, true, err);
    tdmi_track_event(session->record.track, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    it->seconds = tdmi_record_seconds(&session->record) - it->began;
    session->record.training_seconds += it->seconds;
    session->cache.count.rows += it->n_computed;
    return status;
}

/* ---- when ------------------------------------------------------------------------------------ */

static tdm_status compute_test_row(struct extractor *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const int32_t label = 0;
    const int64_t item = 0;
    const struct tdmi_batch picture = {
        .n = 1, .pixels = session->network.host.test_pixels, .labels = &label, .items = &item};
    return tdmi_evaluator_batch(it->evaluator, &picture, NULL, session->cache.test_row, NULL, err);
}

/* Lists missing rows of validation, of the epoch unless training is over, and rows to check. */
static tdm_status list_missing_rows(struct extractor *it, bool has_checks, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    TDMI_TRY(tdmi_missing_rows_add_val(&it->missing, err));
    if (!tdmi_limits_is_over(session))
        TDMI_TRY(tdmi_missing_rows_add_epoch(&it->missing, err));
    if (has_checks) {
        session->cache.count.checked = 0;
        TDMI_TRY(tdmi_missing_rows_add_checks(&it->missing, err));
    }
    tdmi_missing_rows_arrange(&it->missing);
    return TDM_OK;
}

static tdm_status compute_first(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_feature_cache *features = &session->cache;
    TDMI_AT_END(close_extractor)
    struct extractor it = {.session = session, .missing = {.session = session}};
    TDMI_TRY(list_missing_rows(&it, true, err));
    TDMI_TRY(open_extractor(&it, err));
    TDMI_TRY(compute_test_row(&it, err));
    TDMI_TRY(compute_all(&it, err));
    if (it.missing.n == 0)
        return TDM_OK;
    tdmi_record_note(&session->record, "features: %lld computed in %.1f s, %lld found in the cache",
                     (long long)it.n_computed, it.seconds, (long long)features->count.reused);
    tdmi_record_detail(&session->record,
                       "%lld of those found were computed again, and equal; they are %d "
                       "numbers an image, in %s",
                       (long long)features->count.checked, features->width,
                       tdmi_store_folder(features->train));
    return TDM_OK;
}

/* The views of an epoch, or rows that are missing since the stores were opened again. */
static tdm_status compute_missing(struct tdmi_session *session, tdm_error *err)
{
    TDMI_AT_END(close_extractor)
    struct extractor it = {.session = session, .missing = {.session = session}};
    TDMI_TRY(list_missing_rows(&it, false, err));
    if (it.missing.n == 0)
        return TDM_OK;
    TDMI_TRY(open_extractor(&it, err));
    TDMI_TRY(compute_all(&it, err));
    tdmi_record_note(&session->record, "features: %lld more computed in %.1f s",
                     (long long)it.n_computed, it.seconds);
    return TDM_OK;
}

/* ---- repairing damaged or removed stores ----------------------------------------------------- */

enum { most_repaired = 20 };

/* A damaged row, or a store folder that was removed while it was filled. */
static bool can_repair(const struct tdmi_session *session, tdm_status status)
{
    const struct tdmi_feature_cache *features = &session->cache;
    if (status == TDM_OK || status == TDM_E_STOPPED || features->n_repaired >= most_repaired ||
        session->agreed.is_stopping)
        return false;
    return features->damaged ||
           (status == TDM_E_SYSTEM &&
            (tdmi_file_kind_of(tdmi_store_folder(features->val)) == TDMI_FILE_MISSING ||
             tdmi_file_kind_of(tdmi_store_folder(features->train)) == TDMI_FILE_MISSING));
}

static tdm_status repair(struct tdmi_session *session, const tdm_error *why, tdm_error *err)
{
    struct tdmi_feature_cache *features = &session->cache;
    char text[TDM_ERROR_TEXT_BYTES];
    tdm_error_line(why, text, sizeof text);
    tdmi_store_drop_remedy(text);
    if (features->n_repaired++ == 0)
        tdm_log(TDM_LOG_WARNING, "missing features are computed again: %s", text);
    if (features->damaged)
        TDM_TRY(tdmi_store_discard(features->damaged, features->damaged_at, err), err,
                "repairing features (%s)", text);
    features->damaged = NULL;
    return TDM_WRAP(err, tdmi_features_reopen(session, err), "repairing features (%s)", text);
}

static tdm_status
compute_and_repair(struct tdmi_session *session,
                   tdm_status (*make)(struct tdmi_session *session, tdm_error *err), tdm_error *err)
{
    for (;;) {
        tdm_error why = {0};
        const tdm_status status = make(session, &why);
        if (!can_repair(session, status)) {
            if (status != TDM_OK && err)
                *err = why;
            return status;
        }
        TDM_TRY(repair(session, &why, err), err, "computing features");
    }
}

tdm_status tdmi_features_repair_row(void *self, const tdmi_store *store, int64_t place,
                                    const tdm_error *why, tdm_error *err)
{
    struct tdmi_session *session = self;
    note_damage(&session->cache, store, place, why->code);
    if (!can_repair(session, why->code)) {
        if (err)
            *err = *why;
        return why->code;
    }
    TDM_TRY(repair(session, why, err), err, "reading features");
    return compute_and_repair(session, compute_missing, err);
}

tdm_status tdmi_features_compute(struct tdmi_session *session, tdm_error *err)
{
    return compute_and_repair(session, compute_first, err);
}

tdm_status tdmi_features_compute_views(struct tdmi_session *session, tdm_error *err)
{
    if (!session->cache.is_used || session->config.views == 0)
        return TDM_OK;
    return compute_and_repair(session, compute_missing, err);
}

/* ---- followers ------------------------------------------------------------------------------- */

static tdm_status compute_wished(struct tdmi_session *session, tdm_error *err)
{
    TDMI_AT_END(close_extractor)
    struct extractor it = {.session = session, .missing = {.session = session}};
    void *entries = NULL;
    size_t n_bytes = 0;
    TDMI_TRY(tdmi_comm_spread(session->compute.comm, &entries, &n_bytes, err));
    it.missing.entries = entries;
    it.missing.n = it.missing.capacity = (int64_t)(n_bytes / sizeof *it.missing.entries);
    TDMI_TRY(open_extractor(&it, err));
    return compute_all(&it, err);
}

tdm_status tdmi_features_follow(struct tdmi_session *session, tdm_error *err)
{
    struct wish wish;
    for (;;) {
        TDMI_TRY(share_wish(session, &wish, err));
        if (!wish.computes)
            break;
        TDM_TRY(compute_wished(session, err), err, "computing features for rank 0");
    }
    session->agreed = wish.agreed;
    if (!wish.has_trained)
        return TDM_OK;
    session->progress = wish.progress;
    return wish.agreed.is_over ? TDM_OK : tdmi_ranks_share_values(session, err);
}

tdm_status tdmi_features_dismiss(struct tdmi_session *session, bool has_trained, bool is_over,
                                 tdm_error *err)
{
    if (tdmi_ranks_world(session) == 1)
        return TDM_OK;
    session->agreed.is_over = is_over;
    TDMI_TRY(share_wish(session,
                        &(struct wish){.has_trained = has_trained,
                                       .agreed = session->agreed,
                                       .progress = session->progress},
                        err));
    return has_trained && !is_over ? tdmi_ranks_share_values(session, err) : TDM_OK;
}
