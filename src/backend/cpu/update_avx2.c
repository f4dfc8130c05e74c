/* What a step ends with in AVX2. */
#include "backend/cpu/update_body.h"

const struct tdmi_update_table tdmi_update_avx2 = TDMI_UPDATES;
