/*
 * Every way a picture can take through the loader ends in the same bits: raw or encoded, cached or
 * not, augmented, any threads, depth, memory limit and delivery.
 */
#include "unit.h"
#include "sanitized.h"
#include "data/tree.h"
#include "data/virtual_loader.h"

TEST(threads_depth_caches_and_memory_change_no_bit)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    uint64_t hashes[N];
    for (int channels = 1; channels <= 3; channels += 2) {
        for (int raw = 0; raw < 2; raw++) {
            TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(channels, raw);
            virtual_open(&virtual);
            hash_images(&virtual, hashes);
            struct tdmi_loader_options options = options_of(&virtual, &shuffled);
            uint64_t expected = digest(&options);
            for (int threads = 1; threads <= 4; threads++) {
                for (int cache = TDMI_CACHE_NONE; cache <= TDMI_CACHE_DISK; cache++) {
                    options.threads = threads;
                    options.depth = (threads + cache) % 5;
                    options.is_tuned = (threads + cache) % 2;
                    options.memory_bytes = cache % 2 ? 24 << 20 : 0;
                    options.cache = (struct tdmi_loader_cache){
                        .kind = (enum tdmi_cache_kind)cache, .hashes = hashes, .folder = tree.root};
                    assert_int_equal(digest(&options), expected);
                }
            }
        }
    }
}

/* A ring larger than the CPU's caches is written past them. */
TEST(a_ring_beyond_the_caches_holds_the_same_bits)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, false);
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    const uint64_t expected = digest(&options);
    options.depth = 20000;
    for (int cache = TDMI_CACHE_NONE; cache <= TDMI_CACHE_DECODED; cache++) {
        options.cache.kind = (enum tdmi_cache_kind)cache;
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
        const struct tdmi_loader_rates rates = rates_of(loader);
        assert_true(rates.memory_bytes > 64 << 20);
        assert_int_equal(digest_from(loader, &options, 0, 0), expected);
    }
}

TEST(a_restart_anywhere_goes_on_with_the_same_bits)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, false);
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *plain = open_loader(&options);
    options.cache.kind = TDMI_CACHE_DECODED;
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        for (int64_t position = 0; position <= N; position += 24) {
            TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *again = open_loader(&options);
            assert_int_equal(digest_from(plain, &options, epoch, position),
                             digest_from(again, &options, epoch, position));
        }
    }
}

/* The law is the one preprocessing; bf16 is a float's upper half, rounded to nearest. */
TEST(numbers_are_those_of_the_preprocessing)
{
    static const enum tdmi_scale scales[] = {TDMI_SCALE_TF, TDMI_SCALE_TORCH, TDMI_SCALE_UNIT,
                                             TDMI_SCALE_RAW};
    enum { values = SIDE * SIDE * 3 };
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, s % 2);
        virtual_open(&virtual);
        struct tdmi_loader_options options = options_of(&virtual, NULL);
        options.preprocess.scale = scales[s];
        uint8_t pixels[values];
        float floats[values];
        for (int d = TDMI_DELIVER_F32; d <= TDMI_DELIVER_BF16; d++) {
            options.delivery = (enum tdmi_delivery)d;
            TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
            seek(loader, 0, 0);
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
        }
    }
}

TEST(raw_pixels_of_another_shape_take_the_way_of_pictures)
{
    for (int channels = 1; channels <= 3; channels++) {
        for (int wanted = 1; wanted <= 3; wanted += 2) {
            uint64_t digests[2];
            if (channels == 2)
                continue;
            for (int raw = 0; raw < 2; raw++) {
                TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(channels, raw);
                virtual_open(&virtual);
                struct tdmi_loader_options options = options_of(&virtual, &shuffled);
                options.preprocess.width = 9;
                options.preprocess.channels = wanted;
                digests[raw] = digest(&options);
                assert_int_equal(virtual.n_raw_reads > 0, raw);
                assert_int_equal(virtual.n_reads > 0, !raw);
            }
            assert_int_equal(digests[0], digests[1]);
        }
    }
}

TEST(what_is_cached_is_read_once)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (int kind = TDMI_CACHE_ENCODED; kind <= TDMI_CACHE_DISK; kind++) {
        TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, false);
        virtual.damaged_every = 0;
        virtual_open(&virtual);
        uint64_t hashes[N];
        hash_images(&virtual, hashes);
        virtual.n_reads = 0;
        struct tdmi_loader_options options = options_of(&virtual, &shuffled);
        options.cache = (struct tdmi_loader_cache){
            .kind = (enum tdmi_cache_kind)kind, .hashes = hashes, .folder = tree.root};
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
        (void)digest_from(loader, &options, 0, 0);
        assert_int_equal(virtual.n_reads, N);
        const struct tdmi_loader_rates rates = rates_of(loader);
        assert_int_equal(rates.cached, 2 * N);
        assert_int_equal(rates.pictures, 3 * N);
        assert_int_equal(rates.cache, kind);
        assert_true(tdmi_loader_cache_note(loader)[0] != '\0');
    }
}

/* Decoded where it fits; a slow source's files where it does not; nothing for a quick one. */
TEST(the_cache_is_chosen_by_what_fits_and_what_is_slow)
{
    static const struct {
        int side;
        int64_t slow_ns;
        bool is_raw;
        const char *path;
        enum tdmi_cache_kind expected;
    } cases[] = {
        {SIDE, 0, false, NULL, TDMI_CACHE_DECODED},
        {300, is_sanitized ? 100000000 : 10000000, false, NULL, TDMI_CACHE_ENCODED},
        {300, 0, true, NULL, TDMI_CACHE_NONE},
        {300, 0, false, "s3://bucket/virtual", TDMI_CACHE_DISK},
    };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    static const uint64_t hashes[N] = {1};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, cases[c].is_raw);
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
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
        run_epoch(loader, 0);
        const struct tdmi_loader_rates rates = rates_of(loader);
        assert_int_equal(rates.cache, cases[c].expected);
        assert_true(rates.memory_bytes <= options.memory_bytes);
    }
}

/* Changes of pixels come after the cache, parts of pictures before it; draws go by item and epoch,
 * so threads, caches and deliveries see the same ones. */
TEST(augmentation_is_the_same_on_every_way)
{
    static const char *const specs[] = {"flip,crop:2,jitter", "resized-crop,flip"};
    uint64_t plain = 0;
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        for (int channels = 1; channels <= 3; channels += 2) {
            uint64_t expected = 0;
            for (int turn = 0; turn < 8; turn++) {
                TDMI_AT_END(virtual_close)
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
            }
        }
    }
}

/* The loader does what the augmentation's own functions do with item, epoch and repeat. */
TEST(pixels_are_changed_by_item_and_epoch)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, true);
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    assert_int_equal(tdmi_augment_read("flip,crop:2", &options.augment, NULL), TDM_OK);
    options.augment_seed = 12;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    seek(loader, 7, 16);
    const struct tdmi_batch *batch = next(loader);
    enum { bytes = SIDE * SIDE * 3 };
    uint8_t pixels[bytes], spare[bytes];
    for (int i = 0; i < batch->n; i++) {
        if (batch->problems[i][0] != '\0')
            continue;
        virtual_pixels(&virtual, batch->items[i], pixels);
        tdmi_augment_picture(
            &options.augment,
            (struct tdmi_augment_key){.seed = 12, .epoch = 7, .sample = batch->items[i]},
            (struct tdmi_augment_shape){SIDE, SIDE, 3}, pixels, spare);
        assert_memory_equal(batch->pixels + (size_t)i * bytes, pixels, bytes);
    }
}

/* Every picture of the batch at `at` of epoch 7 is the one of its content and of the view wanted.
 */
static void has_views(tdmi_loader *loader, const struct virtual_source *virtual,
                      const struct tdmi_loader_options *options, int64_t at)
{
    enum { bytes = SIDE * SIDE * 3 };
    uint8_t pixels[bytes], spare[bytes];
    seek(loader, 7, at);
    const struct tdmi_batch *batch = next(loader);
    for (int i = 0; i < batch->n; i++) {
        const int64_t sample = tdmi_order_at(options->order, 7, at + i);
        if (batch->problems[i][0] != '\0')
            continue;
        virtual_pixels(virtual, batch->items[i], pixels);
        const struct tdmi_augment_key key = {
            .seed = 12,
            .content = options->cache.hashes[batch->items[i]],
            .view = options->views.given ? options->views.given[sample] : 7 % 3};
        tdmi_augment_picture(&options->augment, key, (struct tdmi_augment_shape){SIDE, SIDE, 3},
                             pixels, spare);
        assert_memory_equal(batch->pixels + (size_t)i * bytes, pixels, bytes);
    }
}

TEST(views_go_by_content)
{
    uint64_t hashes[N];
    uint32_t given[N];
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, true);
    virtual_open(&virtual);
    for (int i = 0; i < N; i++) {
        hashes[i] = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
        given[i] = (uint32_t)i % 5;
    }
    struct tdmi_loader_options options = options_of(&virtual, &shuffled);
    assert_int_equal(tdmi_augment_read("flip,crop:2", &options.augment, NULL), TDM_OK);
    options.augment_seed = 12;
    options.cache.hashes = hashes;
    options.views.n = 3;
    for (int i = 0; i < 2; i++) {
        tdmi_loader *loader = open_loader(&options);
        has_views(loader, &virtual, &options, 16);
        has_views(loader, &virtual, &options, 40);
        tdmi_loader_close(loader);
        options.views.given = given;
    }
}

/* A balanced order draws the same sample several times in a batch; caches must bear that. */
TEST(orders_that_draw_often_work_with_caches)
{
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
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, false);
    virtual.damaged_every = 0;
    virtual_open(&virtual);
    struct tdmi_loader_options options = options_of(&virtual, &balanced);
    tdmi_loader *plain = open_loader(&options);
    uint64_t expected = digest_from(plain, &options, 0, 0);
    const struct tdmi_loader_rates rates = rates_of(plain);
    assert_int_equal(rates.pictures, 3 * 3 * N);
    tdmi_loader_close(plain);
    options.threads = 4;
    options.cache.kind = TDMI_CACHE_DECODED;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *cached = open_loader(&options);
    assert_int_equal(digest_from(cached, &options, 0, 0), expected);
    tdmi_order_release(&balanced);
}

/* With the keys that come with them. */
TEST(changes_that_are_left_are_those_it_would_have_made)
{
    static const struct {
        const char *spec;
        bool has_rest;
        uint32_t views;
    } ways[] = {
        {"none", false, 0},
        {"rotate:20", false, 0},
        {"mixup:0.4", false, 0},
        {"crop:2:9,flip", true, 0},
        {"resized-crop", false, 0},
        {"resized-crop,flip", true, 2},
        {"flip,jitter,cutout:3", true, 3},
        {"crop:1,rotate:30,randaugment,jitter,cutout:2", true, 0},
    };
    TDMI_AT_END(virtual_close) struct virtual_source virtual = source_of(3, false);
    virtual_open(&virtual);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        struct tdmi_loader_options options = options_of(&virtual, &shuffled);
        const struct tdmi_augment_shape shape = {SIDE, SIDE, 3};
        struct tdmi_augment first, rest;
        uint8_t pixels[SIDE * SIDE * 3], spare[SIDE * SIDE * 3];
        assert_int_equal(tdmi_augment_read(ways[k].spec, &options.augment, NULL), TDM_OK);
        assert_int_equal(tdmi_augment_divide(&options.augment, &first, &rest), ways[k].has_rest);
        options.augment_seed = 5;
        options.views.n = ways[k].views;
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *whole = open_loader(&options);
        options.leaves_rest = true;
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *left = open_loader(&options);
        int n_changed = 0;
        seek(whole, 4, 0);
        seek(left, 4, 0);
        for (const struct tdmi_batch *a, *b; (a = next(whole)) != NULL;) {
            b = next(left);
            assert_null(a->keys);
            assert_true((b->keys != NULL) == ways[k].has_rest);
            for (int i = 0; i < a->n; i++) {
                const uint8_t *wanted = a->pixels + (size_t)i * sizeof pixels;
                memcpy(pixels, b->pixels + (size_t)i * sizeof pixels, sizeof pixels);
                assert_int_equal(a->labels[i], b->labels[i]);
                n_changed += memcmp(pixels, wanted, sizeof pixels) != 0;
                if (b->keys != NULL && b->labels[i] >= 0)
                    tdmi_augment_picture(&rest, b->keys[i], shape, pixels, spare);
                assert_memory_equal(pixels, wanted, sizeof pixels);
            }
        }
        assert_true(ways[k].has_rest ? n_changed > N / 4 : n_changed == 0);
    }
}

TEST_MAIN(NULL, NULL)
