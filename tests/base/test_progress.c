/* How progress looks, and when it is drawn. */
#include "base/progress.h"

#include <pthread.h>
#include <time.h>
#include "base/each_allocation.h"
#include "unit.h"

/* ---- the look ----------------------------------------------------------------------------- */

static const struct tdmi_progress_view half = {.title = "reading",
                                               .unit = "images",
                                               .note = "",
                                               .done = 450,
                                               .total = 1000,
                                               .seconds = 4.0,
                                               .per_s = 112.5};

TEST(a_bar_fills_the_columns_it_has)
{
    static const struct {
        int columns;
        const char *text;
    } cases[] = {
        {99,
         "reading [==================>                     ]  45% 450/1000 images 112/s 0:05 left"},
        {60, "reading [=====>       ]  45% 450/1000 images 112/s 0:05 left"},
        {50, "reading  45% 450/1000 images 112/s 0:05 left"},
        {20, "reading  45% 450/100"},
        {0, ""},
    };
    char text[TDMI_PROGRESS_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_progress_bar(&half, cases[i].columns, text);
        assert_true(strlen(text) <= (size_t)cases[i].columns);
        assert_string_equal(text, cases[i].text);
    }
}

TEST(every_state_has_its_words)
{
    static const struct {
        struct tdmi_progress_view view;
        const char *bar, *line, *last;
    } cases[] = {
        {{"t", "images", "", 0, 10, 0.0, 0.0},
         "t [>                                 ]   0% 0/10 images 0:00",
         "t: 0 of 10 images (0%)",
         "t: 0 of 10 images (0%) in 0.0 s"},
        {{"t", "images", "loss 0.5", 999, 1000, 3600.0, 0.05},
         "t [========>]  99% 999/1000 images 0.05/s 0:20 left loss 0.5",
         "t: 999 of 1000 images (99%), 0.05 images/s, 0:20 left, loss 0.5",
         "t: 999 of 1000 images (99%) in 3600.0 s, 0.05 images/s, loss 0.5"},
        {{"t", "images", "", 10, 10, 2.0, 5.0},
         "t [==========================] 100% 10/10 images 5.00/s 0:02",
         "t: 10 of 10 images (100%), 5.00 images/s",
         "t: 10 of 10 images (100%) in 2.0 s, 5.00 images/s"},
        {{"t", "files", "a\x1b\nb", 7, 0, 61.0, 0.0},
         "t 7 files 1:01 a\\x1b\\x0ab",
         "t: 7 files, a\\x1b\\x0ab",
         "t: 7 files in 61.0 s, a\\x1b\\x0ab"},
        {{"t", "x", "", 1, 11, 0.0, 0.002},
         "t [==>                     ]   9% 1/11 x 0.00/s 1:23:20 left",
         "t: 1 of 11 x (9%), 0.00 x/s, 1:23:20 left",
         "t: 1 of 11 x (9%) in 0.0 s, 0.00 x/s"},
        {{"t", "x", "", 1, 1000001, 0.0, 1.0},
         "t [>            ]   0% 1/1000001 x 1.00/s 11 days 13:46 left",
         "t: 1 of 1000001 x (0%), 1.00 x/s, 11 days 13:46 left",
         "t: 1 of 1000001 x (0%) in 0.0 s, 1.00 x/s"},
        {{"t", "x", "", 20, 10, 1.0, 1.0}, /* more than was announced */
         "t [===============================] 100% 20/10 x 1.00/s 0:01",
         "t: 20 of 10 x (100%), 1.00 x/s",
         "t: 20 of 10 x (100%) in 1.0 s, 1.00 x/s"},
    };
    char text[TDMI_PROGRESS_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_progress_bar(&cases[i].view, 60, text);
        assert_string_equal(text, cases[i].bar);
        tdmi_progress_line(&cases[i].view, 0, text);
        assert_string_equal(text, cases[i].line);
        tdmi_progress_line(&cases[i].view, 1, text);
        assert_string_equal(text, cases[i].last);
    }
}

TEST(characters_are_cut_whole_and_long_words_end)
{
    char note[5000], text[TDMI_PROGRESS_BYTES];
    struct tdmi_progress_view view = half;
    view.title = "\xc3\xa9\xc3\xa9\xc3\xa9";
    view.total = 0;
    tdmi_progress_bar(&view, 2, text);
    assert_string_equal(text, "\xc3\xa9\xc3\xa9");
    memset(note, 'n', sizeof note - 1);
    note[sizeof note - 1] = '\0';
    view.note = view.title = note;
    tdmi_progress_bar(&view, 5000, text);
    assert_true(strlen(text) < TDMI_PROGRESS_BYTES);
    tdmi_progress_line(&view, 0, text);
    assert_true(strlen(text) < TDMI_PROGRESS_BYTES);
}

/* ---- drawing ------------------------------------------------------------------------------ */

static void sleep_ms(int ms)
{
    struct timespec span = {.tv_nsec = ms * 1000000};
    nanosleep(&span, NULL);
}

/* Text that a stream receives while done is reported n times, a step every ms milliseconds. */
static void watched(tdmi_progress_style style, int n, int ms, char *text, size_t text_bytes)
{
    FILE *stream = tmpfile();
    assert_non_null(stream);
    tdmi_progress_display *progress = tdmi_progress_start(stream, style, "reading", "images", n);
    for (int i = 1; i <= n; i++) {
        tdmi_progress_update(progress, i, i == n ? "end" : NULL);
        sleep_ms(ms);
    }
    tdmi_progress_stop(progress);
    rewind(stream);
    text[fread(text, 1, text_bytes - 1, stream)] = '\0';
    fclose(stream);
}

TEST(lines_are_few_and_the_last_one_sums_up)
{
    char text[4000];
    watched(TDMI_PROGRESS_LINES, 50, 22, text, sizeof text);
    assert_memory_equal(text, "reading: 50 of 50 images (100%) in 1.", 37);
    assert_non_null(strstr(text, " images/s, end\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    /* A file is no terminal. */
    watched(TDMI_PROGRESS_AUTO, 50, 22, text, sizeof text);
    assert_null(strchr(text, '\r'));
    assert_memory_equal(text, "reading: 50 of 50", 17);
    /* Work that is over at once gets no line. */
    watched(TDMI_PROGRESS_LINES, 50, 0, text, sizeof text);
    assert_string_equal(text, "");
}

TEST(a_bar_is_redrawn_ten_times_a_second_and_cleared)
{
    char text[20000];
    int n_drawn = 0;
    setenv("COLUMNS", "60", 1);
    watched(TDMI_PROGRESS_BAR, 100, 4, text, sizeof text);
    unsetenv("COLUMNS");
    for (const char *at = text; (at = strstr(at, "images")); at++)
        n_drawn++;
    assert_true(n_drawn >= 1 && n_drawn <= 100);
    assert_true(strlen(text) > 4 && strcmp(text + strlen(text) - 4, "\r\x1b[K") == 0);
    assert_null(strchr(text, '\n'));
    for (const char *line = strchr(text, '\r'); line; line = strchr(line + 1, '\r'))
        assert_true(strcspn(line + 1, "\r\x1b") <= 59);
}

TEST(progress_without_memory_prints_nothing)
{
    tdmi_memory_fail_from(1);
    tdmi_progress_display *progress = tdmi_progress_start(stderr, TDMI_PROGRESS_BAR, "t", "x", 1);
    tdmi_memory_fail_from(0);
    assert_null(progress);
    tdmi_progress_update(NULL, 1, "note");
    tdmi_progress_stop(NULL);
}

static void *report(void *progress)
{
    for (int i = 0; i < 20000; i++)
        tdmi_progress_update(progress, i, i % 2 ? "odd" : "even");
    return NULL;
}

TEST(threads_report_together_and_numbers_only_rise)
{
    char text[40000];
    pthread_t threads[3];
    FILE *stream = tmpfile();
    tdmi_progress_display *progress =
        tdmi_progress_start(stream, TDMI_PROGRESS_LINES, "counting", "steps", 20000);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, report, progress);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 50000000},
              NULL);                         /* long enough for a line */
    tdmi_progress_update(progress, 5, NULL); /* late news from a slow thread */
    tdmi_progress_stop(progress);
    rewind(stream);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    fclose(stream);
    assert_non_null(strstr(text, "counting: 19999 of 20000 steps (99%)"));
}

TEST_MAIN(NULL, NULL)
