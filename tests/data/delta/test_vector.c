/* Deletion vectors: the forms of their bitmaps, where they lie, and damage. */
#include "unit.h"
#include "data/tree.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "data/delta/vector.h"

/* ---- making them --------------------------------------------------------------------------- */

static void put(tdmi_text *text, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        tdmi_text_add(text, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static void put_head(tdmi_text *text, uint64_t n_buckets)
{
    put(text, 1681511377, 4);
    put(text, n_buckets, 8);
}

static int64_t *decode(const tdmi_text *text, int64_t n_wanted, int64_t n_rows, tdm_error *err)
{
    int64_t *rows = NULL;
    /* A copy of its exact length, so that reading past it is seen. */
    uint8_t *bytes = malloc(text->length_bytes + 1);
    assert_non_null(bytes);
    memcpy(bytes, text->bytes, text->length_bytes);
    bytes = realloc(bytes, text->length_bytes);
    tdm_status status =
        tdmi_delta_vector_decode(bytes, text->length_bytes, "'x'", n_wanted, n_rows, &rows, err);
    free(bytes);
    assert_int_equal(status == TDM_OK, rows != NULL);
    return rows;
}

static void assert_damaged(const tdmi_text *text, int64_t n_wanted, int64_t n_rows,
                           const char *word)
{
    tdm_error err = {0};
    assert_null(decode(text, n_wanted, n_rows, &err));
    assert_failure(err.code, TDM_E_INPUT, &err, word);
}

/* Rows {first, first + 1, …} of the low 16 bits, as the container of that size has to be. */
static void put_plain_container(tdmi_text *text, uint32_t first, uint32_t n)
{
    if (n <= 4096) {
        for (uint32_t i = 0; i < n; i++)
            put(text, first + i, 2);
        return;
    }
    for (uint32_t byte = 0; byte < 8192; byte++) {
        uint8_t bits = 0;
        for (uint32_t bit = 0; bit < 8; bit++)
            if (8 * byte + bit >= first && 8 * byte + bit < first + n)
                bits |= (uint8_t)(1U << bit);
        put(text, bits, 1);
    }
}

/* ---- the bitmap ---------------------------------------------------------------------------- */

TEST(rows_come_out_in_order_and_as_many_as_promised)
{
    static const int64_t expected[] = {3, 4, 7, 11, 18, 29};
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    assert_true(tdmi_delta_z85("^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", &bytes));
    assert_int_equal(bytes.length_bytes, 44);
    int64_t *rows = decode(&bytes, 6, 30, NULL);
    assert_memory_equal(rows, expected, sizeof expected);
    tdmi_free(rows);
    assert_damaged(&bytes, 6, 29, "a row that the file does not have");
    assert_damaged(&bytes, 5, 30, "more rows than the log says");
    assert_damaged(&bytes, 7, 30, "fewer rows than the log says");
    assert_damaged(&bytes, 31, 30, "cannot hold as many rows");
}

TEST(every_form_of_container_is_read)
{
    /* Three containers: sorted numbers, bits, all bits; in the second bucket one of runs. */
    static const uint32_t first[] = {7, 100, 0}, n[] = {3, 5000, 65536};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    put_head(&text, 2);
    put(&text, 0, 4);
    put(&text, 12346, 4);
    put(&text, 3, 4);
    for (uint32_t c = 0; c < 3; c++) {
        put(&text, 2 * c, 2);
        put(&text, n[c] - 1, 2);
    }
    put(&text, 0, 8), put(&text, 0, 4); /* offsets, not looked at */
    for (int c = 0; c < 3; c++)
        put_plain_container(&text, first[c], n[c]);
    put(&text, 1, 4);
    put(&text, 12347 | 1 << 16, 4);
    put(&text, 2, 1); /* the second of two is runs */
    put(&text, 0, 2), put(&text, 0, 2);
    put(&text, 9, 2), put(&text, 14, 2);
    put(&text, 5, 2); /* the array {5} */
    put(&text, 2, 2);
    put(&text, 10, 2), put(&text, 9, 2);
    put(&text, 65531, 2), put(&text, 4, 2);

    int64_t n_rows = 3 + 5000 + 65536 + 1 + 15, at = 0;
    tdm_error err = {0};
    int64_t *rows = decode(&text, n_rows, INT64_MAX, &err);
    if (rows == NULL)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    for (int64_t c = 0; c < 3; c++)
        for (int64_t i = 0; i < n[c]; i++)
            assert_int_equal(rows[at++], 2 * c * 65536 + first[c] + i);
    const int64_t high = (int64_t)1 << 32;
    assert_int_equal(rows[at++], high + 5);
    for (int64_t i = 0; i < 10; i++)
        assert_int_equal(rows[at++], high + 9 * 65536 + 10 + i);
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(rows[at++], high + 9 * 65536 + 65531 + i);
    assert_int_equal(at, n_rows);
    tdmi_free(rows);

    /* Cut anywhere it is damaged, and says so. */
    for (size_t cut = 0; cut < text.length_bytes; cut += cut < 100 ? 1 : 97) {
        TDMI_AT_END(tdmi_text_release) tdmi_text part = {0};
        tdmi_text_add(&part, text.bytes, cut);
        assert_damaged(&part, n_rows, INT64_MAX, cut < 2 ? "" : "'x' is damaged");
    }
}

TEST(an_empty_vector_is_one)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    put_head(&text, 0);
    TDMI_AT_END(tdmi_free_at) int64_t *rows = decode(&text, 0, 0, NULL);
    assert_non_null(rows);
}

TEST(bitmaps_that_cannot_be_are_refused)
{
    static const struct {
        int n; /* values of 2 bytes after the head of one bucket */
        int values[16];
        const char *word;
    } cases[] = {
        {2, {12345, 0}, "no Roaring bitmap begins"},
        {4, {12346, 0, 1, 1}, "more containers than there can be"},
        {4, {12346, 0, 5, 0}, "it ends early"},
        {9, {12346, 0, 1, 0, 0, 1, 0, 0, 7}, "it ends early"},
        {10, {12346, 0, 1, 0, 0, 1, 0, 0, 7, 7}, "not in ascending order"},
        {10, {12346, 0, 1, 0, 0, 1, 0, 0, 7, 6}, "not in ascending order"},
        {11, {12346, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0}, "ends early"},
        {14, {12346, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7}, "not in ascending order"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tdmi_text text = {0};
        put_head(&text, 1);
        put(&text, 0, 4);
        for (int i = 0; i < cases[c].n; i++)
            put(&text, (uint64_t)cases[c].values[i], 2);
        assert_damaged(&text, 2, 100, cases[c].word);
        tdmi_text_release(&text);
    }
    tdmi_text text = {0};
    put(&text, 1681511376, 4);
    assert_damaged(&text, 0, 0, "the number that marks its format");
    tdmi_text_clear(&text);
    put_head(&text, UINT64_MAX);
    put(&text, 0x80000000, 4);
    assert_damaged(&text, 1, 1, "negative");
    tdmi_text_clear(&text);
    put_head(&text, 1); /* a run that leaves its container */
    put(&text, 0, 4), put(&text, 12347, 4), put(&text, 1, 1);
    put(&text, 0, 2), put(&text, 1, 2), put(&text, 1, 2), put(&text, 65535, 2), put(&text, 1, 2);
    assert_damaged(&text, 2, 1 << 20, "leaves its container");
    tdmi_text_clear(&text);
    put_head(&text, 1); /* a run of two where the head says one */
    put(&text, 0, 4), put(&text, 12347, 4), put(&text, 1, 1);
    put(&text, 0, 2), put(&text, 0, 2), put(&text, 1, 2), put(&text, 3, 2), put(&text, 1, 2);
    assert_damaged(&text, 2, 1 << 20, "other rows than its head says");
    assert_damaged(&text, (int64_t)1 << 40, INT64_MAX, "cannot hold as many");
    tdmi_text_release(&text);
}

/* ---- where it stands ----------------------------------------------------------------------- */

TEST(z85_is_five_characters_for_four_bytes)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    assert_true(tdmi_delta_z85("HelloWorld", &bytes));
    assert_int_equal(bytes.length_bytes, 8);
    assert_memory_equal(bytes.bytes, "\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b", 8);
    assert_false(tdmi_delta_z85("Hello!", &bytes));
    assert_false(tdmi_delta_z85("Hell,", &bytes));
    assert_true(tdmi_delta_z85("%nSc0", &bytes)); /* the largest */
    assert_false(tdmi_delta_z85("%nSc1", &bytes));
}

/* A file of one vector: version, length, bitmap of row 0, checksum. */
static const uint8_t one_row[] = {1, 0,  0, 0, 34, 0xd1, 0xd3, 0x39, 0x64, 1,    0,   0, 0, 0, 0, 0,
                                  0, 0,  0, 0, 0,  0x3a, 0x30, 0,    0,    1,    0,   0, 0, 0, 0, 0,
                                  0, 16, 0, 0, 0,  0,    0,    0xf7, 0xa6, 0xb4, 0xb5};

static tdm_status read_following(const char *folder, bool follows,
                                 struct tdmi_delta_vector_place place, int64_t n_rows,
                                 int64_t **rows, tdm_error *err)
{
    struct tdmi_delta_table table = {.path = folder, .follows = follows};
    struct tdmi_delta_file file = {
        .path = "a.parquet", .n_rows = n_rows, .origin = "_delta_log/1.json", .line = 3};
    file.deleted = place;
    return tdmi_delta_vector_read(&table, &file, rows, err);
}

static tdm_status read_it(const char *folder, struct tdmi_delta_vector_place place, int64_t n_rows,
                          int64_t **rows, tdm_error *err)
{
    return read_following(folder, false, place, n_rows, rows, err);
}

static void assert_unreadable(const char *folder, struct tdmi_delta_vector_place place,
                              int64_t n_rows, const char *word)
{
    tdm_error err = {0};
    int64_t *rows = NULL;
    tdm_status status = read_it(folder, place, n_rows, &rows, &err);
    assert_null(rows);
    assert_failure(status, TDM_E_INPUT, &err, word);
    assert_failure(status, TDM_E_INPUT, &err,
                   "_delta_log/1.json, line 3: cannot find the deleted rows of 'a.parquet'");
}

/* d2c639aa-8816-431a-aaf6-d3fe2512ff61, as the protocol's example has it. */
#define NUMBER "^-aqEH.-t@S}K{vb[*k^"
#define NAME "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"

TEST(vectors_are_found_by_number_by_path_and_in_the_log)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char absolute[200];
    tree_file(&tree, NAME, one_row, sizeof one_row);
    tree_file(&tree, "ab/" NAME, one_row, sizeof one_row);
    snprintf(absolute, sizeof absolute, "file://%s/" NAME, tree.root);
    const struct tdmi_delta_vector_place places[] = {
        {'u', NUMBER, 1, 34, 1},
        {'u', NUMBER, -1, 34, 1},
        {'u', "ab" NUMBER, 1, 34, 1},
        {'p', absolute, 1, 34, 1},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        tdm_error err = {0};
        int64_t *rows = NULL;
        assert_ok(read_following(tree.root, i == 3, places[i], 5, &rows, &err), &err);
        assert_int_equal(rows[0], 0);
        tdmi_free(rows);
    }
    /* A log may not lead out of the table by the name of a vector either. */
    char below[100];
    snprintf(below, sizeof below, "%s/ab", tree.root);
    assert_unreadable(tree.root, places[3], 5, "by an absolute path: --follow reads it");
    assert_unreadable(below, (struct tdmi_delta_vector_place){'u', ".." NUMBER, 1, 34, 1}, 5,
                      "names '../" NAME "' by a path with '..'");
    assert_unreadable(below, (struct tdmi_delta_vector_place){'p', "%2e%2e/" NAME, 1, 34, 1}, 5,
                      "names '../" NAME "' by a path with '..'");
    int64_t *rows = NULL;
    struct tdmi_delta_vector_place inside = {
        'i', "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", -1, 44, 6};
    assert_int_equal(read_it(tree.root, inside, 30, &rows, NULL), TDM_OK);
    assert_int_equal(rows[5], 29);
    tdmi_free(rows);
    inside.size_bytes = 45;
    assert_unreadable(tree.root, inside, 30, "no Z85 text of 45 bytes");
    assert_unreadable(tree.root, (struct tdmi_delta_vector_place){'i', "wi5b", -1, 4, 6}, 30,
                      "no Z85 text of 4 bytes");
}

TEST(files_of_vectors_that_are_damaged_are_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct tdmi_delta_vector_place place = {'u', NUMBER, 1, 34, 1};
    assert_unreadable(tree.root, place, 5, NAME);
    uint8_t bytes[sizeof one_row];
    for (size_t i = 0; i < sizeof one_row; i++) { /* any byte */
        memcpy(bytes, one_row, sizeof bytes);
        bytes[i] ^= 4;
        tree_file(&tree, NAME, bytes, sizeof bytes);
        assert_unreadable(tree.root, place, 5, i == 0 ? "of format 5" : "its checksum is another");
    }
    tree_file(&tree, NAME, one_row, sizeof one_row - 1);
    assert_unreadable(tree.root, place, 5, "end at byte 42");
    tree_file(&tree, NAME, one_row, sizeof one_row);
    place.offset_bytes = INT64_MAX;
    assert_unreadable(tree.root, place, 5, "end at byte 43");
    place = (struct tdmi_delta_vector_place){'u', NUMBER, 1, INT64_MAX, 1};
    assert_unreadable(tree.root, place, 5, "end at byte 43");
    place = (struct tdmi_delta_vector_place){'u', NUMBER, 1, 34, 1};
    assert_unreadable(tree.root, place, 0, "cannot hold as many");
    assert_unreadable(tree.root, place, -1, "numRecords");
    place.text = "short";
    assert_unreadable(tree.root, place, 5, "'short' names no file of deletion vectors");
    place.kind = 'p', place.text = "%";
    assert_unreadable(tree.root, place, 5, "names no file of deletion vectors: a %");
}

TEST(running_out_of_memory_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_file(&tree, NAME, one_row, sizeof one_row);
    const struct tdmi_delta_vector_place places[] = {
        {'u', NUMBER, 1, 34, 1},
        {'i', "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", -1, 44, 6},
    };
    for (int p = 0; p < 2; p++)
        for (int64_t n = 1;; n++) {
            tdm_error err = {0};
            int64_t *rows = NULL;
            assert_true(n < 100);
            tdmi_memory_fail_from(n);
            tdm_status status = read_it(tree.root, places[p], 100, &rows, &err);
            tdmi_memory_fail_from(0);
            tdmi_free(rows);
            if (status == TDM_OK)
                break;
            assert_int_equal(status, TDM_E_MEMORY);
        }
}

TEST_MAIN(NULL, NULL)
