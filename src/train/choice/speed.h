/*
 * Time that images take in a published network on this machine, and the size that a slow machine
 * gives them.
 */
#pragma once

#include "train/session/compute.h"
#include "weights/import/import.h"

/* A machine is slow where one pass over the images would take longer than this; smaller numbers of
 * images are not worth the measurement. */
#define TDMI_SLOW_SECONDS 600.0
enum { TDMI_SLOW_IMAGES = 1000 };

struct tdmi_speed {
    int side;              /* pixels a side of the network's own input */
    double network_second; /* seconds an image takes in it, all threads at work */
    double decode_second;  /* … until it is decoded, by all threads */
};

/* Times a few images of noise in the network of these weights; 0 seconds on devices other than the
 * host, which are not slow. decode_second is left as it is. */
tdm_status tdmi_speed_measure(const struct tdmi_compute *compute, const char *path,
                              const struct tdmi_import_request *request, struct tdmi_speed *speed,
                              tdm_error *err) TDM_MUST_USE;

/* Seconds that an image of this size (0: the network's own) takes in that network with new weights,
 * forward, all threads at work; 0 on devices other than the host. */
tdm_status tdmi_speed_of_new(const struct tdmi_compute *compute, const char *network, int size,
                             int classes, double *image_seconds, tdm_error *err) TDM_MUST_USE;

/* The largest side, of some that published networks are used with, at which one pass over n images
 * is not slow; 128, the smallest, where each is and it saves half of the time. 0: the network's
 * own.
 */
int tdmi_speed_side(const struct tdmi_speed *speed, int64_t n_images);
/* The smallest of these sizes, but at least 160, that is not below the images' longer side: a
 * network sees nothing more in images that are enlarged further. 0: the network's own is no larger.
 */
int tdmi_size_of_images(int images_side, int own);
/* The same for a network from scratch, which need not see them enlarged at all: a multiple of 8,
 * and at least 32. */
int tdmi_size_from_scratch(int images_side, int own);
/* Seconds of that pass. */
double tdmi_speed_seconds(const struct tdmi_speed *speed, int64_t n_images, int side);
