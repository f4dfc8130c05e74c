/* Atomic files, reading and folders, with the failures that a system can answer. */
#include "base/file/file.h"
#include "base/memory.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include "base/each_allocation.h"
#include "base/folder.h"
#include "unit.h"

static void assert_content(const char *path, const char *expected)
{
    void *bytes = NULL;
    size_t length = 0;
    tdm_error err = {0};
    assert_int_equal(tdmi_file_read(path, 100000, &bytes, &length, &err), TDM_OK);
    assert_int_equal(length, strlen(expected));
    assert_string_equal(bytes, expected); /* the zero byte after it, too */
    tdmi_free(bytes);
}

static size_t count_entries(const char *path)
{
    tdmi_arena arena = {0};
    struct tdmi_folder_entry *entries = NULL;
    size_t n_entries = 0;
    tdm_error err = {0};
    assert_int_equal(tdmi_folder_list(path, &arena, &entries, &n_entries, &err), TDM_OK);
    tdmi_arena_release(&arena);
    return n_entries;
}

/* ---- atomic writing ----------------------------------------------------------------------- */

TEST(a_file_appears_whole_at_commit)
{
    struct folder folder = folder_new();
    const char *path = folder_path(&folder, "a.txt");
    tdmi_atomic_file *file = NULL;
    tdm_error err = {0};
    folder_put(&folder, "a.txt", "old");
    assert_int_equal(tdmi_atomic_open(path, &file, &err), TDM_OK);
    assert_int_equal(tdmi_atomic_write(file, "????, world", 11, &err), TDM_OK);
    assert_int_equal(tdmi_atomic_write_at(file, 0, "good", 4, &err), TDM_OK);
    assert_int_equal(tdmi_atomic_write(file, "!", 1, &err), TDM_OK);
    assert_content(path, "old");
    assert_int_equal(tdmi_atomic_commit(file, &err), TDM_OK);
    assert_content(path, "good, world!");
    assert_int_equal(count_entries(folder.path), 1);
    folder_remove(&folder);
}

/* Large ones go to the disk while they are written; what is overwritten then counts too. */
TEST(a_large_file_is_whole)
{
    enum { WORDS = 1000003, TIMES = 3 };
    struct folder folder = folder_new();
    const char *path = folder_path(&folder, "large");
    tdmi_atomic_file *file = NULL;
    void *read = NULL;
    size_t length = 0;
    tdm_error err = {0};
    uint32_t *words = tdmi_alloc(WORDS, sizeof *words);
    assert_non_null(words);
    assert_int_equal(tdmi_atomic_open(path, &file, &err), TDM_OK);
    for (uint32_t time = 0; time < TIMES; time++) {
        for (uint32_t i = 0; i < WORDS; i++)
            words[i] = time * WORDS + i;
        assert_int_equal(tdmi_atomic_write(file, words, WORDS * sizeof *words, &err), TDM_OK);
    }
    const uint32_t head = 7;
    assert_int_equal(tdmi_atomic_write_at(file, 0, &head, sizeof head, &err), TDM_OK);
    assert_int_equal(tdmi_atomic_commit(file, &err), TDM_OK);
    assert_int_equal(tdmi_file_read(path, SIZE_MAX, &read, &length, &err), TDM_OK);
    assert_int_equal(length, (size_t)TIMES * WORDS * sizeof *words);
    for (uint32_t i = 0; i < TIMES * WORDS; i++)
        if (((const uint32_t *)read)[i] != (i == 0 ? head : i))
            fail_msg("word %u is %u", i, ((const uint32_t *)read)[i]);
    tdmi_free(read);
    tdmi_free(words);
    folder_remove(&folder);
}

TEST(bytes_may_decide_the_name)
{
    tdm_error err = {0};
    tdmi_atomic_file *file = NULL;
    assert_int_equal(tdmi_folder_make("renamed/below", &err), TDM_OK);
    assert_int_equal(tdmi_atomic_open("renamed/below/working", &file, &err), TDM_OK);
    assert_int_equal(tdmi_atomic_write(file, "seven", 5, &err), TDM_OK);
    assert_int_equal(tdmi_atomic_rename(file, "renamed/seven", &err), TDM_OK);
    assert_int_equal(tdmi_file_kind_of("renamed/seven"), TDMI_FILE_MISSING);
    assert_int_equal(tdmi_atomic_commit(file, &err), TDM_OK);
    assert_content("renamed/seven", "seven");
    assert_int_equal(tdmi_file_kind_of("renamed/below/working"), TDMI_FILE_MISSING);
    assert_int_equal(rmdir("renamed/below"), 0); /* nothing is left in it */
}

TEST(an_aborted_file_leaves_nothing)
{
    struct folder folder = folder_new();
    tdmi_atomic_file *file = NULL;
    tdm_error err = {0};
    folder_put(&folder, "a.txt", "old");
    assert_int_equal(tdmi_atomic_open(folder_path(&folder, "a.txt"), &file, &err), TDM_OK);
    assert_int_equal(tdmi_atomic_write(file, "new", 3, &err), TDM_OK);
    assert_int_equal(count_entries(folder.path), 2);
    tdmi_atomic_abort(file);
    tdmi_atomic_abort(NULL);
    assert_int_equal(count_entries(folder.path), 1);
    assert_content(folder_path(&folder, "a.txt"), "old");
    folder_remove(&folder);
}

static unsigned mode_of(const char *path)
{
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    return facts.st_mode & 07777;
}

TEST(modes_are_kept_and_new_files_honour_umask)
{
    static const mode_t modes[] = {0600, 0644, 0664, 0640, 0777};
    struct folder folder = folder_new();
    tdm_error err = {0};
    mode_t before = umask(027);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        folder_put(&folder, "old", "old");
        chmod(folder_path(&folder, "old"), modes[i]);
        assert_int_equal(tdmi_file_write(folder_path(&folder, "old"), "new", 3, &err), TDM_OK);
        assert_int_equal(mode_of(folder_path(&folder, "old")), modes[i]);
    }
    assert_int_equal(tdmi_file_write(folder_path(&folder, "fresh"), "x", 1, &err), TDM_OK);
    assert_int_equal(mode_of(folder_path(&folder, "fresh")), 0640);
    umask(before);
    folder_remove(&folder);
}

TEST(missing_parents_are_made)
{
    struct folder folder = folder_new();
    tdm_error err = {0};
    assert_int_equal(tdmi_file_write(folder_path(&folder, "a/b//c/d.txt"), "x", 1, &err), TDM_OK);
    assert_content(folder_path(&folder, "a/b/c/d.txt"), "x");
    /* A name without a folder goes into the current one. */
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder.path), 0);
    tdm_status status = tdmi_file_write("here.txt", "", 0, &err);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(status, TDM_OK);
    assert_content(folder_path(&folder, "here.txt"), "");
    folder_remove(&folder);
}

TEST(a_folder_that_must_be_there_is_not_made)
{
    struct folder folder = folder_new();
    tdm_error err = {0};
    assert_int_equal(tdmi_file_write_in_folder(folder_path(&folder, "gone/a"), "x", 1, &err),
                     TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "gone/a: No such file or directory"));
    assert_int_equal(count_entries(folder.path), 0);
    assert_int_equal(tdmi_file_write_in_folder(folder_path(&folder, "a"), "x", 1, &err), TDM_OK);
    assert_content(folder_path(&folder, "a"), "x");
    folder_remove(&folder);
}

TEST(a_link_stays_a_link)
{
    struct folder folder = folder_new();
    struct stat facts;
    tdm_error err = {0};
    folder_put(&folder, "far/target", "old");
    assert_int_equal(symlink("far/target", folder_path(&folder, "link")), 0);
    assert_int_equal(tdmi_file_write(folder_path(&folder, "link"), "new", 3, &err), TDM_OK);
    assert_int_equal(lstat(folder_path(&folder, "link"), &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    assert_content(folder_path(&folder, "far/target"), "new");
    assert_int_equal(count_entries(folder_path(&folder, "far")), 1);
    folder_remove(&folder);
}

TEST(a_new_file_replaces_none)
{
    struct folder folder = folder_new();
    const char *path = folder_path(&folder, "commit");
    tdm_error err = {0};
    assert_int_equal(tdmi_file_write_new(path, "first", 5, &err), TDM_OK);
    assert_int_equal(tdmi_file_write_new(path, "second", 6, &err), TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "File exists"));
    assert_content(path, "first");
    assert_int_equal(count_entries(folder.path), 1);
    folder_remove(&folder);
}

TEST(what_is_no_file_is_not_replaced)
{
    struct folder folder = folder_new();
    tdm_error err = {0};
    assert_int_equal(tdmi_file_write(folder.path, "x", 1, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "it is a folder"));
    assert_int_equal(mkfifo(folder_path(&folder, "pipe"), 0600), 0);
    assert_int_equal(tdmi_file_write(folder_path(&folder, "pipe"), "x", 1, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "device or pipe"));
    assert_int_equal(tdmi_file_write("/dev/null", "x", 1, &err), TDM_E_USAGE);
    assert_int_equal(tdmi_file_write(folder_path(&folder, "new/"), "x", 1, &err), TDM_E_USAGE);
    assert_int_equal(tdmi_file_write("", "x", 1, &err), TDM_E_USAGE);
    folder_remove(&folder);
}

TEST(refusals_of_the_system_name_path_and_reason)
{
    struct folder folder = folder_new();
    tdm_error err = {0};
    char text[1000], long_name[301];
    folder_put(&folder, "file", "x");
    assert_int_equal(tdmi_file_write(folder_path(&folder, "file/below"), "x", 1, &err),
                     TDM_E_SYSTEM);
    tdm_error_format(&err, text, sizeof text);
    assert_non_null(strstr(text, "file/below"));
    assert_non_null(strstr(text, "is there and is no folder"));
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    tdm_status status = tdmi_file_write(folder_path(&folder, long_name), "x", 1, &err);
    assert_int_equal(status, TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "File name too long"));
    assert_int_equal(count_entries(folder.path), 1);
    /* The longest name there may be still has a temporary one. */
    long_name[255] = '\0';
    assert_int_equal(tdmi_file_write(folder_path(&folder, long_name), "x", 1, &err), TDM_OK);

    mkdir(folder_path(&folder, "locked"), 0555);
    /* The superuser may write anywhere; somebody else may not. */
    bool is_root = geteuid() == 0;
    chmod(folder.path, 0755);
    assert_true(!is_root || seteuid(65534) == 0);
    status = tdmi_file_write(folder_path(&folder, "locked/a"), "x", 1, &err);
    tdm_status made = tdmi_folder_make(folder_path(&folder, "locked/b/c"), NULL);
    assert_true(!is_root || seteuid(0) == 0);
    assert_int_equal(status, TDM_E_SYSTEM);
    assert_int_equal(made, TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "Permission denied"));
    folder_remove(&folder);
}

/* A file size limit stands in for a full disk: write answers in the same way. */
TEST(a_write_that_fails_leaves_the_old_file)
{
    struct folder folder = folder_new();
    struct rlimit before, small;
    tdmi_atomic_file *file = NULL;
    tdm_error err = {0}, commit_err = {0};
    char block[4096] = "";
    folder_put(&folder, "a.txt", "old");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 10000;
    setrlimit(RLIMIT_FSIZE, &small);
    tdm_status status = tdmi_atomic_open(folder_path(&folder, "a.txt"), &file, &err);
    for (int i = 0; i < 10 && status == TDM_OK; i++)
        status = tdmi_atomic_write(file, block, sizeof block, &err);
    /* A caller who missed it cannot commit a torn file. */
    tdm_status committed = tdmi_atomic_commit(file, &commit_err);
    tdm_status once = tdmi_file_write(folder_path(&folder, "b.txt"), block, 0, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(once, TDM_OK);
    assert_int_equal(status, TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "a.txt: File too large"));
    assert_int_equal(committed, TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&commit_err, 0), "an earlier write to it failed"));
    assert_content(folder_path(&folder, "a.txt"), "old");
    assert_int_equal(count_entries(folder.path), 2);
    folder_remove(&folder);
}

TEST(overwriting_beyond_the_end_is_a_mistake)
{
    static const struct {
        uint64_t offset;
        size_t length;
    } cases[] = {{4, 0}, {0, 4}, {3, 1}, {UINT64_MAX, 1}, {1, SIZE_MAX}};
    struct folder folder = folder_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_atomic_file *file = NULL;
        tdm_error err = {0};
        assert_int_equal(tdmi_atomic_open(folder_path(&folder, "a"), &file, &err), TDM_OK);
        assert_int_equal(tdmi_atomic_write(file, "abc", 3, &err), TDM_OK);
        assert_int_equal(tdmi_atomic_write_at(file, cases[i].offset, "xxxx", cases[i].length, &err),
                         TDM_E_BUG);
        assert_int_equal(tdmi_atomic_commit(file, &err), TDM_E_SYSTEM);
    }
    assert_int_equal(count_entries(folder.path), 0);
    folder_remove(&folder);
}

static void *write_often(void *path)
{
    for (int i = 0; i < 30; i++)
        if (tdmi_file_write(path, "0123456789", 10, NULL) != TDM_OK)
            return path;
    return NULL;
}

TEST(threads_may_write_the_same_file)
{
    struct folder folder = folder_new();
    char path[200];
    pthread_t threads[4];
    snprintf(path, sizeof path, "%s", folder_path(&folder, "same"));
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, write_often, path);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_content(path, "0123456789");
    assert_int_equal(count_entries(folder.path), 1);
    folder_remove(&folder);
}

/* ---- reading ------------------------------------------------------------------------------ */

TEST(reading_refuses_what_it_cannot_take)
{
    struct folder folder = folder_new();
    void *bytes = &folder;
    size_t length = 7;
    tdm_error err = {0};
    folder_put(&folder, "ten", "0123456789");
    assert_int_equal(tdmi_file_read(folder_path(&folder, "ten"), 9, &bytes, &length, &err),
                     TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "10 bytes, at most 9 are accepted"));
    assert_null(bytes);
    assert_int_equal(length, 0);
    assert_int_equal(tdmi_file_read(folder_path(&folder, "none"), 9, &bytes, &length, &err),
                     TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "none: No such file"));
    assert_int_equal(tdmi_file_read(folder.path, 9, &bytes, &length, &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "is a folder"));
    assert_int_equal(mkfifo(folder_path(&folder, "pipe"), 0600), 0);
    assert_int_equal(tdmi_file_read(folder_path(&folder, "pipe"), 9, &bytes, &length, &err),
                     TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "pipe: it is a pipe, not a file"));
    /* Endless, and without a size to be seen. */
    assert_int_equal(tdmi_file_read("/dev/zero", 100000, &bytes, &length, &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "more than the 100000 bytes"));
    assert_int_equal(tdmi_file_read(folder_path(&folder, "ten"), 10, &bytes, &length, &err),
                     TDM_OK);
    assert_int_equal(length, 10);
    tdmi_free(bytes);
    folder_remove(&folder);
}

TEST(files_without_a_size_are_read_whole)
{
    void *bytes = NULL;
    size_t length = 0;
    tdm_error err = {0};
    assert_int_equal(tdmi_file_read("/proc/self/maps", SIZE_MAX, &bytes, &length, &err), TDM_OK);
    assert_true(length > 500);
    assert_int_equal(strlen(bytes), length);
    tdmi_free(bytes);
    assert_int_equal(tdmi_file_read("/dev/null", 0, &bytes, &length, &err), TDM_OK);
    assert_int_equal(length, 0);
    assert_string_equal(bytes, "");
    tdmi_free(bytes);
}

/* ---- folders and paths -------------------------------------------------------------------- */

TEST(a_folder_is_listed_by_bytes)
{
    static const struct {
        const char *name;
        enum tdmi_file_kind kind;
    } expected[] = {
        {".hidden", TDMI_FILE_REGULAR}, {"B", TDMI_FILE_REGULAR},        {"a", TDMI_FILE_FOLDER},
        {"b", TDMI_FILE_REGULAR},       {"gone", TDMI_FILE_MISSING},     {"link", TDMI_FILE_FOLDER},
        {"pipe", TDMI_FILE_OTHER},      {"\xc3\xa9", TDMI_FILE_REGULAR},
    };
    enum { n_expected = sizeof expected / sizeof expected[0] };
    struct folder folder = folder_new();
    tdmi_arena arena = {0};
    struct tdmi_folder_entry *entries = NULL;
    size_t n_entries = 0;
    tdm_error err = {0};
    folder_put(&folder, "a/inner", "");
    folder_put(&folder, "b", "");
    folder_put(&folder, "B", "");
    folder_put(&folder, ".hidden", "");
    folder_put(&folder, "\xc3\xa9", "");
    assert_int_equal(symlink("a", folder_path(&folder, "link")), 0);
    assert_int_equal(symlink("nowhere", folder_path(&folder, "gone")), 0);
    assert_int_equal(mkfifo(folder_path(&folder, "pipe"), 0600), 0);
    assert_int_equal(tdmi_folder_list(folder.path, &arena, &entries, &n_entries, &err), TDM_OK);
    assert_int_equal(n_entries, n_expected);
    for (size_t i = 0; i < n_expected; i++) {
        assert_string_equal(entries[i].name, expected[i].name);
        assert_int_equal(entries[i].kind, expected[i].kind);
        assert_int_equal(tdmi_file_kind_of(folder_path(&folder, expected[i].name)),
                         expected[i].kind);
    }
    assert_int_equal(
        tdmi_folder_list(folder_path(&folder, "b"), &arena, &entries, &n_entries, &err),
        TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "Not a directory"));
    assert_int_equal(
        tdmi_folder_list(folder_path(&folder, "x"), &arena, &entries, &n_entries, &err),
        TDM_E_INPUT);
    tdmi_arena_release(&arena);
    folder_remove(&folder);
}

TEST(folders_are_made_with_their_parents)
{
    struct folder folder = folder_new();
    tdm_error err = {0};
    for (int twice = 0; twice < 2; twice++)
        assert_int_equal(tdmi_folder_make(folder_path(&folder, "a/b/../c/"), &err), TDM_OK);
    assert_int_equal(tdmi_file_kind_of(folder_path(&folder, "a/c")), TDMI_FILE_FOLDER);
    assert_int_equal(tdmi_folder_make("/", &err), TDM_OK);
    assert_int_equal(tdmi_folder_make(".", &err), TDM_OK);
    assert_int_equal(tdmi_folder_sync(folder_path(&folder, "a"), &err), TDM_OK);
    assert_int_equal(tdmi_folder_sync(folder_path(&folder, "none"), &err), TDM_E_SYSTEM);
    folder_remove(&folder);
}

TEST(paths_are_joined_and_named)
{
    static const struct {
        const char *folder, *name, *joined;
    } joins[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"},
                 {"a", "/b", "/b"}, {"/", "b", "/b"},   {"a", "", "a/"}};
    static const struct {
        const char *path, *name;
    } names[] = {{"a/b.c", "b.c"}, {"b", "b"}, {"/", ""}, {"a/b/", ""}, {"", ""}};
    tdmi_arena arena = {0};
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++)
        assert_string_equal(tdmi_path_join(&arena, joins[i].folder, joins[i].name),
                            joins[i].joined);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(tdmi_path_name(names[i].path), names[i].name);
    tdmi_arena_release(&arena);
}

/* ---- memory ------------------------------------------------------------------------------- */

static tdm_status write_scene(tdm_error *err)
{
    return tdmi_file_write("/tmp/tandem-base-scene/below/file", "x", 1, err);
}

static tdm_status read_scene(tdm_error *err)
{
    tdmi_arena arena = {0};
    struct tdmi_folder_entry *entries = NULL;
    size_t n_entries = 0, length = 0;
    void *bytes = NULL;
    tdm_status status = tdmi_file_read("/proc/self/maps", SIZE_MAX, &bytes, &length, err);
    if (status == TDM_OK)
        status = tdmi_folder_list("/dev", &arena, &entries, &n_entries, err);
    tdmi_free(bytes);
    tdmi_arena_release(&arena);
    return status;
}

TEST(every_failed_allocation_is_reported)
{
    assert_true(fail_each_allocation(write_scene) >= 2);
    assert_int_equal(unlink("/tmp/tandem-base-scene/below/file"), 0);
    assert_int_equal(rmdir("/tmp/tandem-base-scene/below"), 0);
    assert_int_equal(rmdir("/tmp/tandem-base-scene"), 0);
    assert_true(fail_each_allocation(read_scene) >= 3);
}

TEST_MAIN(NULL, NULL)
