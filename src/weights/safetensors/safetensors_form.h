/* Constants of .safetensors files that reader and writer share. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TDMI_SAFETENSORS_CHECKSUM_KEY "tandem.checksum"

enum {
    TDMI_SAFETENSORS_PREFIX = 8,     /* bytes of the header's length */
    TDMI_SAFETENSORS_ALIGNMENT = 64, /* of the first tensor in a file of ours, of all in memory */
    TDMI_SAFETENSORS_DIGITS = 16     /* of the checksum */
};
/* The limit every known reader has. */
#define TDMI_SAFETENSORS_HEADER_MAX 100000000u

/* Bytes of a tensor in memory, or of a header in a file: a multiple of the alignment. */
static inline size_t tdmi_safetensors_padded(size_t n)
{
    return (n + TDMI_SAFETENSORS_ALIGNMENT - 1) / TDMI_SAFETENSORS_ALIGNMENT *
           TDMI_SAFETENSORS_ALIGNMENT;
}

/* Where the digits of the checksum stand in the text of a header: the first member of that name,
 * which in a file of ours is the first of all. NULL when they are not to be found. A zero ends the
 * header. */
char *tdmi_safetensors_digits(char *header, size_t length_bytes);
void tdmi_safetensors_put_digits(char *digits, uint64_t checksum);
