/* Look-up of one name in a list, used by every registry. */
#pragma once

#include "tandem/error.h"
#include <stddef.h>

/* The index of name among n names, or -1. */
int tdmi_choice_index(const char *name, const char *const *names, int n);

/* "pad, crop, stretch" in text, cut short where it is full; returns text. */
const char *tdmi_choice_list(const char *const *names, int n, char *text, size_t text_bytes);

/* *index of name among n names; otherwise TDM_E_USAGE with a sentence that lists them and names the
 * nearest. what is the kind of thing: "model". */
tdm_status tdmi_choice_find(const char *what, const char *name, const char *const *names, int n,
                            int *index, tdm_error *err) TDM_MUST_USE;
