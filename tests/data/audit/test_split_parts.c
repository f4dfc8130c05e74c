/* The third part of a split, and what is known of copies from splitting. */
#include "unit.h"
#include "data/audit/split_fixture.h"

/* The third part lies between the two others, so neither of them moves when it is asked for. */
TEST(a_third_part_is_what_the_others_leave)
{
    const struct tdmi_split_options three = {.train_fraction = 0.8,
                                             .val_fraction = 0.1,
                                             .test_fraction = 0.1,
                                             .fraction = 1,
                                             .seed = 42};
    struct tdmi_split_options two = three, less = three;
    struct fixture f = {.tree = tree_new()};
    (void)state;
    two.test_fraction = 0.0;
    less.test_fraction = 0.05;
    add_pictures(&f.tree, "a", 100, 1000);
    add_pictures(&f.tree, "b", 40, 2000);
    open_fixture(&f, 2);
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
    close_fixture(&f);
    tree_free(&f.tree);
}

TEST(a_stored_test_stays_the_test_when_pictures_are_added)
{
    const struct tdmi_split_options three = {
        .train_fraction = 0.6, .val_fraction = 0.2, .test_fraction = 0.2, .fraction = 1, .seed = 5};
    struct fixture f = {.tree = tree_new()};
    uint64_t test[20];
    tdm_error err = {0};
    (void)state;
    add_pictures(&f.tree, "a", 50, 1000);
    add_pictures(&f.tree, "b", 50, 2000);
    open_fixture(&f, 1);
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
    close_fixture(&f);
    tree_free(&f.tree);
}

TEST(a_test_that_the_source_gives_is_the_test)
{
    const struct tdmi_split_options three = {.train_fraction = 0.8,
                                             .val_fraction = 0.1,
                                             .test_fraction = 0.1,
                                             .fraction = 1,
                                             .seed = 42};
    struct fixture f = {.tree = tree_new()};
    (void)state;
    add_pictures(&f.tree, "train/a", 40, 1000);
    add_pictures(&f.tree, "train/b", 40, 2000);
    add_pictures(&f.tree, "test/a", 7, 3000);
    add_pictures(&f.tree, "test/b", 6, 4000);
    open_fixture(&f, 2);
    split_or_fail(&f, three);
    assert_int_equal(f.split.n_test, 13);
    assert_int_equal(f.split.n_val, 8);
    assert_int_equal(f.split.n_train, 72); /* nothing of it is put aside for another test */
    close_fixture(&f);
    tree_free(&f.tree);
}

TEST(copies_are_counted)
{
    struct fixture f = {.tree = tree_new()};
    (void)state;
    add_pictures(&f.tree, "a", 20, 1000);
    add_pictures(&f.tree, "b", 20, 2000);
    add_pictures(&f.tree, "a/again", 3, 1000);
    add_pictures(&f.tree, "b/wrong", 2, 1010);
    open_fixture(&f, 1);
    split_or_fail(&f, nine_to_one);
    assert_int_equal(f.split.n_copies, 3);
    assert_int_equal(f.split.n_torn, 2);
    close_fixture(&f);
    tree_free(&f.tree);
}

TEST_MAIN(NULL, NULL)
