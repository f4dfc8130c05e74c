/*
 * A 64-bit fingerprint of what an image shows, for finding near duplicates: copies that were
 * resized, compressed again or made a little brighter differ in few bits, other images in about
 * half of them. Computed in integers only, so it is the same on every machine and may be stored.
 */
#pragma once

#include "image/image.h"

/* Images at this distance or below count as near duplicates; bench/results/image.md has the error
 * rates. */
enum { TDMI_FINGERPRINT_NEAR = 4 };

/* scratch is used as in tdmi_image_resize(). Returns 0 for an image without any larger shape (one
 * colour, fine grain): only its bytes distinguish it from others. */
tdm_status tdmi_image_fingerprint(const tdmi_image *image, tdmi_image *scratch,
                                  uint64_t *fingerprint, tdm_error *err) TDM_MUST_USE;

/* How many bits differ, 0 to 64. */
int tdmi_fingerprint_distance(uint64_t a, uint64_t b);
