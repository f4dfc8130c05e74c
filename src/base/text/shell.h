/*
 * Words of commands that are suggested for copying: a name with a space in it, or anything else
 * that a shell would take for something of its own, is quoted.
 */
#pragma once

#include "base/text/text.h"
#include <stddef.h>

/* Room for the longest path that has not more than a few thousand quotes in it. */
#define TDMI_SHELL_WORD_BYTES 8192

/* The word as a shell takes it for one argument, into text, which is returned: as it stands where
 * every character is plain, else in single quotes; with control characters in it as $'…' (bash,
 * zsh, ksh), so that none of them reaches a terminal. A name that begins like an option gets "./".
 * Cut with … where it does not fit. */
const char *tdmi_shell_word(const char *word, char *text, size_t text_bytes);

/* Adds the word for a script of bash: whole, and without "./". */
void tdmi_shell_add(tdmi_text *text, const char *word);
