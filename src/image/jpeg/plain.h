/*
 * Our own decoder for the usual kind of JPEG file (jpeg/layout.h): the pixels of libjpeg-turbo in a
 * part of the time. It takes only files that are sound to the last bit, and none on a CPU without
 * AVX2 and BMI2. All others are for libjpeg-turbo, which also reports what is wrong with them.
 */
#pragma once

#include "image/formats/codec.h"

/* As tdmi_jpeg_decode where *is_done. Otherwise the file is not of that kind; a sink may have got
 * rows of it already, and its begin must be called again. Fails only when memory runs out. */
tdm_status tdmi_jpeg_plain_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                                  bool *is_done, tdm_error *err) TDM_MUST_USE;

/* Everything but the last step: *is_sound is what *is_done would be, and no pixel is made. Only
 * memory of room is used. */
tdm_status tdmi_jpeg_plain_check(const struct tdmi_codec_source *source, tdmi_image *room,
                                 bool *is_sound, tdm_error *err) TDM_MUST_USE;
