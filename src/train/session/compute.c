/* Opening the device, and the decoder that images are decoded with. */
#include "train/session/session.h"
#include "base/scope.h"
#include "base/touch.h"
#include "base/file/file.h"
#include "base/system/env.h"

#include <string.h>

static tdm_status check_backend(const struct tdmi_train_config *config,
                                const struct tdmi_backend *backend, int n_ranks, tdm_error *err)
{
    if (!tdmi_backend_stores(backend, config->storage))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --precision %s: on --device %s everything is computed and stored "
                        "as f32; auto and f32 are accepted",
                        config->options.precision, config->options.device);
    if (config->shares_statistics)
        TDMI_TRY(tdmi_step_check_sharing(backend, err));
    /* A run of several ranks may be resumed by one. */
    if (config->options.fast && backend->device.is_host && n_ranks == 1 && !config->options.resume)
        return TDM_FAIL(
            err, TDM_E_USAGE,
            "option --fast lets libraries of a GPU add in any order; --device %s has one order at "
            "full speed on any number of threads, so the option changes nothing without other "
            "ranks; leave it out",
            config->options.device);
    return TDM_OK;
}

static tdm_status open_decoder(const struct tdmi_train_config *config, struct tdmi_compute *compute,
                               tdm_error *err)
{
    const struct tdmi_picture_table *pictures = compute->backend->pictures;
    if (!config->decodes_on_gpu)
        return TDM_OK;
    if (!pictures)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --decode card: --device %s decodes no images; --device cuda with "
                        "it, or --decode cpu, is accepted",
                        config->options.device);
    return TDM_WRAP(err, pictures->open(compute->backend, compute->device, &compute->decoder, err),
                    "option --decode card: --device %s cannot decode images here; --decode cpu "
                    "is accepted",
                    config->options.device);
}

/* Checks that the file of --trace can be written, before the training. */
static tdm_status check_trace(const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_atomic_abort_at) tdmi_atomic_file *file = NULL;
    return tdmi_atomic_open(path, &file, err);
}

static tdm_status open_trace(struct tdmi_compute *compute, const char *path, tdm_error *err)
{
    tdmi_lane *messages = NULL;
    const int n_threads = tdmi_pool_threads(compute->pool);
    if (!path)
        return TDM_OK;
    if (tdmi_comm_rank(compute->comm) == 0)
        TDMI_TRY(check_trace(path, err));
    TDMI_TRY(tdmi_trace_new(TDMI_TRACE_EVENTS, &compute->trace, err));
    TDMI_TRY(TDMI_NEW(compute->lanes, n_threads, err));
    for (int i = 0; i < n_threads; i++)
        TDMI_TRY(tdmi_lane_open(compute->trace, "compute", i, &compute->lanes[i], err));
    if (tdmi_comm_world(compute->comm) > 1)
        TDMI_TRY(tdmi_lane_open(compute->trace, "messages", 0, &messages, err));
    tdmi_comm_trace(compute->comm, messages, messages ? compute->lanes[0] : NULL);
    return TDM_OK;
}

tdmi_lane *tdmi_compute_lane(const struct tdmi_compute *compute)
{
    return compute->lanes ? compute->lanes[0] : NULL;
}

tdm_status tdmi_compute_open(const struct tdmi_train_config *config, struct tdmi_compute *compute,
                             tdm_error *err)
{
    const struct tdm_train_options *options = &config->options;
    char device[TDMI_DEVICE_NAME_BYTES];
    struct tdmi_local local;
    int index;
    TDMI_TRY(tdmi_env_local(&local, err));
    TDMI_TRY(tdmi_backend_of_rank(options->device, tdmi_comm_world(compute->comm), local.rank,
                                  device, err));
    TDMI_TRY(tdmi_backend_find(device, &compute->backend, &index, err));
    const struct tdmi_backend *backend = compute->backend;
    TDM_TRY(backend->device.open(index, &compute->device, err), err, "opening the device %s",
            device);
    TDM_TRY(backend->stream.open(compute->device, &compute->stream, err), err,
            "opening the device %s", device);
    TDM_TRY(tdmi_placement_here(options->threads, &compute->placement, err), err,
            "choosing threads");
    TDM_TRY(tdmi_pool_new(compute->placement.threads, &compute->placement, &compute->pool, err),
            err, "starting threads");
    tdmi_comm_may_spin(compute->comm, tdmi_pool_may_spin(compute->pool));
    TDM_TRY(check_backend(config, backend, tdmi_comm_world(compute->comm), err), err,
            "choosing how to compute");
    TDM_TRY(open_trace(compute, options->trace, err), err, "option --trace");
    return TDM_WRAP(err, open_decoder(config, compute, err), "choosing the decoder");
}

void tdmi_compute_disconnect(struct tdmi_compute *compute)
{
    if (compute->peers)
        compute->backend->peers->close(compute->peers);
    compute->peers = NULL;
}

void tdmi_compute_close(struct tdmi_compute *compute)
{
    const struct tdmi_backend *backend = compute->backend;
    tdmi_compute_disconnect(compute);
    tdmi_pool_free(compute->pool);
    tdmi_placement_release(&compute->placement);
    if (compute->stream)
        backend->stream.close(compute->stream);
    if (compute->decoder)
        backend->pictures->close(compute->decoder);
    if (compute->device)
        backend->device.close(compute->device);
    tdmi_comm_close(compute->comm);
    tdmi_free(compute->lanes);
    tdmi_trace_free(compute->trace);
}

float *tdmi_compute_alloc_values(const struct tdmi_compute *compute, int64_t n)
{
    const size_t bytes = sizeof(float) * (size_t)(n + 1);
    float *values = compute->backend->memory.alloc(compute->device, bytes);
    if (values && compute->backend->device.is_host)
        tdmi_touch_spread(compute->pool, values, bytes);
    return values;
}

void tdmi_compute_free(const struct tdmi_compute *compute, void *block)
{
    if (block)
        compute->backend->memory.free(compute->device, block);
}

void tdmi_compute_keep_choices(struct tdmi_session *session)
{
    const char *folder =
        tdmi_path_join(&session->arena, tdmi_run_path(session->record.run), TDMI_RUN_KERNELS);
    if (session->compute.backend->device.keep && folder)
        session->compute.backend->device.keep(session->compute.device, folder);
}

bool tdmi_compute_queues(const struct tdmi_compute *compute)
{
    return !compute->backend->device.is_host && compute->backend->update->run &&
           tdmi_comm_world(compute->comm) == 1;
}

/* ---- the decoder ----------------------------------------------------------------------------- */

const char *tdmi_compute_decoder_name(const struct tdmi_compute *compute)
{
    return compute->decoder ? compute->decoder->name : "cpu";
}

void tdmi_compute_report_threads(const struct tdmi_session *session)
{
    char text[160];
    tdmi_placement_describe(&session->compute.placement, text, sizeof text);
    tdmi_record_note(&session->record, "threads: %s", text);
}

void tdmi_compute_report_fast(const struct tdmi_session *session)
{
    const struct tdmi_run_record *record = &session->record;
    if (!session->config.options.fast)
        return;
    if (!session->compute.backend->device.is_host)
        tdmi_record_note(record, "--fast: the GPU's libraries may add in any order, and results "
                                 "differ in bits from run to run");
    else if (tdmi_ranks_world(session) > 1 && !tdmi_ranks_share_steps(session))
        tdmi_record_note(record, "--fast: rank 0 trains the head alone; the run counts as not "
                                 "exact, because gradients of unfrozen layers travel as bf16");
    else if (tdmi_ranks_world(session) > 1)
        tdmi_record_note(record, "--fast: ranks send gradients as bf16; the result is not exact, "
                                 "and differs with the number of ranks");
    else
        tdmi_record_note(record, "--fast changes nothing in this session, which has no other "
                                 "ranks to send gradients to");
}

void tdmi_compute_report_decoder(const struct tdmi_session *session)
{
    if (session->compute.decoder && tdmi_record_is_new(&session->record))
        tdmi_record_note(&session->record,
                         "decode card: JPEG files that %s takes are decoded on %s, to pixels that "
                         "are close to the CPU's; evaluate and predict decode on the CPU",
                         session->compute.decoder->name, session->config.options.device);
}

tdm_status tdmi_compute_match_decoder(const struct tdmi_session *session, tdm_error *err)
{
    const char *name = tdmi_compute_decoder_name(&session->compute);
    const char *before = tdmi_record_string(&session->record, "decoder");
    if (*before == '\0' || strcmp(before, name) == 0)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "the run's images were decoded by %s, and here is %s, which may give other "
                    "pixels; use that decoder, or another -o",
                    before, name);
}

/* ---- pinned memory --------------------------------------------------------------------------- */

static void *alloc_pinned(void *self, size_t bytes)
{
    const struct tdmi_compute *compute = self;
    return compute->backend->memory.alloc_pinned(compute->device, bytes);
}

static void free_pinned(void *self, void *block)
{
    const struct tdmi_compute *compute = self;
    compute->backend->memory.free_pinned(compute->device, block);
}

struct tdmi_loader_allocator tdmi_compute_allocator(struct tdmi_compute *compute)
{
    if (!compute->backend->memory.alloc_pinned)
        return (struct tdmi_loader_allocator){0};
    return (struct tdmi_loader_allocator){alloc_pinned, free_pinned, compute};
}
