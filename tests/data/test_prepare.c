/*
 * prepare: what comes out depends on content, seed and options alone, however it was made, and what
 * stands in the folder is respected.
 */
#include "prepare_sets.h"

static void any_number_of_threads_gives_the_same_bytes(void **state)
{
    (void)state;
    NEEDS_ARROW();
    struct tree tree = pictures();
    char *from = in(&tree, "in"), *one = in(&tree, "one"), *three = in(&tree, "three");
    struct tdm_prepare_options options = options_of(from, one);
    struct tdm_prepare_result result = prepared(&options);
    assert_int_equal(result.images, N_CLASSES * PER_CLASS);
    assert_int_equal(result.val, N_CLASSES * 2);
    assert_int_equal(result.train, N_CLASSES * 18);
    assert_int_equal(result.classes, N_CLASSES);
    assert_int_equal(result.quarantined, 0);
    assert_int_equal(result.parts, 2);
    assert_int_equal(result.made, 2);
    assert_true(result.is_complete);
    options.folder = three;
    options.threads = 3;
    prepared(&options);
    assert_equal_folders(one, three);
    free(from), free(one), free(three);
    tree_free(&tree);
}

static void another_seed_gives_another_table(void **state)
{
    (void)state;
    NEEDS_ARROW();
    struct tree tree = pictures();
    char *from = in(&tree, "in"), *one = in(&tree, "one"), *two = in(&tree, "two");
    struct tdm_prepare_options options = options_of(from, one);
    prepared(&options);
    options.folder = two;
    options.seed = 43;
    prepared(&options);
    tdmi_source *a = open_source(one), *b = open_source(two);
    int n_moved = 0;
    for (int64_t i = 0; i < tdmi_source_items(a); i++)
        n_moved += strcmp(tdmi_source_item(a, i).path, tdmi_source_item(b, i).path) != 0;
    assert_true(n_moved > N_CLASSES * PER_CLASS / 2);
    tdmi_source_close(a);
    tdmi_source_close(b);
    free(from), free(one), free(two);
    tree_free(&tree);
}

/* ---- slices ------------------------------------------------------------------------------- */

static void slices_and_a_merge_give_the_same_bytes(void **state)
{
    (void)state;
    NEEDS_ARROW();
    struct tree tree = pictures();
    char *from = in(&tree, "in"), *whole = in(&tree, "whole"), *cut = in(&tree, "cut");
    struct tdm_prepare_options options = options_of(from, whole);
    prepared(&options);
    options.folder = cut;
    options.merge = true;
    refused(&options, TDM_E_FAILED, "not there or not whole (0, 1)");
    options.merge = false;
    for (int k = 3; k >= 1; k--) { /* 1-based, in any order; 2 of 3 has nothing to do */
        options.slice = k;
        options.slices = 3;
        struct tdm_prepare_result result = prepared(&options);
        assert_false(result.is_complete);
        assert_int_equal(result.made, k == 2 ? 0 : 1);
        assert_int_equal(result.images, N_CLASSES * PER_CLASS);
    }
    options.slice = options.slices = 0;
    options.merge = true;
    struct tdm_prepare_result result = prepared(&options);
    assert_true(result.is_complete);
    assert_int_equal(result.made, 0);
    assert_equal_folders(whole, cut);
    free(from), free(whole), free(cut);
    tree_free(&tree);
}

/* ---- interrupted -------------------------------------------------------------------------- */

static void begin_again(const struct tdm_prepare_options *options, const char *whole)
{
    prepared(options);
    assert_equal_folders(whole, options->folder);
}

static void what_is_done_is_not_made_again(void **state)
{
    (void)state;
    NEEDS_ARROW();
    struct tree tree = pictures();
    char *from = in(&tree, "in"), *whole = in(&tree, "whole"), *part = in(&tree, "part");
    struct tdm_prepare_options options = options_of(from, whole);
    prepared(&options);
    options.folder = part;
    options.slices = 2;
    prepared(&options); /* part 0 */
    options.slices = 0;
    tree_text(&tree, "part/_prepare/.part-00001.parquet.77.tmp", "half of it");
    tree_text(&tree, "part/_delta_log/.00000000000000000000.json.77.tmp", "half of it");
    tree_text(&tree, "part/._dataset.json.77.tmp", "half of it");
    struct tdm_prepare_result result = prepared(&options);
    assert_int_equal(result.made, 1);
    assert_equal_folders(whole, part);
    free(from), free(whole), free(part);
    tree_free(&tree);
}

static void damaged_leftovers_are_made_again(void **state)
{
    (void)state;
    NEEDS_ARROW();
    static const char *const damaged[] = {"_prepare/look", "_prepare/part-00000.json", NULL};
    struct tree tree = pictures();
    char *from = in(&tree, "in"), *whole = in(&tree, "whole"), *part = in(&tree, "part");
    struct tdm_prepare_options options = options_of(from, whole);
    prepared(&options);
    options.folder = part;
    for (int i = 0; i < 3; i++) {
        char path[300], text[300] = "{\"plan\":7,";
        options.slices = 2;
        prepared(&options);
        options.slices = 0;
        if (damaged[i] != NULL) {
            snprintf(path, sizeof path, "part/%s", damaged[i]);
            tree_text(&tree, path, text);
        } else { /* the part itself, one byte of it */
            DIR *list = opendir(part);
            for (struct dirent *entry; (entry = readdir(list)) != NULL;)
                if (strncmp(entry->d_name, "part-00000", 10) == 0) {
                    snprintf(path, sizeof path, "%s/%.200s", part, entry->d_name);
                    FILE *file = fopen(path, "r+b");
                    fseek(file, 500, SEEK_SET);
                    fputc(fgetc(file) ^ 1, file);
                    fclose(file);
                }
            closedir(list);
        }
        begin_again(&options, whole);
        char command[300];
        snprintf(command, sizeof command, "rm -rf '%s'", part);
        assert_int_equal(system(command), 0);
    }
    free(from), free(whole), free(part);
    tree_free(&tree);
}

static void a_stop_leaves_what_can_be_gone_on_with(void **state)
{
    (void)state;
    NEEDS_ARROW();
    struct tree tree = pictures();
    char *from = in(&tree, "in"), *whole = in(&tree, "whole"), *part = in(&tree, "part");
    struct tdm_prepare_options options = options_of(from, whole);
    prepared(&options);
    options.folder = part;
    tdm_stop_request();
    refused(&options, TDM_E_STOPPED, "stopped on request");
    tdm_stop_clear();
    begin_again(&options, whole);
    free(from), free(whole), free(part);
    tree_free(&tree);
}

static void every_failing_allocation_is_an_error_that_can_be_mended(void **state)
{
    (void)state;
    NEEDS_ARROW();
    struct tree tree = tree_new();
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "in/c%d/%d.ppm", i % 2, i);
        picture(&tree, name, 9, 9, (uint32_t)i);
    }
    tree_text(&tree, "in/c0/bad.ppm", "P6\n9 9\n255\nx");
    char *from = in(&tree, "in"), *whole = in(&tree, "whole"), *part = in(&tree, "part");
    struct tdm_prepare_options options = options_of(from, whole);
    options.train_fraction = options.val_fraction = 0.5;
    prepared(&options);
    options.folder = part;
    for (int64_t n = 1;; n++) {
        struct tdm_prepare_result result;
        tdm_error err = {0};
        assert_true(n < 5000);
        tdmi_memory_fail_from(n);
        tdm_status status = tdm_prepare(&options, (tdm_sink){0}, &result, &err);
        tdmi_memory_fail_from(0);
        if (status == TDM_OK)
            break;
        assert_int_equal(status, TDM_E_MEMORY);
        assert_true(err.n_frames > 0);
    }
    assert_equal_folders(whole, part);
    free(from), free(whole), free(part);
    tree_free(&tree);
}

/* ---- what stands there -------------------------------------------------------------------- */

static void a_finished_folder_is_known_again(void **state)
{
    (void)state;
    NEEDS_ARROW();
    struct tree tree = pictures();
    char *from = in(&tree, "in"), *out = in(&tree, "out");
    struct tdm_prepare_options options = options_of(from, out);
    struct tdm_prepare_result first = prepared(&options);
    struct tdm_prepare_result again = prepared(&options);
    assert_int_equal(again.made, 0);
    assert_int_equal(again.images, first.images);
    assert_int_equal(again.val, first.val);
    assert_int_equal(again.bytes, first.bytes);
    assert_int_equal(again.parts, first.parts);
    assert_true(again.is_complete);
    options.fit = "crop";
    refused(&options, TDM_E_USAGE, "--fit pad");
    options.fit = "pad";
    options.val_fraction = 0.05;
    refused(&options, TDM_E_USAGE, "--split 0.9,0.1");
    options.val_fraction = 0.1;
    picture(&tree, "in/class0/new.ppm", 20, 20, 1000);
    refused(&options, TDM_E_USAGE, "60 then, 61 now");
    free(from), free(out);
    tree_free(&tree);
}

static void other_folders_are_left_alone(void **state)
{
    (void)state;
    NEEDS_ARROW();
    struct tree tree = pictures();
    char *from = in(&tree, "in"), *out = in(&tree, "out"), *file = in(&tree, "file");
    tree_text(&tree, "out/letter.txt", "dear reader");
    tree_text(&tree, "file", "a file");
    struct tdm_prepare_options options = options_of(from, out);
    refused(&options, TDM_E_USAGE, "letter.txt");
    assert_int_equal(count_entries(out), 1);
    options.folder = file;
    refused(&options, TDM_E_USAGE, "is a file");
    options.folder = from;
    refused(&options, TDM_E_USAGE, "holds something else");
    options.folder = "s3://bucket/table";
    refused(&options, TDM_E_USAGE, "local folder");
    free(from), free(out), free(file);
    tree_free(&tree);
}

static void changed_pictures_change_an_unfinished_table(void **state)
{
    (void)state;
    NEEDS_ARROW();
    struct tree tree = pictures();
    char *from = in(&tree, "in"), *out = in(&tree, "out"), *fresh = in(&tree, "fresh");
    struct tdm_prepare_options options = options_of(from, out);
    options.slices = 2;
    prepared(&options);
    picture(&tree, "in/class0/new.ppm", 20, 20, 1000);
    options.slices = 0;
    struct tdm_prepare_result result = prepared(&options);
    assert_int_equal(result.images, N_CLASSES * PER_CLASS + 1);
    options.folder = fresh;
    prepared(&options);
    assert_equal_folders(fresh, out);
    free(from), free(out), free(fresh);
    tree_free(&tree);
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    NEEDS_ARROW();
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
    options.slice = 4;
    options.slices = 3;
    refused(&options, TDM_E_USAGE, "slice 4 of 3");
    options = good;
    options.slices = 3;
    options.merge = true;
    refused(&options, TDM_E_USAGE, "at once");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_bytes),
        cmocka_unit_test(another_seed_gives_another_table),
        cmocka_unit_test(slices_and_a_merge_give_the_same_bytes),
        cmocka_unit_test(what_is_done_is_not_made_again),
        cmocka_unit_test(damaged_leftovers_are_made_again),
        cmocka_unit_test(a_stop_leaves_what_can_be_gone_on_with),
        cmocka_unit_test(every_failing_allocation_is_an_error_that_can_be_mended),
        cmocka_unit_test(a_finished_folder_is_known_again),
        cmocka_unit_test(other_folders_are_left_alone),
        cmocka_unit_test(changed_pictures_change_an_unfinished_table),
        cmocka_unit_test(wrong_options_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
