/* Places: what stands there, what lies in a folder, and reading at an offset. */
#include "data/tree.h"

#include "io/storage/storage.h"
#include "tandem/error.h"
#include "tandem/event.h"
#include "unit.h"

/* As another user, whom a closed folder keeps out; a test run as root would see everything. */
static void become_nobody(void)
{
    if (geteuid() == 0)
        assert_int_equal(seteuid(65534), 0);
}

static void become_root_again(void)
{
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
}

TEST(missing_and_closed_are_two_errors)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_text(&tree, "closed/file", "12345");
    tree_text(&tree, "open/file", "12345");
    assert_int_equal(symlink("closed/file", tree_path(&tree, "link")), 0);
    assert_int_equal(symlink("circle", tree_path(&tree, "circle")), 0);
    assert_int_equal(mkfifo(tree_path(&tree, "pipe"), 0600), 0);
    assert_int_equal(chmod(tree.root, 0755), 0);
    assert_int_equal(chmod(tree_path(&tree, "closed"), 0), 0);
    static const struct {
        const char *name;
        enum tdmi_file_kind kind;
        int64_t size_bytes;
        const char *refusal;
    } cases[] = {
        {"open", TDMI_FILE_FOLDER, 0, "is a folder; expected a spoon"},
        {"open/file", TDMI_FILE_REGULAR, 5, "is a file"},
        {"open/none", TDMI_FILE_MISSING, 0, "no such file or folder"},
        {"open/file/below", TDMI_FILE_MISSING, 0, "no such"},
        {"circle", TDMI_FILE_MISSING, 0, "no such"},
        {"pipe", TDMI_FILE_OTHER, 0, "neither"},
        {"closed", TDMI_FILE_FOLDER, 0, "is a folder"},
        {"closed/file", TDMI_FILE_FORBIDDEN, 0, "closed to this user"},
        {"closed/none", TDMI_FILE_FORBIDDEN, 0, "closed to this user"},
        {"link", TDMI_FILE_FORBIDDEN, 0, "may not be looked at"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tdm_error err = {0};
        struct tdmi_place place;
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", tree.root, cases[c].name);
        become_nobody();
        tdm_status status = tdmi_storage_look(path, &place, &err);
        become_root_again();
        assert_int_equal(status, TDM_OK);
        if (place.kind != cases[c].kind || place.size_bytes != cases[c].size_bytes)
            fail_msg("%s is %d of %lld bytes", cases[c].name, place.kind,
                     (long long)place.size_bytes);
        assert_failure(tdmi_storage_refuse(path, place.kind, "a spoon", &err), TDM_E_INPUT, &err,
                       cases[c].refusal);
    }
    assert_int_equal(chmod(tree_path(&tree, "closed"), 0700), 0);
}

TEST(equal_folders_are_recognised)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct tdmi_place here, there, elsewhere;
    tree_folder(&tree, "a");
    tree_folder(&tree, "c");
    assert_int_equal(symlink("a", tree_path(&tree, "b")), 0);
    assert_int_equal(tdmi_storage_look(tree_path(&tree, "a"), &here, NULL), TDM_OK);
    assert_int_equal(tdmi_storage_look(tree_path(&tree, "b"), &there, NULL), TDM_OK);
    assert_int_equal(tdmi_storage_look(tree_path(&tree, "c"), &elsewhere, NULL), TDM_OK);
    assert_memory_equal(here.identity, there.identity, sizeof here.identity);
    assert_memory_not_equal(here.identity, elsewhere.identity, sizeof here.identity);
}

TEST(a_folder_is_listed_by_bytes_with_sizes_on_request)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_place_entry *entries = NULL;
    size_t n_entries = 0;
    tree_text(&tree, "b", "123");
    tree_text(&tree, "B", "");
    tree_folder(&tree, "a");
    for (int has_sizes = 0; has_sizes < 2; has_sizes++) {
        assert_ok(tdmi_storage_list(tree.root, has_sizes == 1, &arena, &entries, &n_entries, &err),
                  &err);
        assert_int_equal(n_entries, 3);
        assert_string_equal(entries[0].name, "B");
        assert_string_equal(entries[1].name, "a");
        assert_string_equal(entries[2].name, "b");
        assert_int_equal(entries[1].kind, TDMI_FILE_FOLDER);
        assert_int_equal(entries[0].size_bytes, has_sizes ? 0 : -1);
        assert_int_equal(entries[1].size_bytes, -1);
        assert_int_equal(entries[2].size_bytes, has_sizes ? 3 : -1);
    }
    assert_int_equal(
        tdmi_storage_list(tree_path(&tree, "b"), false, &arena, &entries, &n_entries, &err),
        TDM_E_INPUT);
}

TEST(files_are_read_at_an_offset)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    tdmi_storage_file *file = NULL;
    char bytes[8] = "", uri[1100];
    tree_text(&tree, "ten", "0123456789");
    snprintf(uri, sizeof uri, "file://%s", tree_path(&tree, "ten"));
    assert_false(tdmi_storage_is_uri(uri));
    assert_ok(tdmi_storage_open(uri, &file, &err), &err);
    assert_string_equal(tdmi_storage_path(file), tree_path(&tree, "ten"));
    assert_int_equal(tdmi_storage_size(file), 10);
    assert_ok(tdmi_storage_read(file, 3, bytes, 4, &err), &err);
    assert_string_equal(bytes, "3456");
    assert_ok(tdmi_storage_read(file, 10, bytes, 0, &err), &err);
    assert_failure(tdmi_storage_read(file, 8, bytes, 4, &err), TDM_E_INPUT, &err,
                   "ends at byte 10, before the 4 bytes");
    tdmi_storage_close(file);
    tdmi_storage_close(NULL);

    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    assert_ok(tdmi_storage_read_file(uri, 10, &text, &err), &err);
    assert_string_equal(tdmi_text_string(&text), "0123456789");
    assert_failure(tdmi_storage_read_file(uri, 9, &text, &err), TDM_E_INPUT, &err,
                   "larger than the 9 bytes");
    assert_failure(tdmi_storage_read_file(tree.root, 9, &text, &err), TDM_E_INPUT, &err,
                   "not a regular file");
    assert_int_equal(mkfifo(tree_path(&tree, "pipe"), 0600), 0);
    assert_int_equal(tdmi_storage_read_file(tree_path(&tree, "pipe"), 9, &text, &err), TDM_E_INPUT);
}

TEST(schemes_are_distinguished_from_paths)
{
    static const char *const uris[] = {"s3://bucket/pets", "gs://x", "hdfs://host:9000/a",
                                       "a+b.c-d://"};
    static const char *const paths[] = {"",     "pets",    "/a/b",          "s3:/bucket", "1s://x",
                                        "://x", "a b://c", "./s3://bucket", "file:///tmp"};
    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++)
        assert_true(tdmi_storage_is_uri(uris[i]));
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_false(tdmi_storage_is_uri(paths[i]));
}

/* Addresses that are refused without a server; a build without object stores refuses them all. */
TEST(a_uri_that_leads_nowhere_is_one_sentence)
{
    static const struct {
        const char *uri, *sentence;
    } cases[] = {
        {"ftp://host/pets", "stores begin with s3://, gs://, hdfs:// or file://"},
        {"s3://bucket/pets?nonsense=1", "Unexpected query parameter in S3 URI: 'nonsense'"},
        {"s3:///pets", "Missing bucket name"},
        {"gs:///pets", "Missing bucket name"},
        {"hdfs://127.0.0.1:9/pets", "HDFS"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_error err = {0};
        struct tdmi_place place;
        tdmi_storage_file *file = NULL;
        bool has_stores = tdmi_storage_of_uris() != NULL;
        const char *sentence = has_stores ? cases[i].sentence : "build with Arrow";
        assert_int_not_equal(tdmi_storage_look(cases[i].uri, &place, &err), TDM_OK);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), sentence));
        assert_non_null(strstr(tdm_error_sentence(&err, 0), cases[i].uri));
        assert_int_not_equal(tdmi_storage_open(cases[i].uri, &file, &err), TDM_OK);
        assert_null(file);
        assert_int_equal(tdmi_storage_kind(cases[i].uri), TDMI_FILE_MISSING);
    }
}

/* Making a store asks nothing of its server where the region is given. */
TEST(a_bucket_takes_one_set_of_options)
{
    tdm_error err = {0};
    struct tdmi_place_entry *entries = NULL;
    size_t n = 0;
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    /* Nobody listens on this port; asking to stop leaves it at one attempt. */
    static const char first[] = "s3://key:secret@one/a?endpoint_override=127.0.0.1:9&scheme=http";
    static const char other[] = "s3://key:secret@one/a?endpoint_override=127.0.0.1:8&scheme=http";
    tdm_stop_request();
    assert_int_not_equal(tdmi_storage_list(first, false, &arena, &entries, &n, &err), TDM_OK);
    err = (tdm_error){0};
    tdm_status status = tdmi_storage_list(other, false, &arena, &entries, &n, &err);
    tdm_stop_clear();
    assert_int_equal(status, TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), tdmi_storage_of_uris() != NULL
                                                            ? "one set of options for a bucket"
                                                            : "build with Arrow"));
    assert_string_equal(tdmi_storage_plain(first, &arena), "s3://key:secret@one/a");
    assert_string_equal(tdmi_storage_plain("a?b=c", &arena), "a?b=c");
}

/* Hands out zeros, and fails from a byte on. */
struct zeros {
    int64_t end;
};

static tdm_status read_zeros(void *self, int64_t offset, void *bytes, size_t length_bytes,
                             tdm_error *err)
{
    const struct zeros *zeros = self;
    memset(bytes, 0, length_bytes);
    if (offset + (int64_t)length_bytes > zeros->end)
        return TDM_FAIL(err, TDM_E_SYSTEM, "there are no more zeros");
    return TDM_OK;
}

TEST(a_file_is_put_whole_or_not_at_all)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct zeros zeros = {5000000};
    const struct tdmi_byte_source source = {&zeros, read_zeros};
    char path[1024], uri[1100];
    struct tdmi_place place;
    tdm_error err = {0};
    snprintf(path, sizeof path, "%s/new/folder/file", tree.root);
    snprintf(uri, sizeof uri, "file://%s", path);
    assert_ok(tdmi_storage_put(uri, &source, 5000000, &err), &err);
    assert_int_equal(tdmi_storage_look(path, &place, &err), TDM_OK);
    assert_int_equal(place.size_bytes, 5000000);
    assert_int_equal(tdmi_storage_put(path, &source, 5000001, &err), TDM_E_SYSTEM);
    assert_int_equal(tdmi_storage_look(path, &place, &err), TDM_OK);
    assert_int_equal(place.size_bytes, 5000000);
    err = (tdm_error){0};
    assert_ok(tdmi_storage_put(path, &source, 0, &err), &err);
    assert_ok(tdmi_storage_remove(uri, &err), &err);
    assert_int_equal(tdmi_storage_kind(path), TDMI_FILE_MISSING);
    assert_ok(tdmi_storage_remove(path, &err), &err);
    snprintf(path, sizeof path, "%s/new/folder", tree.root);
    assert_int_equal(tdmi_storage_remove(path, &err), TDM_E_SYSTEM);
}

TEST(a_store_that_cannot_be_written_to_says_so)
{
    struct zeros zeros = {10};
    const struct tdmi_byte_source source = {&zeros, read_zeros};
    static const char uri[] =
        "s3://key:secret@two/a?endpoint_override=127.0.0.1:9&scheme=http&region=x";
    tdm_error err = {0};
    tdm_stop_request(); /* one attempt */
    const tdm_status put = tdmi_storage_put(uri, &source, 10, &err);
    const tdm_status removed = tdmi_storage_remove(uri, NULL);
    tdm_stop_clear();
    assert_int_not_equal(put, TDM_OK);
    assert_int_not_equal(removed, TDM_OK);
    assert_non_null(strstr(tdm_error_sentence(&err, 0),
                           tdmi_storage_of_uris() != NULL ? "cannot write 's3://" : "build with"));
}

TEST_MAIN(NULL, NULL)
