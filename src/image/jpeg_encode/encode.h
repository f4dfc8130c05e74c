/*
 * Our own writer of JPEG files: sequential Huffman coding of 8 bits in one scan, colour, with the
 * codes that the standard gives as typical. Its bytes are libjpeg-turbo's.
 */
#ifndef TANDEM_IMAGE_JPEG_WRITE_H
#define TANDEM_IMAGE_JPEG_WRITE_H

#include "image/image.h"
#include "image/jpeg_encode/kernels.h"

enum { TDMI_JPEG_LONGEST_SIDE = 65500 }; /* libjpeg's limit */

/* As tdmi_jpeg_encode, with one set of instructions. A failure leaves part of the file in out. */
tdm_status tdmi_jpeg_write(const tdmi_image *image, int quality,
                           const struct tdmi_jpeg_write_kernels *kernels, tdmi_text *out,
                           tdm_error *err) TDM_MUST_USE;

#endif
