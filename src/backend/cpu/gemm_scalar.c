/* The matrix products of gemm_body.h for plain C. */
#define TABLE tdmi_gemm_scalar
#include "backend/cpu/gemm_body.h"
