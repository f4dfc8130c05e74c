/*
 * The config file of this user, which is read where --config names no other:
 *
 *     $TANDEM_HOME/config.toml
 *     $XDG_CONFIG_HOME/tandem/config.toml   without TANDEM_HOME
 *     ~/.config/tandem/config.toml          without both
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>

/* False where the environment names no folder, or the path does not fit. */
bool tdmi_user_config_path(char *path, size_t path_bytes);
/* Is there one? Its path is written all the same. */
bool tdmi_user_config_find(char *path, size_t path_bytes);
/* Put "key = value" before all that is in the file, for every command that has the option; makes
 * the file and its folder. It is replaced at once, a link stays a link, and the file keeps its
 * mode. path, of path_bytes, gets its name. TDM_E_SYSTEM, TDM_E_INPUT. */
tdm_status tdmi_user_config_add(const char *key, const char *value, char *path, size_t path_bytes,
                                tdm_error *err) TDM_MUST_USE;
