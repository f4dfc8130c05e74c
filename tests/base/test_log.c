/* Messages go to the program's listener where there is one. */
#include "tandem/log.h"
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct heard {
    int n;
    tdm_log_level level;
    char text[200];
};

static void hear(void *self, tdm_log_level level, const char *text)
{
    struct heard *heard = self;
    heard->n++;
    heard->level = level;
    snprintf(heard->text, sizeof heard->text, "%s", text);
}

TEST(a_listener_gets_the_text_of_messages_up_to_the_level)
{
    struct heard heard = {0};
    const struct tdm_log_listener listener = {&heard, hear};
    tdm_log_set_level(TDM_LOG_INFO);
    tdm_log_set_listener(&listener);
    tdm_log(TDM_LOG_WARNING, "%d images of '%s' are skipped", 3, "a\nb");
    assert_int_equal(heard.n, 1);
    assert_int_equal(heard.level, TDM_LOG_WARNING);
    assert_string_equal(heard.text, "3 images of 'a\\x0ab' are skipped");
    tdm_log(TDM_LOG_DEBUG, "not asked for");
    assert_int_equal(heard.n, 1);
    tdm_log_set_listener(NULL);
    tdm_log_set_level(TDM_LOG_SILENT);
    tdm_log(TDM_LOG_WARNING, "to nobody");
    assert_int_equal(heard.n, 1);
}

struct slow {
    _Atomic bool has_begun, has_ended;
};

static void hear_slowly(void *self, tdm_log_level level, const char *text)
{
    struct slow *slow = self;
    (void)level, (void)text;
    slow->has_begun = true;
    usleep(200000);
    slow->has_ended = true;
}

static void *warn(void *unused)
{
    tdm_log(TDM_LOG_WARNING, "a message");
    return unused;
}

TEST(a_listener_that_was_replaced_is_not_called_any_more)
{
    struct slow slow = {false, false};
    const struct tdm_log_listener listener = {&slow, hear_slowly};
    pthread_t thread;
    tdm_log_set_level(TDM_LOG_WARNING);
    tdm_log_set_listener(&listener);
    assert_int_equal(pthread_create(&thread, NULL, warn, NULL), 0);
    while (!slow.has_begun)
        usleep(1000);
    tdm_log_set_level(TDM_LOG_SILENT);
    tdm_log_set_listener(NULL);
    assert_true(slow.has_ended);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void count(void *self, tdm_log_level level, const char *text)
{
    (void)level, (void)text;
    atomic_fetch_add((_Atomic int *)self, 1);
    usleep(300);
}

static _Atomic bool is_over;

static void *warn_all_the_time(void *unused)
{
    while (!is_over)
        tdm_log(TDM_LOG_WARNING, "a message");
    return unused;
}

TEST(a_listener_is_replaced_while_others_log_without_a_pause)
{
    enum { THREADS = 4, TIMES = 50 };
    _Atomic int heard[2] = {0, 0};
    const struct tdm_log_listener listeners[2] = {{&heard[0], count}, {&heard[1], count}};
    pthread_t threads[THREADS];
    tdm_log_set_level(TDM_LOG_WARNING);
    tdm_log_set_listener(&listeners[0]);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, warn_all_the_time, NULL), 0);
    for (int i = 0; i < TIMES; i++) {
        tdm_log_set_listener(&listeners[(i + 1) % 2]);
        const int before = heard[i % 2];
        usleep(2000);
        assert_int_equal(heard[i % 2], before);
    }
    is_over = true;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(heard[0] > 0 && heard[1] > 0);
    tdm_log_set_listener(NULL);
    tdm_log_set_level(TDM_LOG_SILENT);
}

TEST_MAIN(NULL, NULL)
