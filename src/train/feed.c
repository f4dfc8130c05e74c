/*
 * Two ways to the same batches.
 */
#include "train/feed.h"
#include "base/memory.h"

#include <string.h>

/* A batch that was asked for and not handed out yet, or why there is none. */
struct ahead {
    bool is_asked;
    tdm_status status;
    const struct tdmi_batch *batch;
    tdm_error why;
};

/* What the batch before it points to, but for pictures. */
struct kept {
    int room; /* positions */
    int32_t *labels;
    int64_t *items;
    char (*problems)[TDMI_PROBLEM_BYTES];
};

struct tdmi_feed {
    tdmi_loader *loader;        /* NULL: rows */
    struct tdmi_batch shown[2]; /* the last one, and the one ahead of it */
    int last;
    struct ahead ahead;
    struct kept kept;
    struct tdmi_feed_rows rows;
    uint32_t epoch;
    int64_t position;
    struct tdmi_batch batch; /* of rows; its arrays hold rows.batch samples */
    float *values;
    int32_t *labels;
    int64_t *items;
};

static void release(struct kept *kept)
{
    tdmi_free(kept->labels);
    tdmi_free(kept->items);
    tdmi_free(kept->problems);
    *kept = (struct kept){0};
}

static tdm_status refuse(tdmi_feed *feed, tdm_error *err)
{
    tdmi_feed_close(feed);
    return TDM_FAIL(err, TDM_E_MEMORY, "preparing to feed the training: out of memory");
}

tdm_status tdmi_feed_open_pictures(tdmi_loader *loader, tdmi_feed **feed, tdm_error *err)
{
    tdmi_feed *made = tdmi_alloc(1, sizeof *made);
    if (!made) {
        tdmi_loader_close(loader);
        return refuse(made, err);
    }
    made->loader = loader;
    *feed = made;
    return TDM_OK;
}

tdm_status tdmi_feed_open_rows(const struct tdmi_feed_rows *rows, tdmi_feed **feed, tdm_error *err)
{
    const size_t batch = (size_t)rows->batch, width = (size_t)rows->width;
    tdmi_feed *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return refuse(made, err);
    made->rows = *rows;
    made->values = tdmi_alloc(batch * width, sizeof *made->values);
    made->labels = tdmi_alloc(batch, sizeof *made->labels);
    made->items = tdmi_alloc(batch, sizeof *made->items);
    if (!made->values || !made->labels || !made->items)
        return refuse(made, err);
    *feed = made;
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
    tdmi_free(feed);
}

tdm_status tdmi_feed_seek(tdmi_feed *feed, uint32_t epoch, int64_t position, tdm_error *err)
{
    feed->ahead.is_asked = false;
    if (feed->loader)
        return tdmi_loader_seek(feed->loader, epoch, position, err);
    feed->epoch = epoch;
    feed->position = position;
    return TDM_OK;
}

/* Why it could not be read is asked only here: an error is large, and rows are many. */
static tdm_status mend(const tdmi_feed *feed, int64_t at, float *values, tdm_error *err)
{
    const struct tdmi_feed_rows *rows = &feed->rows;
    tdm_error why = {0};
    if (tdmi_store_read(*rows->store, at, values, &why) == TDM_OK)
        return TDM_OK;
    return rows->mend(rows->self, *rows->store, at, &why, err);
}

/* The sample at a position, into place p of the batch. */
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
    float *values = feed->values + (size_t)p * (size_t)rows->width;
    feed->items[p] = item;
    for (;;) {
        const int64_t at = tdmi_store_find(*rows->store, row);
        feed->labels[p] = at < 0 ? -1 : tdmi_source_item(rows->source, item).label;
        if (at < 0 || tdmi_store_read(*rows->store, at, values, NULL) == TDM_OK)
            return TDM_OK;
        TDM_TRY(mend(feed, at, values, err), err, "making a feature anew");
    }
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
                                      .items = feed->items};
    for (int p = 0; p < feed->batch.n; p++)
        TDM_TRY(take(feed, p, err), err, "reading features");
    feed->position += feed->batch.n;
    *batch = &feed->batch;
    return TDM_OK;
}

/* A loader shows all batches in one place. */
static tdm_status ask(tdmi_feed *feed, const struct tdmi_batch **batch, tdm_error *err)
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

/* false: no memory for it. */
static bool has_room(struct kept *kept, int n)
{
    if (n <= kept->room)
        return true;
    release(kept);
    kept->labels = tdmi_alloc((size_t)n, sizeof *kept->labels);
    kept->items = tdmi_alloc((size_t)n, sizeof *kept->items);
    kept->problems = tdmi_alloc((size_t)n, sizeof *kept->problems);
    if (!kept->labels || !kept->items || !kept->problems)
        return false;
    kept->room = n;
    return true;
}

/* The last batch goes on pointing to what it says, whoever fills its slot. */
static bool keep(tdmi_feed *feed)
{
    struct tdmi_batch *batch = &feed->shown[feed->last];
    struct kept *kept = &feed->kept;
    const size_t n = (size_t)batch->n;
    if (n == 0)
        return true;
    if (!has_room(kept, batch->n))
        return false;
    memcpy(kept->labels, batch->labels, n * sizeof *kept->labels);
    memcpy(kept->items, batch->items, n * sizeof *kept->items);
    batch->labels = kept->labels;
    batch->items = kept->items;
    if (batch->problems) {
        memcpy(kept->problems, batch->problems, n * sizeof *kept->problems);
        batch->problems = (const char(*)[TDMI_PROBLEM_BYTES])kept->problems;
    }
    batch->keys = NULL; /* nobody asks for them any more */
    return true;
}

const struct tdmi_batch *tdmi_feed_look_ahead(tdmi_feed *feed)
{
    struct ahead *ahead = &feed->ahead;
    if (!ahead->is_asked) {
        if (!keep(feed))
            return NULL; /* it is asked for in its turn */
        tdm_error_clear(&ahead->why);
        ahead->batch = NULL;
        ahead->status = ask(feed, &ahead->batch, &ahead->why);
        ahead->is_asked = true;
    }
    return ahead->status == TDM_OK ? ahead->batch : NULL;
}

tdm_status tdmi_feed_next(tdmi_feed *feed, const struct tdmi_batch **batch, tdm_error *err)
{
    struct ahead *ahead = &feed->ahead;
    if (!ahead->is_asked)
        return ask(feed, batch, err);
    ahead->is_asked = false;
    *batch = ahead->batch;
    if (ahead->status != TDM_OK && err)
        *err = ahead->why;
    return ahead->status;
}

struct tdmi_feed_clock tdmi_feed_clock(const tdmi_feed *feed)
{
    struct tdmi_loader_rates rates = {0};
    if (feed->loader)
        tdmi_loader_rates(feed->loader, &rates);
    return (struct tdmi_feed_clock){rates.seconds, rates.consumer_waits};
}

bool tdmi_feed_skip_at(const tdmi_feed *feed, int64_t index, char *text, size_t text_bytes)
{
    return feed->loader && tdmi_loader_skip_at(feed->loader, index, text, text_bytes);
}
