/*
 * The loader: every sample once an epoch in one order whatever the threads, any place to begin,
 * pictures that cannot be read named and never fatal. Every test picture shows its own number, so
 * pixels tell which one they are.
 */
#include "unit.h"
#include "data/loaders.h"

#include "data/tree.h"
#include "base/memory.h"
#include "tandem/log.h"
#include <pthread.h>

enum { N_PICTURES = 53, SIDE = 4 };

struct fixture {
    struct tree tree;
    tdmi_source *source;
    tdmi_order shuffled;
    int64_t items[N_PICTURES];
};

/* Pictures 10 and 40 are damaged: text under a picture's name, and an empty file. */
static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->tree = tree_new();
    f->shuffled = (tdmi_order){.seed = 5, .n = N_PICTURES, .is_shuffled = true};
    for (uint32_t i = 0; i < N_PICTURES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%c/%03u.ppm", i < 20 ? 'a' : 'b', i);
        if (i == 10)
            tree_text(&f->tree, name, "these are words");
        else if (i == 40)
            tree_text(&f->tree, name, "");
        else
            tree_picture(&f->tree, name, i * 1001);
        f->items[i] = i;
    }
    tdm_error err = {0};
    assert_int_equal(tdmi_source_open(f->tree.root, NULL, &f->source, &err), TDM_OK);
    assert_int_equal(tdmi_source_items(f->source), N_PICTURES);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tdmi_source_close(f->source);
    tree_free(&f->tree);
    free(f);
    return 0;
}

static struct tdmi_loader_options options_of(const struct fixture *f)
{
    return (struct tdmi_loader_options){
        .source = f->source,
        .preprocess = {.width = SIDE,
                       .height = SIDE,
                       .channels = 3,
                       .fit = TDMI_FIT_STRETCH,
                       .crop_fraction = 1},
        .items = f->items,
        .n_items = N_PICTURES,
        .order = &f->shuffled,
        .batch = 8,
        .threads = 2,
    };
}

static bool is_damaged(int64_t item)
{
    return item == 10 || item == 40;
}

/* The batch agrees with the order and with the pictures themselves. */
static void check_batch(const struct tdmi_batch *batch, const struct tdmi_loader_options *options,
                        uint32_t epoch, int64_t first)
{
    const tdmi_order *order = options->order;
    int64_t left = options->n_items - first;
    assert_int_equal(batch->first, first);
    assert_int_equal(batch->n, left < options->batch ? left : options->batch);
    for (int i = 0; i < batch->n; i++) {
        int64_t item = options->items[tdmi_order_at(order, epoch, first + i)];
        const uint8_t *pixels = batch->pixels + (size_t)i * SIDE * SIDE * 3;
        uint32_t number = is_damaged(item) ? 0 : (uint32_t)item * 1001;
        assert_int_equal(batch->items[i], item);
        assert_int_equal(batch->labels[i], is_damaged(item) ? -1 : item >= 20);
        assert_int_equal(batch->problems[i][0] != '\0', is_damaged(item));
        for (int b = 0; b < SIDE * SIDE * 3; b++)
            assert_int_equal(pixels[b], (number >> 8 * (b % 3)) & 255);
    }
}

TEST(every_sample_comes_once_in_the_same_order_for_all_threads_and_batches)
{
    const struct fixture *f = *state;
    for (int batch = 1; batch <= 17; batch++) {
        for (int threads = 1; threads <= 4; threads++) {
            struct tdmi_loader_options options = options_of(f);
            options.batch = batch;
            options.threads = threads;
            options.depth = 1 + (batch + threads) % 4;
            TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
            for (uint32_t epoch = 0; epoch < 2; epoch++) {
                int64_t first = 0;
                seek(loader, epoch, 0);
                for (const struct tdmi_batch *b; (b = next(loader)) != NULL; first += b->n)
                    check_batch(b, &options, epoch, first);
                assert_int_equal(first, N_PICTURES);
                assert_null(next(loader));
            }
            assert_int_equal(loader_skips(loader), 2);
        }
    }
}

TEST(any_batch_of_any_epoch_can_be_begun_at)
{
    const struct fixture *f = *state;
    struct tdmi_loader_options options = options_of(f);
    options.threads = 3;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    for (uint32_t turn = 0; turn < 200; turn++) {
        uint32_t epoch = turn * 7919 % 5;
        int64_t position = (int64_t)(turn * 104729 % 7) * options.batch;
        seek(loader, epoch, position);
        for (uint32_t i = 0; i < turn % 4; i++, position += options.batch) {
            const struct tdmi_batch *batch = next(loader);
            if (position >= N_PICTURES) {
                assert_null(batch);
                break;
            }
            check_batch(batch, &options, epoch, position);
        }
    }
    seek(loader, 1, N_PICTURES);
    assert_null(next(loader));
}

TEST(only_multiples_of_the_batch_can_be_begun_at)
{
    const struct fixture *f = *state;
    struct tdmi_loader_options options = options_of(f);
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    static const int64_t positions[] = {-8, 3, N_PICTURES + 1, 56, 800};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        tdm_error err = {0};
        assert_int_equal(tdmi_loader_seek(loader, 0, positions[i], &err), TDM_E_BUG);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "multiples of the batch of 8"));
    }
}

TEST(nothing_comes_before_the_first_seek)
{
    const struct fixture *f = *state;
    struct tdmi_loader_options options = options_of(f);
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    tdm_error err = {0};
    const struct tdmi_batch *batch = NULL;
    assert_int_equal(tdmi_loader_next(loader, &batch, &err), TDM_E_BUG);
    assert_null(batch);
}

TEST(options_that_cannot_work_are_refused)
{
    const struct fixture *f = *state;
    static const struct {
        int batch, threads, depth, width;
    } cases[] = {{0, 1, 0, 4},  {-1, 1, 0, 4}, {8, 0, 0, 4},    {8, 1 << 20, 0, 4},
                 {8, 1, -1, 4}, {8, 1, 0, 0},  {8, 1, 0, 65536}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_loader_options options = options_of(f);
        options.batch = cases[i].batch;
        options.threads = cases[i].threads;
        options.depth = cases[i].depth;
        options.preprocess.width = cases[i].width;
        tdm_error err = {0};
        tdmi_loader *loader = NULL;
        assert_int_equal(tdmi_loader_open(&options, &loader, &err), TDM_E_USAGE);
        assert_null(loader);
    }
}

TEST(a_subset_and_a_label_map_are_followed)
{
    const struct fixture *f = *state;
    static const int64_t items[] = {3, 10, 25, 52};
    static const int label_map[] = {7, -1};
    struct tdmi_loader_options options = options_of(f);
    options.items = items;
    options.n_items = 4;
    options.label_map = label_map;
    options.order = NULL;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    seek(loader, 0, 0);
    const struct tdmi_batch *batch = next(loader);
    static const int32_t labels[] = {7, -1, -1, -1};
    assert_int_equal(batch->n, 4);
    assert_memory_equal(batch->items, items, sizeof items);
    assert_memory_equal(batch->labels, labels, sizeof labels);
    /* A class the model does not know is no damage: its pixels are there. */
    assert_int_equal(batch->pixels[2 * SIDE * SIDE * 3], 25 * 1001 & 255);
    assert_int_equal(loader_skips(loader), 1);
}

TEST(no_items_make_an_empty_epoch)
{
    const struct fixture *f = *state;
    struct tdmi_loader_options options = options_of(f);
    options.n_items = 0;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    seek(loader, 0, 0);
    assert_null(next(loader));
}

TEST(skipped_pictures_are_named_once_in_order)
{
    const struct fixture *f = *state;
    struct tdmi_skip first[2], skip;
    for (int threads = 1; threads <= 4; threads++) {
        struct tdmi_loader_options options = options_of(f);
        options.threads = threads;
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
        assert_int_equal(loader_skips(loader), 0);
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            run_epoch(loader, epoch);
        }
        assert_int_equal(loader_skips(loader), 2);
        for (int i = 0; i < 2; i++) {
            assert_true(tdmi_loader_skip_at(loader, i, &skip));
            assert_true(strncmp(skip.text, "a/010.ppm: ", 11) == 0 ||
                        strncmp(skip.text, "b/040.ppm: ", 11) == 0);
            if (threads == 1)
                first[i] = skip;
            assert_string_equal(skip.text, first[i].text);
            assert_int_equal(skip.item, first[i].item);
            assert_int_equal(skip.epoch, 0);
            assert_int_equal(skip.position, first[i].position);
        }
        assert_string_not_equal(first[0].text, first[1].text);
        assert_true(first[0].position < first[1].position);
        assert_false(tdmi_loader_skip_at(loader, -1, &skip));
    }
}

TEST(the_first_hundred_skipped_pictures_are_kept)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (int i = 0; i < 130; i++) {
        char name[32];
        snprintf(name, sizeof name, "a/%03d.ppm", i);
        tree_text(&tree, name, "no picture");
    }
    tdm_error err = {0};
    struct fixture f = {0};
    assert_int_equal(tdmi_source_open(tree.root, NULL, &f.source, &err), TDM_OK);
    int64_t items[130];
    for (int i = 0; i < 130; i++)
        items[i] = i;
    struct tdmi_loader_options options = options_of(&f);
    options.items = items;
    options.n_items = 130;
    options.order = NULL;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    run_epoch(loader, 0);
    struct tdmi_skip skip;
    assert_int_equal(loader_skips(loader), 100);
    assert_true(tdmi_loader_skip_at(loader, 99, &skip));
    assert_int_equal(strncmp(skip.text, "a/099.ppm: ", 11), 0);
    assert_int_equal(skip.position, 99);
    tdmi_source_close(f.source);
}

/* Unlabelled pictures (prediction) have pixels although their label is -1. */
TEST(unlabelled_pictures_are_loaded)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_picture(&tree, "1.ppm", 77);
    tdm_error err = {0};
    struct fixture f = {0};
    assert_int_equal(tdmi_source_open(tree.root, NULL, &f.source, &err), TDM_OK);
    static const int label_map[1] = {9};
    struct tdmi_loader_options options = options_of(&f);
    options.n_items = 1;
    options.order = NULL;
    options.label_map = label_map;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    seek(loader, 0, 0);
    const struct tdmi_batch *batch = next(loader);
    assert_int_equal(batch->n, 1);
    assert_int_equal(batch->labels[0], -1);
    assert_int_equal(batch->pixels[0], 77);
    assert_int_equal(batch->problems[0][0], '\0');
    tdmi_source_close(f.source);
}

TEST(closing_in_the_middle_is_safe)
{
    const struct fixture *f = *state;
    struct tdmi_loader_options options = options_of(f);
    options.threads = 4;
    for (int turn = 0; turn < 30; turn++) {
        TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
        if (turn % 3 > 0)
            seek(loader, (uint32_t)turn, 0);
        if (turn % 3 > 1)
            assert_non_null(next(loader));
    }
    tdmi_loader_close(NULL);
}

TEST(after_the_first_epoch_nothing_is_allocated)
{
    const struct fixture *f = *state;
    int64_t items[N_PICTURES];
    int64_t n = 0;
    for (int64_t i = 0; i < N_PICTURES; i++)
        if (!is_damaged(i))
            items[n++] = i;
    struct tdmi_loader_options options = options_of(f);
    options.items = items;
    options.n_items = n;
    const tdmi_order order = {.seed = 5, .n = n, .is_shuffled = true};
    options.order = &order;
    options.threads = 1; /* one scratch, warm after one picture */
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    run_epoch(loader, 0);
    int64_t before = tdmi_memory_calls();
    for (uint32_t epoch = 1; epoch < 4; epoch++) {
        run_epoch(loader, epoch);
    }
    assert_int_equal(tdmi_memory_calls(), before);
}

/* Each allocation fails in turn, in opening and in the first batches: an error of that kind, never
 * a crash, a wait without end or a wrong batch. */
TEST(running_out_of_memory_is_an_error)
{
    const struct fixture *f = *state;
    struct tdmi_loader_options options = options_of(f);
    bool has_passed = false, has_failed_in_next = false;
    for (int64_t n = 1; n < 200 && !has_passed; n++) {
        tdm_error err = {0};
        tdmi_loader *loader = NULL;
        const struct tdmi_batch *batch = NULL;
        tdmi_memory_fail_from(n);
        tdm_status status = tdmi_loader_open(&options, &loader, &err);
        if (status == TDM_OK) {
            seek(loader, 0, 0);
            do
                status = tdmi_loader_next(loader, &batch, &err);
            while (status == TDM_OK && batch != NULL);
            has_passed = status == TDM_OK;
            has_failed_in_next |= !has_passed;
            if (!has_passed)
                assert_int_equal(tdmi_loader_next(loader, &batch, &err), TDM_E_MEMORY);
        }
        tdmi_memory_fail_from(0);
        assert_true(has_passed || (status == TDM_E_MEMORY && err.n_frames > 0));
        tdmi_loader_close(loader);
    }
    assert_true(has_passed);
    assert_true(has_failed_in_next);
}

TEST_MAIN(set_up, tear_down)
