/* Tables of pictures as our writer makes them: what is listed, what is read, what is refused. */
#include "unit.h"
#include "data/parquet/parquet_files.h"

#include "base/hash/hash.h"
#include "io/arrow/bridge.h"

static void assert_picture(const tdmi_source *source, int64_t index, int picture)
{
    uint8_t expected[150];
    size_t n = picture_of(picture, expected);
    assert_bytes(source, index, expected, n);
}

TEST_IF(has_arrow(), our_files_are_read_page_by_page)
{
    for (int codec = TDMI_ARROW_NONE; codec <= TDMI_ARROW_ZSTD; codec++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_parquet_file(
            &tree, "part-0.parquet",
            &(struct written){.n_rows = 100,
                              .n_classes = 3,
                              .options = {.image_codec = (enum tdmi_arrow_codec)codec,
                                          .column_codec = TDMI_ARROW_SNAPPY,
                                          .group_bytes = 3000}});
        tree_text(&tree, "_dataset.json", "{}");
        tree_text(&tree, "readme.txt", "x");
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
        assert_string_equal(tdmi_source_kind(source), "parquet");
        assert_classes(source, "c0 c1 c2");
        assert_int_equal(tdmi_source_items(source), 100);
        assert_int_equal(tdmi_source_groups(source), 0); /* each as quick as any other */
        assert_int_equal(tdmi_source_ignored(source), 1);
        assert_int_equal(tdmi_source_hash(source, 7), 0x107);
        assert_false(tdmi_source_raw_shape(source, &(struct tdmi_raw_shape){0}));
        for (int i = 99; i >= 0; i--) {
            struct tdmi_item item = tdmi_source_item(source, i);
            char path[32];
            snprintf(path, sizeof path, "c%d/%d.jpg", i % 3, i);
            assert_string_equal(item.path, path);
            assert_int_equal(item.label, i % 3);
            assert_int_equal(item.part, i % 5 == 4 ? TDMI_PART_VAL : TDMI_PART_TRAIN);
            assert_picture(source, i, i);
        }
    }
}

TEST_IF(has_arrow(), raw_pictures_go_where_they_are_asked)
{
    for (int codec = TDMI_ARROW_NONE; codec <= TDMI_ARROW_ZSTD; codec++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_parquet_file(
            &tree, "a.parquet",
            &(struct written){.n_rows = 40,
                              .n_classes = 2,
                              .options = {.image_codec = (enum tdmi_arrow_codec)codec,
                                          .raw_shape = {6, 5, 3},
                                          .group_bytes = 1000}});
        tdmi_source *source = open_source(tree_path(&tree, "a.parquet"));
        struct tdmi_raw_shape shape;
        assert_true(tdmi_source_raw_shape(source, &shape));
        assert_int_equal(shape.height, 6);
        assert_int_equal(shape.width, 5);
        assert_int_equal(shape.channels, 3);
        for (int i = 0; i < 40; i++) {
            uint8_t pixels[92] = {0};
            TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
            tdm_error err = {0};
            assert_int_equal(tdmi_source_read_raw(source, i, pixels + 1, &err), TDM_OK);
            assert_int_equal(pixels[0] + pixels[91], 0);
            assert_int_equal(tdmi_source_read(source, i, &bytes, &err), TDM_OK);
            assert_int_equal(bytes.length_bytes, 11 + 90);
            assert_memory_equal(bytes.bytes, "P6\n5 6\n255\n", 11);
            assert_memory_equal(bytes.bytes + 11, pixels + 1, 90);
            for (int p = 1; p <= 90; p++)
                assert_int_equal(pixels[p], i);
        }
        tdmi_source_close(source);
    }
}

TEST_IF(has_arrow(), folders_and_names_say_what_columns_do_not)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    const struct written written = {.n_rows = 2, .n_classes = 1};
    write_parquet_file(&tree, "label=cat%20and%20dog/a.parquet", &written);
    write_parquet_file(&tree, "label=10/b.parquet", &written);
    write_parquet_file(&tree, "label=9/deep/b.parquet", &written);
    write_parquet_file(&tree, "_old/b.parquet", &written);
    write_parquet_file(&tree, "label=__HIVE_DEFAULT_PARTITION__/z.parquet", &written);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_int_equal(tdmi_source_items(source), 8);
    assert_int_equal(tdmi_source_classes(source), 3);
    assert_string_equal(tdmi_source_class(source, 0), "10");
    assert_string_equal(tdmi_source_class(source, 1), "9");
    assert_string_equal(tdmi_source_class(source, 2), "cat and dog");
    assert_string_equal(tdmi_source_item(source, 0).path, "c0/0.jpg");
    assert_int_equal(tdmi_source_item(source, 0).label, 0);
    assert_int_equal(tdmi_source_item(source, 2).label, 1);
    assert_int_equal(tdmi_source_item(source, 4).label, -1);
    assert_int_equal(tdmi_source_item(source, 6).label, 2);
}

TEST_IF(has_arrow(), links_in_circles_are_left_out)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_parquet_file(&tree, "a/b/x.parquet", &(struct written){.n_rows = 6, .n_classes = 2});
    assert_int_equal(symlink(".", tree_path(&tree, "a/self")), 0);
    assert_int_equal(symlink("../..", tree_path(&tree, "a/b/up")), 0);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_int_equal(tdmi_source_items(source), 6);
}

TEST_IF(has_arrow(), names_of_files_say_the_part)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    const struct written written = {.n_rows = 2, .n_classes = 1};
    write_parquet_file(&tree, "data/train-00000-of-00001.parquet", &written);
    write_parquet_file(&tree, "data/test-00000-of-00001.parquet", &written);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_items(source,
                 "c0/0.jpg 0 0, c0/1.jpg 0 0, c0/0.jpg 0 0, c0/1.jpg 0 0"); /* the column comes
                                                                               first: train alone */
}

/* Every third byte of a small file in turn: the file opens and all pictures come out as they were,
 * or a sentence names it. */
TEST_IF(has_arrow(), a_flipped_byte_is_found_or_harmless)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_text_release) tdmi_text file = {0};
    int n_found = 0;
    write_parquet(&file, &(struct written){.n_rows = 4, .n_classes = 2});
    for (size_t at = 0; at < file.length_bytes; at += 3) {
        file.bytes[at] ^= 0x11;
        tree_file(&tree, "a.parquet", file.bytes, file.length_bytes);
        file.bytes[at] ^= 0x11;
        tdm_error err = {0};
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
        if (tdmi_source_open(tree_path(&tree, "a.parquet"), NULL, &source, &err) != TDM_OK) {
            assert_int_equal(err.code, TDM_E_INPUT);
            assert_says(&err, "a.parquet");
            n_found++;
            continue;
        }
        for (int64_t i = 0; i < tdmi_source_items(source); i++) {
            TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
            uint8_t expected[150];
            size_t n = picture_of((int)i, expected);
            if (tdmi_source_read(source, i, &bytes, &err) != TDM_OK) {
                assert_says(&err, "a.parquet");
                assert_says(&err, "byte ");
                n_found++;
            } else {
                assert_int_equal(bytes.length_bytes, n);
                assert_memory_equal(bytes.bytes, expected, n);
            }
        }
    }
    assert_true(n_found > 150);
}

TEST_IF(has_arrow(), a_truncated_file_is_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_text_release) tdmi_text file = {0};
    write_parquet(&file, &(struct written){.n_rows = 4, .n_classes = 2});
    for (size_t n = 0; n < file.length_bytes; n += 7) {
        tree_file(&tree, "a.parquet", file.bytes, n);
        assert_refused(tree_path(&tree, "a.parquet"), TDM_E_INPUT, "a.parquet");
    }
}

TEST_IF(has_arrow(), columns_that_are_not_there_are_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_parquet_file(&tree, "a.parquet", &(struct written){.n_rows = 4, .n_classes = 2});
    static const struct {
        struct tdm_source_options options;
        const char *word;
    } cases[] = {
        {{.image_column = "pixels"}, "no column 'pixels' of images"},
        {{.image_column = "label"}, "no column 'label' of images"},
        {{.label_column = "animal"},
         "no column 'animal' of labels; labels are integers or text. Its columns: "},
        {{.raw_shape = "32x32"}, "expected height, width and channels"},
        {{.raw_shape = "32x32x4"}, "expected height, width and channels"},
        {{.raw_shape = "0x1x1"}, "expected height, width and channels"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tdm_error err = {0};
        tdmi_source *source = NULL;
        assert_int_equal(
            tdmi_source_open(tree_path(&tree, "a.parquet"), &cases[c].options, &source, &err),
            TDM_E_INPUT);
        assert_says(&err, cases[c].word);
    }
    struct tdm_source_options by_width = {.label_column = "width", .raw_shape = "5x5x1"};
    tdm_error err = {0};
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
    assert_int_equal(tdmi_source_open(tree_path(&tree, "a.parquet"), &by_width, &source, &err),
                     TDM_OK);
    assert_classes(source, "10 11 12 13");
    uint8_t pixels[25];
    assert_int_equal(tdmi_source_read_raw(source, 0, pixels, &err), TDM_E_INPUT);
    assert_says(&err, "row 0 of");
}

TEST_IF(has_arrow(), a_folder_of_pictures_is_no_table)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_picture(&tree, "a/1.ppm", 1);
    write_parquet_file(&tree, "b/x.parquet", &(struct written){.n_rows = 1, .n_classes = 1});
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_string_equal(tdmi_source_kind(source), "folder");
}

TEST_IF(has_arrow(), running_out_of_memory_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_parquet_file(&tree, "a.parquet", &(struct written){.n_rows = 3, .n_classes = 2});
    assert_survives_lack_of_memory(tree.root);
    write_parquet_file(
        &tree, "a.parquet",
        &(struct written){.n_rows = 3, .n_classes = 2, .options.image_codec = TDMI_ARROW_ZSTD});
    assert_survives_lack_of_memory(tree.root);
}

TEST_IF(!has_arrow(), a_build_without_arrow_says_what_brings_it)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_text(&tree, "a.parquet", "PAR1 and so on PAR1");
    assert_refused(tree_path(&tree, "a.parquet"), TDM_E_ABSENT, "tools/deps");
    assert_refused(tree.root, TDM_E_ABSENT, "has no Apache Arrow");
}

TEST_MAIN(NULL, NULL)
