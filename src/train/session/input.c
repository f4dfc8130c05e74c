/*
 * The order of training images, fixed for the life of a run, and the feeds of batches: from loaders
 * of images, or from cached features.
 */
#include "base/scope.h"
#include "data/order/order.h"
#include "train/session/session.h"

#include <string.h>

static tdm_status open_balanced(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_split *split = &session->data.split;
    TDMI_AT_END(tdmi_free_at) int *labels = NULL;
    TDMI_TRY(TDMI_NEW(labels, split->n_train, err));
    for (int64_t i = 0; i < split->n_train; i++)
        labels[i] = tdmi_source_item(session->data.source, split->train[i]).label;
    return tdmi_order_init_balanced(
        &session->data.order,
        &(struct tdmi_order_balanced){.seed = session->config.options.seed,
                                      .labels = labels,
                                      .n_samples = split->n_train,
                                      .n_classes = tdmi_source_classes(session->data.source)},
        err);
}

/* A resumed run keeps its recorded order. */
static tdm_status open_order(struct tdmi_session *session, tdm_error *err)
{
    const char *recorded = tdmi_record_string(&session->record, "order");
    bool has_groups = tdmi_order_has_groups(session->data.source);
    bool is_grouped = *recorded ? strcmp(recorded, "grouped") == 0 : has_groups;
    session->data.order = (tdmi_order){.seed = session->config.options.seed,
                                       .n = session->data.split.n_train,
                                       .is_shuffled = true};
    if (session->config.options.balance)
        return TDM_WRAP(err, open_balanced(session, err), "showing every class equally often");
    if (!is_grouped)
        return TDM_OK;
    if (!has_groups)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the run was started on a source whose images stand in groups, and %s "
                        "has none; use the same source, or start a new run",
                        tdmi_source_path(session->data.source));
    double quality = 0.0;
    TDMI_TRY(tdmi_order_init_source(&session->data.order, session->data.source,
                                    session->data.split.train, session->data.split.n_train,
                                    session->config.options.seed, err));
    TDMI_TRY(tdmi_order_quality(&session->data.order, 0, session->data.max_batch, &quality, err));
    tdmi_record_note(&session->record,
                     "images are read group by group (%lld groups): %.3f of a full shuffle",
                     (long long)tdmi_source_groups(session->data.source), quality);
    return TDM_OK;
}

static tdm_status take_first_readable(const struct tdmi_session *session, tdmi_loader *loader,
                                      tdm_error *err)
{
    const struct tdmi_batch *batch;
    struct tdmi_skip first = {0};
    size_t bytes = (size_t)tdmi_shape_values(session->network.graph->nodes[0].out);
    TDM_TRY(tdmi_loader_seek(loader, 0, 0, err), err, "reading validation images");
    for (;;) {
        TDM_TRY(tdmi_loader_next(loader, &batch, err), err, "reading validation images");
        if (!batch) {
            (void)tdmi_loader_skip_at(loader, 0, &first);
            return TDM_FAIL(err, TDM_E_INPUT,
                            "none of the %lld validation images can be read; the first: %s",
                            (long long)session->data.split.n_val, first.text);
        }
        for (int p = 0; p < batch->n; p++)
            if (batch->labels[p] >= 0) {
                memcpy(session->network.host.test_pixels, batch->pixels + (size_t)p * bytes, bytes);
                return TDM_OK;
            }
    }
}

/* How batches are divided among ranks, for the loader. */
static tdm_status divide_batches(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_train_data *data = &session->data;
    const int64_t n = data->order.n, batch = data->max_batch;
    const int lengths[2] = {(int)(n < batch ? n : batch), (int)(n % batch)};
    for (int i = 0; i < 2; i++) {
        struct tdmi_batch_part *part = &data->parts[i];
        part->n = lengths[i];
        TDMI_TRY(tdmi_ranks_divide(session, part->n, &part->first, &part->end, err));
    }
    return TDM_OK;
}

static void find_part(const void *self, int n, int *first, int *end)
{
    const struct tdmi_train_data *data = self;
    const struct tdmi_batch_part *part = &data->parts[n != data->parts[0].n];
    *first = part->first;
    *end = part->end;
}

/* ALL_VALIDATION: not only this rank's. */
enum part { TRAIN, VALIDATION, TEST, ALL_VALIDATION };

/* The source gets a quarter of --memory (data.c), the training loader half, the validation loader a
 * quarter, and so does the test loader, once training is over. Loader threads and the pool share
 * the CPUs: a loader adds a thread only while training waits for images, and the pool is idle then.
 */
static void share_out(const struct tdmi_session *session, bool is_training,
                      struct tdmi_loader_options *options)
{
    int64_t first, end;
    options->waits_on = true;
    if (is_training) {
        options->part = (struct tdmi_loader_part){
            find_part, &session->data,
            tdmi_ranks_most_images(session, session->data.max_batch, session->config.shard)};
        return;
    }
    tdmi_ranks_part_of(session, options->n_items, &first, &end);
    options->items += first;
    options->n_items = end - first;
}

static tdm_status open_loader(struct tdmi_session *session, enum part part, tdmi_loader **loader,
                              tdm_error *err)
{
    static const char *const names[] = {"training", "validation", "test", "validation"};
    const tdmi_split *split = &session->data.split;
    const int64_t *const items[] = {split->train, split->val, split->test, split->val};
    const int64_t n_items[] = {split->n_train, split->n_val, split->n_test, split->n_val};
    const bool is_training = part == TRAIN;
    const struct tdmi_needs *needs = &session->compute.needs;
    struct tdmi_loader_options options = {
        .source = session->data.source,
        .preprocess = *tdmi_graph_preprocess(session->network.graph),
        .items = items[part],
        .n_items = n_items[part],
        .order = is_training ? &session->data.order : NULL,
        .is_strict = session->config.options.strict,
        .batch = session->data.max_batch,
        .threads = session->compute.placement.loader_threads,
        .placement = &session->compute.placement,
        .is_tuned = true,
        .augment_seed = session->config.options.seed,
        .memory_bytes = is_training ? (session->config.options.memory + 1) / 2
                                    : (session->config.options.memory + 3) / 4,
        .memory_parts = 4, /* checks the half that trains as if all four were one */
        .spoken_for_bytes = needs->activations + needs->gradients + needs->evaluating,
        .contents = session->data.contents.hashes,
        .cache = tdmi_data_cache(session),
        .allocator = tdmi_compute_allocator(&session->compute),
        .decoder = session->compute.decoder,
        .trace = session->compute.trace,
    };
    if (is_training) {
        options.augment = session->config.augment;
        options.leaves_rest = session->compute.backend->changes != NULL;
        /* Fixed views serve cached features; once more layers train, images are changed anew. */
        if (session->network.first_trained == session->network.unfreeze.first)
            options.views.n = (uint32_t)session->config.views;
    }
    if (part != ALL_VALIDATION && tdmi_ranks_share_steps(session))
        share_out(session, is_training, &options);
    return TDM_WRAP(err, tdmi_loader_open(&options, loader, err),
                    "preparing to read %s images (they get a %s of --memory)", names[part],
                    is_training ? "half" : "quarter");
}

/* The self-test uses the first readable validation image: of rank 0's, where it has one. */
static tdm_status take_test_picture(struct tdmi_session *session, tdmi_loader *loader,
                                    tdm_error *err)
{
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *all = NULL;
    tdm_error why = {0};
    const tdm_status status = take_first_readable(session, loader, &why);
    if (status == TDM_E_INPUT && tdmi_ranks_share_steps(session)) {
        TDMI_TRY(open_loader(session, ALL_VALIDATION, &all, err));
        return take_first_readable(session, all, err);
    }
    if (status != TDM_OK && err)
        *err = why;
    return status;
}

static tdm_status feed_pictures(struct tdmi_session *session, tdm_error *err)
{
    tdmi_loader *loader;
    TDM_TRY(open_loader(session, TRAIN, &loader, err), err, "feeding the training");
    tdmi_record_note(&session->record, "%s", tdmi_loader_cache_note(loader));
    return tdmi_feed_open_pictures(loader, &session->data.train_feed, err);
}

/* Feature rows of unchanged images. */
static struct tdmi_feed_rows validation_rows(struct tdmi_session *session, const int64_t *items,
                                             int64_t n_items)
{
    return (struct tdmi_feed_rows){
        .source = session->data.source,
        .store = &session->cache.val,
        .repair = tdmi_features_repair_row,
        .self = session,
        .hashes = session->data.contents.hashes,
        .width = session->cache.width,
        .items = items,
        .n_items = n_items,
        .batch = session->data.max_batch,
    };
}

tdm_status tdmi_session_open_test(struct tdmi_session *session, tdmi_feed **feed, tdm_error *err)
{
    tdmi_loader *loader;
    const struct tdmi_feed_rows rows =
        validation_rows(session, session->data.split.test, session->data.split.n_test);
    if (session->cache.is_used)
        return tdmi_feed_open_rows(&rows, feed, err);
    TDM_TRY(open_loader(session, TEST, &loader, err), err, "feeding the test");
    return tdmi_feed_open_pictures(loader, feed, err);
}

static tdm_status feed_rows(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_split *split = &session->data.split;
    const struct tdmi_feed_rows evaluating = validation_rows(session, split->val, split->n_val);
    struct tdmi_feed_rows rows = validation_rows(session, split->train, split->n_train);
    rows.store = &session->cache.train;
    rows.order = &session->data.order;
    rows.n_views = (uint32_t)session->config.views;
    if (session->config.cache != TDMI_CACHE_AUTO && session->config.cache != TDMI_CACHE_NONE &&
        tdmi_record_is_new(&session->record))
        tdmi_record_note(&session->record,
                         "--cache%s %s keeps nothing while the head is trained on features: these "
                         "are kept in its place",
                         session->config.options.cache_dir ? "-dir" : "",
                         session->config.options.cache_dir ? session->config.options.cache_dir
                                                           : session->config.options.cache);
    /* Computing may take long: a run that is killed meanwhile resumes with these options. */
    TDM_TRY(tdmi_session_record(session, err), err, "computing features");
    TDM_TRY(tdmi_run_save(session->record.run, TDMI_RUN_RUNNING, err), err, "computing features");
    if (tdmi_ranks_is_follower(session))
        return TDM_WRAP(err, tdmi_features_follow(session, err), "computing features");
    tdm_status status = tdmi_features_compute(session, err);
    if (status == TDM_OK)
        status = tdmi_features_dismiss(session, false, false, err);
    if (status != TDM_OK) {
        tdmi_record_end(&session->record, status);
        return TDM_WRAP(err, status, "computing features");
    }
    TDM_TRY(tdmi_feed_open_rows(&rows, &session->data.train_feed, err), err,
            "feeding the training");
    return tdmi_feed_open_rows(&evaluating, &session->data.val_feed, err);
}

tdm_status tdmi_session_open_input(struct tdmi_session *session, tdm_error *err)
{
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = NULL;
    tdmi_compute_report_decoder(session);
    TDM_TRY(open_order(session, err), err, "ordering the training images");
    TDM_TRY(divide_batches(session, err), err, "dividing batches among ranks");
    TDM_TRY(open_loader(session, VALIDATION, &loader, err), err, "feeding the validation");
    if (!tdmi_ranks_is_follower(session))
        TDMI_TRY(take_test_picture(session, loader, err));
    if (session->cache.is_used) {
        tdmi_loader_close(tdmi_take(&loader)); /* its memory is free for the features' */
        return feed_rows(session, err);
    }
    TDM_TRY(tdmi_feed_open_pictures(tdmi_take(&loader), &session->data.val_feed, err), err,
            "feeding the validation");
    return tdmi_limits_is_over(session) ? TDM_OK : feed_pictures(session, err);
}
