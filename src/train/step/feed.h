/*
 * Batches for the training loop: images from a loader, or feature rows of the frozen layers
 * (features/store.h). Both come in the order of the same positions.
 */
#pragma once

#include "data/loader/loader.h"
#include "features/store.h"
#include "graph/feature_table.h"

typedef struct tdmi_feed tdmi_feed;

/* Feature rows in place of images. Arrays are lent for the feed's life. */
struct tdmi_feed_rows {
    const tdmi_source *source; /* of labels */
    tdmi_store *const *store;  /* repair may replace it */
    /* Repairs a row that cannot be read because of `why`: it is found and readable afterwards. */
    tdm_status (*repair)(void *self, const tdmi_store *store, int64_t place, const tdm_error *why,
                         tdm_error *err);
    void *self;
    const uint64_t *hashes; /* content by item, where the source does not know it */
    int width;              /* floats of a row */
    const int64_t *items;   /* the subset that is read */
    int64_t n_items;
    const tdmi_order *order; /* of the subset; NULL: as listed */
    uint32_t n_views; /* views of each sample, which the order cycles through; 0: unchanged */
    int batch;
};

/* Takes ownership of the loader. */
tdm_status tdmi_feed_open_pictures(tdmi_loader *loader, tdmi_feed **feed,
                                   tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_feed_open_rows(const struct tdmi_feed_rows *rows, tdmi_feed **feed,
                               tdm_error *err) TDM_MUST_USE;
void tdmi_feed_close(tdmi_feed *feed);
TDMI_POINTER_RELEASE(tdmi_feed, tdmi_feed_close)

/* Before the first batch of a feed of rows: keeps rows in this table. Each row is added when it is
 * first used, and batches name rows by number. The table is lent and must have room for all. */
tdm_status tdmi_feed_keep(tdmi_feed *feed, tdmi_feature_table *kept, tdm_error *err) TDM_MUST_USE;

/* Like the loader's functions of these names. In a batch of rows `pixels` are floats. A sample
 * without a row has the label -1 and no problem text: it was reported when rows were computed. */
tdm_status tdmi_feed_seek(tdmi_feed *feed, uint32_t epoch, int64_t position,
                          tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_feed_next(tdmi_feed *feed, const struct tdmi_batch **batch,
                          tdm_error *err) TDM_MUST_USE;
/* Requests the next batch now; tdmi_feed_next returns it, or its error. From now on the images of
 * the current batch are no longer valid; its labels, items, rows and problems are until that call.
 * NULL: no batch is ready. */
const struct tdmi_batch *tdmi_feed_look_ahead(tdmi_feed *feed);
/* Return the rates of the loader. False and zeros: a feed of rows, which has none. */
bool tdmi_feed_rates(const tdmi_feed *feed, struct tdmi_loader_rates *rates);
/* False past the last one; a feed of rows has none. */
bool tdmi_feed_skip_at(const tdmi_feed *feed, int64_t index, struct tdmi_skip *skip);
