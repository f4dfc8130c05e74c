/*
 * What a step ends with, in the instruction sets of this processor: passes over runs of values, one
 * thread each, with the bits of backend ref.
 */
#pragma once

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* For isa up to tdmi_isa_best(). */
const struct tdmi_update_table *tdmi_cpu_updates(enum tdmi_isa isa);

extern const struct tdmi_update_table tdmi_update_scalar, tdmi_update_avx2, tdmi_update_avx512;
