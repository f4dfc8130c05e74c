/*
 * Every way a picture can take through the loader ends in the same bits: raw or encoded, cached or
 * not, any threads, depth, memory limit and delivery. And what the ways promise beside: memory,
 * rates, an end when one is asked for.
 */
#include "data/loader.h"

#include "tree.h"
#include "virtual_source.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include <pthread.h>

enum { N = 101, SIDE = 6 };

static struct virtual_source source_of(int channels, bool is_raw)
{
    return (struct virtual_source){
        .n = N, .shape = {SIDE, SIDE, channels}, .is_raw = is_raw, .damaged_every = 37};
}

static struct tdmi_loader_options options_of(const struct virtual_source *virtual,
                                             const tdmi_order *order)
{
    return (struct tdmi_loader_options){
        .source = virtual->source,
        .preprocess = {.width = SIDE,
                       .height = SIDE,
                       .channels = virtual->shape.channels,
                       .fit = TDMI_FIT_STRETCH,
                       .crop_fraction = 1,
                       .scale = TDMI_SCALE_TORCH},
        .order = order,
        .batch = 8,
        .threads = 2,
    };
}

static tdmi_loader *open_loader(const struct tdmi_loader_options *options)
{
    tdm_error err = {0};
    tdmi_loader *loader = NULL;
    if (tdmi_loader_open(options, &loader, &err) != TDM_OK)
        fail_msg("%s", err.frames[0].text);
    return loader;
}

static const struct tdmi_batch *next(tdmi_loader *loader)
{
    tdm_error err = {0};
    const struct tdmi_batch *batch = NULL;
    if (tdmi_loader_next(loader, &batch, &err) != TDM_OK)
        fail_msg("%s", err.frames[0].text);
    return batch;
}

static size_t value_bytes(const struct tdmi_loader_options *o)
{
    static const size_t bytes[] = {1, 4, 2};
    return (size_t)o->preprocess.width * (size_t)o->preprocess.height *
           (size_t)o->preprocess.channels * bytes[o->delivery];
}

/* Everything that is handed out from (epoch, position) to the end of epoch 2, in one number. */
static uint64_t digest_from(tdmi_loader *loader, const struct tdmi_loader_options *options,
                            uint32_t epoch, int64_t position)
{
    tdmi_xxh64 hash;
    tdm_error err = {0};
    tdmi_xxh64_init(&hash, 0);
    for (; epoch < 3; epoch++, position = 0) {
        assert_int_equal(tdmi_loader_seek(loader, epoch, position, &err), TDM_OK);
        for (const struct tdmi_batch *b; (b = next(loader)) != NULL;) {
            size_t n = (size_t)b->n;
            tdmi_xxh64_add(&hash, b->values, n * value_bytes(options));
            tdmi_xxh64_add(&hash, b->labels, n * sizeof *b->labels);
            tdmi_xxh64_add(&hash, b->items, n * sizeof *b->items);
            for (size_t i = 0; i < n; i++)
                tdmi_xxh64_add(&hash, b->problems[i], strlen(b->problems[i]));
        }
    }
    return tdmi_xxh64_result(&hash);
}

static uint64_t digest(const struct tdmi_loader_options *options)
{
    tdmi_loader *loader = open_loader(options);
    uint64_t value = digest_from(loader, options, 0, 0);
    assert_int_equal(tdmi_loader_skipped(loader), 3);
    tdmi_loader_close(loader);
    return value;
}

static const tdmi_order shuffled = {.seed = 3, .n = N, .is_shuffled = true};

static void threads_depth_caches_and_memory_change_no_bit(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    uint64_t hashes[N];
    for (int channels = 1; channels <= 3; channels += 2) {
        for (int raw = 0; raw < 2; raw++) {
            struct virtual_source virtual = source_of(channels, raw);
            virtual_open(&virtual);
            tdmi_text bytes = {0};
            for (int64_t i = 0; i < N; i++)
                hashes[i] = tdmi_source_read(virtual.source, i, &bytes, NULL) == TDM_OK
                                ? tdmi_xxh64_of(bytes.bytes, bytes.length_bytes, 0)
                                : 0;
            tdmi_text_release(&bytes);
            struct tdmi_loader_options options = options_of(&virtual, &shuffled);
            uint64_t expected = digest(&options);
            for (int threads = 1; threads <= 4; threads++) {
                for (int cache = TDMI_CACHE_NONE; cache <= TDMI_CACHE_DISK; cache++) {
                    options.threads = threads;
                    options.depth = (threads + cache) % 5;
                    options.is_tuned = (threads + cache) % 2;
                    options.memory_bytes = cache % 2 ? 24 << 20 : 0;
                    options.cache = (struct tdmi_loader_cache){
                        .kind = cache, .hashes = hashes, .folder = tree.root};
                    assert_int_equal(digest(&options), expected);
                }
            }
            tdmi_source_close(virtual.source);
        }
    }
    tree_free(&tree);
}

static void a_restart_anywhere_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    struct virtual_source virtual = source_of(3, false);
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    tdmi_loader *plain = open_loader(&options);
    options.cache.kind = TDMI_CACHE_DECODED;
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        for (int64_t position = 0; position <= N; position += 24) {
            tdmi_loader *again = open_loader(&options);
            assert_int_equal(digest_from(plain, &options, epoch, position),
                             digest_from(again, &options, epoch, position));
            tdmi_loader_close(again);
        }
    }
    tdmi_loader_close(plain);
    tdmi_source_close(virtual.source);
}

/* The law is the one preprocessing; bf16 is a float's upper half, rounded to nearest. */
static void numbers_are_those_of_the_preprocessing(void **state)
{
    (void)state;
    static const enum tdmi_scale scales[] = {TDMI_SCALE_TF, TDMI_SCALE_TORCH, TDMI_SCALE_UNIT,
                                             TDMI_SCALE_RAW};
    enum { values = SIDE * SIDE * 3 };
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        struct virtual_source virtual = source_of(3, s % 2);
        virtual_open(&virtual);
        struct tdmi_loader_options options = options_of(&virtual, NULL);
        options.preprocess.scale = scales[s];
        uint8_t pixels[values];
        float floats[values];
        for (int d = TDMI_DELIVER_F32; d <= TDMI_DELIVER_BF16; d++) {
            options.delivery = (enum tdmi_delivery)d;
            tdmi_loader *loader = open_loader(&options);
            assert_int_equal(tdmi_loader_seek(loader, 0, 0, NULL), TDM_OK);
            const struct tdmi_batch *batch = next(loader);
            assert_null(batch->pixels);
            virtual_pixels(&virtual, 1, pixels);
            tdmi_preprocess_normalise(&options.preprocess, pixels, values / 3, floats);
            for (int i = 0; i < values; i++) {
                if (d == TDMI_DELIVER_F32) {
                    assert_memory_equal((const float *)batch->values + values + i, &floats[i], 4);
                    assert_true(((const float *)batch->values)[i] == 0.0f); /* item 0: damaged */
                    continue;
                }
                uint32_t bits = (uint32_t)((const uint16_t *)batch->values)[values + i] << 16;
                float half;
                memcpy(&half, &bits, 4);
                float away = half > floats[i] ? half - floats[i] : floats[i] - half;
                float size = floats[i] < 0 ? -floats[i] : floats[i];
                assert_true(away <= size / 256);
            }
            tdmi_loader_close(loader);
        }
        tdmi_source_close(virtual.source);
    }
}

static void raw_pixels_of_another_shape_take_the_way_of_pictures(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 3; channels++) {
        for (int wanted = 1; wanted <= 3; wanted += 2) {
            uint64_t digests[2];
            if (channels == 2)
                continue;
            for (int raw = 0; raw < 2; raw++) {
                struct virtual_source virtual = source_of(channels, raw);
                virtual_open(&virtual);
                struct tdmi_loader_options options = options_of(&virtual, &shuffled);
                options.preprocess.width = 9;
                options.preprocess.channels = wanted;
                digests[raw] = digest(&options);
                assert_int_equal(virtual.n_raw_reads > 0, raw);
                assert_int_equal(virtual.n_reads > 0, !raw);
                tdmi_source_close(virtual.source);
            }
            assert_int_equal(digests[0], digests[1]);
        }
    }
}

static void what_is_cached_is_read_once(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    for (int kind = TDMI_CACHE_ENCODED; kind <= TDMI_CACHE_DISK; kind++) {
        struct virtual_source virtual = source_of(3, false);
        virtual.damaged_every = 0;
        virtual_open(&virtual);
        uint64_t hashes[N];
        tdmi_text bytes = {0};
        for (int64_t i = 0; i < N; i++) {
            assert_int_equal(tdmi_source_read(virtual.source, i, &bytes, NULL), TDM_OK);
            hashes[i] = tdmi_xxh64_of(bytes.bytes, bytes.length_bytes, 0);
        }
        tdmi_text_release(&bytes);
        virtual.n_reads = 0;
        struct tdmi_loader_options options = options_of(&virtual, &shuffled);
        options.cache = (struct tdmi_loader_cache){
            .kind = (enum tdmi_cache_kind)kind, .hashes = hashes, .folder = tree.root};
        tdmi_loader *loader = open_loader(&options);
        (void)digest_from(loader, &options, 0, 0);
        assert_int_equal(virtual.n_reads, N);
        struct tdmi_loader_rates rates;
        tdmi_loader_rates(loader, &rates);
        assert_int_equal(rates.cached, 2 * N);
        assert_int_equal(rates.pictures, 3 * N);
        assert_int_equal(rates.cache, kind);
        assert_true(tdmi_loader_cache_note(loader)[0] != '\0');
        tdmi_loader_close(loader);
        tdmi_source_close(virtual.source);
    }
    tree_free(&tree);
}

/* Decoded where it fits; a slow source's files where it does not; nothing for a quick one. */
static void the_cache_is_chosen_by_what_fits_and_what_is_slow(void **state)
{
    (void)state;
    static const struct {
        int side;
        int64_t slow_ns;
        bool is_raw;
        const char *path;
        enum tdmi_cache_kind expected;
    } cases[] = {
        {SIDE, 0, false, NULL, TDMI_CACHE_DECODED},
        {300, 10000000, false, NULL, TDMI_CACHE_ENCODED},
        {300, 0, true, NULL, TDMI_CACHE_NONE},
        {300, 0, false, "s3://bucket/virtual", TDMI_CACHE_DISK},
    };
    struct tree tree = tree_new();
    static const uint64_t hashes[N] = {1};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct virtual_source virtual = source_of(3, cases[c].is_raw);
        virtual.shape.width = virtual.shape.height = cases[c].side;
        virtual.slow_ns = cases[c].slow_ns;
        virtual.path = cases[c].path;
        virtual_open(&virtual);
        struct tdmi_loader_options options = options_of(&virtual, &shuffled);
        options.preprocess.width = options.preprocess.height = cases[c].side;
        options.threads = 2;
        options.memory_bytes = 32 << 20;
        options.cache.kind = TDMI_CACHE_AUTO;
        if (cases[c].path != NULL)
            options.cache = (struct tdmi_loader_cache){TDMI_CACHE_AUTO, hashes, tree.root, 1 << 20};
        tdmi_loader *loader = open_loader(&options);
        assert_int_equal(tdmi_loader_seek(loader, 0, 0, NULL), TDM_OK);
        while (next(loader) != NULL)
            ;
        struct tdmi_loader_rates rates;
        tdmi_loader_rates(loader, &rates);
        assert_int_equal(rates.cache, cases[c].expected);
        assert_true(rates.memory_bytes <= options.memory_bytes);
        tdmi_loader_close(loader);
        tdmi_source_close(virtual.source);
    }
    tree_free(&tree);
}

/* Changes of pixels come after the cache, parts of pictures before it; draws go by item and epoch,
 * so threads, caches and deliveries see the same ones. */
static void augmentation_is_the_same_on_every_way(void **state)
{
    (void)state;
    static const char *const specs[] = {"flip,crop:2,jitter", "resized-crop,flip"};
    uint64_t plain = 0;
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        for (int channels = 1; channels <= 3; channels += 2) {
            uint64_t expected = 0;
            for (int turn = 0; turn < 8; turn++) {
                struct virtual_source virtual = source_of(channels, turn % 2);
                virtual.shape.width = 11;
                virtual_open(&virtual);
                struct tdmi_loader_options options = options_of(&virtual, &shuffled);
                plain = digest(&options);
                assert_int_equal(tdmi_augment_read(specs[s], &options.augment, NULL), TDM_OK);
                options.augment_seed = 4;
                options.threads = 1 + turn % 4;
                options.cache.kind = (enum tdmi_cache_kind)(turn % TDMI_CACHE_DISK);
                uint64_t value = digest(&options);
                expected = turn == 0 ? value : expected;
                assert_int_equal(value, expected);
                assert_int_not_equal(value, plain);
                tdmi_source_close(virtual.source);
            }
        }
    }
}

/* The loader does what the augmentation's own functions do with item, epoch and repeat. */
static void pixels_are_changed_by_item_and_epoch(void **state)
{
    (void)state;
    struct virtual_source virtual = source_of(3, true);
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    assert_int_equal(tdmi_augment_read("flip,crop:2", &options.augment, NULL), TDM_OK);
    options.augment_seed = 12;
    tdmi_loader *loader = open_loader(&options);
    assert_int_equal(tdmi_loader_seek(loader, 7, 16, NULL), TDM_OK);
    const struct tdmi_batch *batch = next(loader);
    enum { bytes = SIDE * SIDE * 3 };
    uint8_t pixels[bytes], spare[bytes];
    for (int i = 0; i < batch->n; i++) {
        if (batch->problems[i][0] != '\0')
            continue;
        virtual_pixels(&virtual, batch->items[i], pixels);
        tdmi_augment_picture(&options.augment, (struct tdmi_augment_key){12, 7, batch->items[i], 0},
                             (struct tdmi_augment_shape){SIDE, SIDE, 3}, pixels, spare);
        assert_memory_equal(batch->pixels + (size_t)i * bytes, pixels, bytes);
    }
    tdmi_loader_close(loader);
    tdmi_source_close(virtual.source);
}

/* A balanced order draws the same sample several times in a batch; caches must bear that. */
static void orders_that_draw_often_work_with_caches(void **state)
{
    (void)state;
    int labels[N];
    for (int i = 0; i < N; i++)
        labels[i] = i > 1;
    tdmi_order balanced = {0};
    tdm_error err = {0};
    assert_int_equal(
        tdmi_order_init_balanced(
            &balanced,
            &(struct tdmi_order_balanced){
                .seed = 9, .labels = labels, .n_samples = N, .n_classes = 2, .n_draws = 3 * N},
            &err),
        TDM_OK);
    struct virtual_source virtual = source_of(3, false);
    virtual.damaged_every = 0;
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &balanced);
    tdmi_loader *plain = open_loader(&options);
    uint64_t expected = digest_from(plain, &options, 0, 0);
    struct tdmi_loader_rates rates;
    tdmi_loader_rates(plain, &rates);
    assert_int_equal(rates.pictures, 3 * 3 * N);
    tdmi_loader_close(plain);
    options.threads = 4;
    options.cache.kind = TDMI_CACHE_DECODED;
    tdmi_loader *cached = open_loader(&options);
    assert_int_equal(digest_from(cached, &options, 0, 0), expected);
    tdmi_loader_close(cached);
    tdmi_order_release(&balanced);
    tdmi_source_close(virtual.source);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void a_memory_limit_is_kept_or_refused_with_what_is_needed(void **state)
{
    (void)state;
    struct virtual_source virtual = source_of(3, false);
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    options.threads = 8;
    options.depth = 16;
    options.memory_bytes = 1 << 20;
    tdm_error err = {0};
    tdmi_loader *loader = NULL;
    assert_int_equal(tdmi_loader_open(&options, &loader, &err), TDM_E_USAGE);
    long long needed = 0;
    const char *text = strchr(err.frames[0].text, ';');
    assert_non_null(text);
    assert_int_equal(sscanf(text, "; %lld bytes", &needed), 1);
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
    tdmi_source_close(virtual.source);
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

static void the_ring_lies_where_the_caller_wants(void **state)
{
    (void)state;
    struct virtual_source virtual = source_of(3, true);
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
    tdmi_source_close(virtual.source);
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

static void memory_is_flat_over_twenty_epochs(void **state)
{
    (void)state;
    struct virtual_source virtual = source_of(3, false);
    virtual.n = 150;
    virtual.shape.width = virtual.shape.height = 64;
    virtual_open(&virtual);
    tdmi_order order = {.seed = 1, .n = virtual.n, .is_shuffled = true};
    for (int cache = TDMI_CACHE_NONE; cache <= TDMI_CACHE_DECODED; cache++) {
        struct tdmi_loader_options options = options_of(&virtual, &order);
        options.preprocess.width = options.preprocess.height = 48;
        options.cache.kind = (enum tdmi_cache_kind)cache;
        options.threads = 2;
        tdmi_loader *loader = open_loader(&options);
        double first = 0;
        for (uint32_t epoch = 0; epoch < 20; epoch++) {
            assert_int_equal(tdmi_loader_seek(loader, epoch, 0, NULL), TDM_OK);
            while (next(loader) != NULL)
                ;
            if (epoch == 0)
                first = resident();
        }
        assert_true(resident() < 1.02 * first + 64);
        tdmi_loader_close(loader);
    }
    tdmi_source_close(virtual.source);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void resuming_late_in_a_long_epoch_takes_no_time(void **state)
{
    (void)state;
    struct virtual_source virtual = source_of(3, true);
    virtual.n = 10000000;
    virtual.damaged_every = 0;
    virtual_open(&virtual);
    tdmi_order order = {.seed = 8, .n = virtual.n, .is_shuffled = true};
    struct tdmi_loader_options options = options_of(&virtual, &order);
    options.batch = 64;
    double best = 1e9;
    for (int turn = 0; turn < 5; turn++) {
        int64_t start = tdmi_clock_ns();
        tdmi_loader *loader = open_loader(&options);
        assert_int_equal(tdmi_loader_seek(loader, 4, 9000000, NULL), TDM_OK);
        const struct tdmi_batch *batch = next(loader);
        double seconds = tdmi_clock_seconds_since(start);
        best = seconds < best ? seconds : best;
        assert_int_equal(batch->first, 9000000);
        assert_int_equal(batch->items[5], tdmi_order_at(&order, 4, 9000005));
        tdmi_loader_close(loader);
    }
    print_message("open, seek and first batch: %.3f ms\n", 1e3 * best);
    assert_true(best < 0.050);
    tdmi_source_close(virtual.source);
}

static void *stop_soon(void *is_stuck)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    tdm_stop_request();
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    atomic_store((atomic_bool *)is_stuck, false);
    return NULL;
}

static void a_stop_ends_the_wait_and_nothing_is_lost(void **state)
{
    (void)state;
    atomic_bool is_stuck = true;
    struct virtual_source virtual = source_of(3, true);
    virtual.is_stuck = &is_stuck;
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    tdmi_loader *loader = open_loader(&options);
    assert_int_equal(tdmi_loader_seek(loader, 0, 0, NULL), TDM_OK);
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
    tdmi_loader_close(loader);
    tdmi_source_close(virtual.source);
}

/* A source that sleeps 1 ms a picture keeps a hungry caller waiting until many threads read. */
static void a_hungry_caller_gets_more_threads(void **state)
{
    (void)state;
    struct virtual_source virtual = source_of(3, true);
    virtual.n = 100000;
    virtual.damaged_every = 0;
    virtual.slow_ns = 1000000;
    virtual_open(&virtual);
    tdmi_order order = {.seed = 8, .n = virtual.n, .is_shuffled = true};
    struct tdmi_loader_options options = options_of(&virtual, &order);
    options.threads = 3;
    options.is_tuned = true;
    tdmi_loader *loader = open_loader(&options);
    struct tdmi_loader_rates rates;
    tdmi_loader_rates(loader, &rates);
    assert_int_equal(rates.threads, 1);
    assert_int_equal(tdmi_loader_seek(loader, 0, 0, NULL), TDM_OK);
    int64_t start = tdmi_clock_ns();
    while (rates.threads < 3 && tdmi_clock_seconds_since(start) < 20) {
        assert_non_null(next(loader));
        tdmi_loader_rates(loader, &rates);
    }
    assert_int_equal(rates.threads, 3);
    assert_true(rates.consumer_waits > 0 && rates.seconds >= rates.consumer_waits);
    assert_true(rates.ceiling_per_second > 0);
    assert_true(rates.read.pictures >= rates.pictures);
    tdmi_loader_close(loader);
    tdmi_source_close(virtual.source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_depth_caches_and_memory_change_no_bit),
        cmocka_unit_test(a_restart_anywhere_goes_on_with_the_same_bits),
        cmocka_unit_test(numbers_are_those_of_the_preprocessing),
        cmocka_unit_test(raw_pixels_of_another_shape_take_the_way_of_pictures),
        cmocka_unit_test(what_is_cached_is_read_once),
        cmocka_unit_test(the_cache_is_chosen_by_what_fits_and_what_is_slow),
        cmocka_unit_test(augmentation_is_the_same_on_every_way),
        cmocka_unit_test(pixels_are_changed_by_item_and_epoch),
        cmocka_unit_test(orders_that_draw_often_work_with_caches),
        cmocka_unit_test(a_memory_limit_is_kept_or_refused_with_what_is_needed),
        cmocka_unit_test(the_ring_lies_where_the_caller_wants),
        cmocka_unit_test(memory_is_flat_over_twenty_epochs),
        cmocka_unit_test(resuming_late_in_a_long_epoch_takes_no_time),
        cmocka_unit_test(a_stop_ends_the_wait_and_nothing_is_lost),
        cmocka_unit_test(a_hungry_caller_gets_more_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
