/* Instruction set extensions of this CPU that the operating system supports. */
#pragma once

#include "base/system/cpu.h"

/* Set isa and the has_ fields; they stay empty on other CPUs than x86. */
void tdmi_cpu_isa(struct tdmi_cpu *cpu);
