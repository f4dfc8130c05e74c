/* The matrix products of gemm_body.h for AVX-512. */
#define TABLE tdmi_gemm_avx512
#include "backend/cpu/gemm_body.h"
