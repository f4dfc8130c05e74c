/*
 * The log of a Delta table: which commits and checkpoints lie in _delta_log, which of them make a
 * version, and their replay.
 */
#pragma once

#include "data/delta/replay.h"

/* A folder with a _delta_log in it, here or in an object store. */
bool tdmi_delta_is_table(const char *path);

/* "pets@v12" is version 12 of the table pets, where nothing is called pets@v12: *table is "pets" in
 * the arena and *version 12; any other path is itself and version -1. false: no memory. */
bool tdmi_delta_path_version(const char *path, tdmi_arena *arena, const char **table,
                             int64_t *version) TDM_MUST_USE;

/* version -1: the newest. TDM_E_INPUT: no such version, a log with gaps or damage, or a table that
 * requires an unsupported feature. */
tdm_status tdmi_delta_log_read(const char *path, int64_t version, struct tdmi_delta_table *table,
                               tdm_error *err) TDM_MUST_USE;
