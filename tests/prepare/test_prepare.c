/*
 * prepare: what comes out depends on content, seed and options alone, however it was made, and what
 * stands in the folder is respected.
 */
#include "unit.h"
#include "prepare/prepare_sets.h"

TEST_PREPARE(any_number_of_threads_gives_the_same_bytes)
{
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    struct tdm_prepare_result result = prepared(&set.options);
    assert_int_equal(result.images, N_CLASSES * PER_CLASS);
    assert_int_equal(result.val, N_CLASSES * 2);
    assert_int_equal(result.train, N_CLASSES * 18);
    assert_int_equal(result.classes, N_CLASSES);
    assert_int_equal(result.quarantined, 0);
    assert_int_equal(result.parts, 2);
    assert_int_equal(result.made, 2);
    assert_true(result.is_complete);
    set.options.folder = set.other;
    set.options.threads = 3;
    prepared(&set.options);
    assert_equal_folders(set.out, set.other);
}

TEST_PREPARE(another_seed_gives_another_table)
{
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    prepared(&set.options);
    set.options.folder = set.other;
    set.options.seed = 43;
    prepared(&set.options);
    tdmi_source *a = open_source(set.out), *b = open_source(set.other);
    int n_moved = 0;
    for (int64_t i = 0; i < tdmi_source_items(a); i++)
        n_moved += strcmp(tdmi_source_item(a, i).path, tdmi_source_item(b, i).path) != 0;
    assert_true(n_moved > N_CLASSES * PER_CLASS / 2);
    tdmi_source_close(a);
    tdmi_source_close(b);
}

/* ---- slices ------------------------------------------------------------------------------- */

TEST_PREPARE(slices_and_a_merge_give_the_same_bytes)
{
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    prepared(&set.options);
    set.options.folder = set.other;
    set.options.merge = true;
    refused(&set.options, TDM_E_FAILED, "not there or not whole (0, 1)");
    set.options.merge = false;
    for (int k = 3; k >= 1; k--) { /* 1-based, in any order; 2 of 3 has nothing to do */
        set.options.slice = k;
        set.options.slices = 3;
        struct tdm_prepare_result result = prepared(&set.options);
        assert_false(result.is_complete);
        assert_int_equal(result.made, k == 2 ? 0 : 1);
        assert_int_equal(result.images, N_CLASSES * PER_CLASS);
    }
    set.options.slice = set.options.slices = 0;
    set.options.merge = true;
    struct tdm_prepare_result result = prepared(&set.options);
    assert_true(result.is_complete);
    assert_int_equal(result.made, 0);
    assert_equal_folders(set.out, set.other);
}

/* ---- interrupted -------------------------------------------------------------------------- */

static void begin_again(const struct tdm_prepare_options *options, const char *whole)
{
    prepared(options);
    assert_equal_folders(whole, options->folder);
}

TEST_PREPARE(what_is_done_is_not_made_again)
{
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    prepared(&set.options);
    set.options.folder = set.other;
    set.options.slices = 2;
    prepared(&set.options); /* part 0 */
    set.options.slices = 0;
    tree_text(&set.tree, "other/_prepare/.part-00001.parquet.77.tmp", "half of it");
    tree_text(&set.tree, "other/_delta_log/.00000000000000000000.json.77.tmp", "half of it");
    tree_text(&set.tree, "other/._dataset.json.77.tmp", "half of it");
    struct tdm_prepare_result result = prepared(&set.options);
    assert_int_equal(result.made, 1);
    assert_equal_folders(set.out, set.other);
}

TEST_PREPARE(damaged_leftovers_are_made_again)
{
    static const char *const damaged[] = {"_prepare/look", "_prepare/part-00000.json", NULL};
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    prepared(&set.options);
    set.options.folder = set.other;
    for (int i = 0; i < 3; i++) {
        char path[300], text[300] = "{\"plan\":7,";
        set.options.slices = 2;
        prepared(&set.options);
        set.options.slices = 0;
        if (damaged[i] != NULL) {
            snprintf(path, sizeof path, "other/%s", damaged[i]);
            tree_text(&set.tree, path, text);
        } else { /* the part itself, one byte of it */
            DIR *list = opendir(set.other);
            for (struct dirent *entry; (entry = readdir(list)) != NULL;)
                if (strncmp(entry->d_name, "part-00000", 10) == 0) {
                    snprintf(path, sizeof path, "%s/%.200s", set.other, entry->d_name);
                    FILE *file = fopen(path, "r+b");
                    fseek(file, 500, SEEK_SET);
                    fputc(fgetc(file) ^ 1, file);
                    fclose(file);
                }
            closedir(list);
        }
        begin_again(&set.options, set.out);
        char command[300];
        snprintf(command, sizeof command, "rm -rf '%s'", set.other);
        assert_int_equal(system(command), 0);
    }
}

TEST_PREPARE(a_stopped_call_can_be_resumed)
{
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    prepared(&set.options);
    set.options.folder = set.other;
    tdm_stop_request();
    refused(&set.options, TDM_E_STOPPED, "stopped on request");
    tdm_stop_clear();
    begin_again(&set.options, set.out);
}

static struct tree few_pictures(void)
{
    struct tree tree = tree_new();
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "in/c%d/%d.ppm", i % 2, i);
        picture(&tree, name, 9, 9, (uint32_t)i);
    }
    return tree;
}

TEST_PREPARE(every_failing_allocation_is_an_error_that_can_be_repaired)
{
    struct tree tree = few_pictures();
    tree_text(&tree, "in/c0/bad.ppm", "P6\n9 9\n255\nx");
    TDMI_AT_END(set_free) struct set set = set_of(tree);
    set.options.train_fraction = set.options.val_fraction = 0.5;
    prepared(&set.options);
    set.options.folder = set.other;
    for (int64_t n = 1; prepare_failing(&set.options, n) != TDM_OK; n++)
        assert_true(n < 5000);
    assert_equal_folders(set.out, set.other);
}

/* Nothing that was made before is at hand, and want of memory is no fault of what was made. */
TEST_PREPARE(every_failing_allocation_of_a_whole_call_is_want_of_memory)
{
    struct tree tree = few_pictures();
    TDMI_AT_END(set_free) struct set set = set_of(tree);
    tdm_status status = TDM_E_MEMORY;
    for (int64_t n = 1; status != TDM_OK; n++) {
        char name[32];
        snprintf(name, sizeof name, "out-%d", (int)n);
        const char *folder = in(&set.tree, name);
        set.options.folder = folder;
        assert_true(n < 5000);
        status = prepare_failing(&set.options, n);
    }
}

/* ---- what stands there -------------------------------------------------------------------- */

TEST_PREPARE(a_finished_folder_is_known_again)
{
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    struct tdm_prepare_result first = prepared(&set.options);
    struct tdm_prepare_result again = prepared(&set.options);
    assert_int_equal(again.made, 0);
    assert_int_equal(again.images, first.images);
    assert_int_equal(again.val, first.val);
    assert_int_equal(again.bytes, first.bytes);
    assert_int_equal(again.parts, first.parts);
    assert_true(again.is_complete);
    set.options.fit = "crop";
    refused(&set.options, TDM_E_USAGE, "--fit pad");
    set.options.fit = "pad";
    set.options.val_fraction = 0.05;
    refused(&set.options, TDM_E_USAGE, "--split 0.9,0.1");
    set.options.val_fraction = 0.1;
}

TEST_PREPARE(other_folders_are_left_alone)
{
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    tree_text(&set.tree, "out/letter.txt", "dear reader");
    tree_text(&set.tree, "other", "a file");
    refused(&set.options, TDM_E_USAGE, "letter.txt");
    assert_int_equal(count_entries(set.out), 1);
    set.options.folder = set.other;
    refused(&set.options, TDM_E_USAGE, "is a file");
    set.options.folder = set.from;
    refused(&set.options, TDM_E_USAGE, "holds something else");
    set.options.folder = "s3://bucket/table";
    refused(&set.options, TDM_E_USAGE, "local folder");
}

TEST_PREPARE(changed_pictures_change_an_unfinished_table)
{
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    set.options.slices = 2;
    prepared(&set.options);
    picture(&set.tree, "in/class0/new.ppm", 20, 20, 1000);
    set.options.slices = 0;
    struct tdm_prepare_result result = prepared(&set.options);
    assert_int_equal(result.images, N_CLASSES * PER_CLASS + 1);
    set.options.folder = set.other;
    prepared(&set.options);
    assert_equal_folders(set.other, set.out);
}

TEST_PREPARE(wrong_options_are_named)
{
    const struct tdm_prepare_options good = options_of("nowhere", "nothing");
    struct tdm_prepare_options options = good;
    options.size = 0;
    refused(&options, TDM_E_USAGE, "a size of 0");
    options = good;
    options.codec = "gif";
    refused(&options, TDM_E_USAGE, "gif");
    options = good;
    options.fit = "fill";
    refused(&options, TDM_E_USAGE, "fill");
    options = good;
    options.compression = "lzma";
    refused(&options, TDM_E_USAGE, "lzma");
    options = good;
    options.quality = 80; /* options_of() asks for raw */
    refused(&options, TDM_E_USAGE, "--codec jpeg");
    options = good;
    options.crop_fraction = 0.875;
    refused(&options, TDM_E_USAGE, "--fit crop");
    options = good;
    options.slice = 4;
    options.slices = 3;
    refused(&options, TDM_E_USAGE, "slice 4 of 3");
    options = good;
    options.slices = 3;
    options.merge = true;
    refused(&options, TDM_E_USAGE, "at once");
}

TEST_MAIN(NULL, NULL)
