/*
 * Unsigned numbers of 1 to 8 bytes in files and messages, in either byte order, on any machine.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Least significant byte first. Compilers turn a constant n of 2, 4 or 8 into one load. */
static inline uint64_t tdmi_read_little(const uint8_t *at, size_t n_bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < n_bytes; i++)
        number |= (uint64_t)at[i] << 8 * i;
    return number;
}

static inline void tdmi_write_little(void *at, uint64_t number, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        ((uint8_t *)at)[i] = (uint8_t)(number >> 8 * i);
}

/* Most significant byte first. */
static inline uint64_t tdmi_read_big(const uint8_t *at, size_t n_bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < n_bytes; i++)
        number = number << 8 | at[i];
    return number;
}
