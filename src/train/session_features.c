/*
 * Rows of a frozen base: what it makes of a picture never changes, so it is made once, kept on
 * disk for every run that comes (data/store.h), and trained on in place of the picture. A few of
 * the rows that were found are made again in every run, and must be the same to the bit.
 */
#include "base/cpu.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"
#include "tandem/stop.h"
#include "tensor/half.h"
#include "train/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* most_values: of a row; what a network makes of a picture early on is many times the picture. */
enum { rows_version = 1, most_checked = 32, batch_pictures = 64, most_values = 1 << 18 };

/* ---- the key --------------------------------------------------------------------------------- */

/* Everything that a row depends on but the picture: which values, of which nodes, fed by which
 * geometry, computed by whom. */
static void write_key(const struct tdmi_session *session, const char *precision,
                      tdm_json_writer *writer)
{
    const tdmi_graph *base = session->features.base;
    const struct tdmi_model_file *host = &session->snapshot;
    struct tdmi_preprocess geometry;
    struct tdmi_cpu cpu;
    char values[40];
    tdmi_cpu_describe(&cpu);
    snprintf(values, sizeof values, "%016llx%016llx",
             (unsigned long long)tdmi_xxh64_of(host->params,
                                               sizeof(float) * (size_t)base->param_values, 0),
             (unsigned long long)tdmi_xxh64_of(host->states,
                                               sizeof(float) * (size_t)base->state_values, 0));
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "version", rows_version);
    tdm_json_string(writer, "tandem", tdm_version());
    tdm_json_string(writer, "backend", session->backend->name);
    tdm_json_string(writer, "isa", cpu.isa);
    tdm_json_string(writer, "precision", precision);
    tdm_json_integer(writer, "shard", session->shard);
    tdm_json_string(writer, "values", values);
    if (tdmi_source_geometry(session->source, &geometry))
        tdmi_preprocess_to_json(&geometry, writer, "geometry");
    tdmi_graph_to_json(base, writer, "nodes");
    tdm_json_object_end(writer);
}

static tdm_status open_store(struct tdmi_session *session, const char *precision,
                             tdmi_store **store, tdm_error *err)
{
    const char *text;
    tdm_json_writer *writer = tdm_json_writer_new(0);
    write_key(session, precision, writer);
    tdm_status status = tdm_json_finish(writer, &text, NULL, err);
    if (status == TDM_OK)
        status = tdmi_store_open(
            &(struct tdmi_store_options){.key = text, .width = session->features.width}, store,
            err);
    tdm_json_writer_free(writer);
    return status;
}

/* ---- whether --------------------------------------------------------------------------------- */

/* Of an item; the same bytes have the same rows, whatever they are called. */
static struct tdmi_store_row row_of(const struct tdmi_session *session, int64_t item)
{
    const struct tdmi_bytes_key key =
        tdmi_source_bytes_key(session->source, item, session->contents.hashes);
    return (struct tdmi_store_row){.content = key.number};
}

static bool changes_pictures(const struct tdmi_augment *augment)
{
    for (int i = 0; i < TDMI_AUGMENTS; i++)
        if (augment->is_on[i])
            return true;
    return false;
}

static const char *reason_against(const struct tdmi_session *session)
{
    if (strcmp(session->options.features, "none") == 0)
        return "as --features none wants";
    if (changes_pictures(&session->augment))
        return "because pictures are changed as they come (--augment)";
    for (int64_t i = 0; i < session->split.n_train; i++)
        if (row_of(session, session->split.train[i]).content == 0)
            return "because the source cannot say which pictures it holds";
    return NULL;
}

static tdm_status find_places(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_features *features = &session->features;
    const tdmi_split *split = &session->split;
    const int64_t n = tdmi_source_items(session->source);
    features->places = tdmi_arena_alloc(&session->arena, (size_t)n, sizeof *features->places);
    features->test_row =
        tdmi_arena_alloc(&session->arena, (size_t)features->width, sizeof *features->test_row);
    if (!features->places || !features->test_row)
        return TDM_FAIL(err, TDM_E_MEMORY, "finding the features of %lld pictures: out of memory",
                        (long long)n);
    for (int64_t i = 0; i < n; i++)
        features->places[i] = -1;
    for (int64_t i = 0; i < split->n_train; i++)
        features->places[split->train[i]] =
            tdmi_store_find(features->train, row_of(session, split->train[i]));
    for (int64_t i = 0; i < split->n_val; i++)
        features->places[split->val[i]] =
            tdmi_store_find(features->val, row_of(session, split->val[i]));
    return TDM_OK;
}

static int64_t count_missing(const struct tdmi_session *session, const int64_t *items, int64_t n)
{
    int64_t missing = 0;
    for (int64_t i = 0; i < n; i++)
        missing += session->features.places[items[i]] < 0;
    return missing;
}

/* Space for what is missing, before anything is computed. */
static tdm_status begin_filling(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_features *features = &session->features;
    const tdmi_split *split = &session->split;
    const int64_t train = count_missing(session, split->train, split->n_train);
    const int64_t val = count_missing(session, split->val, split->n_val);
    features->count.reused = split->n_train + split->n_val - train - val;
    if (features->train == features->val)
        return tdmi_store_fill_begin(features->train, train + val, TDMI_DTYPE_F32, err);
    TDM_TRY(tdmi_store_fill_begin(features->train, train, TDMI_DTYPE_F16, err), err,
            "making room for features");
    return tdmi_store_fill_begin(features->val, val, TDMI_DTYPE_F32, err);
}

/* Rows that are judged are never rounded: what validation says is what predict will say. */
static tdm_status open_stores(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_features *features = &session->features;
    const char *precision = session->options.features;
    TDM_TRY(open_store(session, "f32", &features->val, err), err, "opening the feature store");
    features->train = features->val;
    if (strcmp(precision, "f32") != 0)
        TDM_TRY(open_store(session, precision, &features->train, err), err,
                "opening the feature store");
    TDM_TRY(find_places(session, err), err, "opening the feature store");
    return begin_filling(session, err);
}

/* Rows rounded to f16 give other bits than the network itself: who asked for them gets them or is
 * told why not. */
static tdm_status do_without(struct tdmi_session *session, const char *reason, tdm_error *err)
{
    if (strcmp(session->options.features, "f16") == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--features f16 wants features that are kept, and there are none, %s; "
                        "--features f32 is accepted",
                        reason);
    if (session->first_trained > 0)
        tdmi_session_note(session, "the frozen part is computed in every epoch, %s", reason);
    return TDM_OK;
}

/* A failure of the disk is no failure of the training: it is slower, and no less right. */
static tdm_status do_without_a_place(struct tdmi_session *session, const tdm_error *why,
                                     tdm_error *err)
{
    char text[TDM_ERROR_TEXT_BYTES];
    tdm_error_line(why, text, sizeof text);
    tdmi_session_close_features(session);
    if (strcmp(session->options.features, "f16") == 0)
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "features cannot be kept as --features f16 wants (%s); another "
                        "TANDEM_HOME, or --features f32, which can do without, is accepted",
                        text);
    tdmi_session_note(session,
                      "features cannot be kept, so the frozen part is computed in every epoch: %s",
                      text);
    return TDM_OK;
}

tdm_status tdmi_session_open_features(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_features *features = &session->features;
    tdm_error why = {0};
    if (session->first_trained == 0)
        return do_without(session, "because nothing is frozen", err);
    const char *reason = reason_against(session);
    if (!reason && tdmi_graph_base(session->graph, session->first_trained, &features->base, &why) ==
                       TDM_E_USAGE)
        reason = "because more than one tensor crosses the border of what is frozen";
    if (reason)
        return do_without(session, reason, err);
    if (!features->base)
        return TDM_FAIL(err, TDM_E_MEMORY, "taking the frozen part apart: out of memory");
    const int64_t width = tdmi_shape_values(features->base->nodes[features->base->n_nodes - 1].out);
    if (width > most_values) {
        tdmi_session_close_features(session);
        return do_without(session, "because what it makes of a picture is larger than 1 MiB", err);
    }
    features->width = (int)width;
    tdm_status status = open_stores(session, &why);
    features->is_used = status == TDM_OK;
    if (status == TDM_E_SYSTEM)
        return do_without_a_place(session, &why, err);
    if (status != TDM_OK && err)
        *err = why;
    return status;
}

void tdmi_session_close_features(struct tdmi_session *session)
{
    struct tdmi_features *features = &session->features;
    if (features->train != features->val)
        tdmi_store_close(features->train);
    tdmi_store_close(features->val);
    tdmi_graph_free(features->base);
    *features = (struct tdmi_features){0};
}

/* ---- making them ----------------------------------------------------------------------------- */

/* One sitting of the base over pictures. */
struct maker {
    struct tdmi_session *session;
    tdmi_plan *plan;
    tdmi_judge *judge;
    float *rows; /* of one batch */
    /* Pictures to look at, ascending: those that are missing, and those that are made again. */
    int64_t *items;
    bool *is_val;
    int64_t n_items;
};

static bool is_made_again(const struct tdmi_session *session, int64_t item)
{
    const int64_t reused = session->features.count.reused;
    tdmi_rng rng = tdmi_rng_at(session->options.seed, TDMI_RNG_RECHECK, 0, (uint64_t)item);
    return reused <= most_checked ||
           (double)tdmi_rng_unit(&rng) * (double)reused < (double)most_checked;
}

static void list_item(struct maker *it, int64_t item, bool is_val)
{
    const bool is_found = it->session->features.places[item] >= 0;
    if (is_found && !is_made_again(it->session, item))
        return;
    it->session->features.count.checked += is_found;
    it->items[it->n_items] = item;
    it->is_val[it->n_items++] = is_val;
}

/* Ascending, so that pictures that lie together are read together. */
static void list_items(struct maker *it)
{
    const tdmi_split *split = &it->session->split;
    int64_t t = 0, v = 0;
    while (t < split->n_train || v < split->n_val) {
        const bool is_val =
            t == split->n_train || (v < split->n_val && split->val[v] < split->train[t]);
        list_item(it, is_val ? split->val[v] : split->train[t], is_val);
        t += !is_val;
        v += is_val;
    }
}

static tdmi_store *store_of(const struct maker *it, int64_t nth)
{
    const struct tdmi_features *features = &it->session->features;
    return it->is_val[nth] ? features->val : features->train;
}

/* What is stored of a picture must be what is made of it now. */
static tdm_status compare(const struct maker *it, int64_t nth, const float *row, tdm_error *err)
{
    const struct tdmi_features *features = &it->session->features;
    const tdmi_store *store = store_of(it, nth);
    const bool is_half = store != features->val;
    const int64_t item = it->items[nth];
    float *stored = it->rows + (size_t)batch_pictures * (size_t)features->width; /* one to spare */
    double worst = 0.0;
    bool is_same = true;
    TDM_TRY(tdmi_store_read(store, features->places[item], stored, err), err,
            "looking at stored features again");
    for (int i = 0; i < features->width; i++) {
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
        "Weights, preprocessing, program and instruction set are the same, so a library that "
        "decodes or computes is another, or they were stored by a machine that errs; remove %s, "
        "and all are computed again",
        tdmi_source_item(it->session->source, item).path, worst, tdmi_store_folder(store));
}

static tdm_status keep_batch(struct maker *it, const struct tdmi_batch *batch, tdm_error *err)
{
    const struct tdmi_features *features = &it->session->features;
    for (int p = 0; p < batch->n; p++) {
        const int64_t nth = batch->first + p;
        const float *row = it->rows + (size_t)p * (size_t)features->width;
        if (batch->labels[p] < 0 && it->session->options.strict)
            return TDM_FAIL(err, TDM_E_INPUT, "a picture cannot be used, and --strict is on: %s",
                            batch->problems[p]);
        if (batch->labels[p] < 0)
            continue;
        tdm_status status =
            features->places[it->items[nth]] >= 0
                ? compare(it, nth, row, err)
                : tdmi_store_fill_add(store_of(it, nth), row_of(it->session, it->items[nth]), row,
                                      err);
        if (status != TDM_OK)
            return status;
    }
    return TDM_OK;
}

static tdm_status commit(struct maker *it, tdm_error *err)
{
    struct tdmi_features *features = &it->session->features;
    TDM_TRY(tdmi_store_fill_commit(features->val, err), err, "keeping features");
    if (features->train != features->val)
        TDM_TRY(tdmi_store_fill_commit(features->train, err), err, "keeping features");
    for (int64_t i = 0; i < it->n_items; i++)
        features->places[it->items[i]] =
            tdmi_store_find(store_of(it, i), row_of(it->session, it->items[i]));
    return TDM_OK;
}

static tdm_status stop(struct maker *it, int64_t done, tdm_error *err)
{
    TDM_TRY(commit(it, err), err, "stopping on request");
    return TDM_FAIL(err, TDM_E_STOPPED,
                    "training was stopped on request while features were computed: %lld of %lld "
                    "are kept, and --resume goes on from there",
                    (long long)done, (long long)it->n_items);
}

static tdm_status make_rows(struct maker *it, tdmi_loader *loader, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    int64_t done = 0;
    TDM_TRY(tdmi_loader_seek(loader, 0, 0, err), err, "reading pictures");
    for (;;) {
        const struct tdmi_batch *batch;
        tdm_status status = tdmi_loader_next(loader, &batch, err);
        if (status == TDM_E_STOPPED || (status == TDM_OK && tdm_stop_is_requested()))
            return stop(it, done, err);
        TDM_TRY(status, err, "reading pictures");
        if (!batch)
            return commit(it, err);
        TDM_TRY(tdmi_judge_batch(it->judge, batch, NULL, it->rows, NULL, err), err,
                "computing features");
        TDM_TRY(keep_batch(it, batch, err), err, "computing features");
        done += batch->n;
        tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PROGRESS,
                                                      .done = done,
                                                      .total = it->n_items,
                                                      .seconds = tdmi_session_seconds(session)});
    }
}

static tdm_status open_maker(struct maker *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const struct tdmi_features *features = &session->features;
    const size_t n = (size_t)(session->split.n_train + session->split.n_val);
    TDM_TRY(tdmi_plan_new(features->base, session->backend, session->shard, false, &it->plan, err),
            err, "planning the frozen part");
    TDM_TRY(
        tdmi_judge_open(it->plan, session->device, session->pool, batch_pictures, &it->judge, err),
        err, "preparing the frozen part");
    TDM_TRY(tdmi_judge_take(it->judge, tdmi_session_values(session), err), err,
            "preparing the frozen part");
    it->rows = tdmi_alloc((size_t)batch_pictures + 1, (size_t)features->width * sizeof *it->rows);
    it->items = tdmi_alloc(n, sizeof *it->items);
    it->is_val = tdmi_alloc(n, sizeof *it->is_val);
    if (!it->rows || !it->items || !it->is_val)
        return TDM_FAIL(err, TDM_E_MEMORY, "computing features of %zu pictures: out of memory", n);
    return TDM_OK;
}

static void close_maker(struct maker *it)
{
    tdmi_free(it->is_val);
    tdmi_free(it->items);
    tdmi_free(it->rows);
    tdmi_judge_close(it->judge);
    tdmi_plan_free(it->plan);
}

static tdm_status make_test_row(struct maker *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const int32_t label = 0;
    const int64_t item = 0;
    const struct tdmi_batch picture = {
        .n = 1, .pixels = session->snapshot.test_pixels, .labels = &label, .items = &item};
    return tdmi_judge_batch(it->judge, &picture, NULL, session->features.test_row, NULL, err);
}

static tdm_status make_all(struct maker *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const struct tdmi_features *features = &session->features;
    char text[TDMI_PROBLEM_BYTES];
    tdmi_loader *loader;
    list_items(it);
    const int64_t missing = it->n_items - features->count.checked;
    const struct tdmi_loader_options options = {
        .source = session->source,
        .preprocess = *tdmi_graph_preprocess(session->graph),
        .items = it->items,
        .n_items = it->n_items,
        .batch = batch_pictures,
        .threads = tdmi_pool_threads(session->pool),
        .is_tuned = true,
        .memory_bytes = (session->options.memory + 1) / 2,
        .contents = session->contents.hashes,
        .cache = {.hashes = session->contents.hashes},
    };
    if (it->n_items == 0)
        return TDM_OK;
    TDM_TRY(tdmi_loader_open(&options, &loader, err), err, "reading pictures");
    const double before = tdmi_session_seconds(session);
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN,
                                                  .total = it->n_items,
                                                  .text = "computing features"});
    tdm_status status = make_rows(it, loader, err);
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    for (int64_t i = 0; tdmi_loader_skip_at(loader, i, text, sizeof text); i++)
        tdmi_session_note(session, "skipped: %s", text);
    const int64_t skipped = tdmi_loader_skipped(loader);
    tdmi_loader_close(loader);
    const double seconds = tdmi_session_seconds(session) - before;
    session->training_seconds += seconds;
    if (status == TDM_OK)
        tdmi_session_note(session,
                          "features: %lld computed in %.1f s, %lld found (%lld of them computed "
                          "again, and equal); %d numbers a picture, in %s",
                          (long long)(missing - skipped), seconds,
                          (long long)features->count.reused, (long long)features->count.checked,
                          features->width, tdmi_store_folder(features->train));
    return status;
}

tdm_status tdmi_session_make_features(struct tdmi_session *session, tdm_error *err)
{
    struct maker it = {.session = session};
    tdm_status status = open_maker(&it, err);
    if (status == TDM_OK)
        status = make_test_row(&it, err);
    if (status == TDM_OK)
        status = make_all(&it, err);
    session->features.count.rows =
        session->split.n_train -
        count_missing(session, session->split.train, session->split.n_train) +
        session->split.n_val - count_missing(session, session->split.val, session->split.n_val);
    close_maker(&it);
    tdmi_graph_free(session->features.base);
    session->features.base = NULL;
    return status;
}
