/*
 * Where a training's pictures come from and in which order: the order, decided once for the life of
 * a run, and the two loaders.
 */
#include "train/session.h"

#include <string.h>

/* Sources whose pictures are dear to reach one by one are read group by group: the samples of each
 * group, as far as they train. */
static tdm_status order_by_groups(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_split *split = &session->split;
    int64_t n_groups = tdmi_source_groups(session->source), at = 0;
    int64_t *samples = tdmi_arena_alloc(&session->arena, (size_t)n_groups, sizeof *samples);
    if (!samples)
        return TDM_FAIL(err, TDM_E_MEMORY, "ordering %lld groups of pictures: out of memory",
                        (long long)n_groups);
    for (int64_t g = 0; g < n_groups; g++)
        for (int64_t end = tdmi_source_group_first(session->source, g + 1);
             at < split->n_train && split->train[at] < end; at++)
            samples[g]++;
    return tdmi_order_init_grouped(&session->order,
                                   &(struct tdmi_order_grouped){.seed = session->options.seed,
                                                                .is_shuffled = true,
                                                                .group_samples = samples,
                                                                .n_groups = n_groups},
                                   err);
}

/* What a run was begun with stays: another order would be another run. */
static tdm_status open_order(struct tdmi_session *session, tdm_error *err)
{
    const tdm_json_value *data = tdmi_run_recorded(session->run, "data");
    const char *recorded = tdm_json_as_string(tdm_json_member(data, "order"), "");
    bool has_groups = tdmi_source_groups(session->source) > 1;
    bool is_grouped = *recorded ? strcmp(recorded, "grouped") == 0 : has_groups;
    session->order = (tdmi_order){
        .seed = session->options.seed, .n = session->split.n_train, .is_shuffled = true};
    if (!is_grouped)
        return TDM_OK;
    if (!has_groups)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the run was begun on a source whose pictures stand in groups, and %s has "
                        "none; the same source, or a new run, is wanted",
                        tdmi_source_path(session->source));
    double quality = 0.0;
    TDM_TRY(order_by_groups(session, err), err, "ordering the pictures of %s",
            tdmi_source_path(session->source));
    TDM_TRY(tdmi_order_quality(&session->order, 0, session->batch, &quality, err), err,
            "ordering the pictures of %s", tdmi_source_path(session->source));
    tdmi_session_note(session,
                      "pictures are read group by group (%lld groups): %.3f of a full shuffle",
                      (long long)tdmi_source_groups(session->source), quality);
    return TDM_OK;
}

/* The loaders' threads and the pool share the CPUs: a loader adds a thread only while training
 * waits for pictures, which is when the pool has nothing to do. */
tdm_status tdmi_session_open_input(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_loader_options loader = {
        .source = session->source,
        .preprocess = *tdmi_graph_preprocess(session->graph),
        .items = session->split.train,
        .n_items = session->split.n_train,
        .order = &session->order,
        .batch = session->batch,
        .threads = tdmi_pool_threads(session->pool),
        .is_tuned = true,
        .cache = {.kind = TDMI_CACHE_AUTO, .hashes = session->contents.hashes},
    };
    TDM_TRY(open_order(session, err), err, "preparing to read training pictures");
    TDM_TRY(tdmi_loader_open(&loader, &session->train_loader, err), err,
            "preparing to read training pictures");
    tdmi_session_note(session, "%s", tdmi_loader_cache_note(session->train_loader));
    loader.items = session->split.val;
    loader.n_items = session->split.n_val;
    loader.order = NULL;
    return TDM_WRAP(err, tdmi_loader_open(&loader, &session->val_loader, err),
                    "preparing to read validation pictures");
}
