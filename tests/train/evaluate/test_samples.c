/* Which pictures a run shows, and the file they are kept in. */
#include "base/file/file.h"
#include "train/pictures.h"
#include "train/report/html.h"
#include "train/evaluate/samples.h"
#include "unit.h"

enum { many = 40 };

static const char *const classes[] = {"cat", "dog"};

/* Entry i has content i + 1, is wrong where i is odd, and is the surer the larger i is. */
static void fill(tdmi_outcomes *outcomes, int64_t n)
{
    assert_int_equal(tdmi_outcomes_open(outcomes, 2, n, NULL), TDM_OK);
    outcomes->classes = classes;
    outcomes->network = "lenet5";
    outcomes->step = 7;
    for (int64_t i = 0; i < n; i++) {
        const float sure = 0.5f + 0.01f * (float)i;
        const float probabilities[] = {sure, 1.0f - sure};
        tdmi_outcomes_add(outcomes, (uint64_t)(i + 1), (int)(i % 2),
                          (struct tdmi_judgement){0.1f, 0}, probabilities);
    }
}

TEST(the_surest_mistakes_and_the_smallest_hashes_are_chosen)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    tdmi_samples samples = {0};
    fill(&outcomes, many);
    tdmi_samples_choose(&outcomes, &samples);
    assert_int_equal(samples.n, TDMI_SAMPLES_MOST);
    assert_int_equal(samples.step, 7);
    for (int i = 0; i < TDMI_SAMPLES_MISTAKES; i++) {
        assert_true(samples.samples[i].is_mistake);
        assert_int_equal(samples.samples[i].entry, many - 1 - 2 * i);
    }
    /* 1, 3, 5 … up to 15 are no surest mistakes: they may be drawn. */
    for (int i = 0; i < TDMI_SAMPLES_DRAWN; i++) {
        assert_false(samples.samples[TDMI_SAMPLES_MISTAKES + i].is_mistake);
        assert_int_equal(samples.samples[TDMI_SAMPLES_MISTAKES + i].entry, i);
    }
}

TEST(the_choice_does_not_depend_on_the_order_of_entries)
{
    tdmi_outcomes outcomes, turned;
    tdmi_samples samples = {0}, again = {0};
    fill(&outcomes, many);
    for (int64_t i = 10; i < 20; i++) /* equally sure: the content decides */
        outcomes.confidences[i] = 0.9f;
    tdmi_samples_choose(&outcomes, &samples);
    fill(&turned, many);
    for (int64_t i = 0; i < many; i++) {
        const int64_t from = many - 1 - i;
        turned.contents[i] = outcomes.contents[from];
        turned.labels[i] = outcomes.labels[from];
        turned.predicted[i] = outcomes.predicted[from];
        turned.confidences[i] = outcomes.confidences[from];
    }
    tdmi_samples_choose(&turned, &again);
    assert_int_equal(samples.n, again.n);
    for (int i = 0; i < samples.n; i++)
        assert_int_equal(again.samples[i].entry, many - 1 - samples.samples[i].entry);
    tdmi_outcomes_release(&turned);
    tdmi_outcomes_release(&outcomes);
}

TEST(a_picture_is_shown_once_and_an_unknown_one_never)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    tdmi_samples samples = {0};
    fill(&outcomes, 6);
    outcomes.contents[1] = outcomes.contents[3] = outcomes.contents[5] = 9;
    outcomes.contents[2] = 0;
    tdmi_samples_choose(&outcomes, &samples);
    assert_int_equal(samples.n, 3);
    assert_int_equal(outcomes.contents[samples.samples[0].entry], 9);
    assert_int_equal(samples.samples[1].entry, 0);
    assert_int_equal(samples.samples[2].entry, 4);
    outcomes.n = 0;
    tdmi_samples_choose(&outcomes, &samples);
    assert_int_equal(samples.n, 0);
}

/* ---- the file ---------------------------------------------------------------------------- */

static const uint8_t jpeg[] = {0xff, 0xd8, 1, 2, 3, 0xff, 0xd9};

static void name_all(tdmi_samples *samples)
{
    for (int i = 0; i < samples->n; i++) {
        samples->samples[i].name = i == 0 ? "<b>/\"ä\".jpg" : "b.jpg";
        samples->samples[i].jpeg = jpeg;
        samples->samples[i].jpeg_bytes = i == 0 ? 3 : (int64_t)sizeof jpeg;
    }
}

TEST(what_is_kept_comes_back)
{
    struct tree tree = quick_tree_new();
    tdmi_outcomes outcomes;
    tdmi_samples samples = {0}, back;
    fill(&outcomes, 4);
    tdmi_samples_choose(&outcomes, &samples);
    name_all(&samples);
    const char *path = below(&tree, "samples.safetensors");
    assert_int_equal(tdmi_samples_save(&samples, path, NULL), TDM_OK);
    assert_int_equal(tdmi_samples_load(path, &outcomes, &back, NULL), TDM_OK);
    assert_int_equal(back.n, 4);
    for (int i = 0; i < back.n; i++) {
        assert_int_equal(back.samples[i].entry, samples.samples[i].entry);
        assert_int_equal(back.samples[i].is_mistake, samples.samples[i].is_mistake);
        assert_string_equal(back.samples[i].name, samples.samples[i].name);
        assert_int_equal(back.samples[i].jpeg_bytes, samples.samples[i].jpeg_bytes);
        assert_memory_equal(back.samples[i].jpeg, jpeg, (size_t)back.samples[i].jpeg_bytes);
    }
    tdmi_samples_release(&back);
    tdmi_outcomes_release(&outcomes);
    tree_free(&tree);
}

TEST(samples_of_other_outcomes_are_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = quick_tree_new();
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    tdmi_samples samples = {0}, back;
    fill(&outcomes, 4);
    tdmi_samples_choose(&outcomes, &samples);
    name_all(&samples);
    const char *path = below(&tree, "samples.safetensors");
    assert_int_equal(tdmi_samples_save(&samples, path, NULL), TDM_OK);
    outcomes.step = 8;
    assert_int_equal(tdmi_samples_load(path, &outcomes, &back, NULL), TDM_E_INPUT);
    outcomes.step = 7;
    outcomes.n = 3; /* an entry lies outside */
    assert_int_equal(tdmi_samples_load(path, &outcomes, &back, NULL), TDM_E_INPUT);
    outcomes.n = 4;
    assert_int_equal(tdmi_outcomes_save(&outcomes, path, NULL), TDM_OK);
    assert_int_equal(tdmi_samples_load(path, &outcomes, &back, NULL), TDM_E_INPUT);
}

/* ---- base64 ------------------------------------------------------------------------------ */

/* The test vectors of RFC 4648, and bytes that need every digit. */
TEST(bytes_become_base64)
{
    static const struct {
        const char *bytes, *wanted;
    } cases[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"\xfb\xff\xbf", "+/+/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_text out = {0};
        tdmi_html_base64(&out, (const uint8_t *)cases[i].bytes, (int64_t)strlen(cases[i].bytes));
        assert_string_equal(tdmi_text_string(&out), cases[i].wanted);
        tdmi_text_release(&out);
    }
}

TEST_MAIN(NULL, NULL)
