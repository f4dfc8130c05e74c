/* Names here for the words of other tools (tandem/hints.def). */
#pragma once

#include "cli/command.h"

/* "use --lr X" for "learning-rate" where the command has --lr; "" for words that hints.def does not
 * list, or not for this command. '_' counts as '-', capitals as small letters. */
const char *tdmi_hint(const struct tdmi_command *command, const char *word, char *text,
                      size_t text_bytes);
/* The same for the nearest word of the table that the command has a use for: "for
 * --learning-rate use --lr X". Words of one letter are no nearest word. */
const char *tdmi_hint_near(const struct tdmi_command *command, const char *word, char *text,
                           size_t text_bytes);
