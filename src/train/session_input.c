/*
 * Where a training's pictures come from and in which order: the order, decided once for the life of
 * a run, and the two loaders.
 */
#include "base/memory.h"
#include "data/order_source.h"
#include "train/session.h"

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

/* A quarter of --memory is the source's (session.c), a half the training loader's, a quarter the
 * other's. The loaders' threads and the pool share the CPUs: a loader adds a thread only while
 * training waits for pictures, which is when the pool has nothing to do. */
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
        .augment = session->augment,
        .augment_seed = session->options.seed,
        .memory_bytes = (session->options.memory + 1) / 2,
        .cache = {.hashes = session->contents.hashes},
    };
    TDM_TRY(tdmi_cache_kind_find(session->options.cache, &loader.cache.kind, err), err,
            "preparing to read pictures");
    TDM_TRY(open_order(session, err), err, "preparing to read training pictures");
    TDM_TRY(tdmi_loader_open(&loader, &session->train_loader, err), err,
            "preparing to read training pictures (they get a half of --memory)");
    tdmi_session_note(session, "%s", tdmi_loader_cache_note(session->train_loader));
    loader.items = session->split.val;
    loader.n_items = session->split.n_val;
    loader.order = NULL;
    loader.augment = (struct tdmi_augment){0};
    loader.memory_bytes = (session->options.memory + 3) / 4;
    return TDM_WRAP(err, tdmi_loader_open(&loader, &session->val_loader, err),
                    "preparing to read validation pictures (they get a quarter of --memory)");
}
