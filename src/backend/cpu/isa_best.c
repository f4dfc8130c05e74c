/* The instruction set that kernels are prepared for; tests link another to run the lower ones. */
#include "backend/cpu/isa.h"

enum tdmi_isa tdmi_isa_best(void)
{
    return tdmi_isa_supported();
}
