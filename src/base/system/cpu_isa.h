/* Instruction set extensions of this CPU that the operating system supports. */
#ifndef TANDEM_BASE_SYSTEM_CPU_ISA_H
#define TANDEM_BASE_SYSTEM_CPU_ISA_H

#include "base/system/cpu.h"

/* Set isa and the has_ fields; they stay empty on other CPUs than x86. */
void tdmi_cpu_isa(struct tdmi_cpu *cpu);

#endif
