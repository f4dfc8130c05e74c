/*
 * The HDF5 reader itself, on files that h5py wrote (tests/fixtures/make_keras.py) and on small ones
 * with a lie in them.
 */
#include "weights/hdf5/hdf5_file.h"

static uint8_t *fixture(const char *name, size_t *n_bytes)
{
    char path[4096];
    void *bytes = NULL;
    tdm_error err = {0};
    snprintf(path, sizeof path, CHECKOUT "/tests/fixtures/keras/%s", name);
    assert_int_equal(tdmi_file_read(path, 1 << 20, &bytes, n_bytes, &err), TDM_OK);
    return bytes;
}

static void assert_not_opened(const void *bytes, size_t n_bytes, const char *words)
{
    tdm_error err = {0};
    tdmi_hdf5 *file = NULL;
    assert_int_equal(tdmi_hdf5_open(bytes, n_bytes, "x.h5", true, &file, &err), TDM_E_INPUT);
    assert_null(file);
    if (strstr(tdm_error_sentence(&err, 0), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tdm_error_sentence(&err, 0));
}

TEST(files_are_known_by_a_signature_behind_a_user_block)
{
    size_t n_bytes = 0, n_plain = 0;
    uint8_t *bytes = fixture("userblock.h5", &n_bytes);
    uint8_t *plain = fixture("latest.h5", &n_plain);
    assert_true(tdmi_hdf5_is(bytes, n_bytes));
    assert_memory_not_equal(bytes, "\x89HDF", 4);
    assert_false(tdmi_hdf5_is(bytes, 1024));
    assert_false(tdmi_hdf5_is((const uint8_t *)"", 0));
    tdmi_hdf5_close(opened(bytes, n_bytes));
    /* Other places than 0, 512, 1024, … are none. */
    uint8_t *moved = tdmi_alloc(n_plain + 2048, 1);
    memcpy(moved + 768, plain, n_plain);
    assert_false(tdmi_hdf5_is(moved, n_plain + 2048));
    memset(moved, 0, n_plain + 2048);
    memcpy(moved + 512, plain, n_plain);
    tdmi_hdf5_close(opened(moved, n_plain + 512));
    tdmi_free(moved);
    tdmi_free(plain);
    tdmi_free(bytes);
}

TEST(damaged_beginnings_are_refused_with_what_is_wrong)
{
    size_t n_old = 0, n_new = 0;
    uint8_t *old = fixture("split.h5", &n_old), *new = fixture("latest.h5", &n_new);
    old[8] = 9;
    assert_not_opened(old, n_old, "superblock is of version 9; 0 to 3");
    old[8] = 0;
    old[13] = 4;
    assert_not_opened(old, n_old, "take 4 and 8 bytes");
    old[13] = 8;
    assert_not_opened(old, n_old - 1, "cut short");
    assert_not_opened(old, 20, "within its superblock");
    uint8_t root = old[64];
    old[64] = 0;
    assert_not_opened(old, n_old, "no object begins at byte 0");
    old[64] = root;
    old[71] = 0x7f;
    assert_not_opened(old, n_old, "past the end of the file");
    new[11] ^= 1;
    assert_not_opened(new, n_new, "checksum of the superblock");
    tdmi_free(old);
    tdmi_free(new);
}

/* Without checks the same file is read: what is behind a checksum can be fuzzed. */
TEST(checksums_are_passed_over_when_asked)
{
    size_t n_bytes = 0;
    tdm_error err = {0};
    tdmi_hdf5 *file = NULL;
    uint8_t *bytes = fixture("latest.h5", &n_bytes);
    bytes[11] ^= 1;
    assert_int_equal(tdmi_hdf5_open(bytes, n_bytes, "x.h5", false, &file, &err), TDM_OK);
    tdmi_hdf5_close(file);
    tdmi_free(bytes);
}

TEST(members_are_sorted_with_digits_as_numbers)
{
    static const char *const sorted[] = {"a",     "b02",    "b2", "b2c", "b10",
                                         "b10a2", "b10a10", "c",  "é"};
    enum { N = sizeof sorted / sizeof sorted[0] };
    void *bytes = NULL;
    size_t n_bytes = 0, n_links = 0;
    tdm_error err = {0};
    const struct tdmi_hdf5_link *links;
    tdmi_hdf5_writer *writer = tdmi_hdf5_writer_new();
    for (int i = N - 1; i >= 0; i--)
        tdmi_hdf5_writer_group(writer, sorted[i]);
    tdmi_hdf5 *file = written(writer, &bytes, &n_bytes);
    assert_int_equal(tdmi_hdf5_links(file, tdmi_hdf5_root(file), &links, &n_links, &err), TDM_OK);
    assert_int_equal(n_links, N);
    int n_same = 0;
    for (int i = 0; i < N; i++) {
        struct tdmi_hdf5_text name = {sorted[i], strlen(sorted[i])};
        tdmi_hdf5_object *object = NULL;
        assert_int_equal(tdmi_hdf5_find(file, tdmi_hdf5_root(file), name, &object, &err), TDM_OK);
        assert_non_null(object);
        n_same += links[i].name.length_bytes == name.length_bytes &&
                  memcmp(links[i].name.bytes, name.bytes, name.length_bytes) == 0;
    }
    assert_int_equal(n_same, N);
    tdmi_hdf5_close(file);
    tdmi_free(bytes);
}

/* Every leaf of the tree is the first one: names come twice, and it ends. */
TEST(branches_that_meet_again_are_refused)
{
    void *bytes = NULL;
    char name[16];
    size_t n_bytes = 0, n_links = 0;
    tdm_error err = {0};
    const struct tdmi_hdf5_link *links;
    tdmi_hdf5_writer *writer = tdmi_hdf5_writer_new();
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "member%d", i);
        tdmi_hdf5_writer_group(writer, name);
    }
    tdmi_hdf5_close(written(writer, &bytes, &n_bytes));
    uint8_t *root = (uint8_t *)bytes + ((uint8_t *)bytes)[80] + (((uint8_t *)bytes)[81] << 8) +
                    (((uint8_t *)bytes)[82] << 16);
    assert_memory_equal(root, "TREE", 4);
    for (int i = 1; i < 25; i++)
        memcpy(root + 32 + 16 * i, root + 32, 8);
    tdmi_hdf5 *file = opened(bytes, n_bytes);
    assert_int_equal(tdmi_hdf5_links(file, tdmi_hdf5_root(file), &links, &n_links, &err),
                     TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "twice in one group"));
    tdmi_hdf5_close(file);
    tdmi_free(bytes);
}

TEST(attributes_of_other_types_are_no_text)
{
    size_t n_bytes = 0;
    bool is_there = false;
    tdm_error err = {0};
    struct tdmi_hdf5_values values;
    struct tdmi_hdf5_text text;
    uint8_t *bytes = fixture("many.h5", &n_bytes);
    tdmi_hdf5 *file = opened(bytes, n_bytes);
    tdmi_hdf5_object *object = NULL;
    struct tdmi_hdf5_text path = {"layer_1", 7};
    assert_int_equal(tdmi_hdf5_find(file, tdmi_hdf5_root(file), path, &object, &err), TDM_OK);
    assert_int_equal(tdmi_hdf5_attribute(file, object, "weight_names", &values, &is_there, &err),
                     TDM_OK);
    assert_true(is_there && values.n_values == 0 && values.kind == TDMI_HDF5_NUMBERS);
    assert_int_equal(tdmi_hdf5_text_at(file, &values, 0, &text, &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "floats stand where text is expected"));
    assert_int_equal(tdmi_hdf5_attribute(file, object, "weight", &values, &is_there, &err), TDM_OK);
    assert_false(is_there);
    assert_false(tdmi_hdf5_mark(object));
    assert_true(tdmi_hdf5_mark(object));
    assert_int_equal(tdmi_hdf5_dataset(file, object, &values, &err), TDM_E_INPUT);
    tdmi_hdf5_close(file);
    tdmi_free(bytes);
}

TEST_MAIN(NULL, NULL)
