/*
 * The pieces behind tandem/machine.h: facts about the build, and measurements.
 * Every probe keeps to the seconds it is given (within one repetition), takes the best of its
 * repetitions, since noise only ever slows, and gives back everything it took.
 */
#pragma once

#include "backend/matmul_probe.h"
#include "base/thread.h"
#include "tandem/machine.h"

/* Copies between two buffers a thread, each well beyond its share of the last cache. */
tdm_status tdmi_probe_copy(tdmi_pool *pool, double seconds, int64_t l3_bytes, int64_t memory_bytes,
                           struct tdm_machine_rates *rates, tdm_error *err) TDM_MUST_USE;

/* Matrix products, one private product a thread. Missing bf16 is noted in rates. */
tdm_status tdmi_probe_matmul(tdmi_pool *pool, const struct tdmi_matmul_method *method,
                             double seconds, struct tdm_machine_rates *rates,
                             tdm_error *err) TDM_MUST_USE;

/* Writes a file without a name in folder and reads it back past the page cache. A failure is
 * noted in rates->disk_problem. */
void tdmi_probe_disk(const char *folder, double seconds, int64_t bytes,
                     struct tdm_machine_rates *rates);

/* The best method of this build, and the one that every build has. */
const struct tdmi_matmul_method *tdmi_matmul_method_best(void);
extern const struct tdmi_matmul_method tdmi_matmul_plain;

/* The optional parts of this build, whether their libraries open or not; static storage. registry.c
 */
const struct tdm_machine_feature *tdmi_features(int *n_features);
const char *tdmi_build_type(void);
const char *tdmi_build_compiler(void);
