/*
 * Optimizer steps and sums of gradients in the instruction sets of this CPU: passes over runs of
 * values, one thread each, bit-identical to backend ref.
 */
#pragma once

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* For isa up to tdmi_isa_best(). */
const struct tdmi_update_table *tdmi_cpu_updates(enum tdmi_isa isa);

extern const struct tdmi_update_table tdmi_update_scalar, tdmi_update_avx2, tdmi_update_avx512;
