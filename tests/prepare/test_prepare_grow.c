/*
 * prepare into a finished table whose source has changed: what was stored stays where it stood,
 * what is new comes in a new version of the Delta table, what went goes, and old versions stay
 * readable.
 */
#include "unit.h"
#include "prepare/prepare_sets.h"

#include <inttypes.h>

/* Five pictures more in each class, two gone, and a class whose name comes before all others. */
static void grow(const struct tree *tree)
{
    char name[64];
    for (int i = 0; i < 15; i++) {
        snprintf(name, sizeof name, "in/class%d/new%02d.ppm", i % N_CLASSES, i);
        picture(tree, name, 22, 21 + i % 3, 500u + (uint32_t)i);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "in/another/p%d.ppm", i);
        picture(tree, name, 23, 23, 700u + (uint32_t)i);
    }
    unlink(tree_path(tree, "in/class0/p00.ppm"));
    unlink(tree_path(tree, "in/class2/p05.ppm"));
}

static int64_t find(const tdmi_source *source, uint64_t hash)
{
    for (int64_t i = 0; i < tdmi_source_items(source); i++)
        if (tdmi_source_hash(source, i) == hash)
            return i;
    return -1;
}

static struct tdm_prepare_options grown_options(const char *from, const char *out)
{
    struct tdm_prepare_options options = options_of(from, out);
    options.train_fraction = 0.5;
    options.val_fraction = 0.3;
    return options;
}

TEST(stored_assignments_win_when_files_are_added)
{
    NEEDS_ARROW();
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    char *from = in(&tree, "in"), *out = in(&tree, "out"), *old = in(&tree, "out@v0");
    struct tdm_prepare_options options = grown_options(from, out);
    prepared(&options);
    grow(&tree);
    struct tdm_prepare_result result = prepared(&options);
    assert_int_equal(result.version, 1);
    assert_int_equal(result.added, 19);
    assert_int_equal(result.removed, 2);
    assert_int_equal(result.images, 60 + 19 - 2);
    assert_int_equal(result.classes, N_CLASSES + 1);

    tdmi_source *before = open_source(old), *now = open_source(out);
    assert_int_equal(tdmi_source_items(before), 60);
    assert_int_equal(tdmi_source_items(now), 77);
    assert_classes(before, "class0 class1 class2");
    assert_classes(now, "class0 class1 class2 another"); /* labels stay what they were */
    int64_t n_gone = 0, n_in[4] = {0};
    for (int64_t i = 0; i < 60; i++) {
        int64_t at = find(now, tdmi_source_hash(before, i));
        n_gone += at < 0;
        if (at >= 0)
            assert_int_equal(tdmi_source_item(now, at).part, tdmi_source_item(before, i).part);
    }
    assert_int_equal(n_gone, 2);
    tdmi_text bytes = {0};
    for (int64_t i = 0; i < 77; i++) {
        n_in[tdmi_source_item(now, i).part]++;
        assert_int_equal(tdmi_source_read(now, i, &bytes, NULL), TDM_OK);
    }
    assert_int_equal(n_in[TDMI_PART_TRAIN], result.train);
    assert_int_equal(n_in[TDMI_PART_VAL], result.val);
    assert_int_equal(n_in[TDMI_PART_TEST], result.test);
    assert_in_range(result.val, 21, 26); /* of 77, where 0.3 is asked for */
    for (int64_t i = 0; i < 60; i++)     /* time travel */
        assert_int_equal(tdmi_source_read(before, i, &bytes, NULL), TDM_OK);
    tdmi_text_release(&bytes);
    tdmi_source_close(before);
    tdmi_source_close(now);

    struct tdm_prepare_result again = prepared(&options);
    assert_int_equal(again.made, 0);
    assert_int_equal(again.version, 1);
    assert_int_equal(again.images, 77);
    free(from), free(out), free(old);
}

/* Parts whose rows are all wanted still are not written again. */
TEST(parts_that_lose_nothing_are_kept)
{
    NEEDS_ARROW();
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    char *from = in(&tree, "in"), *out = in(&tree, "out");
    struct tdm_prepare_options options = grown_options(from, out);
    struct tdm_prepare_result first = prepared(&options);
    picture(&tree, "in/class0/new.ppm", 20, 20, 1000);
    struct tdm_prepare_result second = prepared(&options);
    assert_int_equal(second.made, 1);
    assert_int_equal(second.parts, first.parts + 1);
    assert_int_equal(second.images, 61);
    assert_int_equal(second.removed, 0);
    unlink(tree_path(&tree, "in/class0/new.ppm"));
    struct tdm_prepare_result third = prepared(&options); /* a part goes, none is made */
    assert_int_equal(third.version, 2);
    assert_int_equal(third.made, 0);
    assert_int_equal(third.parts, first.parts);
    assert_int_equal(third.images, 60);
    assert_int_equal(third.bytes, first.bytes);
    free(from), free(out);
}

TEST(slices_and_kills_give_the_same_update)
{
    NEEDS_ARROW();
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    char *from = in(&tree, "in"), *whole = in(&tree, "whole"), *cut = in(&tree, "cut");
    struct tdm_prepare_options options = grown_options(from, whole);
    prepared(&options);
    options.folder = cut;
    prepared(&options);
    TDMI_AT_END(tdmi_text_release) tdmi_text dataset = {0};
    read_all(tree_path(&tree, "cut/_dataset.json"), &dataset);
    grow(&tree);
    options.folder = whole;
    prepared(&options);

    options.folder = cut;
    options.slices = 2;
    options.slice = 1;
    assert_false(prepared(&options).is_complete);
    tdmi_source *meanwhile = open_source(cut); /* until it is finished, the version before */
    assert_int_equal(tdmi_source_items(meanwhile), 60);
    tdmi_source_close(meanwhile);
    options.slices = options.slice = 0;
    prepared(&options);
    assert_equal_folders(whole, cut);

    /* Killed when the log was written and _dataset.json not yet. */
    tree_file(&tree, "cut/_dataset.json", dataset.bytes, dataset.length_bytes);
    struct tdm_prepare_result result = prepared(&options);
    assert_int_equal(result.version, 1);
    assert_equal_folders(whole, cut);
    free(from), free(whole), free(cut);
}

TEST(what_another_program_changed_is_left_alone)
{
    NEEDS_ARROW();
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    char *from = in(&tree, "in"), *out = in(&tree, "out");
    struct tdm_prepare_options options = grown_options(from, out);
    prepared(&options);
    tree_text(&tree, "out/_delta_log/00000000000000000001.json",
              "{\"add\":{\"path\":\"theirs.parquet\",\"partitionValues\":{},\"size\":1,"
              "\"modificationTime\":0,\"dataChange\":true}}\n");
    grow(&tree);
    refused(&options, TDM_E_USAGE, "theirs.parquet");
    free(from), free(out);
}

TEST(every_failing_allocation_leaves_a_table)
{
    NEEDS_ARROW();
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    char *from = in(&tree, "in"), *whole = in(&tree, "whole"), *out = in(&tree, "out");
    struct tdm_prepare_options options = grown_options(from, whole);
    prepared(&options);
    options.folder = out;
    prepared(&options);
    grow(&tree);
    options.folder = whole;
    prepared(&options);
    options.folder = out;
    for (int64_t fail_at = 1;; fail_at += 1 + fail_at / 12) {
        struct tdm_prepare_result result = {.struct_bytes = sizeof result};
        tdm_error err = {0};
        tdmi_memory_fail_from(fail_at);
        tdm_status status = tdm_prepare(&options, (tdm_sink){0}, &result, &err);
        tdmi_memory_fail_from(0);
        if (status == TDM_OK)
            break;
        assert_int_equal(status, TDM_E_MEMORY);
    }
    prepared(&options);
    assert_equal_folders(whole, out);
    free(from), free(whole), free(out);
}

TEST_MAIN(NULL, NULL)
