/*
 * Data sets: how images are found where a path alone does not say it, and a loader that iterates
 * over them in batches. Zeroed, tdm_source_options find everything by themselves.
 */
#ifndef TANDEM_DATA_H
#define TANDEM_DATA_H

#include "tandem/error.h"
#include "tandem/json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Strings are lent for the call. */
struct tdm_source_options {
    const char *image_column, *label_column; /* of tables; NULL: by name and type */
    const char *raw_shape;                   /* "32x32x3" (height, width, channels) of raw bytes */
    const char *quarantine;                  /* list of images to leave out; NULL: none */
    int64_t cache_bytes;                     /* for decoded groups of tables; 0: 256 MiB */
    /* Read files that a local list or Delta table names elsewhere: remote ones and, of a Delta
     * table, absolute paths, ".." and links that leave its folder. */
    bool follow;
};

/* Parts of a data set. */
enum tdm_part { TDM_PART_ALL, TDM_PART_TRAIN, TDM_PART_VAL, TDM_PART_TEST };

/* Images of a data set that cannot be read here, by kind. */
enum { TDM_UNREAD_KINDS = 24 };
struct tdm_unread {
    const char *kind;    /* "HEIC", "camera raw files"; static storage, as package */
    const char *package; /* Debian package that reads this kind: such images are listed and skipped.
                            NULL: nothing reads it, and they are left out */
    int64_t n;
};
struct tdm_unread_list {
    int n;
    struct tdm_unread kinds[TDM_UNREAD_KINDS];
};
/* As an array under "unread": [{"kind", "package", "n"}]. */
TDM_API void tdm_unread_to_json(const struct tdm_unread_list *unread, tdm_json_writer *writer);

/* ---- loader ---------------------------------------------------------------------------------- */

struct tdm_loader_options { /* strings are lent for the call */
    size_t struct_bytes;    /* see tandem/api.h */
    const char *source;
    struct tdm_source_options how;
    enum tdm_part part; /* as the source gives it: folders train/, val/, test/, a column of a table;
                           or as the fractions divide it */
    int size;           /* side of the square images: 224 */
    int channels;       /* 3, or 1 for grey */
    int batch;          /* images of a batch: 32 */
    const char *augment; /* random changes: "flip,crop:4"; NULL: none */
    bool is_shuffled;    /* in every epoch: true */
    uint64_t seed;       /* of order and changes: 42 */
    int threads;         /* 0: all usable CPUs */
    int64_t memory;      /* bytes for prefetching; 0: no limit */
    /* Divide the source by content, as tdm_train does with these fractions and this seed: every
     * image is read once for it. The parts that the source gives stay. 0: only as it gives them. */
    double train_fraction, val_fraction, test_fraction;
};

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_loader_options_init(struct tdm_loader_options *options, size_t struct_bytes);
static inline struct tdm_loader_options tdm_loader_options_default(void)
{
    struct tdm_loader_options options;
    tdm_loader_options_init(&options, sizeof options);
    return options;
}

struct tdm_batch {
    int n;                 /* images; fewer in the last batch of an epoch */
    const uint8_t *pixels; /* (n, size, size, channels) */
    const int32_t
        *labels;          /* class index; -1: unlabelled, or could not be read (its pixels are 0) */
    const int64_t *items; /* number of each image in the source */
};

typedef struct tdm_loader tdm_loader;

/* Starts threads that read ahead, at the beginning of epoch 0. TDM_E_INPUT: no source, or no image
 * of that part. The same options give the same batches at any number of threads. */
TDM_API tdm_status tdm_loader_open(const struct tdm_loader_options *options, tdm_loader **loader,
                                   tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
TDM_API void tdm_loader_close(tdm_loader *loader);

TDM_API int64_t tdm_loader_images(const tdm_loader *loader);
TDM_API int tdm_loader_classes(const tdm_loader *loader);
/* NULL past the end; lives as long as the loader. */
TDM_API const char *tdm_loader_class(const tdm_loader *loader, int index);

/* Go to the beginning of an epoch, from 0; each has an order of its own. */
TDM_API tdm_status tdm_loader_begin(tdm_loader *loader, int epoch, tdm_error *err) TDM_MUST_USE;
/* Go to a position of an epoch: the number of images before it, a multiple of options->batch, or
 * all of them. The batches from there are those of a loader that has read all before.
 * TDM_E_USAGE: there is no such position. */
TDM_API tdm_status tdm_loader_seek(tdm_loader *loader, int epoch, int64_t position,
                                   tdm_error *err) TDM_MUST_USE;
/* Wait for the next batch, lent until the next call; NULL at the end of the epoch. One thread at a
 * time. */
TDM_API tdm_status tdm_loader_next(tdm_loader *loader, const struct tdm_batch **batch,
                                   tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
