/*
 * The store of rows: what comes back is what was put, whatever is damaged is told by its file, and
 * rows of another key are never seen.
 */
#include "unit.h"
#include "tandem/log.h"
#include "features/store.h"

#include "features/stores.h"
#include "sanitized.h"
#include "base/each_allocation.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "tensor/half.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* ---- rows ------------------------------------------------------------------------------------ */

TEST(rows_come_back_by_content_and_view)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdmi_store *store = store_open(&tree, STORE_KEY);
    assert_int_equal(tdmi_store_rows(store), 0);
    assert_int_equal(tdmi_store_find(store, store_row(0)), -1);
    store_fill(store, 0, 1000);
    assert_int_equal(store_has(store, 0, 1200), 1000);
    store_fill(store, 1000, 1100);
    assert_int_equal(store_has(store, 0, 1200), 1100);
    tdmi_store_close(store);

    store = store_open(&tree, STORE_KEY);
    assert_int_equal(tdmi_store_rows(store), 1100);
    assert_int_equal(store_has(store, 0, 1200), 1100);
    tdmi_store_close(store);
}

/* Bits, not values: of a NaN and of -0 too. */
TEST(f32_rows_are_kept_bit_for_bit)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = store_open(&tree, STORE_KEY);
    tdm_error err = {0};
    uint32_t bits[STORE_WIDTH] = {0x7fc12345u, 0x80000000u, 1u, 0xff800000u, 0x7f7fffffu};
    float values[STORE_WIDTH], found[STORE_WIDTH];
    for (uint32_t i = 5; i < STORE_WIDTH; i++)
        bits[i] = i * 0x9e3779b9u;
    memcpy(values, bits, sizeof bits);
    assert_ok(tdmi_store_fill_begin(store, 1, TDMI_DTYPE_F32, &err), &err);
    assert_ok(tdmi_store_fill_add(store, store_row(7), values, &err), &err);
    assert_int_equal(tdmi_store_find(store, store_row(7)), -1); /* before the commit */
    assert_ok(tdmi_store_fill_commit(store, &err), &err);
    const int64_t place = tdmi_store_find(store, store_row(7));
    assert_ok(tdmi_store_read(store, place, found, &err), &err);
    assert_memory_equal(found, bits, sizeof bits);
}

TEST(f16_rows_are_rounded_to_the_nearest)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    const struct tdmi_store_options options = {.folder = tree.root, .key = "{}", .width = 1283};
    TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = NULL;
    tdm_error err = {0};
    float values[1283], found[1283];
    char path[512];
    for (int i = 0; i < 1283; i++)
        values[i] = (float)(i - 600) * 0.7312f;
    values[0] = 2049; /* between 2048 and 2050: the even one is 2048 */
    values[1] = 2051; /* between 2050 and 2052 */
    assert_ok(tdmi_store_open(&options, &store, &err), &err);
    assert_ok(tdmi_store_fill_begin(store, 2, TDMI_DTYPE_F16, &err), &err);
    assert_ok(tdmi_store_fill_add(store, store_row(1), values, &err), &err);
    assert_ok(tdmi_store_fill_commit(store, &err), &err);
    assert_ok(tdmi_store_read(store, tdmi_store_find(store, store_row(1)), found, &err), &err);
    for (int i = 0; i < 1283; i++)
        assert_true(found[i] == tdmi_float_of_f16(tdmi_f16_of_float(values[i])));
    assert_true(found[0] == 2048 && found[1] == 2052);
    assert_int_equal(store_files(tdmi_store_folder(store), ".rows", path), 1);
    assert_int_equal(tdmi_file_bytes(path), 128 + 1283 * 2 + 16);

    values[700] = 65520;
    tdm_status status = tdmi_store_fill_add(store, store_row(2), values, &err);
    assert_failure(status, TDM_E_INPUT, &err, "float 700 of it is 65520");
    assert_failure(status, TDM_E_INPUT, &err, "train with --features f32");
}

TEST(of_equal_rows_the_first_counts)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = store_open(&tree, STORE_KEY);
    tdm_error err = {0};
    float other[STORE_WIDTH] = {0};
    store_fill(store, 0, 10);
    /* Twice in one file, and again after it. */
    assert_ok(tdmi_store_fill_begin(store, 5, TDMI_DTYPE_F32, &err), &err);
    assert_ok(store_add(store, 10, 11, &err), &err);
    assert_ok(tdmi_store_fill_add(store, store_row(10), other, &err), &err);
    assert_ok(tdmi_store_fill_add(store, store_row(3), other, &err), &err);
    assert_ok(tdmi_store_fill_commit(store, &err), &err);
    assert_ok(tdmi_store_fill_add(store, store_row(10), other, &err), &err);
    assert_ok(tdmi_store_fill_commit(store, &err), &err); /* nothing new: no file */
    assert_int_equal(tdmi_store_rows(store), 11);
    assert_int_equal(store_has(store, 0, 11), 11);
    assert_int_equal(store_files(tdmi_store_folder(store), ".rows", NULL), 2);
}

TEST(what_was_not_committed_is_dropped)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = store_open(&tree, STORE_KEY);
    tdm_error err = {0};
    assert_ok(tdmi_store_fill_begin(store, 20, TDMI_DTYPE_F32, &err), &err);
    assert_ok(store_add(store, 0, 10, &err), &err);
    assert_ok(tdmi_store_fill_commit(store, &err), &err);
    assert_ok(store_add(store, 10, 20, &err), &err);
    tdmi_store_fill_abandon(store);
    tdmi_store_fill_abandon(store);
    assert_int_equal(store_has(store, 0, 20), 10);
    assert_int_equal(store_files(tdmi_store_folder(store), "", NULL), 2 + 3); /* . and .. */
}

/* ---- threads --------------------------------------------------------------------------------- */

struct reading {
    tdmi_store *store;
    atomic_bool is_over;
    _Atomic int64_t n_read;
};

static void *read_all_the_time(void *self)
{
    struct reading *reading = self;
    while (!atomic_load(&reading->is_over))
        atomic_fetch_add(&reading->n_read, store_has(reading->store, 0, 4000));
    return NULL;
}

TEST(rows_are_found_and_read_while_others_are_added)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct reading reading = {.store = store_open(&tree, STORE_KEY)};
    tdm_error err = {0};
    pthread_t threads[2];
    assert_ok(tdmi_store_fill_begin(reading.store, 4000, TDMI_DTYPE_F32, &err), &err);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all_the_time, &reading), 0);
    for (uint64_t at = 0; at < 4000; at += 50) {
        assert_ok(store_add(reading.store, at, at + 50, &err), &err);
        assert_ok(tdmi_store_fill_commit(reading.store, &err), &err);
        assert_int_equal(store_has(reading.store, 0, at + 50), (int64_t)at + 50);
    }
    atomic_store(&reading.is_over, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(atomic_load(&reading.n_read) > 0);
    tdmi_store_close(reading.store);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void change_byte(const char *path, int64_t at)
{
    uint8_t byte;
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, (off_t)at), 1);
    byte ^= 16;
    assert_int_equal(pwrite(file, &byte, 1, (off_t)at), 1);
    assert_int_equal(close(file), 0);
}

TEST(a_file_with_a_damaged_head_or_index_is_refused_by_name)
{
    enum { n_rows = 100, index_at = 128 + n_rows * STORE_WIDTH * 4 };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char path[512];
    tdmi_store *store = store_open(&tree, STORE_KEY);
    store_fill(store, 0, n_rows);
    assert_int_equal(store_files(tdmi_store_folder(store), ".rows", path), 1);
    tdmi_store_close(store);
    /* magic, version, width, precision, reserved, n_rows, key, checksum, zeros; the index */
    static const int64_t places[] = {
        0, 8, 12, 16, 20, 24, 30, 40, 66, 80, 127, index_at, index_at + n_rows * 16 - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        tdm_error err = {0};
        change_byte(path, places[i]);
        tdm_status status = store_try(&tree, STORE_KEY, 0, &store, &err);
        assert_failure(status, TDM_E_INPUT, &err, path);
        assert_failure(status, TDM_E_INPUT, &err, "remove that file");
        assert_null(store);
        change_byte(path, places[i]);
    }
    /* Cut at every hundredth byte, and made longer. */
    for (int64_t size = index_at + n_rows * 16 + 9; size >= 0; size -= 97) {
        tdm_error err = {0};
        assert_int_equal(truncate(path, (off_t)size), 0);
        tdm_status status = store_try(&tree, STORE_KEY, 0, &store, &err);
        assert_failure(status, TDM_E_INPUT, &err, path);
    }
    assert_int_equal(remove(path), 0);
    store = store_open(&tree, STORE_KEY);
    assert_int_equal(tdmi_store_rows(store), 0);
    tdmi_store_close(store);
}

TEST(a_damaged_row_is_told_by_its_file_and_the_others_are_read)
{
    for (int is_half = 0; is_half < 2; is_half++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        char path[512];
        float values[STORE_WIDTH];
        tdm_error err = {0};
        const enum tdmi_dtype precision = is_half ? TDMI_DTYPE_F16 : TDMI_DTYPE_F32;
        TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = store_open(&tree, STORE_KEY);
        assert_ok(tdmi_store_fill_begin(store, 100, precision, &err), &err);
        assert_ok(store_add(store, 0, 100, &err), &err);
        assert_ok(tdmi_store_fill_commit(store, &err), &err);
        assert_int_equal(store_files(tdmi_store_folder(store), ".rows", path), 1);
        change_byte(path, 128 + 17 * STORE_WIDTH * (is_half ? 2 : 4) + 5);
        tdm_status status =
            tdmi_store_read(store, tdmi_store_find(store, store_row(17)), values, &err);
        assert_failure(status, TDM_E_INPUT, &err, path);
        assert_failure(status, TDM_E_INPUT, &err, "row 17 of");
        assert_failure(status, TDM_E_INPUT, &err, "remove that file");
        assert_int_equal(store_has(store, 0, 17) + store_has(store, 18, 100), 99);

        /* Cut short while it is open: an error, not a signal. */
        assert_int_equal(truncate(path, 128 + 50 * STORE_WIDTH * (is_half ? 2 : 4)), 0);
        assert_int_equal(store_has(store, 18, 50), 32);
        status = tdmi_store_read(store, tdmi_store_find(store, store_row(50)), values, &err);
        assert_failure(status, TDM_E_INPUT, &err, "cut short");
    }
}

/* Whoever would rather compute rows again than be refused has the others, and a whole store. */
TEST(damaged_files_are_dropped_for_who_asks_for_it)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char path[512];
    tdm_error err = {0};
    tdmi_store *store = store_open(&tree, STORE_KEY);
    store_fill(store, 0, 10);
    assert_int_equal(store_files(tdmi_store_folder(store), ".rows", path), 1);
    store_fill(store, 10, 30);
    tdmi_store_close(store);
    change_byte(path, 40);
    const struct tdmi_store_options options = {
        .folder = tree.root, .key = STORE_KEY, .width = STORE_WIDTH, .drops_damaged = true};
    tdm_log_set_level(TDM_LOG_SILENT);
    assert_ok(tdmi_store_open(&options, &store, &err), &err);
    tdm_log_set_level(TDM_LOG_WARNING);
    assert_int_equal(store_has(store, 0, 10), 0);
    assert_int_equal(store_has(store, 10, 30), 20);
    assert_int_equal(store_files(tdmi_store_folder(store), ".rows", path), 1);
    /* The open store still has discarded rows, and no later one does. */
    const int64_t place = tdmi_store_find(store, store_row(10));
    assert_ok(tdmi_store_discard(store, place, &err), &err);
    assert_ok(tdmi_store_discard(store, place, &err), &err);
    assert_int_equal(tdmi_store_discard(store, -1, &err), TDM_E_BUG);
    assert_int_equal(store_has(store, 10, 30), 20);
    tdmi_store_close(store);
    store = store_open(&tree, STORE_KEY);
    assert_int_equal(tdmi_store_rows(store), 0);
    tdmi_store_close(store);
}

/* Rows say themselves of which key they are. */
TEST(a_damaged_text_of_a_key_is_written_again_for_who_asks_for_it)
{
    static const char *const texts[] = {"", "{\"format_version\":1,\"key\":", "{}\n"};
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char path[1024];
    tdm_error err = {0};
    tdmi_store *store = store_open(&tree, STORE_KEY);
    store_fill(store, 0, 10);
    snprintf(path, sizeof path, "%s/key.json", tdmi_store_folder(store));
    tdmi_store_close(store);
    const struct tdmi_store_options options = {
        .folder = tree.root, .key = STORE_KEY, .width = STORE_WIDTH, .drops_damaged = true};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_ok(tdmi_file_write(path, texts[i], strlen(texts[i]), &err), &err);
        const tdm_status status = store_try(&tree, STORE_KEY, 0, &store, &err);
        assert_failure(status, TDM_E_INPUT, &err, path);
        tdm_log_set_level(TDM_LOG_SILENT);
        assert_ok(tdmi_store_open(&options, &store, &err), &err);
        tdm_log_set_level(TDM_LOG_WARNING);
        assert_int_equal(store_has(store, 0, 10), 10);
        tdmi_store_close(store);
        store = store_open(&tree, STORE_KEY);
        tdmi_store_close(store);
        err = (tdm_error){0};
    }
}

/* Rows that changed places have right checksums of their own. */
TEST(a_row_in_the_place_of_another_is_damage)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char path[512];
    float first[STORE_WIDTH], second[STORE_WIDTH];
    tdm_error err = {0};
    TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = store_open(&tree, STORE_KEY);
    store_fill(store, 0, 2);
    assert_int_equal(store_files(tdmi_store_folder(store), ".rows", path), 1);
    store_values(0, first);
    store_values(1, second);
    int file = open(path, O_RDWR);
    assert_int_equal(pwrite(file, second, sizeof second, 128), sizeof second);
    assert_int_equal(pwrite(file, first, sizeof first, 128 + sizeof first), sizeof first);
    assert_int_equal(close(file), 0);
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(tdmi_store_read(store, tdmi_store_find(store, store_row(i)), first, &err),
                         TDM_E_INPUT);
}

/* ---- keys ------------------------------------------------------------------------------------ */

TEST(rows_of_another_key_are_never_seen)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char path[512], there[1024];
    tdm_error err = {0};
    tdmi_store *store = store_open(&tree, STORE_KEY), *other = store_open(&tree, "{\"other\":1}");
    store_fill(store, 0, 10);
    assert_int_equal(store_has(other, 0, 10), 0);
    tdmi_store_close(other);
    other = store_open(&tree, "{\"other\":1}");
    assert_int_equal(tdmi_store_rows(other), 0);

    /* Carried over by hand. */
    assert_int_equal(store_files(tdmi_store_folder(store), ".rows", path), 1);
    snprintf(there, sizeof there, "%s%s", tdmi_store_folder(other), strrchr(path, '/'));
    assert_int_equal(rename(path, there), 0);
    tdmi_store_close(other);
    tdmi_store_close(store);
    tdm_status status = store_try(&tree, "{\"other\":1}", 0, &other, &err);
    assert_failure(status, TDM_E_INPUT, &err, "another key");
    assert_failure(status, TDM_E_INPUT, &err, there);
}

TEST(another_text_under_the_hash_of_the_key_is_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char path[512];
    tdmi_store *store = store_open(&tree, STORE_KEY);
    store_fill(store, 0, 10);
    snprintf(path, sizeof path, "%s/key.json", tdmi_store_folder(store));
    tdmi_store_close(store);
    static const char *const texts[] = {"{\"format_version\":1,\"key\":{\"weights\":\"other\"}}\n",
                                        "", "{\"format_version\":1,\"key\":" STORE_KEY "}\n "};
    for (int i = 0; i < 3; i++) {
        tdm_error err = {0};
        assert_ok(tdmi_file_write(path, texts[i], strlen(texts[i]), &err), &err);
        tdm_status status = store_try(&tree, STORE_KEY, 0, &store, &err);
        assert_failure(status, TDM_E_INPUT, &err, path);
    }
}

TEST(rows_of_another_width_are_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct tdmi_store_options options = {
        .folder = tree.root, .key = STORE_KEY, .width = STORE_WIDTH + 1};
    tdm_error err = {0};
    tdmi_store *store = store_open(&tree, STORE_KEY);
    store_fill(store, 0, 10);
    tdmi_store_close(store);
    tdm_status status = tdmi_store_open(&options, &store, &err);
    assert_failure(status, TDM_E_INPUT, &err, "rows of 37 floats; expected 38");
    options.width = 0;
    assert_int_equal(tdmi_store_open(&options, &store, &err), TDM_E_BUG);
    assert_null(store);
}

TEST(calls_out_of_order_are_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    float values[STORE_WIDTH] = {0};
    TDMI_AT_END(tdmi_store_close_at) tdmi_store *store = store_open(&tree, STORE_KEY);
    assert_int_equal(tdmi_store_fill_add(store, store_row(0), values, &err), TDM_E_BUG);
    assert_int_equal(tdmi_store_fill_commit(store, &err), TDM_E_BUG);
    assert_int_equal(tdmi_store_fill_begin(store, 1, TDMI_DTYPE_BF16, &err), TDM_E_BUG);
    assert_int_equal(tdmi_store_fill_begin(store, -1, TDMI_DTYPE_F32, &err), TDM_E_BUG);
    assert_int_equal(tdmi_store_fill_begin(store, INT64_MAX, TDMI_DTYPE_F32, &err), TDM_E_BUG);
    assert_ok(tdmi_store_fill_begin(store, 1, TDMI_DTYPE_F32, &err), &err);
    assert_ok(store_add(store, 0, 1, &err), &err);
    assert_int_equal(tdmi_store_fill_begin(store, 1, TDMI_DTYPE_F32, &err), TDM_E_BUG);
    assert_ok(tdmi_store_fill_commit(store, &err), &err);
    assert_int_equal(store_add(store, 1, 2, &err), TDM_E_BUG);
    assert_int_equal(tdmi_store_read(store, -1, values, &err), TDM_E_BUG);
    assert_int_equal(tdmi_store_read(store, 1, values, &err), TDM_E_BUG);
    assert_int_equal(tdmi_store_read(store, (int64_t)1 << 32, values, &err), TDM_E_BUG);
    assert_int_equal(tdmi_store_read(store, INT64_MAX, values, &err), TDM_E_BUG);
    assert_int_equal(store_has(store, 0, 1), 1);
}

/* ---- size ------------------------------------------------------------------------------------ */

TEST(many_files_are_merged_when_a_fill_is_over)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char folder[512];
    tdm_error err = {0};
    tdmi_store *store = store_open(&tree, STORE_KEY), *beside;
    snprintf(folder, sizeof folder, "%s", tdmi_store_folder(store));
    assert_ok(tdmi_store_fill_begin(store, 700, TDMI_DTYPE_F32, &err), &err);
    for (uint64_t at = 0; at < 700; at += 10) {
        assert_ok(store_add(store, at, at + 10, &err), &err);
        assert_ok(tdmi_store_fill_commit(store, &err), &err);
    }
    /* Not while somebody else has them open. */
    beside = store_open(&tree, STORE_KEY);
    tdmi_store_close(store);
    assert_int_equal(store_files(folder, ".rows", NULL), 70);
    assert_int_equal(store_has(beside, 0, 700), 700);
    store_fill(beside, 700, 710);
    tdmi_store_close(beside);
    assert_int_equal(store_files(folder, ".rows", NULL), 1);
    store = store_open(&tree, STORE_KEY);
    assert_int_equal(store_has(store, 0, 800), 710);
    assert_int_equal(tdmi_store_rows(store), 710);
    tdmi_store_close(store);
}

TEST(a_million_rows_are_open_in_less_than_a_second)
{
    enum { n = 1000000 };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct tdmi_store_options options = {.folder = tree.root, .key = "{}", .width = 2};
    tdmi_store *store = NULL;
    tdm_error err = {0};
    assert_ok(tdmi_store_open(&options, &store, &err), &err);
    assert_ok(tdmi_store_fill_begin(store, n, TDMI_DTYPE_F32, &err), &err);
    for (uint64_t i = 0; i < n; i++) {
        const float values[2] = {(float)i, -1};
        const struct tdmi_store_row row = {tdmi_xxh64_of(&i, sizeof i, 0), 0};
        assert_ok(tdmi_store_fill_add(store, row, values, &err), &err);
    }
    assert_ok(tdmi_store_fill_commit(store, &err), &err);
    tdmi_store_close(store);

    const clock_t begun = clock(); /* of the processor: others may be busy here */
    assert_ok(tdmi_store_open(&options, &store, &err), &err);
    const double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
    assert_int_equal(tdmi_store_rows(store), n);
    for (uint64_t i = 0; i < n; i += 997) {
        float values[2];
        const struct tdmi_store_row row = {tdmi_xxh64_of(&i, sizeof i, 0), 0};
        const int64_t place = tdmi_store_find(store, row);
        assert_ok(tdmi_store_read(store, place, values, &err), &err);
        assert_true(values[0] == (float)i);
        assert_int_equal(tdmi_store_find(store, (struct tdmi_store_row){row.content, 1}), -1);
    }
    tdmi_store_close(store);
    if (!is_sanitized)
        assert_true(seconds < 1);
}

static const struct tree *allocating_tree;

static tdm_status allocating(tdm_error *err)
{
    tdmi_store *store = NULL;
    tdm_status status = store_try(allocating_tree, STORE_KEY, 1 << 20, &store, err);
    if (status == TDM_OK)
        status = store_try_fill(store, 5, 15, err);
    tdmi_store_close(store);
    return status;
}

TEST(running_out_of_memory_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdmi_store *store = store_open(&tree, STORE_KEY);
    store_fill(store, 0, 10);
    tdmi_store_close(store);
    allocating_tree = &tree;
    assert_true(fail_each_allocation(allocating) > 10);
    store = store_open(&tree, STORE_KEY);
    assert_int_equal(store_has(store, 0, 20), 15);
    tdmi_store_close(store);
}

TEST_MAIN(NULL, NULL)
