/*
 * A probe: two small trainings on the same few images, one from scratch and one that starts with
 * pretrained weights, whose features the training itself finds again.
 */
#pragma once

#include "tandem/train.h"

enum { TDMI_PROBE_IMAGES = 500 };

struct tdmi_probe {
    int64_t n;                   /* validation images */
    int64_t scratch, pretrained; /* correctly classified images of each training */
};

/* Source, seed, threads and device are those of options, which describe n_images images. */
tdm_status tdmi_probe_run(const struct tdm_train_options *options, int64_t n_images,
                          const char *model, const char *weights, struct tdmi_probe *probe,
                          tdm_error *err) TDM_MUST_USE;
