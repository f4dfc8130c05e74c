/* The matrix products of gemm_body.h for AVX2 and FMA. */
#define TABLE tdmi_gemm_avx2
#include "backend/cpu/gemm_body.h"
