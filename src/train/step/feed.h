/*
 * Batches for the training loop: images from a loader, or feature rows of the frozen layers
 * (features/store.h). Both come in the order of the same positions.
 */
#pragma once

#include "data/loader/loader.h"
#include "features/store.h"
#include "graph/feature_table.h"

typedef struct tdmi_feed tdmi_feed;

/* Rows in place of pictures. Arrays are lent for the feed's life. */
struct tdmi_feed_rows {
    const tdmi_source *source; /* of labels */
    tdmi_store *const *store;  /* may be another one after a row was mended */
    /* A row cannot be read, as why says: makes it anew, so that it is found and read. */
    tdm_status (*repair)(void *self, const tdmi_store *store, int64_t place, const tdm_error *why,
                         tdm_error *err);
    void *self;
    const uint64_t *hashes; /* content by item, where the source does not know it */
    int width;              /* floats a row */
    const int64_t *items;   /* the subset that is read */
    int64_t n_items;
    const tdmi_order *order; /* over the subset; NULL: as it stands */
    uint32_t n_views;        /* of each sample, which the order goes through; 0: only the plain */
    int batch;
};

/* The loader becomes the feed's. */
tdm_status tdmi_feed_open_pictures(tdmi_loader *loader, tdmi_feed **feed,
                                   tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_feed_open_rows(const struct tdmi_feed_rows *rows, tdmi_feed **feed,
                               tdm_error *err) TDM_MUST_USE;
void tdmi_feed_close(tdmi_feed *feed);

/* Of rows, before the first batch: each is put there when it is first asked for, and batches name
 * them by number from then on. There must be room for all that will be asked for. Lent. */
tdm_status tdmi_feed_keep(tdmi_feed *feed, tdmi_feature_table *kept, tdm_error *err) TDM_MUST_USE;

/* As the loader's of these names. What a row's batch calls pixels are floats. A sample without a
 * row has the label -1 and an empty problem: why it has none was told when rows were made. */
tdm_status tdmi_feed_seek(tdmi_feed *feed, uint32_t epoch, int64_t position,
                          tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_feed_next(tdmi_feed *feed, const struct tdmi_batch **batch,
                          tdm_error *err) TDM_MUST_USE;
/* Asks now for the batch that the next call of tdmi_feed_next hands out: whatever becomes of that,
 * a failure too, it is told then. From here on the pictures of the last batch are the feed's again;
 * all else that it points to stays until that call. NULL: there is none to be had. */
const struct tdmi_batch *tdmi_feed_look_ahead(tdmi_feed *feed);
/* Seconds inside epochs, and those of them that the caller waited; of rows both 0. */
struct tdmi_feed_clock {
    double seconds, waits;
};
struct tdmi_feed_clock tdmi_feed_clock(const tdmi_feed *feed);
/* false past the end, and of rows always. */
bool tdmi_feed_skip_at(const tdmi_feed *feed, int64_t index, char *text, size_t text_bytes);
