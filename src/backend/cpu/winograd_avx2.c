/* The tiles of winograd_body.h for AVX2. */
#define TABLE tdmi_winograd_avx2
#include "backend/cpu/winograd_body.h"
