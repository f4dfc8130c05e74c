/*
 * A learnable synthetic photo-like data set: class folders of pictures, the same bytes for the same
 * options on any machine and thread count.
 */
#ifndef TANDEM_SYNTH_H
#define TANDEM_SYNTH_H

#include "tandem/error.h"
#include "tandem/event.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tdm_synth_options {
    const char *folder; /* made if missing; must be empty or absent */
    int classes;        /* 2 to 1000 */
    int per_class;      /* 1 to 1000000 */
    int size;           /* typical side in pixels, 16 to 2048; pictures vary around it */
    uint64_t seed;
    const char *format; /* "jpeg", "png", "bmp" or "ppm", where this build can write it */
    int threads;        /* 0: all usable CPUs */
};

struct tdm_synth_result {
    int64_t images;
    int classes;
    int64_t bytes;
    double seconds;
};

TDM_API struct tdm_synth_options tdm_synth_options_default(void);
TDM_API tdm_status tdm_synth(const struct tdm_synth_options *options, tdm_sink sink,
                             struct tdm_synth_result *result, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
