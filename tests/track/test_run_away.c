/* The run folder on a full disk, after a kill, and moved away while somebody works in it. */
#include "unit.h"
#include "track/run.h"
#include "base/file/file.h"
#include "tandem/log.h"
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include "track/runs.h"

/* Beyond the limit of file sizes every write fails with EFBIG, after a short one up to it: what a
 * filling disk does. */
static void limit_files(rlim_t n_bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = n_bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST_WITH(a_line_that_does_not_fit_leaves_whole_lines, make_folder, remove_folder)
{
    tdm_error err = {0};
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    put_lines(run, 1, 2);
    signal(SIGXFSZ, SIG_IGN);
    limit_files(27); /* 22 are used, a line has 11 */
    assert_int_equal(tdmi_run_line(run, "{\"step\":3}", 10, &err), TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "metrics.jsonl"));
    limit_files(RLIM_INFINITY);
    check_metrics(state, "{\"step\":1}\n{\"step\":2}\n");
    put_lines(run, 4, 4);
    check_metrics(state, "{\"step\":1}\n{\"step\":2}\n{\"step\":4}\n");
}

TEST_WITH(a_record_that_does_not_fit_leaves_the_old_one, make_folder, remove_folder)
{
    char path[1024];
    tdm_error err = {0};
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, &err), TDM_OK);
    TDMI_AT_END(free_at) char *before = text_of(in_folder(state, "run.json", path));
    signal(SIGXFSZ, SIG_IGN);
    limit_files(20);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_FINISHED, &err), TDM_E_SYSTEM);
    limit_files(RLIM_INFINITY);
    TDMI_AT_END(free_at) char *after = text_of(path);
    assert_string_equal(before, after);
}

TEST_WITH(a_full_disk_is_an_ordinary_error, make_folder, remove_folder)
{
    char path[1024];
    tdm_error err = {0};
    tdm_status status = TDM_OK;
    in_folder(state, "disk", path);
    assert_int_equal(mkdir(path, 0777), 0);
    if (mount("none", path, "tmpfs", 0, "size=64k") != 0)
        skip();
    tdmi_run *run = open_run(path, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, &err), TDM_OK);
    for (int i = 0; i < 10000 && status == TDM_OK; i++)
        status = tdmi_run_line(run, "{\"step\":1234567890}", 19, &err);
    assert_int_equal(status, TDM_E_SYSTEM);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_FINISHED, &err), TDM_E_SYSTEM);
    tdmi_run_close(run);
    enum tdmi_run_status found = TDMI_RUN_NONE;
    tdm_status read = tdmi_run_read(path, &found, NULL, &err);
    char metrics[1024];
    char *text = text_of(in_folder(state, "disk/metrics.jsonl", metrics));
    bool is_whole = text[0] == '{' && text[strlen(text) - 1] == '\n';
    free(text);
    assert_int_equal(umount(path), 0);
    assert_int_equal(read, TDM_OK);
    assert_int_equal(found, TDMI_RUN_RUNNING);
    assert_true(is_whole);
}

/* The child saves records and lines until it is killed. */
static void write_for_ever(const char *path)
{
    tdmi_run *run = NULL;
    char section[4096];
    if (tdmi_run_open(path, TDMI_RUN_RESUME, &run, NULL) != TDM_OK)
        _exit(1);
    for (unsigned i = 0;; i++) {
        size_t n = 10 + i % 4000;
        memset(section, '1', n);
        section[n] = '\0';
        if (tdmi_run_set(run, "data", section, NULL) != TDM_OK ||
            tdmi_run_save(run, TDMI_RUN_RUNNING, NULL) != TDM_OK ||
            tdmi_run_line(run, "{\"step\":1}", 10, NULL) != TDM_OK)
            _exit(2);
    }
}

TEST_WITH(a_kill_leaves_a_whole_record_and_whole_lines, make_folder, remove_folder)
{
    char path[1024];
    in_folder(state, "run", path);
    for (int i = 0; i < 25; i++) {
        tdm_error err = {0};
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            write_for_ever(path);
        nanosleep(&(struct timespec){.tv_nsec = 1000000L * (3 + 2 * i)}, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        int how = 0;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        enum tdmi_run_status status = TDMI_RUN_NONE;
        assert_ok(tdmi_run_read(path, &status, NULL, &err), &err);
        /* The lock of the dead is free, and what it left behind is no obstacle. */
        tdmi_run *run = open_run(path, TDMI_RUN_RESUME);
        assert_int_equal(tdmi_run_cut(run, up_to(1), &err), TDM_OK);
        tdmi_run_close(run);
    }
    enum tdmi_run_status status = TDMI_RUN_NONE;
    assert_int_equal(tdmi_run_read(path, &status, NULL, NULL), TDM_OK);
    assert_int_equal(status, TDMI_RUN_RUNNING);
    char metrics[1024];
    TDMI_AT_END(free_at) char *text = text_of(in_folder(state, "run/metrics.jsonl", metrics));
    assert_int_equal(strlen(text) % 11, 0);
    assert_memory_equal(text, "{\"step\":1}\n", 11);
}

TEST_WITH(a_folder_that_was_removed_is_not_made_again, make_folder, remove_folder)
{
    char path[1024], moved[1024];
    tdm_error err = {0};
    in_folder(state, "run", path);
    in_folder(state, "moved", moved);
    tdmi_run *run = open_run(path, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, &err), TDM_OK);
    assert_int_equal(tdmi_run_check(run, &err), TDM_OK);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(tdmi_run_check(run, &err), TDM_E_SYSTEM);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_FINISHED, &err), TDM_E_SYSTEM);
    assert_int_equal(tdmi_file_kind_of(path), TDMI_FILE_MISSING);
    /* Another run of that name is another's: it is neither written to nor cleaned up. */
    tdmi_run *other = open_run(path, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_check(run, &err), TDM_E_SYSTEM);
    tdmi_run_close(run);
    assert_int_equal(tdmi_run_save(other, TDMI_RUN_RUNNING, &err), TDM_OK);
    tdmi_run_close(other);
    /* A folder that was moved away can be resumed. */
    run = open_run(moved, TDMI_RUN_RESUME);
    assert_int_equal(tdmi_run_found(run), TDMI_RUN_RUNNING);
    tdmi_run_close(run);
}

TEST_MAIN(be_silent, NULL)
