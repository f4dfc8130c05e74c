/* The only reads of the environment outside src/cli. */
#pragma once

#include "base/arena.h"
#include "base/system/placement.h"

/* NULL when unset or empty. */
const char *tdmi_env(const char *name);
/* $TANDEM_HOME, else $XDG_CACHE_HOME/tandem, else $HOME/.cache/tandem, else NULL. */
char *tdmi_env_home(tdmi_arena *arena);
/* This process among those of its job on this machine: TANDEM_LOCAL_RANK and TANDEM_LOCAL_SIZE,
 * else the same of Open MPI, MPICH, torchrun or Slurm; {0, 0} when none is set. */
tdm_status tdmi_env_local(struct tdmi_local *local, tdm_error *err) TDM_MUST_USE;
