/*
 * A source: labelled pictures from anywhere behind one table. A source is opened once, lists its
 * items, and hands out their bytes to any number of threads. Kinds stand in sources.def; the first
 * whose probe says yes opens the path.
 *
 * Two things a source may offer beyond that. Raw pixels: where every picture is stored as bytes of
 * one shape, they are read straight into the caller's memory. Groups: where single pictures are
 * dear to reach (row groups of a foreign Parquet file, compressed tar), neighbours that are read
 * together form a group, and an order that stays inside few groups at a time is many times faster.
 */
#ifndef TANDEM_DATA_SOURCE_H
#define TANDEM_DATA_SOURCE_H

#include "base/text/text.h"
#include "image/preprocess.h"
#include "tandem/error.h"
#include "tandem/data.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tdmi_part { TDMI_PART_NONE, TDMI_PART_TRAIN, TDMI_PART_VAL, TDMI_PART_TEST };

struct tdmi_item {
    const char *path;    /* relative to the source; or "images.idx#17" */
    int label;           /* index of its class; -1: unlabelled (flat folders) */
    enum tdmi_part part; /* given by the source (train/ val/ test/); NONE: to be split */
};

struct tdmi_raw_shape {
    int height, width, channels; /* channels 1 or 3 */
};

/* A file with the same stamp has not been written to since. */
struct tdmi_stamp {
    int64_t size_bytes, modified_ns; /* since 1970 */
};

typedef struct tdmi_source tdmi_source;

struct tdmi_source_table {
    const char *name;    /* "folder" */
    const char *summary; /* "a folder of class folders of pictures" */
    bool (*can_open)(const char *path);
    tdm_status (*open)(const char *path, const struct tdm_source_options *options, void **self,
                       tdm_error *err);
    void (*close)(void *self);
    int (*n_classes)(const void *self);
    const char *(*class_name)(const void *self, int index);
    int64_t (*n_items)(const void *self);
    struct tdmi_item (*item)(const void *self, int64_t index);
    int64_t (*n_ignored)(const void *self);
    /* The item's encoded bytes, replacing what text held. Required; any thread. Sources of raw
     * pixels write a PPM here, so that a content hash covers what was read. */
    tdm_status (*read)(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err);

    /* All of these may be NULL or false. */

    bool takes_columns; /* the column and shape options mean something here */
    /* Size and time of the file an item is, without reading it; false: it is no file of its own, or
     * asking would cost as much as reading. */
    bool (*stamp)(const void *self, int64_t index, struct tdmi_stamp *stamp);
    /* XXH64 (seed 0) of the picture's bytes where the source has it written down, or of those they
     * were made of (see row_name); 0: unknown. */
    uint64_t (*hash)(const void *self, int64_t index);
    /* true: hash is of the file that the row was made of, not of the bytes that read gives; these
     * are called *name then, as no others are, or have no name: 0. */
    bool (*row_name)(const void *self, int64_t index, uint64_t *name);
    /* false: not every item is raw pixels of this one shape. read_raw fills height × width ×
     * channels bytes; any thread. */
    bool (*raw_shape)(const void *self, struct tdmi_raw_shape *shape);
    tdm_status (*read_raw)(const void *self, int64_t index, uint8_t *pixels, tdm_error *err);
    /* true: pictures lie here in their own size; the loader brings them to this geometry before it
     * does what the network wants. */
    bool (*geometry)(const void *self, struct tdmi_preprocess *geometry);
    /* The path of the file that the item is a row of, the same pointer for all its rows, which
     * follow one another. */
    const char *(*row_file)(const void *self, int64_t index);
    /* Items [group_first(g), group_first(g + 1)) are quick to read together; group_first(n_groups)
     * is n_items. NULL, or 0 groups: every item is as quick as any other. */
    int64_t (*n_groups)(const void *self);
    int64_t (*group_first)(const void *self, int64_t group);
};

/* options NULL: all by itself. TDM_E_INPUT: missing, unreadable, of no kind we know (the message
 * lists the kinds), or empty. */
tdm_status tdmi_source_open(const char *path, const struct tdm_source_options *options,
                            tdmi_source **source, tdm_error *err) TDM_MUST_USE;
/* A source the program makes itself: whoever calls keeps table and self, whose table->close may be
 * NULL. path is what messages call it. */
tdm_status tdmi_source_adopt(const struct tdmi_source_table *table, void *self, const char *path,
                             tdmi_source **source, tdm_error *err) TDM_MUST_USE;
void tdmi_source_close(tdmi_source *source);

const char *tdmi_source_path(const tdmi_source *source);
const char *tdmi_source_kind(const tdmi_source *source); /* "folder" */
/* Are pictures rows of a table? Their path then says where they came from, not what they are. */
bool tdmi_source_is_table(const tdmi_source *source);
int tdmi_source_classes(const tdmi_source *source);
const char *tdmi_source_class(const tdmi_source *source, int index);
int64_t tdmi_source_items(const tdmi_source *source);
struct tdmi_item tdmi_source_item(const tdmi_source *source, int64_t index);
tdm_status tdmi_source_read(const tdmi_source *source, int64_t index, tdmi_text *bytes,
                            tdm_error *err) TDM_MUST_USE;
/* After a read that failed: nothing is wrong with this picture, so it is not to be skipped. Memory
 * is out, a store does not answer, the system refuses, or a stop was requested. */
bool tdmi_source_is_lost(tdm_status status);
/* Files seen that are no pictures and were left out. */
int64_t tdmi_source_ignored(const tdmi_source *source);
/* Pictures left out because the quarantine list names them. */
int64_t tdmi_source_quarantined(const tdmi_source *source);

/* false: unknown. */
bool tdmi_source_stamp(const tdmi_source *source, int64_t index, struct tdmi_stamp *stamp);
/* 0: the source does not know it; read the bytes. */
uint64_t tdmi_source_hash(const tdmi_source *source, int64_t index);
/* What a cache may call the bytes that read gives; they never come out as others. hashes, by item,
 * are those that the caller took of pictures whose source knows none; NULL: there are none. */
struct tdmi_bytes_key {
    uint64_t number; /* 0: nothing */
    bool is_content; /* it is their XXH64 */
};
struct tdmi_bytes_key tdmi_source_bytes_key(const tdmi_source *source, int64_t index,
                                            const uint64_t *hashes);
bool tdmi_source_raw_shape(const tdmi_source *source, struct tdmi_raw_shape *shape);
bool tdmi_source_geometry(const tdmi_source *source, struct tdmi_preprocess *geometry);
/* Only where tdmi_source_raw_shape said yes. */
tdm_status tdmi_source_read_raw(const tdmi_source *source, int64_t index, uint8_t *pixels,
                                tdm_error *err) TDM_MUST_USE;
/* The Parquet file that the item is a row of: items *first to *end - 1 are its rows. NULL: it is
 * none.
 */
const char *tdmi_source_row_file(const tdmi_source *source, int64_t index, int64_t *first,
                                 int64_t *end);
int64_t tdmi_source_groups(const tdmi_source *source);
int64_t tdmi_source_group_first(const tdmi_source *source, int64_t group);

#endif
