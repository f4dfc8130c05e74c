/*
 * A look at the images of a source: enough of them to tell drawings of a few pixels from photos.
 */
#pragma once

#include "data/source/source.h"

struct tdmi_look {
    int n_seen;           /* images whose size is known; 0: nothing is known */
    int side, large_side; /* median of their longer sides, pixels; nine of ten have no larger one */
    bool is_grey;         /* nearly all of them; false for large ones */
    int background;       /* median of the pixels at the edges of small ones, 0 to 255 */
    double decode_second; /* that one takes to be read and decoded, by one thread */
};

/* The network that suits such images. */
enum tdmi_suits {
    TDMI_SUITS_SMALL,      /* a small network from scratch */
    TDMI_SUITS_PRETRAINED, /* features of many other photos */
    TDMI_SUITS_UNSURE      /* either: a probe decides */
};

/* Reads at most 64 images, from all over the source, and decodes the small ones. Images that cannot
 * be read are passed over. */
tdm_status tdmi_look_at(const tdmi_source *source, struct tdmi_look *look,
                        tdm_error *err) TDM_MUST_USE;
enum tdmi_suits tdmi_look_suits(const struct tdmi_look *look);
