/* Zip, tar and gzip: what is listed and read, and what is refused with a place. */
#include "data/tree.h"

#include "base/memory.h"

#include "io/archive/archive.h"
#include "io/compress/inflate.h"
#include "data/pack.h"
#include "unit.h"
#include <pthread.h>

static tdmi_archive *open_archive(const struct tree *tree, const char *name, const tdmi_text *bytes)
{
    tdmi_archive *archive = NULL;
    tdm_error err = {0};
    tree_file(tree, name, bytes->bytes, bytes->length_bytes);
    assert_ok(tdmi_archive_open(tree_path(tree, name), &archive, &err), &err);
    return archive;
}

static void assert_text(const tdmi_archive *archive, const char *name, const char *expected)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    int64_t index = tdmi_archive_find(archive, name);
    if (index < 0)
        fail_msg("there is no '%s'", name);
    assert_ok(tdmi_archive_read(archive, index, 1 << 20, &bytes, &err), &err);
    assert_int_equal(bytes.length_bytes, strlen(expected));
    assert_string_equal(tdmi_text_string(&bytes), expected);
}

/* Neither opens nor, where it opens, is read: the sentence holds the word. */
static void assert_damaged(const struct tree *tree, const char *name, const tdmi_text *bytes,
                           const char *word)
{
    TDMI_AT_END(tdmi_archive_close_at) tdmi_archive *archive = NULL;
    tdm_error err = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    tree_file(tree, name, bytes->bytes, bytes->length_bytes);
    tdm_status status = tdmi_archive_open(tree_path(tree, name), &archive, &err);
    for (int64_t i = 0; status == TDM_OK && i < tdmi_archive_entries(archive); i++)
        if (!tdmi_archive_entry(archive, i)->is_folder)
            status = tdmi_archive_read(archive, i, 1 << 20, &text, &err);
    assert_failure(status, TDM_E_INPUT, &err, word);
    assert_failure(status, TDM_E_INPUT, &err, tree->root);
}

/* ---- zip ------------------------------------------------------------------------------------- */

TEST(zips_of_all_forms_are_read)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (int form = 0; form < 16; form++) {
        struct pack_zip zip = {.method = form & 1 ? 8 : 0,
                               .has_descriptor = form & 2,
                               .is_64 = form & 4,
                               .mode = form & 8 ? 0100644 : 0};
        if (zip.method == 8 && tdmi_inflate_best() == NULL)
            continue;
        pack_zip_add(&zip, "a/one.txt", "first", 5);
        pack_zip_add(&zip, "empty", "", 0);
        pack_zip_add(&zip, "folder/", "", 0);
        pack_zip_add(&zip, "../../etc/passwd", "only a name", 11);
        pack_zip_add(&zip, "/root", "absolute", 8);
        pack_zip_add(&zip, "a/one.txt", "again", 5);
        pack_zip_end(&zip, form & 2 ? "a comment PK\5\6 with a mark" : "");
        TDMI_AT_END(tdmi_archive_close_at)
        tdmi_archive *archive = open_archive(&tree, "x.zip", &zip.bytes);
        assert_int_equal(tdmi_archive_form_of(tree_path(&tree, "x.zip")), TDMI_ARCHIVE_ZIP);
        assert_int_equal(tdmi_archive_entries(archive), 6);
        assert_string_equal(tdmi_archive_entry(archive, 0)->name, "a/one.txt");
        assert_string_equal(tdmi_archive_entry(archive, 2)->name, "folder");
        assert_true(tdmi_archive_entry(archive, 2)->is_folder);
        assert_text(archive, "a/one.txt", "again");
        assert_text(archive, "empty", "");
        assert_text(archive, "../../etc/passwd", "only a name");
        assert_text(archive, "/root", "absolute");
        assert_int_equal(tdmi_archive_find(archive, "folder"), -1);
        assert_int_equal(tdmi_archive_find(archive, "b"), -1);
        pack_zip_release(&zip);
    }
}

TEST(lent_bytes_are_read_in_place_where_they_are_not_compressed)
{
    TDMI_AT_END(pack_zip_release) struct pack_zip zip = {0};
    tdmi_archive *archive = NULL;
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    tdm_error err = {0};
    const void *at = NULL;
    pack_zip_add(&zip, "stored", "as it is", 8);
    zip.method = 8;
    pack_zip_add(&zip, "packed", "unpacked", 8);
    zip.method = 0;
    pack_zip_add(&zip, "folder/", "", 0);
    pack_zip_end(&zip, "");
    const char *first = zip.bytes.bytes, *end = first + zip.bytes.length_bytes;
    assert_ok(tdmi_archive_open_bytes(first, zip.bytes.length_bytes, "lent", &archive, &err), &err);
    assert_ok(tdmi_archive_view(archive, 0, 8, &text, &at, &err), &err);
    assert_true((const char *)at > first && (const char *)at < end);
    assert_memory_equal(at, "as it is", 8);
    assert_int_equal(text.length_bytes, 0);
    assert_int_equal(tdmi_archive_view(archive, 0, 7, &text, &at, &err), TDM_E_INPUT);
    assert_int_equal(tdmi_archive_view(archive, 2, 8, &text, &at, &err), TDM_E_INPUT);
    if (tdmi_inflate_best() != NULL) {
        assert_ok(tdmi_archive_view(archive, 1, 8, &text, &at, &err), &err);
        assert_ptr_equal(at, text.bytes);
        assert_memory_equal(at, "unpacked", 8);
    }
    zip.bytes.bytes[30 + strlen("stored")] ^= 1;
    assert_failure(tdmi_archive_view(archive, 0, 8, &text, &at, &err), TDM_E_INPUT, &err,
                   "checksum");
    assert_non_null(strstr(tdm_error_sentence(&err, 1), "'stored' in 'lent'"));
    tdmi_archive_close(archive);
    assert_int_equal(tdmi_archive_open_bytes(NULL, 0, "nothing", &archive, &err), TDM_E_INPUT);
    assert_int_equal(tdmi_archive_open_bytes(first, 40, "cut", &archive, &err), TDM_E_INPUT);
}

TEST(an_entry_above_the_limit_is_not_read)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(pack_zip_release) struct pack_zip zip = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    pack_zip_add(&zip, "a", "12345", 5);
    pack_zip_end(&zip, "");
    TDMI_AT_END(tdmi_archive_close_at)
    tdmi_archive *archive = open_archive(&tree, "x.zip", &zip.bytes);
    assert_ok(tdmi_archive_read(archive, 0, 5, &bytes, &err), &err);
    assert_failure(tdmi_archive_read(archive, 0, 4, &bytes, &err), TDM_E_INPUT, &err,
                   "has 5 bytes; at most 4");
}

TEST(links_of_zips_are_left_out_and_backslashes_replaced)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(pack_zip_release) struct pack_zip zip = {.mode = 0120777};
    pack_zip_add(&zip, "link", "elsewhere", 9);
    zip.mode = 0;
    pack_zip_add(&zip, "cat\\a.txt", "dos", 3);
    zip.mode = 0100644;
    pack_zip_add(&zip, "cat\\b.txt", "unix", 4);
    pack_zip_end(&zip, "");
    TDMI_AT_END(tdmi_archive_close_at)
    tdmi_archive *archive = open_archive(&tree, "x.zip", &zip.bytes);
    assert_int_equal(tdmi_archive_entries(archive), 2);
    assert_text(archive, "cat/a.txt", "dos");
    assert_text(archive, "cat\\b.txt", "unix");
}

TEST(a_zip_behind_other_bytes_is_read)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (int is_64 = 0; is_64 < 2; is_64++) {
        TDMI_AT_END(pack_zip_release) struct pack_zip zip = {.is_64 = is_64 == 1};
        TDMI_AT_END(tdmi_text_release) tdmi_text whole = {0};
        pack_zip_add(&zip, "a", "behind", 6);
        pack_zip_end(&zip, "");
        tdmi_text_printf(&whole, "#!/bin/sh\nunpack $0\n");
        tdmi_text_add(&whole, zip.bytes.bytes, zip.bytes.length_bytes);
        TDMI_AT_END(tdmi_archive_close_at)
        tdmi_archive *archive = open_archive(&tree, "x.zip", &whole);
        assert_text(archive, "a", "behind");
    }
}

TEST(zips_that_are_not_read_are_refused_by_name)
{
    static const struct {
        int method, flags;
        const char *word;
    } cases[] = {{0, 1, "'cat/a.jpg' in"},
                 {0, 1, "is encrypted"},
                 {8, 0x41, "is encrypted"},
                 {14, 0, "compressed by method 14; stored (0) and deflated (8)"},
                 {99, 0, "method 99"}};
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(pack_zip_release)
        struct pack_zip zip = {.method = cases[c].method, .flags = cases[c].flags};
        pack_zip_add(&zip, "cat/a.jpg", "x", 1);
        pack_zip_end(&zip, "");
        assert_damaged(&tree, "x.zip", &zip.bytes, cases[c].word);
    }
}

/* Cut and flipped at every byte, or every seventh of a tar: an error with a sentence, or what was
 * written; never a crash, never other bytes. */
TEST(cut_and_flipped_archives_are_errors)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdmi_text forms[3] = {{0}}, damaged = {0};
    static const char *const names[] = {"x.zip", "y.tar", "z.tgz"};
    struct pack_zip zip = {.method = tdmi_inflate_best() == NULL ? 0 : 8};
    pack_zip_add(&zip, "cat/a", "some bytes of the first", 23);
    pack_zip_add(&zip, "b", "second", 6);
    pack_zip_end(&zip, "");
    forms[0] = zip.bytes;
    pack_tar_head(&forms[1], "", "././@LongLink", 'L', "", 6, false);
    pack_tar_bytes(&forms[1], "cat/a", 6);
    pack_tar_add(&forms[1], "?", "some bytes of the first", 23);
    pack_tar_add(&forms[1], "b", "second", 6);
    pack_tar_end(&forms[1]);
    pack_gzip(&forms[2], forms[1].bytes, forms[1].length_bytes);
    for (int f = 0; f < (tdmi_inflate_best() == NULL ? 2 : 3); f++) {
        tdmi_text text = {0};
        size_t n = forms[f].length_bytes;
        /* A tar may lose the second of its two blocks of zeros, and half of the first goes unseen.
         */
        size_t whole = f == 1 ? n - 512 : n;
        for (size_t at = 0; at < 2 * n; at += f == 0 ? 1 : 7) {
            TDMI_AT_END(tdmi_archive_close_at) tdmi_archive *archive = NULL;
            tdm_error err = {0};
            tdmi_text_clear(&damaged);
            tdmi_text_add(&damaged, forms[f].bytes, at < n ? at : n);
            if (at >= n)
                damaged.bytes[at - n] = (char)(damaged.bytes[at - n] ^ 1 << at % 8);
            /* A new file each time: some file systems flush one that is written over. */
            unlink(tree_path(&tree, names[f]));
            tree_file(&tree, names[f], tdmi_text_string(&damaged), damaged.length_bytes);
            tdm_status status = tdmi_archive_open(tree_path(&tree, names[f]), &archive, &err);
            if (status != TDM_OK)
                assert_true(err.n_frames > 0 && status == TDM_E_INPUT);
            if (at < whole && status == TDM_OK)
                fail_msg("%s cut at byte %zu opens", names[f], at);
            for (int64_t i = 0; status == TDM_OK && i < tdmi_archive_entries(archive); i++)
                if (!tdmi_archive_entry(archive, i)->is_folder &&
                    tdmi_archive_read(archive, i, 1 << 20, &text, &err) == TDM_OK && f != 1)
                    assert_true(strcmp(tdmi_text_string(&text), "second") == 0 ||
                                strcmp(tdmi_text_string(&text), "some bytes of the first") == 0 ||
                                text.length_bytes == 0);
        }
        tdmi_text_release(&text);
        tdmi_text_release(&forms[f]);
    }
    tdmi_text_release(&forms[2]);
    tdmi_text_release(&damaged);
}

TEST(hostile_zips_are_errors)
{
    static const struct {
        size_t from_end; /* of the byte that is changed */
        uint8_t byte;
        const char *word;
    } cases[] = {
        {22 + 46 + 1 - 24 - 3, 0x7f, "promises"},      /* 2 GB out of a few bytes */
        {22 + 46 + 1 - 20 - 3, 0x7f, "past the"},      /* stored bytes that are not there */
        {22 + 46 + 1 - 42 - 3, 0x7f, "past the"},      /* an offset far away */
        {22 + 46 + 1 - 28, 0xff, "ends within entry"}, /* a name longer than the directory */
        {22 - 10, 7, "promises 7 entries and holds 1"},
        {22 - 12 - 3, 0x7f, "does not end before"},
        {22 - 4, 1, "one of several files"},
        {22, 0, "no zip directory"},
        {22 + 1, 0, "no name, or one with a zero byte"},
    };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(pack_zip_release) struct pack_zip zip = {.method = 8};
        pack_zip_add(&zip, "a", "bytes", 5);
        pack_zip_end(&zip, "");
        zip.bytes.bytes[zip.bytes.length_bytes - cases[c].from_end] = (char)cases[c].byte;
        assert_damaged(&tree, "x.zip", &zip.bytes, cases[c].word);
    }
}

/* ---- tar ------------------------------------------------------------------------------------- */

TEST(tars_of_all_forms_are_read)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_text_release) tdmi_text tar = {0}, packed = {0};
    char long_name[300];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    static const char pax[] = "20 path=pax/\xc3\xa9/name\n10 size=3\n22 comment=not for us\n";
    pack_tar_head(&tar, "", "folder/", '5', "", 0, false);
    pack_tar_add(&tar, "folder/plain", "plain", 5);
    pack_tar_head(&tar, "a/prefix", "name", '0', "", 6, false);
    pack_tar_bytes(&tar, "prefix", 6);
    pack_tar_head(&tar, "", "././@LongLink", 'L', "", sizeof long_name, false);
    pack_tar_bytes(&tar, long_name, sizeof long_name);
    pack_tar_add(&tar, "nnnn", "long", 4);
    pack_tar_head(&tar, "", "PaxHeaders/g", 'g', "", 12, false);
    pack_tar_bytes(&tar, "12 path=all\n", 12);
    pack_tar_head(&tar, "", "PaxHeaders/x", 'x', "", sizeof pax - 1, false);
    pack_tar_bytes(&tar, pax, sizeof pax - 1);
    pack_tar_head(&tar, "", "short", '0', "", 0, false);
    pack_tar_bytes(&tar, "pax", 3);
    pack_tar_head(&tar, "", "large", '0', "", 5, true);
    pack_tar_bytes(&tar, "large", 5);
    pack_tar_head(&tar, "", "hard", '1', "folder/plain", 0, false);
    pack_tar_head(&tar, "", "soft", '2', "folder/plain", 0, false);
    pack_tar_head(&tar, "", "device", '3', "", 0, false);
    pack_tar_head(&tar, "", "old", '\0', "", 3, false);
    pack_tar_bytes(&tar, "old", 3);
    pack_tar_add(&tar, "../up", "up", 2);
    pack_tar_end(&tar);
    pack_gzip(&packed, tar.bytes, 700); /* in two members */
    pack_gzip(&packed, tar.bytes + 700, tar.length_bytes - 700);
    for (int is_packed = 0; is_packed < (tdmi_inflate_best() == NULL ? 1 : 2); is_packed++) {
        const char *name = is_packed ? "x.tgz" : "x.tar";
        TDMI_AT_END(tdmi_archive_close_at)
        tdmi_archive *archive = open_archive(&tree, name, is_packed ? &packed : &tar);
        assert_int_equal(tdmi_archive_form_of(tree_path(&tree, name)), TDMI_ARCHIVE_TAR);
        assert_int_equal(tdmi_archive_entries(archive), 9);
        assert_true(tdmi_archive_entry(archive, 0)->is_folder);
        assert_text(archive, "folder/plain", "plain");
        assert_text(archive, "a/prefix/name", "prefix");
        assert_text(archive, long_name, "long");
        assert_text(archive, "pax/\xc3\xa9/name", "pax");
        assert_text(archive, "large", "large");
        assert_text(archive, "hard", "plain");
        assert_text(archive, "old", "old");
        assert_text(archive, "../up", "up");
    }
}

TEST(tars_that_cannot_be_are_refused_with_a_place)
{
    static const struct {
        char type;
        const char *name, *body;
        size_t size;
        const char *word;
    } cases[] = {
        {'0', "a", "x", 5000, "the entry at byte 1024 has 5000 bytes, and"},
        {'S', "a", "x", 1, "stored sparse"},
        {'x', "p", "22 GNU.sparse.major=1\n", 22, "stored sparse"},
        {'x', "p", "99 path=a\n", 10, "byte 1024 is no list"},
        {'x', "p", "path=a\n", 7, "is no list"},
        {'x', "p", "9 path a\n", 9, "is no list"},
        {'x', "p", "12 size=-10\n", 12, "is no list"},
        {'1', "a", "", 0, "is a link to 'elsewhere', which does not stand before it"},
        {'0', "", "x", 1, "byte 1024"},
        {'L', "a", "x", (size_t)3 << 20, "cut short or damaged"},
    };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tdmi_text_release) tdmi_text tar = {0};
        pack_tar_add(&tar, "before", "1", 1);
        pack_tar_head(&tar, "", cases[c].name, cases[c].type, "elsewhere", cases[c].size, false);
        pack_tar_bytes(&tar, cases[c].body, strlen(cases[c].body));
        pack_tar_add(&tar, "after", "1", 1);
        pack_tar_end(&tar);
        assert_damaged(&tree, "x.tar", &tar, cases[c].word);
    }
}

TEST(a_tar_without_its_end_was_cut_short)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_text_release) tdmi_text tar = {0};
    pack_tar_add(&tar, "a", "1", 1);
    assert_damaged(&tree, "x.tar", &tar, "ends at byte 1024 without the block of zeros");
}

TEST(compressed_tars_that_are_damaged_are_refused_with_a_place)
{
    if (tdmi_inflate_best() == NULL)
        skip();
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_text_release) tdmi_text tar = {0}, packed = {0};
    pack_tar_add(&tar, "a", "1", 1);
    pack_tar_end(&tar);
    pack_gzip(&packed, tar.bytes, tar.length_bytes);
    size_t whole = packed.length_bytes;
    tdmi_text_add(&packed, "\0\0\0", 3);
    tdmi_archive_close(open_archive(&tree, "x.tgz", &packed)); /* filled up, as on tape */
    packed.length_bytes = whole;
    tdmi_text_add(&packed, "rest", 4);
    assert_damaged(&tree, "x.tgz", &packed, "continues after its end");
    packed.length_bytes = whole - 10;
    assert_damaged(&tree, "x.tgz", &packed, "in the middle of its compressed bytes");
    packed.bytes[10] = 7; /* no kind of block */
    assert_damaged(&tree, "x.tgz", &packed, "is damaged at byte");
}

TEST(compressed_files_are_read_or_the_missing_library_named)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(pack_zip_release) struct pack_zip zip = {.method = 8};
    pack_zip_add(&zip, "a", "bytes", 5);
    pack_zip_end(&zip, "");
    if (tdmi_inflate_best() == NULL) {
        assert_damaged(&tree, "x.zip", &zip.bytes, "this build has no zlib");
    } else {
        TDMI_AT_END(tdmi_archive_close_at)
        tdmi_archive *archive = open_archive(&tree, "x.zip", &zip.bytes);
        assert_text(archive, "a", "bytes");
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

struct reading {
    const tdmi_archive *archive;
    int first;
    bool is_wrong;
};

static void *read_all(void *self)
{
    struct reading *reading = self;
    tdmi_text bytes = {0};
    char expected[32];
    for (int i = 0; i < 400; i++) {
        int entry = (reading->first + i * 7) % 50;
        snprintf(expected, sizeof expected, "entry %d", entry);
        if (tdmi_archive_read(reading->archive, entry, 1 << 20, &bytes, NULL) != TDM_OK ||
            strcmp(tdmi_text_string(&bytes), expected) != 0)
            reading->is_wrong = true;
    }
    tdmi_text_release(&bytes);
    return NULL;
}

TEST(any_thread_reads_any_entry)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(pack_zip_release)
    struct pack_zip zip = {.method = tdmi_inflate_best() == NULL ? 0 : 8};
    TDMI_AT_END(tdmi_text_release) tdmi_text tar = {0};
    for (int i = 0; i < 50; i++) {
        char name[16], text[32];
        snprintf(name, sizeof name, "%d", i);
        snprintf(text, sizeof text, "entry %d", i);
        pack_zip_add(&zip, name, text, strlen(text));
        pack_tar_add(&tar, name, text, strlen(text));
    }
    pack_zip_end(&zip, "");
    pack_tar_end(&tar);
    for (int form = 0; form < 2; form++) {
        tdmi_archive *archive =
            open_archive(&tree, form ? "x.tar" : "x.zip", form ? &tar : &zip.bytes);
        struct reading readings[4];
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            readings[i] = (struct reading){archive, i * 11, false};
            assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readings[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_false(readings[i].is_wrong);
        }
        tdmi_archive_close(archive);
    }
}

TEST(other_files_are_no_archives)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_text(&tree, "words", "PK is not enough");
    assert_int_equal(tdmi_archive_form_of(tree_path(&tree, "words")), TDMI_ARCHIVE_NONE);
    assert_int_equal(tdmi_archive_form_of(tree.root), TDMI_ARCHIVE_NONE);
    assert_int_equal(tdmi_archive_form_of("/nowhere.zip"), TDMI_ARCHIVE_NONE);
    tdmi_archive *archive = NULL;
    tdm_error err = {0};
    assert_failure(tdmi_archive_open(tree_path(&tree, "words"), &archive, &err), TDM_E_INPUT, &err,
                   "no archive");
    tree_text(&tree, "empty.zip", "");
    assert_int_equal(tdmi_archive_open(tree_path(&tree, "empty.zip"), &archive, &err), TDM_E_INPUT);
}

TEST_MAIN(NULL, NULL)
