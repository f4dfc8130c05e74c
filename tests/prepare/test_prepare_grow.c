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

/* Half of the images train. */
static struct set half_set(void)
{
    struct set set = set_of(pictures());
    set.options.train_fraction = 0.5;
    set.options.val_fraction = 0.3;
    return set;
}

TEST_PREPARE(stored_assignments_win_when_files_are_added)
{
    TDMI_AT_END(set_free) struct set set = half_set();
    prepared(&set.options);
    grow(&set.tree);
    struct tdm_prepare_result result = prepared(&set.options);
    assert_int_equal(result.version, 1);
    assert_int_equal(result.added, 19);
    assert_int_equal(result.removed, 2);
    assert_int_equal(result.images, 60 + 19 - 2);
    assert_int_equal(result.classes, N_CLASSES + 1);

    const char *old = in(&set.tree, "out@v0");
    tdmi_source *before = open_source(old), *now = open_source(set.out);
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
    assert_in_range(result.val, 21, 26); /* of 77, where 0.3 is the fraction */
    for (int64_t i = 0; i < 60; i++)     /* time travel */
        assert_int_equal(tdmi_source_read(before, i, &bytes, NULL), TDM_OK);
    tdmi_text_release(&bytes);
    tdmi_source_close(before);
    tdmi_source_close(now);

    struct tdm_prepare_result again = prepared(&set.options);
    assert_int_equal(again.made, 0);
    assert_int_equal(again.version, 1);
    assert_int_equal(again.images, 77);
}

/* Parts whose rows are all wanted still are not written again. */
TEST_PREPARE(parts_that_lose_nothing_are_kept)
{
    TDMI_AT_END(set_free) struct set set = half_set();
    struct tdm_prepare_result first = prepared(&set.options);
    picture(&set.tree, "in/class0/new.ppm", 20, 20, 1000);
    struct tdm_prepare_result second = prepared(&set.options);
    assert_int_equal(second.made, 1);
    assert_int_equal(second.parts, first.parts + 1);
    assert_int_equal(second.images, 61);
    assert_int_equal(second.removed, 0);
    unlink(tree_path(&set.tree, "in/class0/new.ppm"));
    struct tdm_prepare_result third = prepared(&set.options); /* a part goes, none is made */
    assert_int_equal(third.version, 2);
    assert_int_equal(third.made, 0);
    assert_int_equal(third.parts, first.parts);
    assert_int_equal(third.images, 60);
    assert_int_equal(third.bytes, first.bytes);
}

TEST_PREPARE(slices_and_kills_give_the_same_update)
{
    TDMI_AT_END(set_free) struct set set = half_set();
    prepared(&set.options);
    set.options.folder = set.other;
    prepared(&set.options);
    TDMI_AT_END(tdmi_text_release) tdmi_text dataset = {0};
    read_all(tree_path(&set.tree, "other/_dataset.json"), &dataset);
    grow(&set.tree);
    set.options.folder = set.out;
    prepared(&set.options);

    set.options.folder = set.other;
    set.options.slices = 2;
    set.options.slice = 1;
    assert_false(prepared(&set.options).is_complete);
    tdmi_source *meanwhile = open_source(set.other); /* until it is finished, the version before */
    assert_int_equal(tdmi_source_items(meanwhile), 60);
    tdmi_source_close(meanwhile);
    set.options.slices = set.options.slice = 0;
    prepared(&set.options);
    assert_equal_folders(set.out, set.other);

    /* Killed when the log was written and _dataset.json not yet. */
    tree_file(&set.tree, "other/_dataset.json", dataset.bytes, dataset.length_bytes);
    struct tdm_prepare_result result = prepared(&set.options);
    assert_int_equal(result.version, 1);
    assert_equal_folders(set.out, set.other);
}

TEST_PREPARE(what_another_program_changed_is_left_alone)
{
    TDMI_AT_END(set_free) struct set set = half_set();
    prepared(&set.options);
    tree_text(&set.tree, "out/_delta_log/00000000000000000001.json",
              "{\"add\":{\"path\":\"theirs.parquet\",\"partitionValues\":{},\"size\":1,"
              "\"modificationTime\":0,\"dataChange\":true}}\n");
    grow(&set.tree);
    refused(&set.options, TDM_E_USAGE, "theirs.parquet");
}

TEST_PREPARE(every_failing_allocation_leaves_a_table)
{
    TDMI_AT_END(set_free) struct set set = half_set();
    prepared(&set.options);
    set.options.folder = set.other;
    prepared(&set.options);
    grow(&set.tree);
    set.options.folder = set.out;
    prepared(&set.options);
    set.options.folder = set.other;
    for (int64_t n = 1; prepare_failing(&set.options, n) != TDM_OK;)
        n += 1 + n / 12;
    prepared(&set.options);
    assert_equal_folders(set.out, set.other);
}

TEST_MAIN(NULL, NULL)
