/* What a step ends with in AVX-512. */
#include "backend/cpu/update_body.h"

const struct tdmi_update_table tdmi_update_avx512 = TDMI_UPDATES;
