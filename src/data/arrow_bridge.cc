/*
 * The only C++ of the library: what Arrow offers in C++ alone, handed out as plain C functions.
 * No exception and no C++ type passes this door.
 */
#include "data/arrow_bridge.h"
#include <arrow/config.h>

const char *tdmi_arrow_version(void)
{
    return arrow::GetBuildInfo().version_string.c_str();
}
