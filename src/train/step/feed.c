/* Batches from a loader or from stored feature rows. */
#include "train/step/feed.h"
#include "base/scope.h"

#include <string.h>

/* A batch that was requested and not returned yet, or the error. */
struct ahead {
    bool is_requested;
    tdm_status status;
    const struct tdmi_batch *batch;
    tdm_error why;
};

/* Copies of the arrays of the current batch, except images: its slot is reused meanwhile. */
struct kept {
    int room; /* positions */
    int32_t *labels;
    int64_t *items, *rows;
    char (*problems)[TDMI_PROBLEM_BYTES];
};

struct tdmi_feed {
    tdmi_loader *loader;        /* NULL: rows */
    struct tdmi_batch shown[2]; /* the current batch and the next one */
    int last;                   /* index of the one returned last */
    struct ahead ahead;
    struct kept kept;
    struct tdmi_feed_rows rows;
    uint32_t epoch;
    int64_t position;
    struct tdmi_batch batch; /* of rows; arrays have room for rows.batch samples */
    float *values;
    int32_t *labels;
    int64_t *items;
    tdmi_feature_table *table; /* NULL: rows are not kept on a device */
    int64_t *numbers; /* of rows in the table, by index in the subset and view; -1: not added yet */
    int64_t *named;   /* numbers of the batch's rows */
};

static void release(struct kept *kept)
{
    tdmi_free(kept->labels);
    tdmi_free(kept->items);
    tdmi_free(kept->rows);
    tdmi_free(kept->problems);
    *kept = (struct kept){0};
}

tdm_status tdmi_feed_open_pictures(tdmi_loader *loader, tdmi_feed **feed, tdm_error *err)
{
    const tdm_status status = TDMI_NEW(*feed, 1, err);
    if (status == TDM_OK)
        (*feed)->loader = loader;
    else
        tdmi_loader_close(loader);
    return status;
}

tdm_status tdmi_feed_open_rows(const struct tdmi_feed_rows *rows, tdmi_feed **feed, tdm_error *err)
{
    TDMI_AT_END(tdmi_feed_close_at) tdmi_feed *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->rows = *rows;
    TDMI_TRY(TDMI_NEW(made->values, (size_t)rows->batch * (size_t)rows->width, err));
    TDMI_TRY(TDMI_NEW(made->labels, rows->batch, err));
    TDMI_TRY(TDMI_NEW(made->items, rows->batch, err));
    *feed = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_feed_close(tdmi_feed *feed)
{
    if (!feed)
        return;
    tdmi_loader_close(feed->loader);
    release(&feed->kept);
    tdmi_free(feed->values);
    tdmi_free(feed->labels);
    tdmi_free(feed->items);
    tdmi_free(feed->numbers);
    tdmi_free(feed->named);
    tdmi_free(feed);
}

static int64_t views_of(const struct tdmi_feed_rows *rows)
{
    return rows->n_views > 0 ? rows->n_views : 1;
}

tdm_status tdmi_feed_keep(tdmi_feed *feed, tdmi_feature_table *kept, tdm_error *err)
{
    const struct tdmi_feed_rows *rows = &feed->rows;
    const int64_t n = rows->n_items * views_of(rows);
    TDMI_TRY(TDMI_NEW(feed->numbers, n, err));
    TDMI_TRY(TDMI_NEW(feed->named, rows->batch, err));
    for (int64_t i = 0; i < n; i++)
        feed->numbers[i] = -1;
    feed->table = kept;
    return TDM_OK;
}

tdm_status tdmi_feed_seek(tdmi_feed *feed, uint32_t epoch, int64_t position, tdm_error *err)
{
    feed->ahead.is_requested = false;
    if (feed->loader)
        return tdmi_loader_seek(feed->loader, epoch, position, err);
    feed->epoch = epoch;
    feed->position = position;
    return TDM_OK;
}

/* The error is requested only here: it is large, and rows are many. */
static tdm_status repair(const tdmi_feed *feed, int64_t at, float *values, tdm_error *err)
{
    const struct tdmi_feed_rows *rows = &feed->rows;
    tdm_error why = {0};
    if (tdmi_store_read(*rows->store, at, values, &why) == TDM_OK)
        return TDM_OK;
    return rows->repair(rows->self, *rows->store, at, &why, err);
}

/* Reads the row into place p of the batch; the label is -1 where there is no row. */
static tdm_status read_row(tdmi_feed *feed, int p, struct tdmi_store_row row, tdm_error *err)
{
    const struct tdmi_feed_rows *rows = &feed->rows;
    float *values = feed->values + (size_t)p * (size_t)rows->width;
    for (;;) {
        const int64_t at = tdmi_store_find(*rows->store, row);
        feed->labels[p] = at < 0 ? -1 : tdmi_source_item(rows->source, feed->items[p]).label;
        if (at < 0 || tdmi_store_read(*rows->store, at, values, NULL) == TDM_OK)
            return TDM_OK;
        TDM_TRY(repair(feed, at, values, err), err, "repairing a feature row");
    }
}

/* Sets the row's number, and adds it to the table on first use. A sample without a row, which is
 * ignored, gets the number of another. */
static tdm_status name_row(tdmi_feed *feed, int p, int64_t nth, struct tdmi_store_row row,
                           tdm_error *err)
{
    const struct tdmi_feed_rows *rows = &feed->rows;
    int64_t *number = &feed->numbers[nth * views_of(rows) + row.view];
    feed->labels[p] = tdmi_source_item(rows->source, feed->items[p]).label;
    if (*number < 0)
        TDM_TRY(read_row(feed, p, row, err), err, "keeping a feature");
    if (*number < 0 && feed->labels[p] >= 0)
        TDM_TRY(tdmi_feature_table_put(feed->table, feed->values + (size_t)p * (size_t)rows->width,
                                       number, err),
                err, "keeping a feature");
    feed->named[p] = *number < 0 ? 0 : *number;
    return TDM_OK;
}

/* Reads the sample at a position into place p of the batch. */
static tdm_status take(tdmi_feed *feed, int p, tdm_error *err)
{
    const struct tdmi_feed_rows *rows = &feed->rows;
    const int64_t position = feed->position + p;
    const int64_t nth = rows->order ? tdmi_order_at(rows->order, feed->epoch, position) : position;
    const int64_t item = rows->items[nth];
    const struct tdmi_store_row row = {
        .content = tdmi_source_bytes_key(rows->source, item, rows->hashes).number,
        .view = rows->n_views > 0
                    ? tdmi_order_view(rows->order, feed->epoch, position, rows->n_views)
                    : 0};
    feed->items[p] = item;
    return feed->table ? name_row(feed, p, nth, row, err) : read_row(feed, p, row, err);
}

/* Rows that were added are uploaded even if the batch fails, because their numbers are in use. */
static tdm_status take_all(tdmi_feed *feed, int n, tdm_error *err)
{
    tdm_status status = TDM_OK;
    for (int p = 0; p < n && status == TDM_OK; p++)
        status = take(feed, p, err);
    if (!feed->table)
        return status;
    const tdm_status flushed = tdmi_feature_table_flush(feed->table, status == TDM_OK ? err : NULL);
    return status == TDM_OK ? flushed : status;
}

static tdm_status next_rows(tdmi_feed *feed, const struct tdmi_batch **batch, tdm_error *err)
{
    const struct tdmi_feed_rows *rows = &feed->rows;
    const int64_t n = rows->order ? rows->order->n : rows->n_items, left = n - feed->position;
    *batch = NULL;
    if (left <= 0)
        return TDM_OK;
    feed->batch = (struct tdmi_batch){.n = left < rows->batch ? (int)left : rows->batch,
                                      .first = feed->position,
                                      .values = feed->values,
                                      .pixels = (const uint8_t *)feed->values,
                                      .labels = feed->labels,
                                      .items = feed->items,
                                      .rows = feed->table ? feed->named : NULL};
    TDM_TRY(take_all(feed, feed->batch.n, err), err, "reading features");
    feed->position += feed->batch.n;
    *batch = &feed->batch;
    return TDM_OK;
}

/* Copies the batch header, which a loader reuses. */
static tdm_status request(tdmi_feed *feed, const struct tdmi_batch **batch, tdm_error *err)
{
    const tdm_status status =
        feed->loader ? tdmi_loader_next(feed->loader, batch, err) : next_rows(feed, batch, err);
    if (status != TDM_OK || !*batch)
        return status;
    feed->last = 1 - feed->last;
    feed->shown[feed->last] = **batch;
    *batch = &feed->shown[feed->last];
    return TDM_OK;
}

static tdm_status make_room(struct kept *kept, int n)
{
    if (n <= kept->room)
        return TDM_OK;
    release(kept);
    TDMI_TRY(TDMI_NEW(kept->labels, n, NULL));
    TDMI_TRY(TDMI_NEW(kept->items, n, NULL));
    TDMI_TRY(TDMI_NEW(kept->rows, n, NULL));
    TDMI_TRY(TDMI_NEW(kept->problems, n, NULL));
    kept->room = n;
    return TDM_OK;
}

/* Copies the arrays of the current batch before its slot is reused; false: no memory. */
static bool keep_current(tdmi_feed *feed)
{
    struct tdmi_batch *batch = &feed->shown[feed->last];
    struct kept *kept = &feed->kept;
    const size_t n = (size_t)batch->n;
    if (n == 0)
        return true;
    if (make_room(kept, batch->n) != TDM_OK)
        return false;
    memcpy(kept->labels, batch->labels, n * sizeof *kept->labels);
    memcpy(kept->items, batch->items, n * sizeof *kept->items);
    batch->labels = kept->labels;
    batch->items = kept->items;
    if (batch->rows)
        batch->rows = memcpy(kept->rows, batch->rows, n * sizeof *kept->rows);
    if (batch->problems) {
        memcpy(kept->problems, batch->problems, n * sizeof *kept->problems);
        batch->problems = (const char(*)[TDMI_PROBLEM_BYTES])kept->problems;
    }
    batch->keys = NULL; /* not used any more */
    return true;
}

const struct tdmi_batch *tdmi_feed_look_ahead(tdmi_feed *feed)
{
    struct ahead *ahead = &feed->ahead;
    if (!ahead->is_requested) {
        if (!keep_current(feed))
            return NULL; /* tdmi_feed_next requests it */
        tdm_error_clear(&ahead->why);
        ahead->batch = NULL;
        ahead->status = request(feed, &ahead->batch, &ahead->why);
        ahead->is_requested = true;
    }
    return ahead->status == TDM_OK ? ahead->batch : NULL;
}

tdm_status tdmi_feed_next(tdmi_feed *feed, const struct tdmi_batch **batch, tdm_error *err)
{
    struct ahead *ahead = &feed->ahead;
    if (!ahead->is_requested)
        return request(feed, batch, err);
    ahead->is_requested = false;
    *batch = ahead->batch;
    if (ahead->status != TDM_OK && err)
        *err = ahead->why;
    return ahead->status;
}

bool tdmi_feed_rates(const tdmi_feed *feed, struct tdmi_loader_rates *rates)
{
    *rates = (struct tdmi_loader_rates){0};
    if (feed->loader)
        tdmi_loader_rates(feed->loader, rates);
    return feed->loader != NULL;
}

bool tdmi_feed_skip_at(const tdmi_feed *feed, int64_t index, struct tdmi_skip *skip)
{
    return feed->loader && tdmi_loader_skip_at(feed->loader, index, skip);
}
