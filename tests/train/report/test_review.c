/* Runs looked at from outside: listed, read, and compared image by image. */
#include "train/pictures.h"
#include "train/report/review.h"
#include "unit.h"

#include <math.h>

TDMI_POINTER_RELEASE(tdm_runs, tdm_runs_close)

/* A run whose image i (content first + i % n_distinct, class i % n_classes) is right where is_right
 * says. */
static void make_run_of(const struct tree *tree, const char *name, const char *const *classes,
                        int n_classes, int64_t n, uint64_t first, int64_t n_distinct,
                        bool (*is_right)(int64_t i))
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    char path[60];
    static const char record[] =
        "{\"format_version\":1,\"tandem\":\"0.1.0\",\"status\":\"finished\","
        "\"started\":\"2026-11-20T12:34:56Z\",\"ended\":null,\"sittings\":1,"
        "\"data\":{\"network\":\"lenet5\",\"source\":\"pictures\"},"
        "\"validation\":{\"epoch\":2,\"n\":10,\"correct\":9,\"loss\":0.5},"
        "\"result\":{\"epochs\":3,\"best_epoch\":2,\"steps\":30,\"seconds\":61.5,"
        "\"train\":{\"n\":20,\"correct\":15,\"loss\":1},"
        "\"val\":{\"n\":10,\"correct\":9,\"loss\":0.5}}}";
    snprintf(path, sizeof path, "%s/run.json", name);
    tree_file(tree, path, record, sizeof record - 1);
    assert_int_equal(tdmi_outcomes_open(&outcomes, n_classes, n, NULL), TDM_OK);
    outcomes.classes = classes;
    outcomes.network = "lenet5";
    for (int64_t i = 0; i < n; i++) {
        float probabilities[4] = {0};
        const int label = (int)(i % n_classes);
        const int predicted = is_right(i) ? label : (label + 1) % n_classes;
        probabilities[predicted] = 1.0f;
        tdmi_outcomes_add(&outcomes, first + (uint64_t)(i % n_distinct), label,
                          (struct tdmi_judgement){0.1f, predicted}, probabilities);
    }
    snprintf(path, sizeof path, "%s/outcomes.safetensors", name);
    assert_int_equal(tdmi_outcomes_save(&outcomes, below(tree, path), NULL), TDM_OK);
}

static void make_run(const struct tree *tree, const char *name, const char *const *classes,
                     int n_classes, int64_t n, uint64_t first, bool (*is_right)(int64_t i))
{
    make_run_of(tree, name, classes, n_classes, n, first, n, is_right);
}

static tdm_runs *read_two(const struct tree *tree, const char *a, const char *b)
{
    const char *paths[] = {below(tree, a), below(tree, b)};
    tdm_runs *runs = NULL;
    assert_int_equal(tdm_runs_read(paths, 2, &runs, NULL), TDM_OK);
    return runs;
}

static struct tdm_comparison compared(const struct tree *tree, const char *a, const char *b)
{
    struct tdm_comparison comparison = {.struct_bytes = sizeof comparison};
    tdm_runs *runs = read_two(tree, a, b);
    assert_int_equal(tdm_runs_compare(runs, 0, 1, &comparison, NULL), TDM_OK);
    tdm_runs_close(runs);
    return comparison;
}

static const char *const two[] = {"cat", "dog"}, *const swapped[] = {"dog", "cat"},
                         *const others[] = {"cat", "fox"};

static bool always(int64_t i)
{
    return i >= 0;
}
static bool not_first_10(int64_t i)
{
    return i >= 10;
}
static bool not_first_5(int64_t i)
{
    return i >= 5;
}
static bool not_first_5_of_20(int64_t i)
{
    return i % 20 >= 5;
}
static bool not_first_40(int64_t i)
{
    return i >= 40;
}
static bool not_next_20(int64_t i)
{
    return i < 100 || i >= 120;
}
static bool not_25_of_next(int64_t i)
{
    return i < 200 || i >= 225;
}

/* 0 and 10 discordant: 2 · 2^-10. */
TEST_WITH(a_clear_difference_is_better_and_swapped_worse, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    make_run(tree, "a", two, 2, 2000, 1, not_first_10);
    make_run(tree, "b", two, 2, 2000, 1, always);
    struct tdm_comparison c = compared(tree, "a", "b");
    assert_true(c.is_comparable);
    assert_int_equal(c.n, 2000);
    assert_int_equal(c.both, 1990);
    assert_int_equal(c.only_a, 0);
    assert_int_equal(c.only_b, 10);
    assert_int_equal(c.neither, 0);
    assert_true(fabs(c.p - 2.0 / 1024.0) < 1e-15);
    assert_true(fabs(c.difference - 0.005) < 1e-15);
    assert_true(c.is_better && !c.is_worse && c.is_no_loss);
    assert_string_equal(c.verdict, "better");
    c = compared(tree, "b", "a");
    assert_true(c.is_worse && !c.is_better && c.is_no_loss); /* real, and below one point */
    assert_string_equal(c.verdict, "worse");
}

/* 0 and 5: 2 · 2^-5 = 0.0625 is not enough, and the interval (-0.0054 at most) excludes a loss. */
TEST_WITH(what_the_test_does_not_show_is_at_most_no_loss, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    make_run(tree, "a", two, 2, 2000, 1, always);
    make_run(tree, "b", two, 2, 2000, 1, not_first_5);
    struct tdm_comparison c = compared(tree, "a", "b");
    assert_true(fabs(c.p - 0.0625) < 1e-15);
    assert_true(c.interval.low > -0.01);
    assert_string_equal(c.verdict, "no loss");
}

/* 20 and 25 of 1,000: p is 0.55, and the interval reaches below -1 point. */
TEST_WITH(a_wide_interval_says_that_nothing_can_be_told, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    make_run(tree, "a", two, 2, 1000, 1, not_next_20);
    make_run(tree, "b", two, 2, 1000, 1, not_25_of_next);
    struct tdm_comparison c = compared(tree, "a", "b");
    assert_int_equal(c.only_a, 25);
    assert_int_equal(c.only_b, 20);
    assert_true(c.interval.low < -0.01 && c.p > 0.5);
    assert_true(!c.is_better && !c.is_worse && !c.is_no_loss);
    assert_string_equal(c.verdict, "cannot tell");
    assert_true(*c.reason);
}

/* 0 and 40 of 200. */
TEST_WITH(a_clear_difference_of_few_images_is_a_verdict, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    make_run(tree, "a", two, 2, 200, 1, not_first_40);
    make_run(tree, "b", two, 2, 200, 1, always);
    struct tdm_comparison c = compared(tree, "a", "b");
    assert_true(c.is_comparable && c.p < 1e-10);
    assert_true(c.is_better && c.is_no_loss && c.interval.low > 0.14);
    assert_string_equal(c.verdict, "better");
    assert_string_equal(c.reason, "");
    c = compared(tree, "b", "a");
    assert_true(c.is_worse && c.interval.high < -0.14);
    assert_string_equal(c.verdict, "worse");
}

/* 0 and 5 of 100: p is 0.0625, and Tango's interval lies on one side of 0. */
TEST_WITH(what_only_the_interval_shows_is_no_verdict_and_not_hidden, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    make_run(tree, "a", two, 2, 100, 1, always);
    make_run(tree, "b", two, 2, 100, 1, not_first_5);
    struct tdm_comparison c = compared(tree, "a", "b");
    assert_true(c.interval.high < 0.0 && !c.is_worse && !c.is_no_loss);
    assert_string_equal(c.verdict, "perhaps worse");
    assert_non_null(strstr(c.reason, "p = 0.062"));
    c = compared(tree, "b", "a");
    assert_true(c.interval.low > 0.0 && !c.is_better && c.is_no_loss);
    assert_string_equal(c.verdict, "no loss");
    assert_non_null(strstr(c.reason, "p = 0.062"));
}

/* "Cannot tell" where the interval contains both signs, and only there. */
TEST(what_the_test_decides_the_interval_never_contradicts)
{
    for (int64_t n = 20; n <= 320; n *= 4)
        for (int64_t only_a = 0; only_a <= n / 2; only_a++)
            for (int64_t only_b = 0; only_b <= n / 2; only_b++) {
                const tdm_interval interval = tdm_paired_interval(only_a, only_b, n);
                if (tdm_mcnemar_exact(only_a, only_b) < 0.05)
                    assert_true(only_b > only_a ? interval.low > 0.0 : interval.high < 0.0);
            }
}

/* Images 0 to 39 stand twice, under one content and class: 20 images count. */
TEST_WITH(copies_count_once_in_a_comparison, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    make_run_of(tree, "a", two, 2, 40, 1, 20, not_first_5_of_20);
    make_run_of(tree, "b", two, 2, 40, 1, 20, always);
    struct tdm_comparison c = compared(tree, "a", "b");
    assert_int_equal(c.n, 40);
    assert_int_equal(c.n_distinct, 20);
    assert_int_equal(c.only_b, 5);
    assert_int_equal(c.both, 15);
    assert_true(fabs(c.p - 0.0625) < 1e-15 && !c.is_better); /* 10 of 40: p would be 0.002 */
    assert_true(c.difference == 0.25);
}

TEST_WITH(other_pictures_or_labels_are_not_compared, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    make_run(tree, "a", two, 2, 2000, 1, always);
    make_run(tree, "moved", two, 2, 2000, 2, always);
    make_run(tree, "fewer", two, 2, 1999, 1, always);
    make_run(tree, "swapped", swapped, 2, 2000, 1, always);
    make_run(tree, "others", others, 2, 2000, 1, always);
    static const char *const names[] = {"moved", "fewer", "swapped", "others"};
    for (int i = 0; i < 4; i++) {
        struct tdm_comparison c = compared(tree, "a", names[i]);
        assert_false(c.is_comparable);
        assert_string_equal(c.verdict, "not comparable");
        assert_int_equal(c.n + c.both + c.only_a + c.only_b + c.neither, 0);
        assert_non_null(strstr(c.reason, "different images"));
    }
}

/* Content 2 is a dog in both, whatever number a dog has. */
TEST_WITH(classes_are_matched_by_name, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    make_run(tree, "a", two, 2, 2, 1, always);     /* 1 cat, 2 dog */
    make_run(tree, "b", swapped, 2, 3, 2, always); /* 2 dog, 3 cat, 4 dog */
    make_run(tree, "c", swapped, 2, 2, 2, always); /* 2 dog, 3 cat */
    make_run(tree, "d", two, 2, 2, 1, not_first_5);
    assert_false(compared(tree, "a", "c").is_comparable);
    struct tdm_comparison c = compared(tree, "a", "d");
    assert_true(c.is_comparable);
    assert_int_equal(c.only_a, 2);
    make_run(tree, "e", two, 2, 3, 1, always);     /* 1 cat, 2 dog, 3 cat */
    make_run(tree, "f", swapped, 2, 3, 1, always); /* 1 dog */
    assert_false(compared(tree, "e", "f").is_comparable);
    make_run(tree, "g", two, 2, 1, 9, always);
    make_run(tree, "h", (const char *const[]){"cat"}, 1, 1, 9, always);
    assert_true(compared(tree, "g", "h").is_comparable);
}

TEST_WITH(runs_without_outcomes_are_shown_and_not_compared, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    make_run(tree, "a", two, 2, 1000, 1, always);
    make_run(tree, "b", two, 2, 1000, 1, always);
    assert_int_equal(remove(below(tree, "b/outcomes.safetensors")), 0);
    tdm_runs *runs = read_two(tree, "a", "b");
    assert_non_null(tdm_runs_at(runs, 0)->metrics);
    assert_null(tdm_runs_at(runs, 1)->metrics);
    assert_int_equal(tdm_runs_at(runs, 1)->val.correct, 9);
    tdm_runs_close(runs);
    struct tdm_comparison c = compared(tree, "a", "b");
    assert_string_equal(c.verdict, "not comparable");
    assert_non_null(strstr(c.reason, "the second run has no record"));
}

TEST_WITH(runs_are_found_below_a_folder_in_order, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    tdm_runs *runs = NULL;
    make_run(tree, "all/b", two, 2, 10, 1, always);
    make_run(tree, "all/a/deep", two, 2, 10, 1, always);
    tree_file(tree, "all/damaged/run.json", "{", 1);
    tree_file(tree, "all/else/notes.txt", "x", 1);
    assert_int_equal(tdm_runs_find(below(tree, "all"), &runs, NULL), TDM_OK);
    assert_int_equal(tdm_runs_count(runs), 2);
    assert_string_equal(tdm_runs_at(runs, 0)->path, below(tree, "all/a/deep"));
    const struct tdm_run *run = tdm_runs_at(runs, 1);
    assert_string_equal(run->path, below(tree, "all/b"));
    assert_string_equal(run->state, "finished");
    assert_string_equal(run->network, "lenet5");
    assert_int_equal(run->epochs, 3);
    assert_int_equal(run->best_epoch, 2);
    assert_true(run->seconds == 61.5);
    assert_int_equal(run->train.correct, 15);
    assert_null(tdm_runs_at(runs, 2));
    tdm_runs_close(runs);
    assert_int_equal(tdm_runs_find(below(tree, "none"), &runs, NULL), TDM_E_INPUT);
    assert_null(runs);
    const char *paths[] = {below(tree, "all/b"), below(tree, "all/else")};
    assert_int_equal(tdm_runs_read(paths, 2, &runs, NULL), TDM_E_INPUT);
    assert_null(runs);
}

TEST_WITH(a_run_that_says_running_and_that_nobody_holds_was_killed, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    tdm_runs *runs = NULL;
    static const char record[] = "{\"format_version\":1,\"status\":\"running\"}";
    tree_file(tree, "all/r/run.json", record, sizeof record - 1);
    tree_file(tree, "all/r/lock", "", 0);
    assert_int_equal(tdm_runs_find(below(tree, "all"), &runs, NULL), TDM_OK);
    assert_int_equal(tdm_runs_count(runs), 1);
    assert_string_equal(tdm_runs_at(runs, 0)->state, "killed");
    assert_int_equal(tdm_runs_at(runs, 0)->val.n, 0);
    tdm_runs_close(runs);
    tree_file(tree, "all/r/lock.held", "x", 1);
    assert_int_equal(tdm_runs_find(below(tree, "all"), &runs, NULL), TDM_OK);
    assert_string_equal(tdm_runs_at(runs, 0)->state, "running");
    tdm_runs_close(runs);
}

TEST_WITH(epochs_are_read_and_a_torn_line_is_not, begin_with_tree, end_with_tree)
{
    static const char lines[] =
        "{\"event\":\"note\",\"epoch\":0,\"text\":\"x\"}\n"
        "{\"event\":\"epoch\",\"epoch\":1,\"learning_rate\":0.1,\"best\":true,"
        "\"train\":{\"n\":8,\"correct\":4,\"loss\":0.7},\"val\":{\"n\":2,\"correct\":1,\"loss\":1}}"
        "\n"
        "nonsense\n"
        "{\"event\":\"epoch\",\"epoch\":2,\"learning_rate\":0.05,\"best\":false,"
        "\"train\":{\"n\":8,\"correct\":6,\"loss\":0.5}}\n"
        "{\"event\":\"epoch\",\"epoch\":3}";
    struct tdmi_review_epoch *epochs;
    size_t n;
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    tdmi_arena_init(&arena, 0);
    assert_int_equal(tdmi_review_read_epochs(lines, sizeof lines - 1, &arena, &epochs, &n, NULL),
                     TDM_OK);
    assert_int_equal(n, 2);
    assert_true(epochs[0].is_best && epochs[0].val.n == 2 && epochs[0].train.correct == 4);
    assert_true(epochs[1].epoch == 2 && epochs[1].val.n == 0 && epochs[1].train.loss == 0.5);
}

TEST_WITH(epochs_of_a_run_without_a_result_are_counted, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    TDMI_AT_END(tdm_runs_close_at) tdm_runs *runs = NULL;
    static const char record[] = "{\"format_version\":1,\"status\":\"running\","
                                 "\"validation\":{\"epoch\":1,\"n\":10,\"correct\":9}}";
    static const char lines[] = "{\"event\":\"epoch\",\"epoch\":1}\n"
                                "{\"event\":\"epoch\",\"epoch\":2}\n"
                                "{\"event\":\"note\",\"epoch\":3}\n"
                                "{\"event\":\"epoch\",\"epoch\":3}";
    tree_file(tree, "all/r/run.json", record, sizeof record - 1);
    tree_file(tree, "all/r/metrics.jsonl", lines, sizeof lines - 1);
    assert_int_equal(tdm_runs_find(below(tree, "all"), &runs, NULL), TDM_OK);
    assert_int_equal(tdm_runs_at(runs, 0)->epochs, 2);
    assert_int_equal(tdm_runs_at(runs, 0)->best_epoch, 1);
}

/* ---- memory ------------------------------------------------------------------------------- */

static tdm_status all_of_it(const struct tree *tree, tdm_error *err)
{
    const char *paths[] = {below(tree, "all/a"), below(tree, "all/b")};
    struct tdm_comparison comparison = {.struct_bytes = sizeof comparison};
    tdm_runs *runs = NULL;
    tdm_status status = tdm_runs_find(below(tree, "all"), &runs, err);
    tdm_runs_close(runs);
    runs = NULL;
    if (status == TDM_OK)
        status = tdm_runs_read(paths, 2, &runs, err);
    if (status == TDM_OK)
        status = tdm_runs_compare(runs, 0, 1, &comparison, err);
    if (status == TDM_OK)
        status = tdm_runs_report(runs, below(tree, "page.html"), err);
    tdm_runs_close(runs);
    return status;
}

TEST_WITH(running_out_of_memory_anywhere_is_told, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    static const char line[] = "{\"event\":\"epoch\",\"epoch\":1,\"learning_rate\":0.1,"
                               "\"val\":{\"n\":2,\"correct\":1,\"loss\":1}}\n";
    make_run(tree, "all/a", two, 2, 40, 1, always);
    make_run(tree, "all/b", two, 2, 40, 1, not_first_5);
    tree_file(tree, "all/a/metrics.jsonl", line, sizeof line - 1);
    tdm_status status = TDM_E_MEMORY;
    int64_t n = 0;
    while (status != TDM_OK && n < 5000) {
        tdm_error err = {0};
        tdmi_memory_fail_from(++n);
        status = all_of_it(tree, &err);
        tdmi_memory_fail_from(0);
        if (status != TDM_OK)
            assert_int_equal(status, TDM_E_MEMORY);
    }
    assert_int_equal(status, TDM_OK);
    assert_true(n > 50);
}

TEST_MAIN(NULL, NULL)
