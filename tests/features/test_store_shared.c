/*
 * The store among others: processes that fill and read one key at once, those that are killed, a
 * disk or a limit that is full, and keys that give way.
 */
#include "unit.h"
#include "features/store.h"

#include "features/stores.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static void wait_for(pid_t child)
{
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void let_time_pass(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Half of the rows are of both. */
TEST(two_processes_fill_one_key_at_once)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    pid_t children[2];
    for (uint64_t p = 0; p < 2; p++) {
        children[p] = fork();
        assert_true(children[p] >= 0);
        if (children[p] == 0) {
            tdm_error err = {0};
            tdmi_store *store = NULL;
            bool is_good = store_try(&tree, STORE_KEY, 0, &store, &err) == TDM_OK &&
                           tdmi_store_fill_begin(store, 1000, TDMI_DTYPE_F32, &err) == TDM_OK;
            for (uint64_t at = 500 * p; is_good && at < 500 * p + 1000; at += 100)
                is_good = store_add(store, at, at + 100, &err) == TDM_OK &&
                          tdmi_store_fill_commit(store, &err) == TDM_OK;
            tdmi_store_close(store);
            _exit(is_good ? 0 : 1);
        }
    }
    for (int p = 0; p < 2; p++)
        wait_for(children[p]);
    tdmi_store *store = store_open(&tree, STORE_KEY);
    assert_int_equal(tdmi_store_rows(store), 1500);
    assert_int_equal(store_has(store, 0, 1600), 1500);
    tdmi_store_close(store);
}

/* Fills for ever, a commit every hundred rows, and says after each how many there are. */
static void fill_until_killed(const struct tree *tree, int told)
{
    tdm_error err = {0};
    tdmi_store *store = NULL;
    if (store_try(tree, STORE_KEY, 0, &store, &err) != TDM_OK ||
        tdmi_store_fill_begin(store, 1000000, TDMI_DTYPE_F32, &err) != TDM_OK)
        _exit(1);
    for (uint64_t at = (uint64_t)tdmi_store_rows(store);; at++) {
        if (store_add(store, at, at + 1, &err) != TDM_OK)
            _exit(1);
        if (at % 100 != 99)
            continue;
        const int64_t n = (int64_t)at + 1;
        if (tdmi_store_fill_commit(store, &err) != TDM_OK || write(told, &n, sizeof n) < 0)
            _exit(1);
    }
}

TEST(what_was_committed_outlives_a_kill)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char folder[512] = "";
    int64_t n_committed = 0;
    for (int turn = 0; turn < 20; turn++) {
        int told[2];
        const int64_t wanted = n_committed + 300;
        assert_int_equal(pipe(told), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            fill_until_killed(&tree, told[1]);
        close(told[1]);
        while (n_committed < wanted)
            assert_int_equal(read(told[0], &n_committed, sizeof n_committed), sizeof n_committed);
        nanosleep(&(struct timespec){.tv_nsec = 100000 * turn}, NULL); /* somewhere in the next */
        assert_int_equal(kill(child, SIGKILL), 0);
        while (read(told[0], &n_committed, sizeof n_committed) > 0)
            continue;
        close(told[0]);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));

        TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = store_open(&tree, STORE_KEY);
        snprintf(folder, sizeof folder, "%s", tdmi_store_folder(store));
        assert_true(tdmi_store_rows(store) >= n_committed);
        assert_true(tdmi_store_rows(store) <= n_committed + 100); /* killed before it could say */
        n_committed = tdmi_store_rows(store);
        assert_int_equal(store_has(store, 0, (uint64_t)n_committed), n_committed);
        assert_int_equal(store_files(folder, ".tmp", NULL), 0);
    }
}

/* Two that fill on, while a third's limit is so small that it throws out whatever is idle. */
TEST(keys_are_opened_and_thrown_out_at_the_same_time)
{
    enum { processes = 3 };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    pid_t children[processes];
    for (int p = 0; p < processes; p++) {
        children[p] = fork();
        assert_true(children[p] >= 0);
        if (children[p] != 0)
            continue;
        const char *key = p == 0 ? "{\"one\":1}" : "{\"other\":1}";
        bool is_good = true;
        for (int turn = 0; is_good && turn < 150; turn++) {
            tdm_error err = {0};
            TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = NULL;
            is_good = store_try(&tree, key, p == 0 ? 20000 : 0, &store, &err) == TDM_OK;
            if (is_good && p == 0) {
                tdm_status status = tdmi_store_fill_begin(store, 100, TDMI_DTYPE_F32, &err);
                is_good = status == TDM_OK || status == TDM_E_SYSTEM;
            } else if (is_good) {
                is_good =
                    store_try_fill(store, 0, 30, &err) == TDM_OK && store_has(store, 0, 30) == 30;
            }
        }
        _exit(is_good ? 0 : 1);
    }
    for (int p = 0; p < processes; p++)
        wait_for(children[p]);
}

/* ---- a full disk, a full store --------------------------------------------------------------- */

/* A limit on file sizes fails in write like a full disk does. */
TEST(a_write_that_fails_ends_the_fill_and_keeps_what_was_committed)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct rlimit old, tight;
    tdm_error err = {0};
    float values[STORE_WIDTH] = {0};
    TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = store_open(&tree, STORE_KEY);
    assert_ok(tdmi_store_fill_begin(store, 100000, TDMI_DTYPE_F32, &err), &err);
    assert_ok(store_add(store, 0, 100, &err), &err);
    assert_ok(tdmi_store_fill_commit(store, &err), &err);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = old;
    tight.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    tdm_status status = store_add(store, 100, 50000, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_failure(status, TDM_E_SYSTEM, &err, "File too large");
    assert_failure(status, TDM_E_SYSTEM, &err, tree.root);
    assert_int_equal(tdmi_store_fill_add(store, store_row(1), values, &err), TDM_E_BUG);
    assert_int_equal(store_has(store, 0, 1000), 100);
    assert_int_equal(store_files(tdmi_store_folder(store), ".tmp", NULL), 0);
    store_fill(store, 100, 200); /* there is room again */
    assert_int_equal(store_has(store, 0, 1000), 200);
}

TEST(more_than_the_disk_has_is_refused_before_anything_is_written)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    tdmi_store *store = NULL;
    assert_ok(store_try(&tree, STORE_KEY, INT64_MAX / 2, &store, &err), &err);
    tdm_status status = tdmi_store_fill_begin(store, (int64_t)1 << 50, TDMI_DTYPE_F32, &err);
    assert_failure(status, TDM_E_SYSTEM, &err, "do not fit the disk");
    assert_failure(status, TDM_E_SYSTEM, &err, "set TANDEM_HOME to a folder on another disk");
    assert_failure(status, TDM_E_SYSTEM, &err, "184647584722190464 bytes"); /* 164 a row, 128 */
    assert_int_equal(tdmi_store_fill_add(store, store_row(1), (float[STORE_WIDTH]){0}, &err),
                     TDM_E_BUG);
    tdmi_store_close(store);

    /* Nobody said a limit: half of what is free is not enough either. */
    assert_ok(store_try(&tree, STORE_KEY, 0, &store, &err), &err);
    status = tdmi_store_fill_begin(store, (int64_t)40 << 30, TDMI_DTYPE_F16, &err);
    assert_failure(status, TDM_E_SYSTEM, &err, "its limit is");
    assert_failure(status, TDM_E_SYSTEM, &err,
                   "set TANDEM_HOME to a folder on another disk, or train with --features none");
    tdmi_store_close(store);
}

TEST(a_folder_that_cannot_be_made_is_refused_by_name)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_text(&tree, "file", "no folder");
    const struct tdmi_store_options options = {
        .folder = tree_path(&tree, "file"), .key = STORE_KEY, .width = 1};
    tdm_error err = {0};
    tdmi_store *store = NULL;
    tdm_status status = tdmi_store_open(&options, &store, &err);
    assert_failure(status, TDM_E_SYSTEM, &err, "/file");
    assert_null(store);
}

/* ---- who gives way --------------------------------------------------------------------------- */

enum { KEY_ROWS = 100, KEY_BYTES = 128 + KEY_ROWS * (STORE_WIDTH * 4 + 16) };

static const char *key_of(char name)
{
    static char key[16];
    snprintf(key, sizeof key, "{\"of\":\"%c\"}", name);
    return key;
}

/* Opens the key and closes it: it was used now. Says whether its rows are there. */
static bool is_there(const struct tree *tree, char name)
{
    tdmi_store *store = store_open(tree, key_of(name));
    const int64_t n = store_has(store, 0, KEY_ROWS);
    assert_true(n == 0 || n == KEY_ROWS);
    tdmi_store_close(store);
    let_time_pass();
    return n > 0;
}

static void make_keys(const struct tree *tree, const char *names)
{
    for (; *names != '\0'; names++) {
        tdmi_store *store = store_open(tree, key_of(*names));
        store_fill(store, 0, KEY_ROWS);
        tdmi_store_close(store);
        let_time_pass();
    }
}

/* Room for so many keys of KEY_ROWS rows, their texts included. */
static tdm_status fill_under(const struct tree *tree, char name, int n_keys, tdm_error *err)
{
    tdmi_store *store = NULL;
    tdm_status status =
        store_try(tree, key_of(name), n_keys * (int64_t)(KEY_BYTES + 100), &store, err);
    if (status == TDM_OK)
        status = store_try_fill(store, 0, KEY_ROWS, err);
    tdmi_store_close(store);
    let_time_pass();
    return status;
}

TEST(the_least_recently_used_key_gives_way_first)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    make_keys(&tree, "abcd");
    assert_true(is_there(&tree, 'a')); /* now b is the oldest */
    assert_ok(fill_under(&tree, 'e', 4, &err), &err);
    assert_true(is_there(&tree, 'a'));
    assert_false(is_there(&tree, 'b'));
    assert_true(is_there(&tree, 'd'));
    assert_true(is_there(&tree, 'c'));
    assert_true(is_there(&tree, 'e'));
    /* The folder goes with the rows: b's came back when it was looked for, empty. */
    assert_ok(fill_under(&tree, 'f', 2, &err), &err);
    assert_int_equal(store_files(tree.root, "", NULL), 2 + 2 + 1); /* and the lock of who counts */
    assert_true(is_there(&tree, 'e'));
    assert_true(is_there(&tree, 'f'));
}

TEST(a_key_that_a_process_has_open_does_not_give_way)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    make_keys(&tree, "abc");
    tdmi_store *held = store_open(&tree, key_of('a'));
    let_time_pass();
    assert_true(is_there(&tree, 'b')); /* c would be next after a */
    assert_ok(fill_under(&tree, 'd', 3, &err), &err);
    assert_int_equal(store_has(held, 0, KEY_ROWS), KEY_ROWS);
    assert_false(is_there(&tree, 'c'));
    assert_true(is_there(&tree, 'b'));

    /* The same for a store of another process. */
    int ready[2], over[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(over), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tdmi_store *store = NULL;
        close(over[1]);
        bool is_good = store_try(&tree, key_of('b'), 0, &store, &err) == TDM_OK &&
                       write(ready[1], "r", 1) == 1;
        is_good = is_good && read(over[0], &(char){0}, 1) == 0;
        is_good = is_good && store_has(store, 0, KEY_ROWS) == KEY_ROWS;
        tdmi_store_close(store);
        _exit(is_good ? 0 : 1);
    }
    close(ready[1]);
    close(over[0]);
    assert_int_equal(read(ready[0], &(char){0}, 1), 1);
    tdm_status status = fill_under(&tree, 'e', 2, &err); /* a and b are all there may be */
    assert_failure(status, TDM_E_SYSTEM, &err, "keys that are in use");
    assert_true(is_there(&tree, 'd')); /* which would not have been enough */
    close(over[1]);
    wait_for(child);
    close(ready[0]);
    tdmi_store_close(held);
    assert_ok(fill_under(&tree, 'e', 2, &err), &err);
}

TEST(a_fill_that_would_never_fit_removes_nothing)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    make_keys(&tree, "ab");
    tdmi_store *store = NULL;
    assert_ok(store_try(&tree, key_of('c'), 3 * KEY_BYTES, &store, &err), &err);
    tdm_status status = tdmi_store_fill_begin(store, 10 * KEY_ROWS, TDMI_DTYPE_F32, &err);
    assert_failure(status, TDM_E_SYSTEM, &err, "its limit is");
    tdmi_store_close(store);
    assert_true(is_there(&tree, 'a'));
    assert_true(is_there(&tree, 'b'));
}

/* ---- promises -------------------------------------------------------------------------------- */

/* Begins to fill three quarters of the limit, says so, and writes nothing. */
static void hold_a_promise(const struct tree *tree, int64_t limit, int told)
{
    tdmi_store *store = NULL;
    tdm_error err = {0};
    if (store_try(tree, key_of('a'), limit, &store, &err) != TDM_OK ||
        tdmi_store_fill_begin(store, 3 * KEY_ROWS, TDMI_DTYPE_F32, &err) != TDM_OK ||
        write(told, "r", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

TEST(room_is_promised_once_and_given_back_by_the_dead)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    const int64_t limit = 4 * (KEY_BYTES + 100);
    tdm_error err = {0};
    tdmi_store *store = NULL;
    int told[2], status;
    assert_int_equal(pipe(told), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        hold_a_promise(&tree, limit, told[1]);
    assert_int_equal(read(told[0], &(char){0}, 1), 1);
    assert_ok(store_try(&tree, key_of('b'), limit, &store, &err), &err);
    tdm_status answer = tdmi_store_fill_begin(store, 2 * KEY_ROWS, TDMI_DTYPE_F32, &err);
    assert_failure(answer, TDM_E_SYSTEM, &err, "or promised to them");
    assert_ok(tdmi_store_fill_begin(store, KEY_ROWS, TDMI_DTYPE_F32, &err), &err);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_ok(tdmi_store_fill_begin(store, 2 * KEY_ROWS, TDMI_DTYPE_F32, &err), &err);
    assert_ok(store_add(store, 0, 2 * KEY_ROWS, &err), &err);
    assert_ok(tdmi_store_fill_commit(store, &err), &err);
    tdmi_store_close(store);
    close(told[0]);
    close(told[1]);
}

/* Written rows are no longer reserved, or they would count twice. */
TEST(committed_rows_lower_the_reservation)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    const int64_t limit = 4 * (KEY_BYTES + 100);
    tdm_error err = {0};
    tdmi_store *first = NULL, *second = NULL;
    assert_ok(store_try(&tree, key_of('a'), limit, &first, &err), &err);
    assert_ok(store_try(&tree, key_of('b'), limit, &second, &err), &err);
    assert_ok(tdmi_store_fill_begin(first, 2 * KEY_ROWS, TDMI_DTYPE_F32, &err), &err);
    assert_ok(store_add(first, 0, KEY_ROWS, &err), &err);
    assert_ok(tdmi_store_fill_commit(first, &err), &err);
    tdm_status status = tdmi_store_fill_begin(second, 3 * KEY_ROWS, TDMI_DTYPE_F32, &err);
    assert_failure(status, TDM_E_SYSTEM, &err, "or promised to them");
    assert_ok(tdmi_store_fill_begin(second, 1, TDMI_DTYPE_F32, &err), &err);
    assert_ok(tdmi_store_fill_begin(second, 2 * KEY_ROWS, TDMI_DTYPE_F32, &err), &err);
    tdmi_store_close(first); /* the other hundred rows never came */
    assert_ok(tdmi_store_fill_begin(second, 3 * KEY_ROWS, TDMI_DTYPE_F32, &err), &err);
    tdmi_store_close(second);
}

/* ---- for reading only ------------------------------------------------------------------------ */

static void protect(const struct tree *tree, bool is_protected)
{
    char command[300];
    snprintf(command, sizeof command, "chmod -R %s '%s'", is_protected ? "a+rX,a-w" : "u+w",
             tree->root);
    assert_int_equal(system(command), 0);
}

static bool reads_and_cannot_fill(const struct tree *tree)
{
    tdm_error err = {0};
    tdmi_store *store = NULL;
    if (store_try(tree, STORE_KEY, 0, &store, &err) != TDM_OK)
        return false;
    const bool is_good = store_has(store, 0, KEY_ROWS) == KEY_ROWS &&
                         tdmi_store_fill_begin(store, 0, TDMI_DTYPE_F32, &err) == TDM_OK &&
                         tdmi_store_fill_commit(store, &err) == TDM_OK &&
                         tdmi_store_fill_begin(store, 1, TDMI_DTYPE_F32, &err) == TDM_E_SYSTEM &&
                         strstr(tdm_error_sentence(&err, 0), "can be read and not written") != NULL;
    tdmi_store_close(store);
    /* A key that is not there cannot be made. */
    return is_good && store_try(tree, key_of('z'), 0, &store, &err) == TDM_E_SYSTEM;
}

/* Root may write everywhere, so it looks as somebody else. */
TEST(what_is_complete_is_read_where_nothing_can_be_written)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (int has_lock = 1; has_lock >= 0; has_lock--) {
        tdmi_store *store = store_open(&tree, STORE_KEY);
        store_fill(store, 0, KEY_ROWS);
        if (!has_lock) { /* copied without it, say */
            char command[300];
            snprintf(command, sizeof command, "rm '%s'/*/lock", tree.root);
            assert_int_equal(system(command), 0);
        }
        tdmi_store_close(store);
        protect(&tree, true);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            if (geteuid() == 0 && setuid(65534) != 0)
                _exit(1);
            _exit(reads_and_cannot_fill(&tree) ? 0 : 1);
        }
        wait_for(child);
        protect(&tree, false);
    }
}

TEST(what_is_no_key_is_left_alone)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    make_keys(&tree, "a");
    tree_text(&tree, "note.txt", "mine");
    tree_text(&tree, "pictures/mine.rows", "mine");
    assert_ok(fill_under(&tree, 'b', 1, &err), &err);
    assert_int_equal(access(tree_path(&tree, "note.txt"), F_OK), 0);
    assert_int_equal(access(tree_path(&tree, "pictures/mine.rows"), F_OK), 0);
    assert_false(is_there(&tree, 'a'));
}

TEST_MAIN(NULL, NULL)
