/*
 * A source: labelled images from anywhere behind one table. A source is opened once, lists its
 * items, and hands out their bytes to any number of threads. Kinds stand in sources.def; the first
 * whose probe accepts the path opens it.
 *
 * A source may also offer raw pixels: where every image is stored as bytes of one shape, they are
 * read straight into the caller's memory. And it may offer groups: where single images are slow to
 * reach (row groups of a foreign Parquet file), neighbours that are read together form a group, and
 * an order that stays inside few groups at a time is many times faster.
 */
#pragma once

#include "base/scope.h"
#include "base/text/text.h"
#include "image/preprocess.h"
#include "tandem/data.h"

enum tdmi_part { TDMI_PART_NONE, TDMI_PART_TRAIN, TDMI_PART_VAL, TDMI_PART_TEST };

struct tdmi_item {
    const char *path;    /* relative to the source; or "images.idx#17" */
    int label;           /* index of its class; -1: unlabelled (flat folders) */
    enum tdmi_part part; /* given by the source (train/ val/ test/); NONE: to be split */
    int64_t place;       /* where the source finds it: an archive's entry, a record, a size */
};

struct tdmi_raw_shape {
    int height, width, channels; /* channels 1 or 3 */
};

/* A file with the same stamp has not been written to since. */
struct tdmi_stamp {
    int64_t size_bytes, modified_ns; /* since 1970 */
};

typedef struct tdmi_source tdmi_source;

/* A kind of source. self points to its state: a struct of state_bytes that begins with a struct
 * tdmi_listing, which `open` fills. An index is one of listing.items. */
struct tdmi_source_table {
    const char *name;    /* "folder" */
    const char *summary; /* "a folder of class folders of images" */
    size_t state_bytes;
    bool (*can_open)(const char *path);
    /* self is zeroed; options is never NULL. */
    tdm_status (*open)(const char *path, const struct tdm_source_options *options, void *self,
                       tdm_error *err);
    /* Releases what open made, even where it failed, except the listing; NULL: nothing else. */
    void (*release)(void *self);
    /* Replaces the content of bytes by the item's encoded bytes. Required; any thread. Sources of
     * raw pixels write a PPM here, so that a content hash covers the pixels. */
    tdm_status (*read)(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err);
    /* All of these may be NULL or false. */
    bool takes_columns; /* the kind accepts the column and shape options */
    bool is_prepared;   /* its images are usually small or of one size already */
    /* Size and time of the item's file, without reading it; false: the item is not a file of its
     * own, or the look-up would cost as much as reading. */
    bool (*stamp)(const void *self, int64_t index, struct tdmi_stamp *stamp);
    /* XXH64 (seed 0) of the image's bytes, or of the bytes they were made from (see row_name), as
     * far as the source stores it; 0: unknown. */
    uint64_t (*hash)(const void *self, int64_t index);
    /* true: hash belongs to the file that the row was made from, not to the bytes that read
     * returns; *name then identifies these bytes; 0: nothing does. */
    bool (*row_name)(const void *self, int64_t index, uint64_t *name);
    /* false: not every item is raw pixels of this one shape. read_raw fills height × width ×
     * channels bytes; any thread. */
    bool (*raw_shape)(const void *self, struct tdmi_raw_shape *shape);
    tdm_status (*read_raw)(const void *self, int64_t index, uint8_t *pixels, tdm_error *err);
    /* true: images are stored in their original size; the loader applies this geometry before the
     * network's own preprocessing. */
    bool (*geometry)(const void *self, struct tdmi_preprocess *geometry);
    /* Path of the file that holds the item as a row: the same pointer for all its rows, which
     * follow one another. */
    const char *(*row_file)(const void *self, int64_t index);
    /* Items [group_first(g), group_first(g + 1)) are quick to read together; group_first(n_groups)
     * is n_items. NULL, or 0 groups: every item is as quick as any other. */
    int64_t (*n_groups)(const void *self);
    int64_t (*group_first)(const void *self, int64_t group);
};

/* options NULL: defaults. TDM_E_INPUT: missing, unreadable, of no known kind (the message lists the
 * kinds), or empty. */
tdm_status tdmi_source_open(const char *path, const struct tdm_source_options *options,
                            tdmi_source **source, tdm_error *err) TDM_MUST_USE;
void tdmi_source_close(tdmi_source *source);
TDMI_POINTER_RELEASE(tdmi_source, tdmi_source_close)

const char *tdmi_source_path(const tdmi_source *source);
const char *tdmi_source_kind(const tdmi_source *source); /* "folder" */
bool tdmi_source_is_prepared(const tdmi_source *source);
/* Are the images rows of a table? Their path is then their origin, not a file of this source. */
bool tdmi_source_is_table(const tdmi_source *source);
int tdmi_source_classes(const tdmi_source *source);
const char *tdmi_source_class(const tdmi_source *source, int index);
int64_t tdmi_source_items(const tdmi_source *source);
struct tdmi_item tdmi_source_item(const tdmi_source *source, int64_t index);
tdm_status tdmi_source_read(const tdmi_source *source, int64_t index, tdmi_text *bytes,
                            tdm_error *err) TDM_MUST_USE;
/* After a failed read: is the image itself not to blame, so that it must not be skipped? Memory ran
 * out, a store does not answer, the system refuses, or a stop was requested. */
bool tdmi_source_is_lost(tdm_status status);
/* Read, and fail only then. Where the image itself is to blame, problem has the error, else code
 * TDM_OK. */
tdm_status tdmi_source_try(const tdmi_source *source, int64_t index, tdmi_text *bytes,
                           tdm_error *problem, tdm_error *err) TDM_MUST_USE;
/* Number of files that are no images and were left out. */
int64_t tdmi_source_ignored(const tdmi_source *source);

/* Images that cannot be read: of kinds that nothing reads, and of formats whose decoder is missing.
 */
void tdmi_source_unread(const tdmi_source *source, struct tdm_unread_list *list);

/* Which formats the images have, by their names; of a table, which has none, perhaps any. */
void tdmi_source_formats(const tdmi_source *source, bool formats[TDMI_IMAGE_FORMATS]);
/* Number of images left out because the quarantine list names them. */
int64_t tdmi_source_quarantined(const tdmi_source *source);

/* false: unknown. */
bool tdmi_source_stamp(const tdmi_source *source, int64_t index, struct tdmi_stamp *stamp);
/* 0: the source does not store it; hash the bytes. */
uint64_t tdmi_source_hash(const tdmi_source *source, int64_t index);
/* Key under which a cache may store the bytes that read returns: equal keys mean equal bytes.
 * hashes, by item, are those that the caller computed where the source stores none; or NULL. */
struct tdmi_bytes_key {
    uint64_t number; /* 0: no key */
    bool is_content; /* the number is the XXH64 of the bytes */
};
struct tdmi_bytes_key tdmi_source_bytes_key(const tdmi_source *source, int64_t index,
                                            const uint64_t *hashes);
bool tdmi_source_raw_shape(const tdmi_source *source, struct tdmi_raw_shape *shape);
bool tdmi_source_geometry(const tdmi_source *source, struct tdmi_preprocess *geometry);
/* Only where tdmi_source_raw_shape is true. */
tdm_status tdmi_source_read_raw(const tdmi_source *source, int64_t index, uint8_t *pixels,
                                tdm_error *err) TDM_MUST_USE;
/* The Parquet file that holds the item as a row: items *first to *end - 1 are its rows. NULL: the
 * item is not a row.
 */
const char *tdmi_source_row_file(const tdmi_source *source, int64_t index, int64_t *first,
                                 int64_t *end);
int64_t tdmi_source_groups(const tdmi_source *source);
int64_t tdmi_source_group_first(const tdmi_source *source, int64_t group);

/* ---- lost rows ----------------------------------------------------------------------------- */

/* Rows of Parquet files without a usable image. A few are skipped and counted like any bad image. A
 * file that lost more than half of its rows is damaged as a whole: reading it fails. */
struct tdmi_lost_file {
    int64_t first; /* item of its first row */
    int64_t n_lost;
};

typedef struct tdmi_lost_rows { /* start from a zeroed object */
    uint8_t *is_lost;           /* a bit per item of the source */
    struct tdmi_lost_file *files;
    int64_t n_files, capacity;
} tdmi_lost_rows;

void tdmi_lost_rows_release(tdmi_lost_rows *lost);

/* Count an unusable item, once however often it is reported. why: the reason, or NULL where it was
 * reported already. TDM_E_INPUT: more than half of the rows of its file are lost. Items of sources
 * other than Parquet and Delta are not counted. */
tdm_status tdmi_lost_rows_add(tdmi_lost_rows *lost, const tdmi_source *source, int64_t item,
                              const char *why, tdm_error *err) TDM_MUST_USE;
