/* The only reads of the environment outside src/cli. */
#pragma once

#include "base/arena.h"

/* NULL when unset or empty. */
const char *tdmi_env(const char *name);
/* $TANDEM_HOME, else $XDG_CACHE_HOME/tandem, else $HOME/.cache/tandem, else NULL. */
char *tdmi_env_home(tdmi_arena *arena);
