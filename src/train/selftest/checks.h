/*
 * The checks of the self-test. Each returns whether it passed and, when not, says in detail what
 * differed by how much. An error is something else: the check could not be made.
 */
#ifndef TANDEM_TRAIN_SELFTEST_CHECKS_H
#define TANDEM_TRAIN_SELFTEST_CHECKS_H

#include "base/thread.h"
#include "train/selftest/cases.h"
#include <stdbool.h>

struct tdmi_check {
    bool has_passed;
    char detail[240];
};

/* Tolerances by type, in one place: relative to the largest value of the tensor. */
#define TDMI_TOLERANCE_F32 1e-5      /* against the reference */
#define TDMI_TOLERANCE_GOLDEN 1e-2   /* of a loss of the first steps */
#define TDMI_TOLERANCE_GRADIENT 5e-3 /* against central differences of f32 values */

/* Outputs and gradients against the reference backend. */
tdm_status tdmi_check_match(const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_case *it, struct tdmi_check *check,
                            tdm_error *err) TDM_MUST_USE;
/* Gradients against central differences. */
tdm_status tdmi_check_gradient(const struct tdmi_backend *backend, tdmi_device *device,
                               const struct tdmi_case *it, struct tdmi_check *check,
                               tdm_error *err) TDM_MUST_USE;
/* Twice the same: equal bits. */
tdm_status tdmi_check_determinism(const struct tdmi_backend *backend, tdmi_device *device,
                                  const struct tdmi_case *it, struct tdmi_check *check,
                                  tdm_error *err) TDM_MUST_USE;

/* ---- whole networks on pictures made in memory -------------------------------------------- */

/* Gradient of the whole network against a central difference along one random direction. */
tdm_status tdmi_check_network_gradient(const struct tdmi_backend *backend, tdmi_device *device,
                                       const char *network, int size, struct tdmi_check *check,
                                       tdm_error *err) TDM_MUST_USE;
/* Thirty steps on one and on three threads: equal bits, a loss that has fallen, and at the first
 * TDMI_GOLDENS steps the losses that are known from the reference backend, whose bits are the same
 * on every machine. */
enum { TDMI_GOLDENS = 6 };
tdm_status tdmi_check_training(const struct tdmi_backend *backend, tdmi_device *device,
                               const char *network, int size, const double goldens[TDMI_GOLDENS],
                               struct tdmi_check *check, tdm_error *err) TDM_MUST_USE;

#endif
