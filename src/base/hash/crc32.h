/*
 * CRC-32 as zlib, PNG and Parquet count it (polynomial 0x04C11DB7, reflected).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* crc: 0, or the result for what came before. */
uint32_t tdmi_crc32(uint32_t crc, const void *bytes, size_t n_bytes);
