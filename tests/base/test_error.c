/* The error chain, and the log line, which are how failures reach people. */
#include "tandem/error.h"
#include "tandem/log.h"
#include "unit.h"

#include <errno.h>
#include <unistd.h>

/* ---- the chain ---------------------------------------------------------------------------- */

static tdm_status read_header(tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, "byte %d is 0x%02x, 0xff was expected", 0, 0x89);
}

static tdm_status open_picture(tdm_error *err)
{
    return TDM_WRAP(err, read_header(err), "cannot decode %s", "a.jpg");
}

static tdm_status load(tdm_error *err)
{
    TDM_TRY(open_picture(err), err, "cannot load class %s", "cat");
    return TDM_OK;
}

TEST(a_chain_tells_the_outermost_first)
{
    tdm_error err = {0};
    char text[500];
    static const char expected[] = "cannot load class cat\n"
                                   "  because: cannot decode a.jpg\n"
                                   "    because: byte 0 is 0x89, 0xff was expected\n";
    assert_int_equal(load(&err), TDM_E_INPUT);
    assert_int_equal(err.code, TDM_E_INPUT);
    assert_int_equal(err.n_frames, 3);
    assert_non_null(strstr(err.frames[0].file, "test_error.c"));
    assert_true(err.frames[0].line > 0 && err.frames[2].line > err.frames[0].line);
    assert_int_equal(tdm_error_format(&err, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
    /* Cut short it stays terminated, and still says how much it needs. */
    for (size_t room = 1; room < sizeof expected; room++) {
        memset(text, 'x', sizeof text);
        assert_int_equal(tdm_error_format(&err, text, room), strlen(expected));
        assert_int_equal(strlen(text), room - 1);
    }
    assert_int_equal(tdm_error_format(&err, NULL, 0), strlen(expected));
    static const char line[] = "cannot load class cat: cannot decode a.jpg: byte 0 is 0x89, 0xff "
                               "was expected";
    assert_int_equal(tdm_error_line(&err, text, sizeof text), strlen(line));
    assert_string_equal(text, line);
    assert_int_equal(tdm_error_line(&err, text, 10), strlen(line));
    assert_string_equal(text, "cannot lo");
    tdm_error_clear(&err);
    assert_int_equal(err.code, TDM_OK);
    assert_int_equal(tdm_error_format(&err, text, sizeof text), 0);
}

TEST(a_status_travels_without_an_error)
{
    assert_int_equal(load(NULL), TDM_E_INPUT);
    tdm_error_clear(NULL);
    tdm_error err = {0};
    assert_int_equal(TDM_WRAP(&err, TDM_OK, "not said"), TDM_OK);
    assert_int_equal(err.n_frames, 0);
}

TEST(a_full_chain_keeps_its_causes)
{
    tdm_error err = {0};
    tdm_status status = TDM_FAIL(&err, TDM_E_BUG, "cause");
    for (int i = 1; i < 20; i++)
        status = TDM_WRAP(&err, status, "view %d", i);
    assert_int_equal(status, TDM_E_BUG);
    assert_int_equal(err.n_frames, TDM_ERROR_FRAMES);
    assert_string_equal(tdm_error_sentence(&err, 0), "cause");
    assert_string_equal(tdm_error_sentence(&err, 6), "view 6");
    assert_string_equal(tdm_error_sentence(&err, 7), "view 19");
    status = TDM_FAIL(&err, TDM_E_INPUT, "%0*d", 1500, 7);
    assert_int_equal(status, TDM_E_INPUT);
    assert_int_equal(err.n_frames, 1);
    assert_int_equal(strlen(tdm_error_sentence(&err, 0)), TDM_ERROR_TEXT_BYTES - 1);
    assert_string_equal(tdm_error_sentence(&err, 0) + TDM_ERROR_TEXT_BYTES - 4,
                        "…"); /* it was cut */
}

/* Only whole characters of four bytes stand on both sides of what was cut out. */
static void assert_cut_between_characters(const char *text, size_t length, size_t before)
{
    const char *mark = strstr(text, "…");
    assert_non_null(mark);
    assert_null(strstr(mark + 1, "…"));
    assert_int_equal((size_t)(mark - text - (ptrdiff_t)before) % 4, 0);
    assert_int_equal((size_t)(text + length - mark - 3) % 4, 0);
    assert_true(length > 800);
}

TEST(a_sentence_that_does_not_fit_is_cut_between_characters)
{
    char path[4 * TDM_ERROR_TEXT_BYTES];
    for (size_t shift = 0; shift < 4; shift++) {
        tdm_error err = {0};
        memset(path, 'x', shift);
        for (size_t i = 0; i < TDM_ERROR_TEXT_BYTES / 2; i++)
            memcpy(path + shift + 4 * i, "\xf0\x9f\x98\x80", 4);
        path[shift + 4 * (TDM_ERROR_TEXT_BYTES / 2)] = '\0';
        assert_int_equal(TDM_FAIL(&err, TDM_E_INPUT, "%s", path), TDM_E_INPUT);
        assert_cut_between_characters(tdm_error_sentence(&err, 0),
                                      strlen(tdm_error_sentence(&err, 0)), shift);
    }
}

TEST(long_sentences_share_the_room)
{
    char path[3000], text[1200];
    tdm_error err = {0};
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    tdm_status status = TDM_FAIL(&err, TDM_E_INPUT, "cannot open %s: no such file", path);
    assert_true(strlen(tdm_error_sentence(&err, 0)) > 800);
    status = TDM_WRAP(&err, status, "step 3");
    for (int i = 2; i < TDM_ERROR_FRAMES; i++)
        status = TDM_WRAP(&err, status, "view %d of %s ends", i, path);
    assert_string_equal(tdm_error_sentence(&err, 1), "step 3"); /* short ones stay whole */
    for (int i = 0; i < TDM_ERROR_FRAMES; i++) {
        const char *sentence = tdm_error_sentence(&err, i);
        const char *end = i == 0 ? "file" : i == 1 ? "3" : "ends";
        assert_string_equal(sentence + strlen(sentence) - strlen(end), end);
        assert_true(i == 1 || strlen(sentence) >= 100);
    }
    assert_true(tdm_error_format(&err, text, sizeof text) < sizeof text);
    assert_string_equal(tdm_error_sentence(&err, TDM_ERROR_FRAMES), "");
    assert_string_equal(tdm_error_sentence(NULL, 0), "");
}

TEST(every_status_has_its_words_and_exit)
{
    static const struct {
        tdm_status status;
        const char *name;
        int exit_status;
    } cases[] = {
        {TDM_OK, "OK", 0},           {TDM_E_USAGE, "USAGE", 2},     {TDM_E_INPUT, "INPUT", 3},
        {TDM_E_SYSTEM, "SYSTEM", 4}, {TDM_E_ABSENT, "ABSENT", 4},   {TDM_E_MEMORY, "MEMORY", 4},
        {TDM_E_PEER, "PEER", 5},     {TDM_E_STOPPED, "STOPPED", 1}, {TDM_E_FAILED, "FAILED", 1},
        {TDM_E_BUG, "BUG", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(tdm_status_name(cases[i].status), cases[i].name);
        assert_int_equal(tdm_status_exit(cases[i].status), cases[i].exit_status);
        assert_true(tdm_status_text(cases[i].status)[0] != '\0');
        assert_true(tdm_status_advice(cases[i].status)[0] != '\0');
    }
    assert_string_equal(tdm_status_name((tdm_status)99), "BUG");
    assert_string_equal(tdm_status_name((tdm_status)-1), "BUG");
}

/* ---- the log ------------------------------------------------------------------------------ */

/* Text on standard error of one message. */
static void logged(tdm_log_level level, const char *message, char *text, size_t text_bytes)
{
    int ends[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    errno = ENOTTY;
    tdm_log(level, "%s", message);
    int reason = errno;
    dup2(kept, STDERR_FILENO);
    close(kept);
    ssize_t length = read(ends[0], text, text_bytes - 1);
    close(ends[0]);
    text[length > 0 ? length : 0] = '\0';
    assert_int_equal(reason, ENOTTY);
}

TEST(a_message_is_one_line_with_its_level)
{
    static const struct {
        tdm_log_level level;
        const char *message, *line;
    } cases[] = {
        {TDM_LOG_ERROR, "no disk", "tandem: error: no disk\n"},
        {TDM_LOG_WARNING, "slow disk", "tandem: warning: slow disk\n"},
        {TDM_LOG_INFO, "two\nlines\x1b[2J", "tandem: two\\x0alines\\x1b[2J\n"},
        {TDM_LOG_DEBUG, "", ""},
        {TDM_LOG_SILENT, "never", ""},
    };
    char text[2000];
    assert_int_equal(tdm_log_level_now(), TDM_LOG_WARNING);
    tdm_log_set_level(TDM_LOG_INFO);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        logged(cases[i].level, cases[i].message, text, sizeof text);
        assert_string_equal(text, cases[i].line);
    }
    tdm_log_set_color(true);
    assert_int_equal(tdm_log_level_now(), TDM_LOG_INFO);
    logged(TDM_LOG_WARNING, "slow disk", text, sizeof text);
    assert_string_equal(text, "\033[33mtandem: warning:\033[0m slow disk\n");
    logged(TDM_LOG_ERROR, "no disk", text, sizeof text);
    assert_string_equal(text, "\033[1;31mtandem: error:\033[0m no disk\n");
    logged(TDM_LOG_INFO, "plain", text, sizeof text);
    assert_string_equal(text, "tandem: plain\n");
    tdm_log_set_color(false);
    tdm_log_set_level(TDM_LOG_SILENT);
    logged(TDM_LOG_ERROR, "unheard", text, sizeof text);
    assert_string_equal(text, "");
    tdm_log_set_level(TDM_LOG_WARNING);
}

TEST(a_long_message_is_cut_between_characters)
{
    char message[3000], text[3000];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(message, 'x', shift);
        for (size_t i = 0; i < 700; i++)
            memcpy(message + shift + 4 * i, "\xf0\x9f\x98\x80", 4);
        message[shift + 2800] = '\0';
        logged(TDM_LOG_ERROR, message, text, sizeof text);
        size_t length = strlen(text);
        assert_true(length <= 1000);
        assert_int_equal(text[length - 1], '\n');
        assert_cut_between_characters(text, length - 1, strlen("tandem: error: ") + shift);
    }
}

TEST(a_closed_standard_error_is_no_failure)
{
    int kept = dup(STDERR_FILENO);
    close(STDERR_FILENO);
    tdm_log(TDM_LOG_ERROR, "nobody reads");
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    close(kept);
}

TEST_MAIN(NULL, NULL)
