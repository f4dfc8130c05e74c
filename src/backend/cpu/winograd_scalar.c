/* The tiles of winograd_body.h for plain C. */
#define TABLE tdmi_winograd_scalar
#include "backend/cpu/winograd_body.h"
