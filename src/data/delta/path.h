/*
 * Paths as a Delta log writes them: percent-encoded URIs, relative to the table or absolute.
 */
#pragma once

#include "base/arena.h"
#include "tandem/error.h"
#include <stdbool.h>

/* The place that text names, in the arena: relative paths and file: URIs come out decoded, other
 * URIs as they are (s3a and s3n, Hadoop's words for it, as s3). NULL with *why a half sentence
 * ("it is empty"), or with *why NULL when out of memory. */
const char *tdmi_delta_path_read(tdmi_arena *arena, const char *text, const char **why);

/* Resolve a path of the table's log (as read) into the arena. A log is untrusted data, so these are
 * TDM_E_INPUT unless follows: in a local table, a URI, an absolute path, a path with ".." or a link
 * that leaves the table's folder; in a remote table, a file on this machine. */
tdm_status tdmi_delta_path_place(tdmi_arena *arena, const char *table, const char *path,
                                 bool follows, const char **place, tdm_error *err) TDM_MUST_USE;

/* The reverse, for paths relative to the table: characters that a URI cannot hold become %XX. */
const char *tdmi_delta_path_write(tdmi_arena *arena, const char *path);
