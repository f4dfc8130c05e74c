/*
 * Looking ahead changes nothing about what a feed hands out: the batches, what they point to, where
 * the feed stands after a seek, and when a failure is told.
 */
#include "data/virtual_loader.h"
#include "train/step/feed.h"
#include "unit.h"

static tdmi_feed *open_feed(const struct virtual_source *virtual, int depth)
{
    struct tdmi_loader_options options = options_of(virtual, &shuffled);
    tdmi_feed *feed;
    options.depth = depth;
    options.threads = 3;
    assert_int_equal(tdmi_feed_open_pictures(open_loader(&options), &feed, NULL), TDM_OK);
    return feed;
}

/* All of a batch but its pictures. */
static uint64_t told_by(const struct tdmi_batch *batch)
{
    tdmi_xxh64 hash;
    const size_t n = (size_t)batch->n;
    tdmi_xxh64_init(&hash, (uint64_t)batch->first);
    tdmi_xxh64_add(&hash, batch->labels, n * sizeof *batch->labels);
    tdmi_xxh64_add(&hash, batch->items, n * sizeof *batch->items);
    for (size_t i = 0; i < n; i++)
        tdmi_xxh64_add(&hash, batch->problems[i], strlen(batch->problems[i]) + 1);
    return tdmi_xxh64_result(&hash);
}

static uint64_t pictures_of(const struct tdmi_batch *batch)
{
    return tdmi_xxh64_of(batch->pixels, (size_t)batch->n * SIDE * SIDE * 3, 0);
}

TEST(who_looks_ahead_is_handed_the_same_batches)
{
    struct virtual_source virtual = source_of(3, false);
    virtual_open(&virtual);
    for (int depth = 1; depth <= 3; depth++) {
        tdmi_feed *plain = open_feed(&virtual, depth), *ahead = open_feed(&virtual, depth);
        for (uint32_t epoch = 0; epoch < 2; epoch++) {
            const struct tdmi_batch *a, *b;
            assert_int_equal(tdmi_feed_seek(plain, epoch, 16, NULL), TDM_OK);
            assert_int_equal(tdmi_feed_seek(ahead, epoch, 16, NULL), TDM_OK);
            for (int k = 0;; k++) {
                assert_int_equal(tdmi_feed_next(plain, &a, NULL), TDM_OK);
                assert_int_equal(tdmi_feed_next(ahead, &b, NULL), TDM_OK);
                assert_true((a != NULL) == (b != NULL));
                if (a == NULL)
                    break;
                assert_int_equal(a->first, b->first);
                assert_int_equal(a->n, b->n);
                assert_true(pictures_of(a) == pictures_of(b));
                if (k % 4 == 3) /* not always */
                    continue;
                const uint64_t told = told_by(a);
                const struct tdmi_batch *next = tdmi_feed_look_ahead(ahead);
                assert_true(next == tdmi_feed_look_ahead(ahead)); /* asked once */
                assert_true((next != NULL) == (b->first + b->n < N));
                assert_true(told_by(b) == told);
                assert_true(next == NULL || next->first == b->first + b->n);
            }
        }
        tdmi_feed_close(plain);
        tdmi_feed_close(ahead);
    }
    tdmi_source_close(virtual.source);
}

/* A requested batch belongs to the position before the seek. */
TEST(a_seek_drops_the_requested_batch)
{
    const struct tdmi_batch *batch;
    struct virtual_source virtual = source_of(3, false);
    virtual_open(&virtual);
    tdmi_feed *feed = open_feed(&virtual, 2);
    assert_int_equal(tdmi_feed_seek(feed, 0, 0, NULL), TDM_OK);
    assert_int_equal(tdmi_feed_next(feed, &batch, NULL), TDM_OK);
    assert_non_null(tdmi_feed_look_ahead(feed));
    assert_int_equal(tdmi_feed_seek(feed, 1, 40, NULL), TDM_OK);
    assert_int_equal(tdmi_feed_next(feed, &batch, NULL), TDM_OK);
    assert_int_equal(batch->first, 40);
    tdmi_feed_close(feed);
    tdmi_source_close(virtual.source);
}

TEST(a_failure_ahead_is_told_in_its_turn)
{
    const struct tdmi_batch *batch;
    tdm_error err = {0};
    struct virtual_source virtual = source_of(3, false);
    virtual_open(&virtual);
    tdmi_feed *feed = open_feed(&virtual, 1);
    assert_int_equal(tdmi_feed_seek(feed, 0, 0, NULL), TDM_OK);
    assert_int_equal(tdmi_feed_next(feed, &batch, NULL), TDM_OK);
    const uint64_t told = told_by(batch);
    atomic_store(&virtual.n_lost, 1000);
    assert_null(tdmi_feed_look_ahead(feed));
    assert_true(told_by(batch) == told);
    assert_int_equal(tdmi_feed_next(feed, &batch, &err), TDM_E_SYSTEM);
    assert_null(batch);
    assert_true(err.n_frames > 0 && strstr(tdm_error_sentence(&err, 0), "is away") != NULL);
    tdmi_feed_close(feed);
    tdmi_source_close(virtual.source);
}

TEST_MAIN(NULL, NULL)
