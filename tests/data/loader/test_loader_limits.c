/*
 * Promises of the loader beside bits: the memory limit holds, memory stays flat, a late resume
 * takes no time, loading ends on request or when the data set changes, a waiting caller gets
 * threads.
 */
#include "unit.h"
#include "data/audit/contents.h"
#include "data/virtual_loader.h"

#include "base/clock.h"
#include "base/memory.h"
#include <pthread.h>
#include <unistd.h>

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(a_memory_limit_is_kept_or_refused_with_what_is_needed)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, false);
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    options.threads = 8;
    options.depth = 16;
    options.memory_bytes = 1 << 20;
    tdm_error err = {0};
    tdmi_loader *loader = NULL;
    assert_int_equal(tdmi_loader_open(&options, &loader, &err), TDM_E_USAGE);
    long long needed = 0;
    const char *text = strchr(tdm_error_sentence(&err, 0), ';');
    assert_non_null(text);
    assert_int_equal(sscanf(text, "; give %lld bytes", &needed), 1);
    err = (tdm_error){0};
    for (int64_t limit = needed; limit < 20 * needed; limit += needed) {
        struct tdmi_loader_rates rates;
        options.memory_bytes = limit;
        options.cache.kind = TDMI_CACHE_ENCODED;
        loader = open_loader(&options);
        tdmi_loader_rates(loader, &rates);
        assert_true(rates.memory_bytes <= limit && rates.memory_bytes > 0);
        assert_true(rates.n_slots >= 1 && rates.most_threads >= 1);
        assert_true(limit > needed || rates.most_threads == 1);
        (void)digest_from(loader, &options, 2, 0);
        tdmi_loader_close(loader);
    }
    options.memory_bytes = needed - 1;
    assert_int_equal(tdmi_loader_open(&options, &loader, NULL), TDM_E_USAGE);
    /* The error names the whole limit that would do, not that of a part. */
    char words[40];
    options.memory_parts = 4;
    assert_int_equal(tdmi_loader_open(&options, &loader, &err), TDM_E_USAGE);
    snprintf(words, sizeof words, "; use --memory %lldM,", (4 * needed + (1 << 20) - 1) >> 20);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), words));
}

/* Pictures beyond a thread's share are decoded one at a time; beyond the limit they are an error,
 * not a picture left out. */
TEST(large_pictures_keep_to_the_limit)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, false);
    virtual.n = 6;
    virtual.damaged_every = 0;
    virtual.shape.width = virtual.shape.height = 1600; /* 7.3 MiB */
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, NULL);
    options.preprocess.width = options.preprocess.height = SIDE;
    uint64_t digests[2];
    for (int limited = 0; limited < 2; limited++) {
        options.memory_bytes = limited ? 32 << 20 : 0;
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
        digests[limited] = digest_from(loader, &options, 2, 0);
        const struct tdmi_loader_rates rates = rates_of(loader);
        assert_true(!limited || rates.memory_bytes <= options.memory_bytes);
    }
    assert_int_equal(digests[0], digests[1]);
    options.memory_bytes = 16 << 20;
    tdm_error err = {0};
    const struct tdmi_batch *batch = NULL;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    assert_int_equal(tdmi_loader_seek(loader, 0, 0, &err), TDM_OK);
    assert_int_equal(tdmi_loader_next(loader, &batch, &err), TDM_E_MEMORY);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "the memory limit leaves"));
}

struct counted {
    int n_alloc, n_free, fail_at;
};

static void *counted_alloc(void *self, size_t bytes)
{
    struct counted *counted = self;
    return ++counted->n_alloc == counted->fail_at ? NULL : tdmi_alloc_aligned(bytes);
}

static void counted_free(void *self, void *block)
{
    ((struct counted *)self)->n_free++;
    tdmi_free(block);
}

TEST(the_ring_lies_where_the_caller_wants)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, true);
    virtual_open(&virtual);
    for (int fail_at = 0; fail_at <= 5; fail_at++) {
        struct counted counted = {.fail_at = fail_at};
        struct tdmi_loader_options options = options_of(&virtual, &shuffled);
        options.depth = 5;
        options.allocator = (struct tdmi_loader_allocator){counted_alloc, counted_free, &counted};
        tdm_error err = {0};
        tdmi_loader *loader = NULL;
        tdm_status status = tdmi_loader_open(&options, &loader, &err);
        assert_int_equal(status, fail_at > 0 ? TDM_E_MEMORY : TDM_OK);
        if (status == TDM_OK)
            (void)digest_from(loader, &options, 1, 0);
        tdmi_loader_close(loader);
        assert_int_equal(counted.n_alloc, fail_at > 0 ? fail_at : 5);
        assert_int_equal(counted.n_free, fail_at > 0 ? fail_at - 1 : 5);
    }
}

/* Resident kilobytes of this process. */
static double resident(void)
{
    long total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &total, &pages), 2);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

TEST(memory_is_flat_over_twenty_epochs)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, false);
    virtual.n = 150;
    virtual.shape.width = virtual.shape.height = 64;
    virtual_open(&virtual);
    tdmi_order order = {.seed = 1, .n = virtual.n, .is_shuffled = true};
    for (int cache = TDMI_CACHE_NONE; cache <= TDMI_CACHE_DECODED; cache++) {
        struct tdmi_loader_options options = options_of(&virtual, &order);
        options.preprocess.width = options.preprocess.height = 48;
        options.cache.kind = (enum tdmi_cache_kind)cache;
        options.threads = 2;
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
        double first = 0;
        for (uint32_t epoch = 0; epoch < 20; epoch++) {
            run_epoch(loader, epoch);
            if (epoch == 0)
                first = resident();
        }
        assert_true(resident() < 1.02 * first + 64);
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

TEST(resuming_late_in_a_long_epoch_takes_no_time)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, true);
    virtual.n = 10000000;
    virtual.damaged_every = 0;
    virtual_open(&virtual);
    tdmi_order order = {.seed = 8, .n = virtual.n, .is_shuffled = true};
    struct tdmi_loader_options options = options_of(&virtual, &order);
    options.batch = 64;
    double best = 1e9;
    for (int turn = 0; turn < 5; turn++) {
        int64_t start = tdmi_clock_ns();
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
        seek(loader, 4, 9000000);
        const struct tdmi_batch *batch = next(loader);
        double seconds = tdmi_clock_seconds_since(start);
        best = seconds < best ? seconds : best;
        assert_int_equal(batch->first, 9000000);
        assert_int_equal(batch->items[5], tdmi_order_at(&order, 4, 9000005));
    }
    print_message("open, seek and first batch: %.3f ms\n", 1e3 * best);
    assert_true(best < 0.050);
}

static void *stop_soon(void *is_stuck)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    tdm_stop_request();
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    atomic_store((atomic_bool *)is_stuck, false);
    return NULL;
}

TEST(a_stop_ends_the_wait_and_nothing_is_lost)
{
    atomic_bool is_stuck = true;
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, true);
    virtual.is_stuck = &is_stuck;
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    seek(loader, 0, 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, &is_stuck), 0);
    tdm_error err = {0};
    const struct tdmi_batch *batch = NULL;
    assert_int_equal(tdmi_loader_next(loader, &batch, &err), TDM_E_STOPPED);
    assert_null(batch);
    assert_true(atomic_load(&is_stuck)); /* the wait ended before the read did */
    pthread_join(thread, NULL);
    tdm_stop_clear();
    assert_int_equal(next(loader)->first, 0);
    assert_int_equal(next(loader)->first, 8);
}

/* A source that sleeps 1 ms a picture keeps a hungry caller waiting until many threads read. */
TEST(a_hungry_caller_gets_more_threads)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, true);
    virtual.n = 100000;
    virtual.damaged_every = 0;
    virtual.slow_ns = 1000000;
    virtual_open(&virtual);
    tdmi_order order = {.seed = 8, .n = virtual.n, .is_shuffled = true};
    struct tdmi_loader_options options = options_of(&virtual, &order);
    options.threads = 3;
    options.is_tuned = true;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    struct tdmi_loader_rates rates = rates_of(loader);
    assert_int_equal(rates.threads, 1);
    seek(loader, 0, 0);
    int64_t start = tdmi_clock_ns();
    while (rates.threads < 3 && tdmi_clock_seconds_since(start) < 20) {
        assert_non_null(next(loader));
        tdmi_loader_rates(loader, &rates);
    }
    assert_int_equal(rates.threads, 3);
    assert_true(rates.consumer_waits > 0 && rates.seconds >= rates.consumer_waits);
    assert_true(rates.ceiling_per_second > 0);
    assert_true(rates.read.pictures >= rates.pictures);
}

/* ---- a data set that changes --------------------------------------------------------------------
 */

static tdm_status read_all(const struct tdmi_loader_options *options, tdm_error *err)
{
    const struct tdmi_batch *batch = NULL;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(options);
    seek(loader, 0, 0);
    do
        TDMI_TRY(tdmi_loader_next(loader, &batch, err));
    while (batch != NULL);
    return TDM_OK;
}

static void ends_with(const struct tdmi_loader_options *options, const char *says)
{
    tdm_error err = {0};
    assert_int_equal(read_all(options, &err), TDM_E_INPUT);
    assert_says(&err, "cannot load 'virtual'");
    assert_says(&err, says);
}

TEST(a_picture_that_is_not_what_it_was_ends_the_reading)
{
    uint64_t contents[N];
    for (int raw = 0; raw < 2; raw++) {
        TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, raw);
        virtual_open(&virtual);
        hash_images(&virtual, contents);
        struct tdmi_loader_options options = options_of(&virtual, &shuffled);
        const uint64_t expected = digest(&options);
        options.contents = contents;
        assert_int_equal(digest(&options), expected); /* what was unreadable before may be so */
        virtual.damaged_every = 9;
        ends_with(&options, "it could be read before, and cannot any more");
        options.contents = NULL;
        assert_int_equal(read_all(&options, NULL), TDM_OK); /* 12 problems of pictures */
        virtual.damaged_every = 37;
        options.contents = contents;
        contents[50]++;
        if (!raw) /* pixels come as they are and have no bytes that were looked at */
            ends_with(&options, "it holds other bytes than when it was read before");
    }
}

TEST_MAIN(NULL, NULL)
