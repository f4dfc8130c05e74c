/*
 * CRC-32 as zlib, PNG and Parquet count it (polynomial 0x04C11DB7, reflected).
 */
#ifndef TANDEM_BASE_HASH_CRC32_H
#define TANDEM_BASE_HASH_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* crc: 0, or the result for what came before. */
uint32_t tdmi_crc32(uint32_t crc, const void *bytes, size_t n_bytes);

#endif
