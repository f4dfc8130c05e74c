/*
 * Statistics of batch norms that were folded into convolutions before the weights were published.
 * The input of each trained one is measured over some training images in a single forward pass,
 * since a folded norm does not change its input. The images are chosen by content and sums are
 * added in a fixed order, so any number of threads gives the same bits. Where a GPU trains, the CPU
 * measures: some seconds, once.
 */
#include "base/hash/hash.h"
#include "base/scope.h"
#include "dist/tree.h"
#include "graph/norms.h"
#include "graph/packed.h"
#include "tandem/event.h"
#include "train/session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* most_pictures: with 49 pixels each, some 25,000 values of a channel even in the last layers. */
enum { most_pictures = 512, batch_pictures = 64, most_group = 8 /* where a GPU trains */ };

struct measuring {
    struct tdmi_session *session;
    int first;                          /* first trained node */
    const struct tdmi_backend *backend; /* its memory is the host's */
    tdmi_device *device, *own_device;   /* own_device: NULL if the training's is the host */
    struct tdmi_values values;          /* there */
    tdmi_plan *plan;
    tdmi_packed *packed;
    int n_executors;
    tdmi_executor **executors;
    int64_t *items, n_items; /* of the source, ascending */
    uint64_t content;        /* hash over the contents of all items */
    int64_t width;           /* doubles of a row */
    double *rows, *totals;   /* one row per group of a batch */
    int64_t n_images;

    /* the current batch */
    int n;
    const uint8_t *pixels[batch_pictures];

    /* Some images, and their logits before and after. */
    int n_kept;
    uint8_t *kept;
    float *before, *after;
    double moved; /* largest change of a logit, as a fraction of the largest logit */
};

/* ---- which pictures -------------------------------------------------------------------------- */

struct candidate {
    uint64_t hash;
    int64_t item;
};

static int by_hash(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    if (left->hash != right->hash)
        return left->hash < right->hash ? -1 : 1;
    return (left->item > right->item) - (left->item < right->item);
}

/* The images with the lowest content hashes: the choice does not depend on the order of files. */
static tdm_status choose(struct measuring *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const int64_t n = session->data.split.n_train;
    TDMI_AT_END(tdmi_free_at) struct candidate *all = NULL;
    TDMI_TRY(TDMI_NEW(all, n, err));
    it->n_items = n < most_pictures ? n : most_pictures;
    TDMI_TRY(TDMI_NEW(it->items, it->n_items, err));
    for (int64_t i = 0; i < n; i++) {
        all[i].item = session->data.split.train[i];
        all[i].hash = session->data.contents.hashes[all[i].item];
    }
    qsort(all, (size_t)n, sizeof *all, by_hash);
    tdmi_xxh64 hash;
    tdmi_xxh64_init(&hash, 0);
    for (int64_t i = 0; i < it->n_items; i++) {
        tdmi_xxh64_add(&hash, &all[i].hash, sizeof all[i].hash);
        it->items[i] = all[i].item;
    }
    it->content = tdmi_xxh64_result(&hash);
    tdmi_hashes_sort((uint64_t *)it->items, it->n_items); /* items are not below 0 */
    return TDM_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int n_groups(const struct measuring *it, int n)
{
    return (n + it->plan->max_images - 1) / it->plan->max_images;
}

static struct tdmi_group group_at(const struct measuring *it, int index)
{
    const int size = it->plan->max_images, first = index * size;
    return (struct tdmi_group){.n = it->n - first < size ? it->n - first : size,
                               .pixels = it->pixels + first};
}

static tdm_status group_task(void *self, int index, int worker, tdm_error *err)
{
    struct measuring *it = self;
    const struct tdmi_group group = group_at(it, index);
    tdmi_executor_measure(it->executors[worker], it->values, &group, it->first,
                          it->rows + index * it->width);
    return it->plan->backend->stream.wait(tdmi_executor_stream(it->executors[worker]), err);
}

static tdm_status logits_of_kept(struct measuring *it, float *logits, tdm_error *err)
{
    const size_t bytes = tdmi_plan_sample_bytes(it->plan);
    const size_t outputs = (size_t)tdmi_graph_logits(it->plan->graph);
    tdmi_executor *lane = it->executors[0];
    for (int i = 0; i < it->n_kept; i++)
        it->pixels[i] = it->kept + (size_t)i * bytes;
    const struct tdmi_group group = {.n = it->n_kept, .pixels = it->pixels};
    TDMI_TRY(tdmi_packed_fill(it->packed, it->values, 0, it->session->compute.pool, err));
    tdmi_executor_measure(lane, it->values, &group, it->plan->graph->n_nodes, NULL);
    TDMI_TRY(it->backend->stream.wait(tdmi_executor_stream(lane), err));
    return it->backend->memory.download(tdmi_executor_stream(lane), logits,
                                        tdmi_executor_logits(lane),
                                        sizeof *logits * outputs * (size_t)it->n_kept, err);
}

/* Collects the readable images of a batch. */
static tdm_status gather(struct measuring *it, const struct tdmi_batch *batch, tdm_error *err)
{
    const size_t bytes = tdmi_plan_sample_bytes(it->plan);
    TDM_TRY(tdmi_data_check_batch(&it->session->config, batch, err), err, "reading images");
    it->n = 0;
    for (int p = 0; p < batch->n; p++)
        if (batch->labels[p] >= 0)
            it->pixels[it->n++] = batch->pixels + (size_t)p * bytes;
    for (int i = 0; it->n_images == 0 && i < it->n && i < it->plan->max_images; i++) {
        memcpy(it->kept + (size_t)i * bytes, it->pixels[i], bytes);
        it->n_kept = i + 1;
    }
    return TDM_OK;
}

static tdm_status measure_batch(struct measuring *it, const struct tdmi_batch *batch,
                                tdm_error *err)
{
    TDMI_TRY(gather(it, batch, err));
    const int groups = n_groups(it, it->n);
    if (groups == 0)
        return TDM_OK;
    TDM_TRY(tdmi_pool_run(it->session->compute.pool, groups, group_task, it, err), err,
            "measuring images");
    tdmi_tree_sum_rows(it->rows, groups, it->width);
    for (int64_t i = 0; i < it->width; i++)
        it->totals[i] += it->rows[i];
    it->n_images += it->n;
    return TDM_OK;
}

/* Norms are measured before the first step, and again where layers are unfrozen. */
static tdm_status stop(const struct measuring *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    char where[40] = "its first step";
    if (session->progress.step > 0)
        snprintf(where, sizeof where, "epoch %d", session->progress.epoch + 1);
    return TDM_FAIL(err, TDM_E_STOPPED,
                    "training was stopped on request before %s, while batch norms were measured; "
                    "--resume measures them again and continues in %s",
                    where, tdmi_run_path(session->record.run));
}

static tdm_status measure_all(struct measuring *it, tdmi_loader *loader, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    TDM_TRY(tdmi_loader_seek(loader, 0, 0, err), err, "reading images");
    for (;;) {
        const struct tdmi_batch *batch;
        tdm_status status = tdmi_loader_next(loader, &batch, err);
        if (status == TDM_E_STOPPED || (status == TDM_OK && tdm_stop_is_requested()))
            return stop(it, err);
        TDM_TRY(status, err, "reading images");
        if (!batch)
            break;
        TDM_TRY(measure_batch(it, batch, err), err, "measuring batch norms");
        tdmi_track_event(session->record.track,
                         &(tdm_event){.kind = TDM_EVENT_PROGRESS,
                                      .done = batch->first + batch->n,
                                      .total = it->n_items,
                                      .seconds = tdmi_record_seconds(&session->record)});
    }
    if (it->n_images == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "no image can be read, of %lld", (long long)it->n_items);
    return TDM_OK;
}

static tdm_status read_and_measure(struct measuring *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    struct tdmi_skip skip;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = NULL;
    const struct tdmi_loader_options options = {
        .source = session->data.source,
        .preprocess = *tdmi_graph_preprocess(session->network.graph),
        .is_strict = session->config.options.strict,
        .items = it->items,
        .n_items = it->n_items,
        .batch = batch_pictures,
        .threads = session->compute.placement.loader_threads,
        .placement = &session->compute.placement,
        .is_tuned = true,
        .memory_bytes = (session->config.options.memory + 1) / 2,
        .contents = session->data.contents.hashes,
        .cache = {.hashes = session->data.contents.hashes},
        .decoder = session->compute.decoder,
    };
    TDM_TRY(tdmi_loader_open(&options, &loader, err), err, "reading images");
    tdmi_track_event(session->record.track, &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN,
                                                         .total = it->n_items,
                                                         .text = "measuring batch norms"});
    const tdm_status status = measure_all(it, loader, err);
    tdmi_track_event(session->record.track, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    for (int64_t i = 0; tdmi_loader_skip_at(loader, i, &skip); i++)
        tdmi_record_note(&session->record, "batch norms are measured without an image: %s",
                         skip.text);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* On the device, through the host's arrays. */
static tdm_status restore(const struct measuring *it, bool of_averages, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    struct tdmi_train_network *network = &session->network;
    struct tdmi_model_file *host = &network->host;
    const struct tdmi_values values =
        of_averages ? tdmi_values_evaluated(network) : tdmi_values_trained(network);
    TDMI_TRY(tdmi_values_download(session, values, host->params, host->states, err));
    TDMI_TRY(session->compute.backend->stream.wait(session->compute.stream, err));
    tdmi_norms_restore(network->graph, it->first, it->totals, it->n_images, host->params,
                       host->states);
    return tdmi_values_upload(session, of_averages, host->params, host->states, err);
}

static tdm_status restore_all(struct measuring *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const int n = it->n_kept * tdmi_graph_logits(session->network.graph);
    double largest = 0.0, worst = 0.0;
    TDM_TRY(logits_of_kept(it, it->before, err), err, "before statistics are given back");
    if (session->network.mean_params)
        TDM_TRY(restore(it, true, err), err, "giving statistics back to averages");
    TDM_TRY(restore(it, false, err), err, "giving statistics back");
    TDM_TRY(logits_of_kept(it, it->after, err), err, "after statistics were given back");
    for (int i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)it->before[i]));
        worst = fmax(worst, fabs((double)it->after[i] - (double)it->before[i]));
    }
    it->moved = worst / (largest > 0.0 ? largest : 1.0);
    return TDM_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The training's device; where that is a GPU the CPU, with the values in the host's arrays. */
static tdm_status choose_device(struct measuring *it, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    struct tdmi_model_file *host = &session->network.host;
    int index;
    it->backend = session->compute.backend;
    it->device = session->compute.device;
    it->values = tdmi_values_trained(&session->network);
    if (it->backend->device.is_host)
        return TDM_OK;
    TDMI_TRY(tdmi_values_download(session, it->values, host->params, host->states, err));
    TDMI_TRY(it->backend->stream.wait(session->compute.stream, err));
    it->values = (struct tdmi_values){host->params, host->states};
    TDMI_TRY(tdmi_backend_find("cpu", &it->backend, &index, err));
    TDMI_TRY(it->backend->device.open(index, &it->own_device, err));
    it->device = it->own_device;
    return TDM_OK;
}

static tdm_status reserve(struct measuring *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    TDMI_TRY(choose_device(it, err));
    const int shard = session->config.shard;
    const struct tdmi_plan_options request = {
        .max_images = it->own_device && shard > most_group ? most_group : shard,
        .device = it->device,
        .most_workspace = it->own_device ? 0 : session->compute.most_workspace,
        .is_apart = true};
    TDMI_TRY(tdmi_plan_make(session->network.graph, it->backend, &request, &it->plan, err));
    TDMI_TRY(tdmi_packed_open(it->plan, it->device, &it->packed, err));
    it->width = tdmi_norms_sums(session->network.graph, it->first);
    const size_t images = (size_t)request.max_images;
    const size_t logits = images * (size_t)tdmi_graph_logits(session->network.graph);
    const int n_threads = tdmi_pool_threads(session->compute.pool);
    TDMI_TRY(TDMI_NEW(it->rows, n_groups(it, batch_pictures) * it->width, err));
    TDMI_TRY(TDMI_NEW(it->totals, it->width, err));
    TDMI_TRY(TDMI_NEW(it->kept, images * tdmi_plan_sample_bytes(it->plan), err));
    TDMI_TRY(TDMI_NEW(it->before, logits, err));
    TDMI_TRY(TDMI_NEW(it->after, logits, err));
    TDMI_TRY(TDMI_NEW(it->executors, n_threads, err));
    for (it->n_executors = 0; it->n_executors < n_threads; it->n_executors++) {
        tdmi_executor **lane = &it->executors[it->n_executors];
        TDMI_TRY(tdmi_executor_open(it->plan, it->device, lane, err));
        tdmi_executor_use(*lane, tdmi_packed_memory(it->packed));
    }
    return tdmi_packed_fill(it->packed, it->values, 0, session->compute.pool, err);
}

static void release(struct measuring *it)
{
    for (int i = 0; i < it->n_executors; i++)
        tdmi_executor_close(it->executors[i]);
    tdmi_free(it->executors);
    tdmi_free(it->before);
    tdmi_free(it->after);
    tdmi_free(it->kept);
    tdmi_free(it->totals);
    tdmi_free(it->rows);
    tdmi_free(it->items);
    tdmi_packed_close(it->packed);
    tdmi_plan_free(it->plan);
    if (it->own_device)
        it->backend->device.close(it->own_device);
}

/* In the run's record and in the lineage of its model files. */
static tdm_status record(struct measuring *it, int n_norms, double seconds, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    char content[20];
    snprintf(content, sizeof content, "%016llx", (unsigned long long)it->content);
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "measured", n_norms);
    tdm_json_integer(writer, "pictures", it->n_images);
    tdm_json_string(writer, "content", content);
    tdm_json_number(writer, "logits_moved", it->moved);
    tdm_json_number(writer, "seconds", seconds);
    tdm_json_object_end(writer);
    TDMI_TRY(tdmi_record_set(&session->record, "norms", writer, err));
    session->network.host.lineage.norms =
        tdmi_arena_printf(&session->arena, "measured over %lld pictures, content %s",
                          (long long)it->n_images, content);
    TDMI_CHECK_MEMORY(session->network.host.lineage.norms, err);
    return TDM_OK;
}

static tdm_status give_back(struct measuring *it, int n_norms, tdm_error *err)
{
    struct tdmi_session *session = it->session;
    const double before = tdmi_record_seconds(&session->record);
    TDMI_TRY(choose(it, err));
    TDM_TRY(reserve(it, err), err, "preparing to measure batch norms");
    TDMI_TRY(read_and_measure(it, err));
    TDMI_TRY(restore_all(it, err));
    const double seconds = tdmi_record_seconds(&session->record) - before;
    TDMI_TRY(record(it, n_norms, seconds, err));
    session->record.training_seconds += seconds;
    tdmi_record_note(
        &session->record,
        "%d batch norms had been folded into the convolutions: means and "
        "variances are measured again over %lld training images, in %.1f s, and scales and "
        "shifts changed so that the network gives the same (logits moved by "
        "at most %.1g of the largest)",
        n_norms, (long long)it->n_images, seconds, it->moved);
    return TDM_OK;
}

tdm_status tdmi_session_restore_norms(struct tdmi_session *session, tdm_error *err)
{
    TDMI_AT_END(release)
    struct measuring it = {.session = session, .first = session->network.first_trained};
    const int n_norms = session->pretrained.path
                            ? tdmi_norms_count_folded(session->network.graph, it.first,
                                                      session->network.host.states)
                            : 0;
    if (n_norms == 0)
        return TDM_OK;
    TDM_TRY(tdmi_record_begin(session, err), err, "giving batch norms their statistics back");
    const tdm_status status = give_back(&it, n_norms, err);
    if (status != TDM_OK)
        tdmi_record_end(&session->record, status);
    return TDM_WRAP(err, status, "giving batch norms their statistics back");
}
