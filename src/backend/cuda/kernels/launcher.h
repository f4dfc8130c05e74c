/*
 * Headers of launchers are read by C and by CUDA: their functions stand between TDMI_C_BEGIN and
 * TDMI_C_END, which give them C linkage in both. A launcher queues kernels on a stream of CUDA and
 * returns the code of CUDA's runtime, 0 for success.
 */
#pragma once

#ifdef __cplusplus
#define TDMI_C_BEGIN extern "C" {
#define TDMI_C_END }
#else
#define TDMI_C_BEGIN
#define TDMI_C_END
#endif

struct CUstream_st;
