/*
 * Digests that identify a file, in the two forms that publishers use.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tdmi_digest {
    char sha256[65], md5[33];
    int64_t bytes;
};

tdm_status tdmi_digest_file(const char *path, struct tdmi_digest *digest,
                            tdm_error *err) TDM_MUST_USE;
void tdmi_digest_bytes(const void *bytes, size_t n, struct tdmi_digest *digest);
/* hash: "sha256:" and its first digits, or "md5:" and all of them. */
bool tdmi_digest_is(const struct tdmi_digest *digest, const char *hash);
