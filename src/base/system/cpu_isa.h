/* The instruction set extensions that this processor has and this operating system keeps. */
#ifndef TANDEM_BASE_SYSTEM_CPU_ISA_H
#define TANDEM_BASE_SYSTEM_CPU_ISA_H

#include "base/system/cpu.h"

/* Sets isa and the has_ fields; they stay empty where the processor cannot be asked. */
void tdmi_cpu_isa(struct tdmi_cpu *cpu);

#endif
