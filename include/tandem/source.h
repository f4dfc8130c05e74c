/*
 * How pictures are found where a path alone does not say it. Any command that reads a data set
 * takes these; zeroed, everything is found by itself.
 */
#ifndef TANDEM_SOURCE_H
#define TANDEM_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Strings are lent for the call. */
struct tdm_source_options {
    const char *image_column, *label_column; /* of tables; NULL: by name and type */
    const char *raw_shape;                   /* "32x32x3" (height, width, channels) of raw bytes */
    const char *quarantine;                  /* list of pictures to leave out; NULL: none */
    int64_t cache_bytes;                     /* for decoded groups of tables; 0: 256 MiB */
    /* Read what a local list or Delta table names elsewhere: anything remote and, of a Delta table,
     * absolute paths, ".." and links that leave its folder. */
    bool follow;
};

#ifdef __cplusplus
}
#endif
#endif
