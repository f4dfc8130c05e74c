/*
 * Calls that have no place in this tree become compile errors: they overrun buffers, keep hidden
 * state, or cannot report a bad number. The build forces this into every file of ours with
 * -include; it brings in the headers that declare these names first.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef strcpy
#undef strcat
#undef strncpy
#undef strtok
#undef sprintf
#undef vsprintf
#undef gets
#undef atoi
#undef atol
#undef atof

#define strcpy(to, from) banned_strcpy_use_tdmi_text_or_memcpy
#define strcat(to, from) banned_strcat_use_tdmi_text
#define strncpy(to, from, n) banned_strncpy_use_snprintf
#define strtok(text, separators) banned_strtok_use_strcspn
#define sprintf(...) banned_sprintf_use_snprintf
#define vsprintf(to, format, arguments) banned_vsprintf_use_vsnprintf
#define gets(to) banned_gets_use_fgets
#define atoi(text) banned_atoi_use_strtol
#define atol(text) banned_atol_use_strtol
#define atof(text) banned_atof_use_strtod
