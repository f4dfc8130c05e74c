/* The split: a pure function of content, fair to every class, and never with a copy on both sides.
 */
#include "unit.h"
#include "data/audit/split_fixture.h"

TEST(every_class_is_divided_by_the_fractions)
{
    static const struct {
        double train, val, fraction;
        int per_class, n, n_train, n_val;
    } cases[] = {
        {0.9, 0.1, 1, 0, 100, 90, 10},   {0.9, 0.1, 1, 0, 15, 13, 2},
        {0.9, 0.1, 1, 0, 14, 13, 1},     {0.9, 0.1, 1, 0, 2, 1, 1},
        {0.9, 0.1, 1, 0, 3, 2, 1},       {0.5, 0.5, 1, 0, 5, 2, 3},
        {0.1, 0.9, 1, 0, 2, 1, 1},       {0.01, 0.99, 1, 0, 10, 1, 9},
        {1, 0, 1, 0, 10, 10, 0},         {0.5, 0.1, 1, 0, 100, 50, 10},
        {0.7, 0.3, 1, 0, 10, 7, 3},      {0.01, 0.01, 1, 0, 10, 1, 1},
        {0.9, 0.1, 0.5, 0, 100, 45, 5},  {0.9, 0.1, 1, 20, 100, 18, 2},
        {0.9, 0.1, 1, 500, 100, 90, 10}, {0.9, 0.1, 0.5, 4, 100, 3, 1},
        {1, 0, 0.001, 0, 100, 1, 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(fixture_free) struct fixture f = {.tree = tree_new()};
        add_pictures(&f.tree, "a", cases[c].n, 0);
        add_pictures(&f.tree, "b", cases[c].n, 1000);
        open_fixture(&f, 1);
        split_or_fail(&f, (struct tdmi_split_options){.train_fraction = cases[c].train,
                                                      .val_fraction = cases[c].val,
                                                      .fraction = cases[c].fraction,
                                                      .per_class = cases[c].per_class,
                                                      .seed = 7});
        for (int label = 0; label < 2; label++) {
            assert_int_equal(n_train(&f, label), cases[c].n_train);
            assert_int_equal(n_val(&f, label), cases[c].n_val);
        }
        assert_ascending_and_apart(&f.split);
    }
}

TEST(threads_names_and_folder_order_change_nothing)
{
    TDMI_AT_END(fixture_free) struct fixture a = {.tree = tree_new()};
    TDMI_AT_END(fixture_free) struct fixture b = {.tree = tree_new()};
    char name[100];
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "cat/%05u.ppm", i);
        tree_picture(&a.tree, name, i);
        snprintf(name, sizeof name, "cat/sub%u/other%u.ppm", i % 3, 999 - i);
        tree_picture(&b.tree, name, i);
    }
    open_fixture(&a, 1);
    open_fixture(&b, 4);
    split_or_fail(&a, nine_to_one);
    split_or_fail(&b, nine_to_one);
    assert_int_equal(a.split.n_val, 20);
    assert_int_equal(b.split.n_val, 20);
    for (int64_t i = 0; i < 20; i++) {
        int n_found = 0;
        for (int64_t j = 0; j < 20; j++)
            n_found += a.contents.hashes[a.split.val[i]] == b.contents.hashes[b.split.val[j]];
        assert_int_equal(n_found, 1);
    }
}

TEST(another_seed_gives_another_split)
{
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("a 200 0", 1);
    split_or_fail(&f, nine_to_one);
    int64_t first[20];
    memcpy(first, f.split.val, sizeof first);
    struct tdmi_split_options options = nine_to_one;
    options.seed++;
    split_or_fail(&f, options);
    int n_same = 0;
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 20; j++)
            n_same += first[i] == f.split.val[j];
    assert_true(n_same < 10);
}

TEST(hashes_are_of_the_content)
{
    TDMI_AT_END(fixture_free) struct fixture f = {.tree = tree_new()};
    tree_text(&f.tree, "a/1.ppm", "one");
    tree_text(&f.tree, "a/2.ppm", "two");
    open_fixture(&f, 1);
    split_or_fail(&f, nine_to_one);
    assert_int_equal(f.contents.n_items, 2);
    assert_true(f.contents.hashes[0] == tdmi_xxh64_of("one", 3, 0));
    assert_true(f.contents.hashes[1] == tdmi_xxh64_of("two", 3, 0));
}

/* Fractions of copies inside a class count contents; copies follow, across classes too. */
TEST(copies_stay_together)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        TDMI_AT_END(fixture_free) struct fixture f = {.tree = tree_new()};
        char name[100];
        for (uint32_t i = 0; i < 60; i++) {
            snprintf(name, sizeof name, "a/%u.ppm", i);
            tree_picture(&f.tree, name, i % 20);
            snprintf(name, sizeof name, "b/%u.ppm", i);
            tree_picture(&f.tree, name, i < 10 ? i : 1000 + i);
        }
        open_fixture(&f, 2);
        split_or_fail(&f,
                      (struct tdmi_split_options){
                          .train_fraction = 0.7, .val_fraction = 0.3, .fraction = 1, .seed = seed});
        assert_int_equal(f.split.n_train + f.split.n_val, 120);
        assert_int_equal(n_val(&f, 0), 18); /* 6 contents of 20, three copies each */
        assert_int_equal(f.split.n_torn, 40);
        for (int64_t t = 0; t < f.split.n_train; t++)
            for (int64_t v = 0; v < f.split.n_val; v++)
                assert_true(f.contents.hashes[f.split.train[t]] !=
                            f.contents.hashes[f.split.val[v]]);
    }
}

TEST(given_parts_are_kept)
{
    TDMI_AT_END(fixture_free)
    struct fixture f =
        fixture_of("train/a 10 0, train/b 10 100, val/a 5 200, val/b 5 300, test/a 5 400", 1);
    split_or_fail(&f, nine_to_one);
    assert_int_equal(f.split.n_train, 20);
    assert_int_equal(f.split.n_val, 10);
    assert_true(f.split.is_given);
    for (int64_t i = 0; i < f.split.n_train; i++)
        assert_int_equal(tdmi_source_item(f.source, f.split.train[i]).part, TDMI_PART_TRAIN);
    for (int64_t i = 0; i < f.split.n_val; i++)
        assert_int_equal(tdmi_source_item(f.source, f.split.val[i]).part, TDMI_PART_VAL);
    assert_true(f.contents.hashes[0] != 0);
}

TEST(fewer_are_taken_of_each_given_part)
{
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("train/a 10 0, val/a 6 200", 1);
    struct tdmi_split_options options = nine_to_one;
    options.fraction = 0.5;
    split_or_fail(&f, options);
    assert_int_equal(f.split.n_train, 5);
    assert_int_equal(f.split.n_val, 3);
    options.per_class = 2;
    split_or_fail(&f, options);
    assert_int_equal(f.split.n_train, 2);
    assert_int_equal(f.split.n_val, 2);
}

TEST(validation_comes_from_train_where_only_test_is_given)
{
    /* two copies of train pictures */
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("train/a 20 0, test/a 5 18", 1);
    tdm_log_set_level(TDM_LOG_SILENT);
    split_or_fail(&f, nine_to_one);
    tdm_log_set_level(TDM_LOG_WARNING);
    assert_int_equal(f.split.n_train, 16);
    assert_int_equal(f.split.n_val, 2);
    assert_false(f.split.is_given);
    assert_int_equal(side_of(&f, "train/a/00018.ppm"), '-');
    assert_int_equal(side_of(&f, "train/a/00019.ppm"), '-');
}

static uint64_t *sorted_hashes(const tdmi_contents *contents, const int64_t *items, int64_t n)
{
    uint64_t *hashes = malloc((size_t)n * sizeof *hashes);
    assert_non_null(hashes);
    for (int64_t i = 0; i < n; i++)
        hashes[i] = contents->hashes[items[i]];
    tdmi_hashes_sort(hashes, n);
    return hashes;
}

TEST(pictures_added_later_do_not_move_the_old_ones)
{
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("a 40 0, b 40 100", 1);
    split_or_fail(&f, nine_to_one);
    struct tdmi_split_stored stored = {.n_train = f.split.n_train, .n_val = f.split.n_val};
    uint64_t *train = sorted_hashes(&f.contents, f.split.train, f.split.n_train);
    uint64_t *val = sorted_hashes(&f.contents, f.split.val, f.split.n_val);
    stored.train = train;
    stored.val = val;
    close_fixture(&f);

    add_pictures(&f.tree, "a/more", 60, 1000);
    add_pictures(&f.tree, "c", 10, 2000);
    open_fixture(&f, 1);
    tdm_error err = {0};
    assert_int_equal(split_stored(&f, nine_to_one, stored, &err), TDM_OK);
    assert_int_equal(n_val(&f, 0), 10);
    assert_int_equal(n_train(&f, 0), 90);
    assert_int_equal(n_val(&f, 1), 4);
    assert_int_equal(n_val(&f, 2), 1);
    int n_kept = 0;
    for (int64_t i = 0; i < f.split.n_val; i++)
        n_kept += tdmi_hashes_have(val, stored.n_val, f.contents.hashes[f.split.val[i]]);
    assert_int_equal(n_kept, 8);
    n_kept = 0;
    for (int64_t i = 0; i < f.split.n_train; i++)
        n_kept += tdmi_hashes_have(train, stored.n_train, f.contents.hashes[f.split.train[i]]);
    assert_int_equal(n_kept, 72);
    free(train);
    free(val);
}

/* A stored assignment beats the seed: another seed alone moves nothing. */
TEST(a_stored_split_is_repeated_under_any_seed)
{
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("a 50 0", 1);
    struct tdmi_split_options options = nine_to_one;
    options.fraction = 0.6;
    split_or_fail(&f, options);
    int64_t n_first = f.split.n_val;
    uint64_t *train = sorted_hashes(&f.contents, f.split.train, f.split.n_train);
    uint64_t *val = sorted_hashes(&f.contents, f.split.val, f.split.n_val);
    struct tdmi_split_stored stored = {
        .train = train, .n_train = f.split.n_train, .val = val, .n_val = f.split.n_val};
    options.seed = 4711;
    tdm_error err = {0};
    assert_int_equal(split_stored(&f, options, stored, &err), TDM_OK);
    assert_int_equal(f.split.n_val, n_first);
    assert_int_equal(f.split.n_train, stored.n_train);
    uint64_t *again = sorted_hashes(&f.contents, f.split.val, f.split.n_val);
    assert_memory_equal(again, val, (size_t)n_first * sizeof *val);
    free(again);
    free(train);
    free(val);
}

TEST(a_smaller_fraction_takes_a_part_of_the_larger)
{
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("a 100 0", 1);
    bool is_used[100] = {0};
    struct tdmi_split_options options = nine_to_one;
    options.fraction = 0.5;
    split_or_fail(&f, options);
    for (int64_t i = 0; i < f.split.n_train; i++)
        is_used[f.split.train[i]] = true;
    for (int64_t i = 0; i < f.split.n_val; i++)
        is_used[f.split.val[i]] = true;
    options.fraction = 0.2;
    split_or_fail(&f, options);
    assert_int_equal(f.split.n_train + f.split.n_val, 20);
    for (int64_t i = 0; i < f.split.n_train; i++)
        assert_true(is_used[f.split.train[i]]);
    for (int64_t i = 0; i < f.split.n_val; i++)
        assert_true(is_used[f.split.val[i]]);
}

TEST(unreadable_pictures_are_counted_and_left_out)
{
    TDMI_AT_END(fixture_free) struct fixture f = {.tree = tree_new()};
    add_pictures(&f.tree, "a", 10, 0);
    assert_int_equal(symlink("nowhere", tree_path(&f.tree, "a/gone.ppm")), 0);
    open_fixture(&f, 2);
    tdm_log_set_level(TDM_LOG_SILENT);
    split_or_fail(&f, nine_to_one);
    tdm_log_set_level(TDM_LOG_WARNING);
    assert_int_equal(f.contents.n_unreadable, 1);
    assert_int_equal(f.split.n_train + f.split.n_val, 10);
    assert_int_equal(side_of(&f, "a/gone.ppm"), '-');
    assert_true(f.contents.hashes[10] == 0);
}

TEST(options_that_make_no_split_are_refused_with_a_sentence)
{
    static const struct {
        double train, val, fraction;
        int per_class;
        tdm_status status;
        const char *word;
    } cases[] = {
        {0.9, 0.1, 1, 0, TDM_E_INPUT, "validation"},
        {0, 0.1, 1, 0, TDM_E_USAGE, "train must be above 0"},
        {0.95, 0.1, 1, 0, TDM_E_USAGE, "at most 1"},
        {0.9, -0.1, 1, 0, TDM_E_USAGE, "at least 0"},
        {0.9, 0.1, 0, 0, TDM_E_USAGE, "above 0"},
        {0.9, 0.1, 1.5, 0, TDM_E_USAGE, "at most 1"},
        {0.9, 0.1, 1, -1, TDM_E_USAGE, "-1 images"},
    };
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("a 1 0, b 1 1", 1);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        assert_refused(&f,
                       (struct tdmi_split_options){.train_fraction = cases[c].train,
                                                   .val_fraction = cases[c].val,
                                                   .fraction = cases[c].fraction,
                                                   .per_class = cases[c].per_class,
                                                   .seed = 42},
                       cases[c].status, cases[c].word);
}

TEST(images_that_make_no_split_are_refused_with_a_sentence)
{
    static const char *const cases[][2] = {
        {"a 1 0, b 1 1, empty 0 0", "'empty'"},
        {". 4 0", "no classes"},
        {"train/a 4 0, val/a 4 10, val/b 4 20", "'b'"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(fixture_free) struct fixture f = fixture_of(cases[c][0], 1);
        assert_refused(&f, nine_to_one, TDM_E_INPUT, cases[c][1]);
    }
}

/* Computed by a second implementation in another language. A split that moved between versions
 * would let old validation pictures train. */
TEST(the_split_never_changes)
{
    TDMI_AT_END(fixture_free) struct fixture f = {.tree = tree_new()};
    char name[100], content[100];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "a/%02d.ppm", i);
        snprintf(content, sizeof content, "content %d", i);
        tree_text(&f.tree, name, content);
    }
    open_fixture(&f, 1);
    struct tdmi_split_options options = nine_to_one;
    options.fraction = 0.8;
    split_or_fail(&f, options);
    static const int64_t val[] = {9, 24}, left_out[] = {11, 12, 13, 17, 21, 29};
    assert_int_equal(f.split.n_val, 2);
    assert_memory_equal(f.split.val, val, sizeof val);
    assert_int_equal(f.split.n_train, 22);
    for (int i = 0; i < 6; i++)
        for (int64_t t = 0; t < 22; t++)
            assert_true(f.split.train[t] != left_out[i]);
}

/* Each allocation fails in turn, those of the threads that hash too. */
TEST(running_out_of_memory_is_an_error)
{
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("a 40 0", 2);
    bool has_passed = false;
    for (int64_t n = 1; n < 200 && !has_passed; n++) {
        tdm_error err = {0};
        tdmi_memory_fail_from(n);
        tdm_status status = split_with(&f, nine_to_one, &err);
        tdmi_memory_fail_from(0);
        has_passed = status == TDM_OK;
        assert_true(has_passed || (status == TDM_E_MEMORY && err.n_frames > 0));
        assert_true(has_passed || f.split.train == NULL);
    }
    assert_true(has_passed);
}

/* ---- the third part, copies ---- */

/* The third part lies between the two others, so neither of them moves when it is asked for. */
TEST(a_third_part_is_what_the_others_leave)
{
    const struct tdmi_split_options three = {.train_fraction = 0.8,
                                             .val_fraction = 0.1,
                                             .test_fraction = 0.1,
                                             .fraction = 1,
                                             .seed = 42};
    struct tdmi_split_options two = three, less = three;
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("a 100 1000, b 40 2000", 2);
    two.test_fraction = 0.0;
    less.test_fraction = 0.05;
    split_or_fail(&f, two);
    const int64_t n_without = f.split.n_train, n_validation = f.split.n_val;
    assert_int_equal(f.split.n_test, 0);
    split_or_fail(&f, three);
    assert_int_equal(f.split.n_train, n_without);
    assert_int_equal(f.split.n_val, n_validation);
    assert_int_equal(f.split.n_test, 14);
    assert_int_equal(count_of_class(&f, f.split.test, f.split.n_test, 0), 10);
    assert_int_equal(f.split.n_train + f.split.n_val + f.split.n_test, 140);
    assert_ascending_and_apart(&f.split);
    for (int64_t i = 0; i < f.split.n_test; i++)
        for (int64_t v = 0; v < f.split.n_val; v++)
            assert_true(f.split.test[i] != f.split.val[v]);
    const int64_t first = f.split.test[0];
    split_or_fail(&f, less);
    assert_int_equal(f.split.n_test, 7);
    bool is_in = false;
    split_or_fail(&f, three);
    for (int64_t i = 0; i < f.split.n_test; i++)
        is_in = is_in || f.split.test[i] == first;
    assert_true(is_in);
}

TEST(a_stored_test_stays_the_test_when_pictures_are_added)
{
    const struct tdmi_split_options three = {
        .train_fraction = 0.6, .val_fraction = 0.2, .test_fraction = 0.2, .fraction = 1, .seed = 5};
    TDMI_AT_END(fixture_free) struct fixture f = fixture_of("a 50 1000, b 50 2000", 1);
    uint64_t test[20];
    tdm_error err = {0};
    split_or_fail(&f, three);
    assert_int_equal(f.split.n_test, 20);
    for (int64_t i = 0; i < 20; i++)
        test[i] = f.contents.hashes[f.split.test[i]];
    tdmi_hashes_sort(test, 20);
    close_fixture(&f);
    add_pictures(&f.tree, "a", 90, 1000);
    open_fixture(&f, 1);
    const struct tdmi_split_stored stored = {.test = test, .n_test = 20};
    assert_int_equal(split_stored(&f, three, stored, &err), TDM_OK);
    int64_t n_kept = 0;
    for (int64_t i = 0; i < f.split.n_test; i++)
        n_kept += tdmi_hashes_have(test, 20, f.contents.hashes[f.split.test[i]]);
    assert_int_equal(n_kept, 20);
    assert_int_equal(f.split.n_test, 28);
}

TEST(a_test_that_the_source_gives_is_the_test)
{
    const struct tdmi_split_options three = {.train_fraction = 0.8,
                                             .val_fraction = 0.1,
                                             .test_fraction = 0.1,
                                             .fraction = 1,
                                             .seed = 42};
    TDMI_AT_END(fixture_free)
    struct fixture f =
        fixture_of("train/a 40 1000, train/b 40 2000, test/a 7 3000, test/b 6 4000", 2);
    split_or_fail(&f, three);
    assert_int_equal(f.split.n_test, 13);
    assert_int_equal(f.split.n_val, 8);
    assert_int_equal(f.split.n_train, 72); /* nothing of it is put aside for another test */
}

TEST(copies_are_counted)
{
    TDMI_AT_END(fixture_free)
    struct fixture f = fixture_of("a 20 1000, b 20 2000, a/again 3 1000, b/wrong 2 1010", 1);
    split_or_fail(&f, nine_to_one);
    assert_int_equal(f.split.n_copies, 3);
    assert_int_equal(f.split.n_torn, 4);
}

TEST_MAIN(NULL, NULL)
