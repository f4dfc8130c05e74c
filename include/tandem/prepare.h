/*
 * From labelled pictures to a folder that any reader of Parquet or Delta opens: every picture that
 * decodes, turned upright, brought to one size, split into train and val, in files that are pure
 * functions of content, seed and options. Killed at any point and run again, or cut into slices and
 * merged, it gives the same bytes as in one go.
 */
#ifndef TANDEM_PREPARE_H
#define TANDEM_PREPARE_H

#include "tandem/error.h"
#include "tandem/event.h"
#include "tandem/source.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Start from tdm_prepare_options_default() and change fields. Strings are lent for the call. */
struct tdm_prepare_options {
    const char *source;
    struct tdm_source_options how; /* where the path does not say it */
    const char *folder;            /* made with its parents; empty, absent or begun by us */

    int size;             /* of a side, in pixels: 299 */
    const char *fit;      /* "pad", "crop" or "stretch" */
    double crop_fraction; /* crop: the short side becomes size / crop_fraction; else 1 */
    const char *resample; /* "lanczos", "bicubic" or "bilinear" */

    double train_fraction, val_fraction; /* 0.9 and 0.1; what both leave over becomes test */
    uint64_t seed;                       /* of split and order: 42 */

    const char *codec;       /* "jpeg", "png", "raw" (plain pixels) or "keep" (the file's bytes) */
    int quality;             /* of jpeg; 0 means 95, and is the only value other codecs take */
    const char *compression; /* "zstd", "snappy" or "none"; NULL: zstd for the columns beside the
                                pictures. Pictures are compressed with raw only, and if asked for */

    int slice, slices; /* make only the parts whose number % slices == slice % slices; 0: all */
    bool merge;        /* join what slices made */
    int threads;       /* 0: all usable CPUs */
};

struct tdm_prepare_result {
    int64_t images, train, val, test; /* rows; images counts unlabelled pictures, too */
    int classes;
    int64_t quarantined; /* do not decode, or named by the quarantine list */
    int64_t left_out;    /* copies of pictures that were given as test */
    int64_t bytes;       /* of the parts: of all, or of those made by this slice */
    int parts, made;     /* how many there are, how many this call made */
    bool is_complete;    /* the table is finished: false after a slice */
    /* What an update of a finished table brought; a table that was made now has version 0. */
    int64_t version, added, removed;
    /* What jpeg changed in the pixels of one picture in 16, in steps of 255: */
    int64_t sampled;
    double change_mean;
    int change_max;
    double seconds;
};

TDM_API struct tdm_prepare_options tdm_prepare_options_default(void);
/* TDM_E_USAGE: options that contradict each other, or a folder that holds something else or was
 * made with other options. TDM_E_INPUT: no source, or nothing in it decodes.
 * TDM_E_ABSENT: a build without Arrow. TDM_E_STOPPED: finished parts stay; run it again. */
TDM_API tdm_status tdm_prepare(const struct tdm_prepare_options *options, tdm_sink sink,
                               struct tdm_prepare_result *result, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
