/*
 * The first pass over all images: a hash of each, and a list of those that do not decode. All
 * decisions of prepare follow from it. It is stored beside the unfinished parts, so that slices and
 * later attempts need not read every image again:
 *
 *     "TDMLOOK1"  length of the text (8 bytes)  text (JSON)  hashes (8 bytes an item)  XXH64 of all
 */
#pragma once

#include "base/arena.h"
#include "data/audit/contents.h"
#include "tandem/prepare.h"

struct tdmi_prepare_bad {
    int64_t item;
    enum tdm_verdict verdict;
    const char *reason; /* a sentence, in the arena */
};

typedef struct tdmi_prepare_look { /* start from a zeroed object */
    tdmi_arena arena;
    tdmi_contents contents;       /* hash 0: does not decode */
    struct tdmi_prepare_bad *bad; /* by item, ascending; in the arena */
    int64_t n_bad;
    int64_t n_bytes; /* of all files */
    /* Hash of the names, sizes and times of all files; 0: the source does not know them, so a
     * change cannot be detected without reading. */
    uint64_t listing;
    int64_t time_ms; /* of the newest file; 0: unknown */
} tdmi_prepare_look;

void tdmi_prepare_look_release(tdmi_prepare_look *look);

/* Sets listing and time_ms; nothing is read. */
void tdmi_prepare_look_list(const tdmi_source *source, tdmi_prepare_look *look);
/* Reads every image once and decodes only those whose header looks suspicious. TDM_E_INPUT: none
 * decodes. */
tdm_status tdmi_prepare_look_read(const tdmi_source *source, tdmi_pool *pool, tdm_sink sink,
                                  tdmi_prepare_look *look, tdm_error *err) TDM_MUST_USE;

/* Replaces the content of text. */
tdm_status tdmi_prepare_look_write(const tdmi_prepare_look *look, tdmi_text *text,
                                   tdm_error *err) TDM_MUST_USE;
/* TDM_E_INPUT: not whole, or not of n_items images. name names the bytes in messages. */
tdm_status tdmi_prepare_look_parse(const void *bytes, size_t length_bytes, const char *name,
                                   int64_t n_items, tdmi_prepare_look *look,
                                   tdm_error *err) TDM_MUST_USE;
