/*
 * NVIDIA GPUs through libnvidia-ml.so.1, opened at run time with a few prototypes of our own: a
 * build needs neither the header nor the library, and a machine without GPUs is nothing special.
 */
#pragma once

#include "base/scope.h"
#include "tandem/machine.h"
#include <stdint.h>

typedef struct tdmi_nvml tdmi_nvml;

/* Reasons for lowered clocks of a GPU; none of them is an error. */
enum tdmi_nvml_reason {
    TDMI_NVML_IDLE = 1,
    TDMI_NVML_CLOCKS_ASKED = 2, /* set by a user */
    TDMI_NVML_POWER_CAP = 4,
    TDMI_NVML_HARDWARE = 8, /* one of those below that say hardware, or an unknown one */
    TDMI_NVML_SYNCED = 16,  /* with other GPUs */
    TDMI_NVML_HEAT = 32,
    TDMI_NVML_HARDWARE_HEAT = 64,
    TDMI_NVML_HARDWARE_POWER = 128,
    TDMI_NVML_DISPLAY = 256
};

/* Current state of a GPU. Unknown fields are below 0. */
struct tdmi_nvml_sample {
    int busy_percent;        /* of the last moments: part of the time that a kernel ran */
    int memory_busy_percent; /* and that memory was read or written */
    int64_t memory_used_bytes;
    double power_watts;
    double energy_joules; /* since the driver was loaded */
    int sm_mhz, memory_mhz;
    int temperature_celsius;
    int64_t pcie_sent_kb_per_s, pcie_received_kb_per_s; /* of 20 ms; from the GPU, to it */
    int64_t reasons;                                    /* of enum tdmi_nvml_reason */
};

/* file is the library; NULL: the driver's. TDM_E_ABSENT when there is no driver or no supported
 * GPU. */
tdm_status tdmi_nvml_open(const char *file, tdmi_nvml **nvml, tdm_error *err) TDM_MUST_USE;
void tdmi_nvml_close(tdmi_nvml *nvml);
TDMI_POINTER_RELEASE(tdmi_nvml, tdmi_nvml_close)

int tdmi_nvml_count(const tdmi_nvml *nvml);
const char *tdmi_nvml_driver(const tdmi_nvml *nvml); /* "550.54.15", lives as long as nvml */
int tdmi_nvml_cuda(const tdmi_nvml *nvml);           /* 12040 for CUDA 12.4; 0 unknown */

/* index in [0, count). Unknown fields stay 0 or "". */
tdm_status tdmi_nvml_describe(const tdmi_nvml *nvml, int index, struct tdm_machine_gpu *device,
                              tdm_error *err) TDM_MUST_USE;
/* Takes some 40 ms: PCIe traffic is counted while it waits. */
tdm_status tdmi_nvml_sample(const tdmi_nvml *nvml, int index, struct tdmi_nvml_sample *sample,
                            tdm_error *err) TDM_MUST_USE;
/* "power cap" for one bit of reasons, in English; NULL: the driver is newer than this. */
const char *tdmi_nvml_reason_text(int64_t reason);
