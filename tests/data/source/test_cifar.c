/* Binary CIFAR: both forms, their parts and names, and files that are neither. */
#include "unit.h"
#include "data/sources.h"

enum { PIXELS = 3072 };

/* Records with the labels given as digits; pixel p of plane c is label + p + 50 c. */
static void write_records(const struct tree *tree, const char *name, const char *labels,
                          bool is_hundred)
{
    size_t n = strlen(labels), label_bytes = is_hundred ? 2 : 1, record = label_bytes + PIXELS;
    uint8_t *bytes = calloc(n + 1, record);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) {
        uint8_t *at = bytes + i * record, label = (uint8_t)(labels[i] - '0');
        at[label_bytes - 1] = label;
        for (int p = 0; p < PIXELS; p++)
            at[(int)label_bytes + p] = (uint8_t)(label + p % 1024 + 50 * (p / 1024));
    }
    tree_file(tree, name, bytes, n * record);
    free(bytes);
}

TEST(ten_classes_and_their_parts_are_listed)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_records(&tree, "data_batch_1.bin", "30", false);
    write_records(&tree, "data_batch_2.bin", "5", false);
    write_records(&tree, "test_batch.bin", "9", false);
    tree_text(&tree, "readme.html", "x");
    tdmi_source *source = open_source(tree.root);
    assert_string_equal(tdmi_source_kind(source), "cifar");
    assert_classes(source, "0 3 5 9");
    assert_items(source, "data_batch_1.bin#0 1 1, data_batch_1.bin#1 0 1, data_batch_2.bin#0 2 1, "
                         "test_batch.bin#0 3 3");
    assert_int_equal(tdmi_source_ignored(source), 1);
    tdmi_source_close(source);

    tree_text(&tree, "batches.meta.txt",
              "airplane\nautomobile\nbird\r\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
    source = open_source(tree.root);
    assert_classes(source, "airplane automobile bird cat deer dog frog horse ship truck");
    assert_int_equal(tdmi_source_item(source, 0).label, 3);
    assert_int_equal(tdmi_source_item(source, 3).label, 9);
    assert_int_equal(tdmi_source_ignored(source), 1);
    tdmi_source_close(source);
}

TEST(a_hundred_classes_are_read_by_their_fine_labels)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_records(&tree, "train.bin", "4o", true); /* 'o' is label 63 */
    write_records(&tree, "test.bin", "4", true);
    tdmi_source *source = open_source(tree.root);
    assert_classes(source, "4 63");
    assert_items(source, "test.bin#0 0 3, train.bin#0 0 1, train.bin#1 1 1");
    tdmi_source_close(source);

    tdmi_text names = {0};
    for (int i = 0; i < 100; i++)
        tdmi_text_printf(&names, "c%d\n", i);
    tree_text(&tree, "fine_label_names.txt", tdmi_text_string(&names));
    tdmi_text_release(&names);
    source = open_source(tree.root);
    assert_int_equal(tdmi_source_classes(source), 100);
    assert_string_equal(tdmi_source_class(source, 63), "c63");
    assert_items(source, "test.bin#0 4 3, train.bin#0 4 1, train.bin#1 63 1");
    tdmi_source_close(source);
}

TEST(single_files_are_to_be_split)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_records(&tree, "data_batch_1_first2.bin", "12", false);
    write_records(&tree, "any.bin", "12", false);
    write_records(&tree, "other.bin", "12", true);
    static const char *const expected[] = {("data_batch_1_first2.bin#0 0 0, "
                                            "data_batch_1_first2.bin#1 1 0"),
                                           "any.bin#0 0 0, any.bin#1 1 0",
                                           "other.bin#0 0 0, other.bin#1 1 0"};
    static const char *const names[] = {"data_batch_1_first2.bin", "any.bin", "other.bin"};
    for (int i = 0; i < 3; i++) {
        tdmi_source *source = open_source(tree_path(&tree, names[i]));
        assert_items(source, expected[i]);
        assert_classes(source, "1 2");
        tdmi_source_close(source);
    }
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_items(source, expected[0]);
}

TEST(planes_become_pixels)
{
    for (int is_hundred = 0; is_hundred < 2; is_hundred++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_records(&tree, "x.bin", "17", is_hundred);
        tdmi_source *source = open_source(tree_path(&tree, "x.bin"));
        TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
        tdm_error err = {0};
        assert_int_equal(tdmi_source_read(source, 1, &bytes, &err), TDM_OK);
        assert_int_equal(bytes.length_bytes, 13 + PIXELS);
        assert_memory_equal(bytes.bytes, "P6\n32 32\n255\n", 13);
        for (int p = 0; p < 1024; p++)
            for (int c = 0; c < 3; c++)
                assert_int_equal((uint8_t)bytes.bytes[13 + 3 * p + c], (uint8_t)(7 + p + 50 * c));
        tdmi_source_close(source);
    }
}

TEST(files_that_are_neither_form_are_refused)
{
    struct tree tree = tree_new();
    tree_text(&tree, "data_batch_1.bin", "too short");
    assert_refused(tree.root, TDM_E_INPUT, "9 bytes");
    write_records(&tree, "data_batch_1.bin", "", false);
    assert_refused(tree.root, TDM_E_INPUT, "no image");
    write_records(&tree, "data_batch_1.bin", "1:", false); /* ':' is label 10 */
    assert_refused(tree.root, TDM_E_INPUT, "record 1 of");
    assert_refused(tree.root, TDM_E_INPUT, "label 10; those of CIFAR-10 are 0 to 9");
    write_records(&tree, "data_batch_1.bin", "12", false);
    write_records(&tree, "train.bin", "12", true);
    assert_refused(tree.root, TDM_E_INPUT, "of CIFAR-100, and");
    tree_text(&tree, "other.bin", "1234");
    assert_refused(tree_path(&tree, "other.bin"), TDM_E_INPUT, "no number of CIFAR-100 records");
    tree_free(&tree);

    tree = tree_new();
    tree_text(&tree, "data_batch_1.bin.gz", "x");
    assert_refused(tree.root, TDM_E_INPUT, "1 bytes");
    tree_free(&tree);
}

TEST(compressed_files_are_read)
{
    if (tdmi_inflate_best() == NULL)
        skip();
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_records(&tree, "data_batch_1.bin", "30", false);
    write_records(&tree, "test_batch.bin", "5", false);
    tree_gzip(&tree, "data_batch_1.bin");
    tree_gzip(&tree, "test_batch.bin");
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_items(source, "data_batch_1.bin.gz#0 1 1, data_batch_1.bin.gz#1 0 1, "
                         "test_batch.bin.gz#0 2 3");
}

TEST(names_that_do_not_fit_are_refused)
{
    static const struct {
        const char *names;
        size_t n;
        const char *word;
    } cases[] = {{"a\nb\n", 4, "names 2 classes; CIFAR-10 has 10"},
                 {"a\nb\na\n", 6, "'a' twice"},
                 {"a\0b\n", 4, "zero byte"},
                 {"", 0, "names 0 classes"}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_records(&tree, "data_batch_1.bin", "12", false);
        tree_file(&tree, "batches.meta.txt", cases[c].names, cases[c].n);
        assert_refused(tree.root, TDM_E_INPUT, cases[c].word);
    }
}

TEST(running_out_of_memory_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_records(&tree, "data_batch_1.bin", "12", false);
    assert_survives_lack_of_memory(tree.root);
    tree_text(&tree, "batches.meta.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_survives_lack_of_memory(tree.root);
}

TEST_MAIN(NULL, NULL)
