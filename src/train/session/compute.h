/*
 * Where a training computes: backend and device, threads, ranks, image decoder, and the memory
 * that the training takes there.
 */
#pragma once

#include "base/thread.h"
#include "dist/comm.h"
#include "train/needs.h"
#include "train/session/record.h"

struct tdmi_session;

struct tdmi_compute {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_stream *stream;
    struct tdmi_placement placement;
    tdmi_pool *pool;
    tdmi_comm *comm;                    /* the ranks of the run */
    tdmi_peers *peers;                  /* their devices, connected; NULL: they are not */
    const char *ranks_meet;             /* how gradients go between devices; NULL: there is one */
    tdmi_trace *trace;                  /* --trace; NULL: none */
    tdmi_lane **lanes;                  /* of the pool's threads, [0] also the caller's; NULL */
    const struct tdmi_decoder *decoder; /* of image files, on the device; NULL: the CPU decodes */

    int64_t resident_before;      /* bytes of the process before the training was opened */
    struct tdmi_needs needs;      /* memory that the training takes */
    size_t most_workspace;        /* of a kernel, in bytes; 0: no limit */
    int64_t recorded_bytes;       /* of GPU memory, taken by recordings of steps */
    int64_t device_feature_bytes; /* of GPU memory, reserved for cached features */
};

/* --device, --threads, --precision, --fast and --decode, in this order. */
tdm_status tdmi_compute_open(const struct tdmi_train_config *config, struct tdmi_compute *compute,
                             tdm_error *err) TDM_MUST_USE;
void tdmi_compute_close(struct tdmi_compute *compute);
/* From the devices of other ranks: also ends work that waits for them. */
void tdmi_compute_disconnect(struct tdmi_compute *compute);
/* Zeroed memory of the device for n floats that all threads use (and one more, so that 0 will do);
 * NULL: out of memory. */
float *tdmi_compute_alloc_values(const struct tdmi_compute *compute, int64_t n);
/* Frees memory of the device; NULL: nothing. */
void tdmi_compute_free(const struct tdmi_compute *compute, void *block);
/* Keeps the choices of kernels in the run folder, for the sessions that follow. */
void tdmi_compute_keep_choices(struct tdmi_session *session);

/* The lane of the thread that trains; NULL: nothing is traced. */
tdmi_lane *tdmi_compute_lane(const struct tdmi_compute *compute);

/* Is a step queued as a whole, its update included? One process, on a device that queues work:
 * with several the number of images of a step is known only once sums have come. */
bool tdmi_compute_queues(const struct tdmi_compute *compute);

/* The decoder's name; "cpu" without one. */
const char *tdmi_compute_decoder_name(const struct tdmi_compute *compute);
/* Note how many threads compute and why. */
void tdmi_compute_report_threads(const struct tdmi_session *session);
/* Note what --fast does here. */
void tdmi_compute_report_fast(const struct tdmi_session *session);
void tdmi_compute_report_decoder(const struct tdmi_session *session);
/* TDM_E_ABSENT: the run was started with another decoder, which may give other pixels. */
tdm_status tdmi_compute_match_decoder(const struct tdmi_session *session,
                                      tdm_error *err) TDM_MUST_USE;

/* For a loader: pinned memory, from which batches are copied to the device; zeroed where the
 * backend has none. */
struct tdmi_loader_allocator tdmi_compute_allocator(struct tdmi_compute *compute);
