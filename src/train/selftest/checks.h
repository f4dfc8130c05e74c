/*
 * The checks of the self-test. Each returns whether it passed and, when not, the detail names
 * what differed and by how much. An error means that the check could not run.
 */
#pragma once

#include "base/thread.h"
#include "tandem/bench.h"
#include "train/selftest/op_run.h"

struct tdmi_check {
    bool has_passed;
    char detail[240];
};

/* Tolerances by type, in one place: relative to the largest value of the tensor. */
#define TDMI_TOLERANCE_F32 1e-5 /* against the reference */
#define TDMI_TOLERANCE_BF16 0x1p-7
#define TDMI_TOLERANCE_F16 0x1p-10
#define TDMI_TOLERANCE_GOLDEN 1e-2      /* of a loss of the first steps */
#define TDMI_TOLERANCE_GOLDEN_BF16 5e-2 /* the same, activations stored as bf16 */
#define TDMI_TOLERANCE_GRADIENT 5e-3    /* against central differences of f32 values */

/* Outputs and gradients against the reference backend. */
tdm_status tdmi_check_match(const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_case *it, struct tdmi_check *check,
                            tdm_error *err) TDM_MUST_USE;
/* The same of activations stored as a type that the backend has, against the reference on the same
 * values. */
tdm_status tdmi_check_match_stored(const struct tdmi_backend *backend, tdmi_device *device,
                                   const struct tdmi_case *it, enum tdmi_dtype storage,
                                   struct tdmi_check *check, tdm_error *err) TDM_MUST_USE;
/* Gradients against central differences. */
tdm_status tdmi_check_gradient(const struct tdmi_backend *backend, tdmi_device *device,
                               const struct tdmi_case *it, struct tdmi_check *check,
                               tdm_error *err) TDM_MUST_USE;
/* Two runs give equal bits. */
tdm_status tdmi_check_determinism(const struct tdmi_backend *backend, tdmi_device *device,
                                  const struct tdmi_case *it, struct tdmi_check *check,
                                  tdm_error *err) TDM_MUST_USE;

/* ---- whole networks on images made in memory ----------------------------------------------- */

/* Gradient of the whole network against a central difference along one random direction. */
tdm_status tdmi_check_network_gradient(const struct tdmi_backend *backend, tdmi_device *device,
                                       const char *network, int size, struct tdmi_check *check,
                                       tdm_error *err) TDM_MUST_USE;
/* Thirty steps on one and on three threads: equal bits, a loss that has fallen, and at the first
 * TDMI_GOLDENS steps the losses that are known from the reference backend, whose bits are the same
 * on every machine. storage: of activations. */
enum { TDMI_GOLDENS = 6 };
tdm_status tdmi_check_training(const struct tdmi_backend *backend, tdmi_device *device,
                               const char *network, int size, enum tdmi_dtype storage,
                               const double goldens[TDMI_GOLDENS], struct tdmi_check *check,
                               tdm_error *err) TDM_MUST_USE;

/* On a device that records what is queued: a few steps as training queues them, recorded and
 * replayed, and the same steps one by one: equal bits, of one group and of several. */
bool tdmi_check_can_record(const struct tdmi_backend *backend);
tdm_status tdmi_check_recording(const struct tdmi_backend *backend, tdmi_device *device,
                                const char *network, int size, struct tdmi_check *check,
                                tdm_error *err) TDM_MUST_USE;

/* A training that no memory holds is refused with TDM_E_MEMORY, and the device computes afterwards
 * as before. */
tdm_status tdmi_check_memory(const struct tdmi_backend *backend, tdmi_device *device,
                             struct tdmi_check *check, tdm_error *err) TDM_MUST_USE;

/* A backend that augments images gives the host's results; images are uploaded by a stream of their
 * own. */
tdm_status tdmi_check_pictures(const struct tdmi_backend *backend, tdmi_device *device,
                               struct tdmi_check *check, tdm_error *err) TDM_MUST_USE;

/* A backend that gathers finds rows that stay on the device by their indices. */
tdm_status tdmi_check_rows(const struct tdmi_backend *backend, tdmi_device *device,
                           struct tdmi_check *check, tdm_error *err) TDM_MUST_USE;

/* ---- all of them --------------------------------------------------------------------------- */

/* tdm_selftest of a backend that is open, with at most so many of its networks. */
tdm_status tdmi_selftest_all(const struct tdmi_backend *backend, tdmi_device *device,
                             int most_networks, tdm_selftest_sink sink,
                             struct tdm_selftest_result *result, tdm_error *err) TDM_MUST_USE;
