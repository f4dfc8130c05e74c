/* The lock file: one owner at a time, free when the owner is dead, and it says who has it. */
#include "unit.h"
#include "track/lock.h"
#include "tandem/log.h"
#include <signal.h>
#include <sys/wait.h>
#include "track/folder.h"

typedef tdm_status (*take)(const char *path, tdmi_lock **lock, tdm_error *err);
static const take ways[] = {tdmi_lock_take, tdmi_lock_take_by_text};

/* A child that takes the lock, tells so through the pipe, and waits for its end. */
static pid_t start_owner(take way, const char *path)
{
    int told[2];
    char byte = 0;
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tdmi_lock *lock = NULL;
        if (way(path, &lock, NULL) == TDM_OK && write(told[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    close(told[0]);
    return child;
}

static void end_owner(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST_WITH(a_second_owner_is_refused_until_the_first_gives_it_back, make_folder, remove_folder)
{
    char path[1024];
    for (size_t i = 0; i < 2; i++) {
        tdmi_lock *first = NULL, *second = NULL;
        tdm_error err = {0};
        in_folder(state, "lock", path);
        assert_int_equal(ways[i](path, &first, &err), TDM_OK);
        assert_int_equal(ways[i](path, &second, &err), TDM_E_SYSTEM);
        assert_null(second);
        tdmi_lock_give(first);
        assert_int_equal(ways[i](path, &second, &err), TDM_OK);
        tdmi_lock_give(second);
    }
}

TEST_WITH(the_refusal_names_process_and_host, make_folder, remove_folder)
{
    char path[1024], pid[32], host[256] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    in_folder(state, "lock", path);
    for (size_t i = 0; i < 2; i++) {
        pid_t child = start_owner(ways[i], path);
        tdmi_lock *lock = NULL;
        tdm_error err = {0};
        assert_int_equal(ways[i](path, &lock, &err), TDM_E_SYSTEM);
        snprintf(pid, sizeof pid, "process %ld ", (long)child);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), path));
        assert_non_null(strstr(tdm_error_sentence(&err, 0), pid));
        assert_non_null(strstr(tdm_error_sentence(&err, 0), host));
        assert_int_equal(err.n_frames, 1);
        end_owner(child);
    }
}

TEST_WITH(the_lock_of_a_killed_owner_is_free, make_folder, remove_folder)
{
    char path[1024];
    in_folder(state, "lock", path);
    for (size_t i = 0; i < 2; i++) {
        tdmi_lock *lock = NULL;
        tdm_error err = {0};
        end_owner(start_owner(ways[i], path));
        assert_int_equal(ways[i](path, &lock, &err), TDM_OK);
        tdmi_lock_give(lock);
    }
}

TEST_WITH(a_refused_process_leaves_the_owners_text_alone, make_folder, remove_folder)
{
    char path[1024];
    tdmi_lock *first = NULL, *second = NULL;
    in_folder(state, "lock", path);
    assert_int_equal(tdmi_lock_take(path, &first, NULL), TDM_OK);
    char *before = text_of(path);
    assert_non_null(strstr(before, "\"pid\""));
    assert_int_equal(tdmi_lock_take(path, &second, NULL), TDM_E_SYSTEM);
    char *after = text_of(path);
    assert_string_equal(before, after);
    free(before);
    free(after);
    tdmi_lock_give(first);
    after = text_of(path);
    assert_string_equal(after, "");
    free(after);
}

TEST_WITH(without_locks_an_owner_on_another_host_keeps_it, make_folder, remove_folder)
{
    char path[1024], held[1024];
    tdmi_lock *lock = NULL;
    tdm_error err = {0};
    in_folder(state, "lock", path);
    in_folder(state, "lock.held", held);
    put_text(held, "{\"host\":\"elsewhere.example\",\"pid\":1,\"born\":\"7\",\"since\":\"then\"}");
    assert_int_equal(tdmi_lock_take_by_text(path, &lock, &err), TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "elsewhere.example"));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "remove"));
    put_text(held, "half of a te");
    assert_int_equal(tdmi_lock_take_by_text(path, &lock, &err), TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "another process"));
}

/* Somebody has removed it as the refusal advises, though its owner lives, and has taken the lock.
 */
TEST_WITH(without_locks_an_owner_leaves_the_file_of_another_alone, make_folder, remove_folder)
{
    char path[1024], held[1024];
    tdmi_lock *first = NULL, *second = NULL;
    in_folder(state, "lock", path);
    in_folder(state, "lock.held", held);
    assert_int_equal(tdmi_lock_take_by_text(path, &first, NULL), TDM_OK);
    assert_int_equal(unlink(held), 0);
    assert_int_equal(tdmi_lock_take_by_text(path, &second, NULL), TDM_OK);
    tdmi_lock_remove(first);
    assert_int_equal(access(held, F_OK), 0);
    tdmi_lock_remove(second);
    assert_int_equal(access(held, F_OK), -1);
}

TEST_WITH(a_number_that_another_process_got_does_not_keep_the_lock, make_folder, remove_folder)
{
    char path[1024], held[1024], text[512], host[256] = "";
    tdmi_lock *lock = NULL;
    tdm_error err = {0};
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    in_folder(state, "lock", path);
    in_folder(state, "lock.held", held);
    /* This process lives, but was not born at tick 1. */
    snprintf(text, sizeof text, "{\"host\":\"%s\",\"pid\":%ld,\"born\":\"1\"}", host,
             (long)getpid());
    put_text(held, text);
    assert_int_equal(tdmi_lock_take_by_text(path, &lock, &err), TDM_OK);
    tdmi_lock_give(lock);
    assert_int_equal(access(held, F_OK), -1);
}

TEST_WITH(a_folder_that_cannot_be_written_is_the_systems_refusal, make_folder, remove_folder)
{
    for (size_t i = 0; i < 2; i++) {
        tdmi_lock *lock = NULL;
        tdm_error err = {0};
        assert_int_equal(ways[i]("/dev/null/lock", &lock, &err), TDM_E_SYSTEM);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "/dev/null/lock"));
        assert_null(lock);
    }
}

TEST_MAIN(be_silent, NULL)
