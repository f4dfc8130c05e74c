/*
 * The size of coded frames as HEVC and AV1 state it themselves: a decoder takes memory for these,
 * whatever the boxes of the file say. Nothing is decoded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A walk over coded bytes. */
struct tdmi_heif_frames {
    int64_t pixels;   /* pixels of the largest frame; INT64_MAX: more than can be counted */
    int64_t n_left;   /* units that may still be looked at; at 0 the walk ends */
    bool is_unit_cut; /* the last unit ends beyond the bytes */
};

/* The content of a box hvcC, or of av1C. */
void tdmi_heif_frames_of_hevc_config(struct tdmi_heif_frames *frames, const uint8_t *bytes,
                                     size_t n_bytes);
void tdmi_heif_frames_of_av1_config(struct tdmi_heif_frames *frames, const uint8_t *bytes,
                                    size_t n_bytes);
/* Data of an image. HEVC: each unit stands behind its length, of so many bytes as hvcC says. */
void tdmi_heif_frames_of_hevc(struct tdmi_heif_frames *frames, size_t length_bytes,
                              const uint8_t *bytes, size_t n_bytes);
void tdmi_heif_frames_of_av1(struct tdmi_heif_frames *frames, const uint8_t *bytes, size_t n_bytes);

/* Bytes of the lengths that stand before units, by the content of a box hvcC. */
size_t tdmi_heif_hevc_length_bytes(const uint8_t *config, size_t n_bytes);
