/* IDX files: pairs, parts, pictures as PGM, and heads that cannot be believed. */
#include "unit.h"
#include "data/sources.h"

/* Writes n pictures of 3 x 2 pixels; pixel p of picture i is 10 i + p. */
static void write_images(const struct tree *tree, const char *name, int n)
{
    uint8_t bytes[16 + 6 * 20] = {0, 0, 8, 3, 0, 0, 0, (uint8_t)n, 0, 0, 0, 2, 0, 0, 0, 3};
    for (int i = 0; i < 6 * n; i++)
        bytes[16 + i] = (uint8_t)(i / 6 * 10 + i % 6);
    tree_file(tree, name, bytes, (size_t)(16 + 6 * n));
}

static void write_labels(const struct tree *tree, const char *name, const char *labels)
{
    size_t n = strlen(labels);
    uint8_t bytes[8 + 20] = {0, 0, 8, 1, 0, 0, 0, (uint8_t)n};
    for (size_t i = 0; i < n; i++)
        bytes[8 + i] = (uint8_t)(labels[i] - '0');
    tree_file(tree, name, bytes, 8 + n);
}

/* start: "train-", "my/train-" or "" */
static void write_pair(const struct tree *tree, const char *start, int n, const char *labels)
{
    char name[100];
    snprintf(name, sizeof name, "%simages-idx3-ubyte", start);
    write_images(tree, name, n);
    snprintf(name, sizeof name, "%slabels-idx1-ubyte", start);
    write_labels(tree, name, labels);
}

TEST(a_train_and_a_test_pair_are_parts)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_pair(&tree, "train-", 3, "709");
    write_pair(&tree, "t10k-", 2, "07");
    tree_text(&tree, "README", "x");
    tree_text(&tree, "train-images-idx3-ubyte.gz", "passed over beside the plain one");
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_string_equal(tdmi_source_kind(source), "idx");
    assert_classes(source, "0 7 9");
    assert_items(source, "t10k-images-idx3-ubyte#0 0 3, t10k-images-idx3-ubyte#1 1 3, "
                         "train-images-idx3-ubyte#0 1 1, train-images-idx3-ubyte#1 0 1, "
                         "train-images-idx3-ubyte#2 2 1");
    assert_int_equal(tdmi_source_ignored(source), 1);
}

TEST(names_of_pairs_may_vary)
{
    static const struct {
        const char *images, *labels;
    } cases[] = {{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
                 {"t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"},
                 {"emnist-letters-test-images-idx3-ubyte", "emnist-letters-test-labels-idx1-ubyte"},
                 {"images-idx3-ubyte", "labels-idx1-ubyte"},
                 {"images-of-images-idx3-ubyte", "images-of-labels-idx1-ubyte"}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_images(&tree, cases[c].images, 2);
        write_labels(&tree, cases[c].labels, "12");
        char expected[200];
        snprintf(expected, sizeof expected, "%s#0 0 0, %s#1 1 0", cases[c].images, cases[c].images);
        /* The folder and the file alone are the same: one pair, to be split. */
        tdmi_source *source = open_source(tree.root);
        assert_classes(source, "1 2");
        assert_items(source, expected);
        tdmi_source_close(source);
        source = open_source(tree_path(&tree, cases[c].images));
        assert_items(source, expected);
        tdmi_source_close(source);
    }
}

TEST(images_come_as_pgm_or_ppm)
{
    static const uint8_t coloured[] = {0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0, 1, 0,
                                       0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_pair(&tree, "grey/", 2, "11");
    tree_file(&tree, "coloured/images-idx4-ubyte", coloured, sizeof coloured);
    write_labels(&tree, "coloured/labels-idx1-ubyte", "12");
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *grey = open_source(tree_path(&tree, "grey"));
    assert_bytes(grey, 1, "P5\n3 2\n255\n\x0a\x0b\x0c\x0d\x0e\x0f", 17);
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *second = open_source(tree_path(&tree, "coloured"));
    assert_bytes(second, 1, "P6\n1 1\n255\n\x04\x05\x06", 14);
}

TEST(heads_that_cannot_be_are_refused)
{
    static const struct {
        uint8_t bytes[24];
        size_t n;
        const char *word;
    } cases[] = {
        {{0}, 0, "ends at byte 0"},
        {{0, 0, 8}, 3, "too short"},
        {{1, 0, 8, 3}, 4, "begins with 01 00"},
        {{0, 0, 0x0d, 3}, 4, "type 0d"},
        {{0, 0, 8, 0}, 4, "0 dimensions"},
        {{0, 0, 8, 9}, 4, "9 dimensions"},
        {{0, 0, 8, 3, 0, 0, 0, 1}, 8, "within its head"},
        {{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3}, 19, "promises more"},
        {{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3}, 19, "promises 1 bytes"},
        {{0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1},
         17,
         "promises more"},
        {{0, 0, 8, 3, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 1}, 17, "promises 0"},
        {{0, 0, 8, 1, 0, 0, 0, 1, 1}, 9, "holds no images"},
        {{0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 1, 1}, 13, "holds no images"},
        {{0, 0, 8, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1}, 22, "holds no images"},
        {{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, 16, "0 x 1 pixels"},
        {{0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}, 16, "no image"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        tree_file(&tree, "images-idx3-ubyte", cases[c].bytes, cases[c].n);
        write_labels(&tree, "labels-idx1-ubyte", strcmp(cases[c].word, "no image") == 0 ? "" : "1");
        assert_refused(tree.root, TDM_E_INPUT, cases[c].word);
    }
}

TEST(labels_that_do_not_fit_are_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_images(&tree, "train-images-idx3-ubyte", 3);
    assert_refused(tree.root, TDM_E_INPUT, "expected beside it");
    assert_refused(tree.root, TDM_E_INPUT, "train-labels-idx1-ubyte");
    write_labels(&tree, "train-labels-idx1-ubyte", "12");
    assert_refused(tree.root, TDM_E_INPUT, "2 labels in 1 dimensions");
    write_images(&tree, "train-labels-idx1-ubyte", 3);
    assert_refused(tree.root, TDM_E_INPUT, "3 labels in 3 dimensions");
    /* Only the labels, under a name of no images file. */
    write_labels(&tree, "train-labels-idx1-ubyte", "123");
    assert_refused(tree_path(&tree, "train-labels-idx1-ubyte"), TDM_E_INPUT,
                   "does not bear the name of an IDX images file");
}

TEST(compressed_files_are_read_and_may_be_mixed)
{
    static const struct {
        bool images, labels;
    } is_compressed[] = {{true, true}, {true, false}, {false, true}};
    if (tdmi_inflate_best() == NULL)
        skip();
    for (size_t c = 0; c < sizeof is_compressed / sizeof is_compressed[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_pair(&tree, "train-", 3, "123");
        if (is_compressed[c].images)
            tree_gzip(&tree, "train-images-idx3-ubyte");
        if (is_compressed[c].labels)
            tree_gzip(&tree, "train-labels-idx1-ubyte");
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
        assert_int_equal(tdmi_source_items(source), 3);
        assert_int_equal(tdmi_source_ignored(source), 0);
        TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
        assert_int_equal(tdmi_source_read(source, 2, &bytes, NULL), TDM_OK);
        assert_memory_equal(bytes.bytes, "P5\n", 3);
    }
}

TEST(damaged_compressed_files_are_refused)
{
    if (tdmi_inflate_best() == NULL)
        skip();
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_pair(&tree, "train-", 3, "123");
    tree_gzip(&tree, "train-images-idx3-ubyte");
    assert_int_equal(truncate(tree_path(&tree, "train-images-idx3-ubyte.gz"), 20), 0);
    assert_refused(tree.root, TDM_E_INPUT, "ends at byte 20 in the middle");
    tree_text(&tree, "train-images-idx3-ubyte.gz", "x");
    assert_refused(tree.root, TDM_E_INPUT, "too short");
}

TEST(pairs_that_are_no_parts_of_one_set_are_refused)
{
    static const char *const names[][2] = {{"train-images-idx3-ubyte", "train2-images-idx3-ubyte"},
                                           {"train-images-idx3-ubyte", "my-images-idx3-ubyte"}};
    for (int c = 0; c < 2; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_images(&tree, names[c][0], 3);
        write_images(&tree, names[c][1], 3);
        assert_refused(tree.root, TDM_E_INPUT, names[c][0]);
        assert_refused(tree.root, TDM_E_INPUT, names[c][1]);
    }
}

TEST(a_file_cut_short_later_fails_when_read)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_pair(&tree, "", 2, "11");
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_int_equal(truncate(tree_path(&tree, "images-idx3-ubyte"), 24), 0);
    assert_bytes(source, 0, "P5\n3 2\n255\n\x00\x01\x02\x03\x04\x05", 17);
    assert_unreadable(source, 1, "images-idx3-ubyte#1");
}

TEST(real_clothes_open_compressed)
{
    if (tdmi_inflate_best() == NULL)
        skip();
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(test_data("datasets/fashion-mnist-idx"));
    assert_int_equal(tdmi_source_items(source), 70000);
    assert_classes(source, "0 1 2 3 4 5 6 7 8 9");
}

TEST(real_digits_open)
{
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(test_data("datasets/mnist-1000-idx"));
    assert_int_equal(tdmi_source_items(source), 1000);
    assert_classes(source, "0 1 2 3 4 5 6 7 8 9");
    static const int first_labels[] = {7, 2, 1, 0, 4, 1, 4, 9};
    for (int i = 0; i < 8; i++)
        assert_int_equal(tdmi_source_item(source, i).label, first_labels[i]);
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    struct tdmi_image_limits no_limits = {0};
    assert_int_equal(tdmi_source_read(source, 999, &bytes, &err), TDM_OK);
    assert_int_equal(
        tdmi_image_decode(bytes.bytes, bytes.length_bytes, "it", no_limits, &image, &err), TDM_OK);
    assert_int_equal(image.width, 28);
    assert_int_equal(image.height, 28);
}

TEST(running_out_of_memory_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_pair(&tree, "", 2, "12");
    assert_survives_lack_of_memory(tree.root);
    assert_survives_lack_of_memory(tree_path(&tree, "images-idx3-ubyte"));
}

TEST_MAIN(NULL, NULL)
