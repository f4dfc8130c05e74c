/*
 * Where a training's pictures come from and in which order: the order, decided once for the life of
 * a run, and the two loaders.
 */
#include "base/memory.h"
#include "data/order/order.h"
#include "train/session/session.h"

#include <string.h>

static tdm_status open_balanced(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_split *split = &session->split;
    int *labels = tdmi_alloc((size_t)split->n_train, sizeof *labels);
    if (!labels)
        return TDM_FAIL(err, TDM_E_MEMORY, "balancing %lld pictures: out of memory",
                        (long long)split->n_train);
    for (int64_t i = 0; i < split->n_train; i++)
        labels[i] = tdmi_source_item(session->source, split->train[i]).label;
    tdm_status status = tdmi_order_init_balanced(
        &session->order,
        &(struct tdmi_order_balanced){.seed = session->options.seed,
                                      .labels = labels,
                                      .n_samples = split->n_train,
                                      .n_classes = tdmi_source_classes(session->source)},
        err);
    tdmi_free(labels);
    return status;
}

/* What a run was begun with stays: another order would be another run. */
static tdm_status open_order(struct tdmi_session *session, tdm_error *err)
{
    const tdm_json_value *data = tdmi_run_recorded(session->run, "data");
    const char *recorded = tdm_json_as_string(tdm_json_member(data, "order"), "");
    bool has_groups = tdmi_order_has_groups(session->source);
    bool is_grouped = *recorded ? strcmp(recorded, "grouped") == 0 : has_groups;
    session->order = (tdmi_order){
        .seed = session->options.seed, .n = session->split.n_train, .is_shuffled = true};
    if (session->options.balance)
        return TDM_WRAP(err, open_balanced(session, err), "showing every class equally often");
    if (!is_grouped)
        return TDM_OK;
    if (!has_groups)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the run was begun on a source whose pictures stand in groups, and %s has "
                        "none; the same source, or a new run, is wanted",
                        tdmi_source_path(session->source));
    double quality = 0.0;
    TDM_TRY(tdmi_order_init_source(&session->order, session->source, session->split.train,
                                   session->split.n_train, session->options.seed, err),
            err, "ordering the pictures of %s", tdmi_source_path(session->source));
    TDM_TRY(tdmi_order_quality(&session->order, 0, session->batch, &quality, err), err,
            "ordering the pictures of %s", tdmi_source_path(session->source));
    tdmi_session_note(session,
                      "pictures are read group by group (%lld groups): %.3f of a full shuffle",
                      (long long)tdmi_source_groups(session->source), quality);
    return TDM_OK;
}

/* The first validation picture that can be read is the self-test's. */
static tdm_status take_test_picture(struct tdmi_session *session, tdmi_loader *loader,
                                    tdm_error *err)
{
    const struct tdmi_batch *batch;
    char first[TDMI_PROBLEM_BYTES] = "";
    size_t bytes = (size_t)tdmi_shape_values(session->graph->nodes[0].out);
    TDM_TRY(tdmi_loader_seek(loader, 0, 0, err), err, "reading validation pictures");
    for (;;) {
        TDM_TRY(tdmi_loader_next(loader, &batch, err), err, "reading validation pictures");
        if (!batch) {
            (void)tdmi_loader_skip_at(loader, 0, first, sizeof first);
            return TDM_FAIL(err, TDM_E_INPUT,
                            "none of the %lld validation pictures can be read; the first: %s",
                            (long long)session->split.n_val, first);
        }
        for (int p = 0; p < batch->n; p++)
            if (batch->labels[p] >= 0) {
                memcpy(session->snapshot.test_pixels, batch->pixels + (size_t)p * bytes, bytes);
                return TDM_OK;
            }
    }
}

/* Memory that a device's copies read while others go on. */
static void *take_pinned(void *self, size_t bytes)
{
    const struct tdmi_session *session = self;
    return session->backend->memory.alloc_pinned(session->device, bytes);
}

static void give_pinned(void *self, void *block)
{
    const struct tdmi_session *session = self;
    session->backend->memory.free_pinned(session->device, block);
}

struct tdmi_loader_allocator tdmi_session_allocator(struct tdmi_session *session)
{
    if (!session->backend->memory.alloc_pinned)
        return (struct tdmi_loader_allocator){0};
    return (struct tdmi_loader_allocator){take_pinned, give_pinned, session};
}

enum part { TRAIN, VALIDATION, TEST };

/* A quarter of --memory is the source's (session/split.c), a half the training loader's, a quarter
 * the validation's; the test's gets as much, when training is over. The loaders' threads and the
 * pool share the CPUs: a loader adds a thread only while training waits for pictures, which is when
 * the pool has nothing to do. */
static tdm_status open_loader(struct tdmi_session *session, enum part part, tdmi_loader **loader,
                              tdm_error *err)
{
    static const char *const names[] = {"training", "validation", "test"};
    const tdmi_split *split = &session->split;
    const int64_t *const items[] = {split->train, split->val, split->test};
    const int64_t n_items[] = {split->n_train, split->n_val, split->n_test};
    const bool is_training = part == TRAIN;
    const struct tdmi_needs *needs = &session->needs;
    struct tdmi_loader_options options = {
        .source = session->source,
        .preprocess = *tdmi_graph_preprocess(session->graph),
        .items = items[part],
        .n_items = n_items[part],
        .order = is_training ? &session->order : NULL,
        .is_strict = session->options.strict,
        .batch = session->batch,
        .threads = tdmi_pool_threads(session->pool),
        .is_tuned = true,
        .augment_seed = session->options.seed,
        .memory_bytes =
            is_training ? (session->options.memory + 1) / 2 : (session->options.memory + 3) / 4,
        .memory_parts = 4, /* of the half that trains too: the others would be refused next */
        .spoken_for_bytes = needs->activations + needs->gradients + needs->evaluating,
        .contents = session->contents.hashes,
        .cache = {.hashes = session->contents.hashes},
        .allocator = tdmi_session_allocator(session),
        .decoder = session->decoder,
    };
    if (is_training) {
        options.augment = session->augment;
        options.leaves_rest = session->backend->changes != NULL;
        /* Once known layers are trained too, nothing of a picture stays, and it is changed anew. */
        if (session->first_trained == session->first_freeze_point)
            options.views.n = (uint32_t)session->views;
    }
    TDM_TRY(tdmi_cache_kind_find(session->options.cache, &options.cache.kind, err), err,
            "preparing to read pictures");
    return TDM_WRAP(err, tdmi_loader_open(&options, loader, err),
                    "preparing to read %s pictures (they get a %s of --memory)", names[part],
                    is_training ? "half" : "quarter");
}

static tdm_status feed_pictures(struct tdmi_session *session, tdm_error *err)
{
    tdmi_loader *loader;
    TDM_TRY(open_loader(session, TRAIN, &loader, err), err, "feeding the training");
    tdmi_session_note(session, "%s", tdmi_loader_cache_note(loader));
    return tdmi_feed_open_pictures(loader, &session->train_feed, err);
}

/* Rows of pictures that judge, as they stand. */
static struct tdmi_feed_rows validation_rows(struct tdmi_session *session, const int64_t *items,
                                             int64_t n_items)
{
    return (struct tdmi_feed_rows){
        .source = session->source,
        .store = &session->features.val,
        .mend = tdmi_session_mend_row,
        .self = session,
        .hashes = session->contents.hashes,
        .width = session->features.width,
        .items = items,
        .n_items = n_items,
        .batch = session->batch,
    };
}

tdm_status tdmi_session_open_test(struct tdmi_session *session, tdmi_feed **feed, tdm_error *err)
{
    tdmi_loader *loader;
    const struct tdmi_feed_rows rows =
        validation_rows(session, session->split.test, session->split.n_test);
    if (session->features.is_used)
        return tdmi_feed_open_rows(&rows, feed, err);
    TDM_TRY(open_loader(session, TEST, &loader, err), err, "feeding the test");
    return tdmi_feed_open_pictures(loader, feed, err);
}

static tdm_status feed_rows(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_split *split = &session->split;
    const struct tdmi_feed_rows evaluating = validation_rows(session, split->val, split->n_val);
    struct tdmi_feed_rows rows = validation_rows(session, split->train, split->n_train);
    rows.store = &session->features.train;
    rows.order = &session->order;
    rows.n_views = (uint32_t)session->views;
    if (strcmp(session->options.cache, "auto") != 0 &&
        strcmp(session->options.cache, "none") != 0 &&
        tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tdmi_session_note(session,
                          "--cache %s keeps nothing while the head is trained on features: these "
                          "are kept in its place",
                          session->options.cache);
    /* It may take long: whoever is killed meanwhile goes on with what was asked for. */
    TDM_TRY(tdmi_session_record(session, err), err, "computing features");
    TDM_TRY(tdmi_run_save(session->run, TDMI_RUN_RUNNING, err), err, "computing features");
    tdm_status status = tdmi_session_make_features(session, err);
    if (status != TDM_OK) {
        tdmi_session_end_record(session, status);
        return TDM_WRAP(err, status, "computing features");
    }
    TDM_TRY(tdmi_feed_open_rows(&rows, &session->train_feed, err), err, "feeding the training");
    return tdmi_feed_open_rows(&evaluating, &session->val_feed, err);
}

tdm_status tdmi_session_open_input(struct tdmi_session *session, tdm_error *err)
{
    tdmi_loader *loader;
    tdmi_session_report_decoder(session);
    TDM_TRY(open_order(session, err), err, "preparing to read training pictures");
    TDM_TRY(open_loader(session, VALIDATION, &loader, err), err, "feeding the validation");
    tdm_status status = take_test_picture(session, loader, err);
    if (status != TDM_OK || session->features.is_used) {
        tdmi_loader_close(loader);
        return status == TDM_OK ? feed_rows(session, err) : status;
    }
    TDM_TRY(tdmi_feed_open_pictures(loader, &session->val_feed, err), err,
            "feeding the validation");
    return tdmi_session_is_over(session) ? TDM_OK : feed_pictures(session, err);
}
