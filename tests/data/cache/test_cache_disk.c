/*
 * The disk cache of images gives the bytes that were put, whatever other processes, damage and
 * limits do; the least recently used ones go first.
 */
#include "unit.h"
#include "data/cache/cache_disk.h"

#include "data/tree.h"
#include "base/each_allocation.h"
#include "base/hash/hash.h"
#include <pthread.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

/* The disk these tests run on: other programs fill and empty the real one meanwhile. */
static struct {
    uint64_t size_bytes, free_bytes;
} disk;

int statvfs(const char *path, struct statvfs *facts)
{
    (void)path;
    *facts = (struct statvfs){
        .f_bsize = 4096,
        .f_frsize = 4096,
        .f_blocks = disk.size_bytes / 4096,
        .f_bfree = disk.free_bytes / 4096,
        .f_bavail = disk.free_bytes / 4096,
    };
    return 0;
}

static const uint64_t gib = (uint64_t)1 << 30;

static int empty_disk(void **state)
{
    (void)state;
    disk.size_bytes = disk.free_bytes = 100 * gib;
    return 0;
}

static uint64_t fill(tdmi_text *bytes, uint64_t number, size_t length_bytes)
{
    tdmi_text_clear(bytes);
    for (size_t i = 0; i < length_bytes; i++)
        tdmi_text_add(bytes, &(char){(char)(number * 31 + i * 7)}, 1);
    return tdmi_xxh64_of(bytes->bytes, bytes->length_bytes, 0);
}

static struct tdmi_bytes_key content(uint64_t hash)
{
    return (struct tdmi_bytes_key){hash, true};
}

static tdmi_disk_cache *open_cache(const struct tree *tree, int64_t limit)
{
    tdmi_disk_cache *cache = NULL;
    tdm_error err = {0};
    assert_ok(tdmi_disk_cache_open(tree->root, limit, &cache, &err), &err);
    return cache;
}

static int n_here(tdmi_disk_cache *cache, uint64_t n, size_t length_bytes)
{
    tdmi_text bytes = {0}, found = {0};
    int n_found = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t hash = fill(&bytes, i, length_bytes);
        if (!tdmi_disk_cache_get(cache, content(hash), &found))
            continue;
        assert_int_equal(found.length_bytes, length_bytes);
        assert_memory_equal(found.bytes, bytes.bytes, length_bytes);
        n_found++;
    }
    tdmi_text_release(&bytes);
    tdmi_text_release(&found);
    return n_found;
}

static void put(tdmi_disk_cache *cache, uint64_t from, uint64_t to, size_t length_bytes)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    for (uint64_t i = from; i < to; i++) {
        uint64_t hash = fill(&bytes, i, length_bytes);
        tdmi_disk_cache_put(cache, content(hash), &bytes);
    }
}

/* So that what is put now is older than a cache opened later. */
static void let_time_pass(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

TEST_WITH(what_was_put_is_given_by_this_and_the_next_process, empty_disk, NULL)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdmi_disk_cache *cache = open_cache(&tree, 0);
    put(cache, 0, 20, 1000);
    assert_int_equal(n_here(cache, 30, 1000), 20);
    tdmi_disk_cache_close(cache);
    cache = open_cache(&tree, 0);
    assert_int_equal(n_here(cache, 30, 1000), 20);
    tdmi_disk_cache_close(cache);
}

TEST_WITH(damaged_or_cut_entries_are_not_given, empty_disk, NULL)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_disk_cache_close_at) tdmi_disk_cache *cache = open_cache(&tree, 0);
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    char name[64];
    put(cache, 0, 3, 1000);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t hash = fill(&bytes, i, 1000);
        snprintf(name, sizeof name, "%02x/%016llx", (unsigned)(hash >> 56),
                 (unsigned long long)hash);
        if (i == 0)
            assert_int_equal(truncate(tree_path(&tree, name), 999), 0);
        bytes.bytes[500] ^= 1;
        if (i == 1)
            tree_file(&tree, name, bytes.bytes, 1000);
    }
    assert_int_equal(n_here(cache, 3, 1000), 1);
    put(cache, 0, 3, 1000);
    assert_int_equal(n_here(cache, 3, 1000), 3);
    /* Bytes that are not what the name promises are not even kept. */
    uint64_t hash = fill(&bytes, 77, 1000);
    bytes.bytes[0] ^= 1;
    tdmi_disk_cache_put(cache, content(hash), &bytes);
    assert_false(tdmi_disk_cache_get(cache, content(hash), &bytes));
}

/* A row of a prepared table bears the hash of the file it was made of; its own bytes are others. */
TEST_WITH(rows_are_kept_beside_the_contents_of_their_number, empty_disk, NULL)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_disk_cache_close_at) tdmi_disk_cache *cache = open_cache(&tree, 1 << 20);
    tdmi_text file = {0}, row = {0}, found = {0};
    const uint64_t hash = fill(&file, 1, 100);
    const struct tdmi_bytes_key name = {.number = hash};
    fill(&row, 2, 60);
    tdmi_disk_cache_put(cache, content(hash), &file);
    assert_false(tdmi_disk_cache_get(cache, name, &found));
    tdmi_disk_cache_put(cache, name, &row);
    assert_true(tdmi_disk_cache_get(cache, name, &found));
    assert_int_equal(found.length_bytes, 60);
    assert_memory_equal(found.bytes, row.bytes, 60);
    assert_true(tdmi_disk_cache_get(cache, content(hash), &found));
    assert_int_equal(found.length_bytes, 100);

    /* Another row under its name is not taken for it. */
    char from[1024], to[1024];
    snprintf(from, sizeof from, "%s/%02x/%016llx.row", tree.root, (unsigned)(hash >> 56),
             (unsigned long long)hash);
    snprintf(to, sizeof to, "%s/%02x/%016llx.row", tree.root, (unsigned)(hash >> 56),
             (unsigned long long)(hash ^ 1));
    assert_int_equal(rename(from, to), 0);
    assert_false(tdmi_disk_cache_get(cache, (struct tdmi_bytes_key){.number = hash ^ 1}, &found));
    assert_int_equal(access(to, F_OK), -1);
    tdmi_text_release(&file);
    tdmi_text_release(&row);
    tdmi_text_release(&found);
}

TEST_WITH(the_least_recently_used_goes_first, empty_disk, NULL)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdmi_disk_cache *cache = open_cache(&tree, 20000);
    put(cache, 0, 20, 1000);
    tdmi_disk_cache_close(cache);
    let_time_pass();
    cache = open_cache(&tree, 20000);
    assert_int_equal(n_here(cache, 5, 1000), 5); /* used: 0 to 4 */
    put(cache, 20, 30, 1000);
    assert_in_range(n_here(cache, 30, 1000), 15, 20);
    assert_int_equal(n_here(cache, 5, 1000), 5);
    assert_int_equal(n_here(cache, 30, 1000) - n_here(cache, 20, 1000), 10);
    tdmi_disk_cache_close(cache);
}

/* A set of twice the limit: the half that was kept stays, epoch after epoch. */
TEST_WITH(a_set_beyond_the_limit_does_not_chase_itself_out, empty_disk, NULL)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_disk_cache_close_at) tdmi_disk_cache *cache = open_cache(&tree, 20000);
    for (int epoch = 0; epoch < 3; epoch++) {
        put(cache, 0, 40, 1000);
        assert_int_equal(n_here(cache, 40, 1000), 20);
        assert_int_equal(n_here(cache, 20, 1000), 20);
    }
}

/* A GiB of a large disk is left to others, a tenth of a small one; what is there is still given. */
TEST_WITH(a_disk_that_fills_keeps_its_share_free, empty_disk, NULL)
{
    const struct {
        uint64_t size_bytes, kept_bytes;
    } disks[] = {{2000 * gib, gib}, {2 * gib, gib / 5}};
    for (size_t d = 0; d < sizeof disks / sizeof disks[0]; d++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        disk.size_bytes = disks[d].size_bytes;
        disk.free_bytes = disks[d].kept_bytes + 100 * 4096;
        TDMI_AT_END(tdmi_disk_cache_close_at) tdmi_disk_cache *cache = open_cache(&tree, 0);
        put(cache, 0, 5, 1000);
        assert_int_equal(n_here(cache, 10, 1000), 5);
        disk.free_bytes = disks[d].kept_bytes;
        put(cache, 5, 10, 1000);
        assert_int_equal(n_here(cache, 10, 1000), 5);
    }
}

TEST_WITH(many_processes_share_one_folder, empty_disk, NULL)
{
    enum { processes = 4 };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    pid_t children[processes];
    for (int p = 0; p < processes; p++) {
        children[p] = fork();
        assert_true(children[p] >= 0);
        if (children[p] == 0) {
            tdmi_disk_cache *cache = open_cache(&tree, 1 << 20);
            for (int turn = 0; turn < 5; turn++) {
                put(cache, 0, 50, 3000);
                (void)n_here(cache, 50, 3000);
            }
            tdmi_disk_cache_close(cache);
            _exit(0);
        }
    }
    for (int p = 0; p < processes; p++) {
        int status = 1;
        assert_int_equal(waitpid(children[p], &status, 0), children[p]);
        assert_int_equal(status, 0);
    }
    TDMI_AT_END(tdmi_disk_cache_close_at) tdmi_disk_cache *cache = open_cache(&tree, 1 << 20);
    assert_int_equal(n_here(cache, 50, 3000), 50);
}

TEST_WITH(a_folder_that_cannot_be_made_is_refused_by_name, empty_disk, NULL)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_text(&tree, "file", "no folder");
    tdm_error err = {0};
    tdmi_disk_cache *cache = NULL;
    tdm_status status = tdmi_disk_cache_open(tree_path(&tree, "file"), 0, &cache, &err);
    assert_true(status != TDM_OK);
    assert_null(cache);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "file"));
}

static char allocating_folder[64];

static tdm_status allocating(tdm_error *err)
{
    tdmi_disk_cache *cache = NULL;
    tdm_status status = tdmi_disk_cache_open(allocating_folder, 0, &cache, err);
    tdmi_disk_cache_close(cache);
    return status;
}

TEST_WITH(running_out_of_memory_is_an_error, empty_disk, NULL)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    memcpy(allocating_folder, tree.root, sizeof tree.root);
    assert_true(fail_each_allocation(allocating) > 0);
}

TEST_MAIN(NULL, NULL)
