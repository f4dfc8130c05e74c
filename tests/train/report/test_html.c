/* Pieces of a page: names that are other people's, and drawings of odd numbers. */
#include "train/report/html.h"
#include "unit.h"

#include <math.h>

static void becomes(const char *text, int most, const char *wanted)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text out = {0};
    tdmi_html_short(&out, text, most);
    assert_string_equal(tdmi_text_string(&out), wanted);
}

TEST(markup_in_names_is_text)
{
    becomes("<script>alert('x')</script>", 99, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
    becomes("a\"b&c", 99, "a&quot;b&amp;c");
    becomes("&lt;", 99, "&amp;lt;");
    becomes("Straße 東京", 99, "Straße 東京");
}

TEST(bytes_that_are_no_text_are_spelled)
{
    becomes("a\x1b[31m\n\x7f", 99, "a\\x1b[31m\\x0a\\x7f");
    becomes("\xc2\x9b|\xe2\x80\xae", 99, "\\u009b|\\u202e");
    becomes("\xff<\xc3", 99, "\\xff&lt;\\xc3");
}

TEST(long_names_are_cut_between_characters)
{
    becomes("äöüß", 4, "äöüß");
    becomes("äöüß", 3, "äöü…");
    becomes("<<<", 1, "&lt;…");
    becomes("", 0, "");
}

/* Every number of a path is a whole one, and none of them is NaN's. */
TEST(charts_of_odd_values_stay_drawings)
{
    static const double x[] = {1, 2, 3}, flat[] = {0.5, 0.5, 0.5}, tiny[] = {1e-9, 2e-9, 3e-9};
    const double gaps[] = {(double)NAN, 7.0, (double)NAN};
    const double nothing[] = {(double)NAN, (double)NAN, (double)NAN};
    static const double large[] = {1e30, 1.0, -1e30};
    const double *const cases[] = {flat, tiny, gaps, large};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_text out = {0};
        const struct tdmi_series series = {"<i>", x, cases[i], 3};
        tdmi_chart_lines(&out, "Loss", "", &series, 1, 2.0);
        const char *text = tdmi_text_string(&out);
        assert_non_null(strstr(text, "</svg>"));
        assert_non_null(strstr(text, "&lt;i&gt;"));
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        tdmi_text_release(&out);
    }
    tdmi_text out = {0};
    const struct tdmi_series empty = {"x", x, nothing, 3};
    tdmi_chart_lines(&out, "Loss", "", &empty, 1, (double)NAN);
    assert_string_equal(tdmi_text_string(&out), "");
    tdmi_text_release(&out);
}

/* 30 classes of which two are drawn: what is taken for others is one column, and nothing is lost.
 */
TEST(classes_that_are_not_drawn_are_one_column)
{
    struct tdm_class_score classes[30];
    struct tdm_confusion pairs[] = {{3, 3, 11}, {3, 9, 12}, {3, 20, 13}, {3, 21, 14}, {9, 3, 15}};
    struct tdm_metrics metrics = {
        .n_classes = 30, .per_class = classes, .confusion = pairs, .n_confusion = 5};
    const int drawn[] = {3, 9};
    TDMI_AT_END(tdmi_text_release) tdmi_text out = {0};
    for (int c = 0; c < 30; c++)
        classes[c] = (struct tdm_class_score){.label = "x", .n = 50};
    assert_int_equal(tdmi_chart_confusion(&out, &metrics, drawn, 2, NULL), TDM_OK);
    const char *text = tdmi_text_string(&out);
    assert_non_null(strstr(text, ">11</text>"));
    assert_non_null(strstr(text, ">12</text>"));
    assert_non_null(strstr(text, ">27</text>"));
    assert_non_null(strstr(text, ">15</text>"));
    assert_null(strstr(text, ">13</text>"));
}

TEST_MAIN(NULL, NULL)
