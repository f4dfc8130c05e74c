/*
 * Paths as a Delta log writes them: percent-encoded URIs, relative to the table or absolute.
 */
#ifndef TANDEM_DATA_DELTA_PATH_H
#define TANDEM_DATA_DELTA_PATH_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>

/* "scheme:/…" with a scheme of at least two letters. */
bool tdmi_delta_path_is_uri(const char *path);
/* A URI, or begins with a slash. */
bool tdmi_delta_path_is_absolute(const char *path);

/* The place that text names, in the arena: relative paths and file: URIs come out decoded, other
 * URIs as they are (s3a and s3n, Hadoop's words for it, as s3). NULL with *why a half sentence
 * ("it is empty"), or with *why NULL when out of memory. */
const char *tdmi_delta_path_read(tdmi_arena *arena, const char *text, const char **why);

/* The other way, for paths relative to the table: what a URI cannot hold becomes %XX. */
const char *tdmi_delta_path_write(tdmi_arena *arena, const char *path);

#endif
