/*
 * checkpoint.json: the list of the files of one state of a run.
 */
#pragma once

#include "base/arena.h"
#include "base/scope.h"
#include "tandem/json.h"

#include <stdbool.h>
#include <stdint.h>

#define TDMI_MANIFEST_NAME "checkpoint.json"
#define TDMI_MANIFEST_RECORD "run.json" /* without it a folder holds no run: written last */

struct tdmi_manifest_file {
    const char *name; /* in the run folder: "last.safetensors", "kernels/…" */
    uint64_t hash;    /* XXH64 of its bytes, seed 0 */
    int64_t n_bytes;
    int fd; /* of a file that is copied; else -1 */
};

typedef struct tdmi_manifest { /* start from a zeroed object */
    tdmi_arena arena;
    struct tdmi_manifest_file *files;
    int64_t n, capacity;
    const char *started; /* tells one run from another */
    int64_t step;
    uint64_t text_hash; /* of what was read; 0: there is none */
} tdmi_manifest;

/* Closes its files. */
void tdmi_manifest_release(tdmi_manifest *manifest);
/* name is copied. */
tdm_status tdmi_manifest_add(tdmi_manifest *manifest, struct tdmi_manifest_file file,
                             tdm_error *err) TDM_MUST_USE;
/* The files of a run folder that resuming needs, opened, without their hashes. None: there is no
 * checkpoint yet. */
tdm_status tdmi_manifest_open_run(tdmi_manifest *manifest, const char *run,
                                  tdm_error *err) TDM_MUST_USE;
/* Is there a file of such a name in a run, for all that a manifest may say? */
bool tdmi_manifest_is_known(const char *name);

/* The name of a file at the other place, "0123456789abcdef-last.safetensors", in the arena. */
const char *tdmi_manifest_key(const struct tdmi_manifest_file *file, tdmi_arena *arena);
/* Where a file of the copies at url lies, in the arena. */
const char *tdmi_manifest_place(const struct tdmi_manifest_file *file, const char *url,
                                tdmi_arena *arena);
bool tdmi_manifest_is_key(const char *name);
/* Does it name the same bytes? */
bool tdmi_manifest_has(const tdmi_manifest *manifest, const struct tdmi_manifest_file *file);

tdm_status tdmi_manifest_write(const tdmi_manifest *manifest, const char *url,
                               tdm_error *err) TDM_MUST_USE;
/* text_hash 0: there is none. TDM_E_INPUT: damaged, or of a newer version. */
tdm_status tdmi_manifest_read(const char *url, tdmi_manifest *manifest,
                              tdm_error *err) TDM_MUST_USE;
