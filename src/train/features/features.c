/*
 * Whether cached features are used, and opening their stores. Images that --augment changes get a
 * few fixed views each, which the epochs cycle through, so that features can be cached all the
 * same.
 */
#include "base/scope.h"
#include "graph/norms.h"
#include "train/session/session.h"

#include <string.h>

/* most_values: of a row; early layers output many times the size of the image. usual_views:
 * bench/results/train.md compares other numbers. */
enum { most_values = 1 << 18, usual_views = 8 };

/* ---- views ----------------------------------------------------------------------------------- */

/* A resumed run keeps its number of views; one of an older version has none. can_be_kept: features
 * of views would be cached. */
static void choose_views(struct tdmi_session *session, bool can_be_kept)
{
    struct tdmi_train_config *config = &session->config;
    const bool has_views = can_be_kept && tdmi_augment_changes(&session->config.augment);
    if (tdmi_run_recorded(session->record.run, "data"))
        config->views = (int)tdmi_record_integer(&session->record, "views", 0);
    else if (config->options.views >= 0)
        config->views = config->options.views;
    else
        session->config.views = has_views ? usual_views : 0;
}

int tdmi_features_images(int shard)
{
    return shard < TDMI_FEATURES_BATCH ? shard : TDMI_FEATURES_BATCH;
}

struct tdmi_plan_options tdmi_features_plan(const struct tdmi_session *session, int shard,
                                            tdmi_device *device, size_t most_workspace)
{
    return (struct tdmi_plan_options){
        .max_images = tdmi_features_images(shard),
        .team = tdmi_evaluator_team(session->cache.base, session->compute.backend,
                                    tdmi_pool_threads(session->compute.pool)),
        .storage = session->config.storage,
        .device = device,
        .most_workspace = most_workspace,
    };
}

uint32_t tdmi_features_views(const struct tdmi_train_config *config)
{
    const int epochs = config->options.epochs, views = config->views;
    if (views == 0)
        return 1;
    /* With --balance the view follows the pass over a class, not the epoch. */
    return (uint32_t)(epochs > 0 && epochs < views && !config->options.balance ? epochs : views);
}

static void report_views(const struct tdmi_session *session)
{
    if (tdmi_record_is_new(&session->record) && session->config.options.views < 0)
        tdmi_record_note(&session->record,
                         "--augment: images have %d changed views each, computed in the epoch that "
                         "first takes them and kept; --views 0 changes images anew and computes "
                         "the frozen layers in every epoch",
                         session->config.views);
}

/* ---- whether features are cached ------------------------------------------------------------- */

/* Reasons that do not depend on views. */
static const char *reason_against(const struct tdmi_session *session)
{
    if (session->config.features == TDMI_FEATURES_NONE)
        return "because of --features none";
    if (tdmi_augment_has_mix(&session->config.augment))
        return "because mixup and cutmix mix images with each other (--augment)";
    for (int64_t i = 0; i < session->data.split.n_train; i++)
        if (tdmi_features_row(&session->data, session->data.split.train[i], 0).content == 0)
            return "because the source cannot identify its images";
    return NULL;
}

/* Extracts the frozen layers as a network of their own. */
static tdm_status take_base(struct tdmi_session *session, const char **reason, tdm_error *err)
{
    struct tdmi_feature_cache *features = &session->cache;
    if (tdmi_graph_base(session->network.graph, session->network.first_trained, &features->base,
                        err) == TDM_E_USAGE) {
        *reason = "because more than one tensor crosses the freeze point";
        return TDM_OK;
    }
    if (!features->base)
        return TDM_FAIL(err, TDM_E_MEMORY, "extracting the frozen layers: out of memory");
    /* Rows do not depend on the momentum of batch norms. With --unfreeze it is raised already; the
     * same key then finds the rows of runs whose base stays frozen. */
    (void)tdmi_norms_quicken(features->base, 0, TDMI_LEAST_MOMENTUM);
    const int64_t width = tdmi_shape_values(features->base->nodes[features->base->n_nodes - 1].out);
    if (width > most_values)
        *reason = "because the features of an image are larger than 1 MiB";
    else
        features->width = (int)width;
    return TDM_OK;
}

/* Rows in f16 give other results than the network itself, so --features f16 is refused where no
 * features are cached. */
static tdm_status do_without(struct tdmi_session *session, const char *reason, tdm_error *err)
{
    tdmi_features_close(&session->cache);
    if (session->config.features == TDMI_FEATURES_F16)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--features f16 requires cached features, and there are none, %s; "
                        "--features f32 is accepted",
                        reason);
    if (session->network.first_trained > 0)
        tdmi_record_note(&session->record, "the frozen layers are computed in every epoch, %s",
                         reason);
    return TDM_OK;
}

/* Training continues after a failure of the disk: slower, with the same result. */
static tdm_status do_without_store(struct tdmi_session *session, const tdm_error *why,
                                   tdm_error *err)
{
    char text[TDM_ERROR_TEXT_BYTES];
    tdm_error_line(why, text, sizeof text);
    tdmi_features_close(&session->cache);
    session->cache.is_unavailable = true;
    if (session->config.features == TDMI_FEATURES_F16)
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "features cannot be kept, which --features f16 requires (%s); another "
                        "TANDEM_HOME, or --features f32, which can do without, is accepted",
                        text);
    tdmi_record_note(
        &session->record,
        "features cannot be kept, so the frozen layers are computed in every epoch: %s", text);
    return TDM_OK;
}

/* ---- the stores ------------------------------------------------------------------------------ */

tdmi_store *tdmi_features_store(const struct tdmi_feature_cache *cache, bool is_val)
{
    return is_val ? cache->val : cache->train;
}

/* Rows that are in the stores: of training images, and of validation and test images. */
static int64_t found_train(const struct tdmi_session *session)
{
    const tdmi_split *split = &session->data.split;
    const uint32_t n_views = tdmi_features_views(&session->config);
    int64_t found = 0;
    for (int64_t i = 0; i < split->n_train; i++)
        for (uint32_t view = 0; view < n_views; view++)
            found += tdmi_store_find(session->cache.train,
                                     tdmi_features_row(&session->data, split->train[i], view)) >= 0;
    return found;
}

static int64_t found_val(const struct tdmi_session *session)
{
    const struct tdmi_train_data *data = &session->data;
    int64_t found = 0;
    for (int64_t i = 0; i < data->n_evaluated; i++)
        found += tdmi_store_find(session->cache.val,
                                 tdmi_features_row(data, data->evaluated[i], 0)) >= 0;
    return found;
}

/* Reserves space for missing rows. */
static tdm_status begin_filling(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_feature_cache *features = &session->cache;
    const struct tdmi_train_data *data = &session->data;
    const int64_t train = found_train(session), val = found_val(session);
    const int64_t more_train =
        data->split.n_train * (int64_t)tdmi_features_views(&session->config) - train;
    const int64_t more_val = data->n_evaluated - val;
    const bool is_half = session->config.features == TDMI_FEATURES_F16;
    features->count.rows = train + val;
    if (features->train == features->val)
        return tdmi_store_fill_begin(features->train, more_train + more_val, TDMI_DTYPE_F32, err);
    TDM_TRY(tdmi_store_fill_begin(features->train, more_train,
                                  is_half ? TDMI_DTYPE_F16 : TDMI_DTYPE_F32, err),
            err, "making room for features");
    return tdmi_store_fill_begin(features->val, more_val, TDMI_DTYPE_F32, err);
}

/* Validation rows are of unchanged images and in f32, so validation counts what predict would. */
static tdm_status open_stores(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_feature_cache *features = &session->cache;
    TDM_TRY(tdmi_features_open_store(session, "f32", false, &features->val, err), err,
            "opening the feature store");
    features->train = features->val;
    if (session->config.features != TDMI_FEATURES_F32 || session->config.views > 0)
        TDM_TRY(tdmi_features_open_store(session, session->config.options.features,
                                         session->config.views > 0, &features->train, err),
                err, "opening the feature store");
    return begin_filling(session, err);
}

static tdm_status begin_features(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_feature_cache *features = &session->cache;
    const int64_t n = tdmi_source_items(session->data.source);
    features->is_broken = tdmi_arena_alloc(&session->arena, (size_t)n, sizeof(bool));
    features->test_row =
        tdmi_arena_alloc(&session->arena, (size_t)features->width, sizeof *features->test_row);
    if (!features->is_broken || !features->test_row)
        return TDM_FAIL(err, TDM_E_MEMORY, "finding the features of %lld images: out of memory",
                        (long long)n);
    TDM_TRY(open_stores(session, err), err, "finding features");
    features->count.reused = features->count.rows;
    return TDM_OK;
}

static void close_stores(struct tdmi_feature_cache *features)
{
    if (features->train != features->val)
        tdmi_store_close(features->train);
    tdmi_store_close(features->val);
    features->train = features->val = NULL;
}

tdm_status tdmi_features_reopen(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_feature_cache *features = &session->cache;
    const int64_t before = found_train(session) + found_val(session);
    close_stores(features);
    TDM_TRY(open_stores(session, err), err, "opening the feature store again");
    features->count.remade += before - features->count.rows;
    return TDM_OK;
}

/* ---- opening and closing --------------------------------------------------------------------- */

tdm_status tdmi_features_find(struct tdmi_session *session, tdm_error *err)
{
    const char *reason = NULL;
    /* Nothing is left to train; or layers were unfrozen since, so features would change from one
     * phase to the next. */
    if (tdmi_limits_is_over(session) ||
        session->network.first_trained != session->network.unfreeze.first) {
        choose_views(session, false);
        return TDM_OK;
    }
    if (session->network.first_trained == 0 && session->config.options.views > 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--views keeps the features that frozen layers make of changed images, and "
                        "nothing is frozen; leave it out, or give --freeze base");
    if (session->network.first_trained > 0) {
        reason = reason_against(session);
        if (!reason)
            TDM_TRY(take_base(session, &reason, err), err, "preparing features");
    }
    choose_views(session, session->network.first_trained > 0 && !reason);
    if (session->network.first_trained == 0)
        return do_without(session, "because nothing is frozen", err);
    if (!reason && session->config.views == 0 && tdmi_augment_changes(&session->config.augment))
        reason = "because images are changed anew in each (--augment, --views 0)";
    if (reason)
        return do_without(session, reason, err);
    if (session->config.views > 0)
        report_views(session);
    session->cache.is_used = true;
    return TDM_OK;
}

tdm_status tdmi_features_open(struct tdmi_session *session, tdm_error *err)
{
    tdm_error why = {0};
    if (!session->cache.is_used)
        return TDM_OK;
    tdm_status status = TDM_OK;
    if (!tdmi_ranks_is_follower(session)) /* its stores are enough */
        status = begin_features(session, &why);
    if (status != TDM_OK && status != TDM_E_SYSTEM) {
        if (err)
            *err = why;
        return status;
    }
    bool is_there = status == TDM_OK;
    TDMI_TRY(tdmi_ranks_share(session, &is_there, sizeof is_there, err));
    return is_there ? TDM_OK : do_without_store(session, &why, err);
}

void tdmi_features_close(struct tdmi_feature_cache *features)
{
    close_stores(features);
    tdmi_graph_free(features->base);
    *features = (struct tdmi_feature_cache){0};
}
