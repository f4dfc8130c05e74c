/* Choose the images of the next batch, so that one request with many images does not delay all
 * others. */
#pragma once

#include <stdint.h>

struct tdmi_share_request {
    int n_pictures;        /* still to be predicted, 1 or more */
    const int64_t *pixels; /* of each of them */
};

struct tdmi_share_room {
    int pictures; /* 1 or more */
    int64_t pixels;
};

/* Choose how many images of each of n requests, oldest first, enter the next batch: the oldest gets
 * at least half of the room, then each other request one image while room lasts, then the rest is
 * filled in order. At least one image of the oldest enters, however large. */
void tdmi_share_images(const struct tdmi_share_request *requests, int n,
                       struct tdmi_share_room room, int *shares);
