/*
 * Access control. Without a token a server listens on loopback only, and a page of another site in
 * the user's browser must not reach it: its requests have another Host (a name that resolves to
 * 127.0.0.1) or another Origin. Browsers never send a token by themselves, so with a token both are
 * free.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stdint.h>

enum { TDMI_TOKEN_LEAST = 16, TDMI_TOKEN_MOST = 256 };

struct tdmi_guard { /* start from a zeroed object: no token */
    bool has_token;
    uint8_t digest[32]; /* of the token, which is not kept */
};

/* Visible ASCII, 16 to 256 of them. */
tdm_status tdmi_guard_set(struct tdmi_guard *guard, const char *token, const char *from,
                          tdm_error *err) TDM_MUST_USE;
/* The first line of a file. */
tdm_status tdmi_guard_read(struct tdmi_guard *guard, const char *path, tdm_error *err) TDM_MUST_USE;
/* In the log, where others than its owner may read that file. */
void tdmi_guard_warn(const char *path);

/* Does "Bearer TOKEN" (NULL: no header) hold the token? In a time that says nothing about it. */
bool tdmi_guard_lets_in(const struct tdmi_guard *guard, const char *authorization);
/* NULL, or the sentence why a request with these headers (NULL: not there) is not answered. */
const char *tdmi_guard_refuses(const struct tdmi_guard *guard, const char *host,
                               const char *origin);
