/*
 * A probe: two small trainings on the same few images, one from scratch and one that starts with
 * pretrained weights, whose features the training itself finds again.
 */
#pragma once

#include "tandem/event.h"
#include "tandem/train.h"

enum { TDMI_PROBE_IMAGES = 500 };

/* A network from scratch, published weights, and the sizes of images for both; 0: the network's
 * own. */
struct tdmi_candidates {
    const char *model, *weights;
    int size, size_of_weights;
};

struct tdmi_probe {
    int64_t n;                   /* validation images */
    int64_t scratch, pretrained; /* correctly classified images of each training */
};

/* About how long it takes, by the seconds of an image in either network, forward, and until it is
 * decoded. */
double tdmi_probe_seconds(int64_t n_images, double scratch_second, double pretrained_second,
                          double decode_second);
/* Source, seed, threads and device are those of options, which describe n_images images. sink gets
 * the progress of both trainings as one phase. */
tdm_status tdmi_probe_run(const struct tdm_train_options *options, int64_t n_images,
                          const struct tdmi_candidates *them, tdm_sink sink,
                          struct tdmi_probe *probe, tdm_error *err) TDM_MUST_USE;
