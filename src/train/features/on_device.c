/*
 * Feature rows in GPU memory. A step then names its rows by number and copies only these numbers.
 * The training rows are kept all or not at all, and so are the validation rows, so a batch needs
 * one path. The choice depends on free memory once all else is reserved; it does not affect
 * results.
 */
#include "train/session/session.h"

#include <stdio.h>

/* Part of the free memory that rows may take. The rest is for recordings of steps, libraries that
 * load later, and other programs. */
static const double part_of_memory = 0.9;

struct room {
    bool is_known;
    int64_t bytes; /* of the device, for rows */
};

/* Memory for computing rows is left free: views and repairs need it again. */
static struct room room_now(const struct tdmi_session *session)
{
    const struct tdmi_compute *compute = &session->compute;
    const struct tdmi_device_table *device = &compute->backend->device;
    int64_t free_bytes = 0, total_bytes = 0;
    struct room room = {.is_known = device->memory &&
                                    device->memory(compute->device, &free_bytes, &total_bytes)};
    room.bytes = (int64_t)(part_of_memory * (double)free_bytes) - session->cache.extractor_bytes;
    return room;
}

static struct tdmi_feature_table_options options_of(const struct tdmi_session *session,
                                                    int64_t n_rows)
{
    return (struct tdmi_feature_table_options){.backend = session->compute.backend,
                                               .device = session->compute.device,
                                               .storage = session->config.storage,
                                               .width = session->cache.width,
                                               .n_rows = n_rows,
                                               .at_once = session->data.max_batch};
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* If the GPU runs out of memory all the same, rows are copied in each step. */
static tdm_status keep(struct tdmi_session *session, int64_t n_rows, tdmi_feed *feed,
                       struct room *room, tdmi_feature_table **there, tdm_error *err)
{
    const struct tdmi_feature_table_options options = options_of(session, n_rows);
    const int64_t bytes = tdmi_feature_table_bytes(&options);
    tdm_error why = {0};
    if (n_rows == 0 || (room->is_known && bytes > room->bytes))
        return TDM_OK;
    const tdm_status status = tdmi_feature_table_open(&options, there, &why);
    if (status == TDM_E_MEMORY)
        return TDM_OK;
    if (status != TDM_OK) {
        if (err)
            *err = why;
        return status;
    }
    room->bytes -= bytes;
    session->compute.device_feature_bytes += bytes;
    return tdmi_feed_keep(feed, *there, err);
}

static void report(struct tdmi_session *session, const struct room *room, int64_t n_train)
{
    const struct tdmi_feature_cache *features = &session->cache;
    const struct tdmi_feature_table_options train = options_of(session, n_train),
                                            val = options_of(session, session->data.split.n_val);
    const int64_t bytes = (features->train_there ? 0 : tdmi_feature_table_bytes(&train)) +
                          (features->val_there ? 0 : tdmi_feature_table_bytes(&val));
    char room_text[80] = ", which the GPU refused";
    if (features->train_there)
        tdmi_record_note(&session->record, "training %sfeatures stay on the GPU: %.1f MiB",
                         features->val_there ? "and validation " : "",
                         mib(session->compute.device_feature_bytes));
    if (features->train_there && features->val_there)
        return;
    if (room->is_known && bytes > room->bytes)
        snprintf(room_text, sizeof room_text,
                 ", and beside the training there is room for %.1f MiB",
                 mib(room->bytes > 0 ? room->bytes : 0));
    tdmi_record_note(&session->record,
                     "%s features do not fit on the GPU and are copied batch by batch: "
                     "they take %.1f MiB%s",
                     features->train_there ? "validation"
                     : features->val_there ? "training"
                                           : "training and validation",
                     mib(bytes), room_text);
}

tdm_status tdmi_features_move_to_device(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_feature_cache *features = &session->cache;
    const int64_t n_train =
        session->data.split.n_train * (int64_t)tdmi_features_views(&session->config);
    if (!features->is_used || tdmi_ranks_is_follower(session) || /* which trains no head */
        session->compute.backend->device.is_host || !session->compute.backend->memory.gather ||
        tdmi_limits_is_over(session))
        return TDM_OK;
    struct room room = room_now(session);
    TDM_TRY(keep(session, n_train, session->data.train_feed, &room, &features->train_there, err),
            err, "keeping features on the GPU");
    TDM_TRY(keep(session, session->data.split.n_val, session->data.val_feed, &room,
                 &features->val_there, err),
            err, "keeping features on the GPU");
    tdmi_step_keep(session->trainer.step, features->train_there);
    tdmi_evaluator_keep(session->evaluation.evaluator, features->val_there);
    report(session, &room, n_train);
    return TDM_OK;
}

void tdmi_features_leave_device(struct tdmi_feature_cache *features)
{
    tdmi_feature_table_close(features->val_there);
    tdmi_feature_table_close(features->train_there);
    features->train_there = features->val_there = NULL;
}
