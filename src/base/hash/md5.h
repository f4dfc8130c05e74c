/*
 * MD5, for files whose publisher gives no better digest. It detects a damaged download, not a
 * forged one.
 */
#pragma once

#include "base/hash/hash.h"

typedef tdmi_block_hash tdmi_md5;

void tdmi_md5_init(tdmi_md5 *state);
void tdmi_md5_add(tdmi_md5 *state, const void *bytes, size_t length_bytes);
/* 32 lower-case hex digits and a terminator. */
void tdmi_md5_result(tdmi_md5 *state, char hex[33]);
