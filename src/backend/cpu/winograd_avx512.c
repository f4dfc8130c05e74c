/* The tiles of winograd_body.h for AVX-512. */
#define TABLE tdmi_winograd_avx512
#include "backend/cpu/winograd_body.h"
