/* Zip and tar of class folders: the same listing as the folder they were packed from. */
#include "unit.h"
#include "data/sources.h"

#include "tandem/log.h"

/* A picture of one pixel. */
static const uint8_t picture[] = "P6\n1 1\n255\nabc";
enum { PICTURE_BYTES = sizeof picture - 1, MOST_FILES = 12 };

/* As tests of folders write them: "name" a picture, "name=text" other bytes, "name/" a folder. */
static void write_form(const struct tree *tree, int form, const char *const *files)
{
    static const char *const names[] = {"x.zip", "x.tar", "x.tgz", "unnamed"};
    struct pack_zip zip = {0};
    tdmi_text tar = {0}, packed = {0};
    for (int f = 0; f < MOST_FILES && files[f] != NULL; f++) {
        char name[200];
        snprintf(name, sizeof name, "%s", files[f]);
        char *text = strchr(name, '=');
        if (text != NULL)
            *text++ = '\0';
        const void *bytes = text != NULL ? (const void *)text : (const void *)picture;
        size_t length = text != NULL ? strlen(text) : (size_t)PICTURE_BYTES;
        if (name[strlen(name) - 1] == '/')
            length = 0;
        pack_zip_add(&zip, name, bytes, length);
        if (name[strlen(name) - 1] == '/')
            pack_tar_head(&tar, "", name, '5', "", 0, false);
        else
            pack_tar_add(&tar, name, bytes, length);
    }
    pack_zip_end(&zip, "");
    pack_tar_end(&tar);
    pack_gzip(&packed, tar.bytes, tar.length_bytes);
    const tdmi_text *texts[] = {&zip.bytes, &tar, &packed, &tar};
    tree_file(tree, names[form], texts[form]->bytes, texts[form]->length_bytes);
    tdmi_text_release(&zip.bytes);
    tdmi_text_release(&tar);
    tdmi_text_release(&packed);
}

static const char *path_of_form(const struct tree *tree, int form)
{
    static const char *const names[] = {"x.zip", "x.tar", "x.tgz", "unnamed"};
    return tree_path(tree, names[form]);
}

TEST(archives_are_listed_like_folders)
{
    static const struct {
        const char *files[MOST_FILES];
        const char *classes, *items;
        int64_t n_ignored;
    } cases[] = {
        {{"dog/b.ppm", "dog/a.ppm", "cat/z.PPM"},
         "cat dog",
         "cat/z.PPM 0 0, dog/a.ppm 1 0, dog/b.ppm 1 0",
         0},
        {{"./dog/b.ppm", "./cat/2024/may/a.ppm", "./cat/b.ppm", "./"},
         "cat dog",
         "cat/2024/may/a.ppm 0 0, cat/b.ppm 0 0, dog/b.ppm 1 0",
         0},
        /* One folder around everything, or several. */
        {{"pets/dog/b.ppm", "pets/cat/a.ppm", "pets/README=x"},
         "cat dog",
         "cat/a.ppm 0 0, dog/b.ppm 1 0",
         1},
        {{"pets-1.0/data/dog/b.ppm", "pets-1.0/data/cat/a.ppm", "pets-1.0/LICENSE=x"},
         "cat dog",
         "cat/a.ppm 0 0, dog/b.ppm 1 0",
         1},
        {{"pets/train/dog/b.ppm", "pets/val/dog/a.ppm", "pets/test/cat/a.ppm"},
         "cat dog",
         "test/cat/a.ppm 0 3, train/dog/b.ppm 1 1, val/dog/a.ppm 1 2",
         0},
        {{"train/dog/b.ppm", "train/cat/b.ppm"},
         "cat dog",
         "train/cat/b.ppm 0 0, train/dog/b.ppm 1 0",
         0},
        {{"cat/a.ppm", "cat/b.ppm"}, "cat", "cat/a.ppm 0 0, cat/b.ppm 0 0", 0},
        {{"a.ppm", "b.ppm", "notes.txt=x"}, "", "a.ppm -1 0, b.ppm -1 0", 1},
        /* ".." and "/" at the start of a path are dropped; files that tools leave behind are
           ignored. */
        {{"../../cat/a.ppm", "/dog//b.ppm", "__MACOSX/cat/._a.ppm", "cat/.DS_Store=x"},
         "cat dog",
         "cat/a.ppm 0 0, dog/b.ppm 1 0",
         0},
        {{"cat/a.ppm", "dog/", "loose.ppm", "cat/words.txt=x"}, "cat dog", "cat/a.ppm 0 0", 2},
        {{"cat/a.ppm", "cat/noending", "cat/alsonone=words"},
         "cat",
         "cat/a.ppm 0 0, cat/noending 0 0",
         1},
        {{"cat/a.ppm", "dog/b.ppm", "run/best/p.ppm", "run/run.json={}", "run/a.ppm"},
         "cat dog",
         "cat/a.ppm 0 0, dog/b.ppm 1 0",
         0},
        /* Unpacking would leave the later of two. */
        {{"cat/a.ppm=old", "dog/b.ppm", "cat/a.ppm"}, "cat dog", "cat/a.ppm 0 0, dog/b.ppm 1 0", 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int form = 0; form < 4; form++) {
            if (form == 2 && tdmi_inflate_best() == NULL)
                continue;
            TDMI_AT_END(tree_free) struct tree tree = tree_new();
            write_form(&tree, form, cases[c].files);
            TDMI_AT_END(tdmi_source_close_at)
            tdmi_source *source = open_listed(path_of_form(&tree, form), "archive",
                                              cases[c].classes, cases[c].items, cases[c].n_ignored);
            for (int64_t i = 0; i < tdmi_source_items(source); i++)
                assert_bytes(source, i, picture, PICTURE_BYTES);
        }
}

TEST(a_damaged_picture_is_listed_and_fails_when_read)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct pack_zip zip = {0};
    pack_zip_add(&zip, "cat/a.ppm", picture, PICTURE_BYTES);
    pack_zip_add(&zip, "dog/b.ppm", picture, PICTURE_BYTES);
    pack_zip_end(&zip, "");
    zip.bytes.bytes[30 + 9 + 12] ^= 1; /* a pixel of the first */
    tree_file(&tree, "x.zip", zip.bytes.bytes, zip.bytes.length_bytes);
    tdmi_text_release(&zip.bytes);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree_path(&tree, "x.zip"));
    assert_int_equal(tdmi_source_items(source), 2);
    assert_unreadable(source, 0, "checksum of the entry at byte 0");
    assert_bytes(source, 1, picture, PICTURE_BYTES);
}

TEST(archives_without_pictures_are_refused)
{
    static const char *const words[MOST_FILES] = {"cat/a.txt=x", "readme=x"};
    static const char *const none[MOST_FILES] = {NULL};
    for (int form = 0; form < 2; form++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_form(&tree, form, words);
        assert_refused(path_of_form(&tree, form), TDM_E_INPUT, "2 other files");
        write_form(&tree, form, none);
        assert_refused(path_of_form(&tree, form), TDM_E_INPUT, "no image");
    }
}

TEST(reading_again_allocates_nothing_but_what_inflates)
{
    static const char *const files[MOST_FILES] = {"cat/a.ppm", "dog/b.ppm"};
    for (int form = 0; form < 2; form++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_form(&tree, form, files);
        tdmi_source *source = open_source(path_of_form(&tree, form));
        TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
        assert_int_equal(tdmi_source_read(source, 0, &bytes, NULL), TDM_OK);
        int64_t before = tdmi_memory_calls();
        assert_int_equal(tdmi_source_read(source, 1, &bytes, NULL), TDM_OK);
        assert_int_equal(tdmi_memory_calls(), before);
        tdmi_source_close(source);
    }
}

/* The number of a head of the directory that begins at `at`. */
static void set_four(struct pack_zip *zip, size_t at, size_t field, size_t value)
{
    for (int i = 0; i < 4; i++)
        zip->directory.bytes[at + field + (size_t)i] = (char)(value >> 8 * i);
}

/* Small archives unpack to any size when many entries share bytes. */
TEST(zips_whose_members_share_bytes_are_refused)
{
    enum { STORED = 20, SIZE = 24, OFFSET = 42, NAME = 9 };
    for (int c = 0; c < 5; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        struct pack_zip zip = {0}, inner = {0};
        pack_zip_add(&inner, "cat/b.ppm", "some bytes", 10);
        const size_t length = inner.bytes.length_bytes;
        pack_zip_add(&zip, "cat/a.ppm", inner.bytes.bytes, length);
        const size_t second = zip.directory.length_bytes;
        pack_zip_add(&zip, "cat/b.ppm", "some bytes", 10);
        if (c == 0) { /* two names of one member */
            set_four(&zip, 0, OFFSET, 30 + NAME + length);
            set_four(&zip, 0, STORED, 10);
            set_four(&zip, 0, SIZE, 10);
        }
        if (c == 1) /* a member within the bytes of another, head and all */
            set_four(&zip, second, OFFSET, 30 + NAME);
        if (c == 2) { /* bytes that go on into the next member */
            set_four(&zip, 0, STORED, length + NAME + 1);
            set_four(&zip, 0, SIZE, length + NAME + 1);
        }
        if (c == 3) { /* and into the directory */
            set_four(&zip, second, STORED, 60);
            set_four(&zip, second, SIZE, 60);
        }
        if (c == 4) /* a head whose extras cover the next member shows when it is read */
            zip.bytes.bytes[28] = 40;
        pack_zip_end(&zip, "");
        tree_file(&tree, "x.zip", zip.bytes.bytes, zip.bytes.length_bytes);
        if (c < 4) {
            assert_refused(tree_path(&tree, "x.zip"), TDM_E_INPUT, "its members overlap");
        } else {
            tdmi_source *source = open_source(tree_path(&tree, "x.zip"));
            assert_unreadable(source, 0, "reach into what begins at byte 88");
            assert_bytes(source, 1, "some bytes", 10);
            tdmi_source_close(source);
        }
        tdmi_text_release(&zip.bytes);
        tdmi_text_release(&inner.bytes);
        tdmi_text_release(&inner.directory);
    }
}

TEST(running_out_of_memory_is_an_error)
{
    static const char *const files[MOST_FILES] = {"pets/train/cat/a.ppm", "pets/val/cat/b.ppm",
                                                  "pets/val/dog/noending"};
    for (int form = 0; form < (tdmi_inflate_best() == NULL ? 2 : 3); form++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        write_form(&tree, form, files);
        assert_survives_lack_of_memory(path_of_form(&tree, form));
    }
}

TEST_MAIN(NULL, NULL)
