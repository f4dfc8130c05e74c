/* WebDataset tars: pictures and labels by key, shards by folder and range, and odd groups. */
#include "unit.h"
#include "data/sources.h"

#include "tandem/log.h"

static const uint8_t picture[] = "P6\n1 1\n255\nabc";

/* "name" is a picture, "name=text" has that text. */
static void write_shard(const struct tree *tree, const char *name, const char *const *files)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text tar = {0};
    for (int f = 0; f < 12 && files[f] != NULL; f++) {
        char entry[200];
        snprintf(entry, sizeof entry, "%s", files[f]);
        char *text = strchr(entry, '=');
        if (text != NULL)
            *text++ = '\0';
        pack_tar_add(&tar, entry, text == NULL ? (const void *)picture : (const void *)text,
                     text == NULL ? sizeof picture - 1 : strlen(text));
    }
    pack_tar_end(&tar);
    tree_file(tree, name, tar.bytes, tar.length_bytes);
}

TEST(groups_are_pictures_with_labels)
{
    static const struct {
        const char *files[12];
        const char *classes, *items;
        int64_t n_ignored;
    } cases[] = {
        {{"10.cls=3", "10.ppm", "9.ppm", "9.cls=10\n"},
         "3 10",
         "x.tar/10.ppm 0 0, x.tar/9.ppm 1 0",
         0},
        {{"a.ppm", "a.json={\"label\": \"dog\", \"id\": 1}", "b.ppm", "b.json={\"cls\": \"cat\"}"},
         "cat dog",
         "x.tar/a.ppm 1 0, x.tar/b.ppm 0 0",
         0},
        {{"a.ppm", "a.json={\"label\": -1}", "b.ppm", "b.json={\"class\": 12}"},
         "-1 12",
         "x.tar/a.ppm 0 0, x.tar/b.ppm 1 0",
         0},
        {{"a.ppm", "a.txt= a dog \r\n", "b.ppm", "b.txt=cat"},
         "a dog cat",
         "x.tar/a.ppm 0 0, x.tar/b.ppm 1 0",
         0},
        /* .cls before .json before .txt; a mask is not the picture. */
        {{"a.mask.ppm", "a.ppm", "a.txt=a caption", "a.json={\"label\": 5}", "a.cls=7"},
         "7",
         "x.tar/a.ppm 0 0",
         0},
        {{"a.ppm", "a.txt=a caption", "a.json={\"label\": 5}"}, "5", "x.tar/a.ppm 0 0", 0},
        {{"dir/a.ppm", "dir/a.cls=1", "other/a.ppm", "other/a.cls=2"},
         "1 2",
         "x.tar/dir/a.ppm 0 0, x.tar/other/a.ppm 1 0",
         0},
        {{"./a.ppm", "./a.cls=1"}, "1", "x.tar/./a.ppm 0 0", 0},
        /* No picture; no label where others have one. */
        {{"a.ppm", "a.cls=1", "b.cls=2", "b.bin=x", "c.ppm"}, "1", "x.tar/a.ppm 0 0", 3},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_shard(&tree, "x.tar", cases[c].files);
        TDMI_AT_END(tdmi_source_close_at)
        tdmi_source *source = open_listed(tree_path(&tree, "x.tar"), "webdataset", cases[c].classes,
                                          cases[c].items, cases[c].n_ignored);
        assert_bytes(source, 0, picture, sizeof picture - 1);
    }
}

TEST(labels_that_are_none_are_refused_by_name)
{
    static const struct {
        const char *files[12], *word;
    } cases[] = {
        {{"a.ppm", "a.cls=1", "b.ppm", "b.cls="}, "'b.cls' in"},
        {{"a.ppm", "a.cls=1\n2\n"}, "is no label"},
        {{"a.ppm", "a.json={\"label\": 1.5}"}, "'a.json' in"},
        {{"a.ppm", "a.json={\"label\": [1]}"}, "is no label"},
        {{"a.ppm", "a.json={broken"}, "is no label"},
        {{"a.ppm", "a.json={\"caption\": \"x\"}"}, "\"label\", \"cls\" or \"class\" in .json"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_shard(&tree, "x.tar", cases[c].files);
        assert_refused(tree_path(&tree, "x.tar"), TDM_E_INPUT, cases[c].word);
    }
}

TEST(shards_are_found_by_folder_and_range)
{
    static const char *const one[12] = {"a.ppm", "a.cls=1"}, *const two[12] = {"b.ppm", "b.cls=2"};
    static const struct {
        const char *first, *second, *path, *items;
    } cases[] = {
        {"s/0.tar", "s/1.tar", "s", "0.tar/a.ppm 0 0, 1.tar/b.ppm 1 0"},
        {"s/08.tar", "s/09.tar", "s/{08..09}.tar", "08.tar/a.ppm 0 0, 09.tar/b.ppm 1 0"},
        {"s/9.tar", "s/10.tar", "s/{9..10}.tar", "9.tar/a.ppm 0 0, 10.tar/b.ppm 1 0"},
        {"s/a1b2.tar", "s/a1b3.tar", "s/a{1..1}b{2..3}.tar",
         "a1b2.tar/a.ppm 0 0, a1b3.tar/b.ppm 1 0"},
        {"s/pets-train-0.tar", "s/pets-val-0.tar", "s",
         "pets-train-0.tar/a.ppm 0 1, pets-val-0.tar/b.ppm 1 2"},
        {"s/train-0.tar", "s/train-1.tar", "s", "train-0.tar/a.ppm 0 0, train-1.tar/b.ppm 1 0"},
        {"s/train/0.tar", "s/test/0.tar", "s", "test/0.tar/b.ppm 1 3, train/0.tar/a.ppm 0 1"},
        {"s/latest-0.tar", "s/val-0.tar", "s", "latest-0.tar/a.ppm 0 0, val-0.tar/b.ppm 1 0"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_shard(&tree, cases[c].first, one);
        write_shard(&tree, cases[c].second, two);
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", tree.root, cases[c].path);
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(path);
        assert_string_equal(tdmi_source_kind(source), "webdataset");
        assert_classes(source, "1 2");
        assert_items(source, cases[c].items);
    }
}

TEST(ranges_that_cannot_be_are_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    static const char *const one[12] = {"a.ppm", "a.cls=1"};
    write_shard(&tree, "0.tar", one);
    assert_refused(tree_path(&tree, "{0..1}.tar"), TDM_E_INPUT, "1.tar");
    assert_refused(tree_path(&tree, "{5..2}.tar"), TDM_E_USAGE, "has to rise");
    assert_refused(tree_path(&tree, "{0..999999999}.tar"), TDM_E_USAGE, "by at most");
    assert_refused(tree_path(&tree, "{a..b}.tar"), TDM_E_INPUT, "no such file");
}

TEST(class_folders_with_captions_are_no_shard)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    static const char *const files[12] = {"cat/a.ppm", "cat/a.txt=a caption", "dog/b.ppm"};
    write_shard(&tree, "x.tar", files);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree_path(&tree, "x.tar"));
    assert_string_equal(tdmi_source_kind(source), "archive");
    assert_items(source, "cat/a.ppm 0 0, dog/b.ppm 1 0");
}

TEST(a_real_shard_opens)
{
    if (tdmi_inflate_best() == NULL)
        skip();
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(test_data("webdataset/sample.tgz"));
    assert_string_equal(tdmi_source_kind(source), "webdataset");
    assert_int_equal(tdmi_source_items(source), 90);
    assert_string_equal(tdmi_source_item(source, 0).path, "sample.tgz/10.png");
}

TEST(running_out_of_memory_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    static const char *const one[12] = {"a.ppm", "a.cls=1", "b.ppm", "b.json={\"label\":2}"};
    write_shard(&tree, "s/train/0.tar", one);
    write_shard(&tree, "s/val/0.tar", one);
    assert_survives_lack_of_memory(tree_path(&tree, "s"));
}

TEST_MAIN(NULL, NULL)
