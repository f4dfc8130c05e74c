/*
 * A source: labelled pictures from anywhere behind one table. A source is opened once, lists its
 * items, and hands out their bytes to any number of threads. Kinds stand in sources.def; the first
 * whose probe says yes opens the path.
 */
#ifndef TANDEM_DATA_SOURCE_H
#define TANDEM_DATA_SOURCE_H

#include "base/text.h"
#include "image/image.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tdmi_part { TDMI_PART_NONE, TDMI_PART_TRAIN, TDMI_PART_VAL, TDMI_PART_TEST };

struct tdmi_item {
    const char *path;    /* relative to the source; or "images.idx#17" */
    int label;           /* index of its class; -1: unlabelled (flat folders) */
    enum tdmi_part part; /* given by the source (train/ val/ test/); NONE: to be split */
};

typedef struct tdmi_source tdmi_source;

struct tdmi_source_table {
    const char *name;    /* "folder" */
    const char *summary; /* "a folder of class folders of pictures" */
    bool (*can_open)(const char *path);
    tdm_status (*open)(const char *path, void **self, tdm_error *err);
    void (*close)(void *self);
    int (*n_classes)(const void *self);
    const char *(*class_name)(const void *self, int index);
    int64_t (*n_items)(const void *self);
    struct tdmi_item (*item)(const void *self, int64_t index);
    int64_t (*n_ignored)(const void *self);
    /* The item's encoded bytes, replacing what text held. Required; any thread. Sources of raw
     * pixels write a PPM here, so that a content hash covers what was read. */
    tdm_status (*read)(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err);
};

/* TDM_E_INPUT: missing, unreadable, of no kind we know (the message lists the kinds), or empty. */
tdm_status tdmi_source_open(const char *path, tdmi_source **source, tdm_error *err) TDM_MUST_USE;
void tdmi_source_close(tdmi_source *source);

const char *tdmi_source_path(const tdmi_source *source);
const char *tdmi_source_kind(const tdmi_source *source); /* "folder" */
int tdmi_source_classes(const tdmi_source *source);
const char *tdmi_source_class(const tdmi_source *source, int index);
int64_t tdmi_source_items(const tdmi_source *source);
struct tdmi_item tdmi_source_item(const tdmi_source *source, int64_t index);
tdm_status tdmi_source_read(const tdmi_source *source, int64_t index, tdmi_text *bytes,
                            tdm_error *err) TDM_MUST_USE;
/* Files seen that are no pictures and were left out. */
int64_t tdmi_source_ignored(const tdmi_source *source);

#endif
