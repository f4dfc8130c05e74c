/*
 * How errors are shown: in at most three lines, the last of which is the cause; with --verbose a
 * line for each sentence.
 */
#include "cli/output.h"
#include "unit.h"

#include <unistd.h>

/* Read back what tdmi_print_error writes to standard error, which is a file here. */
static void print_to(char *text, size_t text_bytes, const tdm_error *err, bool is_whole)
{
    FILE *file = tmpfile();
    const int before = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    tdmi_print_error(err, is_whole);
    fflush(stderr);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(file);
    text[fread(text, 1, text_bytes - 1, file)] = '\0';
    fclose(file);
}

static void make_chain(tdm_error *err, int n)
{
    (void)TDM_FAIL(err, TDM_E_INPUT, "sentence 1, the cause");
    for (int i = 2; i <= n; i++)
        (void)TDM_WRAP(err, TDM_E_INPUT, "sentence %d", i);
}

TEST(three_sentences_are_shown_as_they_are)
{
    tdm_error err = {0};
    char text[2000];
    make_chain(&err, 3);
    print_to(text, sizeof text, &err, false);
    assert_string_equal(text, "tandem: sentence 3\n"
                              "  because: sentence 2\n"
                              "    because: sentence 1, the cause\n");
}

TEST(six_are_shown_in_three_lines)
{
    tdm_error err = {0};
    char text[2000];
    make_chain(&err, 6);
    print_to(text, sizeof text, &err, false);
    assert_string_equal(text, "tandem: sentence 6\n"
                              "  because: sentence 5: sentence 4: sentence 3: sentence 2\n"
                              "    because: sentence 1, the cause\n");
}

TEST(all_are_shown_on_request)
{
    tdm_error err = {0};
    char text[2000];
    make_chain(&err, 6);
    print_to(text, sizeof text, &err, true);
    for (int i = 1; i <= 6; i++) {
        char sentence[40];
        snprintf(sentence, sizeof sentence, "sentence %d", i);
        assert_non_null(strstr(text, sentence));
    }
    assert_non_null(strstr(text, "  because: sentence 5\n    because: sentence 4\n"));
}

TEST(the_longest_chain_fits)
{
    tdm_error err = {0};
    char long_text[TDM_ERROR_TEXT_BYTES], text[3000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    (void)TDM_FAIL(&err, TDM_E_INPUT, "%s", long_text);
    for (int i = 0; i < 2 * TDM_ERROR_FRAMES; i++)
        (void)TDM_WRAP(&err, TDM_E_INPUT, "%s", long_text);
    print_to(text, sizeof text, &err, true);
    assert_true(strlen(text) > TDM_ERROR_TEXT_BYTES);
    assert_int_equal(text[strlen(text) - 1], '\n');
}

TEST(an_error_without_a_sentence_has_a_line)
{
    const tdm_error err = {0};
    char text[200];
    print_to(text, sizeof text, &err, false);
    assert_string_equal(text, "tandem: failed without saying why\n");
}

TEST_MAIN(NULL, NULL)
