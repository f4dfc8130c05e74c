/* What a step ends with in plain C, for any processor. */
#include "backend/cpu/update_body.h"

const struct tdmi_update_table tdmi_update_scalar = TDMI_UPDATES;
