/* The text of each engine. @name@ stands for a value; emit.c lists the names. */
#pragma once

extern const char tdmi_emit_slurm[], tdmi_emit_jobset[], tdmi_emit_mpijob[], tdmi_emit_spark[];
