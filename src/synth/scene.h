/*
 * One image of the synthetic data set: a pure function of (seed, class, number, size).
 */
#pragma once

#include "synth/canvas.h"

/* The longest possible side of an image is this many times the requested size, rounded up. */
#define TDMI_SYNTH_LONGEST 1.33F

/* Draws image number (in its class) into image and says the JPEG quality it is to be stored
 * with. The number of classes or images does not enter: a larger data set contains the smaller
 * ones. The size enters the geometry only: the same scene at another resolution. */
tdm_status tdmi_synth_draw(const struct tdmi_synth_tables *tables, uint64_t seed, int class_index,
                           int64_t number, int size, struct tdmi_synth_canvas *canvas,
                           tdmi_image *image, int *quality, tdm_error *err) TDM_MUST_USE;
