/*
 * NVIDIA cards through libnvidia-ml.so.1, opened at run time with a few prototypes of our own: a
 * build needs neither the header nor the library, and a machine without cards is nothing special.
 */
#ifndef TANDEM_TRACK_NVML_H
#define TANDEM_TRACK_NVML_H

#include "tandem/error.h"
#include <stdint.h>

typedef struct tdmi_nvml tdmi_nvml;

/* What the driver leaves unsaid stays 0 or "". */
struct tdmi_nvml_device {
    char name[96], uuid[96];
    int64_t memory_bytes, memory_free_bytes;
    int compute_major, compute_minor;
    int pcie_generation, pcie_lanes; /* at most */
    int nvlinks;                     /* that are up */
    double power_limit_watts;
};

/* TDM_E_ABSENT when there is no driver or no card it serves. */
tdm_status tdmi_nvml_open(tdmi_nvml **nvml, tdm_error *err) TDM_MUST_USE;
void tdmi_nvml_close(tdmi_nvml *nvml);

int tdmi_nvml_count(const tdmi_nvml *nvml);
const char *tdmi_nvml_driver(const tdmi_nvml *nvml); /* "550.54.15", lives as long as nvml */
int tdmi_nvml_cuda(const tdmi_nvml *nvml);           /* 12040 for CUDA 12.4; 0 unknown */

/* index in [0, count). */
tdm_status tdmi_nvml_describe(const tdmi_nvml *nvml, int index, struct tdmi_nvml_device *device,
                              tdm_error *err) TDM_MUST_USE;

#endif
