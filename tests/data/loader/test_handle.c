/* The loader that programs iterate over (tandem/data.h). */
#include "tandem/data.h"
#include "train/pictures.h"
#include "unit.h"

static struct tree tree;

static int paint(void **state)
{
    (void)state;
    tree = quick_tree_new();
    paint_classes(&tree, 2, 7);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    tree_free(&tree);
    return 0;
}

static struct tdm_loader_options usual(void)
{
    struct tdm_loader_options options = tdm_loader_options_default();
    options.source = below(&tree, "pictures");
    options.size = PICTURE_SIDE;
    options.batch = 4;
    return options;
}

/* The items of an epoch in their order, and the sum of its pixels. */
static uint64_t read_epoch(tdm_loader *loader, int epoch, int64_t items[14])
{
    const struct tdm_batch *batch;
    uint64_t sum = 0;
    int n = 0;
    assert_int_equal(tdm_loader_begin(loader, epoch, NULL), TDM_OK);
    for (;;) {
        assert_int_equal(tdm_loader_next(loader, &batch, NULL), TDM_OK);
        if (!batch)
            break;
        assert_true(n + batch->n <= 14);
        for (int i = 0; i < batch->n; i++) {
            assert_int_equal(batch->labels[i], batch->items[i] / 7);
            items[n++] = batch->items[i];
        }
        for (int i = 0; i < batch->n * PICTURE_SIDE * PICTURE_SIDE * 3; i++)
            sum += (uint64_t)(i + 1) * batch->pixels[i];
    }
    assert_int_equal(n, 14);
    return sum;
}

TEST(epochs_come_whole_and_equal_at_any_number_of_threads)
{
    int64_t items[2][2][14];
    uint64_t sums[2][2];
    for (int run = 0; run < 2; run++) {
        struct tdm_loader_options options = usual();
        tdm_loader *loader = NULL;
        options.threads = 1 + 2 * run;
        options.augment = "flip";
        assert_int_equal(tdm_loader_open(&options, &loader, NULL), TDM_OK);
        assert_int_equal(tdm_loader_images(loader), 14);
        assert_int_equal(tdm_loader_classes(loader), 2);
        assert_string_equal(tdm_loader_class(loader, 1), "b");
        assert_null(tdm_loader_class(loader, 2));
        for (int epoch = 0; epoch < 2; epoch++)
            sums[run][epoch] = read_epoch(loader, epoch, items[run][epoch]);
        tdm_loader_close(loader);
    }
    assert_memory_equal(items[0], items[1], sizeof items[0]);
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    assert_memory_not_equal(items[0][0], items[0][1], sizeof items[0][0]);
}

TEST(without_shuffling_images_come_as_the_source_lists_them)
{
    struct tdm_loader_options options = usual();
    tdm_loader *loader = NULL;
    int64_t items[14];
    options.is_shuffled = false;
    assert_int_equal(tdm_loader_open(&options, &loader, NULL), TDM_OK);
    (void)read_epoch(loader, 3, items);
    for (int i = 0; i < 14; i++)
        assert_int_equal(items[i], i);
    tdm_loader_close(loader);
}

/* Items of the batches from a position to the end of the epoch; their number. */
static int read_rest(tdm_loader *loader, int epoch, int64_t position, int64_t items[14])
{
    const struct tdm_batch *batch;
    int n = 0;
    assert_int_equal(tdm_loader_seek(loader, epoch, position, NULL), TDM_OK);
    do {
        assert_int_equal(tdm_loader_next(loader, &batch, NULL), TDM_OK);
        for (int i = 0; batch && i < batch->n; i++)
            items[n++] = batch->items[i];
    } while (batch);
    return n;
}

TEST(an_epoch_goes_on_from_any_batch)
{
    static const struct {
        int epoch;
        int64_t position;
    } nowhere[] = {{-1, 0}, {0, -4}, {0, 3}, {0, 16}};
    struct tdm_loader_options options = usual();
    tdm_loader *loader = NULL;
    int64_t whole[14], rest[14];
    assert_int_equal(tdm_loader_open(&options, &loader, NULL), TDM_OK);
    assert_int_equal(read_rest(loader, 2, 0, whole), 14);
    assert_int_equal(read_rest(loader, 2, 8, rest), 6);
    assert_memory_equal(rest, whole + 8, 6 * sizeof rest[0]);
    assert_int_equal(read_rest(loader, 2, 14, rest), 0);
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        tdm_error err = {0};
        assert_int_equal(tdm_loader_seek(loader, nowhere[i].epoch, nowhere[i].position, &err),
                         TDM_E_USAGE);
        assert_says(&err, "a multiple of the batch of 4 up to 14");
    }
    tdm_loader_close(loader);
}

TEST(fractions_divide_a_source_as_training_does)
{
    static const enum tdm_part parts[] = {TDM_PART_TRAIN, TDM_PART_VAL, TDM_PART_TEST};
    bool is_used[14] = {false};
    int n_items = 0;
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        struct tdm_loader_options options = usual();
        tdm_loader *loader = NULL;
        int64_t items[14];
        options.part = parts[p];
        options.train_fraction = 0.6;
        options.val_fraction = options.test_fraction = 0.2;
        assert_int_equal(tdm_loader_open(&options, &loader, NULL), TDM_OK);
        const int n = read_rest(loader, 0, 0, items);
        assert_int_equal(tdm_loader_images(loader), n);
        assert_in_range(n, 2, parts[p] == TDM_PART_TRAIN ? 10 : 4);
        for (int i = 0; i < n; i++) {
            assert_false(is_used[items[i]]);
            is_used[items[i]] = true;
        }
        n_items += n;
        tdm_loader_close(loader);
    }
    assert_int_equal(n_items, 14);
}

TEST(what_cannot_be_loaded_is_refused)
{
    static const struct {
        enum tdm_part part;
        int size, batch;
        const char *augment, *words;
    } cases[] = {
        {TDM_PART_ALL, 0, 4, NULL, "size is 0"},
        {TDM_PART_ALL, 9, 0, NULL, "batch 0"},
        {TDM_PART_ALL, 9, 4, "mixup", "leave them out"},
        {TDM_PART_ALL, 9, 4, "flop", "flop"},
        {TDM_PART_TEST, 9, 4, NULL, "no image of this part"},
    };
    tdm_loader *loader = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdm_loader_options options = usual();
        tdm_error err = {0};
        options.part = cases[i].part;
        options.size = cases[i].size;
        options.batch = cases[i].batch;
        options.augment = cases[i].augment;
        assert_int_not_equal(tdm_loader_open(&options, &loader, &err), TDM_OK);
        assert_says(&err, cases[i].words);
    }
    assert_null(loader);
    tdm_loader_close(NULL);
}

TEST_MAIN(paint, clear)
